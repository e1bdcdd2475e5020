"""A step of a build: rows in, rows out, a reason for every row that is dropped.

Rows are an Arrow table. Its columns are the roles of training data (`image`, `caption`, `negative_caption`,
`negative_image`, `generated_image`, `generated_caption`), labels (`subset`, `type`), and

    id                      unique; what is made of a row is called "ROW/what", its candidates "ROW#0", ...
    of                      of candidates: the id of the row that they are candidates for
    X_by, X_from, X_seed    who made what is in column X, from which row, with which seed
    NAME, negative_NAME     scores of the caption and of the negative caption
    scene, negative_scene   in the drawn world: what the image and the negative image show, as JSON

A cell of an image column is the name of a file in the build's folder of images, or of one of the user's.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.image_files import image_path
from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.engine.session import Session
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import check_fields
from counterfoil.stats.bootstrap import seed_of

#: The column that says why a row was dropped.
REASON = "reason"
#: The column with the scene that an image column shows, in the drawn world.
SCENE_OF = {"image": "scene", "negative_image": "negative_scene", "generated_image": "generated_scene"}


def _unavailable(name: str, *given: Any) -> Any:
    raise InputError("models and benchmarks are not at hand here", given=name)


@dataclass(frozen=True)
class StepContext:
    """What a step works with: folders, the seed, the engine's session, and what names stand for.

    `photos` is the user's folder of images. `model` loads a model by name and settings, `benchmark` reads
    one by its name or folder, data and images. `device` is for models that a step loads. Random numbers
    depend on `step`.
    """

    folder: Path
    seed: int = 0
    session: Session = field(default_factory=Session)
    photos: Path | None = None
    step: str = ""
    model: Callable[[str, Mapping[str, str]], Any] = _unavailable
    benchmark: Callable[[str, Path | None, Path | None], Benchmark] = _unavailable
    device: str = "auto"

    @property
    def images(self) -> Path:
        """The folder of images that the build made."""
        return self.folder / "images"

    @property
    def keep(self) -> Path:
        """The folder of finished parts of this step."""
        return self.folder / "unfinished" / self.step

    def rng(self, *names: object) -> np.random.Generator:
        """Random numbers of their own for each seed, step and names, whatever was drawn before."""
        return np.random.default_rng(self.number(*names))

    def number(self, *names: object) -> int:
        """A seed below 2**63 from the build's seed, the step and names."""
        return seed_of(self.seed, self.step, *names)

    def progress(self, stage: str, done: int, total: int) -> None:
        self.session.progress(stage, done, total)

    def note(self, text: str) -> None:
        self.session.note(text)

    def image(self, cell: str, *, missing: bool = False) -> Image:
        """The image that a cell names, read when needed; `missing` allows one without a file."""
        file = self._find(cell)
        none = missing and file is None
        return Image(cell, None if none else FileSource(self.image_file(cell)))

    def image_file(self, cell: str) -> Path:
        """The file that a cell names: one of the build, else of the user's folder of images."""
        path = self._find(cell)
        if path is None:
            hint = "give the folder of the images with --images"
            raise DataError("no such image", where=self.step or "the build", given=cell, hint=hint)
        return path

    def _find(self, cell: str) -> Path | None:
        outside = None
        for folder in filter(None, (self.images, self.photos)):
            try:
                if (folder / cell).is_file():
                    return image_path(cell, folder, where=self.step or "the build")
            # A whole path may be of the user's folder.
            except DataError as error:
                outside = error
        if outside is not None:
            raise outside
        return None


@dataclass(frozen=True, eq=False)
class Output:
    """What a step kept and made, what it dropped (with a column `reason`), and facts for the report.

    Facts are plain JSON values that depend on neither time nor machine. `files` are further files that the
    step wrote, by their paths in the build's folder.
    """

    kept: pa.Table
    dropped: pa.Table | None = None
    facts: Mapping[str, Any] = field(default_factory=dict)
    files: Sequence[str] = ()

    @property
    def reasons(self) -> dict[str, int]:
        """How many rows were dropped for each reason, the most frequent first."""
        reasons = [] if self.dropped is None else self.dropped[REASON].to_pylist()
        return dict(sorted(Counter(reasons).items(), key=lambda item: (-item[1], item[0])))


@runtime_checkable
class Step(Protocol):
    """A frozen dataclass of settings, each with a default and a `help` in its metadata, and these.

    A setting whose metadata has `file` true names a file or a folder, and one with `model` models or
    their settings (`model` lists the words that name none): a step is run again where what they name changed.
    """

    #: What recipes call the step, and a number that is raised when its result changes.
    name: ClassVar[str]
    version: ClassVar[int]

    @property
    def requires(self) -> Sequence[str]:
        """The columns that rows must have."""

    @property
    def produces(self) -> Sequence[str]:
        """The columns that the step adds or replaces."""

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """Apply the step; equal rows, settings and seed give equal bytes."""


