"""Ctrl-C: exit code 130, one line, nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


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
    started = sum(after[at] - before[at] for at in (2, 3))
    process = subprocess.Popen(
        [*command, str(table), "--out", str(out)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=_heed_ctrl_c,
    )
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
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=600, preexec_fn=_heed_ctrl_c
    )


def _heed_ctrl_c():
    """In a child: what ignores Ctrl-C (nohup, a job in the background of a script) hands that on."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def _processor_seconds(pid):
    """User and system time of a process so far: fields 14 and 15 of its stat file, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
