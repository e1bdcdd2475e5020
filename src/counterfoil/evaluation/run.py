"""A run: one scorer on one benchmark, as a folder that everything later can be recomputed from.

`manifest.json` says how the numbers came about, `scores.parquet` holds the answers, `items.parquet` the
questions with their per-item values, `result.json` the measures; runs on galleries, and on captions that
people judged, have two tables more (`pair_tables`, `gallery_tables`, `judged_tables`). The manifest is
written last, so a folder that has one is whole.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.galleries import Gallery
from counterfoil.data.ratings import Preference, Rated
from counterfoil.data.scores import Answers, Rankings
from counterfoil.errors import DataError
from counterfoil.evaluation import pair_tables
from counterfoil.evaluation.evaluate import per_item
from counterfoil.evaluation.galleries import tables as gallery_tables
from counterfoil.evaluation.judged import tables as judged_tables
from counterfoil.evaluation.result import Result
from counterfoil.metrics.ties import Ties
from counterfoil.store import check_writable, digest_file, read_json, read_parquet, write_json, write_parquet

#: Raised when the layout of a run folder changes: 2 has galleries, 3 judged captions; the others are written
#: as 1.
SCHEMA = 3
_SCHEMAS = {Gallery.form: 2, Rated.form: 3, Preference.form: 3}


@dataclass(frozen=True, eq=False)
class Run:
    """One scorer on one benchmark: questions, answers, per-item values and the result.

    `benchmark` may lack pixels (a run folder does not keep them); `name` is what tables call the scorer.
    """

    name: str
    benchmark: Benchmark
    answers: Answers
    items: Mapping[str, NDArray[np.float64]]
    result: Result
    manifest: Mapping[str, Any]

    def with_benchmark(self, benchmark: Benchmark) -> "Run":
        """The same run over `benchmark` with its pictures, if that asks all its questions; else itself."""
        place = {name: i for i, name in enumerate(benchmark.questions.ids)}
        positions = [place.get(name, -1) for name in self.benchmark.questions.ids]
        if min(positions) < 0:
            return self
        if positions != list(range(len(benchmark))):
            benchmark = benchmark.select(np.asarray(positions, dtype=np.int64))
        return replace(self, benchmark=benchmark) if benchmark.digest == self.benchmark.digest else self


def save_run(
    folder: Path, benchmark: Benchmark, answers: Answers, result: Result, manifest: Mapping[str, Any]
) -> Run:
    """Write a run to `folder` and return it. A run that is there already is replaced, file by file."""
    items = _items(benchmark, answers, result)
    if isinstance(answers, Rankings):
        tables = gallery_tables.to_tables(benchmark, answers, items)
    elif isinstance(benchmark.questions, Rated | Preference):
        tables = judged_tables.to_tables(benchmark, answers, items)
    else:
        tables = pair_tables.to_tables(benchmark, answers, items)
    # Without its manifest an older run in this folder is no run, so a stop in between leaves no mixture.
    check_writable(folder, folder=True)
    (folder / "manifest.json").unlink(missing_ok=True)
    for name, table in tables.items():
        write_parquet(folder / name, table)
    write_json(folder / "result.json", result.to_json())
    full = {
        "schema": _SCHEMAS.get(benchmark.card.form, 1),
        **manifest,
        "card": benchmark.card.model_dump(mode="json"),
        "digests": {name: digest_file(folder / name) for name in (*tables, "result.json")},
    }
    write_json(folder / "manifest.json", full)
    return Run(result.scorer, benchmark, answers, items, result, full)


def load_run(folder: Path) -> Run:
    """The run in `folder`; raises `DataError` where it is no run, or one whose files were changed since."""
    if not (folder / "manifest.json").is_file():
        raise DataError(
            "not a run folder: it has no manifest.json",
            where=folder,
            hint="give a folder written by 'counterfoil evaluate ... --out'",
        )
    manifest = read_json(folder / "manifest.json")
    if manifest.get("schema") not in range(1, SCHEMA + 1):
        raise DataError(
            "unknown version of a run folder",
            where=folder / "manifest.json",
            given=manifest.get("schema"),
            allowed=f"1 to {SCHEMA}",
            hint="evaluate again, or use the counterfoil that wrote it",
        )
    for name, digest in manifest["digests"].items():
        if not (folder / name).is_file():
            raise DataError(
                "the run is not whole: a file is missing", where=folder / name, hint="evaluate again"
            )
        if digest_file(folder / name) != digest:
            raise DataError(
                "the file is not the one the run wrote",
                where=folder / name,
                hint="evaluate again to replace it",
            )
    result = Result.from_json(read_json(folder / "result.json"))
    card = Card(**manifest["card"])
    files, from_tables = _layout(card.form)
    lacking = [name for name in files if name not in manifest["digests"]]
    if lacking:
        raise DataError(
            "the manifest is incomplete", where=folder / "manifest.json", given=f"no {lacking[0]}"
        )
    tables = {name: read_parquet(folder / name) for name in files}
    benchmark, answers = from_tables(card, tables, manifest)
    return Run(result.scorer, benchmark, answers, _items(benchmark, answers, result), result, manifest)


def _layout(form: str) -> tuple[tuple[str, ...], Callable[..., tuple[Benchmark, Answers]]]:
    """The tables of a form, and what reads them."""
    if form == Gallery.form:
        return gallery_tables.FILES, gallery_tables.from_tables
    if form in (Rated.form, Preference.form):
        return judged_tables.FILES, judged_tables.from_tables
    return pair_tables.FILES, pair_tables.from_tables


def _items(benchmark: Benchmark, answers: Answers, result: Result) -> dict[str, NDArray[np.float64]]:
    """The values per question: of a gallery those measures that the result has, for recall has any K."""
    chosen = tuple(result.measures) if isinstance(answers, Rankings) else None
    return per_item(benchmark, answers, ties=Ties(result.ties["policy"]), measures=chosen)


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """The runs in `paths`: each a run folder, or a folder of run folders (however deep).

    Runs are named after the folder above the benchmark's (RUN in RUN/eccv), with the folders above that where
    two of one benchmark would share the name.
    """
    folders: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise DataError("no such run folder", where=path, hint="give folders written by --out")
        found = sorted(manifest.parent for manifest in path.rglob("manifest.json"))
        if not found:
            raise DataError("no run in this folder", where=path, hint="give a folder written by --out")
        folders += [folder for folder in found if folder not in folders]
    return [
        replace(load_run(folder), name=name) for folder, name in zip(folders, _names(folders), strict=True)
    ]


def _names(folders: Sequence[Path]) -> list[str]:
    """A short name per run: the folder above the benchmark's, and more above it until names differ."""
    for depth in range(1, max(len(folder.parts) for folder in folders) + 1):
        names = ["/".join(folder.resolve().parts[-1 - depth : -1]) for folder in folders]
        keys = [(name, folder.name) for name, folder in zip(names, folders, strict=True)]
        if len(set(keys)) == len(keys):
            return names
    return [str(folder) for folder in folders]
