"""Computation of what the cache lacks: embeddings of items and scores of pairs, each once, kept in shards."""

from collections.abc import Callable, Collection, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.records import Caption, Image
from counterfoil.engine.cache import Cache, Found, Kind, pair_key
from counterfoil.engine.content import check_at_hand, id_key, image_keys
from counterfoil.engine.plan import ScoringPlan, shards, used_images
from counterfoil.engine.progress import Note, Progress
from counterfoil.errors import InputError, ScoreError
from counterfoil.scorers.base import Classifier, Embedder, Scorer

#: Captions that are counted together, and kept in one shard.
_COUNTED = 4096


def check_amounts(batch_size: int, workers: int) -> None:
    """Raise `InputError` for a batch of nothing, and for fewer than no workers."""
    if batch_size < 1:
        raise InputError("batch size", given=batch_size, allowed="1 or more")
    if workers < 0:
        raise InputError("number of workers", given=workers, allowed="0 or more")


def prepared(
    benchmark: Benchmark,
    scorer: Embedder | Scorer | Classifier,
    *,
    cache: Path | None,
    progress: Progress,
    asked: Collection[str] | None = None,
) -> tuple[list[str], Cache]:
    """Names of the contents of the images that are asked about, and the scorer's shelf in the cache.

    `asked` says which kinds it is asked about, by default all that it needs. Raises `DataError` where some of
    those are not at hand.
    """
    asked = needs(scorer) if asked is None else asked
    check_at_hand(benchmark, images="images" in asked, captions="captions" in asked)
    pictures = [benchmark.images[position] for position in used_images(benchmark)]
    if "images" in asked:
        keys = image_keys(pictures, cache=cache, progress=progress)
        shelf = Cache.of(cache, scorer)
    else:
        # Nothing is read, so images are told apart by their ids; and what is known by ids is not kept, since
        # an id means something in its own benchmark only. A classifier asked about captions knows no pairs.
        keys = [id_key(image) for image in pictures]
        shelf = Cache.of(cache if isinstance(scorer, Classifier) else None, scorer)
    return keys, shelf


def needs(scorer: object) -> Collection[str]:
    """What a scorer must have at hand: images and captions, unless its `needs` says that less will do."""
    return getattr(scorer, "needs", ("images", "captions"))


@dataclass(frozen=True, eq=False)
class Work:
    """What is asked of a scorer of single items, and how."""

    plan: ScoringPlan
    cache: Cache
    batch_size: int
    workers: int
    progress: Progress
    note: Note

    def images(
        self, compute: Callable[[Sequence[Sequence[Image]]], Iterator[ndarray]]
    ) -> Float32[ndarray, "images width"]:
        """What `compute` gives for the distinct images, batch by batch."""
        items = self.plan.images
        return _finish(
            "images",
            self.plan.image_keys,
            lambda row: f"image '{items[row].id}'",
            lambda batches: compute([[items[i] for i in batch] for batch in batches]),
            order=list,
            cache=self.cache,
            batch_size=self.batch_size,
            progress=self.progress,
            note=self.note,
        )

    def captions(
        self,
        compute: Callable[[Sequence[Sequence[Caption]]], Iterator[ndarray]],
        lengths: Callable[[Sequence[Caption]], Sequence[int]],
    ) -> Float32[ndarray, "captions width"]:
        """What `compute` gives for the distinct captions, batch by batch."""
        items = self.plan.captions

        def by_length(rows: Sequence[int]) -> list[int]:
            # Captions of like length share a batch, so little of it is padding. The text breaks ties: the
            # order is that of the captions alone, whatever benchmark or earlier run they come from.
            captions = [items[row] for row in rows]
            long = lengths(captions)
            order = sorted(range(len(rows)), key=lambda i: (long[i], captions[i].text or ""))
            return [rows[i] for i in order]

        return _finish(
            "captions",
            self.plan.caption_keys,
            lambda row: f"caption {items[row].text!r}",
            lambda batches: compute([[items[i] for i in batch] for batch in batches]),
            order=by_length,
            cache=self.cache,
            batch_size=self.batch_size,
            progress=self.progress,
            note=self.note,
        )


def embed(
    scorer: Embedder,
    work: ScoringPlan,
    cache: Cache,
    batch_size: int,
    workers: int,
    progress: Progress,
    note: Note,
) -> tuple[Float32[ndarray, "captions width"], Float32[ndarray, "images width"]]:
    """The embeddings of all distinct captions and images of `work`."""
    asked = Work(work, cache, batch_size, workers, progress, note)
    images = asked.images(lambda batches: scorer.embed_images(batches, workers=workers))
    captions = asked.captions(scorer.embed_captions, scorer.lengths)
    say_cut(work, scorer, cache, scorer.identity.name, note)
    if captions.shape[1] != images.shape[1]:
        raise ScoreError(
            "captions and images have embeddings of different widths",
            where=scorer.identity.name,
            given=f"{captions.shape[1]} and {images.shape[1]}",
        )
    return captions, images


