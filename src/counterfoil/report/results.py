"""A result in print: the table of one run with lines below it, and notes for readers."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Forms
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import leading as leading_of, main_measures as main_of, of as form_of
from counterfoil.evaluation.intervals import LEVEL, one_sided
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.metrics.measures import DIRECTIONS, find, signed, split_direction
from counterfoil.report.comparison_tables import leading, main_measures
from counterfoil.report.tables import (
    Column,
    Table,
    amount,
    least_width,
    listed,
    measure_label,
    number,
    style_of,
    unit,
)
from counterfoil.stats.tests import holm

#: Intervals from fewer images, captions or effective questions than these cover less than they say where most
#: answers are right and items decide much (docs/statistics.md).
FEW = 20
#: One image or caption in more than this share of the questions is worth a warning.
MOST = 1 / 10
#: A tie policy that moves a main measure by this much, or this share of tied questions, is worth a warning.
NOTABLE = 0.01
#: What a tie counts as under each policy.
COUNTED = {"strict": "as wrong", "half": "by chance", "optimistic": "as right"}
_INTERVALS = {
    "wilson": "Wilson's, for independent questions",
    "clusters": "over clusters of questions that share images or captions",
    "crossed": "with images and captions as crossed random factors",
    "folds": "Student's t over four folds",
    "bootstrap": "a bootstrap over images, each drawn with all that was said about it",
    "influence": "from how much each question moves the measure (DeLong's variance for AUROC)",
}


@dataclass(frozen=True)
class Note:
    """One sentence; `kind` is its severity."""

    text: str
    kind: Literal["fact", "warning"] = "fact"


def lead(comparison: Comparison) -> str:
    """Which model is best on the leading measure, by how much, and which do not differ significantly."""
    measure = leading(comparison)
    label = measure_label(measure)
    runs = [run for run in comparison.runs if measure in run.result.measures]
    if not runs:
        return f"No model has a value of {label}."
    best = max(runs, key=lambda run: run.result.measures[measure].value)
    e = best.result.measures[measure]
    value, low, high = (formatted(measure, bound) for bound in (e.value, e.low, e.high))
    text = f"{best.name} has {label} {value} ({low} to {high})"
    if e.chance is not None:
        unsure = "not significantly different from"
        sides = {"above": e.low > e.chance, "below": e.high < e.chance, unsure: True}
        side = next(side for side, holds in sides.items() if holds)
        text += f", {side} chance ({formatted(measure, e.chance)})"
    if len(runs) == 1:
        return f"{text}."
    rivals = [
        (d.b if d.a == best.name else d.a)
        for d in comparison.families()[0].differences
        if d.measure == measure and best.name in (d.a, d.b) and d.p_holm >= 0.05
    ]
    others = listed(rivals) or ("the other" if len(runs) == 2 else f"the {len(runs) - 1} others")
    baseline = comparison.baseline
    if baseline not in (None, best.name) and any(run.name == baseline for run in runs):
        # Other pairs are a family of their own, which one sentence must not mix with this one.
        others = f"the baseline {baseline}"
    alike = "not significantly different (p ≥ 0.05 after Holm) from"
    above = "significantly (p < 0.05 after Holm) above"
    return f"{text}. It is the highest of {len(runs)}, {alike if rivals else above} {others}."


def tied(comparison: Comparison) -> list[Note]:
    """By how much ties move the leading measure, model by model, or that they hardly do."""
    measure = leading(comparison)
    label = measure_label(measure)
    notes = []
    scored = [run for run in comparison.runs if run.result.ties.get("questions") is not None]
    for run in scored:
        count, rate = int(run.result.ties["questions"]), float(run.result.ties["rate"])
        values = {
            policy: by[measure] for policy, by in run.result.ties.get("measures", {}).items() if measure in by
        }
        moved = max(values.values(), default=0.0) - min(values.values(), default=0.0)
        if rate < NOTABLE and moved < NOTABLE:
            continue
        under = ", ".join(f"{percent(value)} {COUNTED[policy]}" for policy, value in values.items())
        text = (
            f"{run.name} ties a right and a wrong pair in {count:,} of {len(run.benchmark):,} "
            f"{run.benchmark.questions.units} ({percent(rate)}): by how ties count, {label} is {under}."
        )
        notes.append(Note(text, "warning"))
    if notes or not scored:
        return notes
    few = [run.result.ties for run in scored if 0 < float(run.result.ties["rate"]) < NOTABLE]
    most = max((int(ties["questions"]) for ties in few), default=0)
    text = f"Ties are rare (at most {most} for any model)" if few else "No model has a tie"
    return [Note(f"{text}; ties count {COUNTED[scored[0].result.ties['policy']]}.")]


def below_chance(comparison: Comparison) -> list[Note]:
    """Which models are below chance on which measures, by the whole interval and Holm's correction."""
    main = main_measures(comparison)
    estimates = {
        (run.name, name): run.result.measures[name]
        for run in comparison.runs
        for name in main
        if name in run.result.measures
    }
    p = [one_sided(e, above=False, correlation=signed(name)) for (_, name), e in estimates.items()]
    below: dict[str, list[str]] = {}
    for ((who, name), e), adjusted in zip(estimates.items(), holm(np.array(p)), strict=True):
        if adjusted < LEVEL and e.chance is not None and e.high < e.chance:
            below.setdefault(who, []).append(name)
    together: dict[tuple[str, ...], list[str]] = {}
    for who, names in below.items():
        together.setdefault(tuple(names), []).append(who)
    return [
        Note(
            f"Below chance on {listed([measure_label(m) for m in measures])}, with the whole interval: "
            f"{listed(models)}.",
            "warning",
        )
        for measures, models in together.items()
    ]


