"""A training by a recipe: data and network ready, then a checkpoint and what was measured on the way."""

import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from math import isnan
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.training_rows import Missing, TrainingSet
from counterfoil.engine.plan import Note, Progress
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import changes_of, check_key
from counterfoil.inputs.files import Location, display_path, is_distant, location
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import Option, fields_of, rows_of
from counterfoil.jobs.evaluation_inputs import cache_of, processes
from counterfoil.jobs.job import documented, feedback_of, job, job_of, option
from counterfoil.jobs.results import Tabular, declared, lines
from counterfoil.jobs.shared_options import CACHE, WORKERS, Cache, Reporting, Settings
from counterfoil.models import checkpoint
from counterfoil.outputs import Folder, guarded as guarding
from counterfoil.report import figures
from counterfoil.report.tables import Cell, Column, Row, Table, amount
from counterfoil.storage import local_folder
from counterfoil.storage.files import names_in
from counterfoil.store import check_writable
from counterfoil.train.recipes import Detection, Read, Recipe, overridden, read_file

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone


def _field(name: str) -> Option:
    """The option of a recipe's field: what is not given is as the recipe has it."""
    return replace(fields_of(Recipe)[name].left_open.option, shown="", panel="Recipe")


@documented
class RunRows(Reporting, total=False):
    """What is trained on what, and where.

    Model and data:
        images: Folder of the images, where the data name files.
        regions: Region features of the images (npz, TSV, folder of npz), in place of pictures: vse, vsrn.
        validation: Validation rows, which select the weights.
        validation_share: Share of rows for validation; default: the data's split, else 0.2.
        out: Folder of the checkpoint.

    Recipe:
        guard: Benchmark measured during training, which shows what is forgotten; NAME=PATH.
        guard_images: Folder of the images of that benchmark.

    Work:
        device: auto, cpu, cuda, mps.
        devices: Number of devices.
        chunk_size: Rows per forward pass on each device, if a batch exceeds memory; gradients are those of
            the whole batch (GradCache).
    """

    images: Annotated[Path | None, option(None, folder=True)]
    regions: Annotated[Path | None, option(None)]
    validation: Annotated[Path | None, option(None)]
    validation_share: Annotated[float | None, option(None, low=0, high=0.99)]
    out: Annotated[Path | None, option(None)]
    guard: Annotated[str | None, option(None, metavar="BENCHMARK[=PATH]")]
    guard_images: Annotated[Path | None, option(None, metavar="FOLDER", folder=True)]
    device: Annotated[str | None, option(None)]
    #: None is one, or as many as torchrun started.
    devices: Annotated[int | None, option(None, low=1, high=most("devices"))]
    chunk_size: Annotated[int | None, option(None, low=1, high=most("batch_size"))]
    workers: Annotated[int | None, WORKERS]
    #: Where the captions of large tables are kept for the other processes of a training, and the next one.
    cache: Annotated[Cache, CACHE]


class TrainRows(RunRows, total=False):
    """The same, and fields of the recipe that are often changed."""

    steps: Annotated[int | None, _field("steps")]
    epochs: Annotated[int | None, _field("epochs")]
    batch_size: Annotated[int | None, _field("batch_size")]
    lr: Annotated[float | None, _field("lr")]
    precision: Annotated[Literal["fp32", "bf16"] | None, _field("precision")]
    seed: Annotated[int | None, _field("seed")]


#: The keys of [run], and the fields of the recipe.
RUN = ("model", "data", *(argument.name for argument in rows_of(RunRows)))
CHANGED = tuple(argument.name for argument in rows_of(TrainRows) if argument.name not in RUN)


def check_inputs(options: Mapping[str, Any], needed: Sequence[str]) -> None:
    """Raise `InputError` or `DataError` for what is missing or not there, before anything is loaded."""
    for name in needed:
        if options[name] is None:
            raise InputError(f"--{name} is missing", hint=MISSING[name])
    for name in ("images", "validation", "data", "regions"):
        path: Path | None = options[name]
        # A URL is looked at when read. A pattern of shards, train-{000..015}.tar, names files that are.
        if path is None or (name != "regions" and is_distant(path)) or path.is_dir():
            continue
        if name == "images" or not (path.exists() or "{" in path.name):
            kind = "folder" if name == "images" else "file or folder"
            raise DataError(f"no such {kind}", where=path, hint=f"check --{name}")


