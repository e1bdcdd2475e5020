"""A Ray cluster of three nodes on this machine, of one processor each, in a process of its own.

    python three_nodes.py FOLDER

prints the addresses for machines of the cluster and for others; then a line on stdin kills one of the nodes.
It ends with its stdin.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

#: Seconds for what takes a few on an idle machine.
LONG = 240.0


def start(*command, **variables):
    """A Python process that can reach the cluster, which is on this machine alone."""
    # Scripts import modules of the tests, as pytest finds them.
    return subprocess.Popen(
        [sys.executable, "-W", "error::RuntimeWarning", *map(str, command)],
        env={
            **os.environ,
            "RAY_AUTH_MODE": "disabled",
            "PYTHONPATH": os.pathsep.join(filter(None, [variables.pop("PYTHONPATH", ""), *sys.path])),
            **variables,
        },
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process):
    """What a process printed; nothing but that, and no error."""
    out, errors = process.communicate(timeout=LONG)
    assert (process.returncode, errors) == (0, "")
    return out


def of_ray():
    """What Ray keeps in shared memory."""
    return {name for name in os.listdir("/dev/shm") if "plasma" in name or "ray" in name.lower()}


@dataclass(frozen=True)
class Nodes:
    """The cluster: names of executors on it (`inside`, and as of a machine outside), and its process."""

    inside: str
    outside: str
    process: subprocess.Popen[str]

    def kill(self):
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert json.loads(self.process.stdout.readline()) == "killed"


@contextmanager
def three_nodes(**variables):
    """The cluster, with environment variables for its workers; nothing of it is left behind."""
    before = of_ray()
    # A folder whose name leaves room for those of Ray's sockets.
    folder = Path(tempfile.mkdtemp(prefix="cf-", dir="/tmp"))
    process = start(__file__, folder, **variables)
    try:
        assert process.stdout is not None
        inside, outside = json.loads(process.stdout.readline())
        yield Nodes(f"ray:{inside}", f"ray://{outside}", process)
    finally:
        process.communicate(timeout=LONG)
        shutil.rmtree(folder, ignore_errors=True)
    assert of_ray() <= before


def _say(what):
    """A line of JSON, at once."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(folder):
    """Print the addresses once all nodes are there, then kill the second and the third, a line each."""
    # Read as Ray is imported; the utility writes below it, too.
    os.environ["RAY_TMPDIR"] = folder
    (Path(folder) / "ray").mkdir()
    from ray.cluster_utils import Cluster

    with socket.socket() as free:
        free.bind(("", 0))
        port = free.getsockname()[1]
    # A node that is lost is noticed within seconds, not half a minute, and no monitor adds another.
    settings = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000}
    store = 80 * 2**20
    head = {"num_cpus": 1, "object_store_memory": store, "include_dashboard": False, "no_monitor": True}
    head |= {"ray_client_server_port": port, "_system_config": settings}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    others = [cluster.add_node(num_cpus=1, object_store_memory=store, wait=False) for _ in range(2)]
    cluster.wait_for_nodes()
    _say([cluster.address, f"{cluster.address.rpartition(':')[0]}:{port}"])
    for _ in sys.stdin:
        cluster.remove_node(others.pop(0), allow_graceful=False)
        _say("killed")
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