def outcomes(comparison: Comparison) -> list[Note]:
    """Which runs are of right and wrong alone."""
    bare = [run.name for run in comparison.runs if not (run.answers.has_scores or run.answers.has_rankings)]
    if not bare:
        return []
    who = "All models" if len(bare) == len(comparison.runs) else listed(bare)
    return [Note(f"{who}: only right and wrong were given, so there are no scores, margins or ties to show.")]


def undefined(comparison: Comparison) -> list[Note]:
    """Which measures of which models have no value, and why; those with one reason share a sentence."""
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for run in comparison.runs:
        by_reason: dict[str, list[str]] = {}
        for measure, reason in run.result.undefined.items():
            by_reason.setdefault(reason, []).append(measure_label(measure))
        for reason, measures in by_reason.items():
            together.setdefault((reason, tuple(measures)), []).append(run.name)
    return [
        Note(f"{listed(measures)} of {listed(who)} has no value: {reason}.", "warning")
        for (reason, measures), who in together.items()
    ]


def intervals(comparison: Comparison) -> list[Note]:
    """How the runs' intervals were made, and what they rest on."""
    benchmark, results = comparison.runs[0].benchmark, [run.result for run in comparison.runs]
    methods = filter(None, dict.fromkeys(map(_method, results)))
    described = listed([_INTERVALS.get(method, method) for method in methods])
    if not described:
        return []
    resting, *warnings = rests_on(benchmark, results)
    return [
        *(Note(f"{_sentence(text)}.", "warning") for text in warnings),
        Note(f"95\N{NO-BREAK SPACE}% intervals: {described}. {_sentence(resting)}."),
    ]


def _method(result: Result) -> str:
    return str(result.provenance.get("interval", {}).get("method", ""))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def ties_line(result: Result, benchmark: Benchmark | None = None) -> str:
    """How ties were counted and how much that matters, to the leading measure where `benchmark` is given."""
    ties = result.ties
    if ties.get("questions") is None:
        return f"ties: {ties.get('note', 'not known')}"
    if not ties["questions"]:
        return "ties: none"
    strict, optimistic = ties["measures"]["strict"], ties["measures"]["optimistic"]
    # Of a gallery the measure that is reported first, else the main measure that sums the others up.
    first = [name for name in strict if split_direction(name)[0]][:3][-1:]
    lead = [] if benchmark is None else [name for name in (leading_of(benchmark, result),) if name in strict]
    main = [name for name in strict if (measure := find(name)) and measure.main]
    shown = first or lead or main[-1:]
    counted, share = COUNTED[ties["policy"]], amount(ties["questions"], "query" if first else "question")
    text = f"ties in {share} ({100 * ties['rate']:.2f} %) count {counted}"
    for name in shown:
        ways = {"as wrong": strict[name], "as right": optimistic[name]}
        if_so = " if they counted" if counted in ways else ""
        others = [f"{100 * value:.2f}{if_so} {way}" for way, value in ways.items() if way != counted]
        text += f"; {name} would be {', '.join(others)}"
    return text