#: Networks that are made for the words of the data and train from scratch.
SCRATCH = ("small", "vse", "vsrn")
#: What to do where one of these is not named.
MISSING = {
    "model": "name open-clip:ARCH/WEIGHTS, hf:NAME_OR_FOLDER, "
    f"{', '.join(SCRATCH)}, or the folder of a checkpoint",
    "data": "name what is trained on; 'counterfoil world build training' makes some",
    "out": "name the folder that the checkpoint goes to",
}


@dataclass(frozen=True)
class Data:
    """What is trained on, what decides, and in words where the latter is from."""

    training: TrainingSet
    validation: TrainingSet | None
    validated: str


def read_data(options: Mapping[str, Any], recipe: Recipe) -> Data:
    """The rows to train on and those to select by: named ones, those the data have, or a share of them."""
    from counterfoil.benchmarks import training_files

    cache: Path | None = cache_of(options["cache"])
    shelf = None if cache is None else local_folder(cache) / "training"
    path, images, share = (options[name] for name in ("data", "images", "validation_share"))
    # What the training will leave out, or not look at, may as well not be there.
    missing: Missing = "keep" if recipe.unreadable == "skip" else "refuse"
    missing = missing if options["regions"] is None else "unread"
    read = partial(training_files.read, images=images, shelf=shelf, missing=missing)
    whole = read(path)
    held: TrainingSet | None
    if (validation := options["validation"]) is not None:
        held, words = read(validation), display_path(validation)
    elif share is None and _has_validation(path):
        held, words = read(path, split="validation"), "the data's own split"
    elif share == 0:
        held, words = None, ""
    else:
        part = 0.2 if share is None else share
        whole, held = training_files.split(whole, share=part, seed=42)
        words = f"{part:.0%} of the rows, drawn with seed 42"
    for rows in (whole,) if held is None else (whole, held):
        for role in recipe.needs:
            rows.need(role)
    return Data(whole, held, words)


def _has_validation(path: Path) -> bool:
    """Whether files or folders of both splits lie in a folder, as the hub and COCO name them."""
    if isinstance(where := location(path), Location):
        names = [] if path.suffix.lower() == ".tar" else sorted(names_in(where))
    elif path.is_dir():
        folders = (path, path / "data", path / "annotations")
        names = [file.name for folder in folders for file in folder.glob("*")]
    else:
        names = []
    splits = [name.removeprefix("captions_") for name in names]
    return all(any(name.startswith(kind) for name in splits) for kind in ("train", "val"))


@dataclass(frozen=True)
class Stage:
    """What one stage will do."""

    recipe: Recipe
    #: None for a detector's, whose units are no part of the network yet and are trained one by one.
    steps: int | None
    trained: int | None
    frozen: int


def stages_of(
    recipe: Recipe, backbone: "Backbone", rows: int, *, processes: int = 1, chunk: int | None = None
) -> tuple[Stage, ...]:
    """What each stage will do; raises `InputError` where the rows or processes are too few."""
    from counterfoil.train.dataloaders import check_batches, length
    from counterfoil.train.gradients import check_chunk
    from counterfoil.train.optim import count, trained_parameters

    everything = count(tuple(backbone.network.parameters()))
    if isinstance(recipe, Detection):
        return (Stage(recipe, None, None, everything),)
    planned = []
    for stage in recipe.staged():
        check_batches(stage.batch_size, stage.accumulate, rows, processes, of_command=True)
        check_chunk(chunk, stage.batch_size, processes, hint="choose a smaller --chunk-size")
        moved = count([parameter for _, parameter in trained_parameters(backbone.network, stage)])
        planned.append(Stage(stage, length(stage, rows), moved, everything - moved))
    return tuple(planned)