class BuiltStep:
    """What a step is unless it says otherwise: the first version, no columns needed or made, images opened.

    Settings are declared by `counterfoil.inputs.fields.setting`, with `file` or `model` where they name such,
    and `column` where they name columns that are read. Raises `InputError` for one outside its range.
    """

    version: ClassVar[int] = 1
    #: The columns that are required and produced whatever the settings are.
    required: ClassVar[Sequence[str]] = ()
    produced: ClassVar[Sequence[str]] = ()
    #: Whether the images of the columns that it reads are opened, and rows without one dropped.
    opens: ClassVar[bool] = True
    drops_blank: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_fields(self)
        self.model_settings()

    def model_settings(self) -> dict[str, dict[str, str]]:
        """What `set` says of each model that is named: `KEY=VALUE` of all, `KIND.KEY=VALUE` of one kind."""
        names = [name for field, name in names_in_settings(self, "model") if field != "set"]
        by_model: dict[str, dict[str, str]] = {name: {} for name in names}
        for pair in getattr(self, "set", ()):
            key, equals, value = pair.partition("=")
            if not equals or not key:
                allowed = "KEY=VALUE, or KIND.KEY=VALUE of one of several"
                raise InputError("setting of the model", given=pair, allowed=allowed)
            kind, dot, setting = key.partition(".")
            chosen = [name for name in names if not dot or name.partition(":")[0] == kind]
            if not chosen:
                what, allowed = "a setting of a model that is not named", ", ".join(names) or "none"
                raise InputError(what, given=pair, allowed=allowed)
            for name in chosen:
                by_model[name][setting if dot else key] = value
        return by_model

    @property
    def requires(self) -> Sequence[str]:
        return (*self.required, *(name for _, name in names_in_settings(self, "column")))

    @property
    def produces(self) -> Sequence[str]:
        return self.produced


def names_in_settings(step: Any, key: str) -> Iterator[tuple[str, str]]:
    """The settings of a step with `key` in their metadata, each with every name that it gives."""
    for parameter in fields(step):
        words, value = parameter.metadata.get(key), getattr(step, parameter.name)
        if words in (None, False) or value is None:
            continue
        for name in value if isinstance(value, tuple) else (value,):
            if words is True or name not in words:
                yield parameter.name, name


def split_rows(rows: pa.Table, keep: Any, reason: str | Sequence[str]) -> tuple[pa.Table, pa.Table]:
    """The rows where `keep` is true, and the others with a column `reason`: one text, or one per row."""
    mask = pa.array(np.asarray(keep, dtype=bool))
    dropped = rows.filter(pc.invert(mask))
    if isinstance(reason, str):
        reasons = pa.array([reason] * len(dropped), pa.string())
    else:
        reasons = pa.array(reason, pa.string()).filter(pc.invert(mask))
    return rows.filter(mask), dropped.append_column(REASON, reasons)


def with_column(rows: pa.Table, name: str, values: Any) -> pa.Table:
    """The table with a column added, or replaced where it has one of this name."""
    if name in rows.column_names:
        return rows.set_column(rows.column_names.index(name), name, values)
    return rows.append_column(name, values)


def with_texts(rows: pa.Table, columns: Mapping[str, Sequence[str | None]]) -> pa.Table:
    """The table with several columns of texts added or replaced, in order."""
    for name, cells in columns.items():
        rows = with_column(rows, name, pa.array(cells, pa.string()))
    return rows


@dataclass(frozen=True)
class Generated:
    """What a step made for a `row` (its `cell`), `by` whom, with which `seed`, or the `reason` why none."""

    row: str
    by: str
    cell: str | None = None
    seed: int | None = None
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)

    @staticmethod
    def names(target: str) -> tuple[str, str, str, str]:
        """The columns that say what was made, by whom, from which row and with which seed."""
        return target, f"{target}_by", f"{target}_from", f"{target}_seed"


def with_generated(rows: pa.Table, target: str, generated: Sequence[Generated]) -> pa.Table:
    """The rows with what was made for each in the column `target`, and the columns that say how."""
    *texts, seed = Generated.names(target)
    cells = zip(*((one.cell, one.by, one.row) for one in generated), strict=True) if generated else [()] * 3
    rows = with_texts(rows, dict(zip(texts, cells, strict=True)))
    return with_column(rows, seed, pa.array([one.seed for one in generated], pa.int64()))


def codes_of(column: pa.Array | pa.ChunkedArray) -> tuple[NDArray[np.int64], list[Any]]:
    """A number for each row, equal for equal values (null among them), and the values by their numbers."""
    coded = pc.dictionary_encode(column, null_encoding="encode")
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    return coded.indices.to_numpy(zero_copy_only=False).astype(np.int64), coded.dictionary.to_pylist()


def order_by(**keys: Any) -> NDArray[np.int64]:
    """The rows sorted by some keys, the first first, all ascending."""
    order = pc.sort_indices(pa.table(keys), sort_keys=[(name, "ascending") for name in keys])
    return np.asarray(order.to_numpy(), dtype=np.int64)


def ranks(group: NDArray[np.int64], order: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each row among those of its group, counted from 0, where rows come in this order."""
    sizes, positions = np.bincount(group), np.empty(len(group), dtype=np.int64)
    by_group = order[np.argsort(group[order], kind="stable")]
    positions[by_group] = np.arange(len(group)) - np.repeat(np.cumsum(sizes) - sizes, sizes)
    return positions


def check_columns(step: Step, rows: pa.Table, *, where: object) -> None:
    """Raise `DataError` where rows lack a column that the step reads, or ids are missing or not unique."""
    for name in ("id", *step.requires):
        if name not in rows.column_names:
            given, hint = ", ".join(rows.column_names), f"put a step that makes '{name}' before it"
            what = f"no column '{name}', which '{step.name}' reads"
            raise DataError(what, where=where, given=given, hint=hint)
    check_ids(rows, where=where)


def check_ids(rows: pa.Table, *, where: object) -> None:
    if rows["id"].null_count or len(pc.unique(rows["id"])) != len(rows):
        raise DataError("ids are not unique", where=where, hint="give every row an id of its own")


def filled(rows: pa.Table, names: Sequence[str], *, where: object) -> list[list[str]]:
    """The cells of columns of texts; raises `DataError` for the first row without one."""
    columns = [rows[name].to_pylist() for name in names]
    for name, cells in zip(names, columns, strict=True):
        row = next((row for row, cell in enumerate(cells) if not cell), None)
        if row is not None:
            raise DataError(f"a row without {name}", where=f"{where}, row '{rows['id'][row].as_py()}'")
    return columns
