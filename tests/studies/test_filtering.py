"""The study of learned noise filters: its arithmetic, and that it runs."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from counterfoil.build.calibration import Verified, quality, roc
from counterfoil.studies.filtering import LAYOUTS, NOISE, FilterStudy, noise_filter
from counterfoil.studies.plan import SHORT


def study() -> FilterStudy:
    rng = np.random.default_rng(0)
    rates = {"clean": 0.6, "noisy": 0.4, "learned filter": 0.5, "rows at random": 0.35}
    luck = rng.random(2000)
    right = {layout: {name: (luck < rate)[None] for name, rate in rates.items()} for layout in LAYOUTS}
    sample = Verified(rng.normal(size=50), rng.random(50) < 0.5)
    return FilterStudy(right, dict.fromkeys(rates, 1.0), quality(sample, 0.0), roc(sample), (0.5, 0.5))


def test_the_share_of_the_loss_that_is_brought_back() -> None:
    made = study()
    layout = next(iter(LAYOUTS))
    means = {name: each.mean() for name, each in made.right[layout].items()}
    value, low, high = made.brought_back(layout, "learned filter")
    expected = (means["learned filter"] - means["noisy"]) / (means["clean"] - means["noisy"])
    assert value == pytest.approx(expected)
    assert low < value < high
    assert high - low < 0.25
    value, low, high = made.gain(layout, "learned filter")
    assert value == pytest.approx(means["learned filter"] - means["noisy"])
    assert 0 < low < value < high
    assert made.gain(layout, "noisy") == (0.0, 0.0, 0.0)
    assert "both natural" in made.table()


@pytest.mark.slow
@pytest.mark.models
def test_a_small_study(tmp_path: Path) -> None:
    plan = replace(SHORT, loose=300, contrasts=400, questions=70, watched=14, relation_steps=8, steps=16)
    made = noise_filter(tmp_path, plan, verified=200)
    assert set(made.kept) == {"clean", "noisy", "perfect filter", "learned filter", "rows at random"}
    assert made.kept["perfect filter"] == pytest.approx(1 - NOISE, abs=0.08)
    assert made.filter.precision.low <= made.true[0] <= made.filter.precision.high
    assert {each["clean"].shape for each in made.right.values()} == {(1, 70)}
