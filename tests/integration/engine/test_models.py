"""The engine around a real, if untrained, dual encoder."""

import numpy as np
import pytest

from counterfoil.engine.run import run
from counterfoil.engine.session import Session

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    pytest.importorskip("torch")
    pytest.importorskip("open_clip")
    from counterfoil import catalog
    from counterfoil.models.base import Options
    from tiny_families import write_random_checkpoint

    spec = write_random_checkpoint(tmp_path_factory.mktemp("tiny"))
    return catalog.scorer(spec, Options(device="cpu"))


def test_decisions_do_not_change_with_batch_size_or_workers(fakes, encoder, tmp_path):
    benchmark = fakes.quads(20)
    first = run(benchmark, encoder, session=Session(batch_size=32)).values
    assert np.ptp(first) > 1e-4  # the scores do differ from pair to pair
    for batch_size, workers in ((1, 0), (7, 2)):
        other = run(benchmark, encoder, session=Session(batch_size=batch_size, workers=workers)).values
        # Batches of another shape round differently in the last bits of float32.
        np.testing.assert_allclose(other, first, atol=2e-6)
        for axis in (1, 2):
            assert np.array_equal(np.diff(other, axis=axis) > 0, np.diff(first, axis=axis) > 0)


def test_the_same_options_give_the_same_bits_with_and_without_a_cache(fakes, encoder, tmp_path):
    benchmark = fakes.quads(20)
    plain = run(benchmark, encoder, session=Session(batch_size=8)).values
    cold = run(benchmark, encoder, session=Session(batch_size=8, cache=tmp_path)).values
    warm = run(benchmark, encoder, session=Session(batch_size=8, cache=tmp_path)).values
    assert plain.tobytes() == cold.tobytes() == warm.tobytes()
