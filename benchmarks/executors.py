"""What it costs that several processes compute the shards: local, ranks and Ray with 1, 2 and 4 workers.

    python benchmarks/executors.py [--images 3072] [--tiny 200] [--workers 1 2 4] [--rounds 3] [--small]

Two loads, each with a cache that is empty at the start: photographs of 256 x 256 pixels that are decoded,
made smaller and go through a network of random weights (NumPy, one thread), and captions whose vectors cost
nothing, in many shards, so that only what surrounds a shard is left. Processes are started, and have computed
something, before the clock runs. Seconds are medians of the rounds, in which local and ranks take turns.

* ratio: local seconds by seconds; efficiency: that by the number of workers, or of processors where those are
  fewer. On a machine that others use, processor seconds tell more than the clock.
* overhead: milliseconds of all processors that a tiny shard costs.
"""

import argparse
import io
import multiprocessing
import os
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image

from counterfoil.benchmarks import BytesSource, Caption, Image
from counterfoil.engine.cache import Cache, Vectors
from counterfoil.engine.executor import Executor
from counterfoil.engine.plan import ShardWork, caption_vectors, image_vectors, shards
from counterfoil.engine.session import executor_named
from counterfoil.inputs.files import digest
from counterfoil.models.base import Identity

BATCH, WIDTH, SIDE = 32, 512, 64


