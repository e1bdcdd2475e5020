"""The parts of items as a dual encoder sees them: the tokens of captions, the frames of videos.

Tokens are the states of the text tower after its last norm, projected as the whole caption is (EMScore's
`encode_text(local=True)`); the whole caption is its mark of the end, so what is said of the whole and what of
the parts lies in one space. Frames are pictures like any others.
"""

from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
import PIL.Image
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.records import Caption, Image
from counterfoil.data.videos import FrameFeatures, Video
from counterfoil.errors import DataError
from counterfoil.scorers.base import Identity, text_of
from counterfoil.scorers.captions.base import CaptionTokens
from counterfoil.scorers.checkpoint_files import read_tensor
from counterfoil.scorers.images import Preparation, prepared

#: Frames that go through the image tower together; no more of them are decoded at any time.
FRAMES = 32


@dataclass(frozen=True)
class TokenIds:
    """The ids of a caption: all that fit into the model, and how many of them are its own.

    `ids` are filled up with 0 to the length that the model reads, as OpenAI's tokenizer does it, whatever the
    model's own fills up with: document frequencies are counted over all of them. The first `used` are those
    from the mark of the begin to that of the end.
    """

    ids: tuple[int, ...]
    used: int

    @classmethod
    def of(cls, own: Sequence[int], length: int) -> "TokenIds":
        """The reading of a caption's own ids by a model of that length.

        >>> TokenIds.of([7, 3, 9], 5)
        TokenIds(ids=(7, 3, 9, 0, 0), used=3)
        """
        return cls((*own, *[0] * (length - len(own))), len(own))


@runtime_checkable
class TokenTower(Protocol):
    """A text tower that gives all tokens and not just one."""

    def read(self, texts: Sequence[str]) -> list[TokenIds]:
        """The ids of each text; a text that is too long is cut off as the tokenizer does."""
        ...

    def states(self, texts: Sequence[str]) -> Any:
        """A (texts, longest, width) tensor, projected and not normalised.

        What lies behind a caption's last token means nothing.
        """
        ...


@dataclass(frozen=True, eq=False)
class LocalEncoder:
    """A `LocalEmbedder` around the towers of a dual encoder."""

    identity: Identity
    preparation: Preparation
    tower: TokenTower
    #: (frames, width) unit vectors of prepared pictures.
    unit_images: Callable[[Sequence[ndarray]], Float[ndarray, "frames width"]]
    #: (texts, longest, width) unit vectors of what `tower.states` gives.
    unit_states: Callable[[Sequence[str]], Float[ndarray, "texts longest width"]]
    #: How many of these captions are cut off.
    over_limit: Callable[[Sequence[Caption]], int]

    def embed_tokens(self, batches: Sequence[Sequence[Caption]]) -> Iterator[list[CaptionTokens]]:
        """For each batch of captions their tokens, float32.

        Captions longer than the model reads are cut off as its tokenizer does. Raises `DataError` where a
        caption's text is not at hand.
        """
        for batch in batches:
            texts = self._texts(batch)
            states = self.unit_states(texts) if texts else ()
            found = []
            for reading, rows in zip(self.tower.read(texts), states, strict=True):
                ids = np.array(reading.ids, dtype=np.int64)
                # A copy, or a caption of three tokens would keep its whole batch in memory.
                vectors = rows[: reading.used].copy()
                found.append(CaptionTokens(ids, ids[: reading.used], vectors, vectors[-1]))
            yield found

    def token_ids(self, texts: Sequence[str]) -> list[ndarray]:
        """The ids of each text within the prompt, as `Tokens.ids`; no model runs."""
        captions = [Caption("", text) for text in texts]
        return [np.array(reading.ids, dtype=np.int64) for reading in self.tower.read(self._texts(captions))]

    def embed_frames(
        self, batches: Sequence[Sequence[Image]], *, workers: int = 0
    ) -> Iterator[list[Float[np.ndarray, "frames width"]]]:
        """For each batch the unit vectors of its items' frames, float32; a picture has one.

        Videos are decoded as a stream, `FRAMES` at a time, pictures in `workers` processes. Frames that
        are embedded already are read from their files, taken as they are and made unit vectors. Raises
        `DataError` naming what cannot be read, and videos without frames.
        """
        still = [batch for batch in batches if batch and _all_pictures(batch)]
        with closing(prepared(still, self.preparation, workers=workers)) as stream:
            for batch in batches:
                if not batch:
                    yield []
                elif _all_pictures(batch):
                    yield [row[None].copy() for row in self.unit_images(next(stream))]
                else:
                    yield [self._frames(item) for item in batch]

    def _frames(self, item: Image) -> Float[ndarray, "frames width"]:
        if is_given(item):
            return given_frames(item)
        rows, waiting, times, last = [], [], [], None
        with closing(_pictures(item)) as pictures:
            for picture in pictures:
                # Where more frames are asked for than there are, one picture comes several times in a row.
                if picture is last:
                    times[-1] += 1
                    continue
                last = picture
                times.append(1)
                waiting.append(self.preparation(picture))
                if len(waiting) == FRAMES:
                    rows.append(self.unit_images(waiting))
                    waiting = []
        if waiting:
            rows.append(self.unit_images(waiting))
        if not rows:
            raise DataError("a video without frames", where=f"video '{item.id}'")
        return np.repeat(np.concatenate(rows), times, axis=0)

    def _texts(self, captions: Sequence[Caption]) -> list[str]:
        before, _, after = self.identity.prompt.partition("{}")
        return [before + text_of(caption) + after for caption in captions]


def is_given(item: Image) -> bool:
    """Whether a model has embedded the frames of this item already, so that none is needed."""
    return isinstance(item, Video) and isinstance(item.source, FrameFeatures)


def given_frames(item: Image) -> Float[ndarray, "frames width"]:
    """The unit vectors of frames that are embedded already, of the part that is asked for.

    Raises what `features_of`, `Video.part_of` and `unit` raise.
    """
    assert isinstance(item, Video)
    assert isinstance(item.source, FrameFeatures)
    return unit(item.part_of(features_of(item.source)), where=str(item.source))


def features_of(source: FrameFeatures) -> Float[ndarray, "frames width"]:
    """All of a file of frame features, float32; .pt files hold one tensor and nothing else.

    Raises `DataError` as `FrameFeatures.read`, and `ModelError` for a .pt file that only running code could
    restore.
    """
    if source.path.suffix != ".pt":
        return source.read()
    return source.checked(read_tensor(source.path))


def unit(rows: Float[ndarray, "frames width"], *, where: str) -> Float[ndarray, "frames width"]:
    """Rows of length 1, float32; raises `DataError` for a row of length 0.

    >>> unit(np.array([[3.0, 4.0]]), where="talk.npy")
    array([[0.6, 0.8]], dtype=float32)
    """
    wide = rows.astype(np.float64)
    lengths = np.linalg.norm(wide, axis=1, keepdims=True)
    if not lengths.all():
        raise DataError("a frame without length", where=f"{where}, frame {int(np.argmin(lengths))}")
    return (wide / lengths).astype(np.float32)


def _all_pictures(batch: Sequence[Image]) -> bool:
    return not any(isinstance(item, Video) for item in batch)


def _pictures(item: Image) -> Generator[PIL.Image.Image, None, None]:
    """The frames of a video, or a picture as a video of one frame; closing it closes the file."""
    if isinstance(item, Video):
        yield from item.frames()
    else:
        yield item.decode()
