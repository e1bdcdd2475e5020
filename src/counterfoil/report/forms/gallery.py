"""Reports on galleries, and the first items that models find, for a sample of the queries."""

from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import cycle
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Bool, Float, Int
from numpy import ndarray

from counterfoil.benchmarks.answers import DirectionRanks
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import RetrievalDirection
from counterfoil.benchmarks.judgements import ROLES
from counterfoil.errors import InputError
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import per_item
from counterfoil.evaluation.forms.gallery import chance, directions_of, mean
from counterfoil.evaluation.result import Run
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.measures import DIRECTIONS, split_direction
from counterfoil.metrics.ties import Ties
from counterfoil.report import comparison_tables, figures
from counterfoil.report.comparison_tables import main_measures, ranking
from counterfoil.report.figure_style import INK, MUTED, RIGHT, WRONG, extent, name_ends, panels, plain
from counterfoil.report.forms import READING, WORST, BrowserSource, FormReport, NoteWriters, dots
from counterfoil.report.html import Drawing, Section, drawn
from counterfoil.report.results import below_chance, of_galleries, tied
from counterfoil.report.tables import Column, Table, amount, measure_label, measure_meaning, short
from counterfoil.report.thumbnails import round_robin

#: How many of a model's first items a query shows.
FIRST = 5
#: An item's relevance to a query, by the digit that encodes it.
MARKS = ("wrong", "right", "partly right")
#: The most queries that are shown, and the most answers of all models together.
MOST_QUERIES, MOST_ANSWERS = 2_000, 12_000
_TITLES = {"i2t": "Images look for captions", "t2i": "Captions look for images"}
#: How far down the curves look.
KS = (1, 2, 3, 4, 5, 7, 10, 15, 20, 30, 50, 70, 100)
#: More models than this, and only the best of them are named; the others are thin and grey.
NAMED = 8
#: The name of the curve of a random order.
CHANCE = "chance"
_DASHES: tuple[tuple[str, Any], ...] = tuple(
    (colour, dash) for dash in ("-", (0, (5, 1.5)), (0, (1.2, 1.2))) for colour in (RIGHT, INK, MUTED)
)


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


