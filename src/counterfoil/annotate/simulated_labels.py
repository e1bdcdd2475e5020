"""Labels of a simulated campaign against the truth: how many are right, and whether their chances hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.annotate.forms.base import FormField
from counterfoil.annotate.labels import given_labels, of_question
from counterfoil.stats.dawid_skene import dawid_skene
from counterfoil.stats.estimates import wilson
from counterfoil.stats.label_models import TIE, LabelModel, Labels, majority_vote
from counterfoil.stats.pooled_one_coin import pooled_one_coin

#: What labels are made by, and whether its chances are meant as such: shares of votes are not.
_MODELS: Mapping[str, tuple[Callable[[Labels], LabelModel], bool]] = {
    "majority": (majority_vote, False),
    "one accuracy per person": (pooled_one_coin, True),
    "Dawid-Skene": (dawid_skene, True),
}


@dataclass(frozen=True)
class LabelOutcome:
    """How right the labels of a model are.

    `right` is the share of `items` with the right label, tied ones counted by the chance of a coin, with its
    95 % interval (Wilson); all in [0, 1]. `promised` is the mean chance that the model gives its own labels,
    NaN of the majority, whose shares of votes are no chances.
    """

    model: str
    items: int
    right: float
    low: float
    high: float
    promised: float

    @property
    def calibrated(self) -> bool | None:
        """Whether what the model promises is within the interval of what is right; None without promise."""
        return None if np.isnan(self.promised) else self.low <= self.promised <= self.high


def label_outcomes(
    judgements: pa.Table, field: FormField, truth: Mapping[str, str]
) -> tuple[LabelOutcome, ...]:
    """Each model's labels of a question of one option; none where no item of known truth has an answer.

    Only answers that count are read, and items whose truth is one of the options. A truth of several options
    ("a|b") is not looked at.

    >>> from counterfoil.annotate.forms.base import Option
    >>> rows = {"item": list("aaab"), "person": list("pqrp"), "question": ["match"] * 4,
    ...         "answer": ["yes", "yes", "no", "no"]}
    >>> match = FormField("match", "?", options=(Option("yes"), Option("no")))
    >>> label_outcomes(pa.table(rows), match, {"a": "yes", "b": "yes"})[0].right
    0.5
    """
    rows = of_question(judgements, field)
    known = [item for item, right in truth.items() if right in field.values]
    rows = rows.filter(pc.is_in(rows.column("item"), pa.array(known, pa.string())))
    if not len(rows) or len(field.values) < 2:
        return ()
    names, given = given_labels(rows, field)
    right = np.array([field.values.index(truth[name]) for name in names], dtype=np.int64)
    outcomes = []
    for model, (label, promises) in _MODELS.items():
        posterior = label(given).posterior
        chance = posterior.max(axis=1)
        top = posterior >= chance[:, None] - TIE
        share = float(np.mean(top[np.arange(len(right)), right] / top.sum(axis=1)))
        low, high = wilson(share * len(right), len(right))
        promised = float(chance.mean()) if promises else float("nan")
        outcomes.append(LabelOutcome(model, len(right), share, low, high, promised))
    return tuple(outcomes)
