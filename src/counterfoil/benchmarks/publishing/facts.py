"""Facts of a publication: licences and what they ask, names, dates, and how the questions came to be."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from difflib import get_close_matches
from typing import Annotated, Any

import pyarrow as pa
from pydantic import BaseModel, BeforeValidator, Field, StrictInt

from counterfoil.benchmarks.benchmark import Card
from counterfoil.benchmarks.readers.own import OWN_TABLES
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import check_model


@dataclass(frozen=True)
class Licence:
    """A licence by its SPDX identifier, or by its address where SPDX has none for it."""

    spdx: str
    hub: str
    commercial: bool = True
    derived: bool = True
    same: bool = False
    address: str = ""

    @property
    def url(self) -> str:
        """Where it can be read."""
        return self.address or f"https://spdx.org/licenses/{self.spdx}"


#: Those that the hub does not call by the identifier in lower case, and those that what is derived keeps.
_HUB = {"GPL-3.0-only": "gpl-3.0", "ODbL-1.0": "odbl", "ODC-By-1.0": "odc-by", "PDDL-1.0": "pddl"}
_SAME = ("-SA-", "GPL-3.0-only", "ODbL-1.0", "CDLA-Sharing-1.0")
_CREATIVE = ("BY", "BY-SA", "BY-NC", "BY-ND", "BY-NC-SA", "BY-NC-ND")

#: The licences that are known, by SPDX identifier: those that data sets of this field have.
LICENCES: Mapping[str, Licence] = {
    spdx: Licence(
        spdx,
        hub=_HUB.get(spdx, spdx.lower()),
        commercial="-NC" not in spdx,
        derived="-ND" not in spdx,
        same=any(mark in spdx for mark in _SAME),
    )
    for spdx in (
        *(f"CC-{parts}-{version}" for version in ("4.0", "3.0", "2.0") for parts in _CREATIVE),
        *("CC0-1.0", "MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "GPL-3.0-only", "ODbL-1.0"),
        *("ODC-By-1.0", "PDDL-1.0", "CDLA-Permissive-2.0", "CDLA-Sharing-1.0", "Unlicense"),
    )
}


def find(name: str) -> Licence:
    """The licence with this SPDX identifier, whatever the case; or the one at an address (https://...)."""
    if re.fullmatch(r"https?://[^\s\"<>]+", name):
        return Licence("", "other", address=name)
    by_lower_case = {spdx.lower(): spdx for spdx in LICENCES}
    if name.lower() in by_lower_case:
        return LICENCES[by_lower_case[name.lower()]]
    near = get_close_matches(name.lower(), by_lower_case, n=1)
    hint = f"did you mean '{by_lower_case[near[0]]}'?" if near else "an address of its text will do, too"
    raise InputError("unknown licence", given=name or "(empty)", allowed=list(LICENCES), hint=hint)


def stated(words: str) -> Licence | None:
    """The first licence that a card's words name, None where they name none that is known."""
    positions = []
    for name, licence in LICENCES.items():
        words_of = "[- ]".join(map(re.escape, name.split("-")))
        match = re.search(rf"(?<![\w.-]){words_of}(?![\w-]|\.\d)", words, re.IGNORECASE)
        if match:
            positions.append((match.start(), licence))
    return min(positions, key=lambda place: place[0])[1] if positions else None


def conflicts(licence: Licence, card: Card) -> list[str]:
    """Why a benchmark of this card may not be passed on under the licence; empty where nothing forbids it."""
    reasons = []
    under = f" ({card.licence})" if card.licence else ""
    if not card.redistributable:
        reasons.append(f"the licence of {card.title or card.name} does not let it be passed on{under}")
    source = stated(card.licence)
    if source is None or source.spdx == licence.spdx:
        return reasons
    if not source.commercial and licence.commercial and licence.spdx:
        reasons.append(f"{source.spdx} forbids commercial use, which {licence.spdx} allows")
    if not source.derived:
        reasons.append(f"{source.spdx} forbids changed versions, so that it cannot become {licence.spdx}")
    elif source.same and licence.spdx:
        reasons.append(f"{source.spdx} asks for the same licence, not {licence.spdx}")
    return reasons


#: The date of a data set of which none is known: the Croissant format asks for one.
UNKNOWN_DATE = "1970-01-01"
#: Columns of `rows` that say who made a column, from what, and with which seed.
ORIGIN = ("_by", "_from", "_seed")


class SourceOfData(BaseModel, frozen=True, extra="forbid"):
    """A data set that went into this one."""

    name: Annotated[str, Field(min_length=1)]
    licence: str = ""
    url: str = ""


class StepOfMaking(BaseModel, frozen=True, extra="forbid"):
    """A step of a build: what it does, its settings, and how many rows went in, came out and were dropped."""

    name: str
    summary: str = ""
    settings: Mapping[str, Any] = Field(default_factory=dict)
    rows_in: StrictInt | None = None
    rows_out: StrictInt | None = None
    #: Rows that went, by reason.
    dropped: Mapping[str, StrictInt] = Field(default_factory=dict)


_Texts = Annotated[tuple[str, ...], BeforeValidator(lambda it: (it,) if isinstance(it, str) else it)]
_Source = Annotated[SourceOfData, BeforeValidator(lambda it: {"name": it} if isinstance(it, str) else it)]


class Provenance(BaseModel, frozen=True, extra="forbid", arbitrary_types_allowed=True):
    """How the questions came to be, as far as it is known.

    `rows` is a table with the `id` of questions and, for any column X of the release, `X_by` (who made it),
    `X_from` (the question or row it was made from) and `X_seed`.
    """

    method: str = ""
    steps: tuple[StepOfMaking, ...] = ()
    people: _Texts = ()
    sources: tuple[_Source, ...] = ()
    limits: _Texts = ()
    uses: _Texts = ()
    rows: pa.Table | None = None

    @classmethod
    def of(cls, facts: object, *, where: object = "provenance") -> "Provenance":
        """From a plain mapping with these keys, all of which may be missing; one text will do for a list."""
        unknown = [key for key in facts if key not in cls.model_fields] if isinstance(facts, Mapping) else []
        if unknown:
            raise DataError("unknown key", where=where, given=unknown[0], allowed=list(cls.model_fields))
        checked = check_model(facts, cls, where=where, hint=None)
        rows = checked.rows
        if rows is None:
            return checked
        place = f"{where}, rows"
        if "id" not in rows.column_names:
            raise DataError("no column 'id'", where=place, given=rows.column_names)
        ids = rows.column("id").cast(pa.string())
        if len(ids.unique()) != len(ids) or ids.null_count:
            raise DataError("an id is missing or there twice", where=place)
        columns: dict[str, pa.ChunkedArray] = {"id": ids}
        for name in (name for name in rows.column_names if name.endswith(ORIGIN)):
            kind = pa.int64() if name.endswith("_seed") else pa.string()
            try:
                columns[name] = rows.column(name).cast(kind)
            except pa.ArrowException as error:
                what = f"not of type {kind}: {error}"
                raise DataError(what, where=f"{place}, column '{name}'") from None
        return checked.model_copy(update={"rows": pa.table(columns)})


@dataclass(frozen=True, kw_only=True)
class Publication:
    """What is said of a data set where it is published."""

    licence: Licence
    url: str = ""
    creators: tuple[str, ...] = ()
    date: str = ""
    version: str = "1.0.0"
    language: str = ""
    overridden: tuple[str, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)

    def __post_init__(self) -> None:
        if self.date:
            try:
                plain = date.fromisoformat(self.date).isoformat()
            except ValueError:
                plain = ""
            if self.date != plain:
                raise InputError("not a date", where="--date", given=self.date, allowed="YYYY-MM-DD")
        if not re.fullmatch(r"(0|[1-9]\d*)(\.(0|[1-9]\d*)){2}", self.version):
            raise InputError("not a version", where="--release", given=self.version, allowed="such as 1.0.0")
        if self.language and not re.fullmatch(r"[a-z]{2,3}(-[A-Za-z0-9]{2,8})*", self.language):
            raise InputError("not a language", where="--language", given=self.language, allowed="such as en")
        if self.url and not re.fullmatch(r"https?://[^\s\"<>]+", self.url):
            raise InputError("not an address", where="--url", given=self.url, allowed="https://...")
        if not all(creator.strip() for creator in self.creators):
            raise InputError("a creator without a name", where="--creator")

    def date_of(self, card: Card) -> str:
        """When it was published: the date given; else January 1 of the year of the card's citation."""
        years = re.findall(r"(?<!\d)(?:19|20)\d\d(?!\d)", card.citation)
        return self.date or (f"{years[-1]}-01-01" if years else UNKNOWN_DATE)

    def creators_of(self, card: Card) -> tuple[str, ...]:
        """Who made it: those given; else the citation, or authors without a name."""
        return self.creators or (card.citation or f"the authors of {card.title or card.name}",)

    def limits(self, card: Card) -> tuple[str, ...]:
        """The limits that are stated, and those of the card: of one's own table they say how it is read."""
        return (*(() if card.name in OWN_TABLES else card.pitfalls), *self.provenance.limits)
