"""Figures of retrieval: recall against how far one looks, and how many right answers there are.

Curves come from the ranks of the right answers, so they need no list of any length; for rankings that were
given cut they end where the ranking does.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import cycle, pairwise
from math import ceil
from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.errors import InputError
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.gallery_values import chance, mean, ranks
from counterfoil.evaluation.result import Run
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranking import recall_at_k
from counterfoil.metrics.ranks import Ranks
from counterfoil.metrics.ties import Ties
from counterfoil.report.comparison_tables import ranking
from counterfoil.report.drawing import INK, MUTED, RIGHT, WRONG, extent, name_ends, panels, plain, short

#: How far down the curves look.
KS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
#: More scorers than this, and only the best so many are named; the others are thin and grey.
NAMED = 8
#: The name of the curve of a random order.
CHANCE = "chance"

_SIDES = ("i2t", "t2i")
_TITLES = {"i2t": "Images look for captions", "t2i": "Captions look for images"}
_DASHES: tuple[tuple[str, Any], ...] = tuple(
    (colour, dash) for dash in ("-", (0, (5, 1.5)), (0, (1.2, 1.2))) for colour in (RIGHT, INK, MUTED)
)


@dataclass(frozen=True)
class Curve:
    """R@K of one scorer in one direction, in [0, 1], at some K."""

    name: str
    ks: tuple[int, ...]
    values: Float[ndarray, "ks"]


def curves(comparison: Comparison) -> dict[str, list[Curve]]:
    """By direction, the curve of every scorer whose ranks are known, best first, and last that of chance.

    None where right is what a rule says: then ranks were never taken. The tie policy is the runs' own.
    """
    curves_by_side: dict[str, list[Curve]] = {side: [] for side in _SIDES}
    questions = comparison.runs[0].benchmark.gallery
    if any(isinstance(search.positives, Plausible) for search in (questions.i2t, questions.t2i)):
        return {}
    by_name = {run.name: run for run in comparison.runs}
    for name in ranking(comparison):
        run = by_name[name]
        if not run.answers.has_rankings:
            continue
        for side, of_side in zip(curves_by_side, ranks(run.benchmark, run.answers.rankings), strict=True):
            curve = _curve(run, of_side, side)
            if curve.ks:
                curves_by_side[side].append(curve)
    for at, (side, of_scorers) in enumerate(curves_by_side.items()):
        if of_scorers:
            ks = _reach(int(questions.sizes[at].max()))
            random = chance(comparison.runs[0].benchmark, [f"{side}_recall_at_{k}" for k in ks])
            of_scorers.append(Curve(CHANCE, tuple(ks), np.asarray(list(random.values()))))
    return {side: of_scorers for side, of_scorers in curves_by_side.items() if of_scorers}


def recall_curves(curves: Mapping[str, Sequence[Curve]], *, columns: int = 2) -> Any:
    """R@K against K, a panel per direction, a line per scorer named at its end: what `curves` found."""
    columns = min(columns, len(curves))
    names = {short(curve.name, 24) for of in curves.values() for curve in [*of[:NAMED], of[-1]]}
    label = max(extent(name, 8) for name in names) + 0.28
    # As wide as a page on a wide screen, or as a telephone where panels stand under one another.
    across = (10.4 - 0.5 - columns * label) / columns - 0.2 if columns > 1 else 3.75 - 0.45 - label
    margin: dict[str, Any] = {
        "left": 0.45,
        "right": label,
        "bottom": 0.48,
        "top": 0.28,
        "gap": (label + 0.4, 0.85),
    }
    with panels((max(across, 1.2), 2.9), len(curves), columns, **margin) as (figure, grid):
        for axes, (side, of) in zip(grid, curves.items(), strict=True):
            _draw(axes, of, _TITLES[side])
    return figure


def right_answers(search: RetrievalDirection) -> Int[ndarray, "queries"]:
    """R of every query: how many right answers it has, by its list or by the rule's first threshold."""
    positives = search.positives
    if not isinstance(positives, Plausible):
        return positives.counts
    # Many items share a code, so distances are taken between the few different ones.
    queries, of_query = np.unique(positives.query_codes, axis=0, return_inverse=True)
    items, size = np.unique(positives.item_codes, axis=0, return_counts=True)
    near = Plausible(queries, items).distances(slice(None)) <= positives.thresholds[0]
    return (near @ size).astype(np.int64)[of_query.reshape(-1)]


def varied(questions: Gallery) -> bool:
    """Whether queries of one direction differ in how many right answers they have."""
    return any(np.ptp(right_answers(search)) for search in (questions.i2t, questions.t2i) if len(search))


