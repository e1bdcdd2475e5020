"""Region features of images in files, as an object detector left them: npz files, or a TSV.

A folder holds one npz per image, with `features` (regions, width) and `boxes` (regions, 4). One npz for all
images has `image_ids`, `features`, `boxes` and, where images have fewer regions, `num_boxes`. Boxes are
(left, top, right, bottom) in pixels beside `image_w` and `image_h`, or fractions of the image without these.
A TSV has the six columns of bottom-up attention (Anderson et al. 2018) or LXMERT's ten, with base64 of
float32; only the line of an image is read, when its turn comes.
"""

import base64
import binascii
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from jaxtyping import Float32
from numpy import ndarray

from counterfoil.benchmarks.caption_files import spellings
from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.errors import DataError, InputError, ModelError
from counterfoil.inputs.arrays import read_npz
from counterfoil.inputs.files import digest_file, digest_value, regular, unreadable
from counterfoil.models.base import ImageBatches

_COLUMNS = {
    6: {"id": 0, "width": 1, "height": 2, "count": 3, "boxes": 4, "features": 5},
    10: {"id": 0, "height": 1, "width": 2, "count": 7, "boxes": 8, "features": 9},
}
BOXES = "give boxes (left, top, right, bottom) beside the features"


@dataclass(frozen=True, eq=False)
class Regions:
    """The regions of one image; boxes are (left, top, right, bottom) as fractions of its width and height."""

    features: Float32[ndarray, "regions width"]
    boxes: Float32[ndarray, "regions 4"] | None

    def within(self, width: int, where: object) -> Float32[ndarray, "regions width"]:
        """The features, which must be `width` wide; raises `ModelError` where they are not."""
        if self.features.shape[1] != width:
            problem = "the regions do not fit the model"
            given = f"features {self.features.shape[1]:,} wide"
            hint = "the model needs the regions of the detector that it was trained with"
            raise ModelError(problem, where=where, given=given, allowed=f"{width:,} wide", hint=hint)
        return self.features


@dataclass(frozen=True, eq=False)
class RegionFile:
    """Regions by image, found by its id or by the name of its file without the ending."""

    where: Path
    readers: Mapping[str, Callable[[], Regions]]
    digest: str

    def of(self, image: Image) -> Regions:
        return self._reader(image)()

    def _reader(self, image: Image) -> Callable[[], Regions]:
        names = names_of(image)
        for name in names:
            if name in self.readers:
                return self.readers[name]
        problem, given = f"no regions for image '{image.id}'", ", ".join(names)
        allowed = f"{', '.join(islice(self.readers, 3))}, … ({len(self.readers):,} in all)"
        hint = "images are found by id or by the name of their file without the ending"
        raise DataError(problem, where=self.where, given=given, allowed=allowed, hint=hint)

    @property
    def width(self) -> int:
        return self.first().features.shape[1]

    def first(self) -> Regions:
        return next(iter(self.readers.values()))()

    def batches(self, batches: ImageBatches, *, workers: int = 0) -> Generator[list[Any], None, None]:
        readers = [[self._reader(image) for image in batch] for batch in batches]
        for batch_readers in readers:
            yield [read() for read in batch_readers]


@dataclass(frozen=True, repr=False)
class RegionReader:
    """The `ImageReader` of networks on regions; it prints as the digest of the regions, for identities."""

    width: int
    regions: RegionFile | None = None

    def read(self, image: Image) -> Float32[ndarray, "regions width"]:
        if self.regions is None:
            problem = "the network reads regions of images, and no file of them is named"
            hint = "give them with --set regions=PATH, in training with --regions PATH"
            raise InputError(problem, given=f"image '{image.id}'", hint=hint)
        return self.regions.of(image).within(self.width, self.regions.where)

    def sample(self) -> Float32[ndarray, "regions width"]:
        return np.zeros((1, self.width), dtype=np.float32)

    def __call__(self, picture: PIL.Image.Image) -> ndarray:
        """Pixels are of no use: raises `InputError`, as for a frame of a video."""
        raise InputError("the network reads regions of images by their ids, and no pictures")

    def __repr__(self) -> str:
        return f"regions({self.width}, {'' if self.regions is None else self.regions.digest})"


def names_of(image: Image) -> list[str]:
    """The names under which an image's regions may stand, in the order in which they are looked for.

    >>> names_of(Image("COCO_val2014_000000391895.jpg"))
    ['COCO_val2014_000000391895.jpg', 'COCO_val2014_000000391895', '391895']
    """
    file = image.source.path.name if isinstance(image.source, FileSource) else ""
    return list(dict.fromkeys(name for text in (image.id, file) for name in spellings(text) if name))


def read_regions(path: str | Path) -> RegionFile:
    place = Path(path)
    if place.is_dir():
        files = sorted(place.glob("*.npz"))
        if not files:
            raise DataError("the folder holds no npz files", where=place, allowed="NAME.npz per image")
        digest = digest_value({file.name: digest_file(file) for file in files})
        readers: dict[str, Callable[[], Regions]] = {file.stem: partial(_one, file) for file in files}
        return RegionFile(place, readers, digest)
    regular(place, hint="check the setting features=PATH")
    if place.suffix not in (".npz", ".tsv"):
        given, allowed = place.suffix or "no ending", ".npz, .tsv or a folder of npz files"
        raise DataError("unsupported file of regions", where=place, given=given, allowed=allowed)
    regions = _all(place) if place.suffix == ".npz" else _lines(place)
    if not regions:
        raise DataError("the file holds no regions", where=place)
    return RegionFile(place, regions, digest_file(place))


