"""Coverage and p-values where images are unequal and captions repeat: what benchmarks/coverage.py prints."""

import importlib.util
import sys
from pathlib import Path

import numpy as np
import pytest

PATH = Path(__file__).parents[3] / "benchmarks" / "coverage.py"


def benchmark():
    if "coverage_benchmark" not in sys.modules:
        spec = importlib.util.spec_from_file_location("coverage_benchmark", PATH)
        assert spec is not None
        assert spec.loader is not None
        sys.modules["coverage_benchmark"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(sys.modules["coverage_benchmark"])
    return sys.modules["coverage_benchmark"]


def margin(share, repetitions):
    """Four standard errors of a share of so many repetitions."""
    return 4 * float(np.sqrt(share * (1 - share) / repetitions))


@pytest.mark.parametrize(
    ("form", "captions", "effect"),
    [
        ("choice", 400, "images"),
        ("choice", 40, "neither"),
        ("choice", 40, "captions"),
        ("quad", 200, "both"),
        ("quad", 40, "both"),
    ],
)
def test_intervals_cover_and_p_values_are_uniform(form, captions, effect):
    """400 questions of 200 images."""
    module, repetitions = benchmark(), 250
    found = module.measured(module.Setting(form, 200, 2, captions, effect, 0.8), repetitions=repetitions)
    for covered in (found.mean, found.difference):
        assert covered > 0.95 - 0.015 - margin(0.95, repetitions)
    assert found.p05 < 0.05 + 0.01 + margin(0.05, repetitions)
    # Right and wrong make p-values of steps, which the median of them shows most.
    assert 0.5 - 0.1 - margin(0.5, repetitions) < found.p50 < 0.5 + 0.02 + margin(0.5, repetitions)
    assert found.given == 0


def test_clusters_that_run_together_say_nothing_where_crossed_factors_do():
    """What went wrong before: one component of nearly all questions, and an interval of everything."""
    module = benchmark()
    setting = module.Setting("choice", 200, 2, 40, "neither", 0.8)
    rng = np.random.default_rng(0)
    sharing = module.sharing_of(setting, rng)
    values = module.answers(sharing, setting, 1, rng)[:, 0]
    components = np.bincount(sharing.components)
    assert components.max() > 0.95 * len(sharing)
    low, high = module.spread(values, sharing).wilson(0.95)
    assert high[0] - low[0] < 0.12
    wide = module.spread(values, sharing.components).wilson(0.95)
    assert wide[1][0] - wide[0][0] > 0.5


def test_54_images_of_40_to_1_questions():
    """Sums of squares over images, without corrections, cover 90 %."""
    repetitions = 800
    found = benchmark().acceptance(repetitions, 1)
    for covered in (found.mean, found.difference):
        assert abs(covered - 0.95) < 0.01 + margin(0.95, repetitions)
    assert found.p05 == pytest.approx(1 - found.difference, abs=1e-9)
