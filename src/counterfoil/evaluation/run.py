"""A run: one model on one benchmark, as a folder that everything later can be recomputed from.

    card.json, *.parquet    the benchmark's own folder (`benchmarks.folder`), without pixels
    answers.parquet         a row per question: its scores, what is right and wrong, or its ranks in a gallery
    items.parquet           a row per question to read: captions, image ids, groups, a column per measure
    result.json             the measures
    manifest.json           how the numbers came about, and the digest of every file

The manifest is written last, so a folder that has one is whole. `items.parquet` is for readers: it is
computed from the other tables, and loading computes it again.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal

import pyarrow as pa
from pydantic import AliasChoices, ConfigDict, Field

from counterfoil.benchmarks.answers import Answers
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.base import Facts
from counterfoil.benchmarks.forms.tables import ITEM_FILES, TABLES
from counterfoil.errors import DataError, InputError, UnknownNameError
from counterfoil.evaluation.evaluate import FORMS, SCHEMA, item_values, measured_run
from counterfoil.evaluation.result import Result, Run as Run
from counterfoil.inputs.columns import read_parquet
from counterfoil.inputs.files import Stored, check_model, digest_file, read_json
from counterfoil.outputs import UNFINISHED
from counterfoil.store import begin, check_writable, end, write_json, write_parquet

_Count = Annotated[int, Field(ge=0)]

ANSWERS, ITEMS, RESULT = "answers.parquet", "items.parquet", "result.json"
#: All files that runs have, whatever their form.
FILES = ("manifest.json", RESULT, UNFINISHED, *ITEM_FILES, ANSWERS, ITEMS, *TABLES)


class About(Stored):
    """What a run says of its benchmark."""

    source: str = ""
    path: str | None = None


class RunManifest(Stored):
    """`manifest.json`: layout, facts of the questions, digests of all files, and where the run is from."""

    model_config = ConfigDict(populate_by_name=True)

    layout: Annotated[int, Field(alias="schema")]
    questions: dict[str, Any]
    digests: dict[str, str]
    benchmark: About = About()
    command: str | list[str] | None = None


class EstimateModel(Stored):
    """One number with its interval, and those that tell it apart from chance."""

    value: float
    low: float
    high: float
    n: _Count
    chance: float | None
    effective: Annotated[float, Field(ge=0)] | None = None


class TiesModel(Stored):
    """How ties were counted, and what the other policies give."""

    policy: Literal["strict", "half", "optimistic"]
    questions: _Count | None = None
    rate: Annotated[float, Field(ge=0, le=1)] | None = None
    measures: dict[str, dict[str, float | None]] = Field(default_factory=dict)


class ResultModel(Stored):
    """`result.json`."""

    benchmark: str
    model: Annotated[str, Field(validation_alias=AliasChoices("model", "scorer"))]
    measures: dict[str, EstimateModel]
    groups: dict[str, dict[str, EstimateModel]] = Field(default_factory=dict)
    ties: TiesModel
    provenance: dict[str, Any] = Field(default_factory=dict)


def save_run(
    folder: str | Path,
    benchmark: Benchmark,
    answers: Answers,
    result: Result,
    manifest: Mapping[str, Any] | None = None,
) -> Run:
    """Write a run to `folder`, replacing one file by file, and return it; `manifest` adds to the facts."""
    from counterfoil.benchmarks.folder import tables_of

    folder = Path(folder)
    run = measured_run(benchmark, answers, result, manifest)
    tables, facts = tables_of(benchmark)
    ids = {"question": pa.array(benchmark.questions.ids, pa.string())}
    form = FORMS[benchmark.questions.form]
    groupings = benchmark.questions.groupings.items()
    about = {"cluster": pa.array(benchmark.clusters, pa.int64()), **form.item_columns(benchmark)}
    about |= {f"group:{name}": pa.array(labels, pa.string()) for name, labels in groupings}
    for name, values in run.items.items():
        about[f"measure:{name}"] = pa.array(values, pa.float64(), mask=form.without(benchmark, name))
    tables[ANSWERS] = pa.table(ids | form.answer_columns(benchmark, answers))
    tables[ITEMS] = pa.table(ids | about)
    # Without its manifest an older run in this folder is no run, so a stop in between leaves no mixture.
    check_writable(folder, folder=True)
    begin(folder, f"run of {(manifest or {}).get('asked', result.model)}")
    (folder / "manifest.json").unlink(missing_ok=True)
    for name, table in tables.items():
        write_parquet(folder / name, table)
    write_json(folder / "card.json", benchmark.card.model_dump(mode="json"))
    write_json(folder / RESULT, result.to_json())
    digests = {name: digest_file(folder / name) for name in (*tables, "card.json", RESULT)}
    run = replace(run, manifest={**run.manifest, "questions": facts, "digests": digests})
    write_json(folder / "manifest.json", run.manifest)
    end(folder)
    return run


def is_run_folder(path: Path) -> bool:
    """Whether the folder holds a run, which is a benchmark's folder without pixels and with answers."""
    return (path / "manifest.json").is_file() and (path / ANSWERS).is_file()


def is_run_of(
    folder: Path, *, model: str, identity: Collection[str] = (), benchmark: Benchmark | None = None
) -> bool:
    """Whether the folder holds a whole run of `model`, called one of `identity`, on the same data."""
    try:
        manifest = _verified(folder)[0]
        named = manifest.get("asked", _result(folder).model)
    except DataError:
        return False
    about = manifest.get("model") or manifest.get("scorer") or {}
    identifiers = [about[key] for key in ("name", "key") if key in about]
    if benchmark is not None and manifest["benchmark"]["path"] != str(benchmark.path or ""):
        # On some of the questions of a path it is a run on the same data.
        named = named if manifest["benchmark"]["digest"] == benchmark.digest else None
    return bool(named == model and (not identity or not identifiers or set(identity) & set(identifiers)))


