"""Caption metrics answer: texts to those that read, embeddings to those that look, parts to those that match.

Each distinct image, video and text goes through a model once, and is kept in the cache; arithmetic is done
again every time. Rows are never taken together, though two may hold the same texts: document frequencies
count every row of the load.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.galleries import Gallery
from counterfoil.data.questions import first_use
from counterfoil.data.ratings import Preference, Rated
from counterfoil.data.records import Image
from counterfoil.data.scores import Scores
from counterfoil.data.videos import Video
from counterfoil.engine.align import used_rows
from counterfoil.engine.asked import Asked
from counterfoil.engine.cache import Cache
from counterfoil.engine.compute import Work
from counterfoil.engine.content import image_keys
from counterfoil.engine.parts import PartsWork
from counterfoil.engine.plan import Plan, items
from counterfoil.engine.progress import Note, Progress, silent, warn
from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.base import Identity
from counterfoil.scorers.captions.protocols import CaptionMetric, EmbeddingMetric, LocalMetric, TextMetric
from counterfoil.scorers.given import GivenEmbeddings

#: Numbers in one block of gathered embeddings.
_BLOCK = 1 << 23

#: Metrics of pictures that are asked of videos in another way, or refuse it.
_Moving = Callable[[], CaptionMetric]

#: What answers for the rows of one question set, given its references.
_Answer = Callable[[Asked], ndarray]


def judge(
    benchmark: Benchmark,
    metric: CaptionMetric,
    *,
    cache: Path | None = None,
    batch_size: int = 32,
    workers: int = 0,
    progress: Progress = silent,
    note: Note = warn,
) -> Scores:
    """What a caption metric gives to every candidate that `benchmark` asks about.

    Returns float64 scores in the shape of the questions; of preferences that draw references (n, 2, draws),
    where the metric reads references: it is asked once per draw. A candidate of several sentences gets the
    mean over them. Questions of other forms have no references, and each of their pairs is a row.

    Raises `InputError` for galleries, and for a metric that reads references where there are none;
    `DataError` where captions or images are not at hand, `ScoreError` where a score is not finite.
    """
    asked = _asked(benchmark, metric)
    questions = benchmark.listed
    captions, _ = questions.pairs()
    metric = metric_for(metric, benchmark.images)
    work = _Work(cache, batch_size, workers, progress, note)
    if not isinstance(questions, Preference):
        values = _answered([asked], metric, work)[0].reshape(captions.shape)
    elif "references" in metric.needs and questions.references is not None and questions.sample is not None:
        of_draws = _answered([asked.beside(drawn) for drawn in questions.drawn()], metric, work)
        values = np.stack([questions.collect(each) for each in of_draws], axis=2)
    else:
        values = questions.collect(_answered([asked], metric, work)[0])
    return Scores(values).check(benchmark, where=f"scores of {metric.identity.name}")


def ask(
    asked: Asked,
    metric: CaptionMetric,
    *,
    cache: Path | None = None,
    batch_size: int = 32,
    workers: int = 0,
    progress: Progress = silent,
    note: Note = warn,
) -> Float64[ndarray, "rows"]:
    """One number per row, all finite.

    Raises what `judge` raises. Captions longer than the model reads are cut off by its tokenizer, and `note`
    is told how many.
    """
    metric = metric_for(metric, asked.images)
    return _answered([asked], metric, _Work(cache, batch_size, workers, progress, note))[0]


def check(benchmark: Benchmark, metric: CaptionMetric) -> None:
    """Raise what `judge` would before it computes: where something is missing, or of another form."""
    _asked(benchmark, metric).checked(metric_for(metric, benchmark.images))


def _asked(benchmark: Benchmark, metric: CaptionMetric) -> Asked:
    if isinstance(benchmark.questions, Gallery):
        raise InputError(
            "a caption metric cannot rank a gallery",
            where=metric.identity.name,
            given=benchmark.name,
            hint="rank it with the model behind the metric",
        )
    questions = benchmark.listed
    captions, images = questions.pairs()
    return Asked(
        benchmark.images,
        benchmark.captions,
        image=images.reshape(-1),
        candidate=captions.reshape(-1),
        references=questions.references if isinstance(questions, Rated | Preference) else None,
        name=benchmark.name,
    )


def metric_for(metric: CaptionMetric, images: Sequence[Image]) -> CaptionMetric:
    """The metric as it is asked of these: of videos PAC-S is another one than of pictures.

    Raises `InputError` where it is about pictures only, and these are videos.
    """
    moving: _Moving | None = getattr(metric, "for_videos", None)
    if moving is None or "images" not in metric.needs:
        return metric
    return moving() if any(isinstance(image, Video) for image in images) else metric


@dataclass(frozen=True)
class _Work:
    """How metrics are asked."""

    cache: Path | None
    batch_size: int
    workers: int
    progress: Progress
    note: Note

    def plan(self, asked: Sequence[Asked]) -> Plan:
        """The distinct items of all that is asked; all of it is about the same images and candidates."""
        first = asked[0]
        mentioned = [each.references.captions for each in asked if each.references is not None]
        shown = np.empty(0, np.int64) if first.image is None else first_use(first.image)
        pictures = [first.images[position] for position in shown]
        return items(
            first.images,
            first.captions,
            used_images=shown,
            image_keys=image_keys(pictures, cache=self.cache, progress=self.progress),
            used_captions=first_use(np.concatenate([first.candidate, *mentioned])),
        )

    def of_items(self, plan: Plan, identity: Identity) -> Work:
        """How whole items are embedded."""
        return Work(plan, self._shelf(identity), self.batch_size, self.workers, self.progress, self.note)

    def of_parts(self, plan: Plan, identity: Identity) -> PartsWork:
        """How parts of items are embedded."""
        return PartsWork(plan, self._shelf(identity), self.batch_size, self.workers, self.progress, self.note)

    def _shelf(self, identity: Identity) -> Cache:
        shelf = Cache(self.cache, identity)
        shelf.sweep()
        return shelf


def _answered(asked: Sequence[Asked], metric: CaptionMetric, work: _Work) -> list[Float64[ndarray, "rows"]]:
    """The scores of each of `asked`, which differ in their references only."""
    if work.batch_size < 1:
        raise InputError("batch size", given=work.batch_size, allowed="1 or more")
    if work.workers < 0:
        raise InputError("number of workers", given=work.workers, allowed="0 or more")
    asked = [each.checked(metric) for each in asked]
    answer = _answer_of(asked, metric, work)
    found = []
    for done, each in enumerate(asked):
        work.progress("comparing captions", done, len(asked))
        found.append(_finite(np.asarray(answer(each), dtype=np.float64), each, metric))
    work.progress("comparing captions", len(asked), len(asked))
    return found


def _answer_of(asked: Sequence[Asked], metric: CaptionMetric, work: _Work) -> _Answer:
    """What answers for the rows, with everything behind it embedded."""
    if isinstance(metric, TextMetric):
        return lambda each: metric.of_texts(*texts(each))
    if isinstance(metric, LocalMetric):
        return _by_parts(asked, metric, work)
    if isinstance(metric.embedder, GivenEmbeddings):
        return _by_given(asked, metric, metric.embedder)
    return _by_embeddings(asked, metric, work)


def texts(asked: Asked) -> tuple[list[str], list[list[str]]]:
    """Candidates, and the references of each (none at all where there are none), as they are written."""
    references = asked.references
    if references is None:
        return asked.texts(asked.candidate), []
    flat = asked.texts(references.captions)
    starts = references.starts.tolist()
    return asked.texts(asked.candidate), [flat[start:stop] for start, stop in itertools.pairwise(starts)]


def _by_embeddings(asked: Sequence[Asked], metric: EmbeddingMetric, work: _Work) -> _Answer:
    plan = work.plan(asked)
    embedder = metric.embedder
    of_items = work.of_items(plan, embedder.identity)
    _say_cut(plan, embedder, of_items.cache, metric, work.note)
    images = None
    if plan.images:
        images = of_items.images(lambda batches: embedder.embed_images(batches, workers=work.workers))
    captions = of_items.captions(embedder.embed_captions, embedder.lengths)
    return _rows_of(metric, captions, plan.caption_of, images, plan.image_of)


def _by_given(asked: Sequence[Asked], metric: EmbeddingMetric, given: GivenEmbeddings) -> _Answer:
    first, where = asked[0], given.identity.name
    name = first.name
    mentioned = [each.references.captions for each in asked if each.references is not None]
    used = np.unique(np.concatenate([first.candidate, *mentioned]))
    caption_of = used_rows(
        "caption", first.captions, used, given.caption_ids, len(given.captions), name, where
    )
    image_of = np.empty(0, np.int64)
    if first.image is not None:
        shown = np.unique(first.image)
        image_of = used_rows("image", first.images, shown, given.image_ids, len(given.images), name, where)
    return _rows_of(metric, _unit(given.captions), caption_of, _unit(given.images), image_of)


def _rows_of(
    metric: EmbeddingMetric,
    captions: ndarray,
    caption_of: Int64[ndarray, "captions"],
    images: ndarray | None,
    image_of: Int64[ndarray, "images"],
) -> _Answer:
    """Rows gathered in blocks, so that never all references of a load lie in memory twice."""

    def answer(asked: Asked) -> Float64[ndarray, "rows"]:
        found = np.empty(len(asked), dtype=np.float64)
        for start, stop in _blocks(asked, captions.shape[1]):
            rows = np.arange(start, stop)
            references = None if asked.references is None else asked.references.take(rows)
            found[rows] = metric.of_embeddings(
                captions[caption_of[asked.candidate[rows]]],
                None if asked.image is None or images is None else images[image_of[asked.image[rows]]],
                None if references is None else captions[caption_of[references.captions]],
                None if references is None else references.starts,
            )
        return found

    return answer


def _blocks(asked: Asked, width: int) -> list[tuple[int, int]]:
    """Rows cut so that a block gathers about as many embeddings as there is room for."""
    counts = np.full(len(asked), 2) if asked.references is None else 2 + asked.references.counts
    number = np.cumsum(counts) // max(1, _BLOCK // max(1, width))
    cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(asked)]
    return [(start, stop) for start, stop in itertools.pairwise(cuts) if start < stop]


def _by_parts(asked: Sequence[Asked], metric: LocalMetric, work: _Work) -> _Answer:
    plan = work.plan(asked)
    of_parts = work.of_parts(plan, metric.local.identity)
    _say_cut(plan, metric.local, of_parts.cache, metric, work.note)
    frames = of_parts.frames(metric.local) if plan.images else None
    tokens = of_parts.tokens(metric.local)

    def answer(each: Asked) -> ndarray:
        references = each.references
        return metric.of_parts(
            [tokens[i] for i in plan.caption_of[each.candidate]],
            None if each.image is None or frames is None else [frames[i] for i in plan.image_of[each.image]],
            None
            if references is None
            else [[tokens[i] for i in plan.caption_of[references.row(row)]] for row in range(len(each))],
        )

    return answer


def _say_cut(plan: Plan, embedder: object, shelf: Cache, metric: CaptionMetric, note: Note) -> None:
    """Tell `note` how many captions are longer than the model reads, where it can say.

    That is kept as well: a run that finds all embeddings in the cache says the same and loads no model.
    """
    over_limit = getattr(embedder, "over_limit", None)
    if over_limit is None:
        return
    known = shelf.read("limits", plan.caption_keys)
    over = 0 if known.values is None else int(known.values.sum())
    missing = np.setdiff1d(np.arange(len(plan.captions)), known.rows)
    if len(missing):
        longer = np.array([[over_limit([plan.captions[row]])] for row in missing], dtype=np.float32)
        shelf.write("limits", [plan.caption_keys[row] for row in missing], longer)
        over += int(longer.sum())
    if over:
        verb = "is" if over == 1 else "are"
        note(
            f"{metric.identity.name}: {over:,} of {len(plan.captions):,} captions {verb} longer than the "
            "model reads and cut off by its tokenizer"
        )


def _unit(rows: ndarray) -> ndarray:
    wide = rows.astype(np.float64)
    unit: ndarray = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return unit


def _finite(values: Float64[ndarray, "..."], asked: Asked, metric: CaptionMetric) -> Float64[ndarray, "rows"]:
    if values.shape != (len(asked),):
        raise ScoreError(
            "the metric gave the wrong number of scores",
            where=metric.identity.name,
            given=values.shape,
            allowed=f"({len(asked)},)",
        )
    broken = np.flatnonzero(~np.isfinite(values))
    if len(broken):
        raise ScoreError(
            f"{metric.identity.name} gave a score that is not a finite number",
            where=asked.row(int(broken[0])),
            given=values[broken[0]],
            hint=f"{len(broken)} of {len(values)} scores are NaN or infinite",
        )
    return values
