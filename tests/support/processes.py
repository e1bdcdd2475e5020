"""Python in a process of its own."""

import os
import subprocess
import sys


def python(*arguments, timeout=600, variables=None, **how):
    """How a process of Python with these arguments ended; what it printed is text."""
    command, env = [sys.executable, *map(str, arguments)], {**os.environ, **(variables or {})}
    return subprocess.run(
        command, env=env, capture_output=True, text=True, timeout=timeout, check=False, **how
    )
