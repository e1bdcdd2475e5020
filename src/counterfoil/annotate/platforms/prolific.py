"""Prolific without requests: submissions of a study, and what they mean for the campaign that it is of.

A laptop has no public address that Prolific could report to, so submissions are listed now and then and
compared with what the campaign knows.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.annotate.campaign import RECIPE, Campaign
from counterfoil.annotate.platforms.links import ProlificPlatform
from counterfoil.annotate.platforms.registry import campaign_platform
from counterfoil.errors import InputError

#: States in which a person has given the place back, unpaid.
LEFT = frozenset({"RETURNED", "TIMED-OUT", "REJECTED"})
#: States by their letters: Prolific writes both TIMED-OUT and TIMED_OUT, AWAITING REVIEW and AWAITING_REVIEW.
_STATUS_OF = {
    re.sub("[^A-Z]", "", status): status
    for status in (*LEFT, "ACTIVE", "AWAITING REVIEW", "PARTIALLY APPROVED", "SCREENED OUT")
}
CATEGORIES = (
    *("TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK"),
    *("LOW_EFFORT", "MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
)
#: Characters of a rejection's message, at least.
SHORTEST = 100


@dataclass(frozen=True)
class ProlificSubmission:
    """One person's piece of a study."""

    id: str
    person: str
    status: str

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> "ProlificSubmission":
        """The submission in an answer; raises `InputError` where there is none."""
        person = entry.get("participant_id") or entry.get("participant")
        if not entry.get("id") or not person or not entry.get("status"):
            given = ", ".join(sorted(entry)) or "(empty)"
            raise InputError("an answer that is no submission", where="prolific", given=given)
        status = str(entry["status"])
        status = _STATUS_OF.get(re.sub("[^A-Z]", "", status.upper()), status)
        return cls(str(entry["id"]), str(person), status)


@dataclass(frozen=True)
class Rejection:
    """A submission to reject; Prolific refuses messages of fewer than 100 characters, so this does before
    anything is sent.
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
            given = self.category or "(empty)"
            raise InputError("unknown category", where=where, given=given, allowed=CATEGORIES)


@dataclass(frozen=True)
class Reconciled:
    """What a list of submissions means for a campaign.

    `free` are people whose place is free again; `payable`, `rejected` and `unfinished` submissions that wait
    for review, by what their person did here; `unseen` those of people who never entered. `strangers` are
    people of the campaign without a submission: those who typed a link.
    """

    free: tuple[str, ...]
    payable: tuple[ProlificSubmission, ...]
    rejected: tuple[Rejection, ...]
    unfinished: tuple[ProlificSubmission, ...]
    unseen: tuple[ProlificSubmission, ...]
    strangers: tuple[str, ...]


def reconcile(
    submissions: Sequence[ProlificSubmission],
    people: Mapping[str, bool],
    identify: Callable[[str], str] = str,
    rejected: Mapping[str, tuple[str, str]] = {},
) -> Reconciled:
    """Submissions beside the people of a campaign, by the campaign's ids, with whether they are done.

    A person may have several submissions: the place is free only where each of them was given back.
    """
    of_person: dict[str, list[ProlificSubmission]] = {}
    for submission in submissions:
        of_person.setdefault(identify(submission.person), []).append(submission)
    # Those that wait for review, by whether their person is done; None of a person who never entered.
    waiting: dict[bool | None, list[ProlificSubmission]] = {True: [], False: [], None: []}
    rejections: list[Rejection] = []
    for who, sent in of_person.items():
        for one in sent:
            if one.status == "AWAITING REVIEW" and who in rejected:
                rejections.append(Rejection(one.id, *rejected[who]))
            elif one.status == "AWAITING REVIEW":
                waiting[people.get(who)].append(one)
    left = {who for who, sent in of_person.items() if all(one.status in LEFT for one in sent)}
    return Reconciled(
        free=tuple(who for who, done in people.items() if not done and who in left),
        payable=tuple(waiting[True]),
        rejected=tuple(rejections),
        unfinished=tuple(waiting[False]),
        unseen=tuple(waiting[None]),
        strangers=tuple(who for who in people if who not in of_person),
    )


PROLIFIC = "prolific"


def study_of(campaign: Campaign) -> str:
    """The id of the campaign's study, which its recipe names; raises `InputError` where it names none."""
    recipe = campaign.recipe
    platform = campaign_platform(PROLIFIC, recipe.completion) if recipe.entry == PROLIFIC else None
    if not isinstance(platform, ProlificPlatform) or not platform.study:
        raise InputError(
            "no study on Prolific is named",
            where=campaign.folder / RECIPE,
            given=f"entry = {recipe.entry}, completion = {recipe.completion or '(empty)'}",
            hint='write entry = "prolific" and completion = "completed=CODE, study=ID" into it',
        )
    return platform.study
