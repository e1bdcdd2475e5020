"""Bonuses of a Prolific study, each set of them paid once, whatever happens in between.

Prolific pays a set again whenever it is asked again. So a note is written before the request that pays, and
taken for "may have been paid" until Prolific has answered. Notes hold no ids of people: a set is known by the
digest of its lines.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from pydantic import Field

from counterfoil.benchmarks.tables import labels, read_table
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import Stored, read_model
from counterfoil.store import csv_text, digest_value, write_json

if TYPE_CHECKING:
    from counterfoil.annotate.platforms.prolific_api import BonusBatch, ProlificClient

#: The file of notes in a campaign's folder.
NOTES = "prolific_bonuses.json"
#: In hundredths: no bonus is larger, so that a slip of the decimal point does not empty an account.
LARGEST = 20_000


class _Noted(Stored):
    """A set of bonuses: the batch at Prolific, its total in hundredths, and how far it got."""

    batch: str
    total: int
    state: Literal["paying", "paid"]


class _Notes(Stored):
    sets: dict[str, _Noted] = Field(default_factory=dict)


@dataclass(frozen=True)
class BonusNotes:
    """The notes in a folder, of one study and of rounds with names of their own."""

    folder: Path
    study: str

    def key(self, bonuses: Mapping[str, int], round_name: str = "") -> str:
        """The digest by which a set is known."""
        return digest_value({"study": self.study, "bonuses": dict(bonuses), "round": round_name})

    def state(self, key: str) -> str:
        """ "" for a set that was never paid, "paying" where it may have been, "paid"."""
        bonus_set = self._read().sets.get(key)
        return "" if bonus_set is None else bonus_set.state

    def note(self, key: str, batch: "BonusBatch", state: Literal["paying", "paid", ""]) -> None:
        """Write down how far a set got, or with the state "" that it was not paid."""
        sets = self._read().model_dump()["sets"]
        sets[key] = {"batch": batch.id, "total": batch.total, "state": state}
        if not state:
            del sets[key]
        write_json(self.folder / NOTES, {"sets": sets})

    def _read(self) -> _Notes:
        path = self.folder / NOTES
        return read_model(path, _Notes) if path.exists() else _Notes()


def read_bonuses(path: Path) -> dict[str, int]:
    """Bonuses in hundredths by participant, from a table with columns `person` and `amount`.

    Raises `DataError` naming the row of a person who is there twice, and of an amount that is no money.
    """
    table = read_table(path)
    people = labels(table, "person")
    bonuses: dict[str, int] = {}
    for row, (person, cell) in enumerate(zip(people, table["amount"], strict=True)):
        person = csv_text(person)
        if not person or person in bonuses:
            what = "empty" if not person else "occurs twice"
            raise DataError(what, where=table.where(row, "person"), given=person or None)
        try:
            hundredths = Decimal(str(cell).strip()) * 100
            whole = int(hundredths) if hundredths.is_finite() else -1
        except InvalidOperation:
            whole, hundredths = -1, Decimal(0)
        if not 1 <= whole <= LARGEST or whole != hundredths:
            raise DataError(
                "no bonus",
                where=table.where(row, "amount"),
                given=cell,
                allowed=f"0.01 to {LARGEST / 100:.2f}, in the account's currency",
            )
        bonuses[person] = whole
    return bonuses


def set_up(
    client: "ProlificClient", notes: BonusNotes, bonuses: Mapping[str, int], round_name: str = ""
) -> "BonusBatch | None":
    """The set at Prolific, ready to be paid; None where it was paid before.

    Raises `InputError` for a person without a submission of the study, and where the set may have been paid.
    """
    state = notes.state(notes.key(bonuses, round_name))
    if state == "paid":
        return None
    if state == "paying":
        raise InputError(
            "these bonuses may have been paid: the command that paid them was cut off",
            where=notes.folder / NOTES,
            hint=f"look at study {notes.study} on Prolific; pay again as another --round, or not at all",
        )
    known = {submission.person for submission in client.submissions(notes.study)}
    strange = next((person for person in bonuses if person not in known), None)
    if strange is not None:
        where = f"prolific, study {notes.study}"
        raise InputError("has no submission of the study", where=where, given=strange)
    return client.set_up_bonuses(notes.study, bonuses)


def pay(
    client: "ProlificClient",
    notes: BonusNotes,
    bonuses: Mapping[str, int],
    batch: "BonusBatch",
    round_name: str = "",
) -> None:
    """Pay a set that was set up.

    Where Prolific refuses, the set is as if it had never been paid; where it is not known whether the request
    arrived, the note that it may have been paid stays.
    """
    from counterfoil.annotate.platforms.prolific_api import UnsureRequestError

    key = notes.key(bonuses, round_name)
    notes.note(key, batch, "paying")
    try:
        client.pay_bonuses(batch)
    except UnsureRequestError:
        raise
    except InputError:
        notes.note(key, batch, "")
        raise
    notes.note(key, batch, "paid")
