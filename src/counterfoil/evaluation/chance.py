"""Which numbers lie beyond chance: one-sided tests, corrected for how many were looked at."""

import numpy as np
from scipy.special import stdtr, stdtridf

from counterfoil.evaluation.result import Estimate
from counterfoil.stats.intervals import normal_quantile

#: The chance of calling any number beyond chance where none is, at most.
LEVEL = 0.05


#: By how much the standard error of ten folds is wider than that of as many independent answers: what is
#: learned in one fold rests on the answers of the others. Source: C. Nadeau, Y. Bengio, Inference for the
#: generalization error, 2003 (a variance 1 + J n_test / n_train times as large).
OF_FOLDS = (1 + 10 / 9) ** 0.5


def one_sided(estimate: Estimate, *, above: bool, correlation: bool = False, wider: float = 1.0) -> float:
    """The p-value of "not above chance" (or "not below"), in (0, 1]: the test that the 95 % interval inverts.

    1 where chance is not known, or the value is not on that side of it. The interval is Wilson's, whose width
    says how large the standard error would be at chance, and Student's quantile is what the effective number
    of questions says of it; that of a correlation is taken as symmetric. With `wider` the standard error is
    so many times as large.

    >>> round(one_sided(Estimate(0.6, 0.5020, 0.6906, 100, 0.5, 100.0), above=True), 3)
    0.023
    """
    value, chance = estimate.value, estimate.chance
    if chance is None or not (value > chance if above else value < chance):
        return 1.0
    # The end of the interval on the side of chance.
    end = estimate.low if above else estimate.high
    reach, distance = abs(end - value), abs(chance - value) / wider
    normal = normal_quantile(0.95)
    if correlation:
        return float(stdtr(np.inf, -normal * distance / max(reach, 1e-12)))
    width = reach**2 / max(end * (1 - end), 1e-12)
    statistic = distance / np.sqrt(max(width * chance * (1 - chance), 1e-12))
    quantile = normal if estimate.effective is None else np.sqrt(width * estimate.effective)
    freedom = stdtridf(0.975, quantile) if quantile > normal + 1e-6 else np.inf
    return float(stdtr(freedom, -quantile * statistic))
