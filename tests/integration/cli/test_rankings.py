"""`counterfoil rankings`, from run folders to tables, files and a page."""

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from counterfoil.benchmarks import Scores
from counterfoil.benchmarks.answers import DirectionRanks, Rankings
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import save_run
from counterfoil.metrics.correlation import kendall_tau_b
from counterfoil.metrics.ranks import Qrels
from counterfoil.world.sample import quads

N = 60
MODELS = ("clip", "pcme", "vsrn", "vilt", "blip")


def gallery(
    name: str, title: str, asked: int, *, more: bool, parts: int = 0, measures: tuple[str, ...]
) -> Benchmark:
    """Sixty images with two captions each, `asked` of them queries; `more`: a neighbour's are right too."""
    own = [[2 * i, 2 * i + 1] + ([(2 * i + 2) % (2 * N)] if more else []) for i in range(asked)]
    back = [[c // 2] + ([(c // 2 - 1) % N] if more and c % 2 == 0 else []) for c in range(2 * asked)]
    of_image = np.arange(N) % parts if parts else None
    return Benchmark(
        Card(name=name, title=title, form="gallery", measures=measures),
        tuple(Image(str(100 + i)) for i in range(N)),
        tuple(Caption(str(1000 + c), f"caption {c}") for c in range(2 * N)),
        Gallery(
            (*(f"i2t/{100 + i}" for i in range(asked)), *(f"t2i/{1000 + c}" for c in range(2 * asked))),
            i2t=RetrievalDirection(np.arange(asked), Qrels.of(own)),
            t2i=RetrievalDirection(np.arange(2 * asked), Qrels.of(back)),
            owners=np.arange(2 * N) // 2,
            n_images=N,
            image_parts=of_image,
            caption_parts=None if of_image is None else np.repeat(of_image, 2),
        ),
    )


def placed(
    search: RetrievalDirection, scores: np.ndarray, parts: tuple[np.ndarray, np.ndarray] | None
) -> DirectionRanks:
    """Where the right answers stand by counting, and the first thirty; in parts nothing else is seen."""
    rows = scores[search.queries]
    seen = np.ones(rows.shape, bool) if parts is None else parts[0][search.queries][:, None] == parts[1][None]
    positives = search.positives
    assert isinstance(positives, Qrels)
    own = rows[positives.queries, positives.items][:, None]
    above, level = (
        (found(rows[positives.queries], own) & seen[positives.queries]).sum(axis=1)
        for found in (np.greater, np.equal)
    )
    top = np.argsort(-rows, axis=1, kind="stable")[:, : 30 if parts is None else 0].astype(np.int32)
    best = np.take_along_axis(rows, top.astype(np.int64), axis=1).astype(np.float32)
    return DirectionRanks(above, level, seen.sum(axis=1), top, best)


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five models of growing strength, not quite alike, on three galleries of the same items."""
    folder = tmp_path_factory.mktemp("rankings")
    worlds = (
        gallery("whole", "Whole", N, more=False, measures=("recall_at_1", "recall_at_5")),
        gallery("folds", "Folds", N, more=False, parts=3, measures=("recall_at_1",)),
        gallery("graded", "Verified", 25, more=True, measures=("map_at_r", "r_precision")),
    )
    truth = np.repeat(np.eye(N), 2, axis=1) + 0.7 * np.roll(np.repeat(np.eye(N), 2, axis=1), 1, axis=1)
    for number, name in enumerate(MODELS):
        noise = np.random.default_rng(number).normal(size=(N, 2 * N))
        scores = noise + (0.8 + 0.35 * number) * truth
        for world in worlds:
            asks = world.gallery
            parts = None if asks.image_parts is None else (asks.image_parts, asks.caption_parts)
            answers = Rankings(
                placed(asks.i2t, scores, parts), placed(asks.t2i, scores.T, parts and parts[::-1])
            )
            result = evaluate(world, answers, scorer=name, draws=100)
            save_run(folder / name / world.name, world, answers, result, {"command": ["counterfoil", name]})
    return folder


def test_every_format_holds_the_same_numbers(counterfoil, runs: Path, tmp_path: Path) -> None:
    said = counterfoil.succeeds(
        f"rankings {runs} --draws 200 --k 20 --json {tmp_path}/r.json --csv {tmp_path}/r.csv "
        f"--html {tmp_path}/r.html --title",
        "Rank & file",
    )
    found = json.loads((tmp_path / "r.json").read_text())
    assert set(found["models"]) == set(MODELS)
    names = [f"{column['benchmark']}:{column['measure']}" for column in found["columns"]]
    assert sorted(names) == sorted([
        *(f"whole:{side}_recall_at_1" for side in ("i2t", "t2i", "mean")), "whole:mean_recall_at_5",
        *(f"folds:{side}_recall_at_1" for side in ("i2t", "t2i", "mean")),
        *(f"graded:{side}_map_at_r" for side in ("i2t", "t2i", "mean")), "graded:mean_r_precision",
    ])  # fmt: skip
    values = np.array(found["values"])
    # The values are those of the runs, parts and directions included.
    for i, model in enumerate(found["models"]):
        for j, name in enumerate(names):
            benchmark, _, measure = name.partition(":")
            result = json.loads((runs / model / benchmark / "result.json").read_text())
            assert values[i, j] == pytest.approx(result["measures"][measure]["value"], abs=1e-12)
    assert len(found["pairs"]) == 55
    for pair in found["pairs"]:
        a, b = names.index(pair["a"]), names.index(pair["b"])
        assert pair["tau"] == pytest.approx(kendall_tau_b(values[:, a], values[:, b]), abs=1e-12)
        assert -1 <= pair["tau_low"] <= pair["tau"] <= pair["tau_high"] <= 1
    assert [(one["benchmark"], one["direction"], one["queries"], one["k"]) for one in found["lists"]] == [
        ("whole", "i2t", 60, 20),
        ("whole", "t2i", 120, 20),
    ]
    with (tmp_path / "r.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    (line,) = [
        r
        for r in rows
        if (r["what"], r["a"], r["b"]) == ("tau", found["pairs"][0]["a"], found["pairs"][0]["b"])
    ]
    assert (float(line["value"]), float(line["low"])) == (
        found["pairs"][0]["tau"],
        found["pairs"][0]["tau_low"],
    )
    places = [r for r in rows if r["what"] == "place" and r["of"] == "whole:t2i:20" and r["a"] != r["b"]]
    assert len(places) == 20
    at = {name: i for i, name in enumerate(found["lists"][1]["models"])}
    for row in places:
        assert float(row["value"]) == found["lists"][1]["place"][at[row["a"]]][at[row["b"]]]
    page = (tmp_path / "r.html").read_text()
    assert "Rank &amp; file" in page
    for j, name in enumerate(names):
        if name == "whole:mean_recall_at_5":
            for value in values[:, j]:
                assert f"{100 * value:.2f}" in page
                assert f"{100 * value:.2f}" in said.out or "Ranks of 5 models" in said.out
    assert "clip" in said.out


def test_json_alone_on_standard_output_and_measures_chosen(counterfoil, runs: Path) -> None:
    said = counterfoil(
        f"rankings {runs} --draws 100 --json - --measure graded:mean_map_at_r --measure recall_at_1"
    )
    columns = json.loads(said.out)["columns"]
    assert {(c["benchmark"], c["measure"]) for c in columns} == {
        ("graded", "mean_map_at_r"), ("whole", "mean_recall_at_1"), ("folds", "mean_recall_at_1"),
        ("graded", "mean_recall_at_1"),
    }  # fmt: skip
    assert "Verified · mean mAP@R" in said.err
    # Six pairs have room for their intervals.
    assert "95 % interval" in said.err


@pytest.mark.parametrize("width", [80, 140])
def test_no_line_is_wider_than_the_terminal(counterfoil, runs: Path, monkeypatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = counterfoil.succeeds("rankings", runs, "--draws", 100)
    assert max(map(len, said.out.splitlines())) <= width
    assert ("Values in % and ranks" in said.out) == (width == 140)
    for name in MODELS:
        assert name in said.out


def test_quads_have_ranks_and_correlations_but_no_lists(counterfoil, tmp_path: Path) -> None:
    world = quads(40, seed=1, size=32)
    for number, name in enumerate(("a", "b", "c")):
        values = np.random.default_rng(number).normal(size=(40, 2, 2)) + number * np.eye(2)
        result = evaluate(world, Scores(values), scorer=name, draws=100)
        save_run(tmp_path / name / "world", world, Scores(values), result, {})
    counterfoil.succeeds("rankings", tmp_path, "--draws", 100, "--json", tmp_path / "r.json")
    found = json.loads((tmp_path / "r.json").read_text())
    assert found["lists"] == []
    assert [c["measure"] for c in found["columns"]] == ["i2t", "t2i", "group"]


def test_bad_input_is_one_line(counterfoil, runs: Path, tmp_path: Path) -> None:
    for arguments, expected in (
        ((tmp_path / "nowhere",), "no such run folder"),
        ((runs / "clip",), "too few models to correlate their order; given: clip; allowed: 3 models or more"),
        ((runs / "clip", runs / "pcme"), "given: clip, pcme"),
        ((runs, "--measure", "recal_at_1"), "unknown measure; given: recal_at_1"),
        ((runs, "--measure", "hole:recall_at_1"), "did you mean 'whole'?"),
        ((runs, "--measure", "whole:mean_recall_at_1"), "fewer than two columns that three models share"),
        ((runs, "--k", "31"), "keeps too few of each query's first items; given: k 31; allowed: 2 to 30"),
        ((runs, "--csv", runs / "clip" / "whole" / "manifest.json" / "x"), "cannot be written"),
        (
            (runs / "clip" / "whole", runs / "pcme" / "whole", runs / "vsrn" / "graded"),
            "given: whole: clip, pcme; graded: vsrn; evaluate the same models on the same benchmarks",
        ),
    ):
        said = counterfoil.fails("rankings", *arguments, "--draws", 100)
        assert expected in said.err.splitlines()[-1], said.err


def test_two_runs_of_one_name_are_told_apart_by_their_folders_or_refused(
    counterfoil, runs: Path, tmp_path: Path
) -> None:
    # One folder holds two runs of the same model on the same benchmark: the folders above them name them.
    for name in ("one", "two"):
        for source in (runs / "clip" / "whole").iterdir():
            target = tmp_path / name / "clip" / "whole" / source.name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(source.read_bytes())
    said = counterfoil.succeeds(f"rankings {tmp_path}/one {tmp_path}/two {runs}/pcme/whole --draws 100")
    assert "one/clip" in said.out
    assert "two/clip" in said.out
