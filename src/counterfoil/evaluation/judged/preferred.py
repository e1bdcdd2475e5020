"""Accuracy on human preferences between two candidates, question by question.

Values per question are averaged as those of choices are; what differs is here.
"""

from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.forms import Preference
from counterfoil.data.scores import Scores
from counterfoil.metrics import preference
from counterfoil.metrics.ties import Ties


def values(questions: Preference, answers: Scores, ties: Ties) -> dict[str, Float[ndarray, "n"]]:
    """Accuracy per question, in [0, 1]: the mean over draws of references, where the metric was drawn.

    >>> questions = Preference.between(("q",), np.array([[0, 1]]), np.array([0]), np.array([[9.0, 3.0]]),
    ...                                np.array([0]))
    >>> values(questions, Scores(np.array([[0.7, 0.2]])), Ties.STRICT)
    {'accuracy': array([1.])}
    """
    return {"accuracy": preference.accuracy(answers.values, questions.label, ties=ties)}


def ties(questions: Preference, answers: Scores, policy: Ties) -> dict[str, Any]:
    """What ties did: in how many questions, and the accuracy under every policy.

    `questions` counts those with a tie in any draw of references, `rate` is the share of all draws. `second`
    is the accuracy where a tie is a vote for the second candidate, as Polos counts Pascal-50S; FOIL's and
    ActivityNet-FOIL's official code is `strict`.
    """
    tied = preference.tied(answers.values, questions.label)
    return {
        "policy": str(policy),
        "questions": int((tied > 0).sum()),
        "rate": float(tied.mean()),
        "measures": {
            str(other): {
                name: float(np.mean(column)) for name, column in values(questions, answers, other).items()
            }
            for other in Ties
        },
        "second": {"accuracy": float(preference.ties_to_second(answers.values, questions.label).mean())},
    }
