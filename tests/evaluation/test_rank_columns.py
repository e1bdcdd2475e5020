"""Which measures become columns of a rank correlation."""

import numpy as np
import pytest

from contracts import forms
from counterfoil.errors import UnknownNameError
from counterfoil.evaluation.rank_correlation import rank_correlation
from counterfoil.evaluation.result import Run

from .made_runs import gallery_items, run


def test_columns_can_be_chosen(mixed: list[Run]) -> None:
    def names(*measures: str) -> list[str]:
        return [c.name for c in rank_correlation(mixed, measures=measures, draws=10).columns]

    assert names("map_at_r") == ["whole:mean_map_at_r", "some:mean_map_at_r"]
    assert names("some:i2t_recall_at_1", "toy:group") == ["some:i2t_recall_at_1", "toy:group"]
    assert names("toy:*2*") == ["toy:i2t", "toy:t2i"]
    with pytest.raises(UnknownNameError, match=r"toy: unknown measure; given: grup; allowed: .*'group'"):
        names("toy:grup")
    with pytest.raises(UnknownNameError, match="measure 'ecc:map_at_r': unknown benchmark; given: ecc"):
        names("ecc:map_at_r")


def test_a_gallery_of_one_direction_has_the_measures_of_that_direction() -> None:
    both = forms.gallery("g", range(30), measures=("map_at_r", "recall_at_1"))
    rows = np.arange(30)
    runs = []
    for number in range(4):
        items = gallery_items(both, np.random.default_rng(number), 0.4 + 0.1 * number)
        kept = {name: values[rows] for name, values in items.items() if name.startswith("i2t_")}
        runs.append(run(both.select(rows), f"m{number}", kept))
    assert len(runs[0].benchmark.gallery.t2i) == 0
    found = rank_correlation(runs, draws=10)
    assert [c.measure for c in found.columns] == ["i2t_map_at_r", "i2t_recall_at_1"]
    assert found.values[2, 1] == pytest.approx(np.nanmean(runs[2].items["i2t_recall_at_1"]))
    chosen = rank_correlation(runs, measures=["recall_at_1", "map_at_r"], draws=10)
    assert [c.measure for c in chosen.columns] == ["i2t_recall_at_1", "i2t_map_at_r"]
