"""How much is said: --quiet and --verbose everywhere, progress without a terminal and in a notebook."""

import sys
from types import ModuleType

import pytest

from counterfoil import terminal


@pytest.fixture
def clock(monkeypatch):
    """The time in seconds, as the terminal sees it."""
    now = [0.0]
    monkeypatch.setattr("counterfoil.terminal.time.monotonic", lambda: now[0])
    monkeypatch.setenv("COLUMNS", "80")
    return now


def _worked(clock, *, seconds):
    """A stage of as many items as seconds, one a second."""
    with terminal.progress() as report:
        for done in range(seconds + 1):
            clock[0] = float(done)
            report("embedding", done, seconds)


def test_a_line_every_half_minute(clock, capsys):
    _worked(clock, seconds=100)
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "embedding: 30 of 100, about 70 s left",
        "embedding: 60 of 100, about 40 s left",
        "embedding: 90 of 100, about 10 s left",
    ]


@pytest.mark.parametrize(("name", "lines"), [("verbose", 20), ("quiet", 0)])
def test_more_or_less_of_it(clock, capsys, monkeypatch, name, lines):
    monkeypatch.setattr(terminal, name, True)
    _worked(clock, seconds=100)
    terminal.note("decided")
    assert len(capsys.readouterr().err.splitlines()) == lines + (name == "verbose")


def test_a_notebook_has_lines_more_often(clock, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", ModuleType("ipykernel"))
    _worked(clock, seconds=100)
    assert len(capsys.readouterr().err.splitlines()) == 20
