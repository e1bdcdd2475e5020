"""What commands compute and write stays as it is kept, until a commit changes it and says why.

`make goldens` keeps what comes out today; the commit says what changed and why.
"""

import difflib
import os

import pytest

from golden import inputs
from golden.jobs import KEPT, produced

#: Whether to keep what comes out in place of comparing with it.
WRITES = os.environ.get("COUNTERFOIL_GOLDENS") == "write"


def test_outputs_are_as_kept(tmp_path, monkeypatch):
    # One test, since later commands take what earlier ones wrote.
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.setenv("COUNTERFOIL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("COUNTERFOIL_DATA", raising=False)
    folder = tmp_path / "inputs"
    folder.mkdir()
    inputs.make(folder)
    texts = produced(folder)
    if WRITES:
        for old in KEPT.glob("*.txt"):
            old.unlink()
        for name, text in texts.items():
            (KEPT / name).write_text(text, encoding="utf-8")
    assert {path.name for path in KEPT.glob("*.txt")} == set(texts)
    differences = []
    for name, text in texts.items():
        before = (KEPT / name).read_text(encoding="utf-8")
        lines = difflib.unified_diff(before.splitlines(), text.splitlines(), f"kept/{name}", "now", n=1)
        differences += list(lines)[:30]
    if differences:
        pytest.fail("\n".join(["where the change is meant, run `make goldens`", *differences[:200]]))
