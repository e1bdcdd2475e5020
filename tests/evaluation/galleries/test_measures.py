"""Names of measures, with and without a direction."""

import pytest

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.evaluation import gallery_values as gallery_measures
from counterfoil.evaluation.evaluate import main_measures


def test_names_with_and_without_a_direction(galleries) -> None:
    benchmark = galleries().benchmark
    assert main_measures(benchmark) == ("i2t_map_at_r", "t2i_map_at_r", "mean_map_at_r")
    assert gallery_measures.measure_names(benchmark)[:4] == (*main_measures(benchmark), "i2t_recall_at_1")
    assert gallery_measures.expand(("recall_at_20", "mean_mrr"), benchmark) == (
        *("i2t_recall_at_20", "t2i_recall_at_20", "mean_recall_at_20", "mean_mrr"),
    )
    assert gallery_measures.expand(("i2t_recall_at_05", "i2t_recall_at_5"), benchmark) == ("i2t_recall_at_5",)
    with pytest.raises(UnknownNameError, match="did you mean 'i2t_r_precision'"):
        gallery_measures.expand(("i2t_r_precison",), benchmark)
    with pytest.raises(UnknownNameError, match="did you mean 'ndcg'"):
        gallery_measures.expand(("ndgc",), benchmark)
    for name in ("recall_at_0", "t2i_recall_at_0"):
        with pytest.raises(InputError, match=r"places that .* looks at: out of range; given: 0"):
            gallery_measures.expand((name,), benchmark)
    with pytest.raises(UnknownNameError):
        gallery_measures.expand(("graded_recall_at_1",), benchmark)
    with pytest.raises(UnknownNameError):
        gallery_measures.expand(("recall_at_1",), galleries(rule=True).benchmark)
    assert "graded_recall_at_1" in gallery_measures.base_names(galleries(gains=True).benchmark)