def read_guard(named: str | None, images: Path | None, *, note: Callable[[str], None]) -> Benchmark | None:
    """The questions at hand of the guard's benchmark, if one is named."""
    if named is None:
        return None
    name, _, path = named.partition("=")
    if name not in catalog.BENCHMARKS:
        name, path = named, ""
    whole = catalog.benchmark(name, data=path or None, images=images)
    benchmark = whole.available()
    if len(benchmark) < len(whole):
        note(f"--guard {name}: {len(benchmark):,} of {len(whole):,} questions are at hand")
    return benchmark


def load_backbone(spec: str, data: TrainingSet, recipe: Recipe, *, regions: Path | None = None) -> "Backbone":
    """The network to start from, with the recipe's heads; random weights are those of the recipe's seed."""
    from counterfoil.models.runtime import import_torch

    import_torch().manual_seed(recipe.seed)
    from counterfoil.train.objectives import with_heads

    if regions is not None:
        for stage in recipe.staged():
            for name, none in (("augment", "none"), ("erasing", 0)):
                if getattr(stage, name) != none:
                    problem = "regions are read as they are, and not as a part of a picture"
                    place, given = f"recipe {recipe.name}, {name}", getattr(stage, name)
                    raise InputError(problem, where=place, given=given, hint=f"--set {name}={none}")
    from_scratch = spec in SCRATCH and not _is_folder(spec)
    captions = [caption.text or "" for caption in data.captions] if from_scratch else []
    if not from_scratch:
        backbone = network(spec, allowed=MISSING["model"].removeprefix("name "))
    elif spec == "small":
        from counterfoil.models import small

        backbone = small.backbone(captions, seed=recipe.seed)
    else:
        from counterfoil.models import recurrent
        from counterfoil.models.region_files import read_regions

        features = None if regions is None else read_regions(regions)
        backbone = recurrent.backbone(captions, kind=spec, seed=recipe.seed, regions=features)
        return with_heads(backbone, recipe)
    backbone = checkpoint.regions_of(backbone, regions, where=spec, hint="--regions PATH")
    return with_heads(backbone, recipe)


def network(spec: str, *, allowed: str) -> "Backbone":
    """The network in a checkpoint's folder, or of a model library; `allowed` is for the error."""
    if _is_folder(spec):
        return checkpoint.read(Path(spec.removeprefix("ckpt:")))
    if ":" not in spec:
        hint = None
        if spec and Path(spec).is_dir():
            saved = (Path(spec) / "config.json").is_file()
            hint = f"did you mean hf:{spec}?" if saved else "this folder holds no card.json of a checkpoint"
        raise InputError("no such model", given=spec or "(empty)", allowed=allowed, hint=hint)
    from counterfoil.models import registry

    return registry.backbone(spec)


def _is_folder(spec: str) -> bool:
    return spec.startswith("ckpt:") or (Path(spec) / "card.json").is_file()


@dataclass(frozen=True)
class Outcome:
    """The outcome of a training: validations by name of the moment, duration and speed."""

    points: Mapping[str, Mapping[str, float]]
    #: The step whose weights are kept, and the last one.
    kept: int
    steps: int
    seconds: float
    rows_per_second: float | None = None
    waiting: float | None = None
    #: What steps are called.
    unit: str = "steps"
    #: The step after which it went on now, 0 where it began; the last one where there was nothing left to do.
    since: int = 0
    #: Rows that were not trained on because their pictures could not be read.
    left_out: int = 0
    #: The loss and what was validated, from step (or epoch) to value.
    curves: Mapping[str, Mapping[int, float]] = field(default_factory=dict)


