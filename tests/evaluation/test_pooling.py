"""Pools in numbers: by model, by k, in tasks and in money."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.evaluation.pooling import Tasks, summary, without
from counterfoil.metrics.annotators import Pool, pool


def test_the_tasks_of_eccv_caption() -> None:
    """Section 3.2: 2,160 tasks of 18 pairs and 2 of known answer are 43,200 questions, but 38,880 pairs."""
    tasks = Tasks()
    assert tasks.of(2160 * 18) == 2160
    assert 2160 * (tasks.per_task + tasks.golden) == 43_200
    # The pairs that remain of (1,261 + 1,333) x 5 x 5 would be more tasks than that.
    assert (1261 + 1333) * 5 * 5 == 64_850
    assert tasks.of(46_424) == 2580


@given(st.integers(0, 10_000), st.integers(1, 50), st.integers(1, 5))
def test_tasks_hold_all_pairs(pairs: int, per_task: int, answers: int) -> None:
    found = Tasks(per_task=per_task, answers=answers).of(pairs)
    assert found % answers == 0
    assert found // answers * per_task >= pairs > (found // answers - 1) * per_task


def test_two_directions_by_hand() -> None:
    # Images 0, 1 and captions 0, 1, 2. i2t: image 0 gets captions 1, 2 from a and 1, 0 from b.
    # t2i: caption 1 gets image 0 from both (known already as a pair), then 1.
    pools = {"i2t": pool([np.array([[1, 2]]), np.array([[1, 0]])]), "t2i": pool([np.array([[0, 1]])] * 2)}
    numbers = {
        "i2t": pools["i2t"].item,
        "t2i": pools["t2i"].item * 3 + 1,
    }
    found = summary(
        pools,  # type: ignore[arg-type]
        k=2,
        models=("a", "b"),
        queries={"i2t": 1, "t2i": 1},
        pair_of=numbers,  # type: ignore[arg-type]
        tasks=Tasks(per_task=2, golden=1, answers=3, price=0.5),
    )
    assert (found.rows, found.pairs) == (5, 4)
    assert found.proposed == (4, 4)
    assert found.alone == (1, 1)
    assert found.new == (4, 1)
    assert found.curve.tolist() == [[2, 4], [2, 5]]
    # Four pairs, two a task, three people each: six tasks.
    assert (found.n_tasks, found.cost) == (6, 3.0)
    assert found.lines() == [
        "8 proposals are 5 different ones (37.5 % were doubled), 4 pairs of an image and a caption, "
        "whichever asked",
        "6 tasks of 2 pairs and 1 of known answer, 3 people each: 18 questions, 3.00 at 0.50 a task",
    ]
    assert found.to_json()["yield"] == {"1": [2, 4], "2": [2, 5]}


@given(st.integers(0, 2**32 - 1))
def test_pairs_are_taken_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    tops = [np.stack([rng.permutation(6)[:3] for _ in range(4)]) for _ in range(2)]
    pooled = pool(tops)
    known = rng.integers(0, [4, 9], size=(7, 2))
    left = without(pooled, known)
    gone = set(map(tuple, known.tolist()))
    pairs = list(zip(pooled.query.tolist(), pooled.item.tolist(), strict=True))
    assert list(zip(left.query.tolist(), left.item.tolist(), strict=True)) == [
        p for p in pairs if p not in gone
    ]
    kept = [row for row, pair in zip(pooled.place.tolist(), pairs, strict=True) if pair not in gone]
    assert left.place.tolist() == kept
    nothing = np.empty((0, 2), np.int64)
    assert without(pooled, nothing) is pooled


def test_a_pool_may_be_empty() -> None:
    empty = Pool(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2), np.int64))
    found = summary(
        {"t2i": empty},
        k=1,
        models=("a", "b"),
        queries={"t2i": 3},
        pair_of={"t2i": np.empty(0, np.int64)},
        tasks=Tasks(),
        excluded=4,
    )
    assert (found.rows, found.n_tasks) == (0, 0)
    assert found.lines()[0] == "0 proposals are 0 different ones"
    assert found.lines()[1] == "4 more were left out, known to be right"
    assert found.cost == pytest.approx(0)
