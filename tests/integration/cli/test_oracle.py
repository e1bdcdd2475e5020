"""`world:oracle`: everything right on every form, asked by name like any scorer."""

import json

import pytest

from counterfoil import catalog
from counterfoil.errors import UnknownNameError


def test_the_oracle_gets_everything_right(counterfoil, monkeypatch):
    # Small pictures and galleries are drawn faster, and an oracle does not look.
    monkeypatch.setattr("counterfoil.world.benchmarks.SIZE", 32)
    monkeypatch.setattr("counterfoil.world.benchmarks.IMAGES", 60)
    worlds = "world-quads", "world-choices", "world-gallery"
    options = "--ties", "strict", "--draws", 100, "--json", "-", "--quiet"
    said = counterfoil.succeeds("evaluate", "world:oracle", *worlds, *options)
    results = json.loads(said.out)
    assert [result["benchmark"] for result in results] == list(worlds)
    for result in results:
        values = {measure: found["value"] for measure, found in result["measures"].items()}
        assert values == pytest.approx(dict.fromkeys(values, 1.0), abs=1e-12)


def test_there_is_one_scorer_of_the_world():
    with pytest.raises(UnknownNameError, match="did you mean 'oracle'"):
        catalog.scorer("world:oracel")
