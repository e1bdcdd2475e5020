"""Prolific without requests: a study, its submissions, and the campaign that it is made for.

Prolific counts money in hundredths of the currency of the researcher's account and time in whole minutes.
Fields that it has retired (`completion_code`, `failed_attention_code`, `completion_option`,
`eligibility_requirements`) are not sent; it refuses studies that have them.

A laptop has no public address that Prolific could report to, so submissions are listed now and then and
compared with what the campaign knows.
"""

import math
import re
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.annotate.campaign import RECIPE, Campaign
from counterfoil.annotate.platforms.base import OUTCOMES, Outcome
from counterfoil.annotate.platforms.links import ProlificPlatform
from counterfoil.annotate.platforms.registry import campaign_platform
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import setting
from counterfoil.inputs.files import Stored, read_model, read_text
from counterfoil.inputs.limits import most
from counterfoil.store import digest_value, write_text

#: What Prolific calls the codes of outcomes.
_CODE_TYPES: Mapping[Outcome, str] = {
    "completed": "COMPLETED",
    "screened_out": "OTHER",
    "failed_checks": "FAILED_ATTENTION_CHECK",
    "no_consent": "NO_CONSENT",
}


@dataclass(frozen=True, kw_only=True)
class StudyChoices:
    """What a researcher decides of a study; None where it follows from the campaign."""

    address: str
    places: int | None = setting(
        None, "People to recruit. Default: as many as the campaign needs.", low=1, high=most("people")
    )
    minutes: int | None = setting(None, "Usual time per person. Default: from the form.", low=1, high=1440)


