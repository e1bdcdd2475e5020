"""Reports on galleries: directions side by side, recall curves, and how many answers are right."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Gallery
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Estimate, Result, Run
from counterfoil.metrics.measure import DIRECTIONS, split_direction
from counterfoil.report import comparison_tables
from counterfoil.report.comparison_tables import main_measures
from counterfoil.report.forms import first_items, recall_curves
from counterfoil.report.forms.base import READING, WORST, BrowserSource, FormReport, dots, versus
from counterfoil.report.forms.recall_curves import right_answers
from counterfoil.report.html import Drawing, Section, wide_and_narrow
from counterfoil.report.labels import amount, listed, measure_label, measure_meaning
from counterfoil.report.notes import NOTABLE, Note, below_chance, intervals, percent
from counterfoil.report.tables import Column, Table, least_width, text_table
from counterfoil.report.thumbnails import Thumbnails, shelves

_INTERVALS = {
    "clusters": "over images, each with the captions written for it",
    "wilson": "Wilson's, for independent queries",
}
#: Per direction: the queries and the items.
_SIDES: Mapping[str, tuple[str, str]] = {"i2t": ("image", "caption"), "t2i": ("caption", "image")}


class GalleryReport(FormReport):
    """Galleries."""

    key = "galleries"
    place = "queries"
    script = "gallery.js"
    style = "gallery.css"
    KINDS: ClassVar[tuple[str, ...]] = first_items.KINDS
    policies: ClassVar[Mapping[str, str]] = {
        "strict": "Of equal scores, a wrong item stands before a right one.",
        "half": "Equal scores stand in random order, and a measure is its mean over all such orders.",
        "optimistic": "Of equal scores, a right item stands before a wrong one.",
    }
    tested = FormReport.tested.replace(
        "questions", "queries, an image exchanged together with its captions", 1
    )

    def about(self, benchmark: Benchmark) -> str:
        return about(benchmark.gallery)

    def remarks(self, comparison: Comparison) -> list[Note]:
        parts = (_ties, _unfindable, _cut, below_chance)
        return [*(note for part in parts for note in part(comparison)), *intervals(comparison, _INTERVALS)]

    def kinds(self, run: Run) -> Int[ndarray, "queries"]:
        return first_items.kinds(run)

    def failures(self, run: Run) -> tuple[list[int], dict[int, str]]:
        """Queries whose first right answer comes latest; those of unknown rank come first."""
        if not run.answers.has_rankings:
            return [], {}
        place = np.concatenate([first_items.first_right(*side) for side in first_items.sides_of(run)])[:, 0]
        late = np.where(run.benchmark.gallery.defined, np.where(place > 0, place, np.iinfo(np.int64).max), 0)
        order = [q for q in np.argsort(-late, kind="stable").tolist() if late[q] > 1]
        nothing = "no right answer in the ranking"
        return order, {
            q: f"the first right answer is number {place[q]:,}" if place[q] else nothing
            for q in order[:WORST]
        }

    def questions_data(self, source: BrowserSource) -> dict[str, Any]:
        return first_items.queries_data(source)

    def examples(self, comparison: Comparison, thumbnails: Thumbnails) -> list[dict[str, Any]]:
        return shelves(comparison, thumbnails)

    def overview(self, comparison: Comparison) -> Table:
        """The measures that the benchmark's authors report."""
        return comparison_tables.overview(comparison, measures=_shown(comparison))

    def everything(self, comparison: Comparison) -> Table | None:
        more = set(comparison.measures) > set(_shown(comparison))
        return comparison_tables.overview(comparison) if more else None

    def meanings(self, comparison: Comparison) -> list[tuple[Column, str]]:
        """Without directions."""
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
        if curves := recall_curves.curves(comparison):
            caption = "The share of queries with a right answer among the first K, and what chance gives."
            if len(comparison.runs) > recall_curves.NAMED:
                caption += f" The best {recall_curves.NAMED} scorers are named; the others are thin and grey."
            draw = partial(recall_curves.recall_curves, curves)
            figure = wide_and_narrow("R@K against K", caption, f"{anchor}-curves", draw, {}, {"columns": 1})
            sections.append(Section("curves", "How far down to look", drawings=(figure,)))
        # Unless all queries of a direction have as many.
        if recall_curves.varied(questions):
            title, name = "How many right answers queries have", f"{anchor}-multiplicity"
            draw = partial(recall_curves.multiplicity, questions)
            figure = wide_and_narrow(title, "", name, draw, {}, {"columns": 1})
            sections.append(Section("multiplicity", "How many answers are right", drawings=(figure,)))
        names = comparison_tables.groupings(questions)
        if groups := tuple(comparison_tables.by_group(comparison, grouping=name) for name in names):
            sections.append(Section("groups", "By group", tables=groups))
        return sections

    def result_table(self, result: Result, benchmark: Benchmark, width: int) -> Table:
        """Main measures first, all directions side by side, with as many digits and chances as have room."""
        rows: dict[str, dict[str, Estimate]] = {}
        for name, estimate in result.measures.items():
            side, base = split_direction(name)
            rows.setdefault(base, {})[side] = estimate
        title = f"{result.scorer} on {benchmark.card.title or result.benchmark}, per cent with 95 % intervals"
        layouts = _LAYOUTS if width >= _DETAILED else _LAYOUTS[1:]
        drawn = [_result_table(title, rows, layout) for layout in layouts]
        return next((table for table in drawn if least_width(table) <= width), drawn[-1])

    def result_lines(self, result: Result) -> list[str]:
        """What was asked, what has no right answer or one outside the gallery, what could not be measured."""
        facts = result.provenance.get("gallery", {})
        if not facts:
            return []
        i2t, t2i = facts["i2t"], facts["t2i"]
        parts = f", the mean over {facts['parts']} parts" if facts["parts"] > 1 else ""
        lines = [
            f"{i2t['queries']:,} of {facts['images']:,} images and {t2i['queries']:,} of "
            f"{facts['captions']:,} captions are queries{parts}"
        ]
        for kind, side in (("images", i2t), ("captions", t2i)):
            if side["undefined"]:
                some = kind if side["undefined"] > 1 else kind.removesuffix("s")
                lines.append(f"without a right answer, left out: {side['undefined']:,} {some}")
        for what, side in (("captions", i2t), ("images", t2i)):
            if side["outside_gallery"]:
                lines.append(
                    f"right answers outside the gallery, never found: {side['outside_gallery']:,} of "
                    f"{side['positives']:,} {what}"
                )
        if facts["cut"]:
            cut = ((side, depth) for side, depth in facts["cut"].items() if depth is not None)
            depths = [f"{DIRECTIONS[side].arrow} {depth:,}" for side, depth in cut]
            lines.append(f"rankings are cut, the shortest after: {', '.join(depths)}")
        unsupported = (facts.get("unsupported") or {}).items()
        reasons = {name: why for name, why in unsupported if split_direction(name)[0] != "mean"}
        if reasons:
            # They are much alike, and all are in the result.
            first, reason = next(iter(reasons.items()))
            names = dict.fromkeys(split_direction(name)[1] for name in reasons)
            lines.append(f"not measured: {', '.join(names)}; {first}, for one: {reason}")
        return lines

    def directions(self, comparison: Comparison, anchor: str) -> Drawing | None:
        by_side = {split_direction(measure)[0]: measure for measure in main_measures(comparison)}
        if not {"i2t", "t2i"} <= set(by_side):
            return None
        pair = by_side["i2t"], by_side["t2i"]
        title = f"{measure_label(pair[0])} against {measure_label(pair[1])}"
        caption = (
            "Below the dotted line, images do better at finding captions than captions at finding images."
        )
        return versus(comparison, f"{anchor}-directions", pair, title, caption)


