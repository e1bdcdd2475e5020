"""What a rank correlation says of its models."""

import numpy as np

from counterfoil.evaluation.rank_correlation import RankColumn, RankCorrelation


def test_equal_models_share_the_best_of_their_ranks() -> None:
    columns = (RankColumn("a", "i2t", "A"), RankColumn("b", "i2t", "B"))
    nan = float("nan")
    values = np.array([[0.5, nan], [0.7, 0.1], [0.5, 0.2], [0.2, 0.3]])
    ranked = RankCorrelation(("a", "b", "c", "d"), columns, values, (), (), 1, 0, 0.95)
    np.testing.assert_array_equal(ranked.ranks, [[2, nan], [1, 3], [2, 2], [4, 1]])
