"""Building of a benchmark or a training set: a recipe run to its end, or one step on a table of one's own."""

import shlex
import shutil
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Unpack

import numpy as np
import pyarrow as pa

from counterfoil import catalog
from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.benchmarks.tables import memory_table
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build import pipeline
from counterfoil.build.step import REASON, Output, StepContext, check_columns
from counterfoil.build.step_folder import StepFolder, StepRecord, check_files
from counterfoil.build.steps.read import plain_table, read_rows
from counterfoil.build.steps.registry import STEPS
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import from_text
from counterfoil.inputs.options import with_default
from counterfoil.jobs import shared_options as shared
from counterfoil.jobs.evaluation_inputs import api_key, session_of, settings_of
from counterfoil.jobs.job import Feedback, documented, feedback_of, job, option
from counterfoil.jobs.results import Tabular, declared
from counterfoil.models.base import Options
from counterfoil.outputs import Folder, guarded
from counterfoil.report.build_page import RowExample, StepSection, build_page, counts_table
from counterfoil.report.tables import Cell, Column, Table
from counterfoil.store import begin, check_table_kind, check_writable, end, write_table, write_text

#: What lies in the folder of a build; other files in it are not counterfoil's.
REPORT = "report.html"
FILES = ("steps", "images", "benchmark", "unfinished", REPORT)
_FORMAT = "counterfoil build"

#: The options of a recipe that stand for a setting of one of its steps.
_STANDS_FOR = {
    "source": "read.source",
    "layout": "read.layout",
    "images": "read.images",
    "n": "read.n",
    "limit": "read.limit",
    "llm": "negate.by",
    "imagine": "imagine.by",
    "people": "choose.people",
}


class StepRows(shared.Device, shared.Work, total=False):
    """How models that steps name are run, and where finished work is kept."""


@documented
class BuildRows(StepRows, total=False):
    """Settings of steps that most recipes have.

    Arguments:
        source: A table, captions in COCO's layouts, a benchmark's name or folder, or 'world'.
        layout: Benchmark whose file layout the source has.
        images: Folder of the images.
        n: Drawn world: number of rows.
        limit: Take only N rows of the source.
        llm: Model that writes negatives: lm:NAME, or an endpoint URL#MODEL.
        imagine: Model that makes images, as in step 'imagine'.
        people: Table of people's answers, as in step 'choose'.
    """

    source: Annotated[str | None, option(None, flag="--from", metavar="SOURCE")]
    layout: Annotated[str | None, option(None)]
    images: Annotated[str | None, option(None, metavar="FOLDER", folder=True)]
    n: Annotated[int | None, option(None, low=1)]
    limit: Annotated[int | None, option(None, low=1)]
    llm: Annotated[str | None, option(None, metavar="MODEL")]
    imagine: Annotated[str | None, option(None, metavar="GENERATOR")]
    people: Annotated[str | None, option(None, metavar="TABLE")]


class BuildResult(Tabular):
    """A finished build: what every step kept, made and dropped, and why."""

    recipe: pipeline.BuildRecipe
    build: pipeline.Build

    rows_by = declared(
        step="one per `step`: `rows_in: int`, `rows_out: int`, `dropped: int`",
        reason="one per `step` and `reason`: `rows: int`",
    )

    @property
    def folder(self) -> Path:
        return self.build.folder

    @property
    def benchmark(self) -> Path | None:
        """The folder of what was assembled, which `evaluate`, `audit`, `publish` or `train` takes."""
        return self.build.benchmark

    def _rows(self, by: str) -> Iterator[Any]:
        for record in self.build.records:
            if by == "step":
                yield {"step": record.label, "dropped": sum(record.dropped.values())}, record
            for reason, count in record.dropped.items() if by == "reason" else ():
                yield {"step": record.label, "reason": reason, "rows": count}

    @property
    def tables(self) -> list[Table]:
        """The funnel: rows in and out of every step, and the most frequent reasons."""
        rows = []
        for record in self.build.records:
            reasons = [f"{count:,} {reason}" for reason, count in record.dropped.items()]
            more = [f"{len(reasons) - 3} more reasons"] if len(reasons) > 3 else []
            dropped = Cell("\n".join([*reasons[:3], *more]))
            rows.append((record.label, f"{record.rows_in:,}", f"{record.rows_out:,}", dropped))
        columns = [Column("in"), Column("out"), Column("dropped", align="left")]
        return [Table.of(self.recipe.title, "step", columns, rows)]

    @property
    def notes(self) -> list[str]:
        """Where what was built is."""
        return [] if self.benchmark is None else [f"built: {self.benchmark}"]

    def to_json(self) -> dict[str, Any]:
        names = ("settings", "rows_in", "rows_out", "dropped", "facts")
        steps = [
            {"step": record.label, **{name: getattr(record, name) for name in names}}
            for record in self.build.records
        ]
        return {"recipe": self.recipe.name, "seed": self.recipe.seed, "steps": steps}


