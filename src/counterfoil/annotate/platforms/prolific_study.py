"""A study on Prolific: the facts it is made of, what it pays, the state it is in, and its submissions.

Prolific counts money in hundredths of the currency of the researcher's account and time in whole minutes.
Fields that it has retired (`completion_code`, `failed_attention_code`, `completion_option`,
`eligibility_requirements`) are not sent; it refuses studies that have them.

A laptop has no public address that Prolific could report to, so submissions are listed now and then and
compared with what the campaign knows.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.annotate.platforms.base import Outcome
from counterfoil.annotate.platforms.links import ProlificPlatform
from counterfoil.errors import InputError
from counterfoil.inputs.fields import setting
from counterfoil.inputs.limits import most
from counterfoil.store import digest_value

#: What Prolific calls the codes of outcomes.
_CODE_TYPES: Mapping[Outcome, str] = {
    "completed": "COMPLETED",
    "screened_out": "OTHER",
    "failed_checks": "FAILED_ATTENTION_CHECK",
    "no_consent": "NO_CONSENT",
}
DEVICES = ("desktop", "tablet", "mobile")


@dataclass(frozen=True, kw_only=True)
class StudyChoices:
    """What a researcher decides of a study; None where it follows from the campaign."""

    address: str
    places: int | None = setting(
        None, "People to recruit. Default: as the campaign needs.", low=1, high=most("people")
    )
    minutes: int | None = setting(None, "Usual time per person. Default: from the form.", low=1, high=1440)
    description: str | None = setting(None, "What people read of the study.")
    approve: bool = setting(False, "Let Prolific approve completed work by itself.")
    project: str = setting("", "Project of Prolific that it is put into.", metavar="ID")
    devices: tuple[str, ...] = setting(
        DEVICES, "desktop, tablet or mobile; all by default. May be given several times.", flag="--device"
    )
    filters: tuple[Mapping[str, Any], ...] = ()
    filter_set: str = setting("", "A filter set of Prolific.", metavar="ID")


@dataclass(frozen=True, kw_only=True)
class StudyPlan(StudyChoices):
    """The facts of a study; `address` is where its people enter, over https, without parameters.

    `codes` are completion codes by outcome, that of `completed` among them. Prolific itself approves
    submissions that were completed where `approve` is set; all others wait for review. `filters` are
    Prolific's own, sent as they are; `filter_set` names a set that is stored there. Of one that is `signed`
    Prolific signs the parameters.
    Raises `InputError` naming the fact that cannot be.
    """

    name: str
    description: str
    codes: Mapping[Outcome, str]
    places: int
    minutes: int
    pay_per_hour: float
    signed: bool = False

    def __post_init__(self) -> None:
        for name in ("name", "description"):
            if not getattr(self, name).strip():
                self._refuse(name, "(empty)", "a text")
        if self.places < 1:
            self._refuse("places", self.places, "1 or more")
        if not 1 <= self.minutes <= 24 * 60:
            self._refuse("minutes", self.minutes, "1 to 1,440, the usual time for one person's work")
        if not 0 < self.pay_per_hour < 10_000:
            self._refuse("pay per hour", self.pay_per_hour, "above 0, in the account's currency")
        if "completed" not in self.codes:
            self._refuse("codes", ", ".join(self.codes) or "none", "a code of completed work at least")
        if len(set(self.codes.values())) < len(self.codes):
            self._refuse("codes", ", ".join(self.codes.values()), "a different code for each outcome")
        if not self.devices or not set(self.devices) <= set(DEVICES):
            self._refuse("devices", ", ".join(self.devices) or "none", ", ".join(DEVICES))
        if self.filters and self.filter_set:
            self._refuse("filters", "filters and a set of them", "one of the two")
        ProlificPlatform().entry(self.address)

    @property
    def reward(self) -> int:
        """Pay of one submission in hundredths, rounded up.

        >>> plan = StudyPlan(name="n", description="d", address="https://example.org/enter", places=3,
        ...                  codes={"completed": "C1"}, minutes=7, pay_per_hour=12.5)
        >>> plan.reward
        146
        """
        # Rounded first, so that 0.07 x 100 is 7 and not 8.
        return math.ceil(round(100 * self.pay_per_hour * self.minutes / 60, 6))

    @property
    def internal_name(self) -> str:
        """A name that only this plan has, whatever its number of places: those may grow later."""
        facts = self.payload_facts()
        facts.pop("total_available_places")
        return f"counterfoil-{digest_value(facts)[:16]}"

    def payload(self) -> dict[str, Any]:
        """The body of the request that makes the draft."""
        return {**self.payload_facts(), "internal_name": self.internal_name}

    def payload_facts(self) -> dict[str, Any]:
        """The body without the name that is made of it."""
        approve = "AUTOMATICALLY_APPROVE" if self.approve else "MANUALLY_REVIEW"
        facts: dict[str, Any] = {
            "name": self.name.strip(),
            "description": self.description.strip(),
            "external_study_url": ProlificPlatform().entry(self.address),
            "prolific_id_option": "url_parameters",
            "completion_codes": [
                {
                    "code": code,
                    "code_type": _CODE_TYPES[outcome],
                    "actor": "participant",
                    "actions": [{"action": approve if outcome == "completed" else "MANUALLY_REVIEW"}],
                }
                for outcome, code in self.codes.items()
            ],
            "total_available_places": self.places,
            "estimated_completion_time": self.minutes,
            "reward": self.reward,
            "device_compatibility": list(self.devices),
        }
        if self.signed:
            facts["is_external_study_url_secure"] = True
        if self.project:
            facts["project"] = self.project
        if self.filter_set:
            facts["filter_set_id"] = self.filter_set
        elif self.filters:
            facts["filters"] = [dict(chosen) for chosen in self.filters]
        return facts

    def _refuse(self, fact: str, given: object, allowed: str) -> None:
        raise InputError("no study can be made so", where=f"prolific, {fact}", given=given, allowed=allowed)


@dataclass(frozen=True)
class ProlificStudy:
    """A study as Prolific has it: its state, its places, the pay of one of them in hundredths."""

    id: str
    name: str
    status: str
    places: int
    taken: int
    reward: int

    @classmethod
    def read(cls, entry: Mapping[str, Any]) -> "ProlificStudy":
        """The study in an answer; raises `InputError` where there is none."""
        try:
            study = str(entry["id"]), str(entry.get("name", "")), str(entry["status"])
            places, taken = int(entry["total_available_places"]), int(entry.get("places_taken") or 0)
            return cls(*study, places, taken, round(float(entry.get("reward") or 0)))
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(
                "an answer that is no study", where="prolific", given=f"{type(error).__name__}: {error}"
            ) from None


#: States in which a person has given the place back, unpaid.
LEFT = frozenset({"RETURNED", "TIMED-OUT", "REJECTED"})
#: All states; PROCESSING is a moment between two of them.
STATUSES = frozenset(
    {"RESERVED", "ACTIVE", "AWAITING REVIEW", "APPROVED", "PARTIALLY APPROVED", "SCREENED OUT", "PROCESSING"}
    | LEFT
)
CATEGORIES = (
    *(
        "TOO_QUICKLY",
        "TOO_SLOWLY",
        "FAILED_INSTRUCTIONS",
        "INCOMP_LONGITUDINAL",
        "FAILED_CHECK",
        "LOW_EFFORT",
    ),
    *("MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
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
            given = ", ".join(sorted(entry)) or "(empty)"
            raise InputError("an answer that is no submission", where="prolific", given=given)
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
            given = self.category or "(empty)"
            raise InputError("unknown category", where=where, given=given, allowed=CATEGORIES)


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
