"""Captioning systems side by side: values of metrics, ratings of people, and how far both agree."""

import tempfile
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.answers import versions
from counterfoil.benchmarks.tables import first_double, floats, read_table
from counterfoil.engine.caption_scoring import CaptionInputs
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.systems import (
    NumberOf,
    SystemCorrelations,
    SystemScores,
    system_correlations,
    together,
)
from counterfoil.jobs import captions
from counterfoil.jobs.captions import MetricRequest, MetricRows, Value, same_items
from counterfoil.jobs.job import feedback_of, job, option
from counterfoil.jobs.results import SavedTable, TextTables, declared, write
from counterfoil.jobs.shared_options import DRAWS, SEED
from counterfoil.models.captions.base import CaptionMetric
from counterfoil.report import html
from counterfoil.report.rankings_page import agreements, differences
from counterfoil.report.tables import Cell, Column, Row, Table, amount

#: Two systems have no useful correlation.
FEWEST = 3

_LONG = "a row per system, or per judgement with columns 'judge' or 'image' that tell them apart"


def names(files: Sequence[str | Path]) -> tuple[str, ...]:
    """What systems are called: their files, without endings; raises `InputError` for two of one name."""
    stems = tuple(Path(file).stem for file in files)
    double = first_double(stems)
    if double is not None:
        raise InputError("two systems of one name", given=double, hint="files are called after their systems")
    return stems


@dataclass(frozen=True)
class People:
    """People's ratings of systems, by the name of the score; by judge where the table names judges."""

    scores: dict[str, SystemScores]
    judges: dict[str, dict[str, SystemScores]]

    def table(self) -> dict[str, dict[str, float]]:
        """{system: {score: number}}."""
        systems = enumerate(next(iter(self.scores.values())).systems)
        return {name: {m: float(of.fixed[row]) for m, of in self.scores.items()} for row, name in systems}


@dataclass(frozen=True)
class SystemRatings:
    """A table of what people gave: per row a system, a judge, an image (empty without) and the numbers."""

    path: Path
    system: Sequence[str]
    judge: Sequence[str]
    image: Sequence[str]
    of_images: bool
    numbers: Mapping[str, NDArray[np.float64]]

    @classmethod
    def read(cls, path: Path, systems: Sequence[str]) -> "SystemRatings":
        """Read a table with a row per system, judge or image, or each of them."""
        if len(systems) < FEWEST:
            raise InputError(
                "too few systems to correlate with what people gave them",
                given=", ".join(systems),
                allowed=f"{FEWEST} systems or more",
                hint="leave --humans out",
            )
        table = read_table(path)
        if "system" not in table:
            given = ", ".join(table.columns)
            raise DataError("no column 'system'", where=path, given=given, hint=_LONG)
        scores = [name for name in table.columns if name not in ("system", "judge", "image")]
        if not scores:
            raise DataError("no scores of people", where=path, hint="a column for each, such as M1 and M2")
        called, judge, image = (
            [str(cell).strip() for cell in table[name]] if name in table else [""] * len(table)
            for name in ("system", "judge", "image")
        )
        double = first_double(zip(called, judge, image, strict=True))
        if double is not None:
            given = ", ".join(filter(None, double))
            raise DataError("a system occurs twice", where=path, given=given, hint=_LONG)
        if missing := [name for name in systems if name not in called]:
            raise DataError(
                "systems that people gave nothing",
                where=path,
                given=", ".join(missing),
                allowed=", ".join(dict.fromkeys(called)),
                hint="a system is called as its file, without the ending",
            )
        numbers = {score: floats(table, score) for score in scores}
        return cls(path, called, judge, image, "image" in table, numbers)

    def people(self, systems: Sequence[str], images: Sequence[str]) -> People:
        """People's ratings of these systems; others are left out."""
        place = {name: number for number, name in enumerate(images)} if self.of_images else {"": 0}
        row_of = {name: number for number, name in enumerate(systems)}
        rows = [row for row, name in enumerate(self.system) if name in row_of]
        for row in rows:
            if self.image[row] not in place:
                raise DataError(
                    "an image that no system wrote a caption of",
                    where=f"{self.path}, row {row + 1}",
                    given=self.image[row],
                    allowed=f"such as {images[0]}",
                )
        judges: dict[str, dict[str, SystemScores]] = {}
        for score, numbers in self.numbers.items():
            names = dict.fromkeys(self.judge[row] for row in rows)
            tables = {name: np.full((len(systems), len(place)), np.nan) for name in names}
            for row in rows:
                tables[self.judge[row]][row_of[self.system[row]], place[self.image[row]]] = numbers[row]
            if self.of_images:
                judges[score] = {name: SystemScores.means(systems, of) for name, of in tables.items()}
            else:
                judges[score] = {n: SystemScores(tuple(systems), of[:, 0]) for n, of in tables.items()}
        return People({score: together(votes) for score, votes in judges.items()}, judges)