class StepResult(Tabular):
    """One step applied to a table: `output.kept`, `output.dropped` with reasons, and `output.facts`."""

    step: str
    rows_in: int
    output: Output

    rows_by = declared(row="those that were kept or made", dropped="those that were dropped")

    def _rows(self, by: str) -> pa.Table:
        rows, dropped = self.output.kept, self.output.dropped
        return rows if by == "row" else rows.schema.empty_table() if dropped is None else dropped

    @property
    def tables(self) -> list[Table]:
        """Rows in and out, and the reasons of those that were dropped."""
        title = f"{self.step}: {self.rows_in:,} rows in, {len(self.output.kept):,} out"
        reasons = [(reason, f"{count:,}") for reason, count in self.output.reasons.items()]
        all_tables = [Table.of(title, "reason", [Column("rows")], reasons)]
        if refusals := self.output.facts.get("refusals"):
            rows = []
            for reason, refusal in refusals.items():
                # Answers on one line, their beginnings where they are long.
                lines = (" ".join(answer.split()) for answer in refusal["examples"])
                examples = (line if len(line) <= 90 else f"{line[:89]}…" for line in lines)
                rows.append((reason, f"{refusal['rows']:,}", Cell(" · ".join(examples))))
            columns = [Column("rows"), Column("such as", align="left")]
            all_tables.append(Table.of("answers that could not be used", "reason", columns, rows))
        return all_tables

    def to_json(self) -> dict[str, Any]:
        return {
            "step": self.step,
            "rows_in": self.rows_in,
            "rows_out": len(self.output.kept),
            "dropped": self.output.reasons,
            "facts": dict(self.output.facts),
        }


@job(outputs="json")
def build_benchmark(
    recipe: str | Path | pipeline.BuildRecipe,
    out: Annotated[Path, option(flag="--out")],
    *,
    settings: Annotated[shared.Settings, option(flag="--set", metavar="STEP.KEY=VALUE")] = None,
    seed: Annotated[int | None, with_default(shared.SEED, None)] = None,
    report: Annotated[bool, option(flag="--html")] = True,
    overwrite: bool = False,
    **options: Unpack[BuildRows],
) -> BuildResult:
    """Build a benchmark or a training set by a recipe; one that was stopped goes on where it was.

    A step whose settings, rows and seed are those of a finished one is not run again. `settings` are values
    by "STEP.KEY", such as `{"read.source": "captions.json", "imagine.k": 2}`; the recipe has a seed of its
    own. `evaluate`, `audit` and `publish` take the folder as a benchmark. Unknown steps and settings are
    found before anything runs, an order that cannot work once rows are read. Raises `InputError` or
    `DataError` for a recipe, settings or rows that cannot be used, and where `out` holds files that no build
    made. (`counterfoil.build` is the package of steps.)

    Arguments:
        recipe: Name of a shipped recipe, or a .toml file.
        out: Folder of the build; an interrupted build continues.
        settings: Setting of a step, STEP.KEY=VALUE; may be repeated.
        report: Whether to write the report, report.html.

    >>> import tempfile
    >>> settings = {"read.n": 7, "read.size": 32, "imagine.size": 32}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     built = build_benchmark("trohn-img", folder, settings=settings, report=False, quiet=True)
    ...     built.to_arrow()["rows_out"].to_pylist(), built.benchmark.name
    ([7, 7, 7], 'benchmark')
    """
    changed = settings_of(settings)
    if not isinstance(recipe, pipeline.BuildRecipe):
        # The settings that options of a recipe stand for, as texts by STEP.KEY.
        given = {name: str(options[name]) for name in _STANDS_FOR if options[name] is not None}  # type: ignore[literal-required]
        steps = {step.name for step in pipeline.read_recipe(recipe).steps} if given else set()
        for name, value in given.items():
            step_name = _STANDS_FOR[name].partition(".")[0]
            if step_name not in steps:
                flag = "--from" if name == "source" else f"--{name}"
                hint = f"the recipe has no step '{step_name}'"
                raise InputError(f"{flag} does not go with {recipe}", given=value, hint=hint)
            # An address is an endpoint's.
            if name == "llm" and value.startswith(("http://", "https://")):
                given[name] = f"chat:{value}"
        changed = {_STANDS_FOR[name]: value for name, value in given.items()} | changed
        recipe = pipeline.read_recipe(recipe, settings=changed, seed=seed)
    feedback = feedback_of(options)
    with guarded("build", overwrite=overwrite) as outputs, ExitStack() as shown:
        check_writable(out, folder=True)
        outputs.folder(Folder(out, FILES, is_build, alone=True))
        for label, step in zip(recipe.labels, recipe.steps, strict=True):
            check_files(step, where=f"step {label}")
        work = _work(out, options, feedback, shown.enter_context(feedback.progress()), seed=recipe.seed)
        with _under_way(out):
            built = pipeline.run_recipe(
                recipe, work, begun=lambda label, n: feedback.note(f"{label}: {n:,} rows" if n else label)
            )
        if report:
            with feedback.busy("writing the report"):
                photos = getattr(recipe.steps[0], "images", None)
                seen = replace(work, photos=None if photos is None else Path(photos))
                set_ = [f"--set {shlex.quote(f'{key}={value}')}" for key, value in changed.items()]
                seeded = [] if seed is None else [f"--seed {seed}"]
                name = recipe.name if recipe.name in pipeline.shipped() else f"{recipe.name}.toml"
                command = " ".join(["counterfoil build", name, *set_, *seeded, "--out", out.name])
                page = build_report(recipe, built, seen, command=command)
                write_text(out / REPORT, page)
    return BuildResult(recipe, built)


