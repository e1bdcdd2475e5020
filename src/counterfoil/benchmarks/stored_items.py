"""Images and videos as files in the folder of a benchmark, called by their digest: equal ones are kept once.

A picture and a video file keep the bytes they had, and so do frame features. Frames of their own (a folder of
pictures, a scene that moves) become a folder with a picture each, 000000.png and so on.
"""

import io
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from shutil import move, rmtree
from typing import Any

import pyarrow as pa

from counterfoil.benchmarks.image_files import image_path
from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.benchmarks.video_frames import Sampling
from counterfoil.benchmarks.videos import FEATURES, VIDEOS, FrameFeatures, FrameFolder, FrameStack, Video
from counterfoil.errors import DataError, StorageError
from counterfoil.inputs.columns import ColumnSchema, Schema
from counterfoil.store import digest, digest_file, storage_error, write_bytes

_MAGIC = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp", b"BM": ".bmp"}

#: How `save_items` calls what it writes: a digest, of files with an ending.
_KEPT = re.compile(r"[0-9a-f]{32}(\.\w+)?")

#: What the source of a video is, in the column `video`; null where the item is a picture.
_FILE, _FRAMES, _FEATURES, _ABSENT = "file", "frames", "features", "absent"


_KINDS: tuple[tuple[type, str], ...] = (
    (type(None), _ABSENT),
    (FrameFeatures, _FEATURES),
    (FrameStack, _FRAMES),
    (object, _FILE),
)
_SECONDS = ColumnSchema("real", null=True, low=0, required=False)
IMAGES = Schema(
    {
        "id": ColumnSchema("text"),
        "file": ColumnSchema("text", null=True),
        "digest": ColumnSchema("text", null=True),
        "crop": ColumnSchema("wholes", null=True),
        "photo": ColumnSchema("text", null=True),
        "video": ColumnSchema("text", null=True, required=False),
        "start": _SECONDS,
        "end": _SECONDS,
        "count": ColumnSchema("whole", null=True, low=1, required=False),
        "rate": _SECONDS,
        "duration": _SECONDS,
        "frame_rate": _SECONDS,
    }
)


def save_items(
    images: Sequence[Image],
    photos: Sequence[str | None],
    folder: Path | None,
    progress: Callable[[str, int, int], None],
) -> pa.Table:
    """Write what is at hand of the images and videos, and give their table; without a folder write nothing.

    The columns of videos are there where one item is a video, so that folders of pictures stay as they were.
    """
    rows: list[dict[str, Any]] = []
    for at, (image, photo) in enumerate(zip(images, photos, strict=True)):
        progress("saving", at, len(images))
        file, name = _save(image, folder) if folder and image.source is not None else (None, None)
        row = {"id": image.id, "file": file, "digest": name, "crop": image.crop, "photo": photo}
        rows.append({**row, **(_video_cells(image) if isinstance(image, Video) else {})})
    videos = has_videos(images)
    columns = [field for field in IMAGES.arrow if videos or IMAGES.columns[field.name].required]
    return pa.Table.from_pylist(rows, schema=pa.schema(columns))


def move_items(source: Path, target: Path) -> None:
    """Put the items that `save_items` wrote to one folder in the place of those in another."""
    names = {path.name for path in source.iterdir()} if source.is_dir() else set()
    if names:
        target.mkdir(exist_ok=True)
    for name in sorted(names):
        put(source / name, target / name)
    for path in target.iterdir() if target.is_dir() else ():
        # Files with other names were put there by someone else.
        if path.name not in names and _KEPT.fullmatch(path.name):
            remove(path)


def has_videos(images: Sequence[Image]) -> bool:
    """Whether any item is a video."""
    return any(isinstance(image, Video) for image in images)


def load_items(
    rows: Sequence[Mapping[str, Any]], folder: Path, *, verify: bool, where: object
) -> tuple[Image, ...]:
    """The items of the table that `save_items` gave; with `verify`, files are compared with their digests.

    Raises `DataError` naming the row (of the table `where`) that does not fit together.
    """
    for number, row in enumerate(rows, start=1):
        kind, odd = row.get("video"), ""
        if (row["file"] is None) != (row["digest"] is None):
            odd = "only one of 'file' and 'digest' is there"
        elif row["file"] is not None and Path(row["file"]).name in ("", ".."):
            odd = f"'{row['file']}' is no name of a file"
        elif row["crop"] is not None and len(row["crop"]) != 4:
            odd = "the crop is not of four numbers"
        elif kind not in (None, _FILE, _FRAMES, _FEATURES, _ABSENT):
            odd = f"'{kind}' is no kind of video"
        elif kind is not None and {"start", "end", "count", "rate", "duration", "frame_rate"} - set(row):
            odd = "a video without its columns"
        if odd:
            raise DataError(odd, where=f"{where}, row {number}", hint="was it edited?")
    return tuple(_load(row, folder, verify) for row in rows)


