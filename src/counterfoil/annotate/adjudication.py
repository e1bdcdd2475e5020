"""Items on which people disagree, most undecided first (entropy of the label by the one-coin model), and a
researcher's decisions about them, which stand beside the answers.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.forms.base import FormField
from counterfoil.annotate.labels import given_labels, of_question
from counterfoil.annotate.tables import adjudications, sa
from counterfoil.errors import InputError
from counterfoil.stats.pooled_one_coin import pooled_one_coin

#: Characters of a note, at most.
_LONGEST_NOTE = 2_000


@dataclass(frozen=True)
class AdjudicatedAnswer:
    """A researcher's decision about a question of an item: the value of an option, by whom, when, and why."""

    item: str
    question: str
    answer: str
    note: str
    by: str
    at: float


@dataclass(frozen=True)
class DisputedItem:
    """An item that people disagree on: votes by option, the posterior of each, and its entropy in bits."""

    item: str
    kind: str
    votes: Mapping[str, int]
    posterior: Mapping[str, float]
    entropy: float
    decided: AdjudicatedAnswer | None = None


def disputed_items(
    table: pa.Table, field: FormField, decided: Mapping[tuple[str, str], AdjudicatedAnswer] | None = None
) -> tuple[DisputedItem, ...]:
    """Items that got different answers to a question of one option: most undecided first, ties by id, decided
    ones last.
    """
    rows, values = of_question(table, field), field.values
    if field.kind != "one" or len(values) < 2:
        return ()
    rows = rows.filter(pc.is_in(rows.column("answer"), pa.array(values, pa.string())))
    if not len(rows):
        return ()
    names, given = given_labels(rows, field)
    posterior = pooled_one_coin(given).posterior
    # Sorted, so that the order of options moves no last digit.
    chances = np.sort(posterior, axis=1)
    logs = np.log2(chances, out=np.zeros_like(chances), where=chances > 0)
    entropy = np.minimum(-(chances * logs).sum(axis=1), math.log2(len(values)))
    split = (given.votes > 0).sum(axis=1) > 1
    done = decided or {}
    places = sorted(
        np.flatnonzero(split).tolist(),
        key=lambda at: ((names[at], field.name) in done, -round(float(entropy[at]), 9), names[at]),
    )
    kinds = {row["item"]: row.get("kind") for row in rows.to_pylist()}
    return tuple(
        DisputedItem(
            names[at],
            kinds[names[at]] or "",
            {value: int(n) for value, n in zip(values, given.votes[at], strict=True) if n},
            {value: float(p) for value, p in zip(values, posterior[at], strict=True)},
            float(entropy[at]),
            done.get((names[at], field.name)),
        )
        for at in places
    )


def adjudicated(db: Database, campaign: Campaign) -> dict[tuple[str, str], AdjudicatedAnswer]:
    """Every decision, by item and question."""
    with db.reading() as connection:
        rows = connection.execute(sa.select(adjudications).order_by(adjudications.c.decided)).all()
    decisions = (AdjudicatedAnswer(campaign.items[place].id, *decision) for place, *decision in rows)
    return {(decision.item, decision.question): decision for decision in decisions}


def decided_answers(db: Database, campaign: Campaign) -> dict[tuple[str, str], str]:
    """The answer of every decision, by item and question."""
    return {key: decision.answer for key, decision in adjudicated(db, campaign).items()}


def adjudicate(
    db: Database, campaign: Campaign, item: str, answer: str, *, by: str, now: float, note: str = ""
) -> AdjudicatedAnswer:
    """Decide an item: the value of an option of the form's main question; it replaces an earlier decision."""
    place, question = campaign.places.get(item), campaign.form.main
    if place is None:
        raise InputError("no such item in this campaign", given=item)
    field = next(f for f in campaign.form.page(campaign.items[place]).fields if f.name == question)
    if field.kind != "one":
        raise InputError("is not answered by one option", where=f"question '{question}'", given=field.kind)
    if answer not in field.values:
        where = f"item '{item}', question '{question}'"
        raise InputError("no such option", where=where, given=answer, allowed=field.values)
    note = " ".join(note.split())[:_LONGEST_NOTE]
    key = (adjudications.c.item == place) & (adjudications.c.question == question)
    with db.writing() as connection:
        connection.execute(sa.delete(adjudications).where(key))
        row = {"item": place, "question": question, "answer": answer, "note": note, "by": by, "decided": now}
        connection.execute(sa.insert(adjudications).values(row))
    return AdjudicatedAnswer(item, question, answer, note, by, now)