def sample(comparison: Comparison, *, seed: int = 0) -> Int[ndarray, "chosen"]:
    """Rows of the queries on a page, ascending: all with right answers, or equally many of each direction."""
    questions = comparison.runs[0].benchmark.gallery
    room = max(2, min(MOST_QUERIES, MOST_ANSWERS // len(comparison.runs)))
    sides = [np.flatnonzero(questions.defined & (questions.directions == side)) for side in (0, 1)]
    fewer = min(len(rows) for rows in sides)
    per_direction = max(room // 2, room - fewer)
    rng = np.random.default_rng(seed)
    chosen = [
        rows if len(rows) <= per_direction else np.sort(rng.choice(rows, per_direction, replace=False))
        for rows in sides
    ]
    return np.concatenate(chosen).astype(np.int64)


def first_places(run: Run) -> Int[ndarray, "queries 2"]:
    """What `first_right` says of all queries of a run."""
    both = directions_of(run.benchmark.gallery, run.answers.rankings)
    return np.concatenate([first_right(side.search, placed) for side, placed in both])


def kinds(run: Run) -> Int[ndarray, "queries"]:
    """Positions in `GalleryReport.KINDS` of all queries, by the run's tie policy."""
    policy = Ties(run.result.ties["policy"])
    low, high = first_places(run).T
    # Half of a tie is less than a right answer, so there too the last place counts.
    place = np.where(low > 0, low if policy == Ties.OPTIMISTIC else high, -1)
    place = np.where(place > 0, place, np.iinfo(np.int64).max)
    return np.where(place == 1, 0, np.where(place <= FIRST, 1, 2))


def marks(search: RetrievalDirection, items: Int[ndarray, "queries width"]) -> Int[ndarray, "queries width"]:
    """Positions in `MARKS` of some items of every query; items of -1 are none, and count as wrong."""
    positives = search.positives
    width = items.shape[1]
    if isinstance(positives, Plausible):
        codes, of_items = positives.query_codes[:, None], positives.item_codes[items]
        near = (codes != of_items).sum(axis=2) <= positives.thresholds[0]
        return (near & (items >= 0)).astype(np.int64)
    if not len(positives.items):
        return np.zeros(items.shape, dtype=np.int64)
    size = int(max(items.max(initial=0), positives.items.max())) + 2
    positive_codes = positives.queries * size + positives.items
    order = np.argsort(positive_codes)
    wanted = np.repeat(np.arange(len(items)), width) * size + items.reshape(-1)
    positions = np.minimum(np.searchsorted(positive_codes[order], wanted), len(positive_codes) - 1)
    gains = positives.gains[order][positions]
    hit = (positive_codes[order][positions] == wanted) & (items.reshape(-1) >= 0)
    return np.where(hit, np.where(gains >= 1, 1, 2), 0).reshape(items.shape)


def missed(
    search: RetrievalDirection, placed: DirectionRanks
) -> tuple[Int[ndarray, "queries 3"], Bool[ndarray, "queries"]]:
    """Of each query the first right answer not shown (item, first and last place), and whether there is one.

    Places are 0 where the ranking ends before it; the item is -1 where the gallery lacks it.
    """
    positives = search.positives
    positions = np.zeros((len(search), 3), dtype=np.int64)
    if isinstance(positives, Plausible):
        return positions, np.zeros(len(search), dtype=bool)
    top = placed.top[:, :FIRST]
    shown = (positives.items[:, None] == top[positives.queries]).any(axis=1) & (positives.items >= 0)
    left = np.flatnonzero(~shown)
    # Found ones by place, then those the ranking does not reach, then those outside the gallery.
    depth = np.where(placed.above[left] >= 0, placed.above[left], np.iinfo(np.int64).max - 1)
    depth = np.where(positives.items[left] < 0, np.iinfo(np.int64).max, depth)
    order = left[np.lexsort((depth, positives.queries[left]))]
    queries, first = np.unique(positives.queries[order], return_index=True)
    pairs = order[first]
    reached = placed.above[pairs] >= 0
    positions[queries, 0] = positives.items[pairs]
    positions[queries, 1] = np.where(reached, placed.above[pairs] + 1, 0)
    positions[queries, 2] = np.where(reached, placed.above[pairs] + placed.level[pairs], 0)
    there = np.zeros(len(search), dtype=bool)
    there[queries] = True
    return positions, there


def first_right(search: RetrievalDirection, placed: DirectionRanks) -> Int[ndarray, "queries 2"]:
    """The first and last place of a query's first right answer: 0 where unknown, last -1 where open."""
    positives = search.positives
    positions = np.zeros((len(search), 2), dtype=np.int64)
    if isinstance(positives, Plausible):
        items = placed.top.astype(np.int64)
        if not items.shape[1]:
            return positions
        right = marks(search, items) > 0
        # Where only an order is known nothing is tied.
        by_place = -np.arange(items.shape[1], dtype=np.float32)
        scores = np.where(np.isnan(placed.top_scores), by_place, placed.top_scores)
        best = np.take_along_axis(scores, right.argmax(axis=1)[:, None], axis=1)
        wrong = ~right & (items >= 0)
        low, high = ((wrong & (scores > best)).sum(axis=1), (wrong & (scores >= best)).sum(axis=1))
        open_ended = (scores[:, -1:] == best)[:, 0] & (items.shape[1] < placed.depth)
        positions[:, 0], positions[:, 1] = low + 1, np.where(open_ended, -1, high + 1)
        positions[~right.any(axis=1)] = 0
        return positions
    reached = np.flatnonzero(placed.above >= 0)
    query, above = positives.queries[reached], placed.above[reached]
    order = np.lexsort((above, query))
    queries, first = np.unique(query[order], return_index=True)
    best = reached[order[first]]
    # Of the items level with it as many are right as have as many above them.
    least = np.full(len(search), -1)
    least[queries] = placed.above[best]
    right = np.bincount(query[above == least[query]], minlength=len(search))[queries]
    positions[queries, 0] = placed.above[best] + 1
    positions[queries, 1] = placed.above[best] + placed.level[best] - right + 1
    return positions


def queries_data(source: BrowserSource) -> dict[str, Any]:
    """A sample of a gallery's queries with what every model puts first, pictures as far as there is room."""
    comparison, benchmark = source.comparison, source.benchmark
    questions = comparison.runs[0].benchmark.gallery
    rows = sample(comparison)
    by_image = rows < len(questions.i2t)
    query = np.concatenate([questions.i2t.queries, questions.t2i.queries])[rows]
    answers = [_answers(run, rows) for run in comparison.runs]
    # (queries, items) of all models: what a caption query shows are images, and the other way round.
    items = np.concatenate([np.column_stack([a["top"], a["missed"][:, 0]]) for a in answers], axis=1)
    captions, images = (
        np.unique(np.concatenate([items[of].reshape(-1), query[~of]])) for of in (by_image, ~by_image)
    )
    captions, images = captions[captions >= 0], images[images >= 0]

    def numbers(positions: ndarray, *, captions_first: bool = True) -> list[Any]:
        """Where each position stands among those in the page; -1 stays -1."""
        first, second = (captions, images) if captions_first else (images, captions)
        parts = zip((positions[by_image], positions[~by_image]), (first, second), strict=True)
        indices = (np.where(part < 0, -1, np.searchsorted(used, part)) for part, used in parts)
        return [number for part in indices for number in part.tolist()]

    needed = [
        [q] if of_image else [p for p in dict.fromkeys(row) if p >= 0]
        for of_image, q, row in zip(by_image, query.tolist(), items.tolist(), strict=True)
    ]
    shown: dict[int, int] = {}
    if source.pictures:
        kinds = (a["kinds"].tolist() for a in answers)
        order = round_robin(list(zip(by_image.tolist(), *kinds, strict=True)))
        shown = source.thumbnails.add(benchmark.images, [needed[i] for i in order])
    pictured = [all(p in shown for p in positions) for positions in needed]
    by_rule = any(isinstance(search.positives, Plausible) for search in (questions.i2t, questions.t2i))
    runs = zip(comparison.runs, answers, strict=True)
    return {
        "ids": [questions.ids[row] for row in rows.tolist()],
        "of": int(questions.defined.sum()),
        "split": int(by_image.sum()),
        "marks": list(MARKS),
        "captions": source.named_captions(benchmark.captions[p] for p in captions.tolist()),
        "images": [[benchmark.images[p].id, shown.get(p, -1)] for p in images.tolist()],
        "query": numbers(query, captions_first=False),
        "right": np.concatenate([right_answers(s) for s in (questions.i2t, questions.t2i)])[rows].tolist(),
        "pictures": "".join("1" if there else "0" for there in pictured),
        "pictured": sum(pictured),
        "models": [{"name": run.name, **_model(a, numbers, by_rule=by_rule)} for run, a in runs],
    }


def _model(
    answers: dict[str, ndarray], numbers: Callable[[ndarray], list[Any]], *, by_rule: bool
) -> dict[str, Any]:
    # Six digits of each, for showing; None where only an order is known.
    scores = [[float(f"{v:.6g}") for v in row if np.isfinite(v)] for row in answers["scores"].tolist()]
    item, *positions = answers["missed"].T
    missed = zip(numbers(item), *(place.tolist() for place in positions), strict=True)
    return {
        "kinds": "".join(map(str, answers["kinds"].tolist())),
        "top": numbers(answers["top"]),
        "marks": ["".join(map(str, row)) for row in answers["marks"].tolist()],
        "scores": scores if np.isfinite(answers["scores"]).any() else None,
        # Per query the item missed and its places, 0 where none is; None where not counted.
        "missed": None
        if by_rule
        else [[*row] if there else 0 for row, there in zip(missed, answers["misses"].tolist(), strict=True)],
        "first": answers["first"].tolist(),
    }


def _answers(run: Run, rows: Int[ndarray, "chosen"]) -> dict[str, ndarray]:
    of_sides: dict[str, list[ndarray]] = {}
    for side, placed in directions_of(run.benchmark.gallery, run.answers.rankings):
        search = side.search
        top, scores = placed.top[:, :FIRST].astype(np.int64), placed.top_scores[:, :FIRST].astype(np.float64)
        room = ((0, 0), (0, FIRST - top.shape[1]))
        top = np.pad(top, room, constant_values=-1)
        positions, there = missed(search, placed)
        parts = {
            "top": top,
            "scores": np.pad(scores, room, constant_values=np.nan),
            "marks": marks(search, top),
            "first": first_right(search, placed),
            "missed": positions,
            "misses": there,
        }
        for name, values in parts.items():
            of_sides.setdefault(name, []).append(values)
    joined = {name: np.concatenate(both)[rows] for name, both in of_sides.items()}
    return {**joined, "kinds": kinds(run)[rows]}


class GalleryReport(FormReport):
    """Galleries."""

    key = "galleries"
    place = "queries"
    script = "gallery.js"
    style = "gallery.css"
    KINDS: ClassVar[tuple[str, ...]] = (
        "a right answer first",
        f"first right answer at 2 to {FIRST}",
        f"none among the first {FIRST}",
    )
    kinds = staticmethod(kinds)
    questions_data = staticmethod(queries_data)
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
        place = first_places(run)[:, 0]
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
                caption += f" The best {NAMED} models are named; the others are thin and grey."
            panels_of = (recall_curves(side, of) for side, of in by_side.items())
            figure = drawn("R@K against K", caption, f"{anchor}-curves", *panels_of)
            sections.append(Section("curves", "How far down to look", drawings=(figure,)))
        # Unless all queries of a direction have as many.
        if any(np.ptp(right_answers(side.search)) for side in questions.sides if len(side.search)):
            counts = [
                (_TITLES[side.name], Counter(right_answers(side.search).tolist()))
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
    """R@K of one model in one direction, in [0, 1], at some K."""

    name: str
    ks: tuple[int, ...]
    values: Float[ndarray, "ks"]


def curves(comparison: Comparison) -> dict[str, list[Curve]]:
    """By direction the recall curve of every model with ranks, best first, then chance; none by rule."""
    benchmark = comparison.runs[0].benchmark
    questions = benchmark.gallery
    if any(isinstance(search.positives, Plausible) for search in (questions.i2t, questions.t2i)):
        return {}
    by_name = {run.name: run for run in comparison.runs}
    ranked = [run for name in ranking(comparison) if (run := by_name[name]).answers.has_rankings]
    curves_by_side: dict[str, list[Curve]] = {}
    for side in questions.sides:
        names = {k: f"{side.name}_recall_at_{k}" for k in KS if k <= int(side.sizes.max(initial=0))}
        of_models = []
        for run in ranked:
            ties, values = Ties(run.result.ties["policy"]), []
            # Where a ranking was given cut, it ends before.
            with suppress(InputError):
                for name in names.values():
                    items = per_item(run.benchmark, run.answers.rankings, ties=ties, measures=[name])
                    values.append(mean(run.benchmark, items[name]))
            if values and np.isfinite(values).all():
                of_models.append(Curve(run.name, tuple(names)[: len(values)], np.asarray(values)))
        if of_models:
            random = np.asarray(list(chance(benchmark, list(names.values())).values()))
            curves_by_side[side.name] = [*of_models, Curve(CHANCE, tuple(names), random)]
    return curves_by_side


#: The width of a panel of curves, in inches.
_WIDTH = 3.9


def recall_curves(side: str, curves: Sequence[Curve]) -> Any:
    """R@K against K in one direction, a line per model named at its end: what `curves` found."""
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
        models = [curve for curve in curves if curve.name != CHANCE]
        named = list(zip(models[:NAMED], cycle(_DASHES), strict=False))
        named += [(curve, (WRONG, (0, (4, 3)))) for curve in curves if curve.name == CHANCE]
        for curve in models[NAMED:]:
            axes.plot(curve.ks, 100 * curve.values, color=MUTED, lw=0.6, alpha=0.6)
        for curve, (colour, dash) in reversed(named):
            look = {"color": colour, "ls": dash, "lw": 1 if curve.name == CHANCE else 1.6}
            axes.plot(curve.ks, 100 * curve.values, clip_on=False, **look)
        ends = []
        for curve, (colour, _) in named:
            ends.append((curve.ks[-1], 100 * float(curve.values[-1]), short(curve.name, 24), colour))
        name_ends(axes, ends)
    return figure