@job(outputs="json")
def apply_step(
    step: str,
    rows: Any,
    *,
    out: Path | None = None,
    settings: Annotated[Mapping[str, Any] | None, option(hidden=True)] = None,
    folder: Annotated[Path | None, option(hidden=True)] = None,
    images: Annotated[Path | None, option(metavar="FOLDER", folder=True)] = None,
    dropped: Path | None = None,
    seed: Annotated[int, shared.SEED] = 0,
    overwrite: bool = False,
    **options: Unpack[StepRows],
) -> StepResult:
    """One step of a build on rows of one's own.

    `rows` are a table in a file or in memory (Arrow, pandas, dicts) with `id` and what the step reads. Rows
    are written to `dropped` also where none is left, which is an error. Raises `UnknownNameError` for an
    unknown step, `DataError` for rows without the columns that it reads, and what the step raises.

    Arguments:
        step: Name of the step.
        rows: The table of rows: CSV, TSV, JSON, JSON Lines, Parquet, or a caption a line (.txt).
        out: The table to write (.csv or .parquet); images that the step makes go beside it.
        settings: Settings of the step.
        folder: Where 'images' go without `out`.
        images: Folder of the images that rows name.
        dropped: Write the rows that were dropped, with reasons, here.

    >>> rows = [{"id": "a", "caption": "a  cat"}, {"id": "b", "caption": "A cat."}]
    >>> apply_step("dedup", rows, settings={"fields": ["caption"]}, quiet=True).output.reasons
    {'exact duplicate': 1}
    """
    entry = STEPS.find(step)
    values = {key: from_text(entry.kind, key, value) for key, value in (settings or {}).items()}
    the_step = entry.step(values, where=f"step {step}")
    check_files(the_step, where=f"step {step}")
    feedback = feedback_of(options)
    with guarded("build", overwrite=overwrite) as outputs, ExitStack() as held:
        for path in (out, dropped):
            if path is not None:
                check_table_kind(path)
                check_writable(path)
                outputs.file(path)
        folder = folder if out is None else out.parent
        if folder is None:
            folder = Path(held.enter_context(tempfile.TemporaryDirectory(prefix="counterfoil-")))
        progress = held.enter_context(feedback.progress())
        work = _work(folder, options, feedback, progress, seed=seed, images=images, step=step)
        if isinstance(rows, str | Path):
            rows = read_rows(Path(rows), work)
        elif not isinstance(rows, pa.Table):
            rows = plain_table(memory_table(rows))
        check_columns(the_step, rows, where=f"step {step}")
        output = pipeline.run_step(the_step, rows, work, save=partial(_save_dropped, dropped))
        if out is not None:
            write_table(out, output.kept)
            # The finished parts of a step that is done.
            shutil.rmtree(work.keep, ignore_errors=True)
            with suppress(OSError):
                work.keep.parent.rmdir()
    return StepResult(step, len(rows), output)


