"""Ctrl-C, none of which is lost: where something drops the exception, it comes again."""

import _thread
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

#: Seconds after which it is looked whether Ctrl-C is being obeyed.
_LATER = 0.3


@contextmanager
def kept() -> Iterator[None]:
    """A block that Ctrl-C ends by `KeyboardInterrupt`, raised again until the block is being left.

    Python drops an exception in a finaliser or in a callback of a library, and some libraries drop it
    themselves. Cleanup on the way out is not disturbed. Where SIGINT is ignored, as under nohup, it stays so.
    """
    before = signal.getsignal(signal.SIGINT)
    if before is signal.SIG_IGN:
        yield
        return
    pressed, over, process = threading.Event(), threading.Event(), os.getpid()
    # Once the block is over nothing is interrupted any more.
    one_at_a_time = threading.Lock()

    def raised(*_: Any) -> None:
        # A forked worker stops with its parent.
        if not pressed.is_set() and os.getpid() == process:
            pressed.set()
            threading.Thread(target=again, daemon=True).start()
        raise KeyboardInterrupt

    def again() -> None:
        while not over.wait(_LATER):
            with one_at_a_time:
                if not over.is_set() and not _leaving():
                    _thread.interrupt_main()

    hook = sys.unraisablehook
    sys.unraisablehook = lambda unraisable: (
        None if unraisable.exc_type is KeyboardInterrupt else hook(unraisable)
    )
    signal.signal(signal.SIGINT, raised)
    try:
        yield
        if pressed.is_set():
            raise KeyboardInterrupt
    finally:
        with one_at_a_time:
            over.set()
        signal.signal(signal.SIGINT, before)
        sys.unraisablehook = hook


@contextmanager
def left_to_server() -> Iterator[None]:
    """A block that Ctrl-C ends as Python has it, once: a server stops by it, and the command is done."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _leaving() -> bool:
    """Whether the main thread runs an `except` or a `finally` because of Ctrl-C."""
    current: Any = sys._current_exceptions().get(threading.main_thread().ident or 0)
    # A triple before Python 3.12.
    error = current[1] if isinstance(current, tuple) else current
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None
