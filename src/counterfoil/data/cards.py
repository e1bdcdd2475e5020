"""The benchmarks that are known, one card each: `catalog.toml` read into `Card`s."""

import tomllib
from functools import cache
from importlib.resources import files

from counterfoil.data.benchmark import Card
from counterfoil.errors import UnknownNameError


@cache
def cards() -> dict[str, Card]:
    """Every benchmark of the catalog by name, in the order of the file.

    >>> [name for name in cards() if name.startswith("sugarcrepe")]
    ['sugarcrepe', 'sugarcrepe-pp']
    """
    rows = tomllib.loads(files("counterfoil.data").joinpath("catalog.toml").read_text(encoding="utf-8"))
    return {name: Card(name=name, **facts) for name, facts in rows.items()}


def card(name: str) -> Card:
    """The card of one benchmark; raises `UnknownNameError` with the nearest name.

    >>> card("bivlc").size
    2933
    >>> card("winogrund")
    Traceback (most recent call last):
    counterfoil.errors.UnknownNameError: unknown benchmark; given: winogrund; ... did you mean 'winoground'?
    """
    known = cards()
    if name not in known:
        raise UnknownNameError("benchmark", name, known)
    return known[name]
