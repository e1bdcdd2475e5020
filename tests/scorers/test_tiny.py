import sys

import numpy as np
import pytest

from counterfoil import catalog
from counterfoil.engine.run import run
from counterfoil.errors import MissingExtraError
from counterfoil.metrics.contrast import QUAD as MEASURES
from counterfoil.scorers import Embedder
from counterfoil.scorers.base import Options
from counterfoil.scorers.open_clip_loading import write_random_checkpoint
from counterfoil.world import quads

torch = pytest.importorskip("torch")
pytest.importorskip("open_clip")

pytestmark = pytest.mark.models


@pytest.fixture(scope="module")
def encoder(tmp_path_factory):
    """The folder of an untrained encoder, and the scorer that the ordinary loader makes of it."""
    folder = tmp_path_factory.mktemp("encoder")
    spec = write_random_checkpoint(folder, seed=3)
    assert spec == f"open-clip:local-dir:{folder}"
    return folder, catalog.scorer(spec, Options(device="cpu"))


def test_same_seed_same_bytes(encoder, tmp_path):
    folder, _ = encoder
    write_random_checkpoint(tmp_path / "again", seed=3)
    write_random_checkpoint(tmp_path / "other", seed=4)
    for path in folder.iterdir():
        again = (tmp_path / "again" / path.name).read_bytes()
        assert again == path.read_bytes()
        other = (tmp_path / "other" / path.name).read_bytes()
        assert (again == other) == (path.suffix != ".safetensors")


def test_it_leaves_the_random_state_alone(tmp_path):
    before = torch.get_rng_state()
    write_random_checkpoint(tmp_path, seed=1)
    assert torch.equal(torch.get_rng_state(), before)


def test_it_is_small(encoder):
    folder, _ = encoder
    assert sum(path.stat().st_size for path in folder.iterdir()) < 8_000_000


def test_it_measures_the_world(encoder):
    _, scorer = encoder
    assert isinstance(scorer, Embedder)
    benchmark = quads(28, size=96)
    scores = run(benchmark, scorer).values
    # It has learnt nothing, but it is a function of both inputs: other captions and pictures score otherwise.
    assert len(np.unique(scores)) > 100
    # Chance is 1/6: half of 28 questions right would have odds of 1 in 10,000.
    assert MEASURES["group"](scores).sum() < 14
    # The same weights and the same pictures give the same numbers.
    np.testing.assert_array_equal(run(benchmark, scorer).values, scores)


def test_without_the_library_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "open_clip.model", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'counterfoil\["):
        write_random_checkpoint(tmp_path)
    assert not list(tmp_path.iterdir())
