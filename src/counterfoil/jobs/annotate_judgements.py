"""Judgements of a campaign, of a table and of other tools: read, compared, and exported as tables."""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Unpack, cast

import pyarrow as pa

from counterfoil.annotate import agreement as kappas, export as exports
from counterfoil.annotate.agreement import MOST_LISTED, CampaignAgreement, campaign_agreement, fields_of
from counterfoil.annotate.campaign import RECIPE, SHORT_ID, Campaign, open_campaign, unanswered
from counterfoil.annotate.judgement_table import check_table_kind, read_judgement_table, write_judgement_table
from counterfoil.annotate.labels import Partly
from counterfoil.annotate.platforms.label_studio import read_export
from counterfoil.annotate.platforms.mturk_files import HitLayout, read_results
from counterfoil.errors import InputError
from counterfoil.evaluation.agreement import FEWEST_PEOPLE
from counterfoil.inputs.options import Option, key_values
from counterfoil.jobs.job import documented, feedback_of, job, option, path_of
from counterfoil.jobs.results import Tabular, declared, lines, write
from counterfoil.jobs.shared_options import DRAWS, OVERWRITE, SEED, Reporting, Settings
from counterfoil.metrics.agreement import Scale
from counterfoil.outputs import Folder, guarded
from counterfoil.report.tables import Column, Table
from counterfoil.store import owner_only, write_csv, write_json, write_parquet, write_text

if TYPE_CHECKING:
    from counterfoil.annotate.database import Database

CAMPAIGN = Option("A campaign's folder.", metavar="CAMPAIGN")


@documented
class StoredAnswers(Reporting, total=False):
    """Where the answers of a campaign are.

    Arguments:
        database: The campaign's database, if it is not in its folder: postgresql://...
    """

    database: Annotated[str | None, option(None, metavar="URL")]


@dataclass(frozen=True)
class Change:
    """What a command changed: plain values, and what is printed, in lines or as facts by name."""

    value: Any
    notes: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)
    tables = ()

    def to_json(self) -> Any:
        return self.value


@contextmanager
def opened(folder: str | Path, database: str | None = None) -> Iterator[tuple[Campaign, "Database"]]:
    """The campaign in a folder and its database, closed when the block ends; without one nothing is made."""
    campaign = open_campaign(Path(folder))
    from counterfoil.annotate.database import existing_database

    with existing_database(campaign, database) as connected:
        yield campaign, connected


