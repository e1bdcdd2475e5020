"""A benchmark as a folder of our own: card, questions, captions, images, and a manifest to vouch for them.

    manifest.json      schema version, form, and the digest of every file below; written last
    card.json          the facts
    questions.parquet  id, positions into captions and images, a column `group:NAME` per grouping
    members.parquet, positives.parquet    of a gallery: who is in it, and what is right
    candidates.parquet, references.parquet    of captions that people judged
    captions.parquet   id, text (null where it is not at hand)
    images.parquet     id, file, digest (both null where the image is not at hand), crop,
                       photo (the photograph it shows); of videos the part and the frames looked at
    images/            the encoded bytes as they were, called by their digest: equal ones are kept once;
                       of videos the file, the frames or their features

The same benchmark gives the same bytes. A folder without a manifest is not a benchmark: saving takes an old
manifest away first and puts the new one there last, so a stopped machine never leaves a folder that lies.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pyarrow as pa
from pydantic import ValidationError

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.galleries import Gallery
from counterfoil.data.question_tables import TABLES, files, from_tables, to_tables
from counterfoil.data.ratings import Preference, Rated
from counterfoil.data.records import Caption
from counterfoil.data.stored_items import Store, check_file, has_videos, load_items, remove, save_items
from counterfoil.errors import DataError, InputError
from counterfoil.store import digest_file, read_json, read_parquet, write_json, write_parquet

#: Raised with every change that older code could not read: 2 has galleries, 3 captions that people judged and
#: videos; the others are written as 1.
SCHEMA_VERSION = 3

_FORMAT = "counterfoil benchmark"
_MANIFEST = "manifest.json"
_FILES = ("card.json", "captions.parquet", "images.parquet")
_IMAGES = "images"


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
    remove(folder / _MANIFEST)
    written: list[Path] = []
    store = Store(folder / _IMAGES)
    try:
        images = save_items(benchmark.images, benchmark.photos, store, progress)
        questions, facts = to_tables(benchmark.questions)
        tables = {
            **questions,
            "captions.parquet": pa.table(
                {
                    "id": pa.array([caption.id for caption in benchmark.captions], pa.string()),
                    "text": pa.array([caption.text for caption in benchmark.captions], pa.string()),
                }
            ),
            "images.parquet": images,
        }
        for name, table in tables.items():
            written.append(folder / name)
            write_parquet(folder / name, table)
        written.append(folder / "card.json")
        write_json(folder / "card.json", benchmark.card.model_dump(mode="json"))
        for name in set(TABLES) - set(questions):
            remove(folder / name)
        store.drop_others()
        manifest = {
            "format": _FORMAT,
            "schema_version": _version(benchmark),
            **facts,
            "files": {name: digest_file(folder / name) for name in _files(benchmark.questions.form)},
        }
        write_json(folder / _MANIFEST, manifest)
    except BaseException:
        store.undo()
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
        check_file(folder / name, expected)
    try:
        card = Card.model_validate(read_json(folder / "card.json"))
    except ValidationError as error:
        raise DataError(f"not a card: {error.errors()[0]['msg']}", where=folder / "card.json") from None
    captions = read_parquet(folder / "captions.parquet").to_pylist()
    images = read_parquet(folder / "images.parquet").to_pylist()
    return Benchmark(
        card=card,
        images=load_items(images, folder / _IMAGES, verify=verify),
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
    ours = {_MANIFEST, _IMAGES, *_FILES, *TABLES}
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


def _version(benchmark: Benchmark) -> int:
    """The oldest version that can say all of it."""
    if isinstance(benchmark.questions, Rated | Preference) or has_videos(benchmark.images):
        return 3
    return 2 if isinstance(benchmark.questions, Gallery) else 1


def _files(form: str) -> tuple[str, ...]:
    """The files of a benchmark of that form."""
    return (*_FILES, *files(form))


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
