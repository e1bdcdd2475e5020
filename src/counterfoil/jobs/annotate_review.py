"""Review of people's work and of disputed items, withdrawal and deletion, as jobs on a campaign's folder."""

import json
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from counterfoil.annotate.campaign import open_campaign
from counterfoil.jobs.annotate_agreement import opened
from counterfoil.jobs.annotate_serve import SHORT
from counterfoil.jobs.results import Tabular
from counterfoil.report.labels import amount
from counterfoil.report.tables import Column, Table, text_table
from counterfoil.store import write_csv

if TYPE_CHECKING:
    from counterfoil.annotate.adjudication import AdjudicatedAnswer, DisputedItem
    from counterfoil.annotate.answers import PersonAnswer
    from counterfoil.annotate.campaign import Campaign
    from counterfoil.annotate.database import Database
    from counterfoil.annotate.privacy import Deletion
    from counterfoil.annotate.quality import PersonQuality
    from counterfoil.annotate.review import Review


@dataclass(frozen=True, eq=False, repr=False)
class PeopleReview(Tabular):
    """Everyone who answered, the signs of careless work, and what was decided.

    Rows by "person": `person` (a hash), `items`, `not_visible` (items that they could not see),
    `suggestion` (approve, look, reject), `signs`; `decision`,
    `category`, `reason`, `by` and `at` (seconds since the epoch), empty or null before there is a decision;
    `platform`, and `study` and `submission` where the platform named them. Rows by "reason" are one per sign
    of a person: `person`, `sign`, `sentence`, `value`, `pool`, `p` (adjusted over all people and signs).
    """

    quality: "tuple[PersonQuality, ...]"
    reviews: "dict[str, Review]"
    #: Platform and parameters by person.
    entered: dict[str, tuple[str, dict[str, str]]]

    rows_by = ("person", "reason")

    def _rows(self, by: str) -> pa.Table:
        if by == "reason":
            kinds: list[tuple[str, pa.DataType]] = [
                (name, pa.string()) for name in ("person", "sign", "sentence")
            ]
            kinds += [(name, pa.float64()) for name in ("value", "pool", "p")]
            rows = [
                {"person": person.person, **vars(reason)}
                for person in self.quality
                for reason in person.reasons
            ]
            return pa.Table.from_pylist(rows, pa.schema(kinds))
        texts = (
            "platform",
            "study",
            "submission",
            "decision",
            "category",
            "reason",
            "by",
            "suggestion",
            "signs",
        )
        counts = [(name, pa.int64()) for name in ("items", "not_visible")]
        kinds = [("person", pa.string()), *counts, *((name, pa.string()) for name in texts)]
        kinds.append(("at", pa.float64()))
        return pa.Table.from_pylist([self._row(person) for person in self.quality], pa.schema(kinds))

    def _row(self, quality: "PersonQuality") -> dict[str, Any]:
        platform, parameters = self.entered.get(quality.person, ("", {}))
        decided = self.reviews.get(quality.person)
        return {
            "person": quality.person,
            "items": quality.items,
            "not_visible": quality.not_visible,
            "platform": platform,
            "study": parameters.get("study", ""),
            "submission": parameters.get("submission", ""),
            "decision": "" if decided is None else decided.decision,
            "category": "" if decided is None else decided.category,
            "reason": "" if decided is None else decided.reason,
            "by": "" if decided is None else decided.by,
            "suggestion": quality.suggestion,
            "signs": " ".join(reason.sign for reason in quality.reasons),
            "at": None if decided is None else decided.at,
        }

    @property
    def tables(self) -> tuple[Table, ...]:
        """People with the signs against them; those with most signs and no decision first."""
        ordered = sorted(
            self.quality, key=lambda quality: (quality.person in self.reviews, -len(quality.reasons))
        )
        rows = [
            (
                quality.person[:SHORT],
                f"{quality.items:,}",
                ", ".join(reason.sign for reason in quality.reasons) or "–",
                quality.suggestion,
                self.reviews[quality.person].decision if quality.person in self.reviews else "–",
            )
            for quality in ordered
        ]
        columns = [Column(name) for name in ("items", "signs", "suggested", "decided")]
        return (text_table("People", "person", columns, rows),) if rows else ()

    @property
    def notes(self) -> list[str]:
        """The reasons in sentences, a line each."""
        lines = [
            f"{quality.person[:SHORT]}: {reason.sentence} "
            f"(p {'< 0.001' if reason.p < 0.001 else f'= {reason.p:.3f}'})"
            for quality in self.quality
            for reason in quality.reasons
        ]
        if not self.quality:
            return ["no one has answered so far"]
        return lines or ["no signs of careless answers"]

    def __repr__(self) -> str:
        flagged = sum(bool(quality.reasons) for quality in self.quality)
        return f"<PeopleReview: {flagged} of {amount(len(self.quality), 'person')} with signs>"

    def save(self, path: str | Path) -> None:
        """Write the rows by person as CSV, for those who pay the people."""
        write_csv(path, self.to_arrow())

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate review --json` writes it."""
        return {
            "people": [
                {
                    **quality.to_json(),
                    "review": self.reviews[quality.person].to_json()
                    if quality.person in self.reviews
                    else None,
                }
                for quality in self.quality
            ]
        }


def annotate_review(campaign: str | Path, *, database: str | None = None) -> PeopleReview:
    """Everyone who answered in a campaign, with signs of careless work and decisions."""
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.answers import judgement_table
        from counterfoil.annotate.quality import people_quality
        from counterfoil.annotate.review import reviews
        from counterfoil.annotate.tables import people, sa

        with connected.reading() as connection:
            rows = connection.execute(sa.select(people.c.id, people.c.platform, people.c.parameters)).all()
        entered = {row.id: (row.platform, json.loads(row.parameters)) for row in rows}
        table = judgement_table(connected, source, everything=True)
        return PeopleReview(people_quality(table, source), reviews(connected), entered)


@dataclass(frozen=True, eq=False, repr=False)
class PersonReview(Tabular):
    """What one person answered.

    Rows by "answer" are one per question of an item, in order: `item`, `role`, `question`, `answer`, `known`
    (what is right of an item of known answer, values with "|" between them), `right` (null for others),
    `seconds`, `comment` and `counted`.
    """

    person: str
    answers: "tuple[PersonAnswer, ...]"

    rows_by = ("answer",)

    def _rows(self, by: str) -> pa.Table:
        kinds: list[tuple[str, pa.DataType]] = [
            (name, pa.string()) for name in ("item", "role", "question", "answer", "known")
        ]
        kinds += [("right", pa.bool_()), ("seconds", pa.float64())]
        kinds += [("comment", pa.string()), ("counted", pa.bool_())]
        rows = [
            {
                **{
                    name: getattr(answer, name)
                    for name in ("item", "role", "right", "seconds", "comment", "counted")
                },
                "question": question,
                "answer": text,
                "known": "|".join(answer.known.get(question, ())),
            }
            for answer in self.answers
            for question, text in answer.texts().items()
        ]
        return pa.Table.from_pylist(rows, pa.schema(kinds))

    @property
    def tables(self) -> tuple[Table, ...]:
        """A row per question of an item."""
        columns = [Column(name, style="text") for name in ("answer", "known", "right", "seconds", "comment")]
        rows = [
            (
                f"{row['item']}, {row['question']}",
                row["answer"],
                row["known"] or "–",
                {None: "–", True: "right", False: "wrong"}[row["right"]],
                f"{row['seconds']:.1f}",
                row["comment"] or "–",
            )
            for row in self.to_arrow().to_pylist()
        ]
        return (text_table(f"Answers of {self.person[:SHORT]}", "item", columns, rows),) if rows else ()

    @property
    def notes(self) -> list[str]:
        """Where they are seen with their images."""
        seen = f"/research/people/{self.person} of the campaign's server shows them with their images"
        return [seen] if self.answers else ["no answers"]

    def __repr__(self) -> str:
        return f"<PersonReview: {amount(len(self.answers), 'answer')} of {self.person[:SHORT]}>"

    def save(self, path: str | Path) -> None:
        """Write the rows by answer as CSV."""
        write_csv(path, self.to_arrow())

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate review --person --json` writes it."""
        return {"person": self.person, "answers": self.to_arrow().to_pylist()}


def annotate_person(campaign: str | Path, person: str, *, database: str | None = None) -> PersonReview:
    """What one person answered, named by their id here or how it begins, to be read before a rejection.

    Raises `InputError` for an id that no person or several have.
    """
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.answers import answers_of
        from counterfoil.annotate.review import person_like

        known = person_like(connected, person)
        return PersonReview(known, answers_of(connected, source, known))


def annotate_approve(
    campaign: str | Path,
    people: Sequence[str] = (),
    *,
    suggested: bool = False,
    reason: str = "",
    by: str = "",
    database: str | None = None,
) -> int:
    """Approve these people (ids or how they begin), or with `suggested` all done ones without a sign.

    Returns how many were not approved before. Raises `InputError` for an id that no person or several have,
    and for a person who is at work.
    """
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.overview import workers
        from counterfoil.annotate.review import approve, person_like, reviews

        chosen = [person_like(connected, person) for person in people]
        if suggested:
            from counterfoil.annotate.answers import judgement_table
            from counterfoil.annotate.quality import people_quality

            decided = reviews(connected)
            done = {person.person for person in workers(connected, decided) if person.state == "done"}
            quality = people_quality(judgement_table(connected, source, everything=True), source)
            chosen += [
                person.person
                for person in quality
                if person.suggestion == "approve" and person.person in done and person.person not in decided
            ]
        return approve(connected, chosen, by=by, now=time.time(), reason=reason)


def annotate_reject(
    campaign: str | Path,
    person: str,
    *,
    reason: str,
    category: str = "",
    by: str = "",
    database: str | None = None,
) -> int:
    """Reject a person's work; returns how many answers were set aside. Raises as `review.reject`."""
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.review import person_like, reject

        known = person_like(connected, person)
        return reject(connected, source, known, reason=reason, category=category, by=by, now=time.time())