class TrainingPlan(Tabular):
    """A training that is ready, as `dry_run` gives it: nothing is trained yet."""

    recipe: Recipe
    base: Recipe
    options: Mapping[str, Any]
    #: None, as the network, where the data or the model to train is not named.
    rows: Data | None = None
    backbone: "Backbone | None" = None
    stages: tuple[Stage, ...] = ()
    guarded: Benchmark | None = None

    rows_by = declared(
        field="one per field of the recipe: `field`, its `value`, and that of the recipe by name where it "
        "is `changed`"
    )

    def _rows(self, by: str) -> list[dict[str, Any]]:
        rows = []
        for name in [column.name for column in fields(self.recipe) if column.name not in ("name", "stages")]:
            value, old = (_word(getattr(one, name)) for one in (self.recipe, self.base))
            rows.append({by: name, "value": value, "changed": "" if value == old else old})
        return rows

    @property
    def tables(self) -> tuple[Table]:
        """The values of the recipe, and those that were changed."""
        rows = [
            (row["field"], f"{row['value']}  ({row['changed']})" if row["changed"] else row["value"])
            for row in self.to_arrow().to_pylist()
        ]
        title = f"{self.recipe.name}  {self.recipe.about}"
        return (Table.of(title, "field", [Column("value", align="left")], rows),)

    @property
    def notes(self) -> list[str]:
        """Where the values are from, the stages, what the source leaves open, and what is trained on what."""
        stages = [
            f"stage {number}: {', '.join(f'{name} {_word(value)}' for name, value in stage.items())}"
            for number, stage in enumerate(self.recipe.stages, start=1)
        ]
        left_open = [f"left open there, and what is done: {line}" for line in self.recipe.left_open]
        return [self.recipe.source, *stages, *left_open, *self.ahead()]

    def to_json(self) -> dict[str, Any]:
        return asdict(self.recipe)

    def ahead(self) -> Iterator[str]:
        """What will be trained on what, stage by stage."""
        if self.rows is None or self.backbone is None:
            return
        training, name = self.rows.training, self.backbone.name
        yield f"rows: {len(training):,} of {training.name}: {', '.join(training.rows)}"
        if self.rows.validation is not None:
            yield f"validation: {len(self.rows.validation):,} rows: {self.rows.validated}"
        for number, stage in enumerate(self.stages, start=1):
            recipe = stage.recipe
            several = f" of stage {number}" if len(self.stages) > 1 else ""
            if isinstance(recipe, Detection):
                ends = "" if recipe.steps is None else f", {recipe.steps:,} steps of either at most"
                yield f"parameters: a sigmoid unit per modality; {stage.frozen:,} frozen: {name}"
                yield (
                    f"epochs: {recipe.image_epochs} of images, {recipe.epochs} of captions{ends}; "
                    f"{recipe.optimiser} at {recipe.lr:g}"
                )
                continue
            assert stage.steps is not None
            yield (
                f"parameters{several}: {stage.trained:,} trained ({recipe.trains}), {stage.frozen:,} frozen: "
                f"{name}"
            )
            epochs = "" if recipe.steps is not None else f", {recipe.epochs} epochs"
            schedule = recipe.schedule.replace("-", " by ")
            schedule += f" after {recipe.warmup} steps of warm-up" if recipe.warmup else ""
            batches = (
                f"{recipe.accumulate} batches of {recipe.batch_size:,} rows, as one: negatives are of all"
            )
            yield (
                f"steps{several}: {stage.steps:,} of {recipe.batch_size * recipe.accumulate:,} rows{epochs}; "
                f"{recipe.precision}, {recipe.optimiser} at {recipe.lr:g}, {schedule}"
                f"{f'; {batches}' if recipe.accumulate > 1 else ''}"
            )
            if stage.steps < recipe.warmup:
                reached = recipe.lr * stage.steps / recipe.warmup
                yield f"the warm-up is longer than that: the learning rate only gets to {reached:g}"
            if recipe.select == "last" or self.rows.validation is None:
                yield f"kept{several}: the last weights"
                continue
            best = "lowest loss" if recipe.select == "loss" else f"highest {recipe.select}"
            often = "each epoch" if recipe.validate_every is None else f"every {recipe.validate_every} steps"
            ends = f"; ends after {recipe.patience:,} steps without a better one" if recipe.patience else ""
            yield f"kept{several}: the weights with the {best} in validation, {often}{ends}"


def _word(value: Any) -> str:
    if value is None:
        return "none"
    if isinstance(value, float):
        return f"{value:g}"
    return ", ".join(map(_word, value)) if isinstance(value, tuple) else str(value)