def read_judgements(
    source: str | Path, *, campaign: str | Path | None = None, database: str | None = None
) -> tuple[pa.Table, Campaign | None]:
    """The judgements of a campaign's folder or in a file, and the campaign whose questions they answer."""
    path = Path(source)
    if path.is_dir():
        if campaign is not None:
            raise InputError("a campaign is given twice", given=f"{source} and {campaign}")
        with opened(path, database) as (owner, connected):
            from counterfoil.annotate.answers import judgement_table

            return judgement_table(connected, owner), owner
    if database is not None:
        raise InputError("a database belongs to a campaign", where="--database", given=source)
    # An export lies in a folder of its campaign.
    campaign_folder = next(
        (folder for folder in path.absolute().parents[:2] if (folder / RECIPE).is_file()), None
    )
    home = campaign_folder if campaign is None else Path(campaign)
    return read_judgement_table(path), None if home is None else open_campaign(home)


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
        return self._tables(f"Agreement between people, {self.source}")

    def _tables(self, caption: str, *, shared: bool = False) -> tuple[Table, ...]:
        """The tables, people of a campaign by short ids; a page that is `shared` has numbers instead."""
        pairs = self.to_arrow(by="pair").to_pylist()
        people = dict.fromkeys(person for pair in pairs for person in (pair["first"], pair["second"]))
        called = {person: str(number) for number, person in enumerate(people, 1)}
        if not shared:
            in_campaign = re.compile("[0-9a-f]{32}").fullmatch
            called = {person: person[:SHORT_ID] if in_campaign(person) else person for person in people}
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
        questions = self.agreement.questions
        scales = dict.fromkeys(
            f"{question.question} {question.people.scale.value}"
            for question in questions
            if question.people.scale != Scale.NOMINAL
        )
        few = any(question.people.items and not question.people.over_people for question in questions)
        many = any(question.cohen is not None and not question.cohen.each for question in questions)
        return lines(
            "agree: share of pairs of answers that are the same; other columns: 0 means chance level; "
            f"Cohen: mean over pairs of people with at least {kappas.LEAST_SHARED} items in common",
            scales and f"scale of Krippendorff's alpha: {', '.join(scales)}",
            few and f"with fewer than {FEWEST_PEOPLE} people intervals resample items only",
            many and f"pairs of people are listed where there are no more than {MOST_LISTED}",
            any(not question.people.items for question in questions)
            and "where no item has answers of two people there is no agreement to measure",
            *(f"left out: {name}, {why}" for name, why in self.agreement.left_out.items()),
        )

    def to_html(self, path: str | Path, *, overwrite: bool = False) -> None:
        from counterfoil.report.html import render, shareable

        caption = f"{shareable(self.source)}: each question, with 95 % intervals"
        html = render(
            "tables.html",
            title="Agreement between people",
            standfirst=f"{shareable(self.source)}: golden items and the test before the work do not count.",
            tables=self._tables(caption, shared=True),
            notes=self.notes,
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

A table has columns item, person, question, answer, and optionally seconds, golden (right or wrong) and
kind. 'counterfoil annotate import' makes one from a platform's results.""",
)
def annotate_agreement(
    source: Annotated[str | Path, option(metavar="CAMPAIGN|TABLE")],
    *,
    campaign: str | Path | None = None,
    scale: Literal["nominal", "ordinal", "interval"] | None = None,
    by_kind: Annotated[bool, option(flag="--no-kinds")] = True,
    draws: Annotated[int, DRAWS] = 400,
    seed: Annotated[int, SEED] = 0,
    **options: Unpack[StoredAnswers],
) -> PeopleAgreements:
    """Measure agreement: raw, Cohen's and Fleiss' kappa, Krippendorff's alpha, with intervals.

    Results are per question and kind of item, without golden items and the qualification test. 95 % intervals
    resample items and people.

    Arguments:
        source: A campaign's folder, or a table of judgements.
        campaign: For a table: the campaign whose questions it answers, which gives their scales and options.
            Default: the one in whose folder the table lies.
        scale: Distance of answers in Krippendorff's alpha. Default: the question's scale.
        by_kind: Whether to report each kind of item as well.
    """
    feedback = feedback_of(options)
    with feedback.busy(f"reading the answers of {source}"):
        table, of = read_judgements(source, campaign=campaign, database=options["database"])
        fields = None if of is None else fields_of(of)
    if of is not None and not len(table):
        raise unanswered(source)
    with feedback.busy("comparing answers"):
        on = None if scale is None else Scale(scale)
        compared = campaign_agreement(table, fields, scale=on, by_kind=by_kind, draws=draws, seed=seed)
    return PeopleAgreements(str(source), compared)


def _name(row: Mapping[str, Any]) -> str:
    name = f"{row['question']}: {row['reading']}" if row["reading"] else str(row["question"])
    return f"{name}, {row['kind']}" if row["kind"] else name


@dataclass(frozen=True, eq=False)
class ImportedJudgements:
    """Judgements of another tool as a table, and what was left out, by what it was."""

    table: pa.Table
    left_out: Mapping[str, int]

    save_help = "Write the judgements here (.csv or .parquet)."
    check_kind = staticmethod(check_table_kind)

    @property
    def facts(self) -> dict[str, int]:
        """Rows, items and people of the table, and what was left out."""
        counts = {name: len(self.table.column(name).unique()) for name in ("item", "person")}
        counted = {"judgements": len(self.table), "items": counts["item"], "people": counts["person"]}
        return {**counted, **{name: count for name, count in self.left_out.items() if count}}

    def save(self, path: str | Path) -> None:
        write_judgement_table(path, self.table)

    def to_json(self) -> dict[str, int]:
        return self.facts


