"""Models and benchmarks of the engine's own tests: cheap, countable, and sensitive to how they are batched.

Run as a script it is the process that the kill test kills.
"""

import hashlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from contracts import forms
from counterfoil.benchmarks import Benchmark, BytesSource, Caption, Image
from counterfoil.models.base import Identity
from tar_shards import png

WIDTH = 8


def quads(n: int, *, distinct_images: int | None = None, distinct_captions: int | None = None) -> Benchmark:
    """`n` quads over 2n items; contents repeat after `distinct_images` and `distinct_captions` of them."""
    images = tuple(
        Image(f"i{i}", BytesSource(png(i % distinct_images if distinct_images else i))) for i in range(2 * n)
    )
    captions = tuple(
        Caption(f"c{i}", "word " * (1 + i % 7) + str(i % distinct_captions if distinct_captions else i))
        for i in range(2 * n)
    )
    return forms.quads_of(images, captions, name="fake", title="Fake")


def choices(n: int, k: int = 2) -> Benchmark:
    """`n` images with `k` captions each."""
    images = tuple(Image(f"i{i}", BytesSource(png(i))) for i in range(n))
    captions = tuple(Caption(f"c{i}", f"caption number {i}") for i in range(n * k))
    return forms.choices_of(images, captions, name="fake", title="Fake")


def vector(data: bytes) -> np.ndarray:
    """A unit vector that depends on all of `data`."""
    seed = int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "little")
    value = np.random.default_rng(seed).standard_normal(WIDTH)
    return value / np.linalg.norm(value)


def rounding(batch: Sequence[bytes]) -> float:
    """What a real model's last bits do: they change with the company an item is embedded in."""
    return int.from_bytes(hashlib.blake2b(b"".join(batch), digest_size=2).digest(), "little") * 1e-9


@dataclass
class FakeEmbedder:
    """Embeds content by its digest and writes down what it was asked for."""

    identity: Identity = field(default_factory=lambda: Identity("fake:embedder", revision="1"))
    #: Called with ("images" | "captions", names of the batch) before each batch.
    watch: Callable[[str, list[str]], None] = lambda kind, names: None
    images_seen: list[str] = field(default_factory=list)
    captions_seen: list[str] = field(default_factory=list)
    calls: list[str] = field(default_factory=list)

    def embed_images(self, batches: Sequence[Sequence[Image]], *, workers: int = 0) -> Iterator[np.ndarray]:
        self.calls.append("images")
        for batch in batches:
            self.watch("images", [image.id for image in batch])
            self.images_seen += [image.id for image in batch]
            yield self._embed([image.read() for image in batch])

    def embed_captions(self, batches: Sequence[Sequence[Caption]]) -> Iterator[np.ndarray]:
        self.calls.append("captions")
        for batch in batches:
            self.watch("captions", [caption.id for caption in batch])
            self.captions_seen += [str(caption.text) for caption in batch]
            yield self._embed([str(caption.text).encode() for caption in batch])

    def _embed(self, data: list[bytes]) -> np.ndarray:
        return (np.stack([vector(item) for item in data]) * (1 + rounding(data))).astype(np.float32)

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        return [len(str(caption.text).split()) for caption in captions]

    def compare(self, captions: np.ndarray, images: np.ndarray) -> np.ndarray:
        return np.einsum("ij,ij->i", captions.astype(np.float64), images.astype(np.float64))


@dataclass
class FakeModel:
    """Scores a pair by its content, and counts pairs."""

    identity: Identity = field(default_factory=lambda: Identity("fake:model", revision="1"))
    pairs_seen: list[tuple[str, str]] = field(default_factory=list)

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> np.ndarray:
        texts = [str(caption.text) for caption in captions]
        self.pairs_seen += zip([image.id for image in images], texts, strict=True)
        pairs = [(image.read(), text.encode()) for image, text in zip(images, texts, strict=True)]
        return np.asarray([float(vector(image) @ vector(text)) for image, text in pairs])


def embedded(folder: Path) -> list[tuple[str, str]]:
    """Everything that any process of `main` embedded, in order, but for a line that is being written."""
    log = folder / "log"
    lines = log.read_text().rpartition("\n")[0].splitlines() if log.exists() else []
    return [tuple(json.loads(line)) for line in lines]


def wait_for(folder: Path, process: subprocess.Popen, items: int) -> None:
    """Wait until so many items are embedded, or the process has ended."""
    until = time.monotonic() + 600
    while len(embedded(folder)) < items and process.poll() is None:
        assert time.monotonic() < until, "the run makes no progress"
        time.sleep(0.003)


def shards_in(folder: Path) -> dict[str, bytes]:
    """The shards in the cache of `main`, by name."""
    return {path.name: path.read_bytes() for path in (folder / "cache").rglob("*.npz")}


def main(cache: str, log: str, out: str, pause: str, questions: str = "500", executor: str = "local") -> None:
    """Measure a benchmark slowly, writing every item to `log` as it is embedded and the scores to `out`."""
    from counterfoil.engine.session import Session, executor_named, run

    def watch(kind: str, names: list[str]) -> None:
        # Opened anew, since it may be another process that embeds.
        handle = os.open(log, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        os.write(handle, "".join(json.dumps([kind, name]) + "\n" for name in names).encode())
        os.close(handle)
        time.sleep(float(pause))

    session = Session(Path(cache), batch_size=24, executor=executor_named(executor))
    answers = run(quads(int(questions)), FakeEmbedder(watch=watch), session=session)
    Path(out).write_bytes(answers.values.tobytes())


if __name__ == "__main__":
    main(*sys.argv[1:])
