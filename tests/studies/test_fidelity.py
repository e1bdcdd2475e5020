"""The study of a built benchmark: its arithmetic, and what it finds."""

from pathlib import Path

import pytest

from counterfoil.evaluation.result import Estimate
from counterfoil.studies.fidelity import NETWORKS, FidelityStudy, build_fidelity
from counterfoil.studies.plan import SHORT


def estimate(value: float) -> Estimate:
    return Estimate(value, value - 0.025, value + 0.025, n=1400, chance=1 / 6)


def study(**built: float) -> FidelityStudy:
    drawn = {"a": estimate(0.30), "b": estimate(0.25)}
    found = {name: estimate(value) for name, value in built.items()}
    return FidelityStudy(drawn, found, (1400, 2400), 3000)


def test_order_and_intervals() -> None:
    near = study(a=0.32, b=0.23)
    assert near.same_order
    assert near.inside("a")
    assert near.inside("b")
    assert "(the same)" in near.table()
    assert "OUTSIDE" not in near.table()
    far = study(a=0.24, b=0.26)
    assert not far.same_order
    assert not far.inside("a")
    assert far.inside("b")
    assert far.table().count("OUTSIDE") == 1
    assert "order by bivlc: b, a (ANOTHER)" in far.table()


@pytest.mark.slow
@pytest.mark.models
def test_a_built_benchmark_puts_the_networks_in_the_order_of_the_drawn_one(tmp_path: Path) -> None:
    found = build_fidelity(tmp_path, SHORT)
    assert set(found.built) == set(NETWORKS)
    assert found.same_order, found.table()
    assert all(found.inside(name) for name in NETWORKS), found.table()
