"""Reports on galleries. Curves come from the ranks of right answers, and end where a cut ranking does."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.judgements import ROLES
from counterfoil.errors import InputError
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import per_item
from counterfoil.evaluation.forms.gallery import chance, mean
from counterfoil.evaluation.result import Run
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.measures import DIRECTIONS, split_direction
from counterfoil.metrics.ties import Ties
from counterfoil.report import comparison_tables, figures
from counterfoil.report.comparison_tables import main_measures, ranking
from counterfoil.report.figure_style import INK, MUTED, RIGHT, WRONG, extent, name_ends, panels, plain
from counterfoil.report.forms import READING, WORST, FormReport, NoteWriters, dots, first_items
from counterfoil.report.forms.first_items import right_answers
from counterfoil.report.html import Drawing, Section, drawn
from counterfoil.report.labels import amount, measure_label, measure_meaning, short
from counterfoil.report.notes import below_chance, of_galleries, tied
from counterfoil.report.tables import Column, Table

_TITLES = {"i2t": "Images look for captions", "t2i": "Captions look for images"}
#: How far down the curves look.
KS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
#: More scorers than this, and only the best so many are named; the others are thin and grey.
NAMED = 8
#: The name of the curve of a random order.
CHANCE = "chance"
_DASHES: tuple[tuple[str, Any], ...] = tuple(
    (colour, dash) for dash in ("-", (0, (5, 1.5)), (0, (1.2, 1.2))) for colour in (RIGHT, INK, MUTED)
)


class GalleryReport(FormReport):
    """Galleries."""

    key = "galleries"
    place = "queries"
    script = "gallery.js"
    style = "gallery.css"
    KINDS: ClassVar[tuple[str, ...]] = first_items.KINDS
    kinds = staticmethod(first_items.kinds)
    questions_data = staticmethod(first_items.queries_data)
    noting: ClassVar[NoteWriters] = (tied, of_galleries, below_chance)

    def about(self, benchmark: Benchmark) -> str:
        questions = benchmark.gallery
        parts = 1 if questions.image_parts is None else len(set(questions.image_parts.tolist()))
        sentences = []
        for (query, item), side in zip(ROLES.values(), questions.sides, strict=True):
            search, size = side.search, side.n_items
            if len(search):
                verb, whose = ("looks", "its") if len(search) == 1 else ("look", "their")
                r = right_answers(search)
                many = f"{r.min():,} to {r.max():,}" if r.min() < r.max() else f"{r[0]:,}"
                right = f"{many} right {item}{'' if many == '1' else 's'}"
                among = f"all {size:,}" if parts == 1 else f"the {size // parts:,} of {whose} part"
                sentences.append(f"{amount(len(search), query)} {verb} for {right} among {among}")
        text = f"{'; '.join(sentences)}."
        if parts > 1:
            text += f" Measures are means over {parts} parts of the gallery."
        return text

    def failures(self, run: Run) -> tuple[list[int], dict[int, str]]:
        """Queries whose first right answer comes latest; those of unknown rank come first."""
        if not run.answers.has_rankings:
            return [], {}
        place = first_items.first_places(run)[:, 0]
        late = np.where(run.benchmark.gallery.defined, np.where(place > 0, place, np.iinfo(np.int64).max), 0)
        order = [q for q in np.argsort(-late, kind="stable").tolist() if late[q] > 1]
        nothing = "no right answer in the ranking"
        return order, {
            q: f"the first right answer is number {place[q]:,}" if place[q] else nothing
            for q in order[:WORST]
        }

    def overview(self, comparison: Comparison) -> Table:
        return comparison_tables.overview(comparison, measures=_shown(comparison))

    def everything(self, comparison: Comparison) -> Table | None:
        more = set(comparison.measures) > set(_shown(comparison))
        return comparison_tables.overview(comparison) if more else None

    def meanings(self, comparison: Comparison) -> list[tuple[Column, str]]:
        bases = _bases(comparison)
        return [
            (Column(measure_label(base)), meaning) for base in bases if (meaning := measure_meaning(base))
        ]

    def measures(self, comparison: Comparison, anchor: str) -> list[Drawing]:
        return [_dots(comparison, anchor, base, READING) for base in _main_bases(comparison)]

    def finer(self, comparison: Comparison, anchor: str) -> list[Drawing]:
        main = _main_bases(comparison)
        return [_dots(comparison, anchor, base, "") for base in _bases(comparison) if base not in main]

    def sections(self, comparison: Comparison, anchor: str) -> list[Section]:
        questions = comparison.runs[0].benchmark.gallery
        sections = []
        if by_side := curves(comparison):
            caption = "The share of queries with a right answer among the first K, and what chance gives."
            if len(comparison.runs) > NAMED:
                caption += f" The best {NAMED} scorers are named; the others are thin and grey."
            panels_of = (recall_curves(side, of) for side, of in by_side.items())
            figure = drawn("R@K against K", caption, f"{anchor}-curves", *panels_of)
            sections.append(Section("curves", "How far down to look", drawings=(figure,)))
        # Unless all queries of a direction have as many.
        if any(np.ptp(right_answers(side.search)) for side in questions.sides if len(side.search)):
            counts = [
                (_TITLES[side.name], Counter(right_answers(side.search).tolist()), None)
                for side in questions.sides
                if len(side.search)
            ]
            title, bars = "How many right answers queries have", figures.multiplicity(counts)
            figure = drawn(title, "", f"{anchor}-multiplicity", bars)
            sections.append(Section("multiplicity", "How many answers are right", drawings=(figure,)))
        names = comparison_tables.groupings(questions)
        if groups := tuple(comparison_tables.by_group(comparison, grouping=name) for name in names):
            sections.append(Section("groups", "By group", tables=groups))
        return sections


def _shown(comparison: Comparison) -> Sequence[str]:
    return comparison_tables.headline(comparison) or main_measures(comparison)


def _bases(comparison: Comparison) -> list[str]:
    """The measures without their directions, those that are shown first."""
    names = [*comparison_tables.headline(comparison), *comparison.measures]
    return list(dict.fromkeys(split_direction(name)[1] for name in names))


def _main_bases(comparison: Comparison) -> list[str]:
    main = {split_direction(name)[1] for name in main_measures(comparison)}
    return [base for base in _bases(comparison) if base in main]


def _dots(comparison: Comparison, anchor: str, base: str, caption: str) -> Drawing:
    shown = [measure for side in DIRECTIONS if (measure := f"{side}_{base}") in comparison.measures]
    return dots(comparison, f"{anchor}-{base}", measure_label(base), caption, shown)


@dataclass(frozen=True)
class Curve:
    """R@K of one scorer in one direction, in [0, 1], at some K."""

    name: str
    ks: tuple[int, ...]
    values: Float[ndarray, "ks"]


def curves(comparison: Comparison) -> dict[str, list[Curve]]:
    """By direction the recall curve of every scorer with ranks, best first, then chance; none by rule."""
    benchmark = comparison.runs[0].benchmark
    questions = benchmark.gallery
    if any(isinstance(search.positives, Plausible) for search in (questions.i2t, questions.t2i)):
        return {}
    by_name = {run.name: run for run in comparison.runs}
    ranked = [run for name in ranking(comparison) if (run := by_name[name]).answers.has_rankings]
    curves_by_side: dict[str, list[Curve]] = {}
    for side in questions.sides:
        names = {k: f"{side.name}_recall_at_{k}" for k in KS if k <= int(side.sizes.max(initial=0))}
        of_scorers = [_curve(run, names) for run in ranked]
        if of_scorers := [curve for curve in of_scorers if curve.ks and np.isfinite(curve.values).all()]:
            random = np.asarray(list(chance(benchmark, list(names.values())).values()))
            curves_by_side[side.name] = [*of_scorers, Curve(CHANCE, tuple(names), random)]
    return curves_by_side


def _curve(run: Run, names: Mapping[int, str]) -> Curve:
    ties, values = Ties(run.result.ties["policy"]), []
    for name in names.values():
        try:
            items = per_item(run.benchmark, run.answers.rankings, ties=ties, measures=[name])
        except InputError:
            # The ranking was given cut, and ends before.
            break
        values.append(mean(run.benchmark, items[name]))
    return Curve(run.name, tuple(names)[: len(values)], np.asarray(values))


#: The width of a panel of curves, in inches.
_WIDTH = 3.9


def recall_curves(side: str, curves: Sequence[Curve]) -> Any:
    """R@K against K in one direction, a line per scorer named at its end: what `curves` found."""
    names = {short(curve.name, 24) for curve in [*curves[:NAMED], curves[-1]]}
    label = max(extent(name, 8) for name in names) + 0.28
    panel = max(_WIDTH - 0.45 - label, 1.2), 2.6
    with panels(panel, left=0.45, right=label, bottom=0.48, top=0.28) as (figure, (axes,)):
        most = max(max(curve.ks) for curve in curves)
        axes.set(xscale="log", xlim=(1, max(most, 2)), ylim=(0, 101))
        ticks = [k for k in (1, 2, 5, 10, 20, 50, 100) if k <= most]
        axes.set_xticks(ticks, [str(k) for k in ticks])
        axes.set_xticks([], minor=True)
        axes.set_xlabel("K: how many of the first items one looks at")
        axes.set_ylabel("R@K (%)", labelpad=2)
        plain(axes, _TITLES[side], grid="both")
        scorers = [curve for curve in curves if curve.name != CHANCE]
        named = list(zip(scorers[:NAMED], cycle(_DASHES), strict=False))
        named += [(curve, (WRONG, (0, (4, 3)))) for curve in curves if curve.name == CHANCE]
        for curve in scorers[NAMED:]:
            axes.plot(curve.ks, 100 * curve.values, color=MUTED, lw=0.6, alpha=0.6)
        for curve, (colour, dash) in reversed(named):
            look = {"color": colour, "ls": dash, "lw": 1 if curve.name == CHANCE else 1.6}
            axes.plot(curve.ks, 100 * curve.values, clip_on=False, **look)
        ends = []
        for curve, (colour, _) in named:
            ends.append((curve.ks[-1], 100 * float(curve.values[-1]), short(curve.name, 24), colour))
        name_ends(axes, ends)
    return figure
