"""Cards of the known benchmarks: `catalog.toml`, and those that other packages register."""

from collections.abc import Iterator
from importlib.resources import files

from counterfoil.data.benchmark import Card
from counterfoil.inputs.files import parse_toml
from counterfoil.inputs.models import check_model
from counterfoil.registry import Registry


def cards_of(package: str) -> Iterator[Card]:
    """The cards in `catalog.toml` of a package of counterfoil, in the order of the file."""
    text = files(package).joinpath("catalog.toml").read_text(encoding="utf-8")
    for name, facts in parse_toml(text, where="catalog.toml").items():
        yield check_model({"name": name, **facts}, Card, where=f"catalog.toml, [{name}]")


#: The card of every benchmark by name; `counterfoil.catalog` adds those that are drawn from the world.
BENCHMARKS: Registry[Card] = Registry(
    "benchmark", Card, "counterfoil.benchmarks", lambda: cards_of("counterfoil.data")
)


def card(name: str) -> Card:
    """The card of one benchmark; raises `UnknownNameError` with the nearest name.

    >>> card("bivlc").size
    2933
    >>> card("winogrund")
    Traceback (most recent call last):
    counterfoil.errors.UnknownNameError: unknown benchmark; given: winogrund; ... did you mean 'winoground'?
    """
    return BENCHMARKS.find(name)
