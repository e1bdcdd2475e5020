"""The prepared pictures of a training set, kept in memory or decoded ahead, and their augmentation by a seed.

A picture is shown in part, perhaps mirrored, perhaps with a patch erased; a caption lacks some of its words.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import PIL.Image
from jaxtyping import Int
from numpy import ndarray

from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.engine.plan import Note, Progress, silent
from counterfoil.errors import DataError, InputError
from counterfoil.models.images import Preparation, inputs_of, prepared
from counterfoil.train.recipes.base import Recipe

#: Share of the picture's area that a crop covers, and its proportions, as torchvision's defaults have them.
_AREA = (0.08, 1.0)
_PROPORTIONS = (3 / 4, 4 / 3)
#: The same of a patch that is erased: timm's defaults, which PCME's released code has.
_ERASED_AREA = (0.02, 1 / 3)
_ERASED_PROPORTIONS = (0.3, 1 / 0.3)
#: What is erased has the mean colour of CLIP's pictures, about 0 in what the network sees.
ERASED = (123, 117, 104)


@dataclass(frozen=True)
class Variation:
    """What is done to pictures and captions of a stage; nothing by default."""

    #: Whether a random part of each picture is shown, mirrored every second time.
    crops: bool = False
    #: How probably a patch of a picture is erased.
    erasing: float = 0.0
    #: How probably each word of a caption is left out.
    word_drop: float = 0.0

    @classmethod
    def of(cls, recipe: Recipe) -> "Variation":
        return cls(recipe.augment == "crop-flip", recipe.erasing, recipe.word_drop)

    @property
    def of_pictures(self) -> bool:
        """Whether pictures differ from one time to the next."""
        return self.crops or self.erasing > 0


UNVARIED = Variation()
CROPPED = Variation(crops=True)


@dataclass(frozen=True)
class Varied(Image):
    """An image that decodes to what `variation` makes of it, a crop at `size`; `key` decides what that is."""

    key: tuple[int, ...] = ()
    size: tuple[int, int] = (224, 224)
    variation: Variation = CROPPED

    def decode(self) -> PIL.Image.Image:
        rng = np.random.default_rng(self.key)
        picture = super().decode()
        if self.variation.crops:
            box = crop(*picture.size, rng=rng)
            picture = picture.resize(self.size, PIL.Image.Resampling.BILINEAR, box=box)
            if rng.random() < 0.5:
                picture = picture.transpose(PIL.Image.Transpose.FLIP_LEFT_RIGHT)
        if self.variation.erasing and rng.random() < self.variation.erasing:
            patch = erased(*picture.size, rng=rng)
            if patch is not None:
                picture = picture.copy()
                picture.paste(ERASED, patch)
        return picture


def varied(
    image: Image, *, key: tuple[int, ...], size: tuple[int, int], variation: Variation = CROPPED
) -> Varied:
    return Varied(image.id, image.source, image.crop, image.photo, key=key, size=size, variation=variation)


def crop(width: int, height: int, *, rng: np.random.Generator) -> tuple[int, int, int, int]:
    """A random part of a picture as (left, top, right, bottom), as torchvision's RandomResizedCrop draws it.

    Its area is uniform in 8 to 100 per cent, its proportions log-uniform in 3:4 to 4:3; of ten draws the
    first that fits counts, else the largest allowed part in the middle.

    >>> crop(100, 50, rng=np.random.default_rng(0))
    (14, 18, 35, 46)
    """
    box = _rectangle((width, height), (width, height), _AREA, _PROPORTIONS, rng)
    if box is not None:
        return box
    low, high = _PROPORTIONS
    w, h = min(width, max(1, round(height * high))), min(height, max(1, round(width / low)))
    left, top = (width - w) // 2, (height - h) // 2
    return left, top, left + w, top + h


def erased(width: int, height: int, *, rng: np.random.Generator) -> tuple[int, int, int, int] | None:
    """A random patch of a picture as (left, top, right, bottom), as torchvision's RandomErasing draws it.

    Area uniform in 2 to 33 per cent, proportions log-uniform in 3:10 to 10:3; the first of ten draws that
    fits, or None (Zhong et al. 2020, Random Erasing Data Augmentation, algorithm 1, with timm's limits).

    >>> erased(100, 50, rng=np.random.default_rng(0))
    (23, 0, 48, 44)
    """
    return _rectangle((width, height), (width - 1, height - 1), _ERASED_AREA, _ERASED_PROPORTIONS, rng)


def without_words(text: str, *, key: tuple[int, ...], share: float) -> str:
    """The text without some words, each left out with the probability `share`; `key` decides, one word stays.

    >>> without_words("a red dog on a  sofa", key=(1, 4), share=0.5)
    'red dog on a sofa'
    """
    words = text.split()
    rng = np.random.default_rng(key)
    stays = rng.random(len(words)) >= share
    if words and not stays.any():
        stays[rng.integers(len(words))] = True
    return " ".join(word for word, stay in zip(words, stays, strict=True) if stay)


def _rectangle(
    size: tuple[int, int],
    largest: tuple[int, int],
    area: tuple[float, float],
    proportions: tuple[float, float],
    rng: np.random.Generator,
) -> tuple[int, int, int, int] | None:
    """The first of ten draws that is no larger than `largest`, anywhere in a picture of `size`."""
    width, height = size
    for _ in range(10):
        covered = width * height * rng.uniform(*area)
        shape = np.exp(rng.uniform(*np.log(proportions)))
        w, h = round((covered * shape) ** 0.5), round((covered / shape) ** 0.5)
        if 0 < w <= largest[0] and 0 < h <= largest[1]:
            left, top = int(rng.integers(0, width - w + 1)), int(rng.integers(0, height - h + 1))
            return left, top, left + w, top + h
    return None


#: Bytes of prepared pictures that are kept in memory.
MAX_PREPARED = 1 << 30
#: Pictures that are prepared at a time before training starts.
_AT_ONCE = 64


@dataclass(frozen=True)
class BatchImages:
    """The pictures of one batch: positions of images and, where they are to be varied, a key for each."""

    positions: Int[ndarray, "n"]
    keys: tuple[tuple[int, ...], ...] | None = None
    variation: Variation = UNVARIED


@dataclass(frozen=True, eq=False)
class Mapped(Sequence[Any]):
    """What `function` gives for each of `items`, worked out when it is asked for: no list of all is made."""

    function: Callable[[Any], Any]
    items: Sequence[Any]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index):  # type: ignore[no-untyped-def]
        return self.function(self.items[index])


class ImageStore:
    """The images at `used` positions, prepared.

    Where all fit into `memory` bytes (and are not varied) they are prepared once, now, and kept. Otherwise
    each batch is decoded when its turn comes, `workers` processes working ahead. An image that cannot be read
    raises `DataError`; with `skip` all are tried now, and those that failed are `unreadable`.
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
        memory: int = MAX_PREPARED,
        progress: Progress = silent,
    ) -> None:
        self._images, self._preparation, self._workers = images, preparation, workers
        self.unreadable: tuple[int, ...] = ()
        self._pixels: ndarray | None = None
        self._rows = np.full(len(images), -1, dtype=np.int64)
        # A prepared picture: the first one that can be read.
        first: ndarray | None = None
        for position in used if skip else used[:1]:
            with suppress(DataError) if skip else nullcontext():
                first = inputs_of(preparation, images[position])
                break
        if first is None:
            given = f"{len(used)} images"
            raise InputError("no image can be read", given=given, hint="check the image folder")
        shape = first.shape
        self._size = (shape[1], shape[0])
        keeps = not varies and len(used) * first.nbytes <= memory
        if not keeps and not skip:
            return
        read = partial(_tried, sent=keeps) if skip else inputs_of
        pixels = np.empty((len(used), *shape), dtype=first.dtype) if keeps else None
        cuts = [used[start : start + _AT_ONCE] for start in range(0, len(used), _AT_ONCE)]
        batches = [[images[i] for i in cut] for cut in cuts]
        failed: list[int] = []
        done = 0
        progress("preparing pictures", 0, len(used))
        stream = prepared(batches, preparation, workers=workers, read=read)
        for cut, batch in zip(cuts, stream, strict=True):
            for position, picture in zip(cut, batch, strict=True):
                if not picture.size:
                    failed.append(int(position))
                elif pixels is not None and picture.shape != shape:
                    pixels = None  # Pictures of different shapes make no array.
                elif pixels is not None:
                    pixels[done] = picture
                    self._rows[position] = done
                    done += 1
            progress("preparing pictures", min(len(used), int(np.searchsorted(used, cut[-1])) + 1), len(used))
        self.unreadable, self._pixels = tuple(failed), pixels

    @property
    def in_memory(self) -> bool:
        """Whether the pictures are kept, so that nothing is decoded any more."""
        return self._pixels is not None

    def batches(self, requests: Sequence[BatchImages]) -> Generator[Sequence[ndarray], None, None]:
        """Each batch's pictures, (height, width, 3) bytes each, in order."""
        if self._pixels is None:
            wanted = Mapped(self._requested, requests)
            yield from prepared(wanted, self._preparation, workers=self._workers)
            return
        for request in requests:
            yield list(self._pixels[self._rows[request.positions]])

    def _requested(self, request: BatchImages) -> list[Image]:
        images = [self._images[i] for i in request.positions]
        how: dict[str, Any] = {"size": self._size, "variation": request.variation}
        keyed = zip(images, request.keys or (), strict=True)
        return images if request.keys is None else [varied(image, key=key, **how) for image, key in keyed]


