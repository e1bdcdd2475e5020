"""Facts of a publication: licence, names, dates, and how the questions came to be.

`Provenance` is what a build, or a file of the user's, says of the making: steps with their counts, people,
sources with their licences, limits, and for each question who made what of it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Any

import pyarrow as pa

from counterfoil.data.benchmark import Card
from counterfoil.data.publishing.licences import Licence
from counterfoil.errors import DataError, InputError
from counterfoil.store import digest_value

#: The date of a data set of which none is known: the Croissant format asks for one.
UNKNOWN_DATE = "1970-01-01"
#: Columns of `rows` that say who made a column, from what, and with which seed.
MADE = ("_by", "_from", "_seed")


@dataclass(frozen=True)
class SourceOfData:
    """A data set that went into this one."""

    name: str
    licence: str = ""
    url: str = ""


@dataclass(frozen=True)
class StepOfMaking:
    """A step of a build: what it does, its settings, and how many rows went in, came out and were dropped."""

    name: str
    summary: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    rows_in: int | None = None
    rows_out: int | None = None
    #: Rows that went, by reason.
    dropped: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Provenance:
    """How the questions came to be, as far as it is known.

    `rows` is a table with the `id` of questions and, for any column X of the release, `X_by` (who made it),
    `X_from` (the question or row it was made from) and `X_seed`.
    """

    method: str = ""
    steps: tuple[StepOfMaking, ...] = ()
    people: tuple[str, ...] = ()
    sources: tuple[SourceOfData, ...] = ()
    limits: tuple[str, ...] = ()
    uses: tuple[str, ...] = ()
    rows: pa.Table | None = None

    @classmethod
    def of(cls, facts: object, *, where: object = "provenance") -> "Provenance":
        """From a plain mapping with these keys, all of which may be missing.

        `steps` and `sources` list mappings with the fields of `StepOfMaking` and `SourceOfData`; texts may
        stand alone where a list of texts is meant. Raises `DataError` for other keys and other types.

        >>> Provenance.of({"people": "two authors", "sources": [{"name": "COCO"}]}).sources[0].name
        'COCO'
        >>> Provenance.of({"poeple": "two authors"})
        Traceback (most recent call last):
        counterfoil.errors.DataError: provenance: unknown key; given: poeple; allowed: method, steps, ...
        """
        given = _checked(facts, cls, where)
        rows = given.get("rows")
        if rows is not None and not isinstance(rows, pa.Table):
            raise DataError("the rows are no table", where=f"{where}, rows", given=type(rows).__name__)
        method = given.get("method", "")
        if not isinstance(method, str):
            raise DataError("not a text", where=f"{where}, method", given=method)
        return cls(
            method,
            tuple(
                _step(entry, f"{where}, steps[{at}]")
                for at, entry in enumerate(_listed(given, "steps", where))
            ),
            _texts(given, "people", where),
            tuple(
                _source(entry, f"{where}, sources[{at}]")
                for at, entry in enumerate(_listed(given, "sources", where))
            ),
            _texts(given, "limits", where),
            _texts(given, "uses", where),
            None if rows is None else _checked_rows(rows, f"{where}, rows"),
        )


def _checked(given: object, kind: Any, where: object) -> Mapping[str, Any]:
    """The object, where it has the fields of a dataclass and no others."""
    names = [field_of_kind.name for field_of_kind in fields(kind)]
    if not isinstance(given, Mapping):
        raise DataError("not an object with named values", where=where, given=type(given).__name__)
    for key in given:
        if key not in names:
            raise DataError("unknown key", where=where, given=key, allowed=names)
    return given


def _listed(given: Mapping[str, Any], key: str, where: object) -> Sequence[Any]:
    entries = given.get(key, ())
    if isinstance(entries, str) or not isinstance(entries, Sequence):
        raise DataError("not a list", where=f"{where}, {key}", given=entries)
    return entries


def _texts(given: Mapping[str, Any], key: str, where: object) -> tuple[str, ...]:
    texts = given.get(key, ())
    texts = (texts,) if isinstance(texts, str) else texts
    if not isinstance(texts, Sequence) or not all(isinstance(text, str) for text in texts):
        raise DataError("not a list of texts", where=f"{where}, {key}", given=texts)
    return tuple(texts)


def _step(facts: object, where: str) -> StepOfMaking:
    given = _checked(facts, StepOfMaking, where)
    kinds = {
        "name": str,
        "summary": str,
        "settings": Mapping,
        "dropped": Mapping,
        "rows_in": int,
        "rows_out": int,
    }
    for key, value in given.items():
        if not isinstance(value, kinds[key]) or isinstance(value, bool):
            raise DataError("wrong type", where=f"{where}, {key}", given=value)
    if "name" not in given:
        raise DataError("a step without a name", where=where)
    if not all(isinstance(count, int) for count in given.get("dropped", {}).values()):
        raise DataError("counts are not whole numbers", where=f"{where}, dropped", given=given["dropped"])
    return StepOfMaking(**given)


def _source(facts: object, where: str) -> SourceOfData:
    if isinstance(facts, str):
        return SourceOfData(facts)
    given = _checked(facts, SourceOfData, where)
    if not given.get("name") or not all(isinstance(text, str) for text in given.values()):
        raise DataError("a source has a name, a licence and an address, all texts", where=where, given=given)
    return SourceOfData(**given)


def _checked_rows(rows: pa.Table, where: str) -> pa.Table:
    if "id" not in rows.column_names:
        raise DataError("no column 'id'", where=where, given=rows.column_names)
    columns_of_makers = [name for name in rows.column_names if name.endswith(MADE)]
    ids = rows.column("id").cast(pa.string())
    if len(ids.unique()) != len(ids) or ids.null_count:
        raise DataError("an id is missing or there twice", where=where)
    columns: dict[str, pa.ChunkedArray] = {"id": ids}
    for name in columns_of_makers:
        kind = pa.int64() if name.endswith("_seed") else pa.string()
        try:
            columns[name] = rows.column(name).cast(kind)
        except pa.ArrowException as error:
            raise DataError(f"not of type {kind}: {error}", where=f"{where}, column '{name}'") from None
    return pa.table(columns)


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What is said of a data set where it is published.

    `overridden` is why its licence would forbid publishing, where the user published it anyway.
    """

    licence: Licence
    #: OWNER/NAME of the data set on the hub; empty for a folder.
    repository: str = ""
    url: str = ""
    creators: tuple[str, ...] = ()
    date: str = ""
    version: str = "1.0.0"
    language: str = ""
    overridden: tuple[str, ...] = ()
    provenance: Provenance = Provenance()

    def __post_init__(self) -> None:
        if self.date:
            _check_date(self.date)
        if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", self.version):
            raise InputError("not a version", where="--release", given=self.version, allowed="such as 1.0.0")
        if self.language and not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", self.language):
            raise InputError("not a language", where="--language", given=self.language, allowed="such as en")
        if self.url and not re.fullmatch(r"https?://[^\s\"<>]+", self.url):
            raise InputError("not an address", where="--url", given=self.url, allowed="https://...")
        if not all(creator.strip() for creator in self.creators):
            raise InputError("a creator without a name", where="--creator")

    def date_of(self, card: Card) -> str:
        """When it was published: the date given; else the year of the card's citation, its first of January.

        `UNKNOWN_DATE` where neither is known, so that equal benchmarks give equal bytes.
        """
        years = re.findall(r"(?<!\d)(?:19|20)\d\d(?!\d)", card.citation)
        return self.date or (f"{years[-1]}-01-01" if years else UNKNOWN_DATE)

    def url_of(self, card: Card, name: str) -> str:
        """Its page: the one given, that on the hub, the benchmark's own; else a URN of its name."""
        hub = f"https://huggingface.co/datasets/{self.repository}" if self.repository else ""
        return self.url or hub or card.homepage or f"urn:counterfoil:{digest_value([name, card.title])}"

    def creators_of(self, card: Card) -> tuple[str, ...]:
        """Who made it: those given; else the citation, the owner on the hub, or authors without a name."""
        owner = self.repository.partition("/")[0]
        return self.creators or (card.citation or owner or f"the authors of {card.title or card.name}",)


def _check_date(text: str) -> None:
    try:
        parsed = date.fromisoformat(text)
    except ValueError:
        parsed = None
    if parsed is None or text != parsed.isoformat():
        raise InputError("not a date", where="--date", given=text, allowed="YYYY-MM-DD")
