"""The `ray` executor: the same bytes as the local run's, whatever is killed.

Ray opens sockets on all of the machine's addresses, so it runs in processes of its own here: the nodes of a
cluster (`three_nodes`), drivers of the slow fake (`fakes.py`), and `main` below for what a driver says.
"""

import json
import os
import signal
import sys
import tempfile
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import ray

from counterfoil import catalog
from counterfoil.engine import ray_executor
from counterfoil.engine.executor import RankExecutor
from counterfoil.engine.plan import shards
from counterfoil.engine.ray_executor import Handshake, RayExecutor, ShardWorker, versions
from counterfoil.engine.session import Session, executor_named, run
from counterfoil.errors import CounterfoilError, DataError, InputError, MissingExtraError, UnknownNameError
from counterfoil.models.base import Identity, Options, source_of
from engine import fakes
from refusals import refuses
from three_nodes import LONG, finish, of_ray, start, three_nodes

HERE = Path(__file__)
#: Rows in a full shard of the fakes' script, and the questions that it is given.
SHARD, QUESTIONS = sum(map(len, shards(range(10_000), 24)[0])), 600


@pytest.mark.parametrize("what", ["a node", pytest.param("the driver", marks=pytest.mark.slow)])
def test_whatever_is_killed_the_bytes_are_those_of_one_process(tmp_path, what):
    whole, shared = tmp_path / "whole", tmp_path / "shared"

    def begin(folder, executor, out="out", pause=0.02):
        paths = (folder / "cache", folder / "log", folder / out)
        return start(fakes.__file__, *paths, pause, QUESTIONS, executor)

    for folder in (whole, shared):
        folder.mkdir()
    fakes.main(*(str(whole / name) for name in ("cache", "log", "out")), "0", str(QUESTIONS))
    with three_nodes() as cluster:
        process = begin(shared, cluster.inside)
        fakes.wait_for(shared, process, 400)
        assert process.poll() is None, process.communicate()
        if what == "a node":
            # One of three dies in the middle, with its worker.
            cluster.kill()
            finish(process)
        else:
            # Its workers die with it; the next one goes on beside a process without Ray.
            process.send_signal(signal.SIGKILL)
            process.communicate(timeout=LONG)
            for process in [begin(shared, cluster.inside), begin(shared, "rank:0/2", out="other")]:
                finish(process)
            assert (shared / "other").read_bytes() == (whole / "out").read_bytes()
    # The same answers and the same files, and nothing twice but what the processes that are lost were at.
    assert (shared / "out").read_bytes() == (whole / "out").read_bytes()
    assert fakes.shards_in(shared) == fakes.shards_in(whole)
    times = Counter(fakes.embedded(shared))
    assert set(times) == set(fakes.embedded(whole))
    assert max(times.values()) <= 2
    assert sum(times.values()) - len(times) <= (1 if what == "a node" else 3) * SHARD
    assert not list((shared / "cache" / "leases").glob("*.json"))


@pytest.mark.slow
def test_a_driver_on_its_own_measures_builds_and_says_what_is_wrong(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("transformers", reason="Transformers is not installed")
    import tiny_generative

    assert torch is not None
    before = of_ray()
    tiny_generative.save("idefics3", tmp_path / "vqa")
    # One thread here and there: what a model gives may depend on it in the last digit.
    process = start(HERE, tmp_path, OMP_NUM_THREADS="1", HF_HUB_OFFLINE="1")
    result = json.loads(finish(process))
    assert result["measured"] == {"pixels:colours": True, f"vqa:{tmp_path / 'vqa'}": True}
    assert (result["named"], result["rated"]) == (2, True)
    errors = result["errors"]
    assert errors["ours"] == "DataError: row 7: not as it should be; given: odd"
    assert errors["not ours"] == "ZeroDivisionError: integer division or modulo by zero"
    words = "loads another model than the driver; given: revision 'worker' for 'driver'"
    assert words in errors["elsewhere"]
    assert "does not see the cache; given: /proc/self/fd/" in errors["unseen"]
    assert all("\n" not in line for line in errors.values())
    assert of_ray() <= before
    assert not list(Path(tempfile.gettempdir()).glob(f"counterfoil-ray-{process.pid}-*"))


def test_names_of_executors(monkeypatch):
    assert executor_named("rank:0/2") == RankExecutor(0, 2)
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")
    for name, address, cpus in (
        ("ray", "127.0.0.1:1", None),
        ("ray?cpus=0.5", "127.0.0.1:1", 0.5),
        ("ray:10.0.0.1:6379", "10.0.0.1:6379", None),
        ("ray://head-1.lab:10001?cpus=4", "ray://head-1.lab:10001", 4),
    ):
        executor = executor_named(name)
        assert isinstance(executor, RayExecutor)
        assert (executor.address, executor.cpus) == (address, cpus)
    for name in ("ray:", "ray:head", "ray://", "ray?cpus=", "ray?cpus=-1", "rays", "ray:head:6379/x"):
        refuses("unknown executor", executor_named, name, error=InputError)
    for name in ("ray?cpus=0", "ray?cpus=1.5"):
        refuses("number of processors", executor_named, name, error=InputError)


@pytest.mark.parametrize("address", ["127.0.0.1:1", "ray://127.0.0.1:1", "127.0.0.1:99999"])
def test_no_cluster_at_the_address(tmp_path, address, monkeypatch):
    # It would be waited for.
    monkeypatch.setattr("ray.init", lambda *_, **__: pytest.fail("it was joined"))
    session = Session(tmp_path, executor=RayExecutor(address))
    refuses(address, run, fakes.quads(2), fakes.FakeEmbedder(), session=session, error=InputError)


@pytest.mark.parametrize(
    ("error", "failures", "calls"),
    [
        (ConnectionAbortedError, 2, 3),
        (ConnectionAbortedError, 100, ray_executor._TRIES),
        (RuntimeError, 2, 1),
    ],
)
def test_a_cluster_whose_server_did_not_come_up_is_asked_again(monkeypatch, error, failures, calls):
    asked = []

    def init(address, **settings):
        asked.append(address)
        if len(asked) <= failures:
            raise error("the server\nis not there")

    monkeypatch.setattr(ray, "init", init)
    monkeypatch.setattr(ray_executor, "_check_answers", lambda address: None)
    if calls > failures:
        assert ray_executor.connect("ray://head:10001") is ray.shutdown
    else:
        with pytest.raises(InputError, match=r"ray://head:10001.*; given: the server is not there$"):
            ray_executor.connect("ray://head:10001")
    assert len(asked) == calls


def test_without_ray_the_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"'ray' is not installed.*'counterfoil\[ray\]'"):
        run(fakes.quads(2), fakes.FakeEmbedder(), session=Session(tmp_path, executor=RayExecutor()))


