"""Runs commands of the command line one after another in one process, without shape checks.

Each line of standard input is a JSON list of words, each line of standard output what came of them.
"""

import contextlib
import functools
import gc
import io
import json
import sys


def run(words: list[str]) -> dict[str, object]:
    from counterfoil.cli import main

    sys.argv = words
    out, err, code = io.StringIO(), io.StringIO(), 0
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
    return {"code": code, "out": out.getvalue(), "err": err.getvalue()}


if __name__ == "__main__":
    import typer.main

    from counterfoil.world import benchmarks

    typer.main.get_command = functools.cache(typer.main.get_command)
    # As in conftest.py: what the commands load stays, and need not be walked again and again.
    gc.set_threshold(100_000, 50, 50)
    # Worlds by name are small ones here: tests/world and `make slow` have those of the catalog.
    benchmarks.SIZE, benchmarks.IMAGES = 48, 60
    for line in sys.stdin:
        sys.stdout.write(json.dumps(run(json.loads(line))) + "\n")
        sys.stdout.flush()
