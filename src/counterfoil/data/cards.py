"""Cards of the known benchmarks: `catalog.toml`, and those that other packages register."""

from collections.abc import Iterator
from importlib.resources import files

from counterfoil.data.benchmark import Card
from counterfoil.inputs.files import parse_toml
from counterfoil.inputs.models import check_model
from counterfoil.registry import Registry


def _own() -> Iterator[Card]:
    text = files("counterfoil.data").joinpath("catalog.toml").read_text(encoding="utf-8")
    for name, facts in parse_toml(text, where="catalog.toml").items():
        yield check_model({"name": name, **facts}, Card, where=f"catalog.toml, [{name}]")


#: The card of every benchmark by name, counterfoil's own in the order of the file.
BENCHMARKS: Registry[Card] = Registry("benchmark", Card, "counterfoil.benchmarks", _own)


def card(name: str) -> Card:
    """The card of one benchmark; raises `UnknownNameError` with the nearest name.

    >>> card("bivlc").size
    2933
    >>> card("winogrund")
    Traceback (most recent call last):
    counterfoil.errors.UnknownNameError: unknown benchmark; given: winogrund; ... did you mean 'winoground'?
    """
    return BENCHMARKS.find(name)
