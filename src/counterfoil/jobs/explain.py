"""Heatmaps of a model's answers to single questions: which words count, and where in the picture."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import numpy as np

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.videos import Video
from counterfoil.engine import explain as heatmaps
from counterfoil.engine.explain import explain as explain_pairs
from counterfoil.engine.plan import check_at_hand
from counterfoil.errors import DataError, UnknownNameError
from counterfoil.inputs.limits import most
from counterfoil.jobs import shared_options as shared
from counterfoil.jobs.evaluation_inputs import JobInputs, title_of
from counterfoil.jobs.job import documented, job, option
from counterfoil.jobs.results import Pictures, Tabular, declared, lines, write
from counterfoil.jobs.shared_options import AnyBenchmark, AnyModel
from counterfoil.models.base import abilities
from counterfoil.outputs import existing_paths, guarded
from counterfoil.report.tables import Cell, Column, Row, Table

#: Ids of questions that an error lists.
NEAREST = 5


@documented
class ExplainRows(shared.Sources, shared.Device, shared.Work, total=False):
    """Options of explanations.

    Data:
        questions: Ids of the questions; default: evenly spaced ones.
        limit: Number of questions, if none are named.

    Method:
        methods: Method of heatmaps: patches, rollout, grad-cam, occlusion; may be repeated. Default: the
            model's own, else occlusion.
        grid: Occlusion: cells per side of the image.
        fill: Occlusion: fill of a covered cell.
        mask: Replace a left-out word by this instead of deleting it.
    """

    questions: Annotated[Sequence[str], option((), metavar="ID,ID,...", commas=True)]
    limit: Annotated[int, option(4, low=1, high=most("items"))]
    methods: Annotated[Sequence[str], option((), flag="--method")]
    grid: Annotated[int, option(7, low=1, high=64)]
    fill: Annotated[Literal["mean", "blur"], option("mean")]
    mask: Annotated[str | None, option(None, metavar="TOKEN")]
    prompt: Annotated[str, shared.PROMPT]
    settings: Annotated[shared.Settings, shared.SETTINGS]
    seed: Annotated[int, shared.SEED]


class Explanation(Tabular):
    """Scores, words left out one at a time, and heatmaps of every image and caption of some questions."""

    model: str
    benchmark: Benchmark
    questions: tuple[heatmaps.ExplainedQuestion, ...]
    methods: tuple[str, ...]
    left_out: str
    remarks: tuple[str, ...] = ()

    rows_by = declared(
        word="one per word of each pair: `question`, `caption`, `image`, `word`, the pair's `score: float` "
        "and its `drop: float` without the word, in the model's unit",
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
                by_word = zip(pair.words, pair.drops.tolist(), strict=True)
                words = sorted(by_word, key=lambda word_drop: -word_drop[1])
                drops = [(word, f"{drop:+.4f}".replace("-", "−")) for word, drop in words[:3] if drop]
                largest = ", ".join(f"{word} {drop}" for word, drop in drops)
                name = f"{self.benchmark.images[image].id} with {self.benchmark.captions[caption].id}"
                rows.append(Row(name, (Cell(pair.score), Cell(largest or "none"))))
            title = f"{self.model} on {self.benchmark.title}, question {question.id}"
            tables.append(Table(title, columns, tuple(rows), "image with caption"))
        return tables

    def _rows(self, by: str) -> Iterator[dict[str, Any]]:
        for question in self.questions:
            for (caption, image), pair in question.pairs.items():
                named = self.benchmark.captions[caption].id, self.benchmark.images[image].id
                about = {"question": question.id, "caption": named[0], "image": named[1]}
                words = pair.words
                if by == "word":
                    drops = zip(words, pair.drops.tolist(), strict=True)
                    yield from ({**about, "word": w, "score": pair.score, "drop": d} for w, d in drops)
                for heatmap in pair.heats if by == "cell" else ():
                    for word, grid in zip(["", *words], [heatmap.whole, *heatmap.parts], strict=True):
                        cell = {**about, "method": heatmap.method, "word": word}
                        for (row, column), value in np.ndenumerate(grid):
                            yield {**cell, "row": row, "column": column, "heat": float(value)}

    def to_json(self) -> dict[str, Any]:
        captions, images = self.benchmark.captions, self.benchmark.images
        questions: list[dict[str, Any]] = []
        for question in self.questions:
            questions.append({"id": question.id, "pairs": []})
            for (caption, image), pair in question.pairs.items():
                facts: dict[str, Any] = {
                    "caption": captions[caption].id,
                    "text": captions[caption].text,
                    "image": images[image].id,
                    "score": pair.score,
                    "words": pair.words,
                    "drops": pair.drops.tolist(),
                    "heatmaps": {},
                }
                for heatmap in pair.heats:
                    parts = {"caption": heatmap.whole.tolist(), "words": heatmap.parts.tolist()}
                    facts["heatmaps"][heatmap.method] = {"box": list(heatmap.box), **parts}
                questions[-1]["pairs"].append(facts)
        return {
            "model": self.model,
            "benchmark": self.benchmark.name,
            "left_out": self.left_out,
            "methods": {name: heatmaps.METHODS[name].unit for name in self.methods},
            "questions": questions,
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

        how: dict[str, Any] = {"title": title, "pictures": pictures, "private": private}
        html = page(self.model, self.benchmark, self.questions, notes=self.notes, **how)
        write(path, html, command="explain", overwrite=overwrite)


@job(
    outputs="html json",
    examples="""Examples:
  counterfoil explain pixels:colours world-quads --html heat.html
  counterfoil explain open-clip:ViT-B-32-quickgelu/openai winoground --questions 17,43 --html heat.html
  counterfoil explain itm:dandelin/vilt-b32-finetuned-coco winoground --method rollout --method occlusion
  counterfoil explain ckpt:runs/clip pairs --data my.csv --method patches --method occlusion""",
)
def explain(
    model: Annotated[str | AnyModel, shared.MODEL],
    benchmark: Annotated[AnyBenchmark, shared.BENCHMARK],
    **options: Unpack[ExplainRows],
) -> Explanation:
    """Show which words of a caption matter to a model, and where in the image it finds them.

    For every image and caption of a question: the loss of score without each word, and heatmaps. "occlusion"
    works with any model, "patches" compares a dual encoder's patches with each word, "rollout" is for ViLT,
    "grad-cam" for BLIP.

    Raises `UnknownNameError` for unknown questions and methods, `InputError` for a model without scores of
    new pairs or a method that it cannot do, and `DataError` for galleries, videos, and images or captions
    that are not at hand.

    >>> explained = explain(
    ...     "pixels:colours", "world-quads", limit=1, grid=3, cache=None, workers=0, quiet=True
    ... )
    >>> len(explained.questions)
    1
    >>> explained.to_arrow(by="cell").column_names
    ['question', 'caption', 'image', 'method', 'word', 'row', 'column', 'heat']
    """
    if isinstance(model, str):
        catalog.model_name(model)
    inputs = JobInputs.of(options, [benchmark], model)
    part = _questions(inputs, options["questions"], options["limit"])
    model = inputs.load(model)
    methods = heatmaps.check_methods(model, options["methods"])
    check_at_hand(part, images="images" in getattr(model, "needs", ("images", "captions")))
    captions, images = part.listed.slots()
    questions = [
        (
            name,
            tuple(c for c in dict.fromkeys(captions[i].tolist()) if c >= 0),
            tuple(i for i in dict.fromkeys(images[i].tolist()) if i >= 0),
        )
        for i, name in enumerate(part.questions.ids)
    ]
    positions = list(dict.fromkeys((c, i) for _, its, shown in questions for i in shown for c in its))
    texts = part.captions
    pairs = [
        heatmaps.PairToExplain(part.images[i], texts[c], heatmaps.words_of(texts[c].text or ""))
        for c, i in positions
    ]
    occlusion = heatmaps.Occlusion(options["grid"], options["fill"])
    if "scores_pairs" in abilities(model):
        # A large model takes its time for each, an endpoint its price. Equal ones are asked for once.
        pictures = 1 + (occlusion.cells**2 if "occlusion" in methods else 0)
        most_scores = sum(pictures * (1 + len(pair.spans)) for pair in pairs)
        inputs.feedback.note(f"at most {most_scores:,} scores are asked for")
    mask = options["mask"]
    how: dict[str, Any] = {"methods": methods, "occlusion": occlusion, "mask": mask}
    with inputs.feedback.progress() as progress:
        session = replace(inputs.session, progress=progress)
        explained = explain_pairs(model, pairs, session=session, **how)
    by_place = dict(zip(positions, explained, strict=True))
    fill = "the mean colour" if occlusion.fill == "mean" else "a blur"
    cells = f"{occlusion.cells} x {occlusion.cells} cells"
    remarks = lines(
        not methods and "the model sees no image: there is no heatmap",
        "occlusion" in methods and f"occlusion covers each of {cells} with {fill} of the picture",
    )
    left_out = "by deletion" if mask is None else f"by the mask token {mask!r}"
    of_questions = tuple(
        heatmaps.ExplainedQuestion(name, {(c, i): by_place[c, i] for i in shown for c in its})
        for name, its, shown in questions
    )
    return Explanation(title_of(model), part, of_questions, methods, left_out, tuple(remarks))


def _questions(inputs: JobInputs, names: Sequence[str], limit: int) -> Benchmark:
    """The questions of these names of the benchmark, else `limit` of them."""
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
    number = {name: i for i, name in enumerate(benchmark.questions.ids)}
    for name in names:
        if name not in number:
            raise UnknownNameError("question", name, number, where=benchmark.name, nearest=NEAREST)
    rows = np.array([number[name] for name in dict.fromkeys(names)]) if names else benchmark.spread(limit)
    return benchmark.select(rows)
