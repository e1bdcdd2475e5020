"""What `captions systems` needs beside the values: names of systems, what people gave them, agreement."""

import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterfoil.cli.amounts import amount
from counterfoil.cli.caption_tables import agreement_table, systems_table
from counterfoil.cli.caption_values import Value
from counterfoil.data.tables import first_double, floats, read_table
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.judged.systems import SystemCorrelations, system_correlations

#: Two systems agree or do not; there is nothing to correlate.
FEWEST = 3

#: Columns that name a system, first the likeliest.
_NAMES = ("system", "name", "model", "captioner", "id")


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


def read_humans(path: Path, systems: Sequence[str]) -> dict[str, dict[str, float]]:
    """What people gave each system, by the name of the score; systems that are not asked about are left out.

    Raises `DataError` where no column names systems, a number is none, or a system is missing or doubled, and
    `InputError` for fewer than `FEWEST` systems.
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
    column = next((lower[name] for name in _NAMES if name in lower), None)
    if column is None:
        raise DataError(
            "no column names the systems", where=path, given=", ".join(table.columns), allowed=_NAMES
        )
    scores = [name for name in table.columns if name != column]
    if not scores:
        raise DataError("no scores of people", where=path, hint="a column for each, such as M1 and M2")
    called = [str(cell).strip() for cell in table[column]]
    double = first_double(called)
    if double is not None:
        raise DataError("a system occurs twice", where=path, given=double)
    missing = [name for name in systems if name not in called]
    if missing:
        raise DataError(
            "systems that people gave nothing",
            where=path,
            given=", ".join(missing),
            allowed=", ".join(called),
            hint="a system is called as its file, without the ending",
        )
    numbers = {name: floats(table, name) for name in scores}
    place = {name: row for row, name in enumerate(called)}
    return {system: {name: float(numbers[name][place[system]]) for name in scores} for system in systems}


def agreement(
    found: Mapping[str, Mapping[str, Value]], people: Mapping[str, Mapping[str, float]]
) -> SystemCorrelations:
    """How far each metric puts systems in the order in which people do."""
    metrics, scores = _columns(found), _columns(people)
    return system_correlations(
        {metric: {system: own[metric].value for system, own in found.items()} for metric in metrics},
        {score: {system: own[score] for system, own in people.items()} for score in scores},
    )


def shown(
    found: Mapping[str, Mapping[str, Value]],
    people: Mapping[str, Mapping[str, float]] | None,
    agreed: SystemCorrelations | None,
    *,
    captions: int,
    width: int = 80,
) -> list[Any]:
    """The tables for a terminal."""
    lines = systems_table(
        found,
        people,
        title=f"{amount(len(found), 'system')} on {amount(captions, 'image')}",
        width=width,
    )
    return lines if agreed is None else [*lines, *agreement_table(agreed)]


def columns(
    found: Mapping[str, Mapping[str, Value]], people: Mapping[str, Mapping[str, float]] | None
) -> dict[str, list[Any]]:
    """The table as columns for a file: a row per system."""
    table: dict[str, list[Any]] = {"system": list(found)}
    table |= {name: [own[name].value for own in found.values()] for name in _columns(found)}
    if people is not None:
        table |= {name: [people[system][name] for system in found] for name in _columns(people)}
    return table


def _columns(rows: Mapping[str, Mapping[str, Any]]) -> list[str]:
    return list(next(iter(rows.values())))