class Network:
    """Two layers of random weights over pixels; captions have the vector of their length."""

    identity = Identity("benchmark:network", revision="1")

    #: Drawn when they are needed, and so not sent to workers.
    _layers: tuple[np.ndarray, ...] = ()

    @property
    def layers(self) -> tuple[np.ndarray, ...]:
        """The weights."""
        if not self._layers:
            rng = np.random.default_rng(0)
            shapes = ((SIDE * SIDE * 3, 1024), (1024, WIDTH))
            self._layers = tuple(rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
        return self._layers

    def embed_images(self, batches: Sequence[Sequence[Image]], *, workers: int = 0) -> Iterator[np.ndarray]:
        """Decoded, resized and multiplied."""
        for batch in batches:
            pixels = np.stack(
                [np.asarray(PIL.Image.open(io.BytesIO(image.read())).resize((SIDE, SIDE))) for image in batch]
            )
            hidden = np.maximum(pixels.reshape(len(batch), -1).astype(np.float32) / 255 @ self.layers[0], 0)
            yield hidden @ self.layers[1]

    def embed_captions(self, batches: Sequence[Sequence[Caption]]) -> Iterator[np.ndarray]:
        """Nothing that costs."""
        for batch in batches:
            yield np.array([[len(caption.text or "")] for caption in batch], dtype=np.float32)


@dataclass(frozen=True)
class Load:
    """Items of a kind, as many as `count`, in shards of about 256."""

    kind: str
    count: int

    def work(self, cache: Path, first: int = 0) -> ShardWork:
        """The work, its items numbered from `first`."""
        numbers = range(first, first + self.count)
        items: list[Any]
        if self.kind == "images":
            names = [f"i{number % 64}" for number in numbers]
            pictures = {name: _photograph(int(name[1:])) for name in sorted(set(names))}
            items = [Image(name, BytesSource(pictures[name])) for name in names]
            compute, rows = image_vectors, 256
        else:
            items = [Caption(str(number), f"caption {number}") for number in numbers]
            compute, rows = caption_vectors, BATCH
        keys = [digest(f"{self.kind} {number}".encode()) for number in numbers]
        cut = shards(range(self.count), BATCH, shard_rows=rows)
        kept = Cache(cache, Network.identity)
        return ShardWork("benchmark", Network(), compute, Vectors(self.kind, keys), kept, items, cut)


def _photograph(seed: int) -> bytes:
    """A JPEG of low frequencies."""
    small = np.random.default_rng(seed).integers(0, 256, (16, 16, 3), dtype=np.uint8)
    buffer = io.BytesIO()
    PIL.Image.fromarray(small).resize((256, 256), PIL.Image.Resampling.BICUBIC).save(buffer, "JPEG")
    return buffer.getvalue()


def _timed(executor: Executor, load: Load) -> tuple[float, float]:
    """Seconds by the clock and of the processors of this process and all below it."""
    with tempfile.TemporaryDirectory() as warm, tempfile.TemporaryDirectory() as cold:
        executor.run(Load(load.kind, 1024).work(Path(warm), first=10**6), _nothing)
        work = load.work(Path(cold))
        clock, processor = time.perf_counter(), _processor_seconds()
        executor.run(work, _nothing)
        return time.perf_counter() - clock, _processor_seconds() - processor


def _ranks(count: int, load: Load) -> tuple[float, float]:
    """As `_timed`, of `count` processes that begin together."""
    spawn = multiprocessing.get_context("spawn")
    barrier, answers = spawn.Barrier(count + 1), spawn.Queue()
    with tempfile.TemporaryDirectory() as warm, tempfile.TemporaryDirectory() as cold:
        processes = [
            spawn.Process(target=_rank, args=(rank, count, load, warm, cold, barrier, answers))
            for rank in range(count)
        ]
        for process in processes:
            process.start()
        barrier.wait()
        clock = time.perf_counter()
        processor = sum(answers.get() for _ in processes)
        seconds = time.perf_counter() - clock
        for process in processes:
            process.join()
    return seconds, processor


def _rank(rank: int, of: int, load: Load, warm: str, cold: str, barrier: Any, answers: Any) -> None:
    executor = executor_named(f"rank:{rank}/{of}")
    executor.run(Load(load.kind, 64).work(Path(warm), first=10**6), _nothing)
    work = load.work(Path(cold))
    barrier.wait()
    began = time.process_time()
    executor.run(work, _nothing)
    answers.put(time.process_time() - began)


def _nothing(rows: int) -> None:
    pass


def _processor_seconds() -> float:
    """What this process and the processes below it have taken so far."""
    children, spent = defaultdict(list), {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        try:
            parts = stat.read_text().rpartition(")")[2].split()
        except OSError:
            continue
        process = int(stat.parent.name)
        children[int(parts[1])].append(process)
        spent[process] = (int(parts[11]) + int(parts[12])) / os.sysconf("SC_CLK_TCK")
    found, total = [os.getpid()], 0.0
    while found:
        process = found.pop()
        total += spent.get(process, 0.0)
        found += children[process]
    return total


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--images", type=int, default=3072)
    parser.add_argument("--tiny", type=int, default=200, help="tiny shards")
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--small", action="store_true", help="little, once, to see that it works")
    asked = parser.parse_args()
    if asked.small:
        asked.images, asked.tiny, asked.rounds = 512, 20, 1
    processors = len(os.sched_getaffinity(0))
    loads = {"images": Load("images", asked.images), "tiny": Load("captions", asked.tiny * BATCH)}

    ways: dict[tuple[str, int], Callable[[Load], tuple[float, float]]] = {}
    ways["local", 1] = lambda load: _timed(executor_named("local"), load)
    for count in asked.workers:
        ways["rank", count] = lambda load, count=count: _ranks(count, load)
    taken: dict[tuple[str, int, str], list[tuple[float, float]]] = defaultdict(list)
    for _ in range(asked.rounds):
        for (way, count), run in ways.items():
            for name, load in loads.items():
                taken[way, count, name].append(run(load))
    try:
        import ray
    except ModuleNotFoundError:
        print("Ray is not installed: pip install '.[ray]'")
    else:
        for count in asked.workers:
            ray.init(num_cpus=count, include_dashboard=False, log_to_driver=False, logging_level="CRITICAL")
            executor = executor_named("ray?cpus=1")
            for _ in range(asked.rounds):
                for name, load in loads.items():
                    taken["ray", count, name].append(_timed(executor, load))
            executor.close()
            ray.shutdown()

    middle = {key: tuple(map(statistics.median, zip(*runs, strict=True))) for key, runs in taken.items()}
    load = os.getloadavg()[0]
    print(f"{processors} processors, load {load:.1f}; {asked.images} images; {asked.tiny} tiny shards")
    print(f"{'':8}workers   images: s  (proc.)  ratio  efficiency   tiny: s  (proc.)  ratio  overhead")
    for way, count in dict.fromkeys((way, count) for way, count, _ in middle):
        line = f"{way:8}{count:7}"
        for name in loads:
            clock, spent = middle[way, count, name]
            ratio = middle["local", 1, name][0] / clock
            line += f"{clock:12.2f} {spent:8.2f} {ratio:6.2f}"
            line += f"{ratio / min(count, processors):11.0%} " if name == "images" else ""
        print(line + f"{1000 * spent / asked.tiny:7.1f} ms")


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "1")
    main()
