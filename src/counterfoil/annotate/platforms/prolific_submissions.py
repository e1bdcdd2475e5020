"""Submissions of a Prolific study beside the people of the campaign: who is to be paid, whose place is free.

A laptop has no public address that Prolific could report to, so submissions are listed now and then and
compared with what the campaign knows.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.errors import InputError

#: States in which a person has given the place back, unpaid.
LEFT = frozenset({"RETURNED", "TIMED-OUT", "REJECTED"})
#: All states; PROCESSING is a moment between two of them.
STATUSES = frozenset(
    {"RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED", "SCREENED OUT", "PROCESSING"}
    | LEFT
)
CATEGORIES = (
    "TOO_QUICKLY",
    "TOO_SLOWLY",
    "FAILED_INSTRUCTIONS",
    "INCOMP_LONGITUDINAL",
    "FAILED_CHECK",
    "LOW_EFFORT",
    "MALINGERING",
    "NO_CODE",
    "BAD_CODE",
    "NO_DATA",
    "UNSUPP_DEVICE",
    "OTHER",
)
#: Characters of a rejection's message, at least.
SHORTEST = 100


@dataclass(frozen=True)
class ProlificSubmission:
    """One person's piece of a study: its state, the code that was handed in, the seconds that it took."""

    id: str
    person: str
    status: str
    code: str = ""
    seconds: float | None = None

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> "ProlificSubmission":
        """The submission in an answer; raises `InputError` where there is none."""
        person = entry.get("participant_id") or entry.get("participant")
        if not entry.get("id") or not person or not entry.get("status"):
            raise InputError(
                "an answer that is no submission",
                where="prolific",
                given=", ".join(sorted(entry)) or "(empty)",
            )
        taken = entry.get("time_taken")
        return cls(
            str(entry["id"]),
            str(person),
            # Prolific writes both TIMED-OUT and TIMED_OUT, AWAITING REVIEW and AWAITING_REVIEW.
            _STATUS_OF.get(_letters(str(entry["status"])), str(entry["status"])),
            str(entry.get("study_code") or entry.get("entered_code") or ""),
            float(taken) if isinstance(taken, int | float) else None,
        )


@dataclass(frozen=True)
class Rejection:
    """A submission to reject, with the message to the person and the category that sum it up.

    Prolific refuses messages of fewer than 100 characters; so does this, before anything is sent.

    >>> Rejection("61b", "Too fast.", "TOO_QUICKLY")
    Traceback (most recent call last):
    counterfoil.errors.InputError: rejection of 61b: the message is too short; given: 9 characters; ...
    """

    submission: str
    message: str
    category: str

    def __post_init__(self) -> None:
        where = f"rejection of {self.submission}"
        length = len(self.message.strip())
        if length < SHORTEST:
            raise InputError(
                "the message is too short",
                where=where,
                given=f"{length} characters",
                allowed=f"{SHORTEST} or more",
                hint="tell the person what was wrong, with examples",
            )
        if self.category not in CATEGORIES:
            raise InputError(
                "unknown category", where=where, given=self.category or "(empty)", allowed=CATEGORIES
            )


@dataclass(frozen=True)
class Reconciled:
    """What a list of submissions means for a campaign.

    `free` are people of the campaign whose place is free again, so that their open items go to others;
    `payable` submissions that wait for review and whose person is done; `unfinished` those that wait though
    their person is not; `unseen` those that wait of people who never entered. `strangers` are people of the
    campaign who have no submission: those who typed a link.
    """

    free: tuple[str, ...]
    payable: tuple[ProlificSubmission, ...]
    unfinished: tuple[ProlificSubmission, ...]
    unseen: tuple[ProlificSubmission, ...]
    strangers: tuple[str, ...]


def reconcile(
    submissions: Sequence[ProlificSubmission],
    people: Mapping[str, bool],
    identify: Callable[[str], str] = str,
) -> Reconciled:
    """Submissions beside the people of a campaign, by the campaign's ids, with whether they are done.

    `identify` gives that id for one of Prolific's. A person may have several submissions: the place is free
    only where each of them was given back, and not where the person is done.

    >>> made = [ProlificSubmission("s1", "p", "RETURNED"), ProlificSubmission("s2", "q", "AWAITING REVIEW")]
    >>> found = reconcile(made, {"p": False, "q": True, "r": False})
    >>> found.free, [each.id for each in found.payable], found.strangers
    (('p',), ['s2'], ('r',))
    """
    of_person: dict[str, list[ProlificSubmission]] = {}
    for submission in submissions:
        of_person.setdefault(identify(submission.person), []).append(submission)
    # Those that wait for review, by whether their person is done; None of a person who never entered.
    waiting: dict[bool | None, list[ProlificSubmission]] = {True: [], False: [], None: []}
    for who, theirs in of_person.items():
        waiting[people.get(who)] += [one for one in theirs if one.status == "AWAITING REVIEW"]
    left = {who for who, theirs in of_person.items() if all(one.status in LEFT for one in theirs)}
    return Reconciled(
        free=tuple(who for who, done in people.items() if not done and who in left),
        payable=tuple(waiting[True]),
        unfinished=tuple(waiting[False]),
        unseen=tuple(waiting[None]),
        strangers=tuple(who for who in people if who not in of_person),
    )


def _letters(status: str) -> str:
    return "".join(c for c in status.upper() if c.isalpha())


_STATUS_OF = {_letters(status): status for status in STATUSES}