def _one(path: Path) -> Regions:
    arrays = read_npz(path, names="features boxes")
    return _regions(path, _named(arrays, "features", path), arrays.get("boxes"), *_size(arrays, path))


def _all(path: Path) -> dict[str, Callable[[], Regions]]:
    arrays: dict[str, ndarray] = read_npz(path, names="image_ids features boxes")
    ids, features = _named(arrays, "image_ids", path), _named(arrays, "features", path)
    names = list(map(str, ids.reshape(-1)))
    wanted = ("boxes", "num_boxes", "image_w", "image_h")
    per_image = {name: arrays[name] for name in wanted if name in arrays}
    for name, array in {"features": features, **per_image}.items():
        if array.ndim == 0 or len(array) != len(names):
            given = f"{name} {array.shape} for {len(names)} image_ids"
            raise DataError("arrays of different numbers of images", where=path, given=given)
    regions: dict[str, Callable[[], Regions]] = {}
    for i, name in enumerate(names):
        if name in regions:
            raise DataError("an image occurs twice", where=path, given=name)
        of_image: dict[str, Any] = {key: array[i] for key, array in per_image.items()}
        count = int(of_image.get("num_boxes", features[i].shape[0]))
        boxes = of_image["boxes"][:count] if "boxes" in of_image else None
        where = f"{path}, image '{name}'"
        regions[name] = partial(_regions, where, features[i][:count], boxes, *_size(of_image, where))
    return regions


def _lines(path: Path) -> dict[str, Callable[[], Regions]]:
    regions: dict[str, Callable[[], Regions]] = {}
    try:
        with open(path, "rb") as file:
            position = 0
            for number, line in enumerate(file, 1):
                begin, position = position, position + len(line)
                if not line.strip():
                    continue
                cells = line.count(b"\t") + 1
                if cells not in _COLUMNS:
                    problem = "a line of another number of columns"
                    allowed = "6 (image_id, image_w, image_h, num_boxes, boxes, features) or LXMERT's 10"
                    raise DataError(problem, where=f"{path}, line {number}", given=cells, allowed=allowed)
                name = line.split(b"\t", 1)[0].decode("utf-8", "replace").strip()
                if name in regions:
                    raise DataError("an image occurs twice", where=path, given=name)
                regions[name] = partial(_line, path, number, begin)
    except OSError as error:
        raise unreadable(path, error) from None
    return regions


def _line(path: Path, number: int, begin: int) -> Regions:
    where = f"{path}, line {number}"
    try:
        with open(path, "rb") as file:
            file.seek(begin)
            cells = file.readline().rstrip(b"\r\n").split(b"\t")
    except OSError as error:
        raise unreadable(path, error) from None
    columns = _COLUMNS[len(cells)]
    try:
        count, width, height = (int(cells[columns[name]]) for name in ("count", "width", "height"))
        boxes, features = (
            np.frombuffer(base64.b64decode(cells[columns[name]], validate=True), dtype="<f4")
            for name in ("boxes", "features")
        )
    except (ValueError, binascii.Error) as error:
        raise DataError(f"not a line of regions: {error}", where=where) from None
    if count < 1 or len(boxes) != 4 * count or len(features) % count:
        given = f"{count} boxes, {len(boxes)} numbers of boxes, {len(features)} of features"
        raise DataError("boxes and features do not fit their number", where=where, given=given)
    return _regions(where, features.reshape(count, -1), boxes.reshape(count, 4), width, height)


def _regions(
    where: object, features: ndarray, boxes: ndarray | None, width: float | None, height: float | None
) -> Regions:
    if features.ndim != 2 or not features.size or features.dtype.kind not in "fiu":
        given, allowed = f"{features.shape} {features.dtype}", "(regions, width) numbers"
        raise DataError("no table of features", where=where, given=given, allowed=allowed)
    features = features.astype(np.float32)
    if not np.isfinite(features).all():
        raise DataError("features that are not finite", where=where)
    if boxes is None:
        return Regions(features, None)
    if boxes.shape != (len(features), 4) or boxes.dtype.kind not in "fiu":
        given, allowed = f"{boxes.shape} for {len(features)} regions", f"({len(features)}, 4)"
        raise DataError("boxes do not fit the features", where=where, given=given, allowed=allowed)
    boxes = boxes.astype(np.float32)
    if width is not None and height is not None:
        boxes = boxes / np.array([width, height, width, height], dtype=np.float32)
    # Detectors round boxes outwards, by a pixel at most.
    if not (boxes >= -0.01).all() or not (boxes <= 1.01).all():
        given = f"{float(boxes.min()):g} to {float(boxes.max()):g} of its size"
        hint = "" if width is not None else "boxes in pixels need image_w and image_h beside them"
        raise DataError("boxes outside of the image", where=where, given=given, hint=hint)
    return Regions(features, boxes)


def _named(arrays: Mapping[str, ndarray], name: str, path: Path) -> ndarray:
    if name not in arrays:
        raise DataError(f"has no array '{name}'", where=path, given=", ".join(arrays) or "no arrays")
    return arrays[name]


def _size(arrays: Mapping[str, Any], where: object) -> tuple[float | None, float | None]:
    sides = [arrays.get(name) for name in ("image_w", "image_h")]
    if sides[0] is None or sides[1] is None:
        return None, None
    width, height = (float(np.asarray(side).reshape(-1)[0]) for side in sides)
    if not (width > 0 and height > 0):
        raise DataError("no size of an image", where=where, given=f"{width:g} x {height:g}")
    return width, height
