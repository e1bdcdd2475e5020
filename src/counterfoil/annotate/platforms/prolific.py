"""Prolific without requests: submissions of a study, and what they mean for the campaign that it is of."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.annotate.campaign import RECIPE, Campaign
from counterfoil.annotate.platforms.registry import ProlificPlatform, campaign_platform
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
        """The submission in an answer."""
        person = entry.get("participant_id") or entry.get("participant")
        if not entry.get("id") or not person or not entry.get("status"):
            given = ", ".join(sorted(entry)) or "(empty)"
            raise InputError("an answer that is no submission", where="prolific", given=given)
        status = str(entry["status"])
        status = _STATUS_OF.get(re.sub("[^A-Z]", "", status.upper()), status)
        return cls(str(entry["id"]), str(person), status)


@dataclass(frozen=True)
class Rejection:
    """A submission to reject; what Prolific would refuse is refused before anything is sent."""

    submission: str
    message: str
    category: str

    def __post_init__(self) -> None:
        where, length = f"rejection of {self.submission}", len(self.message.strip())
        if length < SHORTEST:
            given, allowed = f"{length} characters", f"{SHORTEST} or more"
            hint = "tell the person what was wrong, with examples"
            raise InputError("the message is too short", where=where, given=given, allowed=allowed, hint=hint)
        if self.category not in CATEGORIES:
            given = self.category or "(empty)"
            raise InputError("unknown category", where=where, given=given, allowed=CATEGORIES)


@dataclass(frozen=True)
class Reconciled:
    """What a list of submissions means for a campaign.

    `free` are people whose place is free again, `strangers` people without a submission. `payable`,
    `rejected` and `unfinished` submissions wait for review; `unseen` ones are of people who never entered.
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
    """Submissions beside the people of a campaign and whether they are done; a place is free where all
    submissions of its person were given back.
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
    """The id of the campaign's study, which its recipe names."""
    recipe = campaign.recipe
    platform = campaign_platform(PROLIFIC, recipe.completion) if recipe.entry == PROLIFIC else None
    if not isinstance(platform, ProlificPlatform) or not platform.study:
        given = f"entry = {recipe.entry}, completion = {recipe.completion or '(empty)'}"
        hint = 'write entry = "prolific" and completion = "completed=CODE, study=ID" into it'
        where = campaign.folder / RECIPE
        raise InputError("no study on Prolific is named", where=where, given=given, hint=hint)
    return platform.study