def images_of(inputs: CaptionInputs) -> list[str]:
    """What each row's image is called."""
    return [inputs.captions[position].id for position in inputs.candidate]


#: The value of each metric, by system.
SystemValues = Mapping[str, Mapping[str, Value]]
#: Of a system and a metric the scores of images, and what adds up to the value, where something does.
Parts = tuple[NDArray[np.float64], tuple[NDArray[np.float64], NumberOf] | None]


def agreement(
    values: SystemValues, parts: Mapping[str, Sequence[Parts]], people: People, **how: Any
) -> SystemCorrelations:
    """How far each metric puts systems in the order in which people do; `parts` are of all by metric."""
    by_metric = {}
    for metric, of_systems in parts.items():
        fixed = SystemScores.of({system: of_system[metric].value for system, of_system in values.items()})
        present = [sums for _, sums in of_systems if sums is not None]
        if len(present) < len(values):
            by_metric[metric] = fixed
            continue
        sums, value = np.stack([summands for summands, _ in present]), present[0][1]
        is_mean = all(of_system[metric].is_mean for of_system in values.values())
        scores = np.stack([of_system for of_system, _ in of_systems]) if is_mean else None
        by_metric[metric] = SystemScores(fixed.systems, fixed.fixed, sums, value, scores)
    return system_correlations(by_metric, people.scores, judges=people.judges, **how)


