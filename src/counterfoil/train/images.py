"""The prepared pictures of a training set: kept in memory where they fit, else decoded ahead."""

from collections.abc import Generator, Sequence
from dataclasses import dataclass

import numpy as np
import PIL.Image
from jaxtyping import Int
from numpy import ndarray

from counterfoil.data.records import FileSource, Image
from counterfoil.engine.progress import Note, Progress, silent, warn
from counterfoil.errors import DataError, InputError
from counterfoil.scorers.images import Preparation, prepared
from counterfoil.train.augmentation import UNVARIED, Variation, varied

#: Bytes of prepared pictures that are kept in memory.
KEPT = 1 << 30
#: Pictures that are prepared at a time before training starts.
_AT_ONCE = 64


@dataclass(frozen=True)
class ImageRequest:
    """The pictures of one batch: positions of images and, where they are to be varied, a key for each."""

    positions: Int[ndarray, "n"]
    keys: tuple[tuple[int, ...], ...] | None = None
    variation: Variation = UNVARIED


class ImageStore:
    """The images at `used` positions, prepared.

    Where all of them fit into `kept` bytes (and are not varied) they are prepared once, now, and kept as
    bytes. Otherwise each batch is decoded when its turn comes, `workers` processes working ahead.

    An image that cannot be read raises `DataError` naming its file; with `skip` all are tried now, and the
    positions of those that failed are `unreadable`, to be left out.
    """

    def __init__(
        self,
        images: Sequence[Image],
        used: Int[ndarray, "distinct"],
        preparation: Preparation,
        *,
        workers: int = 0,
        varies: bool = False,
        skip: bool = False,
        kept: int = KEPT,
        progress: Progress = silent,
    ) -> None:
        self._images, self._preparation, self._workers = images, preparation, workers
        self.unreadable: tuple[int, ...] = ()
        self._pixels: ndarray | None = None
        self._places = np.full(len(images), -1, dtype=np.int64)
        shape = self._probe(used, skip)
        self._size = (shape[1], shape[0])
        keeps = not varies and len(used) * int(np.prod(shape)) <= kept
        if not keeps and not skip:
            return
        way: Preparation = _Lenient(preparation, seen_only=not keeps) if skip else preparation
        pixels = np.empty((len(used), *shape), dtype=np.uint8) if keeps else None
        cuts = [used[at : at + _AT_ONCE] for at in range(0, len(used), _AT_ONCE)]
        batches = [[_tried(images[i]) if skip else images[i] for i in cut] for cut in cuts]
        failed: list[int] = []
        done = 0
        progress("preparing pictures", 0, len(used))
        for cut, batch in zip(cuts, prepared(batches, way, workers=workers), strict=True):
            for position, picture in zip(cut, batch, strict=True):
                if not picture.size:
                    failed.append(int(position))
                elif pixels is not None:
                    if picture.shape != shape:
                        # Pictures of different shapes make no array.
                        pixels = None
                    else:
                        pixels[done] = picture
                        self._places[position] = done
                        done += 1
            progress("preparing pictures", min(len(used), int(np.searchsorted(used, cut[-1])) + 1), len(used))
        self.unreadable, self._pixels = tuple(failed), pixels

    @property
    def in_memory(self) -> bool:
        """Whether the pictures are kept, so that nothing is decoded any more."""
        return self._pixels is not None

    def batches(self, asked: Sequence[ImageRequest]) -> Generator[Sequence[ndarray], None, None]:
        """Each batch's pictures, (height, width, 3) bytes each, in order."""
        if self._pixels is not None:
            for each in asked:
                yield list(self._pixels[self._places[each.positions]])
        else:
            yield from prepared(
                _Images(self._images, asked, self._size), self._preparation, workers=self._workers
            )

    def _probe(self, used: ndarray, skip: bool) -> tuple[int, ...]:
        """The shape of a prepared picture: that of the first one that can be read."""
        for position in used:
            try:
                return self._preparation(self._images[position].decode()).shape
            except DataError:
                if not skip:
                    raise
        raise InputError("no image can be read", given=f"{len(used)} images", hint="check the image folder")


def why(image: Image) -> str:
    """What is wrong with an image that cannot be read, "" where nothing is."""
    try:
        image.decode()
    except DataError as error:
        return str(error)
    return ""


def say_unreadable(images: Sequence[Image], positions: Sequence[int], rows: int, note: Note = warn) -> None:
    """One line that counts and names the images whose rows are left out, and why the first one is."""
    names = ", ".join(str(images[i].source or images[i].id) for i in positions[:3])
    more = ", ..." if len(positions) > 3 else ""
    first = why(images[positions[0]])
    if len(positions) == 1:
        # The reason begins with the name.
        names, first = first or names, ""
    many = f"{len(positions):,} image{'s' if len(positions) > 1 else ''} cannot be read"
    gone = sum(not _there(images[i]) for i in positions)
    many += f" ({gone:,} of them {'are' if gone > 1 else 'is'} not there)" if gone else ""
    left = f"{rows:,} row{'s are' if rows > 1 else ' is'} left out"
    note(f"{many}, {left}: {names}{more}" + (f" ({first})" if first else ""))


def _there(image: Image) -> bool:
    """Whether an image has a source, and its file is one."""
    source = image.source
    return source is not None and (not isinstance(source, FileSource) or source.path.is_file())


class _Images(Sequence[Sequence[Image]]):
    """The images of each batch, looked up when they are asked for: no list of all is made."""

    def __init__(self, images: Sequence[Image], asked: Sequence[ImageRequest], size: tuple[int, int]) -> None:
        self._images, self._asked, self._size = images, asked, size

    def __len__(self) -> int:
        return len(self._asked)

    def __getitem__(self, at):  # type: ignore[no-untyped-def]
        asked = self._asked[at]
        images = [self._images[i] for i in asked.positions]
        if asked.keys is None:
            return images
        return [
            varied(image, key=key, size=self._size, variation=asked.variation)
            for image, key in zip(images, asked.keys, strict=True)
        ]


@dataclass(frozen=True)
class _Tried(Image):
    """An image that decodes to a picture without pixels where it cannot be read."""

    def decode(self) -> PIL.Image.Image:
        try:
            return super().decode()
        except DataError:
            return PIL.Image.new("RGB", (0, 0))


def _tried(image: Image) -> _Tried:
    return _Tried(image.id, image.source, image.crop, image.photo)


@dataclass(frozen=True)
class _Lenient:
    """Prepare what was read; of the rest nothing. With `seen_only` the pixels stay in the worker."""

    preparation: Preparation
    seen_only: bool

    def __call__(self, picture: PIL.Image.Image) -> ndarray:
        if not picture.width:
            return np.empty((0, 0, 3), dtype=np.uint8)
        return np.zeros((1, 1, 3), dtype=np.uint8) if self.seen_only else self.preparation(picture)
