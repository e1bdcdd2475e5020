"""A build: the steps of a recipe run one after the other in a folder, each finished step kept.

    steps/1-read/, steps/2-format/, ...    what each step kept and dropped (`step_folder`)
    images/                                the images that steps made
    benchmark/                             what the last step assembled

A build that was stopped, at whatever moment, goes on where it was, and ends in the same bytes as one that
was not. A step is run again where its settings, the files that they name, its rows or the seed have changed,
and where an image that it made is gone.
"""

import re
import shutil
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import pyarrow as pa

from counterfoil.benchmarks.folder import BUILT
from counterfoil.benchmarks.training_rows import IMAGE_ROLES
from counterfoil.build.recipe import BuildRecipe
from counterfoil.build.step import Output, Step, StepContext, check_columns
from counterfoil.build.step_folder import DROPPED, StepFolder, StepRecord
from counterfoil.build.steps.registry import STEPS
from counterfoil.errors import DataError, StorageError
from counterfoil.store import digest_value

STEPS_FOLDER, IMAGES_FOLDER = "steps", "images"
#: How images that steps make are called: a digest, with an ending. Files of other names are never removed.
_IMAGE_NAME = re.compile(r"[0-9a-f]{32}(\.\w+)?")
#: Rows from nowhere: what the first step takes.
_NOTHING = "nothing"


@dataclass(frozen=True)
class Build:
    """A folder in which a recipe was run to its end, and what its manifests say."""

    folder: Path
    records: tuple[StepRecord, ...]

    @property
    def folders(self) -> tuple[StepFolder, ...]:
        """The folders of the steps."""
        return tuple(StepFolder(self.folder / STEPS_FOLDER / record.label) for record in self.records)

    @property
    def waits(self) -> str:
        """What people have to do before the build can go on; empty where it is finished."""
        return self.records[-1].waits

    @property
    def benchmark(self) -> Path | None:
        """The folder of the benchmark, where the recipe assembles one."""
        folder = self.folder / BUILT
        return folder if folder.is_dir() and not self.waits else None


def run_recipe(
    recipe: BuildRecipe, context: StepContext, *, begun: Callable[[str, int], None] = lambda label, rows: None
) -> Build:
    """Run the steps that are not finished in the folder of `context`; `begun` gets label and rows.

    Raises what steps raise; finished steps stay.
    """
    photos = getattr(recipe.steps[0], "images", None)
    context = replace(context, seed=recipe.seed, photos=context.photos if photos is None else Path(photos))
    records: list[StepRecord] = []
    first = rows = pa.table({"id": pa.array([], pa.string())})
    source, checked = _NOTHING, False
    for number, (label, step) in enumerate(zip(recipe.labels, recipe.steps, strict=True)):
        place = StepFolder(context.folder / STEPS_FOLDER / label)
        record = place.finished(step, seed=recipe.seed, rows_from=source)
        produced = step.produces if number else None
        if record is None or record.is_empty or not has_images(place.rows(), context, produced):
            if records and number:
                rows = StepFolder(context.folder / STEPS_FOLDER / records[-1].label).rows()
                if not checked:
                    check_images(first, recipe.steps[number:], context)
                    checked = True
            begun(label, len(rows))
            record = _run(step, rows, replace(context, step=label), place, source)
        records.append(record)
        # What rows name lies in the first step's folder of images, which may have got more of them.
        source = digest_value([record.rows, dict(records[0].files)])
        if number == 0:
            first = place.rows()
            recipe.check_order(first.column_names)
        if record.waits:
            break
    _tidy(context.folder, recipe, records)
    return Build(context.folder, tuple(records))


def check_images(rows: pa.Table, steps: Sequence[Step], context: StepContext) -> None:
    """Raise `DataError` where first rows name no image, or one that is not at hand, that a step reads.

    Found before the first of them begins, which may be hours before the last one would have found it. A step
    that takes images by their names says `opens = False`; where a folder was named, all must be in it. One
    that drops rows without an image says `drops_blank = True`. What a step before makes is not looked for.
    """
    produced: set[str] = set()
    filled: set[str] = set()
    for step in steps:
        columns = {*step.requires} & {*IMAGE_ROLES} & {*rows.column_names} - produced
        produced |= {*step.produces}
        for column in sorted(columns):
            cells = rows[column].to_pylist()
            if getattr(step, "drops_blank", False):
                filled.add(column)
            if column in filled:
                cells = [cell for cell in cells if cell]
            elif not all(cells):
                empty = [at for at, cell in enumerate(cells) if not cell]
                raise DataError(
                    f"rows without {column}, which step {step.name} reads",
                    where=f"column '{column}'",
                    given=f"{len(empty):,} of {len(cells):,}, such as row '{rows['id'][empty[0]].as_py()}'",
                    hint="fill their cells in, or leave the rows out: --set read.available=yes",
                )
            if not getattr(step, "opens", True) and context.photos is None:
                continue
            missing = [c for c in dict.fromkeys(cells) if context.image(c, missing=True).source is None]
            if missing:
                raise DataError(
                    f"images that step {step.name} opens are not at hand",
                    where=context.photos or f"column '{column}'",
                    given=f"{len(missing):,} of {len(set(cells)):,}, such as {missing[0]}",
                    hint="name their folder with --images, or leave rows out: --set read.available=yes",
                )


