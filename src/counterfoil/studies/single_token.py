"""Captions as one part, for networks whose towers have no tokens in the space of the pictures."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.records import Caption, Image, PixelSource
from counterfoil.data.videos import Video
from counterfoil.scorers.base import Identity
from counterfoil.scorers.captions.base import CaptionTokens

#: Frames that are embedded together.
_FRAMES = 64


@dataclass(frozen=True, eq=False)
class WholeCaptions:
    """A `LocalEmbedder` around an embedder of whole items: a caption is its own only token.

    EMScore then matches the caption as a whole to every frame, and document frequencies mean nothing. Frames
    are pictures like any others.
    """

    embedder: Any

    @property
    def identity(self) -> Identity:
        """The embedder's, and that its parts are whole captions and frames."""
        own: Identity = self.embedder.identity
        return replace(own, options={**own.options, "parts": "whole captions, frames"})

    @property
    def local(self) -> "WholeCaptions":
        """Itself: what a metric of parts asks a model for."""
        return self

    def embed_tokens(self, batches: Sequence[Sequence[Caption]]) -> Iterator[list[CaptionTokens]]:
        """For each batch of captions their one token each."""
        only = np.zeros(1, dtype=np.int64)
        for rows in self.embedder.embed_captions(batches):
            yield [CaptionTokens(only, only, row[None].copy(), row.copy()) for row in rows]

    def embed_frames(
        self, batches: Sequence[Sequence[Image]], *, workers: int = 0
    ) -> Iterator[list[Float[np.ndarray, "frames width"]]]:
        """For each batch the unit vectors of its items' frames; a picture has one."""
        for batch in batches:
            if any(isinstance(item, Video) for item in batch):
                yield [self._frames(item) for item in batch]
            else:
                (rows,) = self.embedder.embed_images([batch])
                yield [row[None].copy() for row in rows]

    def _frames(self, item: Image) -> Float[ndarray, "frames width"]:
        if not isinstance(item, Video):
            (row,) = self.embedder.embed_images([[item]])
            return np.asarray(row)
        frames = [
            Image(f"{item.id}, frame {number}", PixelSource(np.asarray(frame)))
            for number, frame in enumerate(item.frames())
        ]
        parts = [frames[start : start + _FRAMES] for start in range(0, len(frames), _FRAMES)]
        return np.concatenate(list(self.embedder.embed_images(parts)))
