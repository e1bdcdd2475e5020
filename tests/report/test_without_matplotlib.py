"""The core without matplotlib: everything that draws nothing works, and what draws says what to install."""

import subprocess
import sys
from pathlib import Path

#: matplotlib is hidden from a process of its own, as where the extra `report` is not installed.
HIDDEN = """
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

import importlib.util
whole = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "matplotlib" else whole(name, *more)
sys.meta_path.insert(0, Hidden())
from counterfoil.cli import main
from counterfoil.world import benchmarks
benchmarks.SIZE = 48
sys.argv = ["counterfoil", *sys.argv[1:]]
main()
"""


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    words = [sys.executable, "-c", HIDDEN, *map(str, arguments)]
    return subprocess.run(words, capture_output=True, text=True, timeout=120, check=False)


def test_measuring_and_comparing_need_no_matplotlib_and_a_page_says_what_it_needs(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    for scorer in ("pixels:colours", "blind:length"):
        done = run(
            "evaluate",
            scorer,
            "world-quads",
            "--out",
            runs / scorer.partition(":")[0],
            "--draws",
            100,
            "--no-cache",
        )
        assert done.returncode == 0, done.stderr
    compared = run("compare", *sorted(runs.iterdir()), "--draws", 100, "--markdown", tmp_path / "t.md")
    assert compared.returncode == 0, compared.stderr
    assert "Group" in (tmp_path / "t.md").read_text()
    page = run("compare", *sorted(runs.iterdir()), "--draws", 100, "--html", tmp_path / "t.html")
    assert page.returncode == 2
    assert "'matplotlib' is not installed" in page.stderr
    assert "[report]" in page.stderr
    assert not (tmp_path / "t.html").exists()
    plot = run("preferences", tmp_path / "votes.csv", "--plot", tmp_path / "p.svg")
    assert plot.returncode == 2
    assert "[report]" in plot.stderr