class TrainedModel(Tabular):
    """A checkpoint, and what was measured on the way to it."""

    recipe: str
    #: The folder of the checkpoint, which `load_model("ckpt:FOLDER")` and `evaluate` take.
    checkpoint: Path
    outcome: Outcome
    #: A benchmark that these weights may be measured on.
    next_on: str = ""

    rows_by = declared(
        measure="one per `moment` (first (step 5); kept, last (step 40)) and `measure` (a loss, the "
        "accuracy of a guard): its `value: float`"
    )

    def _rows(self, by: str) -> Iterator[dict[str, Any]]:
        for moment, values in self.outcome.points.items():
            yield from ({"moment": moment, by: name, "value": value} for name, value in values.items())

    @property
    def tables(self) -> tuple[Table]:
        """What was measured first, at the weights that are kept, and last."""
        points = self.outcome.points
        names = dict.fromkeys(name for values in points.values() for name in values)
        rows = tuple(Row(name, tuple(Cell(of.get(name)) for of in points.values())) for name in names)
        columns = tuple(Column(moment.partition(" (")[0], style="score") for moment in points)
        return (Table(f"{self.recipe}, {self.checkpoint}", columns, rows, "validation"),)

    @property
    def notes(self) -> list[str]:
        """What was measured when, which weights are kept, how fast it went, and a command that goes on."""
        outcome = self.outcome
        unit = outcome.unit.removesuffix("s")
        weights = f"kept: {unit} {outcome.kept:,} of {outcome.steps:,}"
        minutes, rest = divmod(round(outcome.seconds), 60)
        seconds = f"{minutes} min {rest:02d} s" if minutes else f"{outcome.seconds:.1f} s"
        speed = f"{outcome.steps:,} {unit if outcome.steps == 1 else outcome.unit} in {seconds}"
        if outcome.rows_per_second is not None:
            speed += f", {outcome.rows_per_second:,.1f} rows per second"
        if outcome.waiting is not None:
            speed += f", {outcome.waiting:.1%} of the time waiting for data"
        if outcome.since == outcome.steps:
            speed += "; it had ended before, and nothing was repeated (--no-resume starts anew)"
        elif outcome.since:
            speed += f"; it went on after step {outcome.since:,}"
        if outcome.left_out:
            speed += f"; without {amount(outcome.left_out, 'row')} whose images cannot be read"
        command = f"counterfoil evaluate {self.checkpoint} {self.next_on}"
        moments = [f"measured: {'; '.join(outcome.points)}"] if outcome.points else []
        return [*moments, weights, speed, *([command] if self.next_on else [])]

    def plot(self) -> Any:
        """A matplotlib figure of the loss and of what was validated over the training, a panel each.

        A dashed line marks the weights that are kept. Raises `InputError` where nothing was measured on the
        way.
        """
        curves = self.outcome.curves
        if not curves:
            raise InputError("nothing was measured on the way to these weights", where=self.checkpoint)
        return figures.training_curves(curves, kept_step=self.outcome.kept, unit=self.outcome.unit)

    def to_json(self) -> dict[str, Any]:
        """The outcome as plain values, without the curves: the checkpoint's journal has them."""
        return {name: value for name, value in asdict(self.outcome).items() if name != "curves"}


