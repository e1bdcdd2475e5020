"""Progress where a notebook's kernel runs: one line of stderr, rewritten."""

import sys
from types import ModuleType

from counterfoil import terminal


def test_a_notebook_has_a_bar_of_characters(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    now = [0.0]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    with terminal.progress() as report:
        report("images", 0, 10)
        assert capsys.readouterr().err == ""
        now[0] = 3.0
        report("images", 5, 10)
        assert "\rimages " + "█" * 15 + "░" * 15 + " 5 of 10" in capsys.readouterr().err
        report("images", 10, 10)
        assert capsys.readouterr().err.strip() == ""
    with terminal.progress(silent=True) as report:
        report("images", 0, 10)
