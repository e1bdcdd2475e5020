"""Two studies by tiny plans, made once for all tests that look at what came of them."""

import pytest

from counterfoil.studies.demo import Study, study
from made_once import made_once
from tiny_study import FULLER, TINY, facts


def _finished(factory, name, plan):
    """A folder of a finished study, and the study: as it was made, or as a folder that is there gives it."""
    pytest.importorskip("lightning_fabric")
    found: list[Study] = []

    def make(folder):
        found[:] = [study(plan, folder, facts=facts, note=lambda text: None)]

    folder = made_once(factory, name, make)
    if not found:
        make(folder)
    return folder, found[0]


@pytest.fixture(scope="session")
def tiny_study_run(tmp_path_factory):
    return _finished(tmp_path_factory, "tiny-study", TINY)


@pytest.fixture(scope="session")
def place(tiny_study_run):
    """The folder of `made`."""
    return tiny_study_run[0]


@pytest.fixture(scope="session")
def made(tiny_study_run):
    """A finished study of one seed; no test writes to its folder."""
    return tiny_study_run[1]


@pytest.fixture(scope="session")
def fuller(tmp_path_factory):
    """A finished study of two seeds."""
    return _finished(tmp_path_factory, "fuller-study", FULLER)[1]
