"""Judgements of a campaign or of a table, and the agreement between its people, as a result in tables."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import pyarrow as pa

from counterfoil.annotate.agreement import (
    MOST_LISTED,
    CampaignAgreement,
    campaign_agreement,
    fields_of,
)
from counterfoil.annotate.campaign import Campaign, open_campaign, unanswered
from counterfoil.annotate.judgement_table import read_judgement_table
from counterfoil.errors import InputError
from counterfoil.evaluation.agreement import FEWEST_PEOPLE
from counterfoil.inputs.options import Option
from counterfoil.jobs.arguments import DRAWS, SEED, Reporting, feedback_of
from counterfoil.jobs.job import job
from counterfoil.jobs.outputs import write
from counterfoil.jobs.results import Tabular, declared
from counterfoil.metrics.agreement import Scale
from counterfoil.report.tables import Column, Table

if TYPE_CHECKING:
    from counterfoil.annotate.database import Database

CAMPAIGN = Option("A campaign's folder.", metavar="CAMPAIGN")


class StoredAnswers(Reporting, total=False):
    """Where the answers of a campaign are."""

    database: Annotated[
        str | None,
        Option(
            "The campaign's database where it is not in its folder: postgresql://...", None, metavar="URL"
        ),
    ]


@dataclass(frozen=True)
class Change:
    """What a command changed, in words that are printed, and as plain values."""

    notes: tuple[str, ...]
    value: Any
    tables = ()

    def to_json(self) -> Any:
        """The plain values."""
        return self.value


@dataclass(frozen=True)
class CommandFacts:
    """CommandFacts by name as they are printed, and the same as plain values."""

    facts: Mapping[str, object]
    value: Mapping[str, Any]

    def to_json(self) -> dict[str, Any]:
        """The plain values."""
        return dict(self.value)


@dataclass(frozen=True, eq=False)
class JudgementSource:
    """A table of judgements, and the campaign that it belongs to where that is known."""

    name: str
    table: pa.Table
    campaign: Campaign | None = None


@contextmanager
def opened(folder: str | Path, database: str | None = None) -> Iterator[tuple[Campaign, "Database"]]:
    """The campaign in a folder and its database, closed when the block ends; without one nothing is made.

    Raises `DataError` for a folder without a campaign, and as `open_database`.
    """
    campaign = open_campaign(Path(folder))
    from counterfoil.annotate.database import existing_database

    with existing_database(campaign, database) as connected:
        yield campaign, connected


def read_judgements(
    source: str | Path, *, campaign: str | Path | None = None, database: str | None = None
) -> JudgementSource:
    """The judgements of a campaign's folder, or those in a file.

    `campaign` is the campaign whose questions a file answers; `database` the address of a campaign's database
    where that is not in its folder. Raises `DataError` for a folder without a campaign and a damaged table.
    """
    path = Path(source)
    if path.is_dir():
        if campaign is not None:
            raise InputError("a campaign is given twice", given=f"{source} and {campaign}")
        with opened(path, database) as (owner, connected):
            from counterfoil.annotate.answers import judgement_table

            return JudgementSource(str(source), judgement_table(connected, owner), owner)
    if database is not None:
        raise InputError("a database belongs to a campaign", where="--database", given=source)
    own = None if campaign is None else open_campaign(Path(campaign))
    return JudgementSource(str(source), read_judgement_table(path), own)


@dataclass(frozen=True, eq=False, repr=False)
class PeopleAgreements(Tabular):
    """Agreement per question, reading of it and kind of item."""

    source: str
    agreement: CampaignAgreement

    rows_by = declared(
        question="`question`, `reading` (empty as answered), `kind` of item (empty for all), `items: int`, "
        "`people: int`, `answers: int`, `scale`; `raw: interval` agreement in [0, 1], `fleiss: interval` and "
        "Krippendorff's `alpha: interval`, at most 1; `cohen: float`, the mean of Cohen's kappa over "
        "`cohen_pairs: int` pairs of people",
        pair="one per pair of people with enough shared items, where pairs are few enough to be listed: "
        "`question`, `reading`, `kind`, `first`, `second`, `items: int` that both judged, `cohen: interval`",
    )
    page_has_figures = False

    def _rows(self, by: str) -> Iterator[Any]:
        for question in self.agreement.questions:
            cohen = question.cohen
            if by == "question":
                facts = {"scale": question.people.scale.value, "cohen": cohen and cohen.mean}
                yield {**facts, "cohen_pairs": 0 if cohen is None else cohen.pairs}, question.people, question
            elif cohen is not None:
                for first, second, kappa in cohen.each:
                    yield {"first": first, "second": second, "items": kappa.n, "cohen": kappa}, question

    @property
    def tables(self) -> tuple[Table, ...]:
        """A row per question, its readings and its kinds of item below it; and of pairs of people, if any."""
        return self._tables(f"Agreement between people, {self.source}")

    def _tables(self, caption: str, *, shared: bool = False) -> tuple[Table, ...]:
        """The tables; those of a page that is `shared` have numbers in place of people's ids."""
        pairs = self.to_arrow(by="pair").to_pylist()
        people = dict.fromkeys(person for pair in pairs for person in (pair["first"], pair["second"]))
        called = {person: str(number) if shared else person for number, person in enumerate(people, 1)}
        questions = self.table(
            caption,
            {
                "question": _name,
                "items": "{items:,}",
                "people": "{people:,}",
                Column("agree, %"): "raw",
                Column("Cohen", style="score"): "cohen",
                Column("Fleiss", style="score"): "fleiss",
                Column("Krippendorff", style="score"): "alpha",
            },
        )
        return questions + self.table(
            "Cohen's kappa of pairs of people",
            {
                "question": _name,
                "people": lambda row: f"{called[row['first']]} and {called[row['second']]}",
                "items": "{items:,}",
                Column("Cohen", style="score"): "cohen",
            },
            by="pair",
        )

    @property
    def notes(self) -> list[str]:
        """What the numbers rest on, and which questions are not compared."""
        lines = [
            "agree: share of pairs of answers to one item that are equal; Cohen: mean over pairs of people; "
            "0 is chance"
        ]
        questions = self.agreement.questions
        scales = dict.fromkeys(
            f"{question.question} {question.people.scale.value}"
            for question in questions
            if question.people.scale != Scale.NOMINAL
        )
        if scales:
            lines.append(f"scale of Krippendorff's alpha: {', '.join(scales)}")
        if any(question.people.items and not question.people.over_people for question in questions):
            lines.append(
                f"with fewer than {FEWEST_PEOPLE} people intervals hold for these people on other items"
            )
        if any(question.cohen is not None and not question.cohen.each for question in questions):
            lines.append(f"pairs of people are listed where there are no more than {MOST_LISTED}")
        if not all(question.people.items for question in questions):
            lines.append("where no item has answers of two people there is no agreement to measure")
        return [*lines, *(f"left out: {name}, {why}" for name, why in self.agreement.left_out.items())]

    def to_html(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write one self-contained page with the numbers and their intervals."""
        from counterfoil.report.html import shareable, tables_page

        caption = f"Per question, {shareable(self.source)}, with 95 % intervals"
        html = tables_page(
            self._tables(caption, shared=True),
            self.notes,
            title="Agreement between people",
            standfirst=f"{shareable(self.source)}: golden items and the test before the work do not count.",
        )
        write(path, html, command="annotate agreement", overwrite=overwrite)

    def to_json(self) -> dict[str, Any]:
        return {"source": self.source, **self.agreement.to_json()}


@job(
    outputs="json html",
    examples="""Examples:
  counterfoil annotate agreement campaign/
  counterfoil annotate agreement campaign/ --html agreement.html --json agreement.json
  counterfoil annotate agreement ratings.csv --scale ordinal

A table has the columns item, person, question, answer; optionally seconds, golden (right or wrong) and kind.
'counterfoil annotate import' makes it from a platform's results.""",
)
def annotate_agreement(
    source: Annotated[
        str | Path, Option("A campaign's folder, or a table of judgements.", metavar="CAMPAIGN|TABLE")
    ],
    *,
    campaign: Annotated[
        str | Path | None,
        Option("Of a table: the campaign whose questions it answers, for scales and readings."),
    ] = None,
    scale: Annotated[
        Literal["nominal", "ordinal", "interval"] | None,
        Option("How near answers are for Krippendorff's alpha. Default: the question's own."),
    ] = None,
    by_kind: Annotated[bool, Option("Whether also by kind of item.", flag="--no-kinds")] = True,
    draws: Annotated[int, DRAWS] = 400,
    seed: Annotated[int, SEED] = 0,
    **options: Unpack[StoredAnswers],
) -> PeopleAgreements:
    """How far people agree: raw, Cohen's and Fleiss' kappa, Krippendorff's alpha, with intervals.

    Per question and kind of item. Golden items and the test before the work do not count. Intervals (95 %)
    are over items and people.

    Raises `DataError` for what is neither a campaign nor a table, and as `read_judgements` and
    `campaign_agreement`.
    """
    feedback = feedback_of(options)
    with feedback.busy(f"reading the answers of {source}"):
        judged = read_judgements(source, campaign=campaign, database=options["database"])
        fields = None if judged.campaign is None else fields_of(judged.campaign)
    if judged.campaign is not None and not len(judged.table):
        raise unanswered(source)
    with feedback.busy("comparing answers"):
        agreement = campaign_agreement(
            judged.table,
            fields,
            scale=None if scale is None else Scale(scale),
            by_kind=by_kind,
            draws=draws,
            seed=seed,
        )
    return PeopleAgreements(judged.name, agreement)


def _name(row: Mapping[str, Any]) -> str:
    name = f"{row['question']}: {row['reading']}" if row["reading"] else str(row["question"])
    return f"{name}, {row['kind']}" if row["kind"] else name
