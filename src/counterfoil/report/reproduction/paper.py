"""A paper's printed numbers, the formulas between them, and the entry that each becomes when recomputed."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache
from importlib.resources import files
from typing import Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, model_validator

from counterfoil.errors import DataError, UnknownNameError
from counterfoil.inputs.files import parse_toml

#: Numbers, letters, + - * / and parentheses; no power, whole division, call, attribute or text.
_FORMULA = re.compile(r"(?!.*(?:[*][*]|//))(?:[0-9.]+|\b[a-z]\b|[-+*/() ])+")


def evaluate(formula: str, letters: Mapping[str, float]) -> float:
    """The value of a formula of numbers, letters, + - * / and parentheses; else raises `DataError`."""
    try:
        if not _FORMULA.fullmatch(formula):
            raise SyntaxError
        return eval(formula, {"__builtins__": {}}, dict(letters))
    except (SyntaxError, TypeError, NameError, ZeroDivisionError) as error:
        raise DataError(
            "not a formula of printed numbers",
            given=f"'{formula}'",
            allowed=f"numbers, + - * / ( ), and {', '.join(letters) or 'no letters'}",
        ) from error


_PRINTED = re.compile(r"-?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)([.][0-9]+)?")

#: Slack for floating point beside half a unit of the last printed digit, far below anything a paper prints.
_SLACK = 1e-9


class Verdict(StrEnum):
    """What the ledger says of a printed number."""

    #: The recomputed value, rounded as the paper rounds, is the printed one.
    SAME = "same"
    #: `reason` says why where that is known, or what is missing.
    DIFFERS = "differs"
    NO_DATA = "no data"


class Basis(StrEnum):
    """What a number was computed from; a derived one checks the paper's arithmetic alone."""

    #: Released data: answers of models, ratings, lists of positives.
    DATA = "data"
    #: Other numbers printed in the same paper, or arithmetic alone (what chance gets).
    DERIVED = "derived"
    #: Nothing: the data are missing.
    NONE = "none"


@dataclass(frozen=True)
class Entry:
    """One printed number and its verdict; `recomputed` is in the unit of the paper, None without data."""

    paper: str
    name: str
    title: str
    table: str
    row: str
    column: str
    printed: str
    value: float
    digits: int
    recomputed: float | int | None
    verdict: Verdict
    reason: str = ""
    source: str = ""
    basis: Basis = Basis.DATA

    @property
    def unexplained(self) -> bool:
        """Whether it differs for no known reason."""
        return self.verdict is Verdict.DIFFERS and not self.reason

    @property
    def rounded(self) -> str:
        """The recomputed value with the paper's decimals, one more where it lies halfway."""
        if self.recomputed is None:
            return ""
        text = f"{self.recomputed:,.{self.digits}f}"
        halfway = self.verdict is Verdict.SAME and parse(text)[0] != self.value
        return f"{self.recomputed:,.{self.digits + 1}f}" if halfway else text


def parse(printed: str) -> tuple[float, int]:
    """The value of a printed number and how many decimals it shows; else raises `DataError`."""
    if not _PRINTED.fullmatch(printed):
        raise DataError("not a printed number", given=f"'{printed}'", allowed="digits such as 1,036 or -0.20")
    plain = printed.replace(",", "")
    return float(plain), len(plain.partition(".")[2])


def judge(printed: str, recomputed: float | int) -> Verdict:
    """Whether `recomputed` rounds to `printed`; a value halfway may be printed as either neighbour."""
    value, digits = parse(printed)
    return Verdict.SAME if abs(recomputed - value) <= 0.5 * 10.0**-digits + _SLACK else Verdict.DIFFERS


def summary(entries: Iterable[Entry]) -> dict[str, int]:
    """How many entries have each verdict, and how many of those that differ have no known reason."""
    entries = list(entries)
    count = Counter(entry.verdict for entry in entries)
    unexplained = sum(entry.unexplained for entry in entries)
    same, differs, no_data = (count[verdict] for verdict in Verdict)
    return {"same": same, "differs": differs, "unexplained": unexplained, "no data": no_data}


def by_basis(entries: Iterable[Entry]) -> dict[Basis, dict[str, int]]:
    """The `summary` of the entries of each basis, apart from the paper's own arithmetic."""
    entries = list(entries)
    return {basis: summary(entry for entry in entries if entry.basis is basis) for basis in Basis}