@job(
    outputs="json",
    examples="""Examples:
  counterfoil train trohn-img --model open-clip:ViT-B-32-quickgelu/openai --data TROHN-Img/ --out ckpt/
  counterfoil train coco --model ckpt/ --data world/ --steps 500 --guard world-quads --out more/
  counterfoil train mine.toml --model hf:./my-clip --data pairs.parquet --images photos/ --out ckpt/
  counterfoil train pcme --model ckpt/ --data shards/ --out pcme/ --dry-run
  counterfoil train coco --model ckpt/ --data 's3://bucket/shards/{00000..00099}.tar' --out more/
  counterfoil train trohn-img --model ckpt/ --data TROHN-Img/ --out ckpt/ --batch-size 400 --chunk-size 50

  torchrun --nproc-per-node 2 -m counterfoil train coco --model hf:./my-clip --data coco/ --out ckpt/""",
)
def train_model(
    recipe: Annotated[str | Path | Recipe, option(complete="recipes")],
    model: Annotated[str | None, option(flag="--model", metavar="MODEL")] = None,
    data: Annotated[Path | None, option(flag="--data")] = None,
    *,
    changed: Annotated[Settings, option(flag="--set", metavar="KEY=VALUE")] = None,
    resume: bool = True,
    dry_run: bool = False,
    overwrite: bool = False,
    **options: Unpack[TrainRows],
) -> TrainedModel | TrainingPlan:
    """Train a dual encoder by a recipe of the papers, or fine-tune one, and keep its best weights.

    Options, --set or a .toml file override the paper's values. An interrupted training continues.

    `recipe` may be a `Recipe`; `changed` are fields of it and their values, such as `{"lr": 1e-5}`, and the
    table [run] of a file says what is not given here. The checkpoint in the folder `out` is what `evaluate`
    takes as `ckpt:OUT`. Raises `DataError` for what cannot be read, `InputError` for rows and recipes that do
    not fit, and where `out` holds something else. (`counterfoil.train` is the package of loops, recipes and
    losses.)

    Arguments:
        recipe: Name of a recipe (see 'counterfoil list recipes'), or a .toml file.

    Model and data:
        model: Model to train: open-clip:ARCH/WEIGHTS, open-clip:ARCH (from scratch), hf:NAME_OR_FOLDER,
            small, vse, vsrn (from scratch), or the folder of a checkpoint.
        data: Benchmark folder, Parquet file or folder, table, or WebDataset shards to train on; shards also
            behind a URL.

    Recipe:
        changed: Another field of the recipe, KEY=VALUE; may be repeated.

    Work:
        resume: Whether to continue an interrupted training.
        dry_run: Show the recipe and the plan, train nothing.
    """
    feedback = feedback_of(options)
    read = Read(recipe, recipe, {}) if isinstance(recipe, Recipe) else read_file(recipe)
    run: dict[str, Any] = {"model": model, "data": data, **options}
    arguments = job_of(train_model).arguments
    # What is not given is as the table [run] of the recipe's file has it.
    for key, value in read.run.items():
        check_key(key, RUN, where=f"{recipe}, [run]")
        if run[key] == arguments[key].default:
            run[key] = arguments[key].converted(value, f"{recipe}, [run], key '{key}'")
    run["device"] = run["device"] or "auto"
    values = {name: options[name] for name in CHANGED if options[name] is not None}  # type: ignore[literal-required]
    values |= changes_of(type(read.recipe), changed, "--set")
    wanted = overridden(read.recipe, values, where="--set") if values else read.recipe
    check_inputs(run, () if dry_run else ("model", "data", "out"))
    reads = ("data", "images", "regions", "validation", "guard_images", "model", "guard")
    with guarding("train", overwrite=overwrite, reads=[run[name] for name in reads]) as outputs:
        if run["out"] is not None and not dry_run:
            check_writable(run["out"], folder=True)
            outputs.folder(Folder(run["out"], checkpoint.FILES, checkpoint.is_training))
        if run["data"] is None or run["model"] is None:
            return TrainingPlan(wanted, read.base, run)
        _check_devices(wanted, run)
        guarded = read_guard(run["guard"], run["guard_images"], note=feedback.note)
        with feedback.busy(f"reading {display_path(run['data'])}"):
            rows = read_data(run, wanted)
        with feedback.busy(f"loading {run['model']}"):
            backbone = load_backbone(run["model"], rows.training, wanted, regions=run["regions"])
        stages = stages_of(
            wanted, backbone, len(rows.training), processes=_processes(run), chunk=run["chunk_size"]
        )
        plan = TrainingPlan(wanted, read.base, run, rows, backbone, stages, guarded)
        if dry_run:
            return plan
        rows_changed = (row for row in plan.to_arrow().to_pylist() if row["changed"])
        changes = [f"{row['field']} {row['value']} ({row['changed']})" for row in rows_changed]
        summary = changes and f"changed (and what the recipe says): {', '.join(changes)}"
        for line in lines(f"{wanted.name}: {wanted.about}; {wanted.source}", summary, *plan.ahead()):
            feedback.note(line)
        with feedback.progress() as progress:
            outcome = _train(plan, resume=resume, progress=progress, note=feedback.remark)
        # The data at hand are likely the world that a network from scratch was trained on.
        drawn = set(re.split(r"[()]", plan.backbone.name if plan.backbone else "")) & set(SCRATCH)
        next_on = (run["guard"] or "").partition("=")[0] or ("world-quads" if drawn else "bivlc")
        return TrainedModel(wanted.name, run["out"], outcome, next_on)