def load_run(folder: str | Path) -> Run:
    """The run in `folder`; raises `DataError` where it is no run, or one whose files were changed since."""
    from counterfoil.benchmarks.folder import read_tables

    folder = Path(folder)
    manifest, manifest_model = _verified(folder)
    result, where = _result(folder), f"{folder / 'manifest.json'}, field 'questions'"
    benchmark = read_tables(folder, manifest_model.questions, where=where)
    about = manifest_model.benchmark
    benchmark = replace(benchmark, source=about.source, path=Path(about.path) if about.path else None)
    form, table = FORMS[benchmark.questions.form], read_parquet(folder / ANSWERS)
    answers = form.read_answers(benchmark, table, where=folder / ANSWERS)
    try:
        form.check(benchmark, answers, where=str(folder / ANSWERS))
        items = item_values(benchmark, answers, result)
    except UnknownNameError as error:
        raise DataError(str(error), where=folder / RESULT, hint="was it edited?") from None
    except InputError as error:
        raise DataError(str(error), hint="was it edited?") from None
    return Run(result.model, benchmark, answers, items, result, manifest)


def _result(folder: Path) -> Result:
    fields = read_json(folder / RESULT)
    check_model(fields, ResultModel, where=folder / RESULT)
    return Result.from_json(fields)


def _verified(folder: Path) -> tuple[dict[str, Any], RunManifest]:
    """The manifest of a run, all of whose files are as it says; raises `DataError`."""
    from counterfoil.benchmarks.folder import files_of, is_benchmark_folder

    if not (folder / "manifest.json").is_file():
        hint = "give a folder written by 'counterfoil evaluate ... --out'"
        raise DataError("not a run folder: it has no manifest.json", where=folder, hint=hint)
    if is_benchmark_folder(folder):
        hint = "evaluate a model on it with 'counterfoil evaluate ... --out', and give that folder"
        raise DataError("a benchmark, not a run: it holds no answers", where=folder, hint=hint)
    path = folder / "manifest.json"
    manifest = read_json(path)
    checked = check_model(manifest, RunManifest, where=path)
    if checked.layout != SCHEMA:
        what, hint = "unknown version of a run folder", "evaluate again, or use the counterfoil that wrote it"
        raise DataError(what, where=path, given=checked.layout, allowed=str(SCHEMA), hint=hint)
    form = check_model(checked.questions, Facts, where=f"{folder / 'manifest.json'}, field 'questions'").form
    lacking = [name for name in (*files_of(form), ANSWERS, ITEMS, RESULT) if name not in checked.digests]
    if lacking:
        raise DataError("the manifest is incomplete", where=path, given=f"no digest of {lacking[0]}")
    strange = [name for name in checked.digests if Path(name).name != name]
    if strange:
        raise DataError("the manifest names a file outside of the folder", where=path, given=strange[0])
    for name, digest in checked.digests.items():
        file = folder / name
        if not file.is_file():
            raise DataError("the run is not whole: a file is missing", where=file, hint="evaluate again")
        if digest_file(file) != digest:
            what = "the file is not the one the run wrote"
            raise DataError(what, where=file, hint="evaluate again to replace it")
    return manifest, checked


def find_runs(paths: Sequence[str | Path], *, note: Callable[[str], None] = lambda text: None) -> list[Run]:
    """The runs in `paths`: run folders, or folders of run folders.

    A run without a given name is named after the folders that tell it apart; equal given names get their
    folders in brackets, with a `note`.
    """
    folders: list[Path] = []
    for path in map(Path, paths):
        if path.is_file():
            hint = f"of scores: counterfoil evaluate given:{path} BENCHMARK --out runs/{path.stem}"
            raise DataError("a file, not a run folder", where=path, hint=hint)
        run_folders = sorted(manifest.parent for manifest in path.rglob("manifest.json"))
        if not run_folders:
            what = "no run in this folder" if path.is_dir() else "no such run folder"
            raise DataError(what, where=path, hint="give a folder written by 'counterfoil evaluate --out'")
        folders += [folder for folder in run_folders if folder not in folders]
    runs = [load_run(folder) for folder in folders]
    # A short name per run: the folder above the benchmark's, and more above it until names differ.
    of_folders = [str(folder) for folder in folders]
    for depth in range(1, max((len(folder.parts) for folder in folders), default=0) + 1):
        short = ["/".join(folder.resolve().parts[-1 - depth : -1]) for folder in folders]
        if len({(name, folder.name) for name, folder in zip(short, folders, strict=True)}) == len(folders):
            of_folders = short
            break
    both = zip(runs, of_folders, strict=True)
    names = [run.name if run.manifest.get("named", True) else place for run, place in both]
    keys = [(run.benchmark.name, name) for run, name in zip(runs, names, strict=True)]
    for twice in sorted({name for k, (_, name) in enumerate(keys) if keys[k] in keys[:k]}):
        note(f"several runs are called '{twice}': their folders stand behind the name")
        with_folders = zip(names, of_folders, strict=True)
        names = [f"{name} ({place})" if name == twice else name for name, place in with_folders]
    return [replace(run, name=name) for run, name in zip(runs, names, strict=True)]
