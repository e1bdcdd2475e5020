"""The parts of items, each computed once and kept: the frames of videos, the tokens of captions."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.videos import FrameFeatures, Video
from counterfoil.engine.cache import Cache, Kind, Parts
from counterfoil.engine.plan import ScoringPlan, shards
from counterfoil.engine.progress import Note, Progress
from counterfoil.errors import ScoreError
from counterfoil.scorers.captions.base import CaptionTokens, LocalEmbedder

#: Rows of parts in one shard of captions; and of pictures, which are videos of one frame.
_SHARD = 256


@dataclass(frozen=True, eq=False)
class PartsWork:
    """What is asked of an embedder of parts, and how."""

    plan: ScoringPlan
    cache: Cache
    batch_size: int
    workers: int
    progress: Progress
    note: Note

    def frames(self, local: LocalEmbedder) -> list[Float[ndarray, "frames width"]]:
        """The frames of the distinct videos or images. A video is kept as soon as it is done.

        Frames that a model embedded already are read again and not kept twice.
        """
        items = self.plan.images
        found: list[Float[ndarray, "frames width"] | None] = [None] * len(items)
        given = [row for row, item in enumerate(items) if isinstance(item.source, FrameFeatures)]
        moving = [row for row, item in enumerate(items) if isinstance(item, Video) and row not in set(given)]
        still = [row for row, item in enumerate(items) if not isinstance(item, Video)]

        def compute(batches: Sequence[Sequence[int]]) -> Iterator[list[Parts]]:
            stream = local.embed_frames(
                [[items[i] for i in batch] for batch in batches], workers=self.workers
            )
            for batch in stream:
                yield [{"vectors": vectors} for vectors in batch]

        unkept = Cache(None, self.cache.identity)
        # A video may take minutes, so one is a shard; of pictures many go through the model together.
        for rows, size, shard, cache in (
            (given, 1, 1, unkept),
            (moving, 1, 1, self.cache),
            (still, self.batch_size, _SHARD, self.cache),
        ):
            some = self._finish(
                "frames",
                [self.plan.image_keys[row] for row in rows],
                compute,
                rows=rows,
                cache=cache,
                cut=lambda missing, size=size, shard=shard: shards(missing, size, shard_rows=shard),  # type: ignore[misc]
                name=lambda row: f"'{items[row].id}'",
            )
            for row, parts in zip(rows, some, strict=True):
                found[row] = parts["vectors"]
        return [vectors for vectors in found if vectors is not None]

    def tokens(self, local: LocalEmbedder) -> list[CaptionTokens]:
        """The tokens of the distinct captions."""
        items = self.plan.captions

        def compute(batches: Sequence[Sequence[int]]) -> Iterator[list[Parts]]:
            for batch in local.embed_tokens([[items[i] for i in batch] for batch in batches]):
                yield [{"ids": t.ids, "used": t.used, "vectors": t.vectors, "whole": t.whole} for t in batch]

        def cut(missing: Sequence[int]) -> list[list[list[int]]]:
            # Captions of like length share a batch, so little of it is padding.
            order = sorted(
                missing, key=lambda row: (len((items[row].text or "").split()), items[row].text or "")
            )
            return shards(order, self.batch_size, shard_rows=_SHARD)

        rows = list(range(len(items)))
        parts = self._finish(
            "tokens",
            self.plan.caption_keys,
            compute,
            rows=rows,
            cache=self.cache,
            cut=cut,
            name=lambda row: f"caption {items[row].text!r}",
        )
        return [CaptionTokens(**each) for each in parts]

    def _finish(
        self,
        kind: Kind,
        keys: Sequence[str],
        compute: Callable[[Sequence[Sequence[int]]], Iterator[list[Parts]]],
        *,
        rows: Sequence[int],
        cache: Cache,
        cut: Callable[[Sequence[int]], list[list[list[int]]]],
        name: Callable[[int], str],
    ) -> list[dict[str, Any]]:
        """The parts of the items `rows`: what the cache knows, and the rest computed in shards and kept."""
        if not rows:
            return []
        stage = f"embedding {kind}"
        known, broken = cache.read_parts(kind, keys)
        for path in broken:
            self.note(f"{path}: damaged cache file passed over; what it held is computed again")
        found: dict[int, Parts] = {rows[at]: parts for at, parts in known.items()}
        key_of = dict(zip(rows, keys, strict=True))
        self.progress(stage, len(found), len(rows))
        missing = [row for row in rows if row not in found]
        cuts = cut(missing)
        batches = [batch for shard in cuts for batch in shard]
        if batches:
            with closing(_closable(compute(batches))) as stream:
                for shard in cuts:
                    for batch in shard:
                        found |= zip(batch, _checked(next(stream, None), batch, name, stage), strict=True)
                        self.progress(stage, len(found), len(rows))
                    _check_widths(found.values(), kind, cache)
                    done = [row for batch in shard for row in batch]
                    cache.write_parts(kind, [key_of[row] for row in done], [found[row] for row in done])
        _check_widths(found.values(), kind, cache)
        return [dict(found[row]) for row in rows]


def _closable(stream: Iterator[list[Parts]]) -> Any:
    """The stream as a generator: closing it stops workers at once where something fails."""
    yield from stream


def _checked(
    part: list[Parts] | None, batch: Sequence[int], name: Callable[[int], str], stage: str
) -> list[Parts]:
    """The parts of one batch, if they are finite and there are some for each of its items."""
    if part is None or len(part) != len(batch):
        raise ScoreError(
            "the scorer gave the wrong number of items",
            where=f"{stage}, batch of {name(batch[0])}",
            given=0 if part is None else len(part),
            allowed=str(len(batch)),
        )
    for row, parts in zip(batch, part, strict=True):
        if not len(parts["vectors"]):
            raise ScoreError("an item without any part", where=f"{stage}, {name(row)}")
        if not all(np.isfinite(array).all() for array in parts.values() if array.dtype.kind == "f"):
            raise ScoreError(
                "the scorer gave numbers that are not finite",
                where=f"{stage}, {name(row)}",
                hint="a half-precision model may overflow: try --precision fp32",
            )
    return part


def _check_widths(found: Iterable[Parts], kind: Kind, cache: Cache) -> None:
    widths = {parts["vectors"].shape[1] for parts in found}
    if len(widths) > 1:
        raise ScoreError(f"{kind} of different widths", where=cache.identity.name, given=sorted(widths))
