"""What the server of a campaign bears on this machine: 200 people at once over HTTP.

    python benchmarks/annotation_server.py                     SQLite, in a temporary folder
    python benchmarks/annotation_server.py --postgresql        a PostgreSQL server of its own as well
    python benchmarks/annotation_server.py --people 50 --seconds 5
    python benchmarks/annotation_server.py --kills 10          killed in the middle of their work, too
    python benchmarks/annotation_server.py --flush 10          a disk 10 ms slower (needs a C compiler)

People think for a second before each answer (`--think`), and one answer in five comes after the page was
loaded once more; the burst is the same people without any pause. The server is a process of its own
(`annotate serve`), the people are this one; both share the processors. "submit" is an answer taken, on the
disk, with the next item in the reply; "next item" is the page's question where a person stands. Times are the
client's, over connections that are kept. After each run every acknowledged answer is looked for in the
database, and no item may have more than it wants. Both databases wait for the disk; the file system
is that of the temporary folder (TMPDIR).
"""

import argparse
import contextlib
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "unit"))
sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "support"))

from annotate import postgres_server
from annotate.server_load import Load, Server, check, crowd, serving, work_through_kills
from annotate.small_campaigns import make, pairs

ITEMS, OVERLAP = 5_000, 5

#: A library, loaded before all others, whose flushes of the disk take longer.
SLOW_FLUSHES = """
#define _GNU_SOURCE
#include <dlfcn.h>
#include <unistd.h>
typedef int flush(int);
#define SLOW(NAME) int NAME(int file) { usleep(DELAY); return ((flush *) dlsym(RTLD_NEXT, #NAME))(file); }
SLOW(fsync)
SLOW(fdatasync)
"""


def slow_flushes(folder: Path, milliseconds: float) -> None:
    """Let each flush of the processes that are started from now on take longer."""
    library = folder / "flushes.so"
    command = ["cc", "-x", "c", f"-DDELAY={round(1000 * milliseconds)}", "-shared", "-fPIC", "-", "-ldl"]
    subprocess.run([*command, "-o", str(library)], input=SLOW_FLUSHES, text=True, check=True)
    # PostgreSQL runs as another user.
    folder.chmod(0o755)
    os.environ["LD_PRELOAD"] = str(library)


def report(name: str, load: Load, server: Server, cpu: float) -> None:
    """Print what people waited."""
    times = "; ".join(
        "{} median {:5.1f} ms, p95 {:6.1f} ms".format(
            kind, *np.quantile(np.multiply(1000, load.seconds[kind]), (0.5, 0.95))
        )
        for kind in ("next item", "submit")
        if kind in load.seconds
    )
    requests = sum(map(len, load.seconds.values()))
    print(
        f"{name:<22} {times}; {len(load.acknowledged) / load.wall:5.0f} answers/s, "
        f"{1000 * cpu / requests:.2f} ms of processor per request, server at most {server.memory():.0f} MiB",
        flush=True,
    )


def main() -> None:
    """Serve and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--people", type=int, default=200)
    parser.add_argument("--items", type=int, default=ITEMS)
    parser.add_argument("--seconds", type=float, default=30.0)
    parser.add_argument("--think", type=float, default=1.0)
    parser.add_argument("--postgresql", action="store_true")
    parser.add_argument("--kills", type=int, default=0)
    parser.add_argument("--flush", type=float, default=0.0)
    given = parser.parse_args()
    print(f"{given.people} people on {os.cpu_count()} cores, load before {os.getloadavg()[0]:.1f}")
    with contextlib.ExitStack() as stack:
        if given.flush:
            slow_flushes(Path(stack.enter_context(tempfile.TemporaryDirectory())), given.flush)
        postgres = stack.enter_context(postgres_server.running(durable=True)) if given.postgresql else None
        for kind in ("sqlite", "postgresql") if postgres else ("sqlite",):
            for name, think in ((f"{given.think:g} s to think", given.think), ("burst, no pause", 0.0)):
                with tempfile.TemporaryDirectory() as folder:
                    campaign = make(Path(folder) / "campaign", pairs(given.items), overlap=OVERLAP)
                    url = postgres.new() if postgres and kind == "postgresql" else None
                    with serving(campaign, url) as server:
                        before = server.cpu()
                        load = crowd(server, given.people, think=think, seconds=given.seconds)
                        report(f"{kind}, {name}", load, server, server.cpu() - before)
                    stored = check(campaign, url, load)
                    assert not load.refused, load.refused[0]
                    print(f"{'':<22} {len(load.acknowledged):,} acknowledged, {stored:,} stored")
            if given.kills:
                with tempfile.TemporaryDirectory() as folder:
                    url = postgres.new() if postgres and kind == "postgresql" else None
                    load = work_through_kills(Path(folder) / "campaign", url, given.people, 500, given.kills)
                    print(
                        f"{kind}, killed {given.kills} times: {len(load.acknowledged):,} acknowledged, "
                        f"all stored once; {load.again:,} requests sent again, "
                        f"{load.repeated} of them had been stored"
                    )


if __name__ == "__main__":
    main()