@dataclass(frozen=True, kw_only=True)
class StudyPlan(StudyChoices):
    """The facts of a study; `address` is where its people enter, over https, without parameters.

    `codes` are completion codes by outcome, that of `completed` among them. All submissions wait for review.
    Raises `InputError` naming the fact that cannot be.
    """

    name: str
    description: str
    codes: Mapping[Outcome, str]
    places: int
    minutes: int
    pay_per_hour: float

    def __post_init__(self) -> None:
        minutes, pay, codes = self.minutes, self.pay_per_hour, [*self.codes.values()]
        names = ", ".join(self.codes) or "none"
        for fact, holds, given, allowed in (
            ("name", self.name.strip(), "(empty)", "a text"),
            ("places", self.places >= 1, self.places, "1 or more"),
            ("minutes", 1 <= minutes <= 1440, minutes, "1 to 1,440, the usual time for one person's work"),
            ("pay per hour", 0 < pay < 10_000, pay, "above 0, in the account's currency"),
            ("codes", "completed" in self.codes, names, "a code of completed work at least"),
            ("codes", len({*codes}) == len(codes), ", ".join(codes), "a different code for each outcome"),
        ):
            if not holds:
                what, where = "no study can be made so", f"prolific, {fact}"
                raise InputError(what, where=where, given=given, allowed=allowed)
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
        return str(self.payload()["internal_name"])

    def payload(self) -> dict[str, Any]:
        """The body of the request that makes the draft."""
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
                    "actions": [{"action": "MANUALLY_REVIEW"}],
                }
                for outcome, code in self.codes.items()
            ],
            "total_available_places": self.places,
            "estimated_completion_time": self.minutes,
            "reward": self.reward,
            "device_compatibility": ["desktop", "tablet", "mobile"],
        }
        named = {name: fact for name, fact in facts.items() if name != "total_available_places"}
        return {**facts, "internal_name": f"counterfoil-{digest_value(named)[:16]}"}


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
#: States by their letters: Prolific writes both TIMED-OUT and TIMED_OUT, AWAITING REVIEW and AWAITING_REVIEW.
_STATUS_OF = {re.sub("[^A-Z]", "", status): status for status in STATUSES}
CATEGORIES = (
    *("TOO_QUICKLY", "TOO_SLOWLY", "FAILED_INSTRUCTIONS", "INCOMP_LONGITUDINAL", "FAILED_CHECK"),
    *("LOW_EFFORT", "MALINGERING", "NO_CODE", "BAD_CODE", "NO_DATA", "UNSUPP_DEVICE", "OTHER"),
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
            _STATUS_OF.get(re.sub("[^A-Z]", "", str(entry["status"]).upper()), str(entry["status"])),
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
    `payable` submissions that wait for review and whose person is done; `rejected` those that wait though
    their person's work was rejected; `unfinished` those whose person is not done; `unseen` those of people
    who never entered. `strangers` are people of the campaign who have no submission: those who typed a link.
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

    `identify` gives that id for one of Prolific's; `rejected` has message and category of rejected work. A
    person may have several submissions: the place is free only where each of them was given back, and not
    where the person is done.

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
    rejections: list[Rejection] = []
    for who, theirs in of_person.items():
        for one in theirs:
            if one.status == "AWAITING REVIEW" and who in rejected:
                rejections.append(Rejection(one.id, *rejected[who]))
            elif one.status == "AWAITING REVIEW":
                waiting[people.get(who)].append(one)
    left = {who for who, theirs in of_person.items() if all(one.status in LEFT for one in theirs)}
    return Reconciled(
        free=tuple(who for who, done in people.items() if not done and who in left),
        payable=tuple(waiting[True]),
        rejected=tuple(rejections),
        unfinished=tuple(waiting[False]),
        unseen=tuple(waiting[None]),
        strangers=tuple(who for who in people if who not in of_person),
    )


#: The file in a campaign's folder that says which study is its own.
STUDY = "prolific.json"
PROLIFIC = "prolific"


class _StudyOf(Stored):
    study: str
    campaign: str


def plan_of(campaign: Campaign, choices: StudyChoices, codes: Mapping[Outcome, str]) -> StudyPlan:
    """The study for a campaign, with completion codes by outcome.

    By default there are as many places as people are needed for all answers, and as many minutes as the form
    takes for what one of them does.
    """
    recipe = campaign.recipe
    work = sum(item.role == "work" for item in campaign.items)
    per_person = min(recipe.per_person or work, work)
    golden = recipe.golden_per_block if recipe.design == "blocks" else round(per_person * recipe.golden_share)
    usual = math.ceil((per_person + recipe.onboarding) * campaign.form.seconds / 60)
    minutes, pay = choices.minutes or max(1, usual), campaign.pay
    # Prolific is told what a person's items cost, by the minutes that it is told.
    price = pay.per_item * (per_person + recipe.onboarding)
    summary = campaign.form.summary
    facts: dict[str, Any] = {
        "description": f"{summary[:1].upper()}{summary[1:]}.",
        "address": choices.address.rstrip("/") + "/enter",
        "places": choices.places or math.ceil(work * recipe.overlap / max(1, per_person - golden)),
        "minutes": minutes,
        "pay_per_hour": 60 * price / minutes if pay.by_item else pay.per_hour,
    }
    return StudyPlan(name=recipe.title, codes=codes, **{**vars(choices), **facts})


def codes_of(campaign: Campaign) -> Mapping[Outcome, str]:
    """The completion codes of a campaign by outcome; none where its recipe has no completion.

    Raises `InputError` where people enter the campaign another way.
    """
    recipe = campaign.recipe
    if recipe.entry != PROLIFIC:
        raise InputError(
            "people enter this campaign another way",
            where=campaign.folder / RECIPE,
            given=f"entry = {recipe.entry}",
            hint=f'write entry = "{PROLIFIC}" into it',
        )
    platform = campaign_platform(recipe.entry, recipe.completion)
    return platform.codes if isinstance(platform, ProlificPlatform) else {}


def new_codes() -> dict[Outcome, str]:
    """A completion code for every outcome, which cannot be guessed."""
    # Codes are typed by people now and then: no letters or digits that look alike.
    letters = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
    return {outcome: "".join(secrets.choice(letters) for _ in range(8)) for outcome in OUTCOMES}


def write_codes(campaign: Campaign, codes: Mapping[Outcome, str]) -> None:
    """Write completion codes into the recipe of a campaign, which is otherwise left as it is."""
    text = ", ".join(f"{outcome}={code}" for outcome, code in codes.items())
    path = campaign.folder / RECIPE
    line, before = f'completion = "{text}"', read_text(path)
    after, count = re.subn(r'^completion[ \t]*=[ \t]*"[^"\n]*"', line, before, count=1, flags=re.MULTILINE)
    write_text(path, after if count else f"{line}\n{before}")


def read_study(campaign: Campaign) -> str:
    """The campaign's study; raises `DataError` where it has none yet, or one of other items or questions."""
    path = campaign.folder / STUDY
    if not path.exists():
        raise DataError(
            "no study on Prolific yet",
            where=campaign.folder,
            hint=f"make one with: counterfoil annotate prolific create {campaign.folder} --url https://...",
        )
    note = read_model(path, _StudyOf)
    if note.campaign != campaign.digest:
        raise DataError(
            "the study was made when the campaign had other items or questions",
            where=path,
            given=note.study,
            hint="look after it on Prolific, and make another for this campaign: remove the file first",
        )
    return note.study