def ending_of(data: bytes) -> str:
    """The ending of the file of an encoded picture, ".bin" where its format is not known.

    >>> ending_of(b"GIF89a"), ending_of(b"?")
    ('.gif', '.bin')
    """
    return next((ending for magic, ending in _MAGIC.items() if data.startswith(magic)), ".bin")


def check_file(path: Path, expected: str) -> None:
    """Raise `DataError` where a file is missing, or is not the one with this digest."""
    if not path.is_file():
        raise DataError("file of the benchmark is missing", where=path)
    _check(path, digest_file(path), expected)


def _save(image: Image, folder: Path) -> tuple[str, str]:
    """Write the item, unless one of the same content is there: the name of its file or folder, and digest."""
    if not isinstance(image, Video):
        data = image.checked()
        ending = ending_of(data)
    elif isinstance(source := image.source, FrameStack):
        return _save_frames(source, folder)
    elif isinstance(source, FrameFeatures):
        data, ending = FileSource(source.path).read(), source.path.suffix
    else:
        data = image.read()
        ending = source.path.suffix.lower() if isinstance(source, FileSource) else ""
        ending = ending if ending in VIDEOS else ".bin"
    name = digest(data)
    path = folder / (name + ending)
    if not path.is_file():
        write_bytes(path, data)
    return path.name, name


def _save_frames(frames: FrameStack, folder: Path) -> tuple[str, str]:
    if isinstance(frames, FrameFolder):
        files = frames.files()
        pictures = [(Image("", source).checked(), source.path.suffix.lower()) for source in files]
    else:
        pictures = []
        for number in range(len(frames)):
            buffer = io.BytesIO()
            frames.frame(number).save(buffer, format="PNG")
            pictures.append((buffer.getvalue(), ".png"))
    name = digest(b"".join(data for data, _ in pictures))
    if not (folder / name).is_dir():
        for number, (data, ending) in enumerate(pictures):
            write_bytes(folder / name / f"{number:06d}{ending}", data)
    return name, name


def _video_cells(video: Video) -> dict[str, Any]:
    source, sampling = video.source, video.sampling
    return {
        "video": next(name for kind, name in _KINDS if isinstance(source, kind)),
        "start": video.start,
        "end": video.end,
        "count": sampling.count,
        "rate": sampling.rate,
        "duration": getattr(source, "duration", None),
        "frame_rate": source.rate if isinstance(source, FrameStack) else None,
    }


def _load(row: Mapping[str, Any], folder: Path, verify: bool) -> Image:
    crop = tuple(row["crop"]) if row["crop"] is not None else None
    kind = row.get("video")
    path = image_path(Path(row["file"]).name, folder) if row["file"] is not None else None
    if path is not None and verify:
        if kind == _FRAMES:
            if not path.is_dir():
                raise DataError("frames of the benchmark are missing", where=path)
            _check(path, digest(FrameFolder(path).read()), row["digest"])
        else:
            check_file(path, row["digest"])
    if kind is None:
        return Image(row["id"], FileSource(path) if path else None, crop, row["photo"])
    source: FileSource | FrameFolder | FrameFeatures | None = None
    if path is not None:
        if kind == _FEATURES and path.suffix in FEATURES:
            source = FrameFeatures(path, row["duration"])
        else:
            source = FrameFolder(path, row["frame_rate"]) if kind == _FRAMES else FileSource(path)
    sampling = Sampling(row["count"], row["rate"])
    return Video(row["id"], source, crop, row["photo"], row["start"], row["end"], sampling)


def _check(path: Path, actual: str, expected: str) -> None:
    if actual != expected:
        raise DataError(
            "file was changed after it was saved",
            where=path,
            given=f"digest {actual}",
            allowed=expected,
            hint="get the benchmark again, or save it anew",
        )


def put(source: Path, target: Path) -> None:
    """Move a file or a folder to its place; raises `StorageError` where that fails."""
    try:
        if target.is_dir():
            rmtree(target)
        # The place may lie behind a link to another disk.
        move(source, target)
    except OSError as error:
        raise storage_error(target, error) from None


def remove(path: Path) -> None:
    """Remove a file or a folder; raises `StorageError` where that fails."""
    try:
        if path.is_dir() and not path.is_symlink():
            rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot be removed: {error.strerror or error}", where=path, hint="choose another folder"
        ) from None
