"""The engine's fakes as a fixture."""

import importlib.util
import sys
from pathlib import Path

import pytest

FAKES = Path(__file__).parents[1].joinpath("unit", "engine", "fakes.py")


@pytest.fixture(scope="session")
def fakes():
    """The module of fake scorers and benchmarks; `fakes.__file__` is the script of the kill test."""
    spec = importlib.util.spec_from_file_location("engine_fakes", FAKES)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["engine_fakes"] = module
    spec.loader.exec_module(module)
    return module
