"""Publication of a benchmark as a folder: counterfoil's own format, Parquet, a card, Croissant and checksums.

Equal benchmarks and facts give equal bytes.
"""

import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa

from counterfoil.benchmarks import folder as saved_folder
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.folder import has_videos
from counterfoil.benchmarks.forms.release import SPLIT, FormRelease, ReleaseColumn
from counterfoil.benchmarks.publishing.croissant import croissant
from counterfoil.benchmarks.publishing.dataset_card import dataset_card, describe
from counterfoil.benchmarks.publishing.facts import ORIGIN, Publication
from counterfoil.benchmarks.publishing.tables import WrittenFile, write_tables
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import sha256_file
from counterfoil.store import storage_error, write_json, write_text

README, CROISSANT, CHECKSUMS = "README.md", "croissant.json", "checksums.sha256"
#: A published folder is one output: every file in it is written, or goes.
FILES = ("*",)


@dataclass(frozen=True)
class PublishedFolder:
    """What was written: Parquet files, and the bytes of all files by path."""

    name: str
    tables: tuple[WrittenFile, ...]
    sizes: Mapping[str, int]

    @property
    def bytes(self) -> int:
        """The size of everything."""
        return sum(self.sizes.values())


def publish_folder(
    benchmark: Benchmark, out: Path, about: Publication, *, progress: saved_folder.Progress = lambda *_: None
) -> PublishedFolder:
    """Write the benchmark to `out`, which is made; a folder that was published there before is replaced.

    A grouping "split" of the benchmark's own, of "train", "validation" and "test", says which file a question
    is in; without it all are in "test".
    """
    if has_videos(benchmark.images):
        hint = "'counterfoil benchmarks save' writes a folder of any videos"
        raise DataError("videos cannot be published", where=benchmark.name, hint=hint)
    release = benchmark.questions.release()
    # The questions of each split, the tested last, and no column that says so.
    splits = {"test": np.arange(len(benchmark), dtype=np.int64)}
    labels = benchmark.questions.groupings.get(SPLIT, ())
    names = [name for name in ("train", "validation", "test") if name in labels]
    if release.tables[0].questions and names and set(labels) == set(names):
        column = np.array(labels, dtype=object)
        splits = {name: np.flatnonzero(column == name) for name in names}
        columns = [{n: c for n, c in table.columns.items() if n != SPLIT} for table in release.tables]
        tables = tuple(replace(t, columns=c) for t, c in zip(release.tables, columns, strict=True))
        release = replace(release, tables=tables)
    release = _with_makers(benchmark, release, about)
    check_target(out)
    card = benchmark.card
    name = card.name
    # The licence in the card of the copy: that of the publication, and what the card said before.
    before, licence = card.licence, about.licence.spdx or about.licence.url
    licence = f"{licence}; of its source: {before}" if before and before != licence else licence
    copy = replace(benchmark, card=card.model_copy(update={"licence": licence}))
    with _in_place(out) as folder:
        saved_folder.save(copy, folder, progress=progress)
        saved = saved_folder.load(folder, verify=False)
        files = write_tables(saved, release.tables, splits, folder, progress)
        digests = {file.path: sha256_file(folder / file.path) for file in files}
        write_text(folder / README, dataset_card(name, benchmark, release, files, about))
        title = f"{card.title or name}. {describe(benchmark, release)}"
        write_json(folder / CROISSANT, croissant(name, card, release, files, digests, about, title))
        digest_of = {path: digests.get(path) or sha256_file(folder / path) for path in _paths(folder)}
        write_text(folder / CHECKSUMS, "".join(f"{sha}  {path}\n" for path, sha in digest_of.items()))
        sizes = {path: (folder / path).stat().st_size for path in _paths(folder)}
    return PublishedFolder(name, tuple(files), sizes)


def _with_makers(benchmark: Benchmark, release: FormRelease, about: Publication) -> FormRelease:
    """The release with the columns that say who made what, question by question."""
    rows = about.provenance.rows
    if rows is None:
        return release
    row_of = {name: row for row, name in enumerate(rows.column("id").to_pylist())}
    makers = [row_of.get(name) for name in benchmark.questions.ids]
    if not any(row is not None for row in makers):
        what, allowed = "the rows are of other questions", ", ".join(benchmark.questions.ids[:3])
        raise DataError(what, where="provenance, rows", given=", ".join(list(row_of)[:3]), allowed=allowed)
    positions = pa.array(makers, pa.int64())
    tables = []
    for table in release.tables:
        columns = dict(table.columns)
        for name in rows.column_names if table.questions else ():
            role = next((role for role in ORIGIN if name.endswith(role)), "")
            column = name.removesuffix(role)
            if role and column in table.columns and name not in columns:
                values = rows.column(name).combine_chunks().take(positions)
                columns[name] = ReleaseColumn("value", values, _MEANING[role].format(column))
        tables.append(replace(table, columns=columns))
    return replace(release, tables=tuple(tables))


_MEANING = {
    "_by": "Who made `{}`.",
    "_from": "What `{}` was made from.",
    "_seed": "The seed `{}` was made with.",
}


def check_target(out: Path) -> None:
    """Raise `InputError` unless `out` is new, empty, or holds nothing but what was published there."""
    if out.exists() and not out.is_dir():
        raise InputError("not a folder", where=out, hint="name a new folder")
    there = _paths(out) if out.is_dir() else []
    try:
        lines = (out / CHECKSUMS).read_text(encoding="utf-8").splitlines() if there else []
        strange = sorted(set(there) - {line.partition("  ")[2] for line in lines})
    except (OSError, UnicodeDecodeError):
        strange = there
    if strange:
        given = ", ".join(strange[:3])
        raise InputError("the folder holds files", where=out, given=given, hint="name a new folder")


def _paths(folder: Path) -> list[str]:
    paths = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(path for path in paths if path != CHECKSUMS)


@contextmanager
def _in_place(out: Path) -> Iterator[Path]:
    """A new folder beside `out` that takes its place when the block ends, and goes where it fails."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name}.", suffix=".part"))
    except OSError as error:
        raise storage_error(out, error) from None
    replaced = staging.with_suffix(".old.part")
    try:
        yield staging
        try:
            # mkdtemp makes folders private; what a user writes should have the rights of other folders.
            staging.chmod(out.parent.stat().st_mode & 0o777 | 0o700)
            if out.exists():
                os.replace(out, replaced)
            os.replace(staging, out)
        except OSError as error:
            if replaced.exists() and not out.exists():
                os.replace(replaced, out)
            raise storage_error(out, error, "put in its place") from None
    finally:
        for left in (staging, replaced):
            with suppress(OSError):
                shutil.rmtree(left)
