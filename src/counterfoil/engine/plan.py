"""The plan of an evaluation: the ability that answers, the distinct items and pairs, and their shards.

Shards are cut the same everywhere and found in the cache when done. So any process with the model can
compute any of them, executors can be mixed, and any process may be killed.
"""

import warnings
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import FORMS
from counterfoil.benchmarks.records import Caption, FileSource, Image
from counterfoil.engine.cache import Cache, NamedRows, Parts, StreamedParts, Vectors, shard_name
from counterfoil.errors import DataError, InputError, ScoreError
from counterfoil.inputs.files import digest
from counterfoil.models.base import Ability, Model, PairModel, abilities, stream_pairs

if TYPE_CHECKING:
    from counterfoil.models.captions.base import LocalEmbedder

#: Called with (stage, done, total) when a stage starts and after every batch. `done` does not start at zero
#: where the cache knew a part already.
Progress = Callable[[str, int, int], None]
#: Called with one line about something that did not stop the run but should be known.
Note = Callable[[str], None]


def silent(stage: str, done: int, total: int) -> None:
    """Default progress: none."""


def warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=2)


#: Positions of captions and of images whose scores are asked for, both of one shape.
PairPositions = tuple[Int64[ndarray, "*asked"], Int64[ndarray, "*asked"]]
_EVERY = frozenset(FORMS)
#: What errors call the models of an ability, and the forms it answers; the first ability that fits is used.
ANSWERS: Mapping[Ability, tuple[str, frozenset[str]]] = {
    "embeds": ("a dual encoder", _EVERY),
    "scores_pairs": ("a model of pairs", _EVERY - {"paraphrase"}),
    "embeds_texts": ("a text encoder", frozenset({"paraphrase"})),
    "picks": ("a model that picks options", frozenset({"quad", "choice"})),
    "classifies": ("a detector", frozenset({"quad", "choice"})),
    "reads_references": ("a caption metric", _EVERY - {"gallery", "paraphrase"}),
    "learns": ("a model that learns from other questions", _EVERY - {"gallery", "paraphrase"}),
    "given_scores": ("a table of answers (csv, json, parquet)", _EVERY - {"gallery"}),
    "given_embeddings": ("embeddings (npz)", _EVERY),
    "given_similarity": ("a similarity (npy)", frozenset({"gallery"})),
    "given_rankings": ("rankings (json)", frozenset({"gallery"})),
}


def ability_for(model: Any, benchmark: Benchmark) -> Ability:
    able, form = abilities(model), benchmark.questions.form
    for ability in able:
        if form in ANSWERS[ability][1]:
            return ability
    if not able:
        raise TypeError(f"{type(model).__name__} is no model: it declares no ability in `does`")
    kind, forms = ANSWERS[able[0]]
    problem = f"{kind} cannot answer questions of form '{form}'"
    allowed = [name for name in FORMS if name in forms]
    hint = f"this form is answered by {', '.join(kind for kind, forms in ANSWERS.values() if form in forms)}"
    raise InputError(problem, where=model.identity.name, given=benchmark.name, allowed=allowed, hint=hint)


@dataclass(frozen=True, eq=False)
class ScoringPlan:
    """The least work that answers a benchmark: distinct items with keys, and distinct pairs by image.

    `image_of` and `caption_of` give the distinct item of every item of the benchmark (-1: unused), `row_of`
    the row of `pairs` for every score asked for.
    """

    images: tuple[Image, ...]
    captions: tuple[Caption, ...]
    image_keys: tuple[str, ...]
    caption_keys: tuple[str, ...]
    image_of: Int64[ndarray, "all_images"]
    caption_of: Int64[ndarray, "all_captions"]
    pairs: Int64[ndarray, "pairs 2"]
    row_of: Int64[ndarray, "..."]

    def spread(self, scores: Float64[ndarray, "pairs"]) -> Float64[ndarray, "..."]:
        """One score per distinct pair to one per pair that the questions list, in their shape."""
        return scores[self.row_of]


def check_at_hand(benchmark: Benchmark, *, images: bool = True, captions: bool = True) -> None:
    """Raise one `DataError` where captions, or images, that questions ask about are not at hand."""
    used_captions, used_images = benchmark.questions.used()
    texts = [benchmark.captions[i] for i in used_captions]
    without = [caption.id for caption in texts if caption.text is None]
    if captions and without:
        problem = "captions have no text"
        given = f"{len(without)} of {len(texts)} without, first: {few(without, '')}"
        hint = "give the benchmark's own files with --data, or measure given scores (given:PATH)"
        raise DataError(problem, where=benchmark.source or benchmark.name, given=given, hint=hint)
    if images:
        hint = (
            "give their folder with --images, measure only the questions whose images are there with "
            "--available, or measure given scores (given:PATH)"
        )
        pictures = [benchmark.images[i] for i in used_images]
        check_images(pictures, benchmark.source or benchmark.name, hint)


