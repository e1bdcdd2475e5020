"""The core without matplotlib: everything that draws nothing works, and what draws says what to install."""

import re

from processes import python

#: matplotlib is hidden from a process of its own, as where the extra `report` is not installed. The process
#: runs a command for each line that it is given, and prints a line of the exit code after each.
HIDDEN = """
import importlib.util
import sys
from importlib.abc import MetaPathFinder

class Hidden(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "matplotlib":
            raise ModuleNotFoundError("No module named 'matplotlib'", name="matplotlib")

whole = importlib.util.find_spec
importlib.util.find_spec = lambda name, *more: None if name == "matplotlib" else whole(name, *more)
sys.meta_path.insert(0, Hidden())
from counterfoil.cli import main
from counterfoil.world import benchmarks
benchmarks.SIZE = 48
for line in sys.stdin.read().splitlines():
    sys.argv = ["counterfoil", *line.split()]
    try:
        main()
    except SystemExit as end:
        print(f"exit {end.code or 0}", file=sys.stderr)
"""


def test_measuring_and_comparing_need_no_matplotlib_and_a_page_says_what_it_needs(tmp_path):
    lines = [
        "evaluate pixels:colours world-quads --out a --draws 100 --no-cache",
        "evaluate blind:length world-quads --out b --draws 100 --no-cache",
        "compare a b --draws 100 --markdown t.md",
        "compare a b --draws 100 --html t.html",
        "annotate preferences votes.csv --plot p.svg",
    ]
    done = python("-c", HIDDEN, cwd=tmp_path, input="\n".join(lines))
    *_, page, plot, _ = re.split(r"exit \d\n", done.stderr)
    assert re.findall(r"exit (\d)\n", done.stderr) == ["0", "0", "0", "2", "2"], done.stderr
    assert "Group" in (tmp_path / "t.md").read_text()
    assert "'matplotlib' is not installed" in page
    assert all("[report]" in words for words in (page, plot))
    assert not (tmp_path / "t.html").exists()