def multiplicity(questions: Gallery, *, columns: int = 2) -> Any:
    """How many right answers queries have, a panel per direction: the share of queries by R."""
    sides = [
        (side, right_answers(search))
        for side, search in (("i2t", questions.i2t), ("t2i", questions.t2i))
        if len(search)
    ]
    margin: dict[str, Any] = {"left": 0.15, "right": 0.15, "bottom": 0.45, "top": 0.42, "gap": (0.4, 0.95)}
    with panels((3.4, 1.15), len(sides), columns, **margin) as (figure, grid):
        for axes, (side, counts) in zip(grid, sides, strict=True):
            labels, share = binned(counts)
            axes.bar(range(len(labels)), 100 * share, width=0.82, color=RIGHT, alpha=0.75, lw=0)
            for x, value in enumerate(share.tolist()):
                text = "" if not value else f"{100 * value:.0f}" if value >= 0.005 else "<1"
                axes.text(x, 100 * value + 1.5, text, ha="center", va="bottom", fontsize=7.5, color=INK)
            axes.set_xticks(range(len(labels)), labels)
            axes.set_xlabel(f"right answers of a query; {counts.mean():.1f} on average")
            axes.set_ylim(0, 125 * float(share.max()))
            axes.set_yticks([])
            axes.tick_params(length=0)
            plain(axes, f"{_TITLES[side]}: % of {len(counts):,}", left=False)
    return figure


def binned(counts: Int[ndarray, "queries"]) -> tuple[list[str], Float[ndarray, "bins"]]:
    """The share of queries by number of right answers: one by one, or by doubling where they differ much.

    >>> labels, share = binned(np.array([1, 1, 5, 40]))
    >>> labels, share.tolist()
    (['1', '2', '3–4', '5–8', '9–16', '17–32', '33–64'], [0.5, 0.0, 0.0, 0.25, 0.0, 0.0, 0.25])
    """
    low, high = int(counts.min()), int(counts.max())
    if high - low <= 12:
        edges = np.arange(low, high + 2)
    else:
        doubling = 2 ** np.arange(ceil(np.log2(high)) + 1)
        edges = np.concatenate([[0, 1], doubling + 1])
        edges = edges[np.searchsorted(edges, low, side="right") - 1 :]
    number, _ = np.histogram(counts, bins=[*edges[:-1] - 0.5, edges[-1] - 0.5])
    labels = [f"{a:,}" if b == a + 1 else f"{a:,}–{b - 1:,}" for a, b in pairwise(edges.tolist())]
    return labels, number / len(counts)


def _curve(run: Run, of_side: Ranks, side: str) -> Curve:
    benchmark, ties = run.benchmark, Ties(run.result.ties["policy"])
    here = benchmark.gallery.directions == _SIDES.index(side)
    # Whether any right answer is among the first K is decided by the best ones alone.
    best = of_side.before == 0
    entries = ("query", "wrong", "tied", "before", "gains")
    first = replace(of_side, **{name: getattr(of_side, name)[best] for name in entries})
    known, values = [], []
    for k in _reach(of_side.gallery):
        try:
            per_query = recall_at_k(first, k, ties=ties)
        except InputError:
            # The ranking was given cut, and ends before.
            break
        table = np.full(len(here), np.nan)
        table[here] = per_query
        known.append(k)
        values.append(mean(benchmark, table))
    whole = bool(np.isfinite(values).all())
    return Curve(run.name, tuple(known) if whole else (), np.asarray(values) if whole else np.empty(0))


def _reach(gallery: int) -> list[int]:
    return [k for k in KS if k <= gallery]


def _draw(axes: Any, curves: Sequence[Curve], title: str) -> None:
    """The lines of one panel; the weakest first, so that the best lie on top."""
    most = max(max(curve.ks) for curve in curves)
    axes.set_xscale("log")
    axes.set_xlim(1, max(most, 2))
    axes.set_ylim(0, 101)
    ticks = [k for k in (1, 2, 5, 10, 20, 50, 100) if k <= most]
    axes.set_xticks(ticks, [str(k) for k in ticks])
    axes.set_xticks([], minor=True)
    axes.set_xlabel("K: how many of the first items one looks at")
    axes.set_ylabel("R@K (%)", labelpad=2)
    plain(axes, title, grid="both")
    scorers = [curve for curve in curves if curve.name != CHANCE]
    named = list(zip(scorers[:NAMED], cycle(_DASHES), strict=False))
    named += [(curve, (WRONG, (0, (4, 3)))) for curve in curves if curve.name == CHANCE]
    for curve in scorers[NAMED:]:
        axes.plot(curve.ks, 100 * curve.values, color=MUTED, lw=0.6, alpha=0.6)
    for curve, (colour, dash) in reversed(named):
        thin = curve.name == CHANCE
        axes.plot(curve.ks, 100 * curve.values, color=colour, ls=dash, lw=1 if thin else 1.6, clip_on=False)
    ends = ((curve.ks[-1], 100 * float(curve.values[-1]), curve.name, colour) for curve, (colour, _) in named)
    name_ends(axes, [(x, y, short(name, 24), colour) for x, y, name, colour in ends])
