"""Images and captions, the two kinds of item, both lazy; pictures in files, archives, cells of tables.

An item whose content is not at hand has no source (or no text), and a benchmark made of such items can still
be measured from given scores.
"""

import bisect
import io
import itertools
import os
import posixpath
import re
import threading
import unicodedata
import warnings
from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any, Protocol, SupportsIndex, TypeVar, overload, runtime_checkable

import numpy as np
import PIL.Image
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.image_files import image_names, image_path, is_image_folder, is_outside_allowed
from counterfoil.errors import DataError
from counterfoil.inputs.arrays import read_npy
from counterfoil.inputs.files import Location, display_path, is_distant, location, read_bytes
from counterfoil.inputs.pictures import in_rgb, open_picture

Item = TypeVar("Item")


class Lazy(Sequence[Item]):
    """A sequence by its length and `item`, which makes the one at a place from 0."""

    @abstractmethod
    def item(self, place: int) -> Item:
        """The item at `place`, which is at least 0 and below the length."""

    @overload
    def __getitem__(self, index: SupportsIndex) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: SupportsIndex | slice) -> Item | list[Item]:
        """The item at a place, also from the end, or those of a slice; raises `IndexError` for no place."""
        if isinstance(index, slice):
            return [self.item(place) for place in range(*index.indices(len(self)))]
        place = index.__index__()
        place += len(self) if place < 0 else 0
        if not 0 <= place < len(self):
            raise IndexError(index)
        return self.item(place)


#: Images of more pixels than this are refused: a file of a few kilobytes can unpack to gigabytes.
MAX_PIXELS = 128_000_000


@runtime_checkable
class Source(Protocol):
    """Where the encoded bytes of an image come from. Must be picklable: worker processes read it."""

    def read(self) -> bytes:
        """The encoded bytes (JPEG, PNG, ...)."""
        ...

    def __str__(self) -> str:
        """Where that is, for error messages."""
        ...


@runtime_checkable
class Pictured(Source, Protocol):
    """A source that can have its picture without bytes that would have to be decoded."""

    def picture(self) -> PIL.Image.Image | None:
        """What `read` decodes to, to the last pixel, in RGB; None where that has to be decoded."""
        ...


@dataclass(frozen=True)
class FileSource:
    """An image file on disk, or at a distance where the path is of a URL (`counterfoil.storage`)."""

    path: Path

    def read(self) -> bytes:
        """The bytes of the file; raises `DataError` where there is no such file."""
        if isinstance(where := location(self.path), Location):
            from counterfoil.storage.files import read_file

            return read_file(where)
        return read_bytes(self.path, missing="no such image file", hint="check the image folder")

    def exists(self) -> bool:
        """Whether there is such a file; one at a distance was in a listing, and is taken to be there."""
        return is_distant(self.path) or self.path.exists()

    def __str__(self) -> str:
        return display_path(self.path)


@dataclass(frozen=True)
class TarSource:
    """An image in an uncompressed tar file, on disk or behind a URL: `length` bytes from `offset` on."""

    path: Path
    offset: int
    length: int
    member: str

    def read(self) -> bytes:
        """The bytes of the member; raises `DataError` where the shard is gone or was cut off."""
        if isinstance(where := location(self.path), Location):
            from counterfoil.storage.files import read_file

            data = read_file(where, self.offset, self.offset + self.length) if self.length else b""
        else:
            try:
                with open(self.path, "rb") as file:
                    file.seek(self.offset)
                    data = file.read(self.length)
            except OSError as error:
                raise DataError(f"image cannot be read: {error.strerror or error}", where=self) from None
        if len(data) < self.length:
            raise DataError("the shard is cut off", where=self)
        return data

    def __str__(self) -> str:
        return f"{display_path(self.path)}, {self.member}"


@dataclass(frozen=True)
class BytesSource:
    """Encoded bytes held in memory (a Parquet cell, a rendered scene)."""

    data: bytes
    where: str = "bytes in memory"

    def read(self) -> bytes:
        """The bytes themselves."""
        return self.data

    def __str__(self) -> str:
        return self.where


