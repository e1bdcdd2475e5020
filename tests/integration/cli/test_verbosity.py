"""How much commands say: --quiet and --verbose everywhere, lines of progress where there is no terminal."""

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
