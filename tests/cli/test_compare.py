"""`counterfoil compare`, from run folders to files."""

import json
from pathlib import Path

import numpy as np
import pytest

from counterfoil.data import Scores
from counterfoil.evaluation import evaluate, save_run
from counterfoil.world.sample import quads


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """Three scorers on a drawn world: noise, noise, and one that knows the truth two times in three."""
    world = quads(60, seed=1, size=32)
    for seed, (name, strength) in enumerate({"noise": 0.0, "more-noise": 0.0, "good": 1.5}.items()):
        values = np.random.default_rng(seed).normal(size=(60, 2, 2)) + strength * np.eye(2)
        result = evaluate(world, Scores(values), scorer=name, draws=100)
        save_run(tmp_path / "runs" / name / "world", world, Scores(values), result, {})
    return tmp_path / "runs"


def test_every_format_holds_the_same_numbers(counterfoil, runs: Path, tmp_path: Path) -> None:
    said = counterfoil(
        "compare", runs, "--baseline", "noise", "--draws", 500, "--json", tmp_path / "c.json",
        "--markdown", tmp_path / "c.md", "--latex", tmp_path / "c.tex", "--csv", tmp_path / "c.csv",
        "--html", tmp_path / "c.html", "--title", "Noise & truth",
    )  # fmt: skip
    assert said.code == 0, said.err
    results = {result["scorer"]: result for result in json.loads((tmp_path / "c.json").read_text())}
    assert set(results) == {"noise", "more-noise", "good"}
    group = results["good"]["measures"]["group"]
    assert set(group) == {"value", "low", "high", "n", "chance"}
    against = results["good"]["against"]["noise"]["group"]
    assert against["difference"] == pytest.approx(
        group["value"] - results["noise"]["measures"]["group"]["value"]
    )
    assert against["p_holm"] < 0.01
    assert results["noise"]["against"] == {}
    printed = f"{100 * group['value']:.2f}"
    for name in ("c.md", "c.tex", "c.html"):
        assert printed in (tmp_path / name).read_text(), name
    assert f",{group['value']!r}," in (tmp_path / "c.csv").read_text()
    assert "Noise &amp; truth" in (tmp_path / "c.html").read_text()
    assert printed in said.out


def test_the_same_seed_gives_the_same_page(counterfoil, runs: Path, tmp_path: Path) -> None:
    for name in ("a", "b"):
        assert counterfoil("compare", runs, "--draws", 200, "--html", tmp_path / f"{name}.html").code == 0
    assert (tmp_path / "a.html").read_bytes() == (tmp_path / "b.html").read_bytes()


def test_what_is_drawn_on_the_spot_has_pictures(counterfoil, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr("counterfoil.world.readers.SIZE", 32)
    # As many as the catalog says take long to make up.
    monkeypatch.setattr("counterfoil.world.readers._questions", lambda card, data: 8)
    for scorer in ("blind:length", "blind:constant"):
        name = scorer.rpartition(":")[2]
        said = counterfoil(
            "evaluate", scorer, "world-quads", "--out", tmp_path / "runs" / name, "--draws", 100
        )
        assert said.code == 0, said.err
    page = tmp_path / "c.html"
    said = counterfoil("compare", tmp_path / "runs", "--html", page, "--draws", 100)
    assert said.code == 0, said.err
    assert "no pictures" not in said.err
    assert page.read_text().count("data:image") > 8


def test_json_alone_on_standard_output(counterfoil, runs: Path) -> None:
    said = counterfoil("compare", runs, "--draws", 200, "--json", "-")
    assert len(json.loads(said.out)) == 3
    assert "Group" in said.err


@pytest.mark.parametrize("width", [60, 200])
def test_no_line_is_wider_than_the_terminal(counterfoil, runs: Path, monkeypatch, width: int) -> None:
    monkeypatch.setenv("COLUMNS", str(width))
    said = counterfoil("compare", runs, "--draws", 200, "--baseline", "noise")
    assert said.code == 0
    assert max(map(len, said.out.splitlines())) <= width
    assert ("Group match" in said.out) == (width == 200)


def test_bad_input_is_one_line(counterfoil, runs: Path, tmp_path: Path) -> None:
    for arguments, expected in (
        ((tmp_path / "nowhere",), "no such run folder"),
        ((runs, "--baseline", "god"), "unknown baseline; given: god; allowed: good, more-noise, noise"),
        ((runs, "--html", runs / "good" / "world" / "manifest.json" / "x.html"), "cannot be written"),
    ):
        said = counterfoil("compare", *arguments, "--draws", 100)
        assert said.code == 2, said
        assert expected in said.err.splitlines()[-1]
    (runs / "good" / "world" / "scores.parquet").write_bytes(b"PAR1")
    said = counterfoil("compare", runs)
    assert (said.code, said.err.count("\n")) == (2, 1)
    assert "scores.parquet" in said.err


def test_a_page_has_a_table_per_gallery_and_csv_has_everything(counterfoil, runs, tmp_path: Path) -> None:
    (tmp_path / "j.csv").write_text("image,caption\na.jpg,x\na.jpg,y\nb.jpg,z\n")
    for name, seed in (("noise", 0), ("good", 1)):
        np.save(tmp_path / "s.npy", np.random.default_rng(seed).normal(size=(2, 3)))
        said = counterfoil(
            "evaluate", f"given:{tmp_path}/s.npy", "gallery", "--data", tmp_path / "j.csv", "--name", name,
            "--out", runs / name, "--draws", 100, "-q",
        )  # fmt: skip
        assert said.code == 0, said.err
    said = counterfoil(
        "compare", runs, "--draws", 100, "--csv", tmp_path / "c.csv",
        "--markdown", tmp_path / "c.md", "--latex", tmp_path / "c.tex",
    )  # fmt: skip
    assert said.code == 0, said.err
    tables = [part.splitlines() for part in (tmp_path / "c.md").read_text().strip().split("\n\n")]
    heads = [[cell.strip() for cell in table[0].strip("|").split("|")] for table in tables]
    # The drawn world, the gallery with what its card reports in three directions, the world by group.
    assert [head.split()[-1] for head in heads[0][1:4]] == ["I2T", "T2I", "Group"]
    assert len(heads[1]) == 1 + 3 * 5
    assert {len(table) for table in tables[:2]} == {6, 5}
    assert not any("nDCG" in head for head in heads[1])
    assert (tmp_path / "c.tex").read_text().count("\\begin{tabular}") == len(tables)
    written = (tmp_path / "c.csv").read_text()
    assert "i2t_ndcg" in written
    assert ",group," in written
