"""A session: the settings of all work of the engine, and the one loop that computes what the cache lacks.

Each distinct image, caption and pair goes through a scorer once, in batches; every shard of about 256 rows is
written as soon as it is finished, so that a run that is stopped and started again repeats at most one.
"""

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float, Float32, Float64, Int64
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.records import Caption, Image
from counterfoil.data.videos import FrameFeatures, Video
from counterfoil.engine.cache import Cache, NamedRows, Vectors, pair_key
from counterfoil.engine.content import image_keys
from counterfoil.engine.plan import (
    Note,
    Progress,
    ScoringPlan,
    check_at_hand,
    id_key,
    plan,
    shards,
    silent,
    used_images,
    warn,
)
from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.base import (
    Classifier,
    Embedder,
    PairScorer,
    Scorer,
    TextEmbedder,
    abilities,
    stream_pairs,
)
from counterfoil.scorers.captions.base import CaptionTokens, LocalEmbedder

#: Captions whose lengths are compared with the model's limit together, and kept in one shard.
_COUNTED = 4096

#: Rows in one shard, unless a batch is larger.
_SHARD = 256

_Item = TypeVar("_Item")
_Values = TypeVar("_Values", Vectors, NamedRows)


@dataclass(frozen=True)
class Session:
    """The settings of work: the cache, batch size, processes, and functions for notes and progress.

    Finished shards go to the folder `cache` (None keeps nothing). `batch_size` rows go through the model at a
    time and `workers` processes decode images; neither changes what is computed. `progress` is called after
    every batch, `note` with what went wrong without stopping the run. Raises `InputError` for a batch size
    below 1 and a number of workers below 0.

    >>> Session(batch_size=64).workers
    0
    """

    cache: str | Path | None = None
    batch_size: int = 32
    workers: int = 0
    progress: Progress = silent
    note: Note = warn

    def __post_init__(self) -> None:
        if self.batch_size < 1:
            raise InputError("batch size", given=self.batch_size, allowed="1 or more")
        if self.workers < 0:
            raise InputError("number of workers", given=self.workers, allowed="0 or more")

    def shards_of(self, scorer: Any) -> Cache:
        """The finished shards of a scorer; raises `InputError` where they could be another scorer's."""
        return Cache.of(self.folder, scorer)

    @property
    def folder(self) -> Path | None:
        """The cache as a path."""
        return None if self.cache is None else Path(self.cache)

    def keys(self, images: Sequence[Image]) -> list[str]:
        """A name for the content of each image (`counterfoil.engine.content.image_keys`)."""
        return image_keys(images, cache=self.folder, progress=self.progress)

    def prepare(
        self,
        benchmark: Benchmark,
        scorer: TextEmbedder | PairScorer | Scorer | Classifier,
        *,
        reads: Collection[str] | None = None,
        pairs: tuple[Int64[ndarray, "*asked"], Int64[ndarray, "*asked"]] | None = None,
    ) -> tuple[ScoringPlan, Cache]:
        """The distinct work behind a benchmark (or behind some of its `pairs`), and the scorer's shards.

        `reads` names the kinds of item that the scorer opens, by default its `needs`, or both. Raises
        `DataError` where some of those are not at hand.
        """
        reads = getattr(scorer, "needs", ("images", "captions")) if reads is None else reads
        check_at_hand(benchmark, images="images" in reads, captions="captions" in reads)
        images = [benchmark.images[position] for position in used_images(benchmark)]
        if "images" in reads or not images:
            return plan(benchmark, self.keys(images), pairs=pairs), self.shards_of(scorer)
        return plan(benchmark, [id_key(image) for image in images], pairs=pairs), self.blind_shards_of(scorer)

    def blind_shards_of(self, scorer: Any) -> Cache:
        """The finished shards of a scorer that opens no images.

        Ids tell images apart then. An id means something in its own benchmark only, so scores of such pairs
        are not kept; those of captions alone are, where a model computes them.
        """
        alone = "classifies" in abilities(scorer) or (_of_captions(scorer) and scorer.identity.weights)
        return self.shards_of(scorer) if alone else Cache(None, scorer.identity)

    def embed(
        self, embedder: Embedder, work: ScoringPlan, kept: Cache
    ) -> tuple[Float32[ndarray, "captions width"], Float32[ndarray, "images width"]]:
        """The embeddings of all distinct captions and images; raises `ScoreError` for unequal widths."""
        images = self.embed_images(embedder, work, kept)
        captions = self.embed_captions(embedder, work, kept)
        self.note_truncated(embedder, work, kept, embedder.identity.name)
        if captions.shape[1] != images.shape[1]:
            raise ScoreError(
                "captions and images have embeddings of different widths",
                where=embedder.identity.name,
                given=f"{captions.shape[1]} and {images.shape[1]}",
            )
        return captions, images

    def embed_images(
        self, embedder: Embedder, work: ScoringPlan, kept: Cache
    ) -> Float32[ndarray, "images width"]:
        """The embeddings of the distinct images."""
        return self._images(lambda batches: embedder.embed_images(batches, workers=self.workers), work, kept)

    def embed_captions(
        self, embedder: TextEmbedder, work: ScoringPlan, kept: Cache
    ) -> Float32[ndarray, "captions width"]:
        """The embeddings of the distinct captions."""
        return self._captions(embedder.embed_captions, embedder.lengths, work, kept)

    def classify(
        self, classifier: Classifier, work: ScoringPlan, kept: Cache, *, kinds: Collection[str]
    ) -> dict[str, Float[ndarray, "items"]]:
        """The probability in [0, 1] of being synthetic of each distinct item, by kind.

        `kinds` are "images", "captions" or both. Raises `ScoreError` for numbers outside [0, 1].
        """
        found: dict[str, ndarray] = {}
        if "images" in kinds:
            found["images"] = self._images(
                lambda batches: _columns(classifier.image_probabilities(batches, workers=self.workers)),
                work,
                kept,
            )[:, 0]
        if "captions" in kinds:
            found["captions"] = self._captions(
                lambda batches: _columns(classifier.caption_probabilities(batches)),
                classifier.lengths,
                work,
                kept,
            )[:, 0]
        for values in found.values():
            if len(values) and not 0 <= values.min() <= values.max() <= 1:
                raise ScoreError(
                    "the detector gave numbers that are no probabilities",
                    where=classifier.identity.name,
                    given=f"{values.min()} to {values.max()}",
                    allowed="0 to 1",
                )
        return found

    def score_pairs(
        self, scorer: PairScorer | Scorer, work: ScoringPlan, kept: Cache
    ) -> Float64[ndarray, "pairs"]:
        """One score per distinct pair; of a scorer that reads captions alone each is scored once."""
        rows = np.arange(len(work.pairs))
        if _of_captions(scorer):
            _, rows = np.unique(work.pairs[:, 0], return_index=True)

        def score(batches: Sequence[Sequence[tuple[Image, Caption]]]) -> Iterator[ndarray]:
            for part in stream_pairs(scorer, batches, workers=self.workers):
                values = np.asarray(part, dtype=np.float64)
                yield values[:, None] if values.ndim == 1 else values

        pairs = work.pairs[rows]
        keys = [pair_key(work.caption_keys[caption], work.image_keys[image]) for caption, image in pairs]
        values = self._finish(
            Vectors("captions", [work.caption_keys[caption] for caption, _ in pairs])
            if _of_captions(scorer)
            else Vectors("pairs", keys),
            [(work.images[image], work.captions[caption]) for caption, image in pairs],
            score,
            name=lambda pair: f"image '{pair[0].id}' with caption {pair[1].text!r}",
            order=_longest_text_last if _of_captions(scorer) else None,
            kept=kept,
        ).values
        if values.shape[1] != 1:
            raise ScoreError(
                "a scorer of pairs gave more than one number for a pair", where=scorer.identity.name
            )
        found: ndarray = values[:, 0]
        return found[np.searchsorted(pairs[:, 0], work.pairs[:, 0])] if _of_captions(scorer) else found

    def frames(
        self, local: LocalEmbedder, work: ScoringPlan, kept: Cache
    ) -> list[Float[ndarray, "frames width"]]:
        """The frames of the distinct videos or images. A video is kept as soon as it is done.

        Frames that a model embedded already are read again and not kept twice.
        """
        items = work.images
        given = [row for row, item in enumerate(items) if isinstance(item.source, FrameFeatures)]
        moving = [row for row, item in enumerate(items) if isinstance(item, Video) and row not in set(given)]
        still = [row for row, item in enumerate(items) if not isinstance(item, Video)]

        def compute(batches: Sequence[Sequence[Image]]) -> Iterator[list[dict[str, ndarray]]]:
            for batch in local.embed_frames(batches, workers=self.workers):
                yield [{"vectors": vectors} for vectors in batch]

        found: dict[int, ndarray] = {}
        # A video may take minutes, so one is a shard; of pictures many go through the model together.
        for rows, size, shard, cache in (
            (given, 1, 1, Cache(None, kept.identity)),
            (moving, 1, 1, kept),
            (still, self.batch_size, _SHARD, kept),
        ):
            if rows:
                parts = self._finish(
                    NamedRows("frames", [work.image_keys[row] for row in rows]),
                    [items[row] for row in rows],
                    compute,
                    name=lambda item: f"'{item.id}'",
                    kept=cache,
                    batch_size=size,
                    shard_rows=shard,
                ).values
                found |= {row: each["vectors"] for row, each in zip(rows, parts, strict=True)}
        return [found[row] for row in range(len(items))]

    def tokens(self, local: LocalEmbedder, work: ScoringPlan, kept: Cache) -> list[CaptionTokens]:
        """The tokens of the distinct captions."""

        def compute(batches: Sequence[Sequence[Caption]]) -> Iterator[list[dict[str, ndarray]]]:
            for batch in local.embed_tokens(batches):
                yield [{"ids": t.ids, "used": t.used, "vectors": t.vectors, "whole": t.whole} for t in batch]

        parts = self._finish(
            NamedRows("tokens", work.caption_keys),
            work.captions,
            compute,
            name=_caption,
            order=_by_length(lambda captions: [len((caption.text or "").split()) for caption in captions]),
            kept=kept,
        ).values
        return [CaptionTokens(**each) for each in parts]

    def note_truncated(self, embedder: object, work: ScoringPlan, kept: Cache, name: str) -> None:
        """Note how many captions are longer than the model reads, where it can tell.

        That is kept as well: a run that finds all embeddings in the cache says the same and loads no model.
        """
        over_limit = getattr(embedder, "over_limit", None)
        if over_limit is None:
            return
        known = kept.read("limits", work.caption_keys)
        over = 0 if known.values is None else int(known.values.sum())
        missing = np.setdiff1d(np.arange(len(work.captions)), known.rows)
        for start in range(0, len(missing), _COUNTED):
            rows = missing[start : start + _COUNTED]
            longer = np.zeros((len(rows), 1), dtype=np.float32)
            # Most captions are short, so that one count of many saves counting each.
            if over_limit([work.captions[row] for row in rows]):
                longer[:, 0] = [over_limit([work.captions[row]]) for row in rows]
            kept.write("limits", [work.caption_keys[row] for row in rows], longer)
            over += int(longer.sum())
        if over:
            verb = "is" if over == 1 else "are"
            self.note(
                f"{name}: {over:,} of {len(work.captions):,} captions {verb} longer than the model reads and "
                "cut off by its tokenizer"
            )

    def _images(
        self,
        compute: Callable[[Sequence[Sequence[Image]]], Iterator[ndarray]],
        work: ScoringPlan,
        kept: Cache,
    ) -> Float32[ndarray, "images width"]:
        values = Vectors("images", work.image_keys)
        return self._finish(
            values, work.images, compute, name=lambda image: f"image '{image.id}'", kept=kept
        ).values

    def _captions(
        self,
        compute: Callable[[Sequence[Sequence[Caption]]], Iterator[ndarray]],
        lengths: Callable[[Sequence[Caption]], Sequence[int]],
        work: ScoringPlan,
        kept: Cache,
    ) -> Float32[ndarray, "captions width"]:
        values, order = Vectors("captions", work.caption_keys), _by_length(lengths)
        return self._finish(values, work.captions, compute, name=_caption, order=order, kept=kept).values

    def _finish(
        self,
        values: _Values,
        items: Sequence[_Item],
        compute: Callable[[Sequence[Sequence[_Item]]], Iterator[Any]],
        *,
        name: Callable[[_Item], str],
        kept: Cache,
        order: Callable[[Sequence[_Item]], Sequence[int]] | None = None,
        batch_size: int | None = None,
        shard_rows: int = _SHARD,
    ) -> _Values:
        """`values` with those of every item: what the cache knows, and the rest computed and kept.

        `order` sorts the items to compute; `compute` takes all their batches in one call, so that a scorer
        can prepare the next ones meanwhile, and yields the values of one batch at a time.
        """
        scores = bool(items) and isinstance(items[0], tuple)
        stage = f"{'scoring' if scores else 'embedding'} {values.kind}"
        known, broken = values.read(kept)
        for path in broken:
            self.note(f"{path}: damaged cache file passed over; what it held is computed again")
        done = len(known)
        self.progress(stage, done, len(items))
        missing = np.setdiff1d(np.arange(len(items)), known).tolist()
        if not missing:
            return values
        if order is not None:
            missing = [missing[i] for i in order([items[row] for row in missing])]
        cut = shards(missing, batch_size or self.batch_size, shard_rows=shard_rows)
        batches = [[items[row] for row in batch] for shard in cut for batch in shard]
        with closing(_closable(compute(batches))) as stream:
            for shard in cut:
                parts = []
                for batch in shard:
                    where = partial(_place, stage, name, [items[row] for row in batch])
                    part = next(stream, None)
                    if part is None:
                        raise ScoreError("the scorer stopped before all batches were done", where=where(0))
                    values.put(batch, part, where)
                    parts.append(part)
                    done += len(batch)
                    self.progress(stage, done, len(items))
                values.write(kept, [row for batch in shard for row in batch], parts)
        return values


