"""Ctrl-C: exit code 130, one line, nothing half-written."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest


@pytest.mark.skipif(not os.path.exists("/proc/self/maps"), reason="looks into /proc at how far the run is")
def test_ctrl_c_while_scoring(tmp_path: Path) -> None:
    # Enough blind questions for some seconds of work; the signal comes once the run has begun.
    table = tmp_path / "mine.csv"
    rows = "".join(f"{i}.jpg,a caption {i},another caption {i}\n" for i in range(100_000))
    table.write_text("image,caption,negative_caption\n" + rows)
    out = tmp_path / "runs"
    command = [sys.executable, "-m", "counterfoil", "evaluate", "blind:random", "pairs", "--data", str(table)]
    process = subprocess.Popen(
        [*command, "--out", str(out)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    # Arrow is mapped once the command itself runs; before, Ctrl-C would only stop Python's own start.
    while "libarrow" not in Path(f"/proc/{process.pid}/maps").read_text():
        assert process.poll() is None
        time.sleep(0.01)
    time.sleep(0.2)
    assert process.poll() is None, "the run was over before it could be stopped"
    process.send_signal(signal.SIGINT)
    said, complaint = process.communicate(timeout=60)
    assert process.returncode == 130, complaint
    assert said == ""
    assert complaint.splitlines()[-1].startswith("counterfoil: stopped;")
    assert "Traceback" not in complaint
    assert not list(tmp_path.rglob("*.part"))
    assert not list(tmp_path.rglob("manifest.json"))