def percent(value: float) -> str:
    """Per cent with two decimals; the sign stays on the number's line."""
    return f"{100 * value:.2f}\N{NO-BREAK SPACE}%"


def formatted(measure: str, value: float) -> str:
    """A value of a measure in a sentence: correlations times a hundred without a unit, others per cent.

    >>> formatted("kendall_tau_b", -0.3217)
    '−32.17'
    """
    style = style_of(measure)
    return percent(value) if style == "percent" else number(value, style)


def rests_on(benchmark: Benchmark, results: Sequence[Result]) -> list[str]:
    """What intervals rest on, then what is taken as given and what is too few, without full stops."""
    dependence = benchmark.measured_dependence
    images, captions = dependence.counts
    parts = [amount(images, "image"), *([amount(captions, "caption")] if captions else [])]
    texts = [f"intervals rest on {listed(parts)}"]
    form, numbers = form_of(benchmark), dict[str, list[float]]()
    for name in form.main_measures(benchmark):
        of_all = [result.measures[name] for result in results if name in result.measures]
        # Never more than there are questions.
        if effective := [min(e.effective, e.n) for e in of_all if e.effective is not None]:
            numbers[name] = effective
    measure = form.leading(benchmark, numbers) if numbers else ""
    if effective := numbers.get(measure, []):
        low, high = (f"{round(bound):,}" for bound in (min(effective), max(effective)))
        span = low if low == high else f"{low} to {high}"
        texts[0] += f"; effective sample size for {measure_label(measure)}: {span}"
    given = int(dependence.given_images.sum()), int(dependence.given_captions.sum())
    if set(map(_method, results)) <= {"wilson", "crossed"}:
        for many, kind in zip(given, ("image", "caption"), strict=True):
            if many:
                those, them = (f"1 {kind} is", "it") if many == 1 else (f"{many} {kind}s are", "them")
                texts.append(
                    f"{those} in so many questions that intervals take {them} as given: they say nothing of "
                    f"other {kind}s"
                )
    measured = np.flatnonzero(benchmark.questions.measured)
    for kind, of_kind, (row, column, share) in zip(
        ("image", "caption"), benchmark.questions.about(), dependence.fullest, strict=True
    ):
        if share > MOST and share * len(measured) >= 5:
            item = int(of_kind[measured[row], column])
            of_item = benchmark.captions[item] if kind == "caption" else benchmark.images[item]
            named = getattr(of_item, "text", None) or of_item.id
            texts.append(
                f"{kind} '{named}' is in {100 * share:.0f} % of the questions: intervals are wide, since "
                f"they rest on few other {kind}s"
            )
    of_captions = captions - given[1] if form_of(benchmark).captions_drawn else 0
    few = [
        f"{kind} ({many})" for kind, many in (("images", images), ("captions", of_captions)) if 0 < many < FEW
    ]
    if effective and min(effective) < FEW:
        few.append(f"effective questions ({min(effective):.0f})")
    if few:
        texts.append(f"few {listed(few)}: intervals are approximate, and should perhaps be wider")
    return texts


