"""`counterfoil compare`, from run folders to files."""

import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks import Scores
from counterfoil.benchmarks.folder import save
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import save_run
from counterfoil.world import benchmarks
from counterfoil.world.sample import quads


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Three scorers on a drawn world: noise, noise, and one that knows the truth two times in three."""
    folder = tmp_path_factory.mktemp("runs")
    world = quads(60, seed=1, size=32)
    for seed, (name, strength) in enumerate({"noise": 0.0, "more-noise": 0.0, "good": 1.5}.items()):
        values = np.random.default_rng(seed).normal(size=(60, 2, 2)) + strength * np.eye(2)
        result = evaluate(world, Scores(values), scorer=name, draws=100)
        save_run(folder / name / "world", world, Scores(values), result, {})
    return folder


def test_signatures_are_a_line_each_in_the_terminal_and_titles_on_the_page(
    counterfoil, runs, tmp_path, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "60")
    few = ("--draws", 100, "--pictures", "never")
    said = counterfoil.succeeds("compare", runs, *few, "--signatures", "--html", tmp_path / "c.html")
    found = [line for line in said.out.splitlines() if line.startswith("group|ties:strict|ci:")]
    assert len(found) == 1
    assert "|v" in found[0]
    assert f'title="{found[0]}"' in (tmp_path / "c.html").read_text()
    assert "ties:strict" not in counterfoil("compare", runs, *few).out


def test_runs_without_a_common_benchmark_are_refused(counterfoil, runs, tmp_path):
    """Nothing can be compared then; with one benchmark in common the others are named."""
    world = quads(6, seed=2, size=32)
    world = replace(world, card=world.card.model_copy(update={"name": "elsewhere"}))
    values = Scores(np.random.default_rng(0).normal(size=(6, 2, 2)))
    other = tmp_path / "other" / "elsewhere"
    save_run(other, world, values, evaluate(world, values, scorer="other", draws=100), {})
    said = counterfoil("compare", runs / "good", other)
    assert (said.code, said.out, said.err.count("\n")) == (2, "", 1)
    assert "given: 'good' has world-quads; 'other' has elsewhere; evaluate both on the same" in said.err
    said = counterfoil.succeeds("compare", runs, other, "--draws", 100)
    assert "elsewhere: only 'other' was run on it, so nothing is compared there" in said.err
    assert counterfoil("compare", other).code == 0


def test_data_that_are_named_are_where_pictures_come_from(counterfoil, runs, tmp_path):
    """Runs that Python saved say nothing of where their images are."""
    save(quads(60, seed=1, size=32), tmp_path / "right")
    save(quads(60, seed=2, size=32), tmp_path / "wrong")
    page = tmp_path / "page.html"
    pictures = ("--pictures", "always", "--html", page, "--overwrite")
    compare = ("compare", runs, "--draws", 100, *pictures, "--data")
    counterfoil.succeeds(*compare, tmp_path / "right")
    assert "data:image" in page.read_text()
    counterfoil.refused(*compare, tmp_path / "wrong", says="wrong: not the questions, captions and images")


def test_files_are_written_whoever_reads_the_output(runs, tmp_path):
    """As in `counterfoil compare ... --markdown t.md | head -1`: the reader leaves before the end."""
    files = [tmp_path / name for name in ("t.md", "t.json")]
    command = [sys.executable, "-m", "counterfoil", "compare", runs, "--draws", 100]
    command += ["--markdown", files[0], "--json", files[1]]
    with subprocess.Popen(list(map(str, command)), stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.close()
        _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors
    assert all(file.is_file() for file in files)
    assert b"Traceback" not in errors


def test_what_is_drawn_on_the_spot_has_pictures(counterfoil, tmp_path, monkeypatch):
    # As many as the catalog says take long to make up.
    monkeypatch.setitem(benchmarks._DRAWN, "world-quads", lambda _: quads(8, size=32, lazy=True))
    for scorer in ("blind:length", "blind:constant"):
        name = scorer.rpartition(":")[2]
        said = counterfoil.succeeds(f"evaluate {scorer} world-quads --out {tmp_path}/runs/{name} --draws 100")
    page = tmp_path / "c.html"
    said = counterfoil.succeeds("compare", tmp_path / "runs", "--html", page, "--draws", 100)
    assert "no pictures" not in said.err
    assert page.read_text().count("data:image") > 8
