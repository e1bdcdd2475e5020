"""Who shows a sign of careless answers (`counterfoil.stats.inattention`), in sentences with the evidence.

Signs are adjusted over all people and signs. They suggest what to do and decide nothing.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from counterfoil.annotate.agreement import fields_of
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import NOT_VISIBLE, FormField
from counterfoil.annotate.item_order import shown_order
from counterfoil.annotate.judgement_table import Submissions, encoded
from counterfoil.stats.inattention import FLOOR, SIGNS, CarelessSigns, inattention
from counterfoil.stats.tests import holm

#: The chance that a careful person is flagged, over all people of a campaign.
LEVEL = 0.05

Suggestion = Literal["approve", "look", "reject"]


@dataclass(frozen=True)
class CarelessReason:
    """One sign: its name, a sentence, what was found of the person and of the pool's middle, adjusted p."""

    sign: str
    sentence: str
    value: float
    pool: float
    p: float


@dataclass(frozen=True)
class PersonQuality:
    """What was found about a person's answers; items that they could not see are not among `items`."""

    person: str
    items: int
    reasons: tuple[CarelessReason, ...]
    not_visible: int = 0

    @property
    def suggestion(self) -> Suggestion:
        """What the signs suggest; nothing is done by itself."""
        signs = {reason.sign for reason in self.reasons}
        if "golden" in signs and len(signs) > 1:
            return "reject"
        return "look" if signs else "approve"

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "suggestion": self.suggestion}


def people_quality(table: pa.Table, campaign: Campaign | None = None) -> tuple[PersonQuality, ...]:
    """Everyone in a table of judgements, in the order of their first answer.

    Straight lines are looked for in places where a campaign shuffles options, else in values.
    """
    field = None if campaign is None else fields_of(campaign).get(campaign.form.main)
    if "role" in table.column_names:
        role = pc.fill_null(table.column("role"), "work")
        table = table.filter(pc.is_in(role, pa.array(["work", "golden"])))
    unseen = pc.equal(table.column("answer"), NOT_VISIBLE)
    blind = Counter(table.filter(unseen).column("person").to_pylist())
    table = table.filter(pc.invert(unseen))
    # One row per item and person: that of the main question.
    questions = pc.unique(table.column("question")).to_pylist()
    main = field.name if field is not None and field.name in questions else (questions or [""])[0]
    rows = table.filter(pc.equal(table.column("question"), main))
    if not len(rows):
        return tuple(PersonQuality(name, 0, (), n) for name, n in blind.items())
    done = Submissions.of(rows)
    names, person, item, right = done.people, done.person, done.item, done.right
    # Answers that are no single options are all alike.
    options: tuple[str, ...] = ()
    answer = np.zeros(len(rows), dtype=np.int64)
    if field is None or field.kind == "one":
        words, coded = encoded(rows.column("answer"))
        options = tuple(dict.fromkeys((*(() if field is None else field.values), *words)))
        answer = np.array([options.index(word) for word in words], dtype=np.int64)[coded]
    truth, labels = _gold_answers(item, answer, right, max(2, len(options)))
    common: Mapping[str, Any] = {
        "n_classes": max(2, len(options)),
        "seconds": None if np.isnan(done.seconds).all() else done.seconds,
        "order": done.submitted if "submitted" in rows.column_names else None,
        "gold": truth if (truth >= 0).any() else None,
        "alike": 0 if field is None or field.alike_in else len(field.exchangeable_values),
        "floor": (0.0 if campaign is None else campaign.recipe.least_seconds) or FLOOR,
    }
    signs = inattention(person, item, labels, **common)
    if not options:
        signs = _replaced(signs, ("straight", "disagree"), None)
    elif campaign is not None and field is not None and field.shuffled:
        positions = _chosen_positions(rows, campaign, options, answer)
        signs = _replaced(signs, ("straight",), inattention(person, item, positions, **common))
    counts = np.bincount(person, minlength=len(names))
    gold = np.bincount(person[right >= 0], minlength=len(names))
    return tuple(
        PersonQuality(name, int(counts[i]), _reasons(signs, i, int(gold[i])), blind.pop(name, 0))
        for i, name in enumerate(names)
    ) + tuple(PersonQuality(name, 0, (), n) for name, n in blind.items())