def test_workers_are_one_per_gpu_or_as_many_processors_as_asked(monkeypatch):
    def nodes(*resources):
        result = [{"Alive": True, "Resources": item} for item in resources]
        monkeypatch.setattr(ray, "nodes", lambda: [*result, {"Alive": False, "Resources": {"CPU": 64.0}}])

    nodes({"CPU": 7.0}, {"CPU": 3.0})
    assert ray_executor.count_workers(None) == (10, {"num_cpus": 1})
    assert ray_executor.count_workers(2) == (4, {"num_cpus": 2})
    assert ray_executor.count_workers(0.5) == (20, {"num_cpus": 0.5})
    refuses("many processors; given: 8; allowed: at most 7", ray_executor.count_workers, 8, error=InputError)
    nodes({"CPU": 7.0, "GPU": 2.0}, {"CPU": 3.0})
    assert ray_executor.count_workers(None) == (2, {"num_gpus": 1, "num_cpus": 0})
    nodes({"memory": 1e9})
    refuses("--num-cpus", ray_executor.count_workers, None, error=InputError)


@pytest.mark.parametrize("name", ["counterfoil", "python", "torch"])
def test_a_worker_with_another_version_is_refused(tmp_path, name):
    (tmp_path / "probe").write_text("token")
    error = ShardWorker().meet(Handshake({**versions(), name: "0.0.1"}, tmp_path, "probe", "token"))
    assert isinstance(error, InputError)
    assert f"given: {name} {versions()[name]}; allowed: {name} 0.0.1" in str(error)
    assert ShardWorker().meet(Handshake(versions(), tmp_path, "probe", "token")) is None


def test_errors_travel_as_themselves():
    ours = ray_executor.sendable(UnknownNameError("colour", "rde", ["red"]))
    assert type(ours) is UnknownNameError
    assert str(ours) == "unknown colour; given: rde; allowed: red; did you mean 'red'?"

    class HeldError(Exception):
        def __reduce__(self):
            raise TypeError("cannot be sent")

    result = ray_executor.sendable(HeldError(item for item in ()))
    assert type(result) is RuntimeError
    assert str(result).startswith("HeldError: <generator")


@dataclass
class Wrong:
    """A model that fails in the way that its name says."""

    name: str
    process: int = 0

    @property
    def identity(self):
        here = self.name != "elsewhere" or os.getpid() == self.process
        return Identity(self.name, revision="driver" if here else "worker")

    def score(self, images, captions):
        if self.name == "ours":
            raise DataError("not as it should be", where="row 7", given="odd")
        return np.full(len(images), 1 // 0 if self.name == "not ours" else 1.0)


def main(folder):
    """A driver that measures a world twice, rates rows of a build, and meets errors; prints what it found."""
    import pyarrow as pa

    from counterfoil.build.pipeline import run_step
    from counterfoil.build.step import StepContext
    from counterfoil.build.steps.rate import Rate
    from counterfoil.build.steps.read import ReadRows

    executor = executor_named("ray?cpus=1")
    whole = catalog.benchmark("world-quads")
    result = {"measured": {}, "errors": {}, "named": 0}
    shared = Session(Path(folder) / "cache", batch_size=8, executor=executor)
    for name, questions in (("pixels:colours", 24), (f"vqa:{folder}/vqa", 1)):
        world = whole.select(np.arange(questions))
        model = catalog.model(name, Options(device="cpu"))
        result["named"] += source_of(model) is not None
        alone = run(world, model, session=Session(batch_size=8))
        result["measured"][name] = bool((run(world, model, session=shared).values == alone.values).all())

    def rated(session, folder):
        work = StepContext(
            folder, step="1-rate", model=lambda name, settings: catalog.model(name), session=session
        )
        rows = ReadRows(n=9, size=32).run(pa.table({"id": pa.array([], pa.string())}), work).kept
        return run_step(Rate(model="pixels:colours"), rows, work).kept

    parts = [rated(item, Path(folder) / name) for item, name in ((Session(), "alone"), (shared, "shared"))]
    result["rated"] = parts[0]["pixels"].equals(parts[1]["pixels"])
    unseen = Path(f"/proc/self/fd/{os.open(Path(folder) / 'cache', os.O_RDONLY)}") / "unseen"
    for name in ("ours", "not ours", "elsewhere", "unseen"):
        session = Session(unseen if name == "unseen" else Path(folder) / "cache", executor=executor)
        try:
            run(world, Wrong(name, os.getpid()), session=session)
        except (CounterfoilError, ZeroDivisionError) as error:
            result["errors"][name] = f"{type(error).__name__}: {error}"
    executor.close()
    sys.stdout.write(json.dumps(result))


if __name__ == "__main__":
    main(*sys.argv[1:])