def check_images(images: Sequence[Image], where: object, hint: str) -> None:
    gone = [image for image in images if not at_hand(image.source)]
    if gone:
        first = few([image.id for image in gone], "") + (f" ({gone[0].sought})" if gone[0].sought else "")
        given = f"{len(gone)} of {len(images)} missing, first: {first}"
        raise DataError("images are not at hand", where=where, given=given, hint=hint)


def deduplicate(
    benchmark: Benchmark, image_keys: Sequence[str], *, pairs: PairPositions | None = None
) -> ScoringPlan:
    """The distinct items and pairs behind `benchmark`; `pairs` asks for other scores than its questions."""
    questions = benchmark.questions
    wanted = pairs or questions.pairs()
    return items(benchmark.images, benchmark.captions, questions.used(), image_keys, wanted)


_NONE = np.empty(0, np.int64)
T = TypeVar("T")


def items(
    images: Sequence[Image],
    captions: Sequence[Caption],
    used: tuple[Int64[ndarray, "used_captions"], Int64[ndarray, "used_images"]],
    image_keys: Sequence[str],
    pairs: PairPositions = (_NONE, _NONE),
) -> ScoringPlan:
    """The distinct items among captions and images in use, and the (caption, image) `pairs` asked for."""
    used_captions, used_images = used
    texts = [captions[position].text for position in used_captions]
    names = [(captions[p].id,) if t is None else t for p, t in zip(used_captions, texts, strict=True)]
    image_of, first_i = _distinct(used_images, image_keys, len(images))
    caption_of, first_c = _distinct(used_captions, names, len(captions))
    asked_c, asked_i = caption_of[pairs[0]].ravel(), image_of[pairs[1]].ravel()
    # One number per pair, so that the pairs of an image lie together: a model of pairs decodes it once.
    distinct, inverse = np.unique(asked_i * len(first_c) + asked_c, return_inverse=True)
    distinct_pairs = np.stack([distinct % len(first_c), distinct // len(first_c)], axis=1)
    return ScoringPlan(
        images=tuple(images[used_images[row]] for row in first_i),
        captions=tuple(captions[used_captions[row]] for row in first_c),
        image_keys=tuple(image_keys[row] for row in first_i),
        caption_keys=tuple(caption_key(captions[used_captions[row]]) for row in first_c),
        image_of=image_of,
        caption_of=caption_of,
        pairs=distinct_pairs.astype(np.int64),
        row_of=inverse.reshape(pairs[0].shape).astype(np.int64),
    )


def batches(things: Sequence[T], size: int) -> list[list[T]]:
    return [list(things[start : start + size]) for start in range(0, len(things), size)]


def shards(rows: Sequence[int], batch_size: int, *, shard_rows: int = 256) -> list[list[list[int]]]:
    """`rows` cut into shards of whole batches, so that a run that goes on meets the same batches again.

    >>> shards(range(7), 2, shard_rows=5)
    [[[0, 1], [2, 3]], [[4, 5], [6]]]
    """
    whole = batches(rows, batch_size * max(1, shard_rows // batch_size))
    return [batches(shard, batch_size) for shard in whole]


def _distinct(used: ndarray, names: Sequence[Hashable], items: int) -> tuple[ndarray, list[int]]:
    """For every item its number among the distinct ones (-1 if unused), and each number's first row."""
    number: dict[Hashable, int] = {}
    first: list[int] = []
    of_item = np.full(items, -1, dtype=np.int64)
    for row, (position, name) in enumerate(zip(used, names, strict=True)):
        if name not in number:
            number[name] = len(first)
            first.append(row)
        of_item[position] = number[name]
    return of_item, first


def id_key(image: Image) -> str:
    """A name for an image whose content is not at hand or does not matter."""
    return digest(f"\0id\0{image.id}\0{image.crop}".encode("utf-8", "surrogatepass"))


def caption_key(caption: Caption) -> str:
    """A name for a caption: by its text, or by its id where that is not at hand."""
    # The two kinds of name must never meet: a text cannot start with NUL and "id".
    data = f"\0id\0{caption.id}" if caption.text is None else caption.text
    return digest(data.encode("utf-8", "surrogatepass"))


def at_hand(source: Any) -> bool:
    if source is None or isinstance(source, FileSource):
        return source is not None and source.exists()
    from counterfoil.benchmarks.videos import FrameFeatures, FrameFolder

    if isinstance(source, FrameFolder | FrameFeatures):
        return FileSource(source.path).exists()
    return source is not None


def few(names: Sequence[str], quote: str = "'") -> str:
    return ", ".join(f"{quote}{name}{quote}" for name in names[:3]) + (", ..." if len(names) > 3 else "")


#: Called with a number of items whose values are there now.
Advance = Callable[[int], None]
#: (model, batches, processes that decode images) -> the values of each batch, as a stream.
Compute = Callable[[Any, Sequence[Sequence[Any]], int], Iterator[Any]]


@dataclass(frozen=True, eq=False)
class ShardWork:
    """Items whose values `compute` gets from a model; `cut` holds their rows, by shard and batch.

    All of it but the model travels to other processes by pickle, so `compute` is a function of a module,
    or a part of one.
    """

    stage: str
    model: Any
    compute: Compute
    values: Vectors | NamedRows | StreamedParts
    cache: Cache
    items: Sequence[Any]
    cut: Sequence[Sequence[Sequence[int]]]
    workers: int = 0

    def __len__(self) -> int:
        return len(self.cut)

    def rows(self, shard: int) -> list[int]:
        return [row for batch in self.cut[shard] for row in batch]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """What each shard is called in the cache: equal keys in equal order, equal names."""
        return tuple(shard_name([self.values.keys[row] for row in self.rows(n)]) for n in range(len(self)))

    def finished(self, shards: Collection[int], advance: Advance) -> set[int]:
        """Those shards that are in the cache now, whatever process computed them; they are counted."""
        names = self.cache.shards(self.values.kind)
        done = {shard for shard in shards if self.names[shard] in names}
        for shard in sorted(done):
            advance(len(self.rows(shard)))
        return done

    def run(self, shards: Sequence[int], advance: Advance) -> None:
        """Compute shards in one stream of batches, and keep each when its last batch is there."""
        batches = [[self.items[row] for row in batch] for shard in shards for batch in self.cut[shard]]
        stream = self.compute(self.model, batches, self.workers)
        try:
            for shard in shards:
                parts = []
                for batch in self.cut[shard]:
                    where = partial(self._place, batch)
                    values = next(stream, None)
                    if values is None:
                        raise ScoreError("the model stopped before all batches were done", where=where(0))
                    self.values.put(batch, values, where)
                    parts.append(values)
                    advance(len(batch))
                self.values.write(self.cache, self.rows(shard), parts)
        finally:
            # A generator that is closed stops the model's workers at once where something fails.
            getattr(stream, "close", lambda: None)()

    def _place(self, batch: Sequence[int], position: int) -> str:
        match item := self.items[batch[position]]:
            case (Image() as image, Caption() as caption):
                words = f"image '{image.id}' with caption {caption.text!r}"
            case Caption():
                words = f"caption {item.text!r}"
            case Image():
                # A video is named alone.
                words = f"image '{item.id}'" if type(item) is Image else f"'{item.id}'"
            case _:
                row = getattr(item, "row", None)
                words = "an item" if row is None else f"row '{row}'"
        return f"{self.stage}, {words}"


def _by_method(method: str, model: Any, batches: Sequence[Sequence[Any]], workers: int) -> Iterator[ndarray]:
    """What a method of the model gives of batches, a row per item; processes decode images."""
    of = getattr(model, method)
    stream = of(batches, workers=workers) if "image" in method else of(batches)
    return map(_column, stream) if method.endswith("probabilities") else stream


image_vectors = partial(_by_method, "embed_images")
caption_vectors = partial(_by_method, "embed_captions")
image_probabilities = partial(_by_method, "image_probabilities")
caption_probabilities = partial(_by_method, "caption_probabilities")


def pair_scores(model: PairModel | Model, batches: Any, workers: int) -> Iterator[ndarray]:
    for part in stream_pairs(model, batches, workers=workers):
        try:
            values = np.asarray(part, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise ScoreError("gives no numbers", where=model.identity.name, given=str(error)) from None
        yield _column(values) if values.ndim == 1 else values


def frame_parts(model: "LocalEmbedder", batches: Any, workers: int) -> Iterator[list[Parts]]:
    for batch in model.embed_frames(batches, workers=workers):
        yield [{"vectors": vectors} for vectors in batch]


def token_parts(model: "LocalEmbedder", batches: Any, workers: int) -> Iterator[list[Parts]]:
    for batch in model.embed_tokens(batches):
        yield [{"ids": t.ids, "used": t.used, "vectors": t.vectors, "whole": t.whole} for t in batch]


def _column(values: Any) -> ndarray:
    return np.asarray(values)[:, None]
