"""Heatmaps graded in the drawn world, where the true place of each thing is known.

Asked are pairs of a picture and a caption that is true of it. Each word of the caption that says something of
a thing (its colour, shape, size or texture) should point at the things of which that is true.
"""

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.explain import (
    METHODS,
    OCCLUSION,
    ExplainedPair,
    Heat,
    PairToExplain,
    check_methods,
    words_of,
)
from counterfoil.errors import DataError
from counterfoil.jobs.arguments import BENCHMARK, SCORER, AnyBenchmark, AnyScorer
from counterfoil.jobs.evaluation_inputs import title_of
from counterfoil.jobs.explain import ExplainRows, Explanation, explain, prepared
from counterfoil.jobs.job import job
from counterfoil.jobs.outputs import write
from counterfoil.jobs.results import Tabular, declared
from counterfoil.metrics.heatmaps import area_iou, iou_chance, pointing_chance, pointing_game, upsampled
from counterfoil.report.html import tables_page
from counterfoil.report.tables import Cell, Column, Row, Table
from counterfoil.stats.estimates import cluster_interval
from counterfoil.world.drawings import LazyDrawing
from counterfoil.world.painting import masks
from counterfoil.world.truth import SAYS, matches, spoken_of

#: Questions that are graded where no number is given.
GRADED = 40
#: Heatmaps of other scenes that are held against each mask.
_ELSEWHERE = 4

_MEASURES = ("pointing", "iou")


@dataclass(frozen=True)
class GradedMeasure:
    """The mean of a measure over words, in [0, 1], with its 95 % interval and what it is compared with."""

    value: float
    low: float
    high: float
    #: Of a random point, or of random pixels, in closed form: the share of the picture that is right.
    chance: float
    #: The mean where each heatmap is replaced by some of other scenes: what a habit, such as looking at the
    #: middle, gets.
    elsewhere: float
    #: The difference from `elsewhere`, in [-1, 1], and its interval.
    lift: float
    lift_low: float
    lift_high: float


@dataclass(frozen=True)
class HeatGrade:
    """How often the heatmaps of one method point at the right things.

    `words` is "all", or the kind of what is said: "colour", "shape", "size", "texture"; `n` of them, in so
    many clusters of questions that share scenes.
    """

    method: str
    words: str
    n: int
    clusters: int
    pointing: GradedMeasure
    iou: GradedMeasure


@dataclass(frozen=True, eq=False, repr=False)
class HeatGrades(Tabular):
    """Heatmaps against the true places of things, by method and kind of word."""

    scorer: str
    benchmark: Benchmark
    grades: tuple[HeatGrade, ...]
    items: tuple[dict[str, Any], ...]
    notes: tuple[str, ...] = ()

    rows_by = declared(
        grade="one per `method`, kind of `words` and `measure` (pointing, iou): `n: int`, `clusters: int`, "
        "`value: float` and `low: float`, `high: float`, `chance: float`, `elsewhere: float`, `lift: float` "
        "and `lift_low: float`, `lift_high: float`",
        word="one per word of each pair and method: question, caption, image, word, kind, cluster, method, "
        "pointing and iou, each with its chance and its value elsewhere",
    )

    @property
    def tables(self) -> list[Table]:
        """One table per method: a row per kind of word."""
        columns = (
            Column("words", style="text"),
            *(Column(name, measure) for measure in _MEASURES for name in (measure, "chance", "elsewhere")),
        )
        rows: dict[str, list[Row]] = {}
        for grade in self.grades:
            cells = [Cell(f"{grade.n:,}")]
            for of in (grade.pointing, grade.iou):
                cells += [Cell(of.value, of.low, of.high), Cell(of.chance), Cell(of.elsewhere)]
            rows.setdefault(grade.method, []).append(Row(grade.words, tuple(cells)))
        title = f"of {self.scorer} on {self.benchmark.card.title}"
        return [
            Table(f"{METHODS[method].title} {title}", columns, tuple(of_method), "Words of")
            for method, of_method in rows.items()
        ]

    def _rows(self, by: str) -> Sequence[Any]:
        if by == "word":
            return self.items
        return [({"measure": of}, getattr(grade, of), grade) for grade in self.grades for of in _MEASURES]

    def to_html(self, path: str | Path, *, title: str = "", overwrite: bool = False, **_: object) -> None:
        """Write one self-contained page of the tables."""
        html = tables_page(self.tables, self.notes, title=title or f"Heatmaps of {self.scorer}")
        write(path, html, command="explain", overwrite=overwrite)

    def to_json(self) -> dict[str, Any]:
        return {
            "scorer": self.scorer,
            "benchmark": self.benchmark.name,
            "grades": [asdict(grade) for grade in self.grades],
            "notes": list(self.notes),
        }