class Spec(BaseModel):
    """What a recipe needs to know. A table, its columns, its rows and its cells each say a part of it."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: A name in `counterfoil.report.reproduction.recipes`.
    recipe: str | None = None
    benchmark: str | None = None
    #: Whose answers, where that is not the row's name.
    model: str | None = None
    measure: str | None = None
    metric: str | None = None
    #: Files of an example, relative to the folder of data.
    candidates: str | None = None
    references: str | None = None
    #: Over the questions of these groups together; over all where it is not said.
    groups: tuple[str, ...] | None = None
    #: The run folder of a language model, relative to the folder of data.
    run: str | None = None
    #: Folders of a chat model's answers, one per order in which the candidates were shown.
    answers: tuple[str, ...] | None = None
    statistic: Literal["r", "p", "low", "high", "total", "own", "others"] | None = None
    direction: Literal["i2t", "t2i"] | None = None
    #: The benchmark whose queries count; its own where it is not said.
    over: str | None = None
    #: What a number is divided by: "queries", a benchmark for its right answers, or a whole number.
    per: str | None = None
    #: The first R items of a ranking, R being the number of right answers: 1 for a right one, 0 for a wrong.
    shown: str | None = None
    #: Ids that the paper lists.
    listed: tuple[str, ...] | None = None
    #: How often a question is counted.
    examples: int | None = None
    #: Count the distinct labels of this grouping instead of questions.
    labels: str | None = None
    #: Printed columns that the number follows from, as "Table 3, Text"; a table alone is its column so named.
    of: tuple[str, ...] | None = None
    #: Other printed columns, which those are held against; a table alone is its column of the row's name.
    against: tuple[str, ...] | None = None
    #: Rows of `of`: the first one's number less that of the next which has one.
    less: tuple[str, ...] | None = None
    #: What the paper does with printed numbers: a, b, ... stand for the columns of `of`.
    formula: str | None = None
    #: Rows of these that stay out.
    without: tuple[str, ...] | None = None
    #: Why the number cannot be recomputed, whatever data there is.
    missing: str | None = None
    #: Why the paper and its own data disagree here, or what is doubtful; or a key of the paper's `reasons`.
    reason: str | None = None
    #: What the data give where the reason holds; any other number differs for no known reason.
    instead: str | None = None

    #: What a text alone stands for.
    short: ClassVar[str] = "name"

    @model_validator(mode="before")
    @classmethod
    def _whole(cls, given: Any) -> Any:
        if isinstance(given, list):
            return {"name": given[0], "cells": given[1:]}
        return {cls.short: given} if isinstance(given, str) else given


class PaperCell(Spec):
    """A printed number; empty where the paper's table has a blank."""

    printed: str

    short: ClassVar[str] = "printed"


class PaperColumn(Spec):
    """What stands at the head of a column: its name alone for short."""

    name: str


class PaperRow(Spec):
    """A row of printed numbers: `["CLIP", "75.83", ...]` for short."""

    name: str
    cells: tuple[PaperCell, ...]


class PaperModel(Spec):
    """What holds of a row of this name in every table, and where its answers lie."""

    #: Benchmark to file, relative to the folder of data.
    files: dict[str, str] = {}
    #: What is not at hand, in tables that say what else is not.
    weights: str | None = None
    #: Whether the row is what chance gives.
    chance: bool = False


class PaperTable(Spec):
    """One table of a paper, or the numbers of one section of its text."""

    name: str
    columns: tuple[PaperColumn, ...]
    rows: tuple[PaperRow, ...]
    #: What is not at hand besides the weights of its models.
    nor: str | None = None

    def spec(self, row: PaperRow, column: PaperColumn, cell: PaperCell, model: PaperModel | None) -> Spec:
        """The spec of one cell; fields set nearer to the cell win."""
        spec: Spec | None = model
        if model and model.weights and self.nor:
            spec = Spec(missing=f"{model.weights} are not at hand, nor are {self.nor}")
        given: dict[str, Any] = {}
        for part in filter(None, (self, spec, column, row, cell)):
            given |= part.model_dump(include=set(Spec.model_fields), exclude_none=True)
        for field, name in (("of", column.name), ("against", row.name)):
            if field in given:
                given[field] = [i if ", " in i else f"{i}, {name}" for i in given[field]]
        return Spec(**given)


class Paper(BaseModel):
    """What one paper prints."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    #: What tables and sentences call it: "ECCV Caption".
    called: str
    #: The name by which it is asked for: "eccv-caption".
    name: str
    title: str
    #: Benchmark to the places where its questions may lie, relative to the folder of data.
    questions: dict[str, tuple[str, ...]] = {}
    models: dict[str, PaperModel] = {}
    #: Reasons that several numbers have, by the keys that stand for them.
    reasons: dict[str, str] = {}
    #: Files of the folder of data to the names under which they were published, where those are others.
    released: dict[str, str] = {}
    tables: tuple[PaperTable, ...]
    #: What a paper prints about other things than results, and that results follow from.
    inputs: tuple[PaperTable, ...] = ()

    def files(self) -> tuple[tuple[str, ...], ...]:
        """Every file of the recomputation, each as places of which the first counts."""
        names = [name for model in self.models.values() for name in model.files.values()]
        for table in self.tables:
            cells = (cell for row in table.rows for cell in row.cells)
            for part in (table, *table.columns, *table.rows, *cells):
                names += [name for name in (part.candidates, part.references) if name]
                names += part.answers or ()
        return tuple(dict.fromkeys([*self.questions.values(), *((name,) for name in names)]))

    def printed(self, reference: str) -> dict[str, float]:
        """The numbers of a column by row, as printed; `reference` is "TABLE, COLUMN". Blanks are left out."""
        name, _, column = reference.partition(", ")
        table = next(table for table in (*self.tables, *self.inputs) if table.name == name)
        i = [head.name for head in table.columns].index(column)
        texts = {row.name: row.cells[i].printed for row in table.rows}
        return {row: parse(text)[0] for row, text in texts.items() if text}


@cache
def all_papers() -> Mapping[str, Paper]:
    """Every paper of the ledger, by its short name."""
    papers = [
        Paper(**parse_toml(file.read_text(encoding="utf-8"), where=file.name))
        for file in files("counterfoil.report").joinpath("papers").iterdir()
        if file.name.endswith(".toml")
    ]
    return {paper.name: paper for paper in sorted(papers, key=lambda paper: paper.name)}


def chosen(names: Sequence[str] | None) -> tuple[Paper, ...]:
    """The papers of these names ("eccv-caption" or "ECCV Caption"), all for None."""
    papers = all_papers()
    if not names:
        return tuple(papers.values())
    by_name = {key.lower(): paper for paper in papers.values() for key in (paper.name, paper.called)}
    for name in names:
        if name.lower() not in by_name:
            raise UnknownNameError("paper", name, papers)
    wanted = {by_name[name.lower()].name for name in names}
    return tuple(paper for paper in papers.values() if paper.name in wanted)