@dataclass(frozen=True, eq=False)
class PixelSource:
    """An RGB picture held in memory as it is, (height, width, 3) bytes: decoding it is free."""

    pixels: NDArray[np.uint8]
    where: str = "pixels in memory"

    def read(self) -> bytes:
        """The picture as PNG, which loses nothing."""
        buffer = io.BytesIO()
        self.picture().save(buffer, format="PNG")
        return buffer.getvalue()

    def picture(self) -> PIL.Image.Image:
        """The picture itself."""
        return PIL.Image.fromarray(self.pixels)

    def __str__(self) -> str:
        return self.where


@dataclass(frozen=True)
class BgrFrame:
    """A frame of a video: an npy file of (height, width, 3) bytes in the order blue, green, red."""

    path: Path

    def read(self) -> bytes:
        """The frame as PNG, which loses nothing."""
        return self._pixels().read()

    def picture(self) -> PIL.Image.Image:
        """The frame in RGB; raises `DataError` for an array of another shape or type."""
        return self._pixels().picture()

    def _pixels(self) -> PixelSource:
        pixels = read_npy(self.path, hint="check the image folder")
        if pixels.ndim != 3 or pixels.shape[2] != 3 or pixels.dtype != np.uint8 or not pixels.size:
            given = f"{pixels.dtype} {pixels.shape}"
            raise DataError("not a frame", where=self.path, given=given, allowed="bytes (height, width, 3)")
        return PixelSource(np.ascontiguousarray(pixels[:, :, ::-1]), str(self.path))

    def __str__(self) -> str:
        return str(self.path)


@dataclass(frozen=True)
class Image:
    """One image: a name that is unique in its benchmark, a source, and an optional crop.

    `crop` is (left, top, right, bottom) in pixels, applied after decoding (ARO's relations look at one
    region of a larger photograph). `photo` names the photograph that several images may show: empty where
    the id itself does, None where it is not recorded, so that the bytes decide.
    """

    id: str
    source: Source | None = None
    crop: tuple[int, int, int, int] | None = None
    photo: str | None = ""
    #: Where it was looked for, in words, of one that is not at hand.
    sought: str = field(default="", compare=False, repr=False, kw_only=True)

    def read(self) -> bytes:
        """The encoded bytes; raises `DataError` where the image is not at hand."""
        if self.source is None:
            hint = "give the folder that holds the images with --images, or measure from given scores"
            raise DataError(f"image '{self.id}' is not at hand", given=self.sought or None, hint=hint)
        return self.source.read()

    def checked(self) -> bytes:
        """The encoded bytes of what is a picture: what is stored or published is no other file."""
        data = self.read()
        if not isinstance(self.source, Pictured):
            held = isinstance(self.source, BytesSource)
            decode(data, where=f"image '{self.id}'" if held else str(self.source))
        return data

    def decode(self) -> PIL.Image.Image:
        """The picture in RGB, as stored; raises `DataError` naming the file where it is broken."""
        picture = self.source.picture() if isinstance(self.source, Pictured) else None
        if picture is not None:
            return picture if self.crop is None else cropped(picture, self.crop, where=str(self.source))
        return decode(self.read(), where=str(self.source), crop=self.crop)


@dataclass(frozen=True)
class Caption:
    """One caption: a name that is unique in its benchmark, and a text (None where it is not at hand)."""

    id: str
    text: str | None = None


def caption_key(text: str) -> str:
    """What captions that read alike have in common, however their letters are composed (NFC, NFD)."""
    return unicodedata.normalize("NFC", text)


def image_key(name: str) -> str:
    """What names of one image have in common, however a path is written."""
    return posixpath.normpath(unicodedata.normalize("NFC", name))


def distinct(values: Iterable[Any]) -> tuple[list[Any], NDArray[np.int64]]:
    """The different values in order of first appearance, and the place of each one among them."""
    number: dict[Any, int] = {}
    positions = np.array([number.setdefault(value, len(number)) for value in values], dtype=np.int64)
    return list(number), positions


