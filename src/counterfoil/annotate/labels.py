"""Labels of items from several people's answers, with the posterior, and held to a known truth."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from counterfoil.annotate.agreement import counted
from counterfoil.annotate.forms.base import FormField
from counterfoil.annotate.judgement_table import encoded
from counterfoil.benchmarks.judgements import gain_of
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.stats.dawid_skene import dawid_skene
from counterfoil.stats.intervals import wilson
from counterfoil.stats.label_models import TIE, LabelModel, Labels, majority_vote, pooled_one_coin

#: How answers become labels, the default first: one accuracy per person needs the fewest answers of each, and
#: pooled over people its chances hold with two answers per item.
MODELS: Mapping[str, Callable[[Labels], LabelModel]] = {
    "one-coin": pooled_one_coin,
    "majority": majority_vote,
    "dawid-skene": dawid_skene,
}
#: What "partly yes" counts for: half a match, a whole one, or none.
Partly = Literal["half", "full", "none"]
PARTLY: Mapping[str, float] = {"half": 0.5, "full": 1.0, "none": 0.0}


@dataclass(frozen=True, eq=False)
class ItemLabels:
    """The label of every item that a question was answered of.

    `posterior[i, k]` is the chance that `values[k]` is right of `items[i]` (of the majority the share of
    votes), `votes[i, k]` how many chose it. `labels` are empty where several are equally likely.
    """

    question: str
    model: str
    items: tuple[str, ...]
    values: tuple[str, ...]
    posterior: NDArray[np.float64]
    votes: NDArray[np.int64]
    labels: tuple[str, ...]
    decided: NDArray[np.bool_]
    people: int

    @property
    def table(self) -> pa.Table:
        """A row per item; of every option its votes (`votes:VALUE`) and chance (`posterior:VALUE`)."""
        columns: dict[str, Any] = {
            "item": pa.array(self.items, pa.string()),
            "question": pa.array([self.question] * len(self.items), pa.string()),
            "label": pa.array([label or None for label in self.labels], pa.string()),
            "posterior": pa.array(self.posterior.max(axis=1, initial=0.0)),
            "answers": pa.array(self.votes.sum(axis=1)),
            "decided": pa.array(self.decided),
        }
        for kind, numbers in (("votes", self.votes), ("posterior", self.posterior)):
            columns |= {f"{kind}:{value}": pa.array(numbers[:, i]) for i, value in enumerate(self.values)}
        return pa.table(columns)


def of_question(table: pa.Table, field: FormField) -> pa.Table:
    """The answers that count to a question."""
    rows = counted(table)
    return rows.filter(pc.equal(rows.column("question"), field.name))


def given_labels(rows: pa.Table, field: FormField) -> tuple[tuple[str, ...], Labels]:
    """The items of answers to a question of one option, and the answers as models of labels take them."""
    names, item = encoded(rows.column("item"))
    _, person = encoded(rows.column("person"))
    place = {value: i for i, value in enumerate(field.values)}
    answer = np.array([place[word] for word in rows.column("answer").to_pylist()], dtype=np.int64)
    alike, sizes = np.array(field.alike(names), dtype=np.int64), (len(field.values), len(names))
    return names, Labels.of(item, person, answer, n_classes=sizes[0], n_items=sizes[1], alike=alike)


def item_labels(
    table: pa.Table,
    field: FormField,
    *,
    model: str = "one-coin",
    adjudicated: Mapping[tuple[str, str], str] | None = None,
) -> ItemLabels:
    """The labels of a question from a table of judgements, or what was `decided` by (item, question).

    Where no item has two answers the model is "majority": nothing tells how good people are.
    """
    if model not in MODELS:
        raise UnknownNameError("model of labels", model, MODELS)
    where = f"question '{field.name}'"
    if field.kind != "one" or len(field.values) < 2:
        raise InputError("is not answered by one option", where=where, given=field.kind)
    rows = of_question(table, field)
    if not len(rows):
        raise InputError("no answers that count", where=where)
    words = pc.unique(rows.column("answer")).to_pylist()
    odd = next((word for word in words if word not in field.values), None)
    if odd is not None:
        raise InputError("an answer that is no option", where=where, given=odd, allowed=field.values)
    names, given = given_labels(rows, field)
    if given.votes.sum(axis=1).max() < 2:
        model = "majority"
    estimate = MODELS[model](given)
    posterior, labels = estimate.posterior.copy(), estimate.labels.copy()
    by_hand = np.zeros(len(names), dtype=bool)
    for i, name in enumerate(names):
        choice = (adjudicated or {}).get((name, field.name))
        if choice in field.values:
            by_hand[i], labels[i] = True, field.values.index(choice)
            posterior[i] = np.arange(len(field.values)) == labels[i]
    named, votes = tuple("" if i < 0 else field.values[i] for i in labels.tolist()), given.votes
    counts = posterior, votes.astype(np.int64), named, by_hand, given.n_people
    return ItemLabels(field.name, model, names, field.values, *counts)


def merged_gains(labels: ItemLabels, partly: Partly = "half") -> NDArray[np.float64]:
    """(items,) the gain of each item's label, in [0, 1]; NaN where no label is likeliest.

    ECCV Caption counts "Partially YES" as half the gain (sections 3.2 and E).
    """
    by_value = {value: gain_of(value) for value in labels.values}
    odd = next((value for value, gain in by_value.items() if gain is None), None)
    if odd is not None:
        raise InputError("a label without a gain", given=odd, allowed="the four answers of 'match'")
    gains = {value: PARTLY[partly] if gain == 0.5 else gain for value, gain in by_value.items()}
    return np.array([np.nan if not label else gains[label] for label in labels.labels], dtype=np.float64)


@dataclass(frozen=True)
class LabelOutcome:
    """The share of right labels (a tie by the chance of a coin), its 95 % Wilson interval, and the mean
    chance that the model gives its labels, NaN of the majority.
    """

    model: str
    items: int
    right: float
    low: float
    high: float
    promised: float

    @property
    def calibrated(self) -> bool | None:
        """Whether the promised share is within the interval of what is right; None without promise."""
        return None if np.isnan(self.promised) else self.low <= self.promised <= self.high


def label_outcomes(
    judgements: pa.Table, field: FormField, truth: Mapping[str, str]
) -> tuple[LabelOutcome, ...]:
    """Each model's labels of a question of one option, of items whose truth is one of the options."""
    rows = of_question(judgements, field)
    labelled = [item for item, right in truth.items() if right in field.values]
    rows = rows.filter(pc.is_in(rows.column("item"), pa.array(labelled, pa.string())))
    if not len(rows) or len(field.values) < 2:
        return ()
    names, given = given_labels(rows, field)
    right = np.array([field.values.index(truth[name]) for name in names], dtype=np.int64)
    outcomes = []
    for name, model in MODELS.items():
        posterior = model(given).posterior
        chance = posterior.max(axis=1)
        top = posterior >= chance[:, None] - TIE
        share = float(np.mean(top[np.arange(len(right)), right] / top.sum(axis=1)))
        low, high = wilson(share * len(right), len(right))
        promised = float("nan") if model is majority_vote else float(chance.mean())
        outcomes.append(LabelOutcome(name, len(right), share, low, high, promised))
    return tuple(outcomes)
