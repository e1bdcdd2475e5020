"""Answers of a campaign, read from its database: the table of judgements, counts, and those of one person."""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.forms.base import FormField, Role, Shown
from counterfoil.annotate.judgement_table import SCHEMA, answer_cell
from counterfoil.annotate.tables import answers, run, sa

#: Answers that are read at once.
_ROWS = 10_000
#: Columns of the table of judgements from a database.
_MORE = {"kind": pa.string(), "role": pa.string(), "submitted": pa.float64()}
_MORE |= {"counted": pa.bool_(), "comment": pa.string()}
_SCHEMA = pa.schema([*SCHEMA, *map(pa.field, _MORE, _MORE.values())])


@dataclass(frozen=True)
class Counts:
    """How far a campaign is: people by state, answers that count or were set aside, and items of work."""

    people: Mapping[str, int]
    answers: int
    set_aside: int
    items: int
    complete: int
    complete_answers: int
    wanted: int
    leased: int


def judgement_table(db: Database, campaign: Campaign, *, everything: bool = False) -> pa.Table:
    """All answers that count, a row per item, person and question, in the order in which they came.

    With `everything` also those that were set aside (`counted` is false), and first answers of the test.
    """
    names = ("item", "person", "role", "answer", "seconds", "submitted", "right", "counted", "comment")
    query = sa.select(*(answers.c[name] for name in names)).order_by(answers.c.number)
    if everything:
        query = query.where(answers.c.attempt == 0)
    else:
        query = query.where(answers.c.counted, answers.c.role != "onboarding")
    batches = []
    with db.reading() as connection:
        rows = connection.execution_options(stream_results=True, max_row_buffer=_ROWS).execute(query)
        for part in rows.partitions(_ROWS):
            cells = [
                row._asdict()
                | {
                    "item": campaign.items[row.item].id,
                    "question": question,
                    "answer": answer_cell(value),
                    "golden": row.right if row.role == "golden" else None,
                    "kind": campaign.items[row.item].kind,
                    "comment": row.comment or None,
                }
                for row in part
                for question, value in json.loads(row.answer).items()
            ]
            batches.append(pa.RecordBatch.from_pylist(cells, _SCHEMA))
    return pa.Table.from_batches(batches, _SCHEMA)


def counts(db: Database) -> Counts:
    """How far a campaign is."""
    done = "answered >= target"
    queries = (
        "SELECT count(*) FILTER (WHERE counted AND role = 'work'), count(*) FILTER (WHERE NOT counted) "
        "FROM answers",
        f"SELECT count(*), count(*) FILTER (WHERE {done}), sum(answered) FILTER (WHERE {done}), "
        "sum(target - answered), sum(leased) FROM items WHERE role = 'work'",
    )
    with db.reading() as connection:
        states = run(connection, "SELECT state, count(*) FROM people GROUP BY state").all()
        numbers = [int(n or 0) for query in queries for n in run(connection, query).one()]
    return Counts(dict(sorted((state, int(n)) for state, n in states)), *numbers)


@dataclass(frozen=True)
class PersonAnswer:
    """An answer beside what was shown, what would have been right, and how often others gave each answer."""

    item: str
    role: Role
    shown: tuple[Shown, ...]
    fields: tuple[FormField, ...]
    answer: Mapping[str, Any]
    known: Mapping[str, Any]
    right: bool | None
    others: Mapping[str, int]
    seconds: float
    comment: str
    counted: bool

    def texts(self) -> Mapping[str, str]:
        return {name: answer_cell(value) for name, value in self.answer.items()}


def answers_of(db: Database, campaign: Campaign, person: str) -> tuple[PersonAnswer, ...]:
    """Everything that a person answered, in order: looked at before a rejection (ECCV Caption, 3.2)."""
    with db.reading() as connection:
        query = sa.select(answers).where(answers.c.person == person).order_by(answers.c.number)
        mine = connection.execute(query).all()
        rest = (
            "SELECT item, answer FROM answers WHERE person <> :person AND counted "
            "AND item IN (SELECT item FROM answers WHERE person = :person)"
        )
        votes: dict[int, Counter[str]] = {}
        for item, text in run(connection, rest, person=person):
            vote = json.loads(text).get(campaign.form.main)
            if vote is not None:
                votes.setdefault(item, Counter())[answer_cell(vote)] += 1
    person_answers = []
    for row in mine:
        item = campaign.items[row.item]
        page, others = campaign.form.page(item), dict(votes.get(row.item, {}))
        seen = item.id, row.role, page.shown, page.fields, json.loads(row.answer), item.golden, row.right
        person_answers.append(PersonAnswer(*seen, others, row.seconds, row.comment, row.counted))
    return tuple(person_answers)
