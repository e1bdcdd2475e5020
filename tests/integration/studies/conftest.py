"""A study by a tiny plan, made once for all tests that look at what came of it."""

import pytest

from counterfoil.studies.demo import Study, study
from made_once import made_once
from tiny_study import TINY, facts


@pytest.fixture(scope="session")
def tiny_study_run(tmp_path_factory):
    """The folder of a finished study, and the study, as it was made or as a folder that is there gives it."""
    pytest.importorskip("lightning_fabric")
    found: list[Study] = []

    def make(folder):
        found[:] = [study(TINY, folder, facts=facts, note=lambda text: None)]

    folder = made_once(tmp_path_factory, "tiny-study", make)
    if not found:
        make(folder)
    return folder, found[0]


@pytest.fixture(scope="session")
def place(tiny_study_run):
    """The folder of `made`."""
    return tiny_study_run[0]


@pytest.fixture(scope="session")
def made(tiny_study_run):
    """A finished study of one seed; no test writes to its folder."""
    return tiny_study_run[1]
