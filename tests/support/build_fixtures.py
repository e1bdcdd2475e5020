"""What tests of builds share: a work, and the digests of a folder."""

import pytest

import unchanged
from counterfoil import catalog
from counterfoil.build.step import StepContext
from counterfoil.engine.session import Session
from counterfoil.models.base import Options


def step_work(folder, step="", *, note=lambda text: None, cache=None, batch_size=32, key="", **settings):
    """What a step is given: models of the catalog on the CPU, with the step's settings and these."""

    def model(name, given):
        asked = Options(device="cpu", settings={**settings, **given}, api_key=key)
        return catalog.model(name, asked, memory=cache)

    session = Session(cache, batch_size=batch_size, note=note)
    return StepContext(folder, session=session, step=step, model=model)


@pytest.fixture
def work(tmp_path):
    """A work in an empty folder, with benchmarks by name."""
    return StepContext(
        tmp_path / "build",
        benchmark=lambda name, data, images: catalog.benchmark(name, data=data, images=images, counts=False),
        model=lambda name, settings: catalog.model(name),
    )


@pytest.fixture
def digests():
    return unchanged.digests
