"""What goes wrong at the top, and Ctrl-C: exit codes, one line, a report for what no part foresaw."""

import errno
import os
import re
import signal
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
import pytest

from counterfoil import cli, terminal
from counterfoil.errors import DataError
from counterfoil.terminal import clean
from processes import python


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
    result = re.fullmatch(line, said.err)
    assert result is not None
    assert "\x1b" not in said.err
    report = Path(result[1])
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
    counterfoil.fails("evaluate", "given:a\udcff.csv", "bivlc", says="model: text that is no valid Unicode")


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


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks into /proc at how far the run is")
def test_ctrl_c_while_scoring(tmp_path):
    # Enough blind questions for some seconds of work; the signal comes once the run has begun.
    table, few, out = (tmp_path / name for name in ("mine.csv", "few.csv", "runs"))
    rows = [f"{i}.jpg,a caption {i},another caption {i}\n" for i in range(400_000)]
    table.write_text("image,caption,negative_caption\n" + "".join(rows))
    few.write_text("image,caption,negative_caption\n" + "".join(rows[:9]))
    command = [sys.executable, "-m", "counterfoil", "evaluate", "blind:random", "pairs", "--data"]
    before = os.times()
    subprocess.run([*command, str(few)], capture_output=True, check=True)
    after = os.times()
    # Imports, above all.
    started = sum(after[i] - before[i] for i in (2, 3))
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    process = subprocess.Popen([*command, table, "--out", out], preexec_fn=_heed_ctrl_c, **pipes)
    # By processor time, which a busy machine does not stretch: the run takes several times as much.
    while _processor_seconds(process.pid) < 1.5 * started:
        assert process.poll() is None, "the run was over before it could be stopped"
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    said, complaint = process.communicate(timeout=600)
    assert process.returncode == 130, complaint
    assert said == ""
    assert complaint.splitlines()[-1].startswith("counterfoil: stopped;")
    assert "Traceback" not in complaint
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("manifest.json"))


def test_cleanup_goes_first():
    done = _interrupted(
        "import signal, sys, time\n"
        "import counterfoil.cli as cli\n"
        "def work(_):\n"
        "    try: signal.raise_signal(signal.SIGINT)\n"
        "    finally: time.sleep(0.5); print('cleaned')\n"
        "cli.app.invoke = work\n"
        "sys.argv = ['counterfoil', 'list']\n"
        "cli.main()\n"
    )
    assert (done.returncode, done.stdout) == (130, "cleaned\n"), done.stderr
    assert done.stderr.startswith("counterfoil: stopped; finished work is kept and will not be repeated")


def test_ctrl_c_while_the_command_line_is_imported():
    done = _interrupted(
        "import signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        "        if name == 'counterfoil.cli':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from counterfoil.__main__ import main\n"
        "main()\n"
    )
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


def _interrupted(script):
    return python("-c", script, preexec_fn=_heed_ctrl_c)


def _heed_ctrl_c():
    """In a child: what ignores Ctrl-C (nohup, a job in the background of a script) hands that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _processor_seconds(pid):
    """User and system time of a process so far: fields 14 and 15 of its stat file, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
