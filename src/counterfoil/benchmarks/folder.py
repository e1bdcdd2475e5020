"""A benchmark as a folder of our own: card, questions, captions, images, and a manifest to vouch for them.

    manifest.json      schema version, form, and the digest of every file below; written last
    card.json          the facts
    questions.parquet  and other tables of the questions: `forms.tables`
    captions.parquet   id, text (null where it is not at hand)
    images.parquet     id, file, digest (both null where the image is not at hand), crop,
                       photo (the photograph it shows); of videos the part and the frames looked at
    corpus.json        captions in which metrics count documents, as they were released; of few benchmarks
    images/            the encoded bytes as they were, called by their digest: equal ones are kept once;
                       of videos the file, the frames (a folder with a picture each) or their features

The same benchmark gives the same bytes. All is written to `.images.*.part` inside first, an old manifest goes
before anything is moved, and the new one comes last: a stopped machine never leaves a folder that lies.
"""

import io
import re
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from shutil import move, rmtree
from typing import Any, Literal

import pyarrow as pa

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import FORMS
from counterfoil.benchmarks.forms.base import Facts, FormName
from counterfoil.benchmarks.forms.tables import ITEM_FILES, TABLES, Positive
from counterfoil.benchmarks.image_files import image_path
from counterfoil.benchmarks.records import Caption, FileSource, Image
from counterfoil.benchmarks.videos import (
    FEATURES,
    VIDEOS,
    FrameFeatures,
    FrameFolder,
    FrameStack,
    Sampling,
    Video,
)
from counterfoil.errors import DataError, InputError, StorageError
from counterfoil.inputs.columns import ColumnSchema, Schema, read_columns
from counterfoil.inputs.files import (
    Stored,
    check_model,
    digest,
    digest_file,
    read_bytes,
    read_json,
    read_model,
)
from counterfoil.outputs import UNFINISHED, overwriting
from counterfoil.store import begin, begun, end, storage_error, write_bytes, write_json, write_parquet

_MAGIC = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp", b"BM": ".bmp"}

#: How `save_items` calls what it writes: a digest, of files with an ending.
_HASH_NAME = re.compile(r"[0-9a-f]{32}(\.\w+)?")

#: What the source of a video is, in the column `video`; null where the item is a picture.
_FILE, _FRAMES, _FEATURES, _ABSENT = "file", "frames", "features", "absent"

_KINDS = ((type(None), _ABSENT), (FrameFeatures, _FEATURES), (FrameStack, _FRAMES), (object, _FILE))
_SECONDS = ColumnSchema("real", null=True, low=0, required=False)
IMAGES = Schema(
    {
        "id": ColumnSchema("text"),
        **dict.fromkeys(("file", "digest"), ColumnSchema("text", null=True)),
        "crop": ColumnSchema("wholes", null=True),
        "photo": ColumnSchema("text", null=True),
        "video": ColumnSchema("text", null=True, required=False),
        **dict.fromkeys(("start", "end"), _SECONDS),
        "count": ColumnSchema("whole", null=True, low=1, required=False),
        **dict.fromkeys(("rate", "duration", "frame_rate"), _SECONDS),
    }
)

#: Called with ("saving", done, total) as images are written.
Progress = Callable[[str, int, int], None]


def save_items(
    images: Sequence[Image], photos: Sequence[str | None], folder: Path | None, progress: Progress
) -> pa.Table:
    """Write the images and videos at hand and give their table; without a folder write nothing."""
    rows: list[dict[str, Any]] = []
    row: dict[str, Any]
    for i, (image, photo) in enumerate(zip(images, photos, strict=True)):
        progress("saving", i, len(images))
        file, name = _save(image, folder) if folder and image.source is not None else (None, None)
        row = {"id": image.id, "file": file, "digest": name, "crop": image.crop, "photo": photo}
        if isinstance(image, Video):
            source, sampling = image.source, image.sampling
            row |= {
                "video": next(name for kind, name in _KINDS if isinstance(source, kind)),
                "start": image.start,
                "end": image.end,
                "count": sampling.count,
                "rate": sampling.rate,
                "duration": getattr(source, "duration", None),
                "frame_rate": source.rate if isinstance(source, FrameStack) else None,
            }
        rows.append(row)
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
        if path.name not in names and _HASH_NAME.fullmatch(path.name):
            remove(path)


def has_videos(images: Sequence[Image]) -> bool:
    """Whether any item is a video."""
    return any(isinstance(image, Video) for image in images)


def load_items(
    rows: Sequence[Mapping[str, Any]], folder: Path, *, verify: bool, where: object
) -> tuple[Image, ...]:
    """The items of the table that `save_items` gave; with `verify`, files are compared with their digests."""
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
    """The ending of the file of an encoded picture, ".bin" where its format is not known."""
    return next((ending for magic, ending in _MAGIC.items() if data.startswith(magic)), ".bin")


