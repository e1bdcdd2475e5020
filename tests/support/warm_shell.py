"""Commands of the command line one after another in one process, which has loaded what they need.

Run as a script it is that process: each line of standard input is a JSON list of words, or a text of Python,
each line of standard output what came of them.
"""

import contextlib
import gc
import io
import json
import os
import subprocess
import sys
import traceback
import types
import warnings
from typing import NamedTuple


class Ended(NamedTuple):
    code: int
    out: str
    err: str


class WarmShell:
    """A process, without shape checks, that runs commands in `folder`; `done` are those it has run.

    With `small_worlds` worlds by name have few questions: tests/unit/world and `make slow` have those of the
    catalog.
    """

    def __init__(self, folder, *, small_worlds=False, **variables):
        self.folder = folder
        self.done = set()
        self._process = subprocess.Popen(
            [sys.executable, __file__, *(["small-worlds"] if small_worlds else [])],
            cwd=folder,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "COLUMNS": "100", **variables},
        )

    def run(self, words):
        """Run a command, or a text of Python: warnings of the latter are errors."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(words) + "\n")
        self._process.stdin.flush()
        return Ended(**json.loads(self._process.stdout.readline()))

    def close(self):
        # Nothing is under way, and what it has loaded would take seconds to be taken apart.
        with self._process:
            self._process.kill()


def run(words):
    from counterfoil.cli import main

    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), warnings.catch_warnings():
        try:
            if isinstance(words, str):
                sys.argv = ["-c"]
                warnings.simplefilter("error")
                # Classes of the page are looked up in the module that they say they are of.
                page = sys.modules["__main__"] = types.ModuleType("__main__")
                exec(compile(words, "<page>", "exec"), vars(page))
            else:
                sys.argv = words
                main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        except Exception:
            code = 1
            traceback.print_exc()
    return Ended(code, out.getvalue(), err.getvalue())


if __name__ == "__main__":
    # Its own folder is not where an installed command looks for modules.
    sys.path.pop(0)
    from counterfoil.world import benchmarks

    # As in conftest.py: what the commands load stays, and need not be walked again and again.
    gc.set_threshold(100_000, 50, 50)
    if "small-worlds" in sys.argv:
        benchmarks.SIZE, benchmarks.IMAGES = 48, 60
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))._asdict()) + "\n")
        sys.stdout.flush()
