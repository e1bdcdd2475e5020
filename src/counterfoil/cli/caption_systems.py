"""Inputs of `captions systems` beside the values: system names, human ratings, agreement."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.text import Text

from counterfoil.cli import caption_values
from counterfoil.cli.caption_tables import reasons, systems_report
from counterfoil.cli.caption_values import Value
from counterfoil.cli.report_tables import printed
from counterfoil.data.tables import DataTable, first_double, floats, read_table
from counterfoil.engine.caption_inputs import CaptionInputs
from counterfoil.engine.session import Session
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.judged.system_scores import NumberOf, SystemScores, together
from counterfoil.evaluation.judged.systems import SystemCorrelations, system_correlations
from counterfoil.report.labels import amount
from counterfoil.report.markup import Table as Report
from counterfoil.report.markup import to_csv, to_latex, to_markdown
from counterfoil.scorers.captions.base import CaptionMetric
from counterfoil.store import write_text

#: Two systems agree or do not; there is nothing to correlate.
FEWEST = 3

#: Columns that name a system, a judge, an image, first the likeliest.
_NAMES = ("system", "name", "model", "captioner", "id")
_JUDGES = ("judge", "rater", "annotator", "worker")
_IMAGES = ("image", "image_id", "video", "video_id")

_LONG = "a row per system, or per judgement with columns 'judge' or 'image' that tell them apart"


def names(files: Sequence[Path]) -> tuple[str, ...]:
    """What systems are called: their files, without endings; raises `InputError` for two of one name."""
    found = tuple(file.stem for file in files)
    double = first_double(found)
    if double is not None:
        raise InputError("two systems of one name", given=double, hint="files are called after their systems")
    return found


@contextmanager
def shelf(cache: Path | None) -> Iterator[Path]:
    """The folder of finished work; a passing one where none is kept, so that images are embedded once."""
    if cache is not None:
        yield cache
        return
    with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
        yield Path(folder)


@dataclass(frozen=True)
class People:
    """What people gave systems, by the name of the score; and each judge where the table tells them apart."""

    scores: dict[str, SystemScores]
    judges: dict[str, dict[str, SystemScores]]

    def table(self) -> dict[str, dict[str, float]]:
        """{system: {score: number}}."""
        systems = next(iter(self.scores.values())).systems
        return {
            system: {name: float(of.fixed[row]) for name, of in self.scores.items()}
            for row, system in enumerate(systems)
        }


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
        """The table in a file, which has a row per system, judge or image, or each of them.

        Raises `DataError` where no column names systems, a number is none, a judgement is doubled, or one of
        `systems` is missing, and `InputError` for fewer than `FEWEST` of these.
        """
        if len(systems) < FEWEST:
            raise InputError(
                "too few systems to correlate with what people gave them",
                given=", ".join(systems),
                allowed=f"{FEWEST} systems or more",
                hint="leave --humans out",
            )
        table = read_table(path)
        lower = {name.lower(): name for name in table.columns}
        column, by_judge, by_image = (
            next((lower[name] for name in names if name in lower), None)
            for names in (_NAMES, _JUDGES, _IMAGES)
        )
        if column is None:
            raise DataError(
                "no column names the systems", where=path, given=", ".join(table.columns), allowed=_NAMES
            )
        scores = [name for name in table.columns if name not in (column, by_judge, by_image)]
        if not scores:
            raise DataError("no scores of people", where=path, hint="a column for each, such as M1 and M2")
        called = _cells(table, column)
        judge, image = (_cells(table, each) if each else [""] * len(called) for each in (by_judge, by_image))
        double = first_double(zip(called, judge, image, strict=True))
        if double is not None:
            given = ", ".join(filter(None, double))
            raise DataError("a system occurs twice", where=path, given=given, hint=_LONG)
        missing = [name for name in systems if name not in called]
        if missing:
            raise DataError(
                "systems that people gave nothing",
                where=path,
                given=", ".join(missing),
                allowed=", ".join(dict.fromkeys(called)),
                hint="a system is called as its file, without the ending",
            )
        numbers = {score: floats(table, score) for score in scores}
        return cls(path, called, judge, image, by_image is not None, numbers)

    def people(self, systems: Sequence[str], images: Sequence[str]) -> People:
        """What people gave these systems; others are left out.

        Raises `DataError` for an image that is none of `images`.
        """
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
            judges[score] = {
                name: SystemScores.means(systems, of)
                if self.of_images
                else SystemScores(tuple(systems), of[:, 0])
                for name, of in tables.items()
            }
        return People({score: together(own) for score, own in judges.items()}, judges)


def _cells(table: DataTable, column: str) -> list[str]:
    return [str(cell).strip() for cell in table[column]]


@dataclass(frozen=True, eq=False)
class SystemValues:
    """A system: the value of each metric, and what it is made of, image by image."""

    values: Mapping[str, Value]
    scores: Mapping[str, NDArray[np.float64]]
    sums: Mapping[str, tuple[NDArray[np.float64], NumberOf] | None]

    @classmethod
    def of(
        cls,
        asked: CaptionInputs,
        metrics: Mapping[str, CaptionMetric],
        images: Sequence[str],
        *,
        session: Session = Session(),
    ) -> "SystemValues":
        """What metrics say of a system's captions, in the order of `images`."""
        values, scores = caption_values.values(asked, metrics, session=session)
        row = {name: number for number, name in enumerate(images_of(asked))}
        order = [row[name] for name in images]
        sums = {}
        for name, metric in metrics.items():
            made = caption_values.summed(asked, metric, values[name], scores[name])
            sums[name] = None if made is None else (made[0][order], made[1])
        return cls(values, {name: own[order] for name, own in scores.items()}, sums)


