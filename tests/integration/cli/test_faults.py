"""What goes wrong at the top: exit codes, one line, a report for what no part of the program foresaw."""

import errno
import re
import warnings
from pathlib import Path

import numpy as np
import pytest

from counterfoil import cli, terminal
from counterfoil.errors import DataError
from counterfoil.terminal import clean


@pytest.fixture
def failing(monkeypatch, tmp_path):
    """Let the command line fail with an error in place of what it was asked for."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)

    def fail_with(error):
        def work(_):
            with terminal.busy("reading x.csv"):
                raise error

        monkeypatch.setattr(cli.app, "invoke", work)

    return fail_with


def test_a_fault_is_one_line_and_a_report(counterfoil, failing, tmp_path):
    failing(KeyError("for\x1b[31mm\ud800"))
    said = counterfoil("evaluate", "x y", "z")
    assert (said.code, said.out, len(said.err.splitlines())) == (70, "", 1)
    line = r"counterfoil: a fault of counterfoil while reading x.csv: KeyError: .* the report is in (\S+)\n"
    found = re.fullmatch(line, said.err)
    assert found is not None
    assert "\x1b" not in said.err
    report = Path(found[1])
    assert report.parent == tmp_path / "state" / "counterfoil"
    text = report.read_text()
    assert "command: counterfoil evaluate 'x y' z" in text
    assert "Traceback (most recent call last)" in text
    assert re.search(r"^numpy: \d", text, re.M)


@pytest.mark.parametrize("where", ["before", "after"])
def test_debug_prints_the_traceback(counterfoil, failing, where):
    failing(DataError("wrong", where="x.csv"))
    said = counterfoil.fails(*(["--debug", "list"] if where == "before" else ["list", "--debug"]))
    assert said.err.startswith("Traceback (most recent call last)")
    assert said.err.splitlines()[-1] == "counterfoil: x.csv: wrong"


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (OSError(errno.ENOSPC, "No space left on device", "a.csv"), "a.csv: no space left on device"),
        (OSError(errno.EMFILE, "Too many open files"), "too many open files"),
        (OSError(errno.ENAMETOOLONG, "File name too long", "b" * 400), "file name too long"),
        (OSError(errno.ELOOP, "Too many levels of symbolic links", "c"), "c: too many levels"),
        (OSError(errno.EIO, "Input/output error", b"d\xff"), "d�: input/output error"),
        (MemoryError("Unable to allocate 8 TiB"), "not enough memory while reading x.csv"),
        (RecursionError("maximum recursion depth exceeded"), "nested too deeply"),
        (UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates not allowed"), "no valid Unicode"),
    ],
)
def test_what_the_system_refuses_is_an_error_of_the_input(counterfoil, failing, error, line):
    failing(error)
    counterfoil.refused("list", says=line)


def test_numbers_that_overflow_are_an_error_and_other_warnings_are_silent(counterfoil, monkeypatch):
    def work(_):
        np.float64(1e308) * np.float64(10)

    monkeypatch.setattr(cli.app, "invoke", work)
    counterfoil.refused("list", says="too large or too small to compute with")

    monkeypatch.setattr(cli.app, "invoke", lambda _: warnings.warn("of a library", UserWarning, stacklevel=1))
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.filters.clear()
        assert counterfoil("list").err == ""


def test_an_argument_that_is_no_text(counterfoil):
    counterfoil.fails("evaluate", "given:a\udcff.csv", "bivlc", says="scorer: text that is no valid Unicode")


def test_errors_of_any_length_are_cut():
    error = DataError("w" * 10**6, where="p" * 10**6, given="g" * 10**6, allowed=map(str, range(10**5)))
    assert len(str(error)) < 1500
    assert "(100,000 in all)" in str(error)
    whole = DataError("wrong", where="a/b.csv, row 3", given="x", allowed=("a", "b"))
    assert str(whole) == "a/b.csv, row 3: wrong; given: x; allowed: a, b"


def test_a_console_shows_text_as_it_is(capsys):
    hostile = "[red]x[/red] :smile: \x1b]0;title\x07 \u202eabc \x9b31m \udc80 [/]"
    terminal.out().print(hostile)
    terminal.note(hostile + "\nnext")
    terminal.write_result("-", {"x": hostile})
    said = capsys.readouterr()
    assert said.out.splitlines()[0] == "[red]x[/red] :smile: ]0;title abc 31m � [/]"
    assert said.err == "[red]x[/red] :smile: ]0;title abc 31m � [/] next\n"
    assert clean(said.out) == said.out
