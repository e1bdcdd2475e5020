"""The fixtures of these tests, most of which those of tests/unit have too, and models of random weights."""

import pytest

from build_fixtures import *  # noqa: F403
from made_once import made_once
from models_fixtures import text_models  # noqa: F401


@pytest.fixture(scope="session")
def pipelines(tmp_path_factory):
    """A folder with diffusion pipelines of random weights."""
    tiny_pipelines = pytest.importorskip("tiny_pipelines", exc_type=ImportError)
    return made_once(tmp_path_factory, "pipelines", tiny_pipelines.save_pipelines)


@pytest.fixture(scope="session")
def captioner(tmp_path_factory):
    """The folder with a captioner of a family."""
    pytest.importorskip("transformers")
    import tiny_generative

    save = tiny_generative.save
    return lambda name: made_once(tmp_path_factory, f"captioner-{name}", lambda folder: save(name, folder))
