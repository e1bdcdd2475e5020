"""A command killed when its Nth file is whole and not in its place yet: `killed_in_create.py PLACE ARGS`.

For every N up to the number of files that the command writes it runs in a child with `--out PLACE/N`; the
last one of them is not killed. Each runs in a fork of a process that has imported what the command needs.
"""

import os
import signal
import sys

from counterfoil import store
from counterfoil.cli import main, tables  # noqa: F401
from counterfoil.jobs import annotate_create  # noqa: F401


def _kill_at(number):
    replacing, place = iter(range(1, number + 1)), os.replace

    def replace(source, target):
        if next(replacing, 0) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        place(source, target)

    store.os.replace = replace


if __name__ == "__main__":
    number, status = 0, -signal.SIGKILL
    while status == -signal.SIGKILL:
        number += 1
        child = os.fork()
        if child == 0:
            sys.argv = ["counterfoil", *sys.argv[2:], "--out", f"{sys.argv[1]}/{number}"]
            _kill_at(number)
            main()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    sys.exit(status)
