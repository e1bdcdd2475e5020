"""Chance against scorers to which all pairs are alike, and against counting."""

from math import comb

import numpy as np
import pytest

from counterfoil.evaluation import gallery_values as gallery_chance
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.metrics.ties import Ties

from .test_retrieval import SETTINGS


@pytest.mark.parametrize("setting", [*SETTINGS, {"rule": True}, {"rule": True, "parts": True}])
def test_a_constant_gets_chance_under_half_and_the_worst_under_strict(galleries, setting) -> None:
    asked = galleries(**setting)
    asked = asked.scored(np.zeros_like(asked.scores))
    by_policy = {
        ties: evaluate(asked.benchmark, asked.rankings, scorer="s", draws=50, ties=ties) for ties in Ties
    }
    for name, estimate in by_policy[Ties.HALF].measures.items():
        assert estimate.value == estimate.chance
        assert by_policy[Ties.STRICT].measures[name].chance == estimate.chance
        if estimate.chance == 1:
            # Ten places hold all images of a part.
            assert (setting.get("parts"), name) == (True, "t2i_recall_at_10")
            continue
        assert by_policy[Ties.STRICT].measures[name].value < estimate.value
        assert by_policy[Ties.OPTIMISTIC].measures[name].value > estimate.value
    if "rule" not in setting:
        # Wrong items come first, and there are more than one.
        assert by_policy[Ties.STRICT].measures["mean_recall_at_1"].value == 0
        assert by_policy[Ties.OPTIMISTIC].measures["t2i_recall_at_1"].value == 1


def test_chance_is_what_counting_says(galleries) -> None:
    asked = galleries()
    chance = gallery_chance.chance(asked.benchmark, ("recall_at_5", "r_precision"))
    found, wanted = asked.benchmark.gallery.i2t.positives, []
    for q in range(12):
        items = found.items[found.starts[q] : found.starts[q + 1]]
        present = int((items >= 0).sum())
        wanted.append((1 - comb(36 - present, 5) / comb(36, 5), present / 36))
    assert chance["i2t_recall_at_5"] == pytest.approx(np.mean([w[0] for w in wanted]), abs=1e-12)
    # What is outside the gallery counts in R: the first image finds 2 of 3 at 3 places of 36.
    assert chance["i2t_r_precision"] == pytest.approx(np.mean([w[1] for w in wanted]), abs=1e-12)
