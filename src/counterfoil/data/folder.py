"""A benchmark as a folder of our own: card, questions, captions, images, and a manifest to vouch for them.

    manifest.json      schema version, form, and the digest of every file below; written last
    card.json          the facts
    questions.parquet  id, positions into captions and images, a column `group:NAME` per grouping
    members.parquet, positives.parquet    of a gallery: who is in it, and what is right
    captions.parquet   id, text (null where it is not at hand)
    images.parquet     id, file, digest (both null where the image is not at hand), crop,
                       photo (the photograph it shows)
    images/            the encoded bytes as they were, called by their digest: equal ones are kept once

The same benchmark gives the same bytes. A folder without a manifest is not a benchmark: saving takes an old
manifest away first and puts the new one there last, so a stopped machine never leaves a folder that lies.
"""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.galleries import Gallery
from counterfoil.data.question_tables import files, from_tables, to_tables
from counterfoil.data.records import Caption, FileSource, Image
from counterfoil.errors import DataError, InputError, StorageError
from counterfoil.store import (
    digest,
    digest_file,
    read_json,
    read_parquet,
    write_bytes,
    write_json,
    write_parquet,
)

#: Raised with every change that older code could not read: 2 has galleries; the others are written as 1.
SCHEMA_VERSION = 2

_FORMAT = "counterfoil benchmark"
_MANIFEST = "manifest.json"
_FILES = ("card.json", "captions.parquet", "images.parquet")
_IMAGES = "images"

_MAGIC = {b"\xff\xd8\xff": ".jpg", b"\x89PNG": ".png", b"GIF8": ".gif", b"RIFF": ".webp", b"BM": ".bmp"}


#: Called with ("saving", done, total) as images are written.
Progress = Callable[[str, int, int], None]


def _silent(stage: str, done: int, total: int) -> None:
    """The `Progress` of nobody watching."""


def is_benchmark_folder(path: Path) -> bool:
    """Whether `save` finished in this folder."""
    if not (path / _MANIFEST).is_file():
        return False
    try:
        manifest = read_json(path / _MANIFEST)
    except DataError:
        return False
    return isinstance(manifest, dict) and manifest.get("format") == _FORMAT


def save(benchmark: Benchmark, folder: Path, *, progress: Progress = _silent) -> None:
    """Write a benchmark to `folder`, which is made where it is missing; one saved there before is replaced.

    Items whose content is not at hand are kept as such. Raises `InputError` where the folder holds anything
    else, `DataError` where an image cannot be read, `StorageError` where the disk is full; nothing that was
    written stays behind then.
    """
    check_target(folder)
    _remove(folder / _MANIFEST)
    written: list[Path] = []
    try:
        names, digests = _save_images(benchmark.images, folder, written, progress)
        questions, facts = to_tables(benchmark.questions)
        tables = {
            **questions,
            "captions.parquet": pa.table(
                {
                    "id": pa.array([caption.id for caption in benchmark.captions], pa.string()),
                    "text": pa.array([caption.text for caption in benchmark.captions], pa.string()),
                }
            ),
            "images.parquet": pa.table(
                {
                    "id": pa.array([image.id for image in benchmark.images], pa.string()),
                    "file": pa.array(names, pa.string()),
                    "digest": pa.array(digests, pa.string()),
                    "crop": pa.array([image.crop for image in benchmark.images], pa.list_(pa.int64())),
                    "photo": pa.array(benchmark.photos, pa.string()),
                }
            ),
        }
        for name, table in tables.items():
            written.append(folder / name)
            write_parquet(folder / name, table)
        written.append(folder / "card.json")
        write_json(folder / "card.json", benchmark.card.model_dump(mode="json"))
        _drop_stale(folder, {name for name in names if name is not None}, set(questions))
        manifest = {
            "format": _FORMAT,
            "schema_version": SCHEMA_VERSION if isinstance(benchmark.questions, Gallery) else 1,
            **facts,
            "files": {name: digest_file(folder / name) for name in _files(benchmark.questions.form)},
        }
        write_json(folder / _MANIFEST, manifest)
    except BaseException:
        for path in written:
            with suppress(OSError):
                path.unlink(missing_ok=True)
        raise


