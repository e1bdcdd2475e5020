"""Scorers of pairs as a stream of batches, and those with `score` alone."""

from typing import ClassVar

import numpy as np
import pytest

from counterfoil.engine.rank import rank_galleries
from counterfoil.engine.session import Session, run
from counterfoil.errors import ScoreError
from counterfoil.models import baselines
from counterfoil.models.base import Ability, Options
from counterfoil.models.lazy import LazyPairScorer, lazy
from small_galleries import several


class Streaming:
    """A scorer of pairs that writes down its calls, and closes what it opened."""

    does: ClassVar[tuple[Ability, ...]] = ("scores_pairs",)

    def __init__(self, inner, stop_after=None):
        self.inner, self.identity, self.stop_after = inner, inner.identity, stop_after
        self.needs: tuple[str, ...] = ("images", "captions")
        self.calls: list[tuple[list[int], int]] = []
        self.closed = 0

    def score_pairs(self, batches, *, workers=0):
        self.calls.append(([len(batch) for batch in batches], workers))
        try:
            for number, batch in enumerate(batches):
                if number == self.stop_after:
                    return
                yield self.inner.score(*zip(*batch, strict=True))
        finally:
            self.closed += 1


def test_a_stream_gets_all_batches_in_one_call_and_gives_the_same_bytes(fakes, tmp_path):
    benchmark = fakes.choices(11)
    plain = run(benchmark, fakes.FakeScorer(), session=Session(tmp_path / "plain", batch_size=4))
    scorer = Streaming(fakes.FakeScorer())
    streamed = run(benchmark, scorer, session=Session(tmp_path / "stream", batch_size=4, workers=3))
    assert streamed.values.tobytes() == plain.values.tobytes()
    ((sizes, workers),) = scorer.calls
    assert workers == 3
    assert set(sizes[:-1]) == {4}
    assert sum(sizes) == len(scorer.inner.pairs_seen) == len(set(scorer.inner.pairs_seen))
    shards = [sorted((tmp_path / name).rglob("pairs/*.npz")) for name in ("plain", "stream")]
    assert [path.name for path in shards[0]] == [path.name for path in shards[1]]
    assert [path.read_bytes() for path in shards[0]] == [path.read_bytes() for path in shards[1]]
    again = Streaming(fakes.FakeScorer())
    run(benchmark, again, session=Session(tmp_path / "stream", batch_size=4))
    assert again.calls == []


def test_a_stream_is_closed_and_its_end_is_an_error(fakes):
    scorer = Streaming(fakes.FakeScorer(), stop_after=1)
    with pytest.raises(ScoreError, match=r"scoring pairs, image .*stopped before all batches were done"):
        run(fakes.choices(11), scorer, session=Session(batch_size=4))
    assert scorer.closed == 1


def test_a_stream_ranks_a_gallery():
    gallery = several(np.random.default_rng(0), 4, 6)[0]
    plain = baselines.load_blind("random")
    streamed = Streaming(plain)
    streamed.needs = plain.needs
    one, two = (rank_galleries([gallery], each)[0] for each in (plain, streamed))
    np.testing.assert_array_equal(one.i2t.above, two.i2t.above)
    np.testing.assert_array_equal(one.t2i.above, two.t2i.above)


def test_a_scorer_of_pairs_is_loaded_when_a_batch_asks(fakes, tmp_path):
    file = tmp_path / "weights.bin"
    file.write_bytes(b"one")
    made: list[str] = []

    def load(argument, options):
        made.append(argument)
        return Streaming(fakes.FakeScorer())

    def asked():
        return lazy("pairs", str(file), Options(), load, tmp_path / "cache")

    benchmark, session = fakes.choices(5), Session(tmp_path / "cache")
    first = run(benchmark, asked(), session=session)
    second = asked()
    assert isinstance(second, LazyPairScorer)
    assert run(benchmark, second, session=session).values.tobytes() == first.values.tobytes()
    assert len(made) == 1
    assert run(benchmark, asked()).values.tobytes() == first.values.tobytes()
    assert len(made) == 2