class _Layout(NamedTuple):
    """How much there is room for: a chance per direction, digits of intervals, which can stand below."""

    chances: bool
    digits: int
    stacked: bool = False


#: From the widest to the narrowest; the first that fits is taken, so that no name and no number is cut.
_LAYOUTS = (
    _Layout(True, 2),
    _Layout(False, 2),
    _Layout(False, 1),
    _Layout(False, 2, stacked=True),
    _Layout(False, 1, stacked=True),
)
#: From this width on each direction has its chance beside it.
_DETAILED = 112


def _result_table(title: str, rows: Mapping[str, Mapping[str, Estimate]], layout: _Layout) -> Table:
    sides = [side for side in DIRECTIONS if any(side in of for of in rows.values())]
    chance = Column("chance", look="dim")
    columns: list[Column] = []
    for side in sides:
        head = DIRECTIONS[side].label if layout.stacked else DIRECTIONS[side].arrow
        columns += [Column(head, look="first"), *([chance] if layout.chances else [])]
    columns += [] if layout.chances else [chance]
    lines = []
    for base, of in rows.items():
        cells = [base]
        for side in sides:
            estimate = of.get(side)
            cells.append(_with_interval(estimate, layout) if estimate else "")
            if layout.chances:
                cells.append(_per_cent(estimate.chance) if estimate else "")
        if not layout.chances:
            cells.append(_per_cent(of[next(side for side in reversed(sides) if side in of)].chance))
        lines.append(cells)
    return text_table(title, "measure", columns, lines)


