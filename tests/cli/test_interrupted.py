"""Ctrl-C: exit code 130, one line, nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.skipif(not os.path.exists("/proc/self/stat"), reason="looks into /proc at how far the run is")
def test_ctrl_c_while_scoring(tmp_path: Path) -> None:
    # Enough blind questions for some seconds of work; the signal comes once the run has begun.
    table = tmp_path / "mine.csv"
    rows = "".join(f"{i}.jpg,a caption {i},another caption {i}\n" for i in range(400_000))
    table.write_text("image,caption,negative_caption\n" + rows)
    out = tmp_path / "runs"
    command = [sys.executable, "-m", "counterfoil", "evaluate", "blind:random", "pairs", "--data", str(table)]
    process = subprocess.Popen(
        [*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # Python swallows an interrupt that hits a callback of its import system, so this waits till the imports
    # are over: they take a second or two of processor time, and the run some twenty, on a busy machine too.
    while _processor_seconds(process.pid) < 4:
        assert process.poll() is None, "the run was over before it could be stopped"
        time.sleep(0.02)
    complaint = ""
    for _ in range(5):
        process.send_signal(signal.SIGINT)
        try:
            said, complaint = process.communicate(timeout=3)
            break
        except subprocess.TimeoutExpired:
            # Python can swallow an interrupt in a finaliser ("Exception ignored in"); a person presses again.
            continue
    assert process.returncode == 130, complaint
    assert said == ""
    assert complaint.splitlines()[-1].startswith("counterfoil: stopped;")
    assert "Traceback" not in complaint or "Exception ignored in" in complaint
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("manifest.json"))


def _processor_seconds(pid: int) -> float:
    """User and system time of a process so far: fields 14 and 15 of its stat file, in clock ticks."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