def of_gallery(result: Result) -> list[Note]:
    """What of a gallery has no right answer or one outside, where rankings end, and what is not measured."""
    from counterfoil.benchmarks.judgements import ROLES

    facts, notes = result.provenance.get("gallery", {}), []
    for name, (query, item) in ROLES.items():
        side = facts.get(name, {})
        if many := side.get("undefined"):
            notes.append(Note(f"without a right answer, left out: {amount(many, query)}"))
        if many := side.get("outside_gallery"):
            text = f"right answers outside the gallery, never found: {many:,} of "
            text += amount(side["positives"], item)
            notes.append(Note(text, "warning"))
    cut = ((side, depth) for side, depth in (facts.get("cut") or {}).items() if depth is not None)
    if depths := [f"{DIRECTIONS[side].arrow} {depth:,}" for side, depth in cut]:
        notes.append(Note(f"rankings are cut, the shortest after: {', '.join(depths)}", "warning"))
    unsupported = (facts.get("unsupported") or {}).items()
    reasons = {name: why for name, why in unsupported if split_direction(name)[0] != "mean"}
    if reasons:
        # They are much alike, and all are in the result.
        first, reason = next(iter(reasons.items()))
        names = dict.fromkeys(split_direction(name)[1] for name in reasons)
        notes.append(Note(f"not measured: {', '.join(names)}; {first}, for one: {reason}", "warning"))
    return notes


def of_galleries(comparison: Comparison) -> list[Note]:
    """The notes of all runs on a gallery; what is not said of all of them names its models."""
    together: dict[Note, list[str]] = {}
    for run in comparison.runs:
        for note in of_gallery(run.result):
            together.setdefault(note, []).append(run.name)
    return [
        Note(
            f"{_sentence(note.text) if len(who) == len(comparison.runs) else f'{listed(who)}: {note.text}'}.",
            note.kind,
        )
        for note, who in together.items()
    ]


def fitted_ties(results: Sequence[Result]) -> list[Note]:
    """The thresholds up to which scores count as alike, and that they were fitted where they are measured."""
    thresholds = [
        f"{result.model} {result.provenance['tie_threshold']:.4g}"
        for result in results
        if "tie_threshold" in result.provenance
    ]
    text = (
        f"Thresholds of ties ({listed(thresholds)}) are fitted on the captions that are measured, and again "
        "on each group: pairwise accuracy with fitted ties flatters."
    )
    return [Note(text, "warning")] if thresholds else []


class ResultTable:
    """The table of a result, of any form; the report of a form of another package is one too."""

    def amount(self, benchmark: Benchmark) -> str:
        """How many questions there are, in words."""
        return amount(len(benchmark), "question")

    def table(self, result: Result, benchmark: Benchmark, width: int) -> Table:
        """The measures of one result, a row each, at most `width` letters wide; no value is a dash."""
        columns = (
            Column(unit([*result.measures, *result.undefined]), look="bold"),
            Column("95 % interval", align="center"),
            Column("chance", look="dim"),
        )
        rows = []
        for name, e in result.measures.items():
            style = style_of(name)
            value, low, high = (number(end, style) for end in (e.value, e.low, e.high))
            chance = "" if e.chance is None else number(e.chance, style)
            rows.append((name, value, f"[{low}, {high}]", chance))
        rows += [(name, "–", "", "") for name in result.undefined]
        title = f"{result.model} on {benchmark.title}, {self.amount(benchmark)}"
        return Table.of(title, "measure", columns, rows)

    def lines(self, result: Result) -> list[str]:
        """Lines below that table: why a measure has no value."""
        return [f"{name}: {why}" for name, why in result.undefined.items()]


class StatementResult(ResultTable):
    """Statements: the threshold that was chosen, and how well people agree."""

    def amount(self, benchmark: Benchmark) -> str:
        measured = benchmark.statements.measured
        text = amount(int(measured.sum()), "statement")
        return text if measured.all() else f"{text}, {int((~measured).sum()):,} more for a threshold"

    def lines(self, result: Result) -> list[str]:
        threshold, agreed = result.provenance.get("threshold"), result.provenance.get("agreement")
        lines = super().lines(result)
        if threshold:
            lines.append(
                f"fitted threshold: {threshold_range(threshold)}, of highest balanced accuracy over "
                f"{threshold['chosen_on']}"
            )
        if agreed:
            lines.append(
                f"people who judged {amount(agreed['statements'], 'statement')} agree with Fleiss' kappa "
                f"{agreed['fleiss_kappa']:.3f}"
            )
        return lines


