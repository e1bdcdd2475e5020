"""Heatmaps of a scorer's answers to single questions: which words count, and where in the picture."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import numpy as np
from numpy import ndarray

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.videos import Video
from counterfoil.engine.deduplicate import check_at_hand
from counterfoil.engine.explain import (
    METHODS,
    OCCLUSION,
    ExplainedPair,
    ExplainedQuestion,
    Heat,
    Occlusion,
    PairToExplain,
    check_methods,
    words_of,
)
from counterfoil.engine.explain import explain as explain_pairs
from counterfoil.errors import DataError, UnknownNameError
from counterfoil.inputs.limits import most
from counterfoil.jobs import arguments as shared
from counterfoil.jobs.arguments import BENCHMARK, SCORER, AnyBenchmark, AnyScorer
from counterfoil.jobs.evaluation_inputs import JobInputs, title_of
from counterfoil.jobs.job import documented, job, option
from counterfoil.jobs.outputs import guarded, write
from counterfoil.jobs.results import Pictures, Tabular, declared
from counterfoil.metrics.heatmaps import area_iou, iou_chance, pointing_chance, pointing_game, upsampled
from counterfoil.models.base import abilities
from counterfoil.outputs import existing_paths
from counterfoil.report.html import render
from counterfoil.report.tables import Cell, Column, Row, Table
from counterfoil.stats.intervals import cluster_interval
from counterfoil.world.drawings import LazyDrawing
from counterfoil.world.painting import masks
from counterfoil.world.truth import SAYS, matches, spoken_of

#: Questions that are explained where none are named.
FEW = 4
#: Ids of questions that an error lists.
NEAREST = 5


@documented
class ExplainRows(shared.Sources, shared.Device, shared.Work, total=False):
    """Options of explanations, and of their grades.

    Data:
        questions: Ids of the questions; default: some, evenly spread.
        limit: How many questions, where none are named; default: 4, or 40 that are graded.

    Method:
        methods: How heatmaps are made: patches, rollout, grad-cam, occlusion; may be repeated.
            Default: what looks inside of the model, else occlusion.
        grid: Occlusion: so many cells to a side of the picture.
        fill: Occlusion: what a covered cell shows.
        mask: Put this in place of a left-out word, in place of deleting it.
    """

    questions: Annotated[Sequence[str], option((), metavar="ID,ID,...", commas=True)]
    limit: Annotated[int | None, option(None, low=1, high=most("items"))]
    methods: Annotated[Sequence[str], option((), flag="--method")]
    grid: Annotated[int, option(7, low=1, high=64)]
    fill: Annotated[Literal["mean", "blur"], option("mean")]
    mask: Annotated[str | None, option(None, metavar="TOKEN")]
    prompt: Annotated[str, shared.PROMPT]
    settings: Annotated[shared.Settings, shared.SETTINGS]
    seed: Annotated[int, shared.SEED]


@dataclass(frozen=True)
class ExplainInputs:
    """What is explained and how: a scorer and a benchmark that are loaded, questions and methods."""

    scorer: Any
    benchmark: Benchmark
    inputs: JobInputs

    @property
    def rows(self) -> Mapping[str, Any]:
        """The arguments."""
        return self.inputs.rows

    @property
    def occlusion(self) -> Occlusion:
        """How pictures are covered."""
        return Occlusion(self.rows["grid"], self.rows["fill"])

    @property
    def left_out(self) -> str:
        """How words are left out, in words."""
        mask = self.rows["mask"]
        return "by deletion" if mask is None else f"by the mask token {mask!r}"

    def questions(self, few: int) -> Benchmark:
        """The questions asked for, else `few`; raises `UnknownNameError` for an id that is none."""
        names, whole = self.rows["questions"], self.benchmark
        if not names:
            return whole.select(whole.spread(self.rows["limit"] or few))
        number = {name: at for at, name in enumerate(whole.questions.ids)}
        for name in names:
            if name not in number:
                raise UnknownNameError("question", name, number, where=whole.name, nearest=NEAREST)
        return whole.select(np.array([number[name] for name in dict.fromkeys(names)]))

    def explain(self, pairs: Sequence[PairToExplain], methods: Sequence[str]) -> Sequence[ExplainedPair]:
        """Each pair explained by the methods."""
        feedback = self.inputs.feedback
        if "scores_pairs" in abilities(self.scorer):
            # A large model takes its time for each, an endpoint its price. Equal ones are asked for once.
            pictures = 1 + (self.occlusion.cells**2 if "occlusion" in methods else 0)
            most_scores = sum(pictures * (1 + len(pair.spans)) for pair in pairs)
            feedback.note(f"at most {most_scores:,} scores are asked for")
        with feedback.progress() as progress:
            return explain_pairs(
                self.scorer,
                pairs,
                methods=methods,
                occlusion=self.occlusion,
                mask=self.rows["mask"],
                session=replace(self.inputs.session, progress=progress),
            )

    def remarks(self, methods: Sequence[str]) -> tuple[str, ...]:
        """How the methods are set, in words."""
        if "occlusion" not in methods:
            return ()
        cells, fill = self.occlusion.cells, self.occlusion.fill
        shown = "the mean colour" if fill == "mean" else "a blur"
        return (f"occlusion covers each of {cells} x {cells} cells with {shown} of the picture",)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Tabular):
    """Scores, words left out one at a time, and heatmaps of every image and caption of some questions."""

    scorer: str
    benchmark: Benchmark
    questions: tuple[ExplainedQuestion, ...]
    methods: tuple[str, ...]
    left_out: str
    remarks: tuple[str, ...] = ()

    rows_by = declared(
        word="one per word of each pair: `question`, `caption`, `image`, `word`, the pair's `score: float` "
        "and its `drop: float` without the word, in the scorer's unit",
        cell="one per cell of each heatmap: `question`, `caption`, `image`, `method`, `word` (empty for "
        "the whole caption), `row: int`, `column: int`, `heat: float`",
    )
    page_has_figures = False

    @property
    def notes(self) -> tuple[str, ...]:
        """How words were left out, and what else was decided."""
        return (f"words are left out {self.left_out}", *self.remarks)

    @property
    def tables(self) -> list[Table]:
        """For each pair its score, and the words whose loss moves it most."""
        columns = (Column("score", style="score"), Column("main words", align="left"))
        tables = []
        for question in self.questions:
            rows = []
            for (caption, image), pair in question.pairs.items():
                words = sorted(
                    zip(pair.words, pair.drops.tolist(), strict=True), key=lambda word_drop: -word_drop[1]
                )
                largest = ", ".join(f"{word} {drop:+.4f}" for word, drop in words[:3] if drop)
                name = f"{self.benchmark.images[image].id} with {self.benchmark.captions[caption].id}"
                rows.append(Row(name, (Cell(pair.score), Cell(largest.replace("-", "−") or "none"))))
            title = f"{self.scorer} on {self.benchmark.card.title}, question {question.id}"
            tables.append(Table(title, columns, tuple(rows), "image with caption"))
        return tables

    def _rows(self, by: str) -> Iterator[dict[str, Any]]:
        for question in self.questions:
            for (caption, image), pair in question.pairs.items():
                about = {
                    "question": question.id,
                    "caption": self.benchmark.captions[caption].id,
                    "image": self.benchmark.images[image].id,
                }
                words = pair.words
                if by == "word":
                    drops = zip(words, pair.drops.tolist(), strict=True)
                    yield from ({**about, "word": w, "score": pair.score, "drop": d} for w, d in drops)
                for heat in pair.heats if by == "cell" else ():
                    for word, grid in zip(["", *words], [heat.whole, *heat.parts], strict=True):
                        named = {**about, "method": heat.method, "word": word}
                        for (row, column), value in np.ndenumerate(grid):
                            yield {**named, "row": row, "column": column, "heat": float(value)}

    def to_json(self) -> dict[str, Any]:
        captions, images = self.benchmark.captions, self.benchmark.images
        return {
            "scorer": self.scorer,
            "benchmark": self.benchmark.name,
            "left_out": self.left_out,
            "methods": {name: METHODS[name].unit for name in self.methods},
            "questions": [
                {
                    "id": question.id,
                    "pairs": [
                        {
                            "caption": captions[caption].id,
                            "text": captions[caption].text,
                            "image": images[image].id,
                            "score": pair.score,
                            "words": pair.words,
                            "drops": pair.drops.tolist(),
                            "heatmaps": {
                                heat.method: {
                                    "box": list(heat.box),
                                    "caption": heat.whole.tolist(),
                                    "words": heat.parts.tolist(),
                                }
                                for heat in pair.heats
                            },
                        }
                        for (caption, image), pair in question.pairs.items()
                    ],
                }
                for question in self.questions
            ],
            "notes": list(self.notes),
        }

    def to_html(
        self,
        path: str | Path,
        *,
        title: Annotated[str, shared.TITLE] = "Which words count, and where",
        pictures: Annotated[Pictures, shared.PICTURES] = "auto",
        private: Annotated[bool, shared.PRIVATE] = False,
        overwrite: bool = False,
    ) -> None:
        """Write one self-contained page with a heatmap per word.

        `pictures` is "auto" (images and captions of benchmarks whose licence lets a page carry them),
        "always" (for your own eyes) or "never" (no photographs); `private` keeps paths and users.
        """
        from counterfoil.report.saliency_page import page

        html = page(
            self.scorer,
            self.benchmark,
            self.questions,
            notes=self.notes,
            title=title,
            pictures=pictures,
            private=private,
        )
        write(path, html, command="explain", overwrite=overwrite)


@job()
def explain(
    scorer: Annotated[str | AnyScorer, shared.SCORER],
    benchmark: Annotated[AnyBenchmark, shared.BENCHMARK],
    **options: Unpack[ExplainRows],
) -> Explanation:
    """Show which words of a caption count for a scorer, and where in the picture it looks for them.

    Every image of the `questions` with every caption: what the score loses without each word, and heatmaps.
    "occlusion" works for any scorer by its scores alone, "patches" compares the patches of a dual encoder
    with each word, "rollout" is of ViLT, "grad-cam" of BLIP. Raises `UnknownNameError` for
    unknown questions and methods, `InputError` for a scorer without scores of new pairs or a method that it
    cannot do, and `DataError` for galleries, videos, and images or captions that are not at hand.

    >>> explained = explain(
    ...     "pixels:colours", "world-quads", limit=1, grid=3, cache=None, workers=0, quiet=True
    ... )
    >>> len(explained.questions)
    1
    >>> explained.to_arrow(by="cell").column_names
    ['question', 'caption', 'image', 'method', 'word', 'row', 'column', 'heat']
    """
    loaded = prepared(scorer, benchmark, options)
    part = loaded.questions(FEW)
    check_at_hand(part, images="images" in getattr(loaded.scorer, "needs", ("images", "captions")))
    names = check_methods(loaded.scorer, options["methods"])
    captions, images = part.listed.slots()
    questions = [
        (
            name,
            tuple(c for c in dict.fromkeys(captions[at].tolist()) if c >= 0),
            tuple(i for i in dict.fromkeys(images[at].tolist()) if i >= 0),
        )
        for at, name in enumerate(part.questions.ids)
    ]
    places = list(dict.fromkeys((c, i) for _, its, shown in questions for i in shown for c in its))
    pairs = [
        PairToExplain(part.images[i], part.captions[c], words_of(part.captions[c].text or ""))
        for c, i in places
    ]
    by_place = dict(zip(places, loaded.explain(pairs, names), strict=True))
    return Explanation(
        scorer=title_of(loaded.scorer),
        benchmark=part,
        questions=tuple(
            ExplainedQuestion(name, {(c, i): by_place[c, i] for i in shown for c in its})
            for name, its, shown in questions
        ),
        methods=names,
        left_out=loaded.left_out,
        remarks=loaded.remarks(names) if names else ("the scorer sees no image: there is no heatmap",),
    )


def prepared(scorer: str | AnyScorer, benchmark: AnyBenchmark, rows: ExplainRows) -> ExplainInputs:
    """The scorer and the benchmark, read and loaded; what can be wrong with names is found first."""
    if isinstance(scorer, str):
        catalog.scorer_name(scorer)
    inputs = JobInputs.of(rows, [benchmark], scorer)
    sources = inputs.sources
    sources.check_names()
    with guarded("explain", reads=sources.paths) as outputs:
        benchmark = sources.read(sources.benchmarks[0], inputs.feedback)
        outputs.read(*existing_paths([benchmark.path] if benchmark.path is not None else []))
    if benchmark.listed.text_pairs() is not None:
        raise DataError(
            "explains images with captions, and these questions compare captions",
            where=benchmark.name,
            allowed="quads, choices and statements",
        )
    if benchmark.card.shows == "video" or any(isinstance(image, Video) for image in benchmark.images):
        raise DataError("explains pictures, not videos", where=benchmark.name)
    scorer = inputs.load(scorer)
    check_methods(scorer, rows["methods"])
    return ExplainInputs(scorer, benchmark, inputs)


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
            Column("words"),
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
        title = title or f"Heatmaps of {self.scorer}"
        html = render("tables.html", title=title, standfirst="", tables=self.tables, notes=self.notes)
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
  counterfoil explain itm:dandelin/vilt-b32-finetuned-coco winoground --method rollout --method occlusion
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
