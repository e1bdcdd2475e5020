"""References, row by row and drawn."""

import numpy as np

from counterfoil.data.references import References


def test_references_are_taken_row_by_row() -> None:
    rows = [[3, 1], [], [2, 2, 5], [0]]
    found = References.of(rows)
    order = np.array([2, 0, 1, 2])
    taken = found.take(order)
    assert [taken.row(i).tolist() for i in range(len(taken))] == [rows[i] for i in order]
    assert found.rows.tolist() == [0, 0, 2, 2, 2, 3]


def test_drawn_references_are_some_of_their_row_in_their_order() -> None:
    rows = [list(range(start, start + size)) for start, size in ((0, 48), (100, 3), (200, 5), (300, 9))]
    found = References.of(rows)
    drawn = found.sample(5, np.random.default_rng(1))
    for row, own in enumerate(rows):
        kept = drawn.row(row).tolist()
        assert len(kept) == min(5, len(own))
        assert kept == sorted(kept)
        assert set(kept) <= set(own)
    again = found.sample(5, np.random.default_rng(1))
    assert again.captions.tolist() == drawn.captions.tolist()
    assert found.sample(5, np.random.default_rng(2)).captions.tolist() != drawn.captions.tolist()


def test_each_reference_is_drawn_as_often_as_any_other() -> None:
    found, rng = References.of([list(range(6))]), np.random.default_rng(0)
    often = np.bincount(np.concatenate([found.sample(2, rng).captions for _ in range(3000)]), minlength=6)
    # Binomial with 3,000 trials of 1/3: 1,000 give or take five of its standard deviations, 26.
    assert np.all(np.abs(often - 1000) < 130)