def words(text: str) -> list[str]:
    """The words of a caption: runs of letters, digits, underscores and apostrophes, in lower case.

    Captions are of the same words where these are, sorted, the same: 572 of SugarCrepe's 7,511 pairs are.
    """
    return _WORD.findall(text.lower())


_WORD = re.compile(r"[\w']+")


def same_words(first: str | None, second: str | None) -> bool:
    """Whether two texts have the same words, as often, in another order (Winoground section 3)."""
    if not first or not second:
        return False
    mine, other = words(first), words(second)
    return mine != other and Counter(mine) == Counter(other)


def decode(data: bytes, *, where: str, crop: tuple[int, int, int, int] | None = None) -> PIL.Image.Image:
    """Encoded bytes to an RGB picture.

    Palettes, grey levels and transparency become RGB as `convert("RGB")` does, which is what every official
    evaluation of this field does; grey levels of 16 bits by their high byte (`in_rgb`).
    """
    try:
        with warnings.catch_warnings():
            # Pillow only warns of a decompression bomb up to twice its limit; ours is an error. What else it
            # warns of (broken EXIF data, a palette with transparency) leaves the pixels as they are.
            warnings.simplefilter("ignore")
            with open_picture(io.BytesIO(data)) as picture:
                width, height = picture.size
                if width * height > MAX_PIXELS:
                    what = "image too large, it may be a decompression bomb"
                    given = f"{width} x {height} pixels"
                    raise DataError(what, where=where, given=given, allowed=f"at most {MAX_PIXELS:,} pixels")
                rgb = in_rgb(picture)
    except DataError:
        raise
    except PIL.Image.DecompressionBombError as error:
        raise DataError(f"image too large, it may be a decompression bomb ({error})", where=where) from None
    except PIL.UnidentifiedImageError:
        raise DataError("not an image file", where=where, given=f"{len(data)} bytes") from None
    # On a damaged picture Pillow's plugins raise anything from OSError to KeyError.
    except Exception as error:
        words = " ".join(str(error).split())[:200] or type(error).__name__
        what = f"image cannot be decoded: {words}"
        raise DataError(what, where=where, hint="is the file cut off?") from None
    return cropped(rgb, crop, where=where) if crop else rgb


def cropped(picture: PIL.Image.Image, crop: tuple[int, int, int, int], *, where: str) -> PIL.Image.Image:
    """A part of a picture; what of it lies outside of the picture is black, as Pillow has it."""
    left, top, right, bottom = crop
    fits = left < right and top < bottom and (right - left) * (bottom - top) <= MAX_PIXELS
    if not fits or min(right, bottom) <= 0 or left >= picture.width or top >= picture.height:
        what = "the crop is no part of the picture"
        allowed = f"left, top, right, bottom within {picture.width} x {picture.height} pixels"
        raise DataError(what, where=where, given=f"({left}, {top}, {right}, {bottom})", allowed=allowed)
    return picture.crop(crop)


@dataclass(frozen=True)
class Photos:
    """A folder of image files, each of its folders listed once."""

    folder: Path | None
    data_folder: Path | None = None
    _listed: dict[str, Mapping[str, bool]] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        if self.folder is not None and not is_image_folder(self.folder):
            what = "no such image folder"
            raise DataError(what, where=self.folder, hint="check the path given with --images")

    def source(self, name: str, *, where: object = None) -> FileSource | None:
        """The file of that name (in a subfolder, or with its whole path), or None where there is none."""
        folder = self.folder or (self.data_folder if Path(name).is_absolute() else None)
        if folder is None:
            return None
        parent, file = os.path.split(name)
        if parent not in self._listed:
            self._listed[parent] = image_names(folder / parent)
        link = self._listed[parent].get(file)
        return None if link is None else FileSource(image_path(name, folder, where=where, link=link))

    def first(self, name: str, suffixes: Sequence[str]) -> FileSource | None:
        """The file of that name, or of one with another of these endings; None where there is none."""
        stem = name.rpartition(".")[0] if "." in name.rpartition("/")[2] else name
        sources = (self.source(path) for path in (name, *(stem + suffix for suffix in suffixes)))
        return next((source for source in sources if source is not None), None)

    def sources(self, names: Iterable[str]) -> dict[str, FileSource | None]:
        """A source or None for each distinct name; raises `DataError` where the folder has none of them."""
        source_of = {name: self.source(name) for name in dict.fromkeys(names)}
        if self.folder is not None and not any(source_of.values()):
            what = f"none of the {len(source_of):,} images is in this folder"
            hint = f"it should hold files like {next(iter(source_of))}"
            raise DataError(what, where=self.folder, hint=hint)
        return source_of