def _train(plan: TrainingPlan, *, resume: bool, progress: Progress, note: Note) -> Outcome:
    # The package sets its own level when it is imported; that of its modules stays as it is set here.
    for name in ("lightning_fabric.utilities.distributed", "lightning_fabric.utilities.rank_zero"):
        logging.getLogger(name).setLevel(logging.WARNING)
    wanted, rows, recipe, guarded = plan.options, plan.rows, plan.recipe, plan.guarded
    backbone = plan.backbone
    assert rows is not None
    assert backbone is not None
    work: dict[str, Any] = {name: wanted[name] for name in ("out", "device")}
    work |= {"validation": rows.validation, "workers": processes(wanted["workers"]), "note": note}
    if isinstance(recipe, Detection):
        return _train_detector(backbone, recipe, rows.training, progress=progress, **work)
    from counterfoil.train.gradients import Computing
    from counterfoil.train.loop import fit
    from counterfoil.train.saving import Monitors, Saving
    from counterfoil.train.validation import ForgettingGuard, better

    began: list[int] = []

    def watched(stage: str, done: int, total: int) -> None:
        if stage == "training" and not began:
            began.append(done)
        progress(stage, done, total)

    guard = None if guarded is None else ForgettingGuard(guarded, name=guarded.name)
    fitted = fit(
        backbone,
        recipe,
        rows.training,
        monitors=Monitors(guard=guard, at_start=True),
        saving=Saving(resume=resume),
        computing=Computing(wanted["devices"] or 1, wanted["chunk_size"]),
        progress=watched,
        **work,
    )
    guarded_name = "" if guarded is None else guarded.name
    curve = _curves(fitted.history, "").get(recipe.select, {})
    if {0, fitted.step} <= curve.keys():
        start, best = curve[0], curve[fitted.step]
        if better({recipe.select: start}, recipe.select, best):
            note(
                f"the training made the model worse: {recipe.select} was {start:.4f} at the start and is "
                f"{best:.4f} at step {fitted.step:,}, whose weights are kept; try a lower learning rate"
            )
    last = max([fitted.step, *(int(entry["step"]) for entry in fitted.history)])
    return Outcome(
        _moments(fitted.history, fitted.step, guarded_name),
        fitted.step,
        last,
        fitted.seconds,
        fitted.rows_per_second,
        fitted.waiting,
        since=began[0] if began else last,
        left_out=fitted.left_out,
        curves=_curves(fitted.history, guarded_name),
    )


def _train_detector(backbone: "Backbone", recipe: Detection, data: TrainingSet, **work: Any) -> Outcome:
    from counterfoil.train.detectors import fit

    began = perf_counter()
    fitted = fit(backbone, recipe, data, **work)
    # Without validation rows, the share classified correctly during training.
    right = {
        side: [epoch.accuracy if isnan(epoch.validation) else epoch.validation for epoch in epochs]
        for side, epochs in fitted.history.items()
    }
    curves = {f"accuracy of {side}s": dict(enumerate(values, 1)) for side, values in right.items()}
    points: dict[str, dict[str, float]] = {}
    for side, values in right.items():
        for moment, epoch in (("first", 0), ("kept", fitted.best_epochs[side] - 1), ("last", -1)):
            points.setdefault(f"{moment} epoch", {})[f"accuracy of {side}s"] = values[epoch]
    return Outcome(
        points,
        max(fitted.best_epochs.values()),
        max(map(len, right.values())),
        perf_counter() - began,
        unit="epochs",
        left_out=fitted.left_out,
        curves=curves,
    )