def _with_interval(estimate: Estimate, layout: _Layout) -> str:
    """A value with its interval; in a narrow terminal without brackets, and 100 without digits."""
    value, low, high = (100 * bound for bound in (estimate.value, estimate.low, estimate.high))
    if layout.chances:
        return f"{value:.2f} [{low:.2f}, {high:.2f}]"
    ends = [f"{end:.{layout.digits}f}".replace(f"{100:.{layout.digits}f}", "100") for end in (low, high)]
    between = "\n" if layout.stacked else " "
    return f"{value:.2f}{between}{ends[0]}–{ends[1]}"


def _per_cent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:.2f}"


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
    """One measure in its directions, side by side."""
    shown = [measure for side in DIRECTIONS if (measure := f"{side}_{base}") in comparison.measures]
    return dots(comparison, f"{anchor}-{base}", measure_label(base), caption, shown)


def about(questions: Gallery) -> str:
    """How many queries look for how many items.

    >>> import numpy as np
    >>> from counterfoil.benchmarks.forms import RetrievalDirection
    >>> from counterfoil.metrics.ranks import Qrels
    >>> i2t = RetrievalDirection(np.array([0]), Qrels.of([[0, 1]]))
    >>> t2i = RetrievalDirection(np.array([0, 1]), Qrels.of([[0], [0]]))
    >>> about(Gallery(("a", "b", "c"), i2t=i2t, t2i=t2i, owners=np.array([0, 0]), n_images=1))
    '1 image looks for 2 right captions among all 2; 2 captions look for 1 right image among all 1.'
    """
    parts = 1 if questions.image_parts is None else len(set(questions.image_parts.tolist()))
    sentences = []
    sides = ((questions.i2t, questions.n_captions), (questions.t2i, questions.n_images))
    for (query, item), (search, size) in zip(_SIDES.values(), sides, strict=True):
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


def _ties(comparison: Comparison) -> list[Note]:
    """By how much the order of tied items moves a main measure, or that it hardly does."""
    notes, most = [], 0
    scored = [run for run in comparison.runs if run.result.ties.get("questions") is not None]
    for run in scored:
        count = int(run.result.ties["questions"])
        most = max(most, count)
        by_policy = run.result.ties.get("measures", {}).values()
        moved = {name: [by[name] for by in by_policy if name in by] for name in main_measures(comparison)}
        name = max(moved, key=lambda name: _span(moved[name]))
        if _span(moved[name]) < NOTABLE:
            continue
        low, high = percent(min(moved[name])), percent(max(moved[name]))
        text = (
            f"{run.name} ties a right and a wrong item in {count:,} of {len(run.benchmark):,} queries: "
            f"by the order of the tied, {measure_label(name)} is anything from {low} to {high}."
        )
        notes.append(Note(text, "warning"))
    if notes or not scored:
        return notes
    if not most:
        return [Note("No scorer ties a right and a wrong item.")]
    many, rest = amount(most, "query"), "the order of the tied moves no main measure by a point"
    return [Note(f"Ties of right and wrong items (in {many} at most) hardly matter: {rest}.")]


def _unfindable(comparison: Comparison) -> list[Note]:
    """Right answers that the gallery does not hold, which count and cannot be found; queries without any."""
    gallery = _provenance(comparison.runs[0])
    outside, undefined, notes = [], [], []
    for name, (query, item) in _SIDES.items():
        facts = gallery.get(name, {})
        if many := int(facts.get("outside_gallery", 0)):
            outside.append(f"{many:,} of {int(facts['positives']):,} right {item}s of {query} queries")
        if facts.get("undefined"):
            undefined.append(f"{int(facts['undefined']):,} of {amount(int(facts['queries']), query)}")
    if outside:
        text = f"Outside the gallery are {listed(outside)}: they count as right answers and can never be "
        notes.append(Note(f"{text}found.", "warning"))
    if undefined:
        notes.append(Note(f"Without a right answer, and so left out: {listed(undefined)}."))
    return notes


def _cut(comparison: Comparison) -> list[Note]:
    """Which runs were given as rankings that end, and what they therefore cannot say."""
    notes = []
    for run in comparison.runs:
        cut = _provenance(run).get("cut")
        if not cut:
            continue
        sides = ((name, item) for name, (_, item) in _SIDES.items() if cut.get(name) is not None)
        depths = [f"{int(cut[name]):,} {item}s" for name, item in sides]
        text = f"The rankings of {run.name} end after {listed(depths)} or later"
        missing = _named(_provenance(run).get("unsupported", {}))
        if missing:
            text += f", too early for {listed(missing)}"
        notes.append(Note(f"{text}; what stands behind the end is not known.", "warning"))
    return notes


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
