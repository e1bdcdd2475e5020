"""A whole build, and one that is killed again and again: `killed_builds.py FOLDER KILLS WORDS`.

The first runs in this process, which has then loaded what the others need: each of those is a fork of it.
"""

import os
import random
import shutil
import signal
import sys
import time
from pathlib import Path

from counterfoil.cli import main


def build(name):
    """Build into a folder, and the status with which the command ends."""
    sys.argv = ["counterfoil", "build", *WORDS, "--out", f"{FOLDER / name / 'b'}"]
    sys.argv += ["--cache", f"{FOLDER / name / 'cache'}", "--workers", "0", "--quiet"]
    try:
        main()
    except SystemExit as stop:
        return 0 if stop.code is None else int(stop.code)
    return 0


def fork(name, seconds=600.0):
    """Whether a build in a process of its own went well, which is killed after so many seconds."""
    child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_REAL, seconds)
        os._exit(build(name))
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    assert status in (0, -signal.SIGALRM)
    return status == 0


if __name__ == "__main__":
    FOLDER, KILLS, WORDS = Path(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    assert build("whole") == 0
    begun = time.monotonic()
    assert fork("again")
    seconds, struck = time.monotonic() - begun, 0
    while struck < KILLS:
        if fork("killed", random.uniform(0.1, 0.9) * seconds):
            # It was through: the next one begins anew.
            shutil.rmtree(FOLDER / "killed")
        else:
            struck += 1
    assert fork("killed")
