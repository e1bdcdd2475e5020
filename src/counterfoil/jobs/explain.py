"""Heatmaps of a scorer's answers to single questions: which words count, and where in the picture."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.data_paths import Places
from counterfoil.benchmarks.videos import Video
from counterfoil.engine.deduplicate import check_at_hand
from counterfoil.engine.explain import METHODS, ExplainedQuestion, PairToExplain, check_methods
from counterfoil.engine.explain import explain as explain_pairs
from counterfoil.engine.perturbations import Occlusion, words_of
from counterfoil.errors import DataError, UnknownNameError
from counterfoil.jobs import evaluation_inputs as inputs
from counterfoil.jobs.feedback import SILENT, Feedback, SessionOptions
from counterfoil.jobs.outputs import guarded, write
from counterfoil.jobs.results import Tabular
from counterfoil.models.base import DEFAULT, Options, abilities
from counterfoil.outputs import existing_paths
from counterfoil.report.labels import amount
from counterfoil.report.tables import Cell, Column, Row, Table

#: Questions that are explained where none are named.
FEW = 4
#: Ids of questions that an error lists.
NEAREST = 5


@dataclass(frozen=True, kw_only=True)
class ExplainOptions(SessionOptions):
    """Options of explanations; the defaults are those of the command line."""

    #: Ids of questions; none named are `limit` of them, evenly spread.
    questions: Sequence[str] = ()
    limit: int = FEW
    #: Names of methods of heatmaps; none named are those that look inside of the model, else occlusion.
    methods: Sequence[str] = ()
    occlusion: Occlusion = field(default_factory=Occlusion)
    #: What a left-out word is replaced by; None cuts it out.
    mask: str | None = None
    data: Places = field(default_factory=Places)
    images: Places = field(default_factory=lambda: Places(option="--images"))
    scorer: Options = DEFAULT

    @property
    def left_out(self) -> str:
        """How words are left out, in words."""
        return "by deletion" if self.mask is None else f"by the mask token {self.mask!r}"

    def chosen(self, benchmark: Benchmark) -> Any:
        """Positions of the questions asked for; raises `UnknownNameError` for an id that is none."""
        if not self.questions:
            return benchmark.spread(self.limit)
        number = {name: at for at, name in enumerate(benchmark.questions.ids)}
        for name in self.questions:
            if name not in number:
                raise UnknownNameError("question", name, number, where=benchmark.name, nearest=NEAREST)
        return np.array([number[name] for name in dict.fromkeys(self.questions)])

    def scores(self, pairs: Sequence[PairToExplain], methods: Sequence[str]) -> int:
        """At most so many scores are asked for; equal ones once."""
        pictures = 1 + (self.occlusion.cells**2 if "occlusion" in methods else 0)
        return sum(pictures * (1 + len(pair.spans)) for pair in pairs)

    def remarks(self, methods: Sequence[str]) -> tuple[str, ...]:
        """How the methods are set, in words."""
        if "occlusion" not in methods:
            return ()
        cells, fill = self.occlusion.cells, self.occlusion.fill
        shown = "the mean colour" if fill == "mean" else "a blur"
        return (f"occlusion covers each of {cells} x {cells} cells with {shown} of the picture",)


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(Tabular):
    """Scores, words left out one at a time, and heatmaps of every image and caption of some questions.

    Rows by "word" are one per word of each pair: `question`, `caption`, `image`, `word`, the pair's `score`
    and its `drop` without the word, in the scorer's unit. Rows by "cell" are one per cell of each heatmap:
    `question`, `caption`, `image`, `method`, `word` (empty for the whole caption), `row`, `column`, `heat`.
    """

    scorer: str
    benchmark: Benchmark
    questions: tuple[ExplainedQuestion, ...]
    methods: tuple[str, ...]
    left_out: str
    remarks: tuple[str, ...] = ()

    rows_by = ("word", "cell")

    def __repr__(self) -> str:
        questions = amount(len(self.questions), "question")
        return f"<Explanation of {self.scorer} on {self.benchmark.card.title}: {questions}>"

    @property
    def notes(self) -> tuple[str, ...]:
        """How words were left out, and what else was decided."""
        return (f"words are left out {self.left_out}", *self.remarks)

    @property
    def tables(self) -> list[Table]:
        """For each pair its score, and the words whose loss moves it most."""
        return [self._table(question) for question in self.questions]

    def _table(self, question: ExplainedQuestion) -> Table:
        rows = []
        for (caption, image), pair in question.pairs.items():
            words = sorted(
                zip(pair.words, pair.drops.tolist(), strict=True), key=lambda word_drop: -word_drop[1]
            )
            largest = ", ".join(f"{word} {drop:+.4f}" for word, drop in words[:3] if drop)
            name = f"{self.benchmark.images[image].id} with {self.benchmark.captions[caption].id}"
            rows.append(Row(name, (Cell(pair.score), Cell(largest.replace("-", "−") or "none"))))
        columns = (Column("score", style="score"), Column("main words", style="text", align="left"))
        title = f"{self.scorer} on {self.benchmark.card.title}, question {question.id}"
        return Table(title, columns, tuple(rows), "image with caption")

    def _rows(self, by: str) -> pa.Table:
        rows: list[dict[str, Any]] = []
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
                    rows += [{**about, "word": w, "score": pair.score, "drop": d} for w, d in drops]
                    continue
                for heat in pair.heats:
                    for word, grid in zip(["", *words], [heat.whole, *heat.parts], strict=True):
                        named = {**about, "method": heat.method, "word": word}
                        rows += [
                            {**named, "row": row, "column": column, "heat": value}
                            for row, line in enumerate(grid.tolist())
                            for column, value in enumerate(line)
                        ]
        return pa.Table.from_pylist(rows)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, the arrays as nested lists, as `explain --json` writes it."""
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
        title: str = "Which words count, and where",
        pictures: str = "auto",
        private: bool = False,
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


