"""Work in threads comes back in order, and its products keep to their threads."""

import threading

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from counterfoil.engine.top_lists import map_ordered


@pytest.mark.parametrize("threads", [1, 2, 5, None])
def test_results_are_in_order(threads: int | None) -> None:
    late = {0: 0.02, 3: 0.01}

    def work(part: int) -> int:
        threading.Event().wait(late.get(part, 0))
        return part * part

    assert list(map_ordered(work, range(7), threads)) == [(n, n * n) for n in range(7)]
    assert list(map_ordered(work, [], threads)) == []


def test_products_keep_to_their_thread_meanwhile_and_not_afterwards() -> None:
    def threads_of_blas() -> set[int]:
        return {each["num_threads"] for each in threadpool_info() if each["user_api"] == "blas"}

    np.ones((2, 2)) @ np.ones((2, 2))
    before = threads_of_blas()
    assert {n for _, found in map_ordered(lambda part: threads_of_blas(), range(4), 2) for n in found} == {1}
    assert threads_of_blas() == before


def test_an_error_is_raised_and_what_waits_is_not_done() -> None:
    done = []

    def work(part: int) -> int:
        if part == 1:
            raise ValueError("here")
        done.append(part)
        return part

    with pytest.raises(ValueError, match="here"):
        list(map_ordered(work, range(100), 2))
    assert len(done) < 10
