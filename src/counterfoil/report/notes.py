"""Notes for readers of a result: sentences derived from the results alone."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.run import Run
from counterfoil.report.interval_basis import resting, warnings
from counterfoil.report.labels import measure_label
from counterfoil.report.markup import number
from counterfoil.report.tables import leading, main_measures, style_of

#: A tie policy that moves a main measure by this much, or this share of tied questions, is worth a warning.
NOTABLE = 0.01

_INTERVALS = {
    "wilson": "Wilson's, for independent questions",
    "bootstrap": "a bootstrap over clusters of questions that share images or captions",
    "crossed": "the variance over images and captions as crossed factors",
    "folds": "Student's t over four folds",
}


_POLICIES = {
    "strict": "A question is right only where what belongs together scores above what does not; "
    "a tie is wrong.",
    "half": "A question is right where what belongs together scores above what does not; "
    "a tie is worth what a random order of the tied would give.",
    "optimistic": "A question is right unless what does not belong together scores higher; a tie is right.",
}


@dataclass(frozen=True)
class Note:
    """One sentence; `kind` is how much it should worry the reader."""

    text: str
    kind: Literal["fact", "warning"] = "fact"


def lead(comparison: Comparison) -> str:
    """Which scorer is best on the leading measure, by how much, and which are not told apart from it."""
    measure = leading(comparison)
    label = measure_label(measure)
    runs = [run for run in comparison.runs if measure in run.result.measures]
    if not runs:
        return f"No scorer has a value of {label}."
    best = max(runs, key=lambda run: run.result.measures[measure].value)
    e = best.result.measures[measure]
    value, low, high = (said(measure, each) for each in (e.value, e.low, e.high))
    text = f"{best.name} has {label} {value} ({low} to {high})"
    if e.chance is not None:
        text += f", where chance is {said(measure, e.chance)}"
    if len(runs) == 1:
        return f"{text}."
    rivals = [
        (d.b if d.a == best.name else d.a)
        for d in comparison.differences
        if d.measure == measure and best.name in (d.a, d.b) and d.p_holm >= 0.05
    ]
    if not rivals:
        others = "other" if len(runs) == 2 else f"{len(runs) - 1} others"
        return f"{text}: ahead of the {others} by more than luck (p < 0.05 after Holm)."
    return f"{text}: the highest of {len(runs)}, not told apart (p ≥ 0.05 after Holm) from {listed(rivals)}."


def notes(comparison: Comparison) -> list[Note]:
    """Intervals, ties, chance and missing scores, the ones that matter; warnings first."""
    found = [*tied(comparison), *below_chance(comparison), *_outcomes(comparison), *intervals(comparison)]
    return sorted(found, key=lambda note: note.kind != "warning")


def ties(comparison: Comparison) -> str:
    """What a question must do to count as right, by the runs' tie policy."""
    return _POLICIES.get(str(comparison.runs[0].result.ties.get("policy")), "")


def tied(comparison: Comparison) -> list[Note]:
    """By how much ties move the leading measure, scorer by scorer, or that they hardly do."""
    measure = leading(comparison)
    label = measure_label(measure)
    found = []
    scored = [run for run in comparison.runs if run.result.ties.get("questions") is not None]
    for run in scored:
        count, rate = int(run.result.ties["questions"]), float(run.result.ties["rate"])
        values = {
            policy: by[measure] for policy, by in run.result.ties.get("measures", {}).items() if measure in by
        }
        moved = max(values.values(), default=0.0) - min(values.values(), default=0.0)
        if rate < NOTABLE and moved < NOTABLE:
            continue
        under = ", ".join(f"{percent(value)} under {policy}" for policy, value in values.items())
        found.append(
            Note(
                f"{run.name} ties a right and a wrong pair in {count:,} of {len(run.benchmark):,} questions "
                f"({percent(rate)}): {label} is {under}.",
                "warning",
            )
        )
    few = [run for run in scored if 0 < float(run.result.ties["rate"]) < NOTABLE]
    if scored and not found:
        policy = scored[0].result.ties["policy"]
        most = max((int(run.result.ties["questions"]) for run in few), default=0)
        text = (
            "No scorer has a tie" if not few else f"Ties are rare (at most {most} questions for any scorer)"
        )
        found.append(Note(f"{text}; they count by the policy {policy}."))
    return found


def below_chance(comparison: Comparison) -> list[Note]:
    """Who lies below chance on what; scorers that do so on the same measures share a sentence."""
    together: dict[tuple[str, ...], list[str]] = {}
    for run in comparison.runs:
        below = tuple(name for name in main_measures(comparison) if _below_chance(run, name))
        if below:
            together.setdefault(below, []).append(run.name)
    return [
        Note(
            f"Below chance on {listed([measure_label(m) for m in measures])}, with the whole interval: "
            f"{listed(who)}.",
            "warning",
        )
        for measures, who in together.items()
    ]


def _below_chance(run: Run, measure: str) -> bool:
    estimate = run.result.measures.get(measure)
    return estimate is not None and estimate.chance is not None and bool(estimate.high < estimate.chance)


def _outcomes(comparison: Comparison) -> list[Note]:
    bare = [run.name for run in comparison.runs if not (run.answers.has_scores or run.answers.has_rankings)]
    if not bare:
        return []
    who = "All scorers" if len(bare) == len(comparison.runs) else listed(bare)
    return [Note(f"{who}: only right and wrong were given, so there are no scores, margins or ties to show.")]


def intervals(comparison: Comparison, words: Mapping[str, str] = _INTERVALS) -> list[Note]:
    """How the runs' intervals were made; `words` says it for each method."""
    methods = dict.fromkeys(
        str(run.result.provenance.get("interval", {}).get("method", "")) for run in comparison.runs
    )
    said = listed([words.get(method, _INTERVALS.get(method, method)) for method in methods if method])
    if not said:
        return []
    benchmark, results = comparison.runs[0].benchmark, [run.result for run in comparison.runs]
    return [
        *(Note(f"{_sentence(text)}.", "warning") for text in warnings(benchmark, results)),
        Note(f"Intervals hold 95\N{NO-BREAK SPACE}%: {said}. {_sentence(resting(benchmark, results))}."),
    ]


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def percent(value: float) -> str:
    """Per cent with two decimals; the sign stays on the number's line."""
    return f"{100 * value:.2f}\N{NO-BREAK SPACE}%"


def said(measure: str, value: float) -> str:
    """A value of a measure in a sentence: correlations times a hundred without a unit, others per cent.

    >>> said("kendall_tau_b", -0.3217)
    '−32.17'
    """
    style = style_of(measure)
    return percent(value) if style == "percent" else number(value, style)


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""
