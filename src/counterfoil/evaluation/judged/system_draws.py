"""Correlations over systems in many samples, of images or of systems.

Coverage of nominal 95 % intervals over images, of tau-b, Spearman's and Pearson's correlation (five to twenty
systems, 60 to 2,000 images, of which each has noise of 1 to 4 times the spread of systems; 200 repetitions,
so +- 1.5):

    percentiles                     63 to 99   63 to 99   43 to 95
    reflected percentiles           77 to 87   76 to 91   92 to 94
    whichever are further, as here  92 to 99   96 to 99   95 to 99
"""

from dataclasses import dataclass
from typing import Literal

import numpy as np
from jaxtyping import Float
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.evaluation.judged.system_scores import SystemScores
from counterfoil.evaluation.rank_correlation import as_spearman, perfect, widened
from counterfoil.metrics.correlation import weighted_pearson, weighted_spearman, weighted_tau_b
from counterfoil.stats.resampling import cluster_draws

#: The correlations over systems; tau-c says nothing that tau-b does not where hardly any two tie.
MEASURES = ("kendall_tau_b", "spearman", "pearson")

#: The fewest systems of which an order says anything.
LEAST = 3

Over = Literal["images", "systems"]

#: Numbers that a block of samples may hold.
_AT_ONCE = 1 << 21


@dataclass(frozen=True)
class SystemDraws:
    """What is drawn anew, and how often."""

    over: Over
    images: int
    draws: int
    seed: int
    level: float

    def drawable(self, *of: SystemScores) -> bool:
        """Whether samples differ in any of these."""
        return self.over == "systems" or (self.images > 1 and any(each.images for each in of))

    def correlations(self, *of: SystemScores) -> Float[ndarray, "draws 3 columns columns"]:
        """The measures between all pairs of some columns in every sample, the same samples for all."""
        systems = len(of[0].fixed)
        n = systems if self.over == "systems" else self.images
        found = []
        for weights in cluster_draws(n, self.draws, seed=self.seed):
            step = max(1, _AT_ONCE // (systems**2 * len(of)))
            for lo in range(0, len(weights), step):
                part = weights[lo : lo + step].astype(np.float64)
                if self.over == "systems":
                    values = np.broadcast_to(
                        np.stack([o.fixed for o in of], axis=1), (len(part), systems, len(of))
                    )
                    found.append(measures(values, part))
                else:
                    found.append(measures(np.stack([each.drawn(part) for each in of], axis=2)))
        return np.concatenate(found)

    def ends(self, samples: Float[ndarray, "draws m"]) -> Float[ndarray, "2 m"]:
        """The percentiles of each column over the samples that have a value; NaN where none has."""
        usable = samples[~np.isnan(samples).any(axis=1)]
        if not len(usable):
            return np.full((2, samples.shape[1]), np.nan)
        return np.quantile(usable, [(1 - self.level) / 2, (1 + self.level) / 2], axis=0)

    def around(
        self, values: NDArray[np.float64], samples: Float[ndarray, "draws m"], n: int
    ) -> Float[ndarray, "2 m"]:
        """Ends of intervals around the values of correlations over n systems.

        Over systems they reach at least as far as perfect agreement of so many would leave them. Over images
        samples add their noise a second time, which draws correlations towards 0: ends are the percentiles or
        their reflections about the value, whichever are further.
        """
        low, high = self.ends(samples)
        if self.over == "images":
            low, high = np.fmin(low, 2 * values - high), np.fmax(high, 2 * values - low)
            low, high = np.maximum(low, -1.0), np.minimum(high, 1.0)
        else:
            least = perfect(n, level=self.level)
            for k, limit in enumerate((least, as_spearman(least), as_spearman(least))):
                low[k], high[k] = widened(float(values[k]), float(low[k]), float(high[k]), least=limit)
        return np.stack([np.fmin(low, values), np.fmax(high, values)])


def measures(
    values: Float[ndarray, "draws rows columns"], weights: Float[ndarray, "draws rows"] | None = None
) -> Float[ndarray, "draws 3 columns columns"]:
    """`MEASURES` between all pairs of columns in each sample."""
    if weights is None:
        weights = np.ones(values.shape[:2])
    of = (weighted_tau_b, weighted_spearman, weighted_pearson)
    return np.stack([measure(values, weights) for measure in of], axis=1)
