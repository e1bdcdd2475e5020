"""docs/inputs.md says the limits that hold."""

from pathlib import Path

from counterfoil.benchmarks.records import MAX_PIXELS
from counterfoil.benchmarks.tables import LARGEST
from counterfoil.inputs.files import MAX_DEPTH

_TEXT = (Path(__file__).parents[3] / "docs/inputs.md").read_text()


def test_other_limits():
    assert f"nested {MAX_DEPTH} deep" in _TEXT
    assert f"{MAX_PIXELS // 10**6} million pixels" in _TEXT
    assert f"{LARGEST:g}".replace("+", "") in _TEXT
