"""One person's answers beside what they saw, to be looked at before their work is rejected.

ECCV Caption's authors did so with every piece of work whose golden items were answered wrong (section 3.2).
"""

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.forms.base import FormField, Role, Shown
from counterfoil.annotate.tables import answers, sa


@dataclass(frozen=True)
class PersonAnswer:
    """An answer: the item, what was shown, and each question with what the person said.

    `right` is whether an item of known answer was answered right, None for others; `known` what would have
    been. `others` counts what other people said to the form's main question. `counted` is false of answers
    that were set aside.
    """

    item: str
    role: Role
    shown: tuple[Shown, ...]
    fields: tuple[FormField, ...]
    said: Mapping[str, Any]
    known: Mapping[str, Any]
    right: bool | None
    others: Mapping[str, int]
    seconds: float
    comment: str
    counted: bool

    def texts(self) -> Mapping[str, str]:
        """What was said, by question, as text."""
        return {name: _text(value) for name, value in self.said.items()}


def answers_of(db: Database, campaign: Campaign, person: str) -> tuple[PersonAnswer, ...]:
    """Everything that a person answered, in order, the test before the work too; nothing of an unknown id."""
    columns = [
        answers.c[name] for name in ("item", "role", "answer", "right", "seconds", "comment", "counted")
    ]
    with db.reading() as connection:
        own = sa.select(*columns).where(answers.c.person == person).order_by(answers.c.number)
        mine = connection.execute(own).all()
        rest = sa.select(answers.c.item, answers.c.answer).where(
            answers.c.person != person, answers.c.counted, answers.c.item.in_([row.item for row in mine])
        )
        votes: dict[int, Counter[str]] = {}
        for item, text in connection.execute(rest):
            vote = json.loads(text).get(campaign.form.main)
            if vote is not None:
                votes.setdefault(item, Counter())[_text(vote)] += 1
    person_answers = []
    for row in mine:
        item = campaign.items[row.item]
        page = campaign.form.page(item)
        person_answers.append(
            PersonAnswer(
                item.id,
                row.role,
                page.shown,
                page.fields,
                json.loads(row.answer),
                item.golden,
                row.right,
                dict(votes.get(row.item, {})),
                row.seconds,
                row.comment,
                row.counted,
            )
        )
    return tuple(person_answers)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
