"""What is sampled of a stage is extrapolated to what the whole of it takes, by a clock of our own."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.data import Caption
from counterfoil.engine import estimating
from counterfoil.engine.cache import Cache, Vectors
from counterfoil.engine.estimating import EstimatingExecutor
from counterfoil.engine.plan import shards
from counterfoil.engine.shard_work import ShardWork, caption_words
from counterfoil.scorers.base import Identity
from counterfoil.store import digest


class Clock:
    now = 0.0

    def perf_counter(self) -> float:
        return self.now


def work(clock: Clock, seconds, *, n: int = 1000, batch: int = 10) -> ShardWork:
    """Captions of which caption i takes `seconds(i)`, embedded into two numbers."""

    def compute(scorer, batches, workers):
        for each in batches:
            clock.now += sum(seconds(int(caption.id)) for caption in each)
            yield np.array([[int(caption.id), 1.0] for caption in each], dtype=np.float32)

    captions = [Caption(str(i), f"caption {i}") for i in range(n)]
    values = Vectors("captions", [digest(caption.text.encode()) for caption in captions])
    kept = Cache(None, Identity("fake", revision="1"))
    cut = shards(range(n), batch)
    return ShardWork("embedding captions", None, compute, caption_words, values, kept, captions, cut)


@pytest.fixture
def clock(monkeypatch):
    clock = Clock()
    monkeypatch.setattr(estimating, "time", clock)
    return clock


@pytest.mark.parametrize("seconds", [lambda i: 0.01, lambda i: 0.002 + 0.00001 * i])
def test_a_stage_whose_cost_is_even_or_grows_evenly_is_estimated_exactly(clock, seconds):
    executor, done = EstimatingExecutor(sample=9), []
    asked = work(clock, seconds)
    assert executor.run(asked, done.append)
    (stage,) = executor.stages
    assert (stage.items, stage.batches, stage.sampled) == (1000, 100, 9)
    whole = sum(seconds(i) for i in range(1000))
    assert stage.seconds == pytest.approx(whole, rel=0.03)
    assert abs(stage.seconds - whole) <= 3 * stage.error + 1e-9
    assert sum(done) == 1000
    assert executor.spent == pytest.approx(clock.now)
    assert stage.kept == 1000 * 2 * 4


def test_what_is_not_computed_is_made_up_of_the_nearest_sample_and_finite(clock):
    asked = work(clock, lambda i: 0.01)
    EstimatingExecutor(sample=5).run(asked, lambda rows: None)
    values = asked.values.values
    assert values.shape == (1000, 2)
    assert np.isfinite(values).all()
    # Row i is some row of a sampled batch before it, a thousandth smaller at most.
    assert (values[:, 0] <= np.arange(1000) + 9).all()
    assert (np.abs(values[:, 1] - 1) <= 1e-3).all()
    assert len(np.unique(values[:, 1])) > 900


def test_one_batch_is_measured_and_nothing_extrapolated(clock):
    executor = EstimatingExecutor()
    executor.run(work(clock, lambda i: 0.01, n=7), lambda rows: None)
    (stage,) = executor.stages
    assert stage.seconds == pytest.approx(0.07)
    assert stage.error == 0


def test_writing_a_shard_is_time_of_the_stage(clock, monkeypatch):
    asked, write = work(clock, lambda i: 0.01), Vectors.write

    def slow(self, kept, rows, parts):
        assert kept.folder is not None
        clock.now += 0.5
        write(self, kept, rows, parts)

    monkeypatch.setattr(Vectors, "write", slow)
    executor = EstimatingExecutor(sample=9)
    executor.run(asked, lambda rows: None)
    (stage,) = executor.stages
    assert (stage.shards, stage.shard) == (len(asked.cut), pytest.approx(0.5))
    assert stage.seconds == pytest.approx(1000 * 0.01 + 0.5 * len(asked.cut), rel=0.03)


def test_taking_what_was_made_is_time_of_the_stage(clock, monkeypatch):
    asked, put = work(clock, lambda i: 0.0), Vectors.put

    def slow(self, rows, part, where):
        clock.now += 0.2
        put(self, rows, part, where)

    monkeypatch.setattr(Vectors, "put", slow)
    executor = EstimatingExecutor(sample=9)
    executor.run(asked, lambda rows: None)
    assert executor.stages[0].each == pytest.approx(0.2)


def test_with_processes_that_decode_the_sample_begins_when_all_are_at_work(clock):
    """A batch of the lead takes a second longer, as while processes start."""
    started: list[int] = []

    def compute(scorer, batches, workers):
        for at, each in enumerate(batches):
            started.append(at)
            clock.now += 0.1 + (at <= workers)
            yield np.array([[int(caption.id), 1.0] for caption in each], dtype=np.float32)

    asked = replace(work(clock, lambda i: 0.0), compute=compute, workers=3)
    executor = EstimatingExecutor(sample=9)
    executor.run(asked, lambda rows: None)
    assert executor.stages[0].each == pytest.approx(0.1)
    assert len(started) == 1 + (4 + 9)