def image_folder(data: Path | None, images: Path | None) -> Path | None:
    """The folder the user named, else the folder `images` beside the data where there is one."""
    if images is not None or data is None:
        return images
    pictures = (data if data.is_dir() else data.parent) / "images"
    return pictures if pictures.is_dir() else None


def held_source(cell: Any, where: str) -> Source | str:
    """The image that a cell holds (bytes, `{"bytes", "path"}`, a picture), or the path that it names."""
    if isinstance(cell, CellSource):
        return cell
    if isinstance(cell, dict):
        cell = cell["bytes"] if cell.get("bytes") is not None else cell.get("path")
    if isinstance(cell, bytes) and cell:
        return BytesSource(cell, where)
    if isinstance(cell, PIL.Image.Image):
        return PixelSource(np.asarray(in_rgb(cell)), where)
    if not isinstance(cell, str) or not cell.strip():
        raise DataError("no image", where=where, allowed="the path of an image file, or its bytes")
    return cell


@dataclass(frozen=True)
class CellSource:
    """An image in a cell of a Parquet file, read when asked for."""

    path: Path
    column: str
    row: int
    anywhere: bool = field(default_factory=is_outside_allowed, compare=False, repr=False)

    def read(self) -> bytes:
        """The bytes in the cell; raises `DataError` where it is empty or the file cannot be read."""
        try:
            # A relative path names another file once the working folder changes.
            file = self.path.resolve()
            with one_reader:
                metadata = parquet_file(file, file_age(file)).metadata
                groups = range(metadata.num_row_groups)
                ends = list(itertools.accumulate(metadata.row_group(i).num_rows for i in groups))
                group = bisect.bisect_right(ends, self.row)
                cells = _row_group(file, file_age(file), self.column, group)
            cell = cells[self.row - (ends[group - 1] if group else 0)]
        except (pa.ArrowException, OSError, KeyError, ValueError) as error:
            what = f"image cannot be read: {error}"
            raise DataError(what, where=self, hint="is the file cut off?") from None
        if isinstance(cell, dict):
            path = cell.get("path")
            cell = cell.get("bytes")
            if cell is None and path:
                folder = self.path.parent
                return FileSource(image_path(path, folder, where=self, anywhere=self.anywhere)).read()
        if not isinstance(cell, bytes) or not cell:
            raise DataError("the cell holds no image", where=self)
        return cell

    def __str__(self) -> str:
        return f"{self.path}, row {self.row + 1}, column '{self.column}'"


#: Images are read by several threads, and Arrow's Parquet reader crashes the process when two of them use it.
#: With the lock, a row group is also read once where each thread would have read it for itself.
one_reader = threading.Lock()


def file_age(path: Path) -> int:
    """Part of every cache key, so that a file that was replaced is opened again."""
    return path.stat().st_mtime_ns


@lru_cache(maxsize=32)
def parquet_file(path: Path, age: int) -> Any:
    # Not mapped into memory: a mapped file that is cut off meanwhile ends the process by a signal.
    from pyarrow.parquet import ParquetFile

    return ParquetFile(path)


@lru_cache(maxsize=4)
def _row_group(path: Path, age: int, column: str, group: int) -> list[Any]:
    # Rows are read in order: with the last groups kept, each group is read once.
    # No threads: this runs in worker processes that already share the machine.
    table = parquet_file(path, age).read_row_group(group, columns=[column], use_threads=False)
    # Cells of a damaged file may point outside its bytes, and Arrow follows them.
    table.validate(full=True)
    # As Python's own values: of an array that outlives other groups Arrow has read freed memory.
    cells: list[Any] = table.column(column).to_pylist()
    return cells
