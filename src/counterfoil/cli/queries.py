"""The queries that a user names in a file, for `pool --queries`."""

from collections.abc import Sequence
from pathlib import Path

from counterfoil.data.pools import ROLES, Direction
from counterfoil.data.tables import EXTENSIONS, labels, read_table
from counterfoil.engine.top_lists import ModelLists
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_text


def wanted(
    models: Sequence[ModelLists], file: Path, *, ways: Sequence[Direction]
) -> dict[Direction, tuple[str, ...]]:
    """The queries in a file, by direction, in its order and each once.

    A line (or a cell of column `query` or `id`) is the id of an image or a caption, or "i2t/ID", "t2i/ID";
    a column `direction` says it too. Raises `DataError` for unknown ids or some model does not
    answer, with how many there are, and for ids that could be either.
    """
    asked = {way: set(models[0].ids(way)[0]) for way in ways}
    found: dict[Direction, dict[str, None]] = {way: {} for way in ways}
    unknown: list[str] = []
    either: list[str] = []
    for way_said, written in _written(file):
        head, slash, rest = written.partition("/")
        said, name = (head, rest) if slash and head in ROLES else (way_said, written)
        fits = [way for way in ways if name in asked[way] and said in ("", way)]
        if len(fits) == 1:
            found[fits[0]][name] = None
        else:
            (either if fits else unknown).append(written)
    if unknown:
        raise DataError(
            "unknown queries",
            where=file,
            given=f"{len(unknown):,} of them, such as {', '.join(unknown[:3])}",
            allowed=" or ".join(f"ids of {ROLES[way][0]}s ({way})" for way in ways),
        )
    if either:
        raise DataError(
            "ids of both an image and a caption",
            where=file,
            given=f"{len(either):,} of them, such as {either[0]}",
            hint=f"choose a --direction, or write i2t/{either[0]} or t2i/{either[0]}",
        )
    for m in models:
        for way, names in found.items():
            answered = set(m.asked[way])
            lacking = [name for name in names if name not in answered]
            if lacking:
                raise DataError(
                    "queries that a model was not asked",
                    where=f"{file}, {m.name}, {way}",
                    given=f"{len(lacking):,} of {len(names):,}, such as {', '.join(lacking[:3])}",
                    hint="give a run over a benchmark that asks them, such as coco-5k, or embeddings",
                )
    return {way: tuple(names) for way, names in found.items()}


def _written(file: Path) -> list[tuple[str, str]]:
    """(direction or "", id) of each query in a file."""
    if file.suffix.lower() in EXTENSIONS:
        table = read_table(file)
        column = next((name for name in ("query", "id") if name in table), None)
        if column is None and len(table.columns) == 1:
            column = next(iter(table.columns))
        names = labels(table, column or "query")
        ways = labels(table, "direction") if "direction" in table else ("",) * len(table)
        return [(way, name) for way, name in zip(ways, names, strict=True) if name]
    lines = read_text(file, hint="check --queries").splitlines()
    found = [("", line.strip()) for line in lines if line.strip()]
    if not found:
        raise DataError("no query in this file", where=file, allowed="an id per line")
    return found
