"""The command `counterfoil`, also as `python -m counterfoil`.

Importing the command line takes a moment, in which Ctrl-C ends the process at once: nothing has been written.
"""

import os
import signal
import sys

#: The exit code of a process that Ctrl-C stopped.
_INTERRUPTED = 130

# Not in a worker that multiprocessing starts, which imports this module too and stops with its parent.
_EARLY = (
    "multiprocessing.process" not in sys.modules
    and signal.getsignal(signal.SIGINT) is signal.default_int_handler
)
if _EARLY:
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))

from counterfoil.cli import main  # noqa: E402

if _EARLY:
    signal.signal(signal.SIGINT, signal.default_int_handler)

__all__ = ["main"]

if __name__ == "__main__":
    main()