@job(
    outputs="save json",
    examples="""Examples:
  counterfoil annotate import results.csv --format mturk --item "Input.image{n}" --item "Input.caption{n}"
  --question-column "match=Answer.match{n}" --out judgements.parquet
  counterfoil annotate import export.json --format label-studio --many kinds --out judgements.csv

The table that comes out has a row per item, person and question (columns item, person, question, answer,
seconds, golden). Other commands read it, and a table of your own with these columns. {n} stands for the
number of an item in its HIT.""",
)
def import_judgements(
    path: Annotated[Path, option(metavar="FILE")],
    source: Annotated[Literal["mturk", "label-studio"], option(flag="--format")],
    *,
    item: Annotated[Sequence[str], option(metavar="COLUMN")] = (),
    question: Annotated[Settings, option(flag="--question-column", metavar="NAME=COLUMN")] = None,
    many: Annotated[Sequence[str], option(metavar="NAME")] = (),
    golden: Annotated[str | None, option(flag="--golden-column", metavar="COLUMN")] = None,
    keep_ids: bool = False,
    **reporting: Unpack[Reporting],
) -> ImportedJudgements:
    """Read judgements of Mechanical Turk or Label Studio into the one table of judgements.

    Ids of people lead to profiles, so people are numbered (`p1`, `p2`, ...) unless ids are asked for.

    Arguments:
        path: Results, or an export.
        source: Tool that wrote the file.
        item: Mechanical Turk: input columns that identify an item.
        question: Mechanical Turk: a question and its answer column.
        many: Question whose answer may be several options; may be repeated.
        golden: Mechanical Turk: the right answer of the first question.
        keep_ids: Keep people's ids; by default people are numbered.
    """
    if isinstance(question, list | tuple):
        question = key_values(question, "--question-column", "match=Answer.match{n}")
    questions = {name.strip(): column.strip() for name, column in cast(Any, question or {}).items()}
    numbers: dict[str, str] = {}

    def identify(worker: str) -> str:
        return worker if keep_ids else numbers.setdefault(worker, f"p{len(numbers) + 1}")

    if source == "label-studio":
        return ImportedJudgements(*read_export(path, frozenset(many), identify=identify))
    usual = HitLayout()
    layout = HitLayout(tuple(item) or usual.item, questions or usual.questions, frozenset(many), golden)
    return ImportedJudgements(*read_results(path, layout, identify=identify))


#: What reads a table, by its name.
_READERS = {
    "judgements": "annotate agreement FILE --campaign CAMPAIGN",
    "choices": "build choose --people",
    "answers": "build filter --people",
    "gains": "pool bias --judgements",
    "scores": "evaluate people:CAMPAIGN BENCHMARK",
    "outcomes": "evaluate people:CAMPAIGN BENCHMARK",
    "votes": "annotate preferences",
    "ratings": "evaluate MODEL ratings --data",
    "rows": "evaluate MODEL pairs --data",
}