class GalleryResult(ResultTable):
    """Galleries: directions side by side."""

    def table(self, result: Result, benchmark: Benchmark, width: int) -> Table:
        rows: dict[str, dict[str, Estimate]] = {}
        for name, estimate in result.measures.items():
            side, base = split_direction(name)
            rows.setdefault(base, {})[side] = estimate
        title = f"{result.model} on {benchmark.title}, per cent with 95 % intervals"
        sides = [side for side in DIRECTIONS if any(side in of for of in rows.values())]
        for digits, between in _LAYOUTS:
            heads = (DIRECTIONS[side].arrow if between == " " else DIRECTIONS[side].label for side in sides)
            columns = [*(Column(head, look="first") for head in heads), Column("chance", look="dim")]
            lines = []
            for base, of in rows.items():
                cells = [base]
                for e in map(of.get, sides):
                    # In a narrow terminal 100 stands without digits.
                    ends = () if e is None else (f"{100 * end:.{digits}f}" for end in (e.low, e.high))
                    span = "–".join(end.replace(f"{100:.{digits}f}", "100") for end in ends)
                    cells.append("" if e is None else f"{100 * e.value:.2f}{between}{span}")
                chance = of[next(side for side in reversed(sides) if side in of)].chance
                lines.append([*cells, "" if chance is None else f"{100 * chance:.2f}"])
            table = Table.of(title, "measure", columns, lines)
            if least_width(table) <= width:
                break
        return table

    def lines(self, result: Result) -> list[str]:
        facts = result.provenance.get("gallery", {})
        if not facts:
            return []
        parts = f", the mean over {facts['parts']} parts" if facts["parts"] > 1 else ""
        first = (
            f"{facts['i2t']['queries']:,} of {facts['images']:,} images and {facts['t2i']['queries']:,} of "
            f"{facts['captions']:,} captions are queries{parts}"
        )
        return [first, *(note.text for note in of_gallery(result))]


class RatedResult(ResultTable):
    """Ratings: the threshold of ties that was fitted."""

    def amount(self, benchmark: Benchmark) -> str:
        ratings = int((~np.isnan(benchmark.rated.ratings)).sum())
        return f"{amount(len(benchmark), 'caption')}, {amount(ratings, 'rating')}"

    def lines(self, result: Result) -> list[str]:
        return [*super().lines(result), *(note.text for note in fitted_ties([result]))]


#: The table of a result by the form's name.
RESULTS: Forms[ResultTable] = Forms(
    {
        **dict.fromkeys(
            ("quad", "choice", "paraphrase", "preference"), "counterfoil.report.results:ResultTable"
        ),
        "statement": "counterfoil.report.results:StatementResult",
        "gallery": "counterfoil.report.results:GalleryResult",
        "rated": "counterfoil.report.results:RatedResult",
    },
    "report",
)


def reported_groups(result: Result, benchmark: Benchmark) -> Table | None:
    """One row per group of the groupings that the benchmark's authors report by; None of more than forty."""
    wanted, questions = benchmark.card.groupings or tuple(benchmark.questions.groupings), benchmark.questions
    sizes = Counter(label for name in wanted for label in questions.groupings.get(name, ()))
    columns = []
    for name in (name for name in main_of(benchmark) if name in result.measures):
        head = f"{name} %" if style_of(name) == "percent" else measure_label(name)
        columns.append(Column(head, style=style_of(name), measure=name))
    # A direction that a group of a gallery does not ask in is no missing value.
    nothing, rows = "" if questions.directed else None, []
    for label, of in result.groups.items():
        if (size := sizes[label.rpartition(":")[2]]) and (of or not questions.directed):
            n = max((e.n for e in of.values()), default=size)
            rows.append((label, f"{n:,}", *(of.get(c.measure, nothing) for c in columns)))
    if not rows or len(rows) > 40:
        return None
    return Table.of("by group", "group", [questions.units, *columns], rows)


def threshold_range(threshold: Mapping[str, Any]) -> str:
    """A threshold, or the lowest and the highest of several."""
    low, high = (f"{threshold[end]:.4g}" for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


#: Digits of intervals, and what stands before these; the first that fits is taken.
_LAYOUTS = ((2, " "), (1, " "), (2, "\n"), (1, "\n"))
