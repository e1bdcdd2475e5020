"""The Python API where only the core is installed, or the core and one extra."""

import json
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from processes import python

SCRIPT = Path(__file__).resolve().parents[2] / "support" / "public_names.py"
#: Python that loads what every environment has, and for each line of standard input runs the script that is
#: named on the command line in a child of its own, which finds none of the packages in that line.
RUN = """
import contextlib, io, os, runpy, sys
import numpy, pyarrow.parquet, pydantic, scipy.stats, PIL.Image, click
class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name in hidden:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
for line in sys.stdin.read().splitlines():
    if child := os.fork():
        assert os.waitpid(child, 0)[1] == 0, line
        continue
    hidden = set(line.split(","))
    sys.meta_path.insert(0, Hiding())
    runpy.run_path(sys.argv[1], run_name="__main__")
    sys.stdout.flush()
    os._exit(0)
"""
PROJECT = tomllib.loads((Path(__file__).resolve().parents[3] / "pyproject.toml").read_text())["project"]
EXTRAS = sorted({*PROJECT["optional-dependencies"]} - {"docs", "dev"})


def installed_with(extra):
    """The distributions that `pip install 'counterfoil[EXTRA]'` brings, by what each requires."""
    found = set()
    waiting = [("counterfoil", extra), ("counterfoil", "")]
    while waiting:
        name, extra = waiting.pop()
        if (name, extra) in found:
            continue
        found.add((name, extra))
        for needed in map(Requirement, required(name, extra)):
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                waiting += [(canonicalize_name(needed.name), each) for each in ("", *needed.extras)]
    return {name for name, _ in found}


def required(name, extra):
    """What a distribution requires; what counterfoil does stands in its pyproject.toml."""
    if name == "counterfoil":
        return PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    return distribution(name).requires or []


@pytest.fixture(scope="module")
def printed():
    """What the script prints, by the extra that is installed with the core."""
    modules = {
        module: set(map(canonicalize_name, owners)) for module, owners in packages_distributions().items()
    }
    lines = []
    for extra in ("", *EXTRAS):
        there = installed_with(extra)
        lines.append(",".join(module for module, owners in modules.items() if not there & owners))
    done = python("-c", RUN, SCRIPT, input="\n".join(lines))
    assert done.returncode == 0, done.stderr
    return dict(zip(("", *EXTRAS), done.stdout.splitlines(), strict=True))


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_every_name_resolves_or_names_its_extra(extra, printed):
    said = json.loads(printed[extra])
    assert said["missing"] == {}
    # The longer caption is the right one in all eight.
    assert said["accuracy"][0] == 1.0
    assert (said["rows"], said["differences"], said["audited"] > 0) == (8, 1, True)