def check_file(path: Path, expected: str, *, frames: bool = False) -> None:
    """Raise `DataError` where a file, or a folder of frames, is missing or has another digest."""
    if not (path.is_dir() if frames else path.is_file()):
        what = "frames of the benchmark are missing" if frames else "file of the benchmark is missing"
        raise DataError(what, where=path)
    actual = digest(FrameFolder(path).read()) if frames else digest_file(path)
    if actual != expected:
        what, hint = "file was changed after it was saved", "get the benchmark again, or save it anew"
        raise DataError(what, where=path, given=f"digest {actual}", allowed=expected, hint=hint)


def _save(image: Image, folder: Path) -> tuple[str, str]:
    """Write the item, unless one of the same content is there: the name of its file or folder, and digest."""
    if not isinstance(image, Video):
        data = image.checked()
        ending = ending_of(data)
    elif isinstance(source := image.source, FrameStack):
        if isinstance(source, FrameFolder):
            pictures = [(Image("", file).checked(), file.path.suffix.lower()) for file in source.files]
        else:
            pictures = []
            for number in range(len(source)):
                buffer = io.BytesIO()
                source.frame(number).save(buffer, format="PNG")
                pictures.append((buffer.getvalue(), ".png"))
        name = digest(b"".join(data for data, _ in pictures))
        if not (folder / name).is_dir():
            for number, (data, ending) in enumerate(pictures):
                write_bytes(folder / name / f"{number:06d}{ending}", data)
        return name, name
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


def _load(row: Mapping[str, Any], folder: Path, verify: bool) -> Image:
    crop = tuple(row["crop"]) if row["crop"] is not None else None
    kind = row.get("video")
    path = image_path(Path(row["file"]).name, folder) if row["file"] is not None else None
    if path is not None and verify:
        check_file(path, row["digest"], frames=kind == _FRAMES)
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
        what = f"cannot be removed: {error.strerror or error}"
        raise StorageError(what, where=path, hint="choose another folder") from None


#: Raised with every change that older code could not read: 2 has galleries, 3 captions that people judged and
#: videos, 4 a corpus; the others are written as 1.
SCHEMA_VERSION = 4

_FORMAT = "counterfoil benchmark"
_MANIFEST = "manifest.json"
_IMAGES = "images"
#: Where the benchmark lies in the folder of a build.
BUILT = "benchmark"
_CORPUS = "corpus.json"
_CAPTIONS = Schema({"id": ColumnSchema("text", unique=True), "text": ColumnSchema("text", null=True)})
#: All that a benchmark's folder holds, whatever its form.
FILES = (_MANIFEST, _IMAGES, _CORPUS, *ITEM_FILES, *TABLES, UNFINISHED)


def benchmark_folder(path: Path) -> Path:
    """The folder itself, or of the folder of a build the one in it that holds the benchmark."""
    inside = path / BUILT
    return inside if not (path / _MANIFEST).is_file() and (inside / _MANIFEST).is_file() else path


def is_benchmark_folder(path: Path) -> bool:
    """Whether `save` finished in this folder, or in that of the benchmark in the folder of a build."""
    path = benchmark_folder(path)
    if not (path / _MANIFEST).is_file():
        return False
    try:
        manifest = read_json(path / _MANIFEST)
    except DataError:
        return False
    return isinstance(manifest, dict) and manifest.get("format") == _FORMAT


def save(benchmark: Benchmark, folder: str | Path, *, progress: Progress = lambda *_: None) -> None:
    """Write a benchmark to `folder`, which is made if missing; one saved there before is replaced."""
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise InputError("not a folder", where=folder, hint="name a new folder to save the benchmark in")
    names = [path.name for path in folder.iterdir()] if folder.is_dir() else []
    # What a machine that stopped while saving leaves behind is ours too.
    names = [name for name in names if not (name.startswith(".") and name.endswith(".part"))]
    # Forms of other packages may have tables of other names.
    saved = set(read_json(folder / _MANIFEST).get("files") or ()) if is_benchmark_folder(folder) else set()
    strange = sorted(set(names) - set(FILES) - saved)
    if not strange and names and begun(folder) is None and not is_benchmark_folder(folder):
        # Files of the right names that no benchmark came with, such as a folder of one's own images.
        strange = sorted(names)
    if strange and not overwriting():
        given, hint = ", ".join(strange[:5]), "name a new folder to save the benchmark in"
        raise InputError("the folder holds files", where=folder, given=given, hint=hint)
    fresh = not folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        # So called, it is removed with other unfinished images where a stop leaves it behind.
        staging = Path(tempfile.mkdtemp(dir=folder, prefix=f".{_IMAGES}.", suffix=".part"))
    except OSError as error:
        raise storage_error(folder, error) from None
    try:
        images = save_items(benchmark.images, benchmark.photos, staging / _IMAGES, progress)
        tables, facts = tables_of(benchmark, images)
        for name, table in tables.items():
            write_parquet(staging / name, table)
        write_json(staging / "card.json", benchmark.card.model_dump(mode="json"))
        questions, videos = benchmark.questions, has_videos(benchmark.images)
        corpus = benchmark.corpus
        if corpus is not None and corpus.is_file():
            write_bytes(staging / _CORPUS, read_bytes(corpus))
        files = files_of(questions.form, corpus=(staging / _CORPUS).is_file())
        manifest = {
            "format": _FORMAT,
            # The oldest version that can say all of it.
            "schema_version": 4 if corpus is not None else max(questions.version, 3 if videos else 1),
            **facts,
            **({} if corpus is None else {"corpus": True}),
            "files": {name: digest_file(staging / name) for name in files},
        }
        # Here too, so that a full disk shows before anything is replaced.
        write_json(staging / _MANIFEST, manifest)
        begin(folder, _FORMAT)
        remove(folder / _MANIFEST)
        for name in {*TABLES, _CORPUS}.difference(files):
            remove(folder / name)
        for name in files:
            put(staging / name, folder / name)
        move_items(staging / _IMAGES, folder / _IMAGES)
        write_json(folder / _MANIFEST, manifest)
        end(folder)
    except StorageError as error:
        raise StorageError(str(error).replace(f"{staging.name}/", "")) from None
    finally:
        with suppress(OSError):
            rmtree(staging)
            if fresh:
                # Nothing is removed where the benchmark is in it.
                folder.rmdir()