def _save_dropped(place: Path | None, output: Output) -> str:
    if place is None:
        return "--dropped FILE writes the rows, with all that was made of them; what was answered is kept"
    if output.dropped is not None:
        write_table(place, output.dropped)
    return pipeline.said_dropped(place)


@contextmanager
def _under_way(folder: Path) -> Iterator[None]:
    """A block that writes into the folder; an error before anything was kept leaves nothing behind."""
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


def is_build(folder: Path) -> bool:
    """Whether steps of a build were finished in the folder."""
    return any(StepFolder(step).is_finished for step in (folder / "steps").glob("*"))


def _work(
    folder: Path,
    options: StepRows,
    feedback: Feedback,
    progress: Any,
    *,
    seed: int,
    images: Path | None = None,
    step: str = "",
) -> StepContext:
    session = replace(session_of(options, feedback), progress=progress)
    key = api_key()
    plain = Options(device=options["device"], precision=options["precision"], seed=seed)

    def model(name: str, settings: Mapping[str, str]) -> Any:
        own_key = key if name.startswith("chat:") else ""
        context = replace(plain, settings=dict(settings), api_key=own_key)
        return catalog.model(name, context, memory=session.folder)

    def benchmark(name: str, data: Path | None, images: Path | None) -> Any:
        if data is None and images is None and not Path(name).exists() and name not in catalog.BENCHMARKS:
            allowed = "a table, captions in COCO's layouts, a benchmark's name or folder, or 'world'"
            raise DataError("no such file, folder or benchmark", where=name, allowed=allowed)
        return catalog.benchmark(name, data=data, images=images, counts=False)

    return StepContext(folder, seed, session, images, step, model, benchmark, options["device"])


#: Rows that are shown of each step: kept, dropped per reason, and dropped in all.
_ROWS, _PER_REASON, _DROPPED = 4, 2, 12


def build_report(
    recipe: pipeline.BuildRecipe, build: pipeline.Build, work: StepContext, *, command: str
) -> str:
    pairs = zip(build.records, build.folders, strict=True)
    steps = [_section(record, artefact, work) for record, artefact in pairs]
    last = build.folders[-1].rows()
    # What was built, by category and by how often an image occurs.
    tables = []
    if "subset" in last.column_names:
        counts = Counter(name or "" for name in last["subset"].to_pylist())
        tables.append(counts_table("Rows by category", counts, corner="category"))
    if "image" in last.column_names:
        uses = Counter(map(str, Counter(name or "" for name in last["image"].to_pylist()).values()))
        tables.append(counts_table("Images by how many rows they have", uses, corner="rows of an image"))
    return build_page(recipe.title, steps, about=recipe.summary, command=command, tables=tables)


def _section(record: StepRecord, artefact: StepFolder, work: StepContext) -> StepSection:
    """What the page says of a step, with examples of rows that it kept and dropped."""
    rows, dropped, order = artefact.rows(), artefact.dropped(), list[int]()
    if len(dropped):
        reasons = np.array(dropped[REASON].to_pylist())
        for reason in record.dropped:
            order += np.flatnonzero(reasons == reason)[:_PER_REASON].tolist()
    spread = np.linspace(0, max(0, len(rows) - 1), min(_ROWS, len(rows))).round().astype(int)
    settings = {
        name: "" if value is None else ", ".join(map(str, value if isinstance(value, list) else [value]))
        for name, value in record.settings.items()
    }
    return StepSection(
        record.label,
        STEPS[record.step].summary if record.step in STEPS else "",
        record.rows_in,
        record.rows_out,
        record.dropped,
        settings,
        record.facts,
        tuple(_example(rows, int(i), work) for i in dict.fromkeys(spread.tolist())),
        tuple(_example(dropped, i, work) for i in order[:_DROPPED]),
    )


def _example(rows: pa.Table, index: int, work: StepContext) -> RowExample:
    row = rows.slice(index, 1).to_pylist()[0]
    images = {}
    for column in IMAGE_ROLES:
        with suppress(DataError):
            if cell := row.get(column):
                images[column] = Image(cell, FileSource(work.image_file(cell)))
    originals = [f"{role}_original" for role in CAPTION_ROLES if row.get(f"{role}_original") != row.get(role)]
    texts = {name: row[name] for name in (*CAPTION_ROLES, *originals, "subset") if row.get(name)}
    return RowExample(
        str(row["id"]),
        {name.replace("_", " "): str(text) for name, text in texts.items()},
        images,
        str(row.get(REASON) or ""),
    )
