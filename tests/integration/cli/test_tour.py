"""The tour of `counterfoil demo`: its page, and every command on it, run in the folder that it leaves."""

import html
import json
import re
import shlex
from pathlib import Path

import pytest

from counterfoil import __version__
from counterfoil.jobs import tour as job
from counterfoil.jobs.job import Feedback
from counterfoil.jobs.tour import MODELS, TourSizes, tour

TINY = TourSizes(questions=28, rows=100, steps=3, people=6, captions=8, pixels=48)


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A finished tour, in the folder of one that was stopped, and what it noted."""
    pytest.importorskip("lightning_fabric")
    notes: list[str] = []
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(job, "SIZES", TINY)
        out = tmp_path_factory.mktemp("tour") / "demo"
        out.mkdir()
        (out / "tour.json").write_text(json.dumps({"tour": __version__, "seed": 0}))
        (out / "report.html").write_text("half")
        return tour(out, feedback=Feedback(note=notes.append)), notes


def _printed(page):
    return [html.unescape(item) for item in re.findall(r"<code>(.*?)</code>", page)]


def test_the_page_goes_through_five_parts_and_says_what_follows(made):
    page = made[0].path.read_text()
    parts = re.findall(r'<section id="(\w+)"', page)
    assert parts == ["measure", "build", "ask", "explain", "compare", "files"]
    for part in page.split("<section id=")[1:6]:
        assert "<svg" in part or "<img" in part
        assert part.count("What follows.") == 1
        assert "<code>counterfoil " in part
    words = re.sub(r"\s+", " ", html.unescape(re.sub(r"<svg.*?</svg>|<[^>]+>", " ", page, flags=re.S)))
    for run in made[0].comparison.comparisons[0].runs:
        assert run.name in MODELS
        assert f"“{run.name}”" in words
    for item in made[0].comparison.differences:
        assert {item.a, item.b} <= set(MODELS)
    assert "Decided:" in words or "Nothing is decided." in words
    assert 'src="http' not in page


def test_every_stage_is_named(made):
    assert [note.partition(" (")[0] for note in made[1]] == [
        "drew a benchmark and rows to learn from", "asked 6 simulated people", "trained the network 'pairs'",
        "trained the network 'negatives'", "measured 4 models", "built negatives for captions",
        "compared them", "explained one wrong answer",
    ]  # fmt: skip


def test_every_printed_command_runs_in_the_folder_and_gives_the_same(made, counterfoil, monkeypatch):
    monkeypatch.chdir(made[0].path.parent)
    results = {path: json.loads(path.read_text())["measures"] for path in Path("runs").rglob("result.json")}
    assert len(results) == len(MODELS)
    files = [Path("benchmark/manifest.json"), Path("built/steps/3-negate/rows.parquet")]
    digests = [path.read_bytes() for path in files]
    printed = _printed(Path("report.html").read_text())
    assert len(printed) == 14
    for line in printed:
        program, *words = shlex.split(line)
        assert program == "counterfoil"
        words = [name for word in words for name in (sorted(map(str, Path().glob(word))) or [word])]
        counterfoil.succeeds(*words)
    for path, measures in results.items():
        assert json.loads(path.read_text())["measures"] == measures, path
    again = [path.read_bytes() for path in files]
    assert again == digests


def test_the_command_ends_with_the_page_and_takes_no_other_folder(made, counterfoil, monkeypatch, tmp_path):
    folder = made[0].path.parent
    counterfoil.refused("demo", "--out", folder, "--seed", 1, says="the demo of another seed or version")
    (tmp_path / "report.html").write_text("mine")
    counterfoil.refused("demo", "--out", tmp_path, says="not of a demo")
    assert (tmp_path / "report.html").read_text() == "mine"
    # The tour itself was taken before.
    monkeypatch.setattr(job, "tour", lambda *given, **more: made[0])
    said = counterfoil.succeeds("demo", "--out", folder)
    assert said.out.splitlines()[-1] == f"The page is in {folder / 'report.html'}"
