"""Judgements of a campaign or of a table, and the agreement between its people, as a result in tables."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack

import pyarrow as pa

from counterfoil.annotate.agreement import (
    MOST_LISTED,
    CampaignAgreement,
    QuestionAgreement,
    campaign_agreement,
    fields_of,
)
from counterfoil.annotate.campaign import Campaign, open_campaign, unanswered
from counterfoil.annotate.judgement_table import read_judgement_table
from counterfoil.errors import InputError
from counterfoil.evaluation.agreement import FEWEST_PEOPLE
from counterfoil.evaluation.result import Estimate
from counterfoil.inputs.options import Option
from counterfoil.jobs.arguments import DRAWS, SEED, Reporting, feedback_of
from counterfoil.jobs.job import job
from counterfoil.jobs.outputs import write
from counterfoil.jobs.results import Tabular
from counterfoil.metrics.agreement import Scale
from counterfoil.report.labels import amount
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


def schema_of(columns: str) -> pa.Schema:
    """A schema of these columns, texts but for those that name another type of `pyarrow`.

    >>> schema_of("person items:int64").types
    [DataType(string), DataType(int64)]
    """
    named = (column.partition(":") for column in columns.split())
    return pa.schema([(name, getattr(pa, kind or "string")()) for name, _, kind in named])


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


_PAIRS = schema_of(
    "question reading kind first second items:int64 cohen:float64 cohen_low:float64 cohen_high:float64"
)


@dataclass(frozen=True, eq=False, repr=False)
class PeopleAgreements(Tabular):
    """Agreement per question, reading of it and kind of item.

    Rows by "question" are one per question, reading and kind of item: `question`, `reading` (empty as
    answered), `kind` (empty for all), `items`, `people`, `answers`, `scale`; `raw` agreement, `fleiss` and
    `alpha` (Krippendorff's), each with `_low` and `_high` (95 %); and `cohen`, the mean of Cohen's kappa over
    `cohen_pairs` pairs of people. Raw agreement is in [0, 1], the others at most 1; null where undefined.
    Rows by "pair" are one per question, reading, kind and pair of people with enough shared items, where
    pairs are few enough to be listed: `question`, `reading`, `kind`, `first`, `second`, `items` that both
    judged, `cohen`, `cohen_low`, `cohen_high`.
    """

    source: str
    agreement: CampaignAgreement

    rows_by = ("question", "pair")
    page_has_figures = False

    def _rows(self, by: str) -> pa.Table:
        if by == "question":
            return pa.Table.from_pylist([_row(question) for question in self.agreement.questions])
        rows = [
            {**_key(question), "first": first, "second": second, "items": kappa.n, **ends_of(kappa, "cohen")}
            for question in self.agreement.questions
            for first, second, kappa in _pairs(question)
        ]
        return pa.Table.from_pylist(rows, schema=_PAIRS)

    @property
    def tables(self) -> tuple[Table, ...]:
        """A row per question, its readings and its kinds of item below it; and of pairs of people, if any."""
        return (self._questions, *self._pair_tables())

    @property
    def _questions(self) -> Table:
        columns: tuple[Column | str, ...] = (
            "items",
            "people",
            Column("agree, %"),
            *(Column(name, style="score") for name in ("Cohen", "Fleiss", "Krippendorff")),
        )
        rows = []
        for question in self.agreement.questions:
            of, cohen = question.people, None if question.cohen is None else question.cohen.mean
            rows.append(
                (_name(question), f"{of.items:,}", f"{of.people:,}", of.raw, cohen, of.fleiss, of.alpha)
            )
        return Table.of(f"Agreement between people, {self.source}", "question", columns, rows)

    def _pair_tables(self, *, shared: bool = False) -> list[Table]:
        """Cohen's kappa of each pair of people; a page that is `shared` has numbers in place of their ids."""
        pairs = [(question, *pair) for question in self.agreement.questions for pair in _pairs(question)]
        people = list(dict.fromkeys(who for _, *both, _ in pairs for who in both))
        called = {who: str(at) if shared else who for at, who in enumerate(people, 1)}
        rows = [
            (_name(question), f"{called[first]} and {called[second]}", f"{kappa.n:,}", kappa)
            for question, first, second, kappa in pairs
        ]
        columns = ("people", "items", Column("Cohen", style="score"))
        return [Table.of("Cohen's kappa of pairs of people", "question", columns, rows)] if rows else []

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

    def __repr__(self) -> str:
        return f"<PeopleAgreements of {self.source}: {amount(len(self.agreement.questions), 'row')}>"

    def to_html(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write one self-contained page with the numbers and their intervals."""
        from counterfoil.report.html import shareable, tables_page

        caption = f"Per question, {shareable(self.source)}, with 95 % intervals"
        html = tables_page(
            [replace(self._questions, caption=caption), *self._pair_tables(shared=True)],
            self.notes,
            title="Agreement between people",
            standfirst=f"{shareable(self.source)}: golden items and the test before the work do not count.",
        )
        write(path, html, command="annotate agreement", overwrite=overwrite)

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values, as `annotate agreement --json` writes it."""
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


def _key(question: QuestionAgreement) -> dict[str, Any]:
    return {name: getattr(question, name) for name in ("question", "reading", "kind")}


def _row(question: QuestionAgreement) -> dict[str, Any]:
    of, cohen = question.people, question.cohen
    row = {**_key(question), "items": of.items, "people": of.people, "answers": of.answers}
    row |= {"scale": of.scale.value, **ends_of(of.raw, "raw"), **ends_of(of.fleiss, "fleiss")}
    row |= ends_of(of.alpha, "alpha")
    return row | {"cohen": cohen and cohen.mean, "cohen_pairs": 0 if cohen is None else cohen.pairs}


def _pairs(question: QuestionAgreement) -> tuple[tuple[str, str, Estimate], ...]:
    return () if question.cohen is None else question.cohen.each


def ends_of(estimate: Estimate | None, name: str) -> dict[str, float | None]:
    """An estimate and its interval as columns of a row, `name`, `name_low` and `name_high`; None for NaN."""
    ends = (None,) * 3 if estimate is None else (estimate.value, estimate.low, estimate.high)
    named = zip((name, f"{name}_low", f"{name}_high"), ends, strict=True)
    return {end: None if value != value else value for end, value in named}


def _name(question: QuestionAgreement) -> str:
    name = f"{question.question}: {question.reading}" if question.reading else question.question
    return f"{name}, {question.kind}" if question.kind else name