def readable_rows(
    data: TrainingSet,
    rows: Int[ndarray, "n"],
    roles: Sequence[str],
    stores: Iterable[ImageStore],
    preparation: Preparation,
    note: Note,
) -> Int[ndarray, "readable"]:
    """Those of the rows of which every picture can be read; `note` says so where some cannot."""
    lost = sorted({position for store in stores for position in store.unreadable})
    if not lost:
        return rows
    gone = np.any([np.isin(data.need(role)[rows], lost) for role in roles], axis=0)
    say_unreadable(data.images, lost, int(gone.sum()), note, preparation)
    return rows[~gone]


def say_unreadable(
    images: Sequence[Image], positions: Sequence[int], rows: int, note: Note, preparation: Preparation
) -> None:
    """One line that counts and names the images whose rows are left out, and why the first one is."""
    names = ", ".join(str(images[i].source or images[i].id) for i in positions[:3])
    more, reason = ", ..." if len(positions) > 3 else "", ""
    try:
        inputs_of(preparation, images[positions[0]])
    except DataError as error:
        # The reason begins with the name.
        names, reason = (str(error), "") if len(positions) == 1 else (names, f" ({error})")
    many = f"{len(positions):,} image{'s' if len(positions) > 1 else ''} cannot be read"
    note(f"{many}, {rows:,} row{' is' if rows == 1 else 's are'} left out: {names}{more}{reason}")


def _tried(preparation: Preparation, image: Image, *, sent: bool) -> ndarray:
    """What a preparation makes of an image: nothing where it cannot be read, one number unless `sent`."""
    try:
        array = inputs_of(preparation, image)
    except DataError:
        return np.empty(0, dtype=np.uint8)
    return array if sent else np.zeros(1, dtype=np.uint8)