def run_step(
    step: Step,
    rows: pa.Table,
    context: StepContext,
    *,
    save: Callable[[Output], str | None] = lambda output: None,
) -> Output:
    """One step on rows of one's own, checked before and after.

    `save` keeps what the step gives, also where no row is left, which is an error; it gives the error's hint.
    """
    where = f"step {context.step or step.name}"
    check_columns(step, rows, where=where)
    output = step.run(rows, context)
    hint = save(output)
    if not len(output.kept) and len(rows):
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in output.reasons.items())
        raise DataError("no row is left", where=where, given=reasons or "no reasons", hint=hint)
    return output


def said_dropped(place: Path) -> str:
    """Where the rows lie that were dropped."""
    return f"the rows, with all that was made of them, are in {place}"


def _run(step: Step, rows: pa.Table, context: StepContext, place: StepFolder, source: str) -> StepRecord:
    def save(output: Output) -> str:
        place.save(step, rows, output, seed=context.seed, rows_from=source)
        return said_dropped(place.folder / DROPPED)

    run_step(step, rows, context, save=save)
    shutil.rmtree(context.keep, ignore_errors=True)
    return place.record()


def has_images(rows: pa.Table, context: StepContext, produced: Collection[str] | None = None) -> bool:
    """Whether the images that a step made are there: those in the columns `produced`.

    Of a step that reads rows (None) they are those that are called as images of a build are.
    """
    columns = set(IMAGE_ROLES) & set(rows.column_names)
    named = {
        cell
        for column in (columns if produced is None else columns & set(produced))
        for cell in rows[column].unique().to_pylist()
        if cell and (produced is not None or _IMAGE_NAME.fullmatch(cell))
    }
    return all(context.image(cell, missing=True).source is not None for cell in named)


def _tidy(folder: Path, recipe: BuildRecipe, records: list[StepRecord]) -> None:
    """Remove what an earlier recipe left: folders of other steps, and images that no row names."""
    shutil.rmtree(folder / "unfinished", ignore_errors=True)
    for other in _inside(folder / STEPS_FOLDER):
        if other.name not in recipe.labels and StepFolder(other).is_own:
            shutil.rmtree(other, ignore_errors=True)
    held = {path.name: path for path in _inside(folder / IMAGES_FOLDER) if _IMAGE_NAME.fullmatch(path.name)}
    if not held:
        return
    named: set[str] = set()
    for record in records:
        artefact = StepFolder(folder / STEPS_FOLDER / record.label)
        for table in (artefact.rows(), artefact.dropped()):
            for column in set(IMAGE_ROLES) & set(table.column_names):
                named.update(cell for cell in table[column].unique().to_pylist() if cell)
    for name, path in held.items():
        if name not in named:
            try:
                path.unlink()
            except OSError as error:
                raise StorageError("cannot be removed", where=path, given=str(error)) from error


def _inside(folder: Path) -> Iterator[Path]:
    return iter(sorted(folder.iterdir())) if folder.is_dir() else iter(())


def build_folder(folder: Path) -> Path | None:
    """The folder of the build in which a benchmark was assembled, or that it is; None where there is none."""
    places = (folder, folder.parent) if folder.name == BUILT else (folder,)
    return next((place for place in places if (place / STEPS_FOLDER).is_dir()), None)


def build_provenance(folder: Path) -> dict[str, Any]:
    """Steps with their counts, and who made what of every row, of the build in a folder.

    It is the plain mapping that a publication takes
    (`counterfoil.benchmarks.publishing.facts.Provenance.of`). Raises `DataError` where a manifest is
    damaged, or a table.
    """
    numbers = {path: path.name.partition("-")[0] for path in (folder / STEPS_FOLDER).iterdir()}
    numbered = {path: int(number) for path, number in numbers.items() if number.isdigit()}
    steps = [StepFolder(path) for path in sorted(numbered, key=numbered.__getitem__)]
    if not steps:
        return {}
    records = [step.record() for step in steps]
    rows = steps[-1].rows()
    columns = [name for name in rows.column_names if name == "id" or name.endswith(("_by", "_from", "_seed"))]
    return {
        "method": f"Built by counterfoil in {len(records)} steps with seed {records[0].seed}.",
        "steps": [
            {
                "name": record.step,
                "summary": STEPS[record.step].summary if record.step in STEPS else "",
                "settings": _chosen_settings(record),
                "rows_in": record.rows_in,
                "rows_out": record.rows_out,
                "dropped": dict(record.dropped),
            }
            for record in records
        ],
        **({"rows": rows.select(columns)} if len(columns) > 1 else {}),
    }


def _chosen_settings(record: StepRecord) -> dict[str, Any]:
    """The settings that are not the step's defaults; all of a step that is not known here."""
    known = fields(STEPS[record.step].kind) if record.step in STEPS else ()
    # A manifest has tuples as lists.
    defaults = {f.name: list(f.default) if isinstance(f.default, tuple) else f.default for f in known}
    return {
        name: _without_folder(value)
        for name, value in record.settings.items()
        if name not in defaults or value != defaults[name]
    }


def _without_folder(value: Any) -> Any:
    """A path of this machine by its last part, which is all that says anything to others."""
    if isinstance(value, list):
        return [_without_folder(part) for part in value]
    return Path(value).name if isinstance(value, str) and Path(value).is_absolute() else value