def _place(stage: str, name: Callable[[_Item], str], batch: Sequence[_Item], at: int) -> str:
    """An item of a batch in words, for an error."""
    return f"{stage}, {name(batch[at])}"


def _closable(stream: Iterator[Any]) -> Generator[Any]:
    """The stream as a generator: closing it stops the scorer's workers at once where something fails."""
    yield from stream


def _columns(stream: Iterator[ndarray]) -> Iterator[ndarray]:
    """Probabilities as the columns that the cache keeps."""
    for part in stream:
        yield np.asarray(part)[:, None]


def _of_captions(scorer: Any) -> bool:
    """Whether a scorer of pairs looks at no image, so that a caption's score is that of all its pairs."""
    return tuple(getattr(scorer, "needs", ())) == ("captions",) and "scores_pairs" in abilities(scorer)


def _longest_text_last(pairs: Sequence[tuple[Image, Caption]]) -> list[int]:
    """The order of captions by their length, so that little of a batch is padding."""
    texts = [caption.text or "" for _, caption in pairs]
    return sorted(range(len(texts)), key=lambda row: (len(texts[row]), texts[row]))


def _caption(caption: Caption) -> str:
    return f"caption {caption.text!r}"


def _by_length(
    lengths: Callable[[Sequence[Caption]], Sequence[int]],
) -> Callable[[Sequence[Caption]], list[int]]:
    """The order of captions by length, so that little of a batch is padding.

    The text breaks ties: the order is that of the captions alone, whatever benchmark or earlier run they come
    from.
    """

    def order(captions: Sequence[Caption]) -> list[int]:
        long = lengths(captions)
        return sorted(range(len(captions)), key=lambda i: (long[i], captions[i].text or ""))

    return order
