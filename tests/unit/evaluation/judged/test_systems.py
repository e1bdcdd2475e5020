"""Correlations over systems: against scipy, by looking at every order, and by COCO's table of people."""

import json
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import kendalltau, pearsonr, spearmanr

from counterfoil.errors import InputError
from counterfoil.evaluation.system_scores import MEASURES
from counterfoil.evaluation.systems import system_correlations

#: COCO's challenge of 2015: M1 and M2 by system.
PEOPLE = {
    "Human": (0.638, 0.675),
    "Google": (0.273, 0.317),
    "MSR": (0.268, 0.322),
    "Montreal/Toronto": (0.262, 0.272),
    "MSR Captivator": (0.250, 0.301),
    "Berkeley LRCN": (0.246, 0.268),
    "m-RNN": (0.223, 0.252),
    "Nearest Neighbor": (0.216, 0.255),
    "PicSOM": (0.202, 0.250),
    "Brno": (0.194, 0.213),
    "MIL": (0.168, 0.197),
    "NeuralTalk": (0.166, 0.192),
}
HUMANS = {name: {system: both[k] for system, both in PEOPLE.items()} for k, name in enumerate(("M1", "M2"))}


def _named(values) -> dict[str, float]:
    return {f"s{i}": float(value) for i, value in enumerate(values)}


def test_values_are_scipys() -> None:
    found = system_correlations(HUMANS, HUMANS, over="systems", draws=300)
    x, y = np.array(list(PEOPLE.values())).T
    expected = (kendalltau(x, y).statistic, spearmanr(x, y).statistic, pearsonr(x, y).statistic)
    for measure, value in zip(MEASURES, expected, strict=True):
        one = found.get("M1", "M2", measure)
        assert one.value == pytest.approx(value)
        assert one.low < one.value < one.high
        assert (one.systems, one.exact) == (12, False)
        assert one.p < 0.01
        assert found.get("M1", "M1", measure).value == pytest.approx(1.0)
    assert found.notes == ()
    assert found.to_json() == system_correlations(HUMANS, HUMANS, over="systems", draws=300).to_json()


@pytest.mark.parametrize("seed", range(2))
def test_the_test_looks_at_every_order(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x, y = rng.integers(0, 5, 6).astype(float), rng.normal(size=6)
    x[:2] = 0.0, 7.0
    found = system_correlations({"m": _named(x)}, {"h": _named(y)}, over="systems", draws=50)
    of = {
        "kendall_tau_b": lambda a: kendalltau(a, y).statistic,
        "spearman": lambda a: spearmanr(a, y).statistic,
        "pearson": lambda a: pearsonr(a, y).statistic,
    }
    for measure, correlation in of.items():
        values = np.array([correlation(np.array(order)) for order in permutations(x)])
        one = found.get("m", "h", measure)
        assert one.exact
        assert one.p == pytest.approx((np.abs(values) >= abs(values[0]) - 1e-9).mean())
    assert "only 6 systems" in found.notes[0]


def test_drawn_orders_come_near_all_orders() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=9)
    y = x + 1.5 * rng.normal(size=9)
    one = system_correlations({"m": _named(x)}, {"h": _named(y)}, over="systems", draws=20_000).get(
        "m", "h", "kendall_tau_b"
    )
    assert one.p == pytest.approx(kendalltau(x, y, method="exact").pvalue, abs=0.015)


def test_few_systems_that_agree_are_no_proof() -> None:
    found = system_correlations({"m": _named(range(4))}, {"h": _named(range(4))}, over="systems", draws=100)
    for measure in MEASURES:
        one = found.get("m", "h", measure)
        assert (one.value, one.high) == (pytest.approx(1.0), pytest.approx(1.0))
        assert one.low < 0.3
        assert one.p > 0.05


def test_systems_that_one_lacks_are_left_out_and_named() -> None:
    humans = {"h": _named(range(5)), "other": _named(range(4))}
    found = system_correlations({"m": _named(range(5))}, humans, over="systems", draws=20)
    assert [found.get("m", human, "pearson").systems for human in humans] == [5, 4]
    assert found.left_out == {"other": ("s4",)}
    json.dumps(found.to_json(), allow_nan=False)


def test_equal_means_have_no_correlation() -> None:
    found = system_correlations(
        {"m": _named([1, 1, 1, 1])}, {"h": _named(range(4))}, over="systems", draws=20
    )
    assert all(np.isnan([each.value, each.low, each.high, each.p]).all() for each in found.correlations)
    assert json.loads(json.dumps(found.to_json(), allow_nan=False))["correlations"][0]["value"] is None


def test_what_cannot_be_correlated_is_refused() -> None:
    with pytest.raises(InputError, match="too few systems"):
        system_correlations({"m": {"a": 1.0, "b": 2.0, "c": 3.0}}, {"h": {"a": 1.0, "b": 2.0, "d": 3.0}})
    with pytest.raises(InputError, match="not a finite number"):
        system_correlations({"m": _named([1, float("nan"), 2])}, {"h": _named(range(3))})
