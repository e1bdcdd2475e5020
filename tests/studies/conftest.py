"""One study by a tiny plan, made once for all tests that look at what came of it."""

from pathlib import Path

import pytest

from counterfoil.studies.demo import Study, study
from tiny_study import FULLER, TINY, facts


@pytest.fixture(scope="session")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of `made`."""
    return tmp_path_factory.mktemp("study") / "out"


@pytest.fixture(scope="session")
def made(place: Path) -> Study:
    """A finished study of one seed, nobody writes to its folder."""
    pytest.importorskip("lightning_fabric")
    return study(TINY, place, facts=facts, note=lambda text: None, draws=200)


@pytest.fixture(scope="session")
def fuller(tmp_path_factory: pytest.TempPathFactory) -> Study:
    """A finished study of two seeds and both dials."""
    pytest.importorskip("lightning_fabric")
    out = tmp_path_factory.mktemp("fuller") / "out"
    return study(FULLER, out, facts=facts, note=lambda text: None, draws=200)