class CampaignExport(Tabular):
    """The tables that were written."""

    folder: Path
    written: Mapping[str, tuple[Path, int]]
    #: How many people there are, the model of labels (empty without labels), and items without a label.
    people: int
    model: str
    tied: int
    #: Answered items of `choose` without a known right answer, which are not among the outcomes.
    unknown: int = 0

    rows_by = declared(
        table="one per file: `table`, `file`, `rows: int`, and `read_by`, the command that reads it (empty "
        "where none does)"
    )

    def _rows(self, by: str) -> Iterator[Any]:
        for name, (path, rows) in self.written.items():
            yield {"table": name, "file": str(path), "rows": rows, "read_by": _READERS.get(name, "")}

    @property
    def tables(self) -> tuple[Table, ...]:
        return self.table(
            f"Exported to {self.folder}",
            {
                "file": lambda row: Path(row["file"]).name,
                "rows": "{rows:,}",
                "read by": lambda row: row["read_by"],
            },
        )

    @property
    def notes(self) -> list[str]:
        tied = f"; {self.tied:,} items tie" if self.tied else ""
        return lines(
            f"answers of {self.people:,} people",
            self.model and f"labels by --label-model {self.model}{tied}",
            self.unknown
            and f"{self.unknown:,} items have no known right answer (column 'truth'): no outcomes of theirs",
        )

    def to_json(self) -> dict[str, Any]:
        about = {"people": self.people, "model": self.model or None, "tied": self.tied}
        return {**about, **super().to_json()}


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate export campaign/
  counterfoil annotate export campaign/ --out labels/ --label-model dawid-skene --no-person-ids""",
)
@owner_only()
def annotate_export(
    campaign: Annotated[str | Path, CAMPAIGN],
    out: Annotated[str | Path | None, option(flag="--out", shown="CAMPAIGN/export")] = None,
    *,
    kind: Annotated[Literal["csv", "parquet"], option(flag="--format")] = "csv",
    model: Annotated[str, option(flag="--label-model")] = "one-coin",
    partly: Partly = "half",
    people: Annotated[bool | None, option(flag="--person-ids")] = None,
    overwrite: Annotated[bool, OVERWRITE] = False,
    **options: Unpack[StoredAnswers],
) -> CampaignExport:
    """Write a campaign's answers as tables: judgements, labels with posterior, and what other commands read.

    Which tables there are depends on the form of work. People are hashes that only this campaign has.

    Arguments:
        out: The folder to write.
        kind: The kind of table.
        model: Label model: one-coin, majority or dawid-skene.
        partly: For form 'match': value of 'partly yes'.
        people: Whether tables identify people, by a hash.
    """
    from counterfoil.annotate.answers import judgement_table
    from counterfoil.annotate.database import existing_database
    from counterfoil.annotate.review import decided_answers

    feedback = feedback_of(options)
    source = open_campaign(Path(campaign))
    folder = path_of(out) or source.folder / "export"
    with guarded("annotate export", overwrite=overwrite) as outputs:
        outputs.folder(Folder(folder, (exports.ABOUT, exports.DATA_SHEET, "*.csv", "*.parquet")))
        with feedback.busy("reading answers"), existing_database(source, options["database"]) as db:
            table = judgement_table(db, source)
            decisions = decided_answers(db, source)
        if not len(table):
            raise unanswered(campaign)
        with feedback.busy("making labels"):
            judged = exports.JudgedCampaign.of(source, table, model=model, adjudicated=decisions)
            tables = exports.exported(judged, partly=partly, people=people is not False)
        facts = "".join(f"* {line}\n" for line in exports.data_sheet(source, table))
        written = {}
        for name, rows in tables.items():
            path = folder / f"{name}.{kind}"
            write_csv(path, rows) if kind == "csv" else write_parquet(path, rows)
            written[name] = (path, len(rows))
        write_text(folder / exports.DATA_SHEET, facts)
        labels, about = judged.labels, judged.facts()
        outcomes = exports.question_outcomes(judged) if source.form.name == "choose" else None
        export = CampaignExport(
            folder,
            written,
            people=about["people"],
            model="" if labels is None else labels.model,
            tied=0 if labels is None else labels.labels.count(""),
            unknown=0 if outcomes is None else outcomes.unknown,
        )
        about["model"] = export.model or None
        if outcomes is not None:
            about |= {"queries": outcomes.queries, "tied": outcomes.tied}
        write_json(folder / exports.ABOUT, about | {"tables": list(tables)})
    return export
