"""Building of a benchmark or a training set: a recipe run to its end, or one step on a table of one's own."""

import shlex
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil import catalog
from counterfoil.build.rows import read_rows
from counterfoil.build.run import (
    Build,
    BuildRecipe,
    has_images,
    read_recipe,
    run_recipe,
    run_step,
    said_dropped,
    shipped,
)
from counterfoil.build.step import Output, Step, StepContext, check_columns
from counterfoil.build.step_folder import DROPPED, MANIFEST, StepFolder, check_files, listing
from counterfoil.build.steps.registry import STEPS
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import from_text
from counterfoil.jobs.build_report import report
from counterfoil.jobs.feedback import SILENT, Feedback, SessionOptions
from counterfoil.jobs.outputs import guarded
from counterfoil.jobs.results import Tabular
from counterfoil.models.base import Options
from counterfoil.outputs import Folder
from counterfoil.report.tables import Cell, Column, Table, text_table
from counterfoil.store import (
    begin,
    check_writable,
    digest_table,
    digest_value,
    end,
    write_csv,
    write_parquet,
    write_text,
)

#: What lies in the folder of a build; other files in it are not counterfoil's.
REPORT = "report.html"
FILES = ("steps", "images", "benchmark", "unfinished", "sheet.csv", REPORT, DROPPED, MANIFEST)
_FORMAT = "counterfoil build"
#: Kinds of file that rows are written to.
TABLES = (".csv", ".parquet")


@dataclass(frozen=True, kw_only=True)
class BuildOptions(SessionOptions):
    """Options of a build; the defaults are those of the command line."""

    #: Settings of steps as texts, by "STEP.KEY" in a recipe and by KEY of one step.
    settings: Mapping[str, str] = field(default_factory=dict)
    #: None takes the recipe's.
    seed: int | None = None
    #: The folder of the user's images, of one step.
    images: Path | None = None
    #: Of scorers and models that steps name.
    device: str = "auto"
    precision: str = "fp32"
    #: The key of endpoints that steps ask; it is sent to them and nowhere written.
    api_key: str = field(default="", repr=False)
    #: Whether the report is written, `report.html` in the folder.
    report: bool = True


@dataclass(frozen=True, eq=False, repr=False)
class BuildResult(Tabular):
    """A finished build: what every step kept, made and dropped, and why.

    Rows by "step" are one per step: `step`, `rows_in`, `rows_out`, `dropped`. Rows by "reason" are one per
    step and reason: `step`, `reason`, `rows`.
    """

    recipe: BuildRecipe
    build: Build

    rows_by = ("step", "reason")

    @property
    def folder(self) -> Path:
        """The folder of the build."""
        return self.build.folder

    @property
    def benchmark(self) -> Path | None:
        """The folder of what was assembled, which `evaluate`, `audit`, `publish` or `train` takes."""
        return self.build.benchmark

    def _rows(self, by: str) -> pa.Table:
        if by == "reason":
            return pa.Table.from_pylist(
                [
                    {"step": record.label, "reason": reason, "rows": count}
                    for record in self.build.records
                    for reason, count in record.dropped.items()
                ],
                pa.schema([("step", pa.string()), ("reason", pa.string()), ("rows", pa.int64())]),
            )
        return pa.Table.from_pylist(
            [
                {
                    "step": record.label,
                    "rows_in": record.rows_in,
                    "rows_out": record.rows_out,
                    "dropped": sum(record.dropped.values()),
                }
                for record in self.build.records
            ]
        )

    @property
    def tables(self) -> list[Table]:
        """The funnel: rows in and out of every step, and the most frequent reasons."""
        return [funnel(self.recipe.title, self.build.records)]

    @property
    def notes(self) -> list[str]:
        """What the build waits for, if anything."""
        return [self.build.waits] if self.build.waits else []

    def to_json(self) -> dict[str, Any]:
        """The steps as plain values, as `build --json` writes them."""
        return {
            "recipe": self.recipe.name,
            "seed": self.recipe.seed,
            "steps": [
                {
                    "step": record.label,
                    "settings": dict(record.settings),
                    "rows_in": record.rows_in,
                    "rows_out": record.rows_out,
                    "dropped": dict(record.dropped),
                    "facts": dict(record.facts),
                }
                for record in self.build.records
            ],
        }


