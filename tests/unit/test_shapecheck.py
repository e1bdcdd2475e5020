"""Shape checks of the test run: what is refused."""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pytest
from jaxtyping import Float, Int

import counterfoil.metrics.ranking
import shapecheck
from counterfoil.world.sample import contrasts
from refusals import refuses


@shapecheck.checked
def both(a: Float[np.ndarray, "n"], b: "Float[np.ndarray, 'n'] | None" = None) -> Float[np.ndarray, "n"]:
    return a if b is None else b[:1]


@shapecheck.checked
def plain(count: int, *, share: float = 1.0, of: "unknown.Type" = None) -> list[str]:
    return ["a"] * count if count > 0 else [count]


@shapecheck.checked
def steps(rows: Float[np.ndarray, "n"]) -> Iterator[float]:
    yield from rows


@shapecheck.checked
@dataclass(frozen=True)
class Rows:
    values: Float[np.ndarray, "n d"]
    ids: Int[np.ndarray, "n"]


def floats(*shape: int) -> np.ndarray:
    return np.zeros(shape)


def test_what_fits_passes_and_axis_names_are_forgotten_after_each_call():
    assert len(both(floats(2))) == 2
    assert len(both(floats(1), floats(1))) == 1
    assert len(both(floats(3))) == 3
    assert plain(2, share=1, of=object()) == ["a", "a"]
    assert list(steps(floats(2))) == [0, 0]
    assert len(Rows(values=floats(2, 3), ids=np.zeros(2, int)).ids) == 2


@pytest.mark.parametrize(
    "wrong",
    [
        lambda: both(floats(2, 2)),
        lambda: both(np.zeros(2, int)),
        lambda: both([0.0]),
        lambda: both(floats(2), floats(3)),  # one axis name, two lengths
        lambda: both(floats(2), floats(2)),  # the result is one long
        lambda: plain("2"),
        lambda: plain(1, share="all"),
        lambda: plain(0),
        lambda: steps(np.zeros(2, int)),
        lambda: Rows(values=floats(2, 3), ids=np.zeros(3, int)),
        lambda: Rows(values=floats(2), ids=np.zeros(2, int)),
    ],
)
def test_what_does_not_fit_is_refused(wrong):
    with pytest.raises(Exception, match=r"(?i)violat|type-check") as refused:
        wrong()
    assert "type" in type(refused.value).__name__.lower()


def test_the_package_is_checked():
    refuses(r"(?i)violat", contrasts, "3", error=Exception)
    assert len([f for f in vars(counterfoil.metrics.ranking).values() if hasattr(f, "__wrapped__")]) > 5