def load(folder: Path, *, verify: bool = True) -> Benchmark:
    """The benchmark that `save` wrote to `folder`; images stay on disk until they are asked for.

    Every file is compared with the digest it was saved with (`verify=False` leaves out the images, which are
    most of the work). Raises `DataError` naming the file that is missing or was changed, and for a folder
    that a newer counterfoil wrote.
    """
    manifest = _read_manifest(folder)
    for name, expected in manifest["files"].items():
        _check_file(folder / name, expected)
    try:
        card = Card.model_validate(read_json(folder / "card.json"))
    except ValidationError as error:
        raise DataError(f"not a card: {error.errors()[0]['msg']}", where=folder / "card.json") from None
    captions = read_parquet(folder / "captions.parquet").to_pylist()
    images = read_parquet(folder / "images.parquet").to_pylist()
    return Benchmark(
        card=card,
        images=tuple(_image(row, folder, verify) for row in images),
        captions=tuple(Caption(row["id"], row["text"]) for row in captions),
        questions=from_tables(
            {name: read_parquet(folder / name) for name in files(manifest["form"])},
            manifest,
            where=folder / _MANIFEST,
        ),
        source=str(folder),
        path=folder,
    )


def check_target(folder: Path) -> None:
    """Raise `InputError` where `save` would refuse to write: the folder holds other files, or is none."""
    if folder.exists() and not folder.is_dir():
        raise InputError("not a folder", where=folder, hint="name a new folder to save the benchmark in")
    ours = {_MANIFEST, _IMAGES, *_files(Gallery.form)}
    strange = [
        each.name
        for each in (folder.iterdir() if folder.is_dir() else ())
        # What a machine that stopped while saving leaves behind is ours too.
        if each.name not in ours and not (each.name.startswith(".") and each.name.endswith(".part"))
    ]
    if strange:
        raise InputError(
            "the folder holds other files",
            where=folder,
            given=", ".join(sorted(strange)[:5]),
            hint="name a new folder to save the benchmark in",
        )


def _save_images(
    images: Sequence[Image], folder: Path, written: list[Path], progress: Progress
) -> tuple[list[str | None], list[str | None]]:
    """The file name and the digest of every image, None where it is not at hand; equal bytes are one file."""
    files: list[str | None] = []
    digests: list[str | None] = []
    done: set[str] = set()
    for at, image in enumerate(images):
        progress("saving", at, len(images))
        if image.source is None:
            files.append(None)
            digests.append(None)
            continue
        data = image.read()
        name = digest(data)
        file = name + next((ending for magic, ending in _MAGIC.items() if data.startswith(magic)), ".bin")
        if file not in done:
            path = folder / _IMAGES / file
            # A source may be this very file, where a benchmark is loaded and saved in place.
            if not path.is_file() or digest_file(path) != name:
                written.append(path)
                write_bytes(path, data)
            done.add(file)
        files.append(file)
        digests.append(name)
    return files, digests


def _files(form: str) -> tuple[str, ...]:
    """The files of a benchmark of that form; those of a gallery are all there are."""
    return (*_FILES, *files(form))


def _drop_stale(folder: Path, images: set[str], tables: set[str]) -> None:
    """Images and tables of the benchmark that was here before, for which there is no use now."""
    for name in files(Gallery.form):
        if name not in tables:
            _remove(folder / name)
    if (folder / _IMAGES).is_dir():
        for path in (folder / _IMAGES).iterdir():
            if path.name not in images:
                _remove(path)


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError as error:
        raise StorageError(
            f"cannot be removed: {error.strerror or error}", where=path, hint="choose another folder"
        ) from None


def _read_manifest(folder: Path) -> dict[str, Any]:
    path = folder / _MANIFEST
    if not is_benchmark_folder(folder):
        raise DataError(
            "not a benchmark that counterfoil saved" if folder.is_dir() else "no such folder",
            where=folder,
            hint=f"its {_MANIFEST} is written last: without one, saving did not finish",
        )
    manifest: dict[str, Any] = read_json(path)
    version = manifest.get("schema_version")
    if not isinstance(version, int) or version > SCHEMA_VERSION:
        raise DataError(
            "saved by a newer counterfoil",
            where=path,
            given=f"schema version {version}",
            allowed=f"up to {SCHEMA_VERSION}",
            hint="update counterfoil to read it",
        )
    lacking = [name for name in ("form", "groupings") if name not in manifest]
    if lacking or set(manifest.get("files", {})) != set(_files(manifest["form"])):
        raise DataError("the manifest is incomplete", where=path, hint="was it edited?")
    return manifest


def _check_file(path: Path, expected: str) -> None:
    if not path.is_file():
        raise DataError("file of the benchmark is missing", where=path)
    found = digest_file(path)
    if found != expected:
        raise DataError(
            "file was changed after it was saved",
            where=path,
            given=f"digest {found}",
            allowed=expected,
            hint="get the benchmark again, or save it anew",
        )


def _image(row: Mapping[str, Any], folder: Path, verify: bool) -> Image:
    crop = tuple(row["crop"]) if row["crop"] is not None else None
    if row["file"] is None:
        return Image(row["id"], None, crop, row["photo"])
    path = folder / _IMAGES / Path(row["file"]).name
    if verify:
        _check_file(path, row["digest"])
    return Image(row["id"], FileSource(path), crop, row["photo"])