def _moments(
    history: Sequence[Mapping[str, float]], best_step: int, guarded: str
) -> dict[str, dict[str, float]]:
    """What was measured first, at the step whose weights are kept, and last, by the name of the moment."""
    measured: dict[int, dict[str, float]] = {}
    for name, curve in _curves(history, guarded).items():
        for step, value in curve.items() if name != "training loss" else ():
            measured.setdefault(step, {})[name] = value
    if not measured:
        return {}
    moments = {"first": min(measured), "kept": best_step, "last": max(measured)}
    words = {
        step: ", ".join(word for word, moment in moments.items() if moment == step)
        for step in sorted(measured.keys() & moments.values())
    }
    return {f"{word} (step {step:,})": measured[step] for step, word in words.items()}


def _curves(history: Sequence[Mapping[str, float]], guarded: str) -> dict[str, dict[int, float]]:
    """The loss and what was validated, from step to value, of the entries of a journal."""
    curves: dict[str, dict[int, float]] = {}
    for entry in history:
        for name, value in entry.items():
            if name == "loss" or name == guarded or name.startswith("validation_"):
                label = "training loss" if name == "loss" else name.removeprefix("validation_")
                curves.setdefault(label, {})[int(entry["step"])] = value
    return curves


def _processes(options: Mapping[str, Any], of: str = "WORLD_SIZE") -> int:
    """How many processes train: as many as torchrun started (everywhere, or here), where it did."""
    started = os.environ.get(of) if "TORCHELASTIC_RUN_ID" in os.environ else None
    return int(started) if started is not None else options["devices"] or 1


def _check_devices(recipe: Recipe, options: Mapping[str, Any]) -> None:
    """Raise `InputError` where --devices and torchrun disagree, and for what no detector's training has."""
    here = _processes(options, "LOCAL_WORLD_SIZE")
    if options["devices"] not in (None, here):
        raise InputError(
            "--devices and torchrun disagree",
            given=f"{options['devices']}, and {here} processes on this machine",
            hint="leave --devices out: torchrun's --nproc-per-node says how many",
        )
    everywhere = _processes(options)
    unused = {"--devices": everywhere if everywhere > 1 else None, "--chunk-size": options["chunk_size"]}
    for name, given in unused.items():
        if isinstance(recipe, Detection) and given is not None:
            problem = "a detector is trained by one process, on what its frozen encoder gives"
            raise InputError(problem, where=name, given=given, hint=f"leave {name} out")


#: What both ends may be.
_MIXABLE = "a checkpoint's folder, open-clip:ARCH/WEIGHTS, hf:NAME"


@job(
    examples="""Examples:
  counterfoil train mix open-clip:ViT-B-32-quickgelu/openai ckpt/ --alpha 0.5 --out ckpt/mixed
  counterfoil train mix hf:./my-clip ckpt/ --alpha 0.3 --out mixed"""
)
def mix(
    start: str,
    tuned: str,
    *,
    alpha: Annotated[float, option(low=0, high=1)],
    out: Path,
    overwrite: bool = False,
    **reporting: Unpack[Reporting],
) -> None:
    """Interpolate the weights before and after training (WiSE-FT), which often keeps both abilities.

    'counterfoil evaluate' measures the mixture on either task.

    Arguments:
        start: Where training began: a checkpoint's folder or KIND:WHAT.
        tuned: What it gave: a checkpoint's folder.
        alpha: The mixture: 0 is the start, 1 the end.
        out: Folder of the checkpoint.
    """
    feedback = feedback_of(reporting)
    with guarding("train mix", overwrite=overwrite, reads=(start, tuned)) as outputs:
        outputs.folder(Folder(out, checkpoint.FILES))
        before, after = network(start, allowed=_MIXABLE), network(tuned, allowed=_MIXABLE)
        from counterfoil.train.validation import interpolate

        states = before.network.state_dict(), after.network.state_dict()
        after.network.load_state_dict(interpolate(*states, alpha))
        checkpoint.save(out, after, {"mixture": {"start": start, "tuned": tuned, "alpha": alpha}})
    feedback.note(f"wrote the mixture at {alpha:g}: {out}")