def images_of(asked: CaptionInputs) -> list[str]:
    """What each row's image is called."""
    return [asked.captions[position].id for position in asked.candidate]


def agreement(found: Mapping[str, SystemValues], people: People, **how: Any) -> SystemCorrelations:
    """How far each metric puts systems in the order in which people do."""
    return system_correlations(
        {metric: _column(metric, found) for metric in _columns(values_of(found))},
        people.scores,
        judges=people.judges,
        **how,
    )


def _column(metric: str, found: Mapping[str, SystemValues]) -> SystemScores:
    """A metric of all systems, with what adds up to it where something does."""
    fixed = SystemScores.of({system: own.values[metric].value for system, own in found.items()})
    made = [own.sums[metric] for own in found.values()]
    known = [each for each in made if each is not None]
    if len(known) < len(made):
        return fixed
    sums, value = np.stack([each[0] for each in known]), known[0][1]
    is_mean = all(own.values[metric].is_mean for own in found.values())
    scores = np.stack([own.scores[metric] for own in found.values()]) if is_mean else None
    return SystemScores(fixed.systems, fixed.fixed, sums, value, scores)


def values_of(found: Mapping[str, SystemValues]) -> dict[str, Mapping[str, Value]]:
    """{system: {metric: value}}."""
    return {system: own.values for system, own in found.items()}


@dataclass(frozen=True)
class SystemTables:
    """The tables of a comparison of systems, and what is said below them."""

    systems: Report
    agreement: tuple[Report, ...]
    differences: tuple[Report, ...]
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        found: Mapping[str, SystemValues],
        people: People | None,
        agreed: SystemCorrelations | None,
        *,
        captions: int,
        titles: Mapping[str, str],
    ) -> "SystemTables":
        """All tables of it; of people only where they were asked."""
        from counterfoil.report.systems_page import agreements, differences

        values = values_of(found)
        return cls(
            systems_report(
                values,
                None if people is None else people.table(),
                title=f"{amount(len(found), 'system')} on {amount(captions, 'image')}",
            ),
            () if agreed is None else agreements(agreed),
            () if agreed is None else differences(agreed),
            (
                *reasons(values),
                *(() if agreed is None else agreed.notes),
                *(f"{name}: {title}" for name, title in titles.items()),
            ),
        )

    @property
    def tables(self) -> tuple[Report, ...]:
        """All tables."""
        return (self.systems, *self.agreement, *self.differences)

    def printed(self, width: int) -> list[Any]:
        """The tables for a terminal, with what is said below them."""
        parts = [part for table in self.tables for part in printed(table, width)]
        return [*parts, *(Text(note, style="dim") for note in self.notes)]

    def write(
        self, *, csv: Path | None, markdown: Path | None, latex: Path | None, html: Path | None
    ) -> None:
        """Write the tables as files of these kinds."""
        if csv is not None:
            write_text(csv, to_csv(*self.tables))
        if markdown is not None:
            pages = [to_markdown(table, intervals=True) for table in self.tables]
            write_text(markdown, "\n".join([*pages, *(f"{note}.\n" for note in self.notes)]))
        if latex is not None:
            pages = [to_latex(table, intervals=True) for table in self.tables]
            write_text(latex, "\n".join([*pages, *(f"% {note}.\n" for note in self.notes)]))
        if html is not None:
            from counterfoil.report.systems_page import systems_page

            write_text(html, systems_page(self.systems, self.agreement, self.differences, self.notes))


def columns(found: Mapping[str, SystemValues], people: People | None) -> dict[str, list[Any]]:
    """The table as columns for a file: a row per system."""
    values = values_of(found)
    table: dict[str, list[Any]] = {"system": list(values)}
    table |= {name: [own[name].value for own in values.values()] for name in _columns(values)}
    if people is not None:
        given = people.table()
        table |= {name: [given[system][name] for system in values] for name in people.scores}
    return table


def _columns(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return list(next(iter(rows.values())))