def say_cut(plan: ScoringPlan, embedder: object, cache: Cache, name: str, note: Note) -> None:
    """Tell `note` how many captions are longer than the model reads, where it can say.

    That is kept as well: a run that finds all embeddings in the cache says the same and loads no model.
    """
    over_limit = getattr(embedder, "over_limit", None)
    if over_limit is None:
        return
    known = cache.read("limits", plan.caption_keys)
    over = 0 if known.values is None else int(known.values.sum())
    missing = np.setdiff1d(np.arange(len(plan.captions)), known.rows)
    for start in range(0, len(missing), _COUNTED):
        rows = missing[start : start + _COUNTED]
        longer = np.zeros((len(rows), 1), dtype=np.float32)
        # Most captions are short, so that one count of many saves counting each.
        if over_limit([plan.captions[row] for row in rows]):
            longer[:, 0] = [over_limit([plan.captions[row]]) for row in rows]
        cache.write("limits", [plan.caption_keys[row] for row in rows], longer)
        over += int(longer.sum())
    if over:
        verb = "is" if over == 1 else "are"
        note(
            f"{name}: {over:,} of {len(plan.captions):,} captions {verb} longer than the model reads and cut "
            "off by its tokenizer"
        )


def score_pairs(
    scorer: Scorer, work: ScoringPlan, cache: Cache, batch_size: int, progress: Progress, note: Note
) -> Float64[ndarray, "pairs"]:
    """One score per distinct pair, from a scorer that looks at pairs."""

    def items(row: int) -> tuple[Image, Caption]:
        caption, image = work.pairs[row]
        return work.images[image], work.captions[caption]

    def score(batches: Sequence[Sequence[int]]) -> Iterator[ndarray]:
        for batch in batches:
            images, captions = zip(*map(items, batch), strict=True)
            values = np.asarray(scorer.score(list(images), list(captions)), dtype=np.float64)
            yield values[:, None] if values.ndim == 1 else values

    def name(row: int) -> str:
        image, caption = items(row)
        return f"image '{image.id}' with caption {caption.text!r}"

    keys = [pair_key(work.caption_keys[caption], work.image_keys[image]) for caption, image in work.pairs]
    values = _finish(
        "pairs",
        keys,
        name,
        score,
        order=list,
        cache=cache,
        batch_size=batch_size,
        progress=progress,
        note=note,
    )
    if values.shape[1] != 1:
        raise ScoreError("a scorer of pairs gave more than one number for a pair", where=scorer.identity.name)
    return values[:, 0]


#: What each kind of work is called in progress messages.
_STAGES: dict[Kind, str] = {
    "images": "embedding images",
    "captions": "embedding captions",
    "pairs": "scoring pairs",
}


def _finish(
    kind: Kind,
    keys: Sequence[str],
    name: Callable[[int], str],
    compute: Callable[[Sequence[Sequence[int]]], Iterator[ndarray]],
    *,
    order: Callable[[Sequence[int]], list[int]],
    cache: Cache,
    batch_size: int,
    progress: Progress,
    note: Note,
) -> ndarray:
    """(len(keys), width) values: what the cache knows, and the rest computed in shards and kept.

    `order` sorts the rows to compute; `compute` takes all their batches in one call, so that a scorer can
    prepare the next ones meanwhile, and yields one array per batch. `name` says which item a row is.
    """
    stage = _STAGES[kind]
    known = cache.read(kind, keys)
    for path in known.broken:
        note(f"{path}: damaged cache file passed over; what it held is computed again")
    values = _placed(known, len(keys))
    done = len(known.rows)
    progress(stage, done, len(keys))
    missing = np.setdiff1d(np.arange(len(keys)), known.rows).tolist()
    if not missing:
        assert values is not None
        return values

    cut = shards(order(missing), batch_size)
    with closing(_closable(compute([batch for shard in cut for batch in shard]))) as stream:
        for shard in cut:
            parts: list[ndarray] = []
            for batch in shard:
                part = _checked(next(stream, None), batch, name, stage)
                if values is None:
                    values = np.empty((len(keys), part.shape[1]), dtype=part.dtype)
                if part.shape[1] != values.shape[1]:
                    raise ScoreError(
                        "embeddings of different widths",
                        where=f"{cache.identity.name}, {name(batch[0])}",
                        given=f"{part.shape[1]} after {values.shape[1]}",
                    )
                values[batch] = part
                parts.append(part)
                done += len(batch)
                progress(stage, done, len(keys))
            rows = [row for batch in shard for row in batch]
            cache.write(kind, [keys[row] for row in rows], np.concatenate(parts))
    assert values is not None
    return values


def _placed(known: Found, rows: int) -> ndarray | None:
    if known.values is None:
        return None
    values = np.empty((rows, known.values.shape[1]), dtype=known.values.dtype)
    values[known.rows] = known.values
    return values


def _closable(stream: Iterator[ndarray]) -> Generator[ndarray]:
    """The stream as a generator: closing it stops the scorer's workers at once where something fails."""
    yield from stream


def _checked(part: ndarray | None, batch: Sequence[int], name: Callable[[int], str], stage: str) -> ndarray:
    """The numbers of one batch, if they are finite and one row for each of its items."""
    if part is None:
        raise ScoreError(
            "the scorer stopped before all batches were done", where=f"{stage}, {name(batch[0])}"
        )
    if part.ndim != 2 or len(part) != len(batch):
        raise ScoreError(
            "the scorer gave the wrong number of rows",
            where=f"{stage}, batch of {name(batch[0])}",
            given=part.shape,
            allowed=f"({len(batch)}, width)",
        )
    finite = np.isfinite(part).all(axis=1)
    if not finite.all():
        bad = np.flatnonzero(~finite)
        raise ScoreError(
            "the scorer gave numbers that are not finite",
            where=f"{stage}, {name(batch[bad[0]])}",
            given=f"{len(bad)} of {len(batch)} rows of the batch",
            hint="a half-precision model may overflow: try --precision fp32",
        )
    return part