def load(folder: str | Path, *, verify: bool = True) -> Benchmark:
    """The benchmark that `save` wrote to `folder`; images stay on disk until they are asked for."""
    folder = benchmark_folder(Path(folder))
    path = folder / _MANIFEST
    if not is_benchmark_folder(folder):
        what = "not a benchmark that counterfoil saved" if folder.is_dir() else "no such folder"
        hint = f"its {_MANIFEST} is written last: without one, saving did not finish"
        raise DataError(what, where=folder, hint=hint)
    fields = read_json(path)
    version = fields.get("schema_version")
    if isinstance(version, int) and version > SCHEMA_VERSION:
        what, given = "saved by a newer counterfoil", f"schema version {version}"
        hint = "update counterfoil to read it"
        raise DataError(what, where=path, given=given, allowed=f"up to {SCHEMA_VERSION}", hint=hint)
    manifest = check_model(fields, _Manifest, where=path)
    allowed = files_of(manifest.form, corpus=manifest.corpus and _CORPUS in manifest.files)
    if set(manifest.files) != set(allowed):
        what, where = "the manifest is incomplete", f"{path}, field 'files'"
        given = ", ".join(manifest.files) or "nothing"
        raise DataError(what, where=where, given=given, allowed=allowed, hint="was it edited?")
    for name, expected in manifest.files.items():
        check_file(folder / name, expected)
    benchmark = read_tables(folder, manifest.model_dump(), where=path, verify=verify)
    return replace(benchmark, corpus=folder / _CORPUS) if manifest.corpus else benchmark


def tables_of(
    benchmark: Benchmark, images: pa.Table | None = None
) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """The tables of a benchmark's folder by file name, and the facts of the questions for its manifest."""
    if images is None:
        by_photo = benchmark.questions.images_by == "photo"
        photos = benchmark.photos if by_photo else [image.photo for image in benchmark.images]
        images = save_items(benchmark.images, photos, None, lambda *_: None)
    questions, facts = benchmark.questions.to_tables()
    rows = [{"id": caption.id, "text": caption.text} for caption in benchmark.captions]
    captions = pa.Table.from_pylist(rows, schema=_CAPTIONS.arrow)
    return {**questions, "captions.parquet": captions, "images.parquet": images}, facts


def read_tables(folder: Path, facts: Mapping[str, Any], *, where: object, verify: bool = True) -> Benchmark:
    """The benchmark of the card and the tables in a folder, and the facts that a manifest (`where`) has."""
    form = FORMS[check_model(facts, Facts, where=where).form]
    checked = check_model(facts, form.facts_model, where=where).model_dump()
    captions = read_columns(folder / "captions.parquet", _CAPTIONS).to_pylist()
    images = read_columns(folder / "images.parquet", IMAGES).to_pylist()
    tables = {name: read_columns(folder / name, schema) for name, schema in form.schemas.items()}
    questions: Any = form.from_tables(tables, checked, where=folder)
    return Benchmark(
        card=read_model(folder / "card.json", Card),
        images=load_items(images, folder / _IMAGES, verify=verify, where=folder / "images.parquet"),
        captions=tuple(Caption(row["id"], row["text"]) for row in captions),
        questions=questions,
        source=str(folder),
        path=folder,
    )


def files_of(form: str, *, corpus: bool = False) -> tuple[str, ...]:
    """The files of a benchmark of that form, without its pixels."""
    return (*ITEM_FILES, *FORMS[form].schemas, *((_CORPUS,) if corpus else ()))


class _Manifest(Stored):
    """`manifest.json`, to which the facts of the questions are added."""

    format: Literal["counterfoil benchmark"]
    schema_version: Positive
    form: FormName
    files: dict[str, str]
    #: Whether metrics count documents in captions of its own, which may not have been at hand.
    corpus: bool = False
