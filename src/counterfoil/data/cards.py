"""The benchmarks that are known, one card each: `catalog.toml` read into `Card`s."""

from functools import cache
from importlib.resources import files

from counterfoil.data.benchmark import Card
from counterfoil.errors import UnknownNameError
from counterfoil.inputs.models import check_model
from counterfoil.inputs.parsed import parse_toml


@cache
def cards() -> dict[str, Card]:
    """Every benchmark of the catalog by name, in the order of the file.

    >>> [name for name in cards() if name.startswith("sugarcrepe")]
    ['sugarcrepe', 'sugarcrepe-unrefined', 'sugarcrepe-pp']
    """
    text = files("counterfoil.data").joinpath("catalog.toml").read_text(encoding="utf-8")
    rows = parse_toml(text, where="catalog.toml")
    return {
        name: check_model({"name": name, **facts}, Card, where=f"catalog.toml, [{name}]")
        for name, facts in rows.items()
    }


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