def explain(
    scorer: Any,
    benchmark: str | Benchmark,
    options: ExplainOptions | None = None,
    *,
    feedback: Feedback = SILENT,
) -> Explanation:
    """Every image with every caption of some questions explained: words left out, and heatmaps.

    `scorer` is a name or a loaded scorer, `benchmark` a name, a folder in counterfoil's own format, or a
    loaded benchmark. Raises `UnknownNameError` for unknown questions and methods, `InputError` for a scorer
    without scores of new pairs or a method that it cannot do, and `DataError` for galleries, videos, and
    images or captions that are not at hand.
    """
    options = options or ExplainOptions()
    loaded, whole = prepared(scorer, benchmark, options, feedback)
    benchmark_part = whole.select(options.chosen(whole))
    check_at_hand(benchmark_part, images="images" in getattr(loaded, "needs", ("images", "captions")))
    names = check_methods(loaded, options.methods)
    captions, images = benchmark_part.listed.slots()
    questions = [
        (
            name,
            tuple(c for c in dict.fromkeys(captions[at].tolist()) if c >= 0),
            tuple(i for i in dict.fromkeys(images[at].tolist()) if i >= 0),
        )
        for at, name in enumerate(benchmark_part.questions.ids)
    ]
    places = list(dict.fromkeys((c, i) for _, its, shown in questions for i in shown for c in its))
    pairs = [
        PairToExplain(
            benchmark_part.images[i],
            benchmark_part.captions[c],
            words_of(benchmark_part.captions[c].text or ""),
        )
        for c, i in places
    ]
    if "scores_pairs" in abilities(loaded):
        # A large model takes its time for each, an endpoint its price.
        feedback.note(f"at most {options.scores(pairs, names):,} scores are asked for")
    with feedback.progress() as progress:
        session = options.session(feedback, progress)
        explained = explain_pairs(
            loaded,
            pairs,
            methods=names,
            occlusion=options.occlusion,
            mask=options.mask,
            session=session,
        )
    by_place = dict(zip(places, explained, strict=True))
    return Explanation(
        scorer=str(getattr(loaded, "title", "") or loaded.identity.name),
        benchmark=benchmark_part,
        questions=tuple(
            ExplainedQuestion(name, {(c, i): by_place[c, i] for i in shown for c in its})
            for name, its, shown in questions
        ),
        methods=names,
        left_out=options.left_out,
        remarks=options.remarks(names) if names else ("the scorer sees no image: there is no heatmap",),
    )


def prepared(
    scorer: Any, benchmark: str | Benchmark, options: ExplainOptions, feedback: Feedback
) -> tuple[Any, Benchmark]:
    """The scorer and the benchmark, read and loaded; what can be wrong with names is found first."""
    if isinstance(scorer, str):
        catalog.scorer_name(scorer)
    key = benchmark if isinstance(benchmark, str) else benchmark.name
    if isinstance(benchmark, str) and not Path(benchmark).is_dir():
        catalog.benchmark_card(benchmark)
    places = [options.data, options.images]
    reads = [path for place in places for path in (place.plain, *place.named.values()) if path is not None]
    with guarded("explain", reads=reads) as outputs:
        if isinstance(benchmark, str):
            with feedback.busy(f"reading {key}"):
                pictures = options.images.images_of(key)
                benchmark = inputs.benchmark(key, options.data.of(key, many=False), pictures, None)
        outputs.read(*existing_paths([benchmark.path] if benchmark.path is not None else []))
    if benchmark.listed.text_pairs() is not None:
        raise DataError(
            "explains images with captions, and these questions compare captions",
            where=benchmark.name,
            allowed="quads, choices and statements",
        )
    if benchmark.card.shows == "video" or any(isinstance(image, Video) for image in benchmark.images):
        raise DataError("explains pictures, not videos", where=benchmark.name)
    if isinstance(scorer, str):
        with feedback.busy(f"loading {scorer}"):
            scorer = catalog.scorer(scorer, options.scorer, memory=options.cache)
    check_methods(scorer, options.methods)
    return scorer, benchmark
