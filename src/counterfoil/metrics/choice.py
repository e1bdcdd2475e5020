"""Measures of a choice: one item, k candidates of the other kind, the first m of them correct.

`scores[q, c]` is the score of candidate c of question q. SugarCrepe has k = 2, m = 1; ARO's order sets
k = 5, m = 1; SugarCrepe++ k = 3, m = 2 (both paraphrases must beat the negative).
"""

from collections.abc import Mapping

from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.metrics.measure import Measure, by_name
from counterfoil.metrics.ties import Ties, all_above


def accuracy(
    scores: Float[ndarray, "n k"], *, correct: int = 1, ties: Ties = Ties.STRICT
) -> Float[ndarray, "n"]:
    """Whether the first `correct` candidates all score above all the others.

    Returns values in [0, 1] per question. Chance is `m! (k - m)! / k!`, 1/2 for a pair. A tie is wrong
    under `strict`; under `half` it is worth its chance in a random order.

    Source: SugarCrepe's evaluation (strict comparison, one positive and one negative caption).

    >>> import numpy as np
    >>> accuracy(np.array([[0.3, 0.1], [0.2, 0.2], [0.1, 0.5]]))
    array([1., 0., 0.])
    """
    return all_above(scores[:, :correct], scores[:, correct:], ties=ties)


#: The measures by name, in the order of reports.
MEASURES: Mapping[str, Measure] = by_name(
    Measure(
        "accuracy",
        "choice",
        "Accuracy",
        "the right candidates score above all others",
        "m!(k-m)!/k!",
        accuracy,
        main=True,
    ),
    Measure(
        "accuracy_macro",
        "choice",
        "Accuracy (macro)",
        "accuracy averaged over groups, each counting the same",
        "m!(k-m)!/k!",
        macro_of="accuracy",
    ),
)


def margin(scores: Float[ndarray, "n k"], *, correct: int = 1) -> Float[ndarray, "n"]:
    """The lowest correct score less the highest wrong one, in the unit of the scores.

    >>> import numpy as np
    >>> margin(np.array([[3.0, 1.0, 2.5]]))
    array([0.5])
    """
    return scores[:, :correct].min(axis=1) - scores[:, correct:].max(axis=1)


def tied(scores: Float[ndarray, "n k"], *, correct: int = 1) -> Bool[ndarray, "n"]:
    """Whether the tie policy decides the question: the lowest correct score equals the highest wrong one.

    >>> import numpy as np
    >>> tied(np.array([[0.2, 0.2, 0.1], [0.2, 0.2, 0.9]]))  # the second is lost under every policy
    array([ True, False])
    """
    return scores[:, :correct].min(axis=1) == scores[:, correct:].max(axis=1)
