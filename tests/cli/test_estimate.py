"""`counterfoil estimate`: what a command would take, with nothing written and nothing kept."""

import json

import numpy as np
import pytest

ASKED = ("evaluate", "pixels:colours", "world-quads", "--limit", 200, "--draws", 100)


def test_an_estimate_counts_what_is_left_to_do_and_keeps_nothing(counterfoil, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    found = counterfoil("estimate", "--sample", 3, "--json", "-", *ASKED, "--batch-size", 16, "--out", "run")
    assert found.code == 0, found.err
    whole = json.loads(found.out)
    (stage,) = whole["stages"]
    assert (stage["stage"], stage["items"], stage["bytes"]) == ("scoring pairs", 800, 800 * 8)
    assert whole["seconds"] == pytest.approx(whole["rest"] + stage["seconds"])
    assert whole["command"].startswith("evaluate pixels:colours world-quads")
    assert not (tmp_path / "run").exists()
    assert not list((tmp_path / "cache").rglob("*.npz"))

    assert counterfoil(*ASKED).code == 0
    shard = sorted((tmp_path / "cache").rglob("pairs/*.npz"))[0]
    rows = len(np.load(shard)["keys"])
    shard.unlink()
    (left,) = json.loads(counterfoil("estimate", "--json", "-", *ASKED).out)["stages"]
    assert left["items"] == rows
    assert not shard.exists()
    assert counterfoil(*ASKED).code == 0
    done = counterfoil("estimate", "--machines", 4, "--price", 2, "--watts", 100, "--carbon", 300, *ASKED)
    assert done.code == 0, done.err
    assert "everything else" in done.out
    assert "on 4 machines like this one" in done.out
    assert "at 2 an hour" in done.out
    assert "kWh at 100 W" in done.out
    assert "kg CO2 at 300 g/kWh" in done.out
    again = json.loads(counterfoil("estimate", "--json", "-", *ASKED, "--no-cache").out)
    assert [each["items"] for each in again["stages"]] == [800]


def test_a_build_is_estimated_at_its_real_size_and_leaves_nothing(counterfoil, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    asked = ("build", "bivlc", "--n", 30, "--set", "read.size=32", "--set", "imagine.size=32", "--out", "b")
    found = counterfoil("estimate", "--sample", 2, "--json", "-", *asked)
    assert found.code == 0, found.err
    whole = json.loads(found.out)
    (stage,) = whole["stages"]
    # Four candidates for each row.
    assert (stage["stage"], stage["items"]) == ("drawing", 120)
    assert 0 < stage["seconds"] < whole["seconds"]
    # Results are thrown away, and with them the folder that they were written to.
    assert "built" not in found.err
    assert not (tmp_path / "b").exists()
    assert not list((tmp_path / "cache").rglob("*.npz"))
