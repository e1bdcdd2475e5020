"""The program, killed while it brings a transaction to the disk: `python killed_in_commit.py N ARGUMENTS`.

At the Nth commit of what was written a second thread kills the process, at a moment within the commit that
differs from run to run.
"""

import os
import random
import signal
import sys
import threading
import time

from sqlalchemy import event
from sqlalchemy.engine import Engine

from counterfoil.cli import main


def _die(wait):
    time.sleep(wait)
    os.kill(os.getpid(), signal.SIGKILL)


def _kill_at(number):
    commits = iter(range(1, number + 1))

    @event.listens_for(Engine, "commit")
    def committing(connection):
        if connection.get_execution_options().get("writing") and next(commits, 0) == number:
            # The commit goes on while the thread is about to kill it.
            threading.Thread(target=_die, args=(random.uniform(0, 0.002),)).start()


if __name__ == "__main__":
    _kill_at(int(sys.argv.pop(1)))
    main()