def _gold_answers(
    item: NDArray[np.int64], answer: NDArray[np.int64], right: NDArray[np.int8], n_classes: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The right answer of golden items, and the answers with every right one equal to it, no wrong one."""
    n_items = int(item.max()) + 1
    hit, missed = right == 1, right == 0
    votes, wrong = np.zeros((2, n_items, n_classes), dtype=np.int64)
    np.add.at(votes, (item[hit], answer[hit]), 1)
    np.add.at(wrong, (item[missed], answer[missed]), 1)
    gold = np.isin(np.arange(n_items), item[right >= 0])
    # What was right most often; where nothing was, what was wrong least often.
    best = np.where(votes.any(axis=1), votes.argmax(axis=1), wrong.argmin(axis=1))
    truth = np.where(gold, best, -1)
    labels = answer.copy()
    labels[hit] = truth[item[hit]]
    clash = missed & (labels == truth[item])
    labels[clash] = (labels[clash] + 1) % n_classes
    return truth, labels


def _chosen_positions(
    rows: pa.Table, campaign: Campaign, options: Sequence[str], answer: NDArray[np.int64]
) -> NDArray[np.int64]:
    """The place at which each person saw the option that they chose, from 0."""
    fields: dict[str, FormField] = {}
    positions = []
    for row, position in zip(rows.select(["person", "item"]).to_pylist(), answer.tolist(), strict=True):
        name = row["item"]
        if name not in fields:
            page = campaign.form.page(campaign.items[campaign.positions[name]])
            fields[name] = next(field for field in page.fields if field.name == campaign.form.main)
        of_field = fields[name]
        order = shown_order(campaign.recipe.seed, row["person"], name, of_field)
        positions.append(order.index(of_field.values.index(options[position])))
    return np.array(positions, dtype=np.int64)


def _replaced(signs: CarelessSigns, names: Sequence[str], by: CarelessSigns | None) -> CarelessSigns:
    """The signs with some of them as in another analysis, or without, adjusted anew together."""
    indices = [SIGNS.index(name) for name in names]
    p, value = signs.p.copy(), signs.value.copy()
    p[:, indices] = np.nan if by is None else by.p[:, indices]
    value[:, indices] = np.nan if by is None else by.value[:, indices]
    adjusted, tested = np.full(p.shape, np.nan), ~np.isnan(p)
    if tested.any():
        adjusted[tested] = holm(p[tested])
    return CarelessSigns(p, adjusted, value)


def _reasons(signs: CarelessSigns, person: int, gold: int) -> tuple[CarelessReason, ...]:
    reasons = []
    for sign in signs.reasons(person, LEVEL):
        column = SIGNS.index(sign)
        value, pool = float(signs.value[person, column]), float(np.nanmedian(signs.value[:, column]))
        digits = 1 if f"{value:.1f}" != f"{pool:.1f}" else 2
        others = f"people here take {pool:.{digits}f} s."
        sentence = {
            "fast": f"Takes {value:.{digits}f} s per item (median); "
            + (others if value < pool else "that is faster than one can look."),
            "straight": f"Chooses one answer for {value:.0%} of items, or the same again and again; "
            f"people here choose their commonest for {pool:.0%}.",
            "golden": f"Got {round(value * gold)} of {gold} items of known answer right; "
            f"people here get {pool:.0%} right.",
            "disagree": f"Agrees with what others answer on {value:.0%} of items; people here on {pool:.0%}.",
        }[sign]
        adjusted = float(signs.adjusted[person, column])
        reasons.append(CarelessReason(sign, sentence.replace("%", " %"), value, pool, adjusted))
    return tuple(reasons)