def annotate_withdraw(
    campaign: str | Path,
    *,
    worker: str = "",
    platform: str = "",
    person: str = "",
    database: str | None = None,
) -> int:
    """Delete the answers of one person, named by the platform's id of them or by their id here.

    Returns how many answers that were. `platform` is the campaign's own way in by default. Raises
    `InputError` for a person who is not there.
    """
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.privacy import withdraw_person

        known = _who(source, connected, worker, person, platform)
        return withdraw_person(connected, source, known, time.time(), named=worker)


def annotate_readmit(
    campaign: str | Path, *, worker: str = "", person: str = "", database: str | None = None
) -> str:
    """Let a person, named as in `annotate_withdraw`, come with another browser; their id here.

    Raises `InputError` for a person who is not there.
    """
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.participants import readmit

        known = _who(source, connected, worker, person)
        with connected.writing() as connection:
            readmit(connection, known, time.time(), named=worker)
        return known


def _who(campaign: "Campaign", db: "Database", worker: str, person: str, platform: str = "") -> str:
    """The id of a person here, by the platform's id of them or by how it begins."""
    from counterfoil.annotate.participants import person_id
    from counterfoil.annotate.review import person_like

    return (
        person_id(campaign, platform or campaign.recipe.entry, worker) if worker else person_like(db, person)
    )