class SystemComparison(TextTables, SavedTable):
    """A row per system, a column per metric, and how metrics order systems as people do."""

    values: SystemValues
    people: People | None
    #: How far metrics order systems as people do, None without their ratings.
    agreement: SystemCorrelations | None
    metrics: Mapping[str, CaptionMetric]
    #: How many captions each system wrote.
    captions: int

    rows_by = declared(
        system="one per system: its name, the value of each metric, and what people gave it",
        value="one per `system` and `metric`: `value: float`, `mean: float`, `low: float`, `high: float` "
        "(95 %), `n: int`, `is_mean: bool`, `no_interval` (why there is none)",
    )
    command, page_has_figures = "captions systems", False

    def _rows(self, by: str) -> pa.Table | list[Any]:
        if by == "system":
            table: dict[str, list[Any]] = {"system": list(self.values)}
            table |= {name: [one[name].value for one in self.values.values()] for name in self.metrics}
            if self.people is not None:
                given = self.people.table()
                table |= {name: [given[system][name] for system in given] for name in self.people.scores}
            return pa.table(table)
        cells = ((system, *item) for system, one in self.values.items() for item in one.items())
        return [({"system": system, "metric": name}, value) for system, name, value in cells]

    @property
    def systems(self) -> Table:
        """A row per system, a column per metric and per score of people; the best in bold."""
        people = None if self.people is None else self.people.table()
        best = {name: max(one[name].value for one in self.values.values()) for name in self.metrics}
        rows = []
        for system, one in self.values.items():
            cells = [
                Cell(value.value, value.low, value.high, value.n, rank=int(value.value == best[name]))
                for name, value in one.items()
            ]
            given = [] if people is None else [Cell(f"{score:g}") for score in people[system].values()]
            rows.append(Row(system, (*cells, *given)))
        scores = () if self.people is None else self.people.scores
        heads = (*(Column(name, style="score") for name in best), *(Column(name) for name in scores))
        title = f"{amount(len(self.values), 'system')} on {amount(self.captions, 'image')}"
        return Table(title, heads, tuple(rows), "system")

    @property
    def tables(self) -> tuple[Table, ...]:
        """The systems, how far metrics agree with people, and which of them agree better."""
        if self.agreement is None:
            return (self.systems,)
        return (self.systems, *agreements(self.agreement), *differences(self.agreement))

    @property
    def notes(self) -> list[str]:
        """Why there are no intervals, limits of the agreement, and what metrics are."""
        return [
            *captions.no_intervals(self.values),
            *(() if self.agreement is None else self.agreement.notes),
            *(f"{name}: {title}" for name, title in captions.titles(self.metrics).items()),
        ]

    def to_json(self) -> dict[str, Any]:
        return {
            "captions": self.captions,
            "systems": {name: captions.to_json(one) for name, one in self.values.items()},
            **({} if self.people is None else {"humans": self.people.table()}),
            **({} if self.agreement is None else {"agreement": self.agreement.to_json()}),
            "identities": {name: metric.identity.to_json() for name, metric in self.metrics.items()},
            "versions": versions(),
        }

    def to_html(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write one self-contained page."""
        page = html.render(
            "tables.html",
            title="Captioning systems, metrics and people",
            standfirst="Metrics of systems, and how far they put systems in the order in which people do.",
            tables=self.tables,
            notes=self.notes,
        )
        write(path, page, command="captions systems", overwrite=overwrite)


@job(
    outputs="save json html markdown latex csv",
    examples="""Examples:
  counterfoil captions systems --predictions A.json B.json C.json --references captions_val2014.json
  counterfoil captions systems --predictions A.json B.json C.json --references r.json --humans m.csv
  counterfoil captions systems --predictions A.json B.json C.json --references r.json --humans judged.csv
  --over systems --html systems.html --latex systems.tex

m.csv has a row per system: its name (that of its file, without .json) in the column `system`, and a number
in each other column, such as M1 and M2 of the COCO challenge. judged.csv has a row per judgement, with a
column `judge`, a column `image`, or both: judges are then compared with each other too, and intervals account
for who said what of which image.""",
)
def compare_systems(
    predictions: Annotated[Sequence[str | Path], option(flag="--predictions", metavar="FILE...")],
    references: Annotated[str | Path, option(flag="--references")],
    *,
    metrics: Annotated[str | Sequence[str], captions.METRICS] = ("bleu-4", "rouge-l", "cider"),
    humans: str | Path | None = None,
    over: Literal["images", "systems"] = "images",
    draws: Annotated[int, DRAWS] = 10_000,
    seed: Annotated[int, SEED] = 0,
    **options: Unpack[MetricRows],
) -> SystemComparison:
    """Compare captioners: a row per system, a column per metric, and how metrics correlate with people.

    All systems must have written captions of the same images.

    Raises `DataError` for files that do not fit each other, and `InputError` for two systems of one name.

    Arguments:
        predictions: A JSON file of captions per system.
        references: Captions that people wrote: a JSON file.
        humans: Human scores of the systems: a table with a column per score.
        over: What is resampled for intervals of correlations, and permuted in their tests.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     one, two, references = (Path(folder, f"{name}.json") for name in ("one", "two", "r"))
    ...     _ = one.write_text('{"1": "a red cat"}'), two.write_text('{"1": "dogs"}')
    ...     _ = references.write_text('{"1": ["a red cat"]}')
    ...     compared = compare_systems([one, two], references, metrics="bleu-1", cache=None, quiet=True)
    >>> compared.to_arrow()["system"].to_pylist()
    ['one', 'two']
    """
    feedback = feedback_of(options)
    request = MetricRequest.of(metrics, options, feedback)
    called = names(predictions)
    judged = None if humans is None else SystemRatings.read(Path(humans), called)
    messages: set[str] = set()

    def once(text: str) -> None:
        # The same folder and the same references are behind every system.
        if text not in messages:
            messages.add(text)
            feedback.note(text)

    with feedback.busy("reading captions"):
        inputs = [request.read(Path(file), Path(references), note=once) for file in predictions]
    same_items(inputs)
    pictures = images_of(inputs[0])
    people = None if judged is None else judged.people(called, pictures)
    values: dict[str, Mapping[str, Value]] = {}
    parts: dict[str, list[Parts]] = {}
    folder = request.session.folder
    # A passing folder where no work is kept, so that images are embedded once.
    with nullcontext(folder) if folder else tempfile.TemporaryDirectory(prefix="counterfoil-") as cache:
        metrics_by_name = request.load(inputs[0], Path(cache), feedback)
        for name, inputs_of in zip(called, inputs, strict=True):
            with feedback.progress() as report:
                session = replace(request.session, cache=cache, progress=report)
                values[name], scores = captions.values(inputs_of, metrics_by_name, session=session)
            row = {image: number for number, image in enumerate(images_of(inputs_of))}
            order = [row[image] for image in pictures]
            for metric, of in metrics_by_name.items():
                summed = captions.summed(inputs_of, of, values[name][metric], scores[metric])
                sums = None if summed is None else (summed[0][order], summed[1])
                parts.setdefault(metric, []).append((scores[metric][order], sums))
    agreed = None
    if people is not None:
        with feedback.busy("drawing images and systems anew"):
            agreed = agreement(values, parts, people, over=over, draws=draws, seed=seed)
    return SystemComparison(values, people, agreed, metrics_by_name, len(inputs[0]))