@job()
def grade_heatmaps(
    scorer: Annotated[str | AnyScorer, SCORER],
    benchmark: Annotated[AnyBenchmark, BENCHMARK] = "world-quads",
    **options: Unpack[ExplainRows],
) -> HeatGrades:
    """How often the heatmaps of `explain` point at the right thing, in the drawn world, where that is known.

    Every word that says the colour, shape, size or texture of a thing, in some questions: does the hottest
    pixel lie on such a thing (pointing game), and how far do the hottest pixels overlap with those (IoU)?
    Each has its chance level and an interval, which knows which questions share scenes. Raises `DataError`
    for a benchmark not drawn from scenes or without a pair to grade, and what `explain` raises.

    >>> graded = grade_heatmaps("blind:length", limit=2, grid=2, cache=None, workers=0, quiet=True)
    >>> round(graded.grades[0].pointing.value - graded.grades[0].pointing.chance, 9)
    0.0
    """
    loaded = prepared(scorer, benchmark, options)
    questions = loaded.questions(GRADED)
    if not any(isinstance(image.source, LazyDrawing) for image in questions.images):
        raise DataError(
            "where things lie is not known",
            where=questions.name,
            allowed="benchmarks that are drawn from scenes: world-quads, world-choices",
        )
    methods = check_methods(loaded.scorer, options["methods"]) or (OCCLUSION.name,)
    cases = list(_cases(questions))
    if not cases:
        raise DataError("no caption with a word that says where to look", where=questions.name)
    explained = loaded.explain([case.pair for case in cases], methods)
    items = [row for at in range(len(cases)) for row in _graded(cases, explained, at)]
    kinds = ["all", *dict.fromkeys(kind for kind, _ in SAYS.values())]
    grades = [
        _grade(method, kind, rows)
        for method in methods
        for kind in kinds
        if (rows := [r for r in items if r["method"] == method and kind in ("all", r["kind"])])
    ]
    return HeatGrades(
        scorer=title_of(loaded.scorer),
        benchmark=questions,
        grades=tuple(grades),
        items=tuple(items),
        notes=(
            f"{len(items) // len(methods):,} words of {len(cases):,} true captions, "
            f"{len(questions):,} questions",
            "pointing: the hottest pixel lies on a thing of which the word is true; iou: overlap with those",
            "chance: a random point or random pixels; elsewhere: the heatmaps of other scenes",
            *loaded.remarks(methods),
            "intervals: 95 %, over questions that share scenes",
        ),
    )


@job(
    outputs="html json",
    examples="""Examples:
  counterfoil explain pixels:colours world-quads --html heat.html
  counterfoil explain open-clip:ViT-B-32-quickgelu/openai winoground --questions 17,43 --html heat.html
  counterfoil explain itm:dandelin/vilt-b32-finetuned-coco winoground --method rollout --method transport
  counterfoil explain ckpt:runs/clip pairs --data my.csv --method patches --method occlusion
  counterfoil explain ckpt:runs/clip world-quads --grade""",
)
def explain_or_grade(
    scorer: Annotated[str | AnyScorer, SCORER],
    benchmark: Annotated[AnyBenchmark, BENCHMARK],
    *,
    grade: bool = False,
    **options: Unpack[ExplainRows],
) -> Explanation | HeatGrades:
    """Show which words of a caption count for a scorer, and where in the picture it looks for them.

    Each image of a question is scored with each caption, with the caption without each word, and with the
    picture with one cell after the other covered: this works for any scorer. Methods that look inside of a
    model are used where the model has what they need.

    Arguments:
        grade: In the drawn world, where places are known: how often heatmaps point at the right thing.
    """
    return grade_heatmaps(scorer, benchmark, **options) if grade else explain(scorer, benchmark, **options)


