"""Commands whose work ranks or workers of a cluster do."""

import pytest

from counterfoil.engine.ray_executor import RayExecutor
from counterfoil.errors import StorageError
from counterfoil.world import benchmarks
from counterfoil.world.sample import quads


@pytest.fixture(autouse=True)
def small_world(monkeypatch):
    monkeypatch.setitem(benchmarks._DRAWN, "world-quads", lambda _: quads(40, size=32, lazy=True))


@pytest.mark.parametrize("fails", [False, True])
def test_workers_of_a_cluster_go_when_the_command_ends(counterfoil, tmp_path, monkeypatch, fails):
    done: list[str] = []

    def run(self, work, advance):
        done.append("computed")
        if fails:
            raise StorageError("no worker of the Ray cluster has started")
        return list(work.run(range(len(work)), advance)) == list(range(len(work)))

    monkeypatch.setattr(RayExecutor, "run", run)
    monkeypatch.setattr(RayExecutor, "close", lambda self: done.append("closed"))
    asked = ("evaluate", "pixels:colours", "world-quads", "--limit", 5, "--draws", 100, "--executor", "ray")
    found = counterfoil(*asked, "--cache", tmp_path / "kept")
    assert (found.code != 0) is fails, found.err
    assert done == ["computed", "closed"]