@dataclass(frozen=True, eq=False, repr=False)
class StepResult(Tabular):
    """One step applied to a table: `output.kept`, `output.dropped` with reasons, and `output.facts`.

    Rows by "row" are those that were kept or made, by "dropped" those that were dropped.
    """

    step: str
    rows_in: int
    output: Output

    rows_by = ("row", "dropped")

    def _rows(self, by: str) -> pa.Table:
        if by == "row":
            return self.output.kept
        return (
            self.output.dropped if self.output.dropped is not None else self.output.kept.schema.empty_table()
        )

    @property
    def tables(self) -> list[Table]:
        """Rows in and out, and the reasons of those that were dropped."""
        all_tables = [
            text_table(
                f"{self.step}: {self.rows_in:,} rows in, {len(self.output.kept):,} out",
                "reason",
                [Column("rows")],
                [(reason, f"{count:,}") for reason, count in self.output.reasons.items()],
            )
        ]
        if refusals := self.output.facts.get("refusals"):
            all_tables.append(
                text_table(
                    "answers that could not be used",
                    "reason",
                    [Column("rows"), Column("such as", align="left")],
                    [
                        (reason, f"{refusal['rows']:,}", Cell(" · ".join(map(_short, refusal["examples"]))))
                        for reason, refusal in refusals.items()
                    ],
                )
            )
        return all_tables

    def to_json(self) -> dict[str, Any]:
        """Numbers of rows, reasons and facts as plain values."""
        return {
            "step": self.step,
            "rows_in": self.rows_in,
            "rows_out": len(self.output.kept),
            "dropped": self.output.reasons,
            "facts": dict(self.output.facts),
        }


def _short(answer: str) -> str:
    """An answer on one line, its beginning where it is long."""
    line = " ".join(answer.split())
    return line if len(line) <= 90 else f"{line[:89]}…"


def funnel(title: str, records: Sequence[Any]) -> Table:
    """Steps with rows in and out and why rows were dropped."""
    rows = []
    for record in records:
        reasons = [f"{count:,} {reason}" for reason, count in record.dropped.items()]
        more = f", {len(reasons) - 3} more reasons" if len(reasons) > 3 else ""
        rows.append(
            (record.label, f"{record.rows_in:,}", f"{record.rows_out:,}", Cell(", ".join(reasons[:3]) + more))
        )
    columns = [Column("in"), Column("out"), Column("dropped", align="left")]
    return text_table(title, "step", columns, rows)


def build(
    recipe: str | Path | BuildRecipe,
    out: str | Path,
    options: BuildOptions | None = None,
    *,
    overwrite: bool = False,
    feedback: Feedback = SILENT,
) -> BuildResult:
    """Run a recipe in the folder `out`, going on where an earlier run of it was stopped.

    A step whose settings, rows and seed are those of a finished one is not run again. Unknown steps and
    settings are found before anything runs, an order that cannot work once rows are read. Raises what reading
    a recipe and running a step raise, and `InputError` where `out` holds files that no build made.
    """
    options = options or BuildOptions()
    if not isinstance(recipe, BuildRecipe):
        recipe = read_recipe(recipe, settings=options.settings, seed=options.seed)
    out = Path(out)
    with guarded("build", overwrite=overwrite) as outputs, ExitStack() as shown:
        check_writable(out, folder=True)
        outputs.folder(declared(out))
        for label, step in zip(recipe.labels, recipe.steps, strict=True):
            check_files(step, where=f"step {label}")
        progress = shown.enter_context(feedback.progress())
        work = _work(out, options, feedback, progress)
        with _under_way(out):
            built = run_recipe(
                recipe, work, begun=lambda label, rows: feedback.note(f"{label}: {rows:,} rows")
            )
        if options.report:
            with feedback.busy("writing the report"):
                photos = getattr(recipe.steps[0], "images", None)
                seen = replace(work, seed=recipe.seed, photos=None if photos is None else Path(photos))
                settings = [
                    f"--set {shlex.quote(f'{key}={value}')}" for key, value in options.settings.items()
                ]
                seed = [] if options.seed is None else [f"--seed {options.seed}"]
                name = recipe.name if recipe.name in shipped() else f"{recipe.name}.toml"
                command = " ".join(["counterfoil build", name, *settings, *seed, "--out", out.name])
                write_text(out / REPORT, report(recipe, built, seen, command=command, feedback=feedback))
    return BuildResult(recipe, built)


def apply_step(
    name: str,
    rows: str | Path | pa.Table,
    options: BuildOptions | None = None,
    *,
    feedback: Feedback = SILENT,
    folder: Path | None = None,
    out: Path | None = None,
    dropped: Path | None = None,
) -> StepResult:
    """One step on a table of one's own (CSV, TSV, JSON, JSON Lines, Parquet, or an Arrow table).

    Images that the step makes go to `images` in `folder`. The rows are written to `out`, a table or a folder
    that gets `rows.parquet`, `dropped.parquet` and a manifest, and takes the place of `folder`; where it
    holds this very step on these rows, finished and whole, nothing is done again. Rows that were dropped are
    written to the table `dropped`, also where none is left, which is an error. Raises `UnknownNameError` for
    an unknown step, and what the step raises.
    """
    options = options or BuildOptions()
    entry = STEPS.find(name)
    values = {key: from_text(entry.kind, key, text) for key, text in options.settings.items()}
    step = entry.step(values, where=f"step {name}")
    check_files(step, where=f"step {name}")
    with ExitStack() as held:
        if out is not None:
            folder = out.parent if out.suffix else out
        if folder is None:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="counterfoil-")))
        progress = held.enter_context(feedback.progress())
        work = _work(folder, options, feedback, progress, step=name)
        if not isinstance(rows, pa.Table):
            rows = read_rows(Path(rows), work)
        check_columns(step, rows, where=f"step {name}")
        if out is not None and not out.suffix:
            with _under_way(folder):
                return StepResult(name, len(rows), _kept(step, rows, work, feedback, dropped))
        output = run_step(step, rows, work, save=partial(_save_dropped, dropped))
        if out is not None:
            save_rows(output.kept, out)
            _tidy(work)
    return StepResult(name, len(rows), output)


