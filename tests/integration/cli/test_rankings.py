"""`counterfoil compare rankings`, from run folders to tables, files and a page."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from counterfoil.benchmarks import Scores
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import save_run
from counterfoil.metrics.correlation import kendall_tau_b
from counterfoil.world.sample import quads

from .annotator_world import IMAGES, NAMES, PER, made


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models on a gallery, and on half of its queries."""
    world = made(tmp_path_factory.mktemp("rankings"))
    card = world.benchmark.card.model_copy(update={"name": "half", "title": "Half"})
    half = replace(world.benchmark, card=card).select(np.arange(len(world.benchmark)) % 2 == 0)
    for name in NAMES:
        world.run(name)
        world.run(name, benchmark=half)
    return world.folder / "runs"


def test_every_format_holds_the_same_numbers(counterfoil, runs: Path, tmp_path: Path) -> None:
    said = counterfoil.succeeds(
        f"compare rankings {runs} --draws 200 --k 20 --json {tmp_path}/r.json --csv {tmp_path}/r.csv "
        f"--html {tmp_path}/r.html --title",
        "Rank & file",
    )
    found = json.loads((tmp_path / "r.json").read_text())
    assert set(found["models"]) == set(NAMES)
    names = [f"{column['benchmark']}:{column['measure']}" for column in found["columns"]]
    assert sorted(names) == sorted(
        f"{world}:{side}_recall_at_1" for world in ("mine", "half") for side in ("i2t", "t2i", "mean")
    )
    values = np.array(found["values"])
    for i, model in enumerate(found["models"]):
        for j, name in enumerate(names):
            benchmark, _, measure = name.partition(":")
            result = json.loads((runs / model / benchmark / "result.json").read_text())
            assert values[i, j] == pytest.approx(result["measures"][measure]["value"], abs=1e-12)
    assert len(found["pairs"]) == 15
    for pair in found["pairs"]:
        a, b = names.index(pair["a"]), names.index(pair["b"])
        tau = kendall_tau_b(values[:, a], values[:, b])
        assert (np.nan if pair["tau"] is None else pair["tau"]) == pytest.approx(tau, abs=1e-12, nan_ok=True)
    lists = {(one["benchmark"], one["direction"], one["queries"], one["k"]) for one in found["lists"]}
    assert {("mine", "i2t", IMAGES, 20), ("mine", "t2i", IMAGES * PER, 20)} <= lists
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    pair = next(pair for pair in found["pairs"] if pair["tau"] is not None)
    (line,) = [r for r in rows if (r["what"], r["a"], r["b"]) == ("tau", pair["a"], pair["b"])]
    assert (float(line["value"]), float(line["low"])) == (pair["tau"], pair["tau_low"])
    assert "Rank &amp; file" in (tmp_path / "r.html").read_text()
    assert all(name in said.out for name in NAMES)


def test_json_alone_on_standard_output_and_measures_chosen(counterfoil, runs: Path) -> None:
    said = counterfoil(
        f"compare rankings {runs} --draws 100 --json - --measure half:mean_recall_at_1",
        "--measure i2t_recall_at_5",
    )
    columns = json.loads(said.out)["columns"]
    assert {(c["benchmark"], c["measure"]) for c in columns} == {
        ("half", "mean_recall_at_1"), ("mine", "i2t_recall_at_5"), ("half", "i2t_recall_at_5"),
    }  # fmt: skip
    assert "Half · mean R@1" in said.err
    # Three pairs have room for their intervals.
    assert "95 % interval" in said.err


@pytest.mark.parametrize("width", [60, 140])
def test_no_line_is_wider_than_the_terminal(counterfoil, runs: Path, monkeypatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = counterfoil.succeeds("compare rankings", runs, "--draws", 100)
    assert max(map(len, said.out.splitlines())) <= width
    assert ("Values in % and ranks" in said.out) == (width == 140)


def test_quads_have_ranks_and_correlations_but_no_lists(counterfoil, tmp_path: Path) -> None:
    world = quads(40, seed=1, size=32)
    for number, name in enumerate(("a", "b", "c")):
        values = np.random.default_rng(number).normal(size=(40, 2, 2)) + number * np.eye(2)
        result = evaluate(world, Scores(values), scorer=name, draws=100)
        save_run(tmp_path / name / "world", world, Scores(values), result, {})
    counterfoil.succeeds("compare rankings", tmp_path, "--draws", 100, "--json", tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["lists"] == []
    assert [c["measure"] for c in found["columns"]] == ["i2t", "t2i", "group"]


def test_bad_input_is_one_line(counterfoil, runs: Path) -> None:
    for arguments, expected in (
        ((runs / "one",), "too few models to correlate their order; given: one; allowed: 3 models or more"),
        ((runs, "--measure", "recal_at_1"), "unknown measure; given: recal_at_1"),
        ((runs, "--measure", "main:recall_at_1"), "did you mean 'mine'?"),
        ((runs, "--measure", "mine:mean_recall_at_1"), "fewer than two columns that three models share"),
        ((runs, "--k", "51"), "keeps too few of each query's first items; given: k 51; allowed: 2 to"),
        (
            (runs / "one" / "mine", runs / "two" / "mine", runs / "three" / "half"),
            "given: mine: one, two; half: three; evaluate the same models on the same benchmarks",
        ),
    ):
        said = counterfoil.fails("compare rankings", *arguments, "--draws", 100)
        assert expected in said.err.splitlines()[-1], said.err


def test_two_runs_of_one_name_are_told_apart_by_their_folders_or_refused(
    counterfoil, runs: Path, tmp_path: Path
) -> None:
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
