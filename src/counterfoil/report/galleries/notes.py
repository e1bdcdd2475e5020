"""Notes for readers of retrieval numbers: sentences derived from the results alone."""

from collections.abc import Collection, Mapping
from typing import Any

from counterfoil.data.forms import Gallery
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.run import Run
from counterfoil.metrics.measure import split_direction
from counterfoil.report.galleries.figures import right_answers
from counterfoil.report.labels import measure_label
from counterfoil.report.notes import NOTABLE, Note, below_chance, intervals, listed, percent
from counterfoil.report.tables import main_measures

_POLICIES = {
    "strict": "Of equal scores, a wrong item stands before a right one.",
    "half": "Equal scores stand in random order, and a measure is its mean over all such orders.",
    "optimistic": "Of equal scores, a right item stands before a wrong one.",
}
_INTERVALS = {
    "bootstrap": "a bootstrap over images, each drawn with the captions written for it",
    "wilson": "Wilson's, for independent queries",
}
#: Per direction: what asks, and what is asked for.
KINDS: Mapping[str, tuple[str, str]] = {"i2t": ("image", "caption"), "t2i": ("caption", "image")}


def about(questions: Gallery) -> str:
    """What is asked: how many queries look for how many items.

    >>> import numpy as np
    >>> from counterfoil.data.forms import Search
    >>> from counterfoil.metrics.ranks import Positives
    >>> i2t = Search(np.array([0]), Positives.of([[0, 1]]))
    >>> t2i = Search(np.array([0, 1]), Positives.of([[0], [0]]))
    >>> about(Gallery(("a", "b", "c"), i2t=i2t, t2i=t2i, owners=np.array([0, 0]), n_images=1))
    '1 image looks for 2 right captions among all 2; 2 captions look for 1 right image among all 1.'
    """
    parts = 1 if questions.image_parts is None else len(set(questions.image_parts.tolist()))
    said = []
    for name, search, size in (
        ("i2t", questions.i2t, questions.n_captions),
        ("t2i", questions.t2i, questions.n_images),
    ):
        if len(search):
            asks, asked = KINDS[name]
            verb, whose = ("looks", "its") if len(search) == 1 else ("look", "their")
            r = right_answers(search)
            many = f"{r.min():,} to {r.max():,}" if r.min() < r.max() else f"{r[0]:,}"
            right = f"{many} right {asked}{'' if many == '1' else 's'}"
            among = f"all {size:,}" if parts == 1 else f"the {size // parts:,} of {whose} part"
            said.append(f"{_many(len(search), asks)} {verb} for {right} among {among}")
    text = f"{'; '.join(said)}."
    if parts > 1:
        text += f" Measures are means over {parts} parts of the gallery."
    return text


def ties(comparison: Comparison) -> str:
    """Where equal scores stand, by the runs' tie policy."""
    return _POLICIES.get(str(comparison.runs[0].result.ties.get("policy")), "")


def notes(comparison: Comparison) -> list[Note]:
    """Ties, right answers that cannot be found, cut rankings, chance and intervals; warnings first."""
    found = [
        *_ties(comparison),
        *_outside(comparison),
        *_cut(comparison),
        *below_chance(comparison),
        *_undefined(comparison),
        *intervals(comparison, _INTERVALS),
    ]
    return sorted(found, key=lambda note: note.kind != "warning")


def _ties(comparison: Comparison) -> list[Note]:
    """By how much the order of tied items moves a main measure, or that it hardly does."""
    found, most = [], 0
    scored = [run for run in comparison.runs if run.result.ties.get("questions") is not None]
    for run in scored:
        count = int(run.result.ties["questions"])
        most = max(most, count)
        by_policy = run.result.ties.get("measures", {})
        moved = {
            name: [by[name] for by in by_policy.values() if name in by] for name in main_measures(comparison)
        }
        name = max(moved, key=lambda name: _span(moved[name]))
        if _span(moved[name]) < NOTABLE:
            continue
        low, high = percent(min(moved[name])), percent(max(moved[name]))
        found.append(
            Note(
                f"{run.name} ties a right and a wrong item in {count:,} of {len(run.benchmark):,} queries: "
                f"by the order of the tied, {measure_label(name)} is anything from {low} to {high}.",
                "warning",
            )
        )
    if scored and not found:
        if not most:
            return [Note("No scorer ties a right and a wrong item.")]
        rest = "the order of the tied moves no main measure by a point"
        many = f"{most:,} {'query' if most == 1 else 'queries'}"
        return [Note(f"Ties of right and wrong items (in {many} at most) hardly matter: {rest}.")]
    return found


def _outside(comparison: Comparison) -> list[Note]:
    """Right answers that the gallery does not hold: they count and cannot be found."""
    gallery = _provenance(comparison.runs[0])
    said = []
    for name, (asks, asked) in KINDS.items():
        facts = gallery.get(name, {})
        if outside := int(facts.get("outside_gallery", 0)):
            said.append(f"{outside:,} of {int(facts['positives']):,} right {asked}s of {asks} queries")
    if not said:
        return []
    return [
        Note(
            f"Outside the gallery are {listed(said)}: they count as right answers and can never be found.",
            "warning",
        )
    ]


def _undefined(comparison: Comparison) -> list[Note]:
    gallery = _provenance(comparison.runs[0])
    said = [
        f"{int(facts['undefined']):,} of {_many(int(facts['queries']), asks)}"
        for name, (asks, _) in KINDS.items()
        if (facts := gallery.get(name, {})).get("undefined")
    ]
    return [Note(f"Without a right answer, and so left out: {listed(said)}.")] if said else []


def _cut(comparison: Comparison) -> list[Note]:
    """Which runs were given as rankings that end, and what they therefore cannot say."""
    found = []
    for run in comparison.runs:
        cut = _provenance(run).get("cut")
        if not cut:
            continue
        depths = [
            f"{int(cut[name]):,} {asked}s" for name, (_, asked) in KINDS.items() if cut.get(name) is not None
        ]
        text = f"The rankings of {run.name} end after {listed(depths)} or later"
        missing = _named(_provenance(run).get("unsupported", {}))
        if missing:
            text += f", too early for {listed(missing)}"
        found.append(Note(f"{text}; what stands behind the end is not known.", "warning"))
    return found


def _named(measures: Collection[str]) -> list[str]:
    """Measures in print, those of both directions once, and no mean beside a direction.

    >>> _named(["i2t_ndcg", "t2i_ndcg", "mean_ndcg", "t2i_mrr", "mean_mrr"])
    ['nDCG', 'T2I MRR']
    """
    sides: dict[str, list[str]] = {}
    for name in measures:
        side, base = split_direction(name)
        sides.setdefault(base, []).append(side)
    named = []
    for base, of in sides.items():
        if {"i2t", "t2i"} <= set(of):
            named.append(base)
        else:
            named += [f"{side}_{base}" for side in of if side != "mean" or len(of) == 1]
    return [measure_label(name) for name in named]


def _provenance(run: Run) -> Mapping[str, Any]:
    return run.result.provenance.get("gallery", {})


def _span(values: list[float]) -> float:
    return max(values) - min(values) if values else 0.0


def _many(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'' if n == 1 else 's'}"
