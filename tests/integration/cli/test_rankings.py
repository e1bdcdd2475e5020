"""`counterfoil compare rankings`, from run folders to tables, files and a page."""

from dataclasses import replace

import numpy as np
import pytest

from .annotator_world import NAMES, made


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three models on a gallery, and on half of its queries."""
    world = made(tmp_path_factory.mktemp("rankings"))
    card = world.benchmark.card.model_copy(update={"name": "half", "title": "Half"})
    half = replace(world.benchmark, card=card).select(np.arange(len(world.benchmark)) % 2 == 0)
    for name in NAMES:
        world.run(name)
        world.run(name, benchmark=half)
    return world.folder / "runs"


@pytest.mark.parametrize("width", [60, 140])
def test_no_line_is_wider_than_the_terminal(counterfoil, runs, monkeypatch, width):
    monkeypatch.setenv("COLUMNS", str(width))
    said = counterfoil.succeeds("compare rankings", runs, "--draws", 100)
    assert max(map(len, said.out.splitlines())) <= width
    assert "Values of the models in per cent, and their ranks" in said.out
    for name in NAMES:
        assert said.out.count(name) >= 3


def test_two_runs_of_one_name_are_told_apart_by_their_folders_or_refused(counterfoil, runs, tmp_path):
    # One folder holds two runs of the same model on the same benchmark: the folders above them name them.
    for name in ("first", "second"):
        for source in (runs / "one" / "mine").iterdir():
            target = tmp_path / name / "one" / "mine" / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    said = counterfoil.succeeds(
        f"compare rankings {tmp_path}/first {tmp_path}/second {runs}/two/mine --draws 100"
    )
    assert "first/one" in said.out
    assert "second/one" in said.out
