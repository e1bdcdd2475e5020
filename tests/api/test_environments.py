"""The Python API where only the core is installed, or the core and one extra."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import distribution, packages_distributions
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

SCRIPT = Path(__file__).resolve().parents[1] / "public_names.py"
#: Python that finds no package but those named on the command line, then runs the script that is named last.
RUN = """
import sys, runpy
hidden = set(sys.argv[1].split(","))
class Hiding:
    def find_spec(self, name, path=None, target=None):
        if name in hidden:
            raise ModuleNotFoundError(f"No module named '{name}'", name=name)
sys.meta_path.insert(0, Hiding())
runpy.run_path(sys.argv[2], run_name="__main__")
"""
#: The names that need a database.
CAMPAIGNS = {
    "SimulatedCampaign",
    "annotate_agreement",
    "annotate_export",
    "annotate_simulate",
    "create_campaign",
}
PROJECT = tomllib.loads((Path(__file__).resolve().parents[2] / "pyproject.toml").read_text())["project"]
EXTRAS = sorted({*PROJECT["optional-dependencies"]} - {"docs", "dev"})


def installed_with(extra: str) -> set[str]:
    """The distributions that `pip install 'counterfoil[EXTRA]'` brings, by what each requires."""
    found: set[tuple[str, str]] = set()
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


def required(name: str, extra: str) -> list[str]:
    """What a distribution requires; what counterfoil does stands in its pyproject.toml."""
    if name == "counterfoil":
        return PROJECT["optional-dependencies"][extra] if extra else PROJECT["dependencies"]
    return distribution(name).requires or []


@pytest.mark.parametrize("extra", ["", *EXTRAS])
def test_every_name_resolves_or_names_its_extra(extra: str) -> None:
    there = installed_with(extra)
    hidden = [
        module
        for module, owners in packages_distributions().items()
        if not there & {canonicalize_name(owner) for owner in owners} and module != "pip"
    ]
    done = subprocess.run(
        [sys.executable, "-c", RUN, ",".join(hidden), SCRIPT], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["missing"] == ({} if "sqlalchemy" in there else dict.fromkeys(CAMPAIGNS, "annotate"))
    # The longer caption is the right one in all eight.
    assert said["accuracy"][0] == 1.0
    assert (said["rows"], said["differences"], said["audited"] > 0) == (8, 1, True)