@dataclass(frozen=True, eq=False)
class _Case:
    """A picture with a caption that is true of it."""

    question: str
    cluster: int
    pair: PairToExplain
    drawing: LazyDrawing


def _cases(benchmark: Benchmark) -> Iterator[_Case]:
    """Every true pair of the questions once, with the words that say where to look."""
    captions, images = benchmark.listed.slots()
    clusters, seen = benchmark.clusters.tolist(), set()
    for at, name in enumerate(benchmark.questions.ids):
        for c, i in ((c, i) for i in images[at].tolist() for c in captions[at].tolist()):
            if c < 0 or i < 0 or (c, i) in seen:
                continue
            seen.add((c, i))
            image, caption = benchmark.images[i], benchmark.captions[c]
            text, drawing = caption.text or "", image.source
            if not isinstance(drawing, LazyDrawing) or not matches(text, drawing.scene):
                continue
            spans = tuple(span for span in words_of(text) if text[span.start : span.end].lower() in SAYS)
            if spans:
                yield _Case(name, clusters[at], PairToExplain(image, caption, spans), drawing)


def _graded(cases: Sequence[_Case], explained: Sequence[ExplainedPair], at: int) -> Iterator[dict[str, Any]]:
    """A row per word and method of one case."""
    case, one = cases[at], explained[at]
    places = masks(case.drawing.scene, case.drawing.size)
    others = [other for other in range(len(cases)) if cases[other].cluster != case.cluster]
    # Other ones for every case, or a few heatmaps would stand for all.
    starts = range(at, at + len(others), max(1, len(others) // _ELSEWHERE))[:_ELSEWHERE]
    others = [others[turn % len(others)] for turn in starts]
    for number, word in enumerate(one.words):
        mask = np.any(places[spoken_of(word, case.drawing.scene)], axis=0)
        chance = {"pointing": pointing_chance(mask), "iou": iou_chance(mask)}
        for k, heat in enumerate(one.heats):

            def measured(heatmap: Heat, part: int, mask: ndarray = mask) -> dict[str, float]:
                pixels = upsampled(heatmap.parts[part], mask.shape[0], mask.shape[1], box=heatmap.box)
                return {"pointing": pointing_game(pixels, mask), "iou": area_iou(pixels, mask)}

            own = measured(heat, number)
            foreign = [
                measured(explained[other].heats[k], number % len(explained[other].words)) for other in others
            ]
            values: dict[str, float] = {}
            for name in _MEASURES:
                elsewhere = float(np.mean([of[name] for of in foreign])) if foreign else chance[name]
                values |= {name: own[name], f"{name}_chance": chance[name], f"{name}_elsewhere": elsewhere}
            yield {
                "question": case.question,
                "caption": case.pair.caption.id,
                "image": case.pair.image.id,
                "word": word,
                "kind": SAYS[word.lower()][0],
                "cluster": case.cluster,
                "method": heat.method,
                **values,
            }


def _grade(method: str, kind: str, rows: Sequence[dict[str, Any]]) -> HeatGrade:
    clusters = np.array([row["cluster"] for row in rows])

    def measure(name: str) -> GradedMeasure:
        values, chance, elsewhere = (
            np.array([row[f"{name}{suffix}"] for row in rows]) for suffix in ("", "_chance", "_elsewhere")
        )
        # Differences lie in [-1, 1], and intervals are of numbers in [0, 1].
        columns = np.stack([values, (values - elsewhere + 1) / 2], axis=1)
        low, high = cluster_interval(columns, clusters)
        return GradedMeasure(
            value=float(values.mean()),
            low=float(low[0]),
            high=float(high[0]),
            chance=float(chance.mean()),
            elsewhere=float(elsewhere.mean()),
            lift=float((values - elsewhere).mean()),
            lift_low=float(2 * low[1] - 1),
            lift_high=float(2 * high[1] - 1),
        )

    return HeatGrade(method, kind, len(rows), len(np.unique(clusters)), measure("pointing"), measure("iou"))