def _save_dropped(place: Path | None, output: Output) -> str:
    if place is None:
        return "--dropped FILE writes the rows, with all that was made of them; what was answered is kept"
    if output.dropped is not None:
        save_rows(output.dropped, place)
    return said_dropped(place)


def _tidy(work: StepContext) -> None:
    """Remove the finished parts of a step that is done."""
    shutil.rmtree(work.keep, ignore_errors=True)
    with suppress(OSError):
        work.keep.parent.rmdir()


def _kept(step: Step, rows: pa.Table, work: StepContext, feedback: Feedback, dropped: Path | None) -> Output:
    """What the step gives, written to its folder; as it lies there where this very step was finished."""
    place = StepFolder(work.folder, build=work.folder)
    source = digest_value([digest_table(rows), None if work.photos is None else listing(work.photos)])
    record = place.finished(step, seed=work.seed, rows_from=source)
    if record is None or record.is_empty or not has_images(place.rows(), work, step.produces):

        def save(output: Output) -> str:
            place.save(step, rows, output, seed=work.seed, rows_from=source)
            message = _save_dropped(dropped, output)
            return message if dropped else said_dropped(place.folder / DROPPED)

        output = run_step(step, rows, work, save=save)
        _tidy(work)
        return output
    feedback.note(f"{work.folder}: this step was finished there on these rows; nothing is done again")
    output = Output(place.rows(), place.dropped(), record.facts, waits=record.waits)
    _save_dropped(dropped, output)
    return output


@contextmanager
def _under_way(folder: Path) -> Iterator[None]:
    """A block that writes into the folder; where it is stopped, another may go on there.

    An error before anything was kept leaves nothing behind.
    """
    fresh = not folder.exists()
    begin(folder, _FORMAT)
    try:
        yield
    except Exception:
        if not any((folder / name).exists() for name in FILES):
            end(folder)
            if fresh:
                folder.rmdir()
        raise
    end(folder)


def nothing() -> pa.Table:
    """The rows that the first step takes."""
    return pa.table({"id": pa.array([], pa.string())})


def check_table(path: Path) -> None:
    """Raise `InputError` where rows cannot be written to a file of this ending."""
    if path.suffix.lower() not in TABLES:
        raise InputError(
            "unknown kind of table", where=path, given=path.suffix or "no ending", allowed=TABLES
        )


def save_rows(table: pa.Table, path: Path) -> None:
    """Write rows as CSV or Parquet; raises `InputError` for another ending."""
    check_table(path)
    if path.suffix.lower() == ".csv":
        write_csv(path, table)
    else:
        write_parquet(path, table)


def is_build(folder: Path) -> bool:
    """Whether steps of a build were finished in the folder."""
    steps = (folder / "steps").iterdir() if (folder / "steps").is_dir() else ()
    return StepFolder(folder).is_finished or any(StepFolder(step).is_finished for step in steps)


def declared(out: Path) -> Folder:
    """The folder of a build as an output of a command."""
    return Folder(out, FILES, is_build, alone=True)


def _work(
    folder: Path, options: BuildOptions, feedback: Feedback, progress: Any, *, step: str = ""
) -> StepContext:
    return StepContext(
        folder,
        options.seed or 0,
        options.session(feedback, progress),
        options.images,
        step,
        partial(_scorer, options=options),
        _benchmark,
        options.device,
    )


def _scorer(name: str, settings: Mapping[str, str], *, options: BuildOptions) -> Any:
    scorer_options = Options(
        device=options.device,
        precision=options.precision,
        seed=options.seed or 0,
        settings=dict(settings),
        api_key=options.api_key if name.startswith("chat:") else "",
    )
    return catalog.scorer(name, scorer_options, memory=options.cache)


def _benchmark(name: str, data: Path | None, images: Path | None) -> Any:
    if data is None and images is None and not Path(name).exists() and name not in catalog.benchmarks():
        raise DataError(
            "no such file, folder or benchmark",
            where=name,
            allowed="a table, captions in COCO's layouts, a benchmark's name or folder, or 'world'",
        )
    return catalog.benchmark(name, data=data, images=images, counts=False)
