"""A Ray cluster of three nodes on this machine, of one processor each; a line on stdin kills one of them.

    python three_nodes.py FOLDER

It ends with its stdin.
"""

import json
import os
import sys
from pathlib import Path


def say(what: str) -> None:
    """A line of JSON, at once."""
    sys.stdout.write(json.dumps(what) + "\n")
    sys.stdout.flush()


def main(folder: str) -> None:
    """Print the address once all nodes are there, then kill the second and the third, a line each."""
    # Read as Ray is imported; the utility writes below it, too.
    os.environ["RAY_TMPDIR"] = folder
    (Path(folder) / "ray").mkdir()
    from ray.cluster_utils import Cluster

    # A node that is lost is noticed within seconds, not half a minute.
    settings = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 1000}
    store = 80 * 2**20
    head = {"num_cpus": 1, "object_store_memory": store, "include_dashboard": False}
    cluster = Cluster(initialize_head=True, head_node_args={**head, "_system_config": settings})
    others = [cluster.add_node(num_cpus=1, object_store_memory=store, wait=False) for _ in range(2)]
    cluster.wait_for_nodes()
    say(cluster.address)
    for _ in sys.stdin:
        cluster.remove_node(others.pop(0), allow_graceful=False)
        say("killed")
    cluster.shutdown()


if __name__ == "__main__":
    main(*sys.argv[1:])
