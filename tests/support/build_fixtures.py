"""What tests of builds share: a work, and the digests of a folder."""

import pytest

import unchanged
from counterfoil import catalog
from counterfoil.build.step import StepContext


@pytest.fixture
def work(tmp_path):
    """A work in an empty folder, with benchmarks by name."""
    return StepContext(
        tmp_path / "build",
        benchmark=lambda name, data, images: catalog.benchmark(name, data=data, images=images, counts=False),
        scorer=lambda name, settings: catalog.scorer(name),
    )


@pytest.fixture
def digests():
    return unchanged.digests