def annotate_delete(campaign: str | Path, *, early: bool = False, database: str | None = None) -> "Deletion":
    """Delete all people and answers of a campaign whose date has passed, or any with `early`."""
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.privacy import delete_people

        return delete_people(connected, source, time.time(), early=early)


@dataclass(frozen=True, eq=False, repr=False)
class Disputes(Tabular):
    """Items that people disagree on, most undecided first, those decided last.

    Rows by "item": `item`, `kind`, `votes` ("2 × yes, 1 × no"), `label` (the likeliest), its `chance` and the
    `entropy` in bits by the one-coin model; `decision` and `note` of a researcher.
    """

    disputes: "tuple[DisputedItem, ...]"

    rows_by = ("item",)

    def _rows(self, by: str) -> pa.Table:
        rows = []
        for item in self.disputes:
            label = max(item.posterior, key=lambda value: item.posterior[value])
            rows.append(
                {
                    "item": item.item,
                    "kind": item.kind,
                    "votes": ", ".join(f"{n} × {value}" for value, n in item.votes.items()),
                    "label": label,
                    "chance": item.posterior[label],
                    "entropy": item.entropy,
                    "decision": "" if item.decided is None else item.decided.answer,
                    "note": "" if item.decided is None else item.decided.note,
                }
            )
        texts = ("item", "kind", "votes", "label", "decision", "note")
        kinds = {name: pa.string() for name in texts} | {"chance": pa.float64(), "entropy": pa.float64()}
        return pa.Table.from_pylist(rows, pa.schema(list(kinds.items())))

    @property
    def tables(self) -> tuple[Table, ...]:
        """The items with their votes."""
        rows = [
            (row["item"], row["votes"], f"{row['label']} {100 * row['chance']:.0f} %", row["decision"] or "–")
            for row in self.to_arrow().to_pylist()
        ]
        columns = [Column(name) for name in ("votes", "likeliest", "decided")]
        return (text_table("Disagreements", "item", columns, rows),) if rows else ()

    @property
    def notes(self) -> list[str]:
        """How many there are and how many are left."""
        left = sum(item.decided is None for item in self.disputes)
        lines = [f"{amount(len(self.disputes), 'item')} with different answers, {left:,} without a decision"]
        if left:
            lines.append("decide one with: counterfoil annotate adjudicate CAMPAIGN ITEM ANSWER")
        return lines

    def __repr__(self) -> str:
        return f"<Disputes: {amount(len(self.disputes), 'item')}>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate adjudicate --json` writes it."""
        return {"items": [item.to_json() for item in self.disputes]}


def annotate_disputes(campaign: str | Path, *, database: str | None = None) -> Disputes:
    """Items of a campaign that got different answers to its main question."""
    with opened(campaign, database) as (source, connected):
        from counterfoil.annotate.adjudication import adjudicated, disputed_items
        from counterfoil.annotate.agreement import fields_of
        from counterfoil.annotate.answers import judgement_table

        main = fields_of(source)[source.form.main]
        return Disputes(
            disputed_items(judgement_table(connected, source), main, adjudicated(connected, source))
        )


def annotate_adjudicate(
    campaign: str | Path,
    item: str,
    answer: str,
    *,
    question: str = "",
    note: str = "",
    by: str = "",
    database: str | None = None,
) -> "AdjudicatedAnswer":
    """Decide an item; raises as `adjudication.adjudicate`."""
    from counterfoil.annotate.adjudication import adjudicate
    from counterfoil.annotate.database import open_database

    source = open_campaign(Path(campaign))
    with closing(open_database(source, database)) as connected:
        return adjudicate(
            connected, source, item, answer, question=question, note=note, by=by, now=time.time()
        )
