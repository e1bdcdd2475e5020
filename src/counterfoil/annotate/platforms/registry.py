"""Platforms by name, those of other packages (entry points `counterfoil.platforms`) among them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from counterfoil.annotate.platforms.base import (
    Coded,
    Leave,
    Outcome,
    Platform,
    Visit,
    check_address,
    filled,
    parameter,
    with_parameters,
)
from counterfoil.errors import InputError
from counterfoil.inputs.fields import values_of
from counterfoil.registry import Registry, resolve

#: Ways into a campaign that are no platform's.
OWN_ENTRIES = ("link", "open")


#: Where a completion code ends a submission of Prolific, and the parameters of its links.
COMPLETE = "https://app.prolific.com/submissions/complete?cc={code}"
_PARAMETERS = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")


@dataclass(frozen=True)
class LinkPlatform(Coded):
    """People enter by `?person=...` and go to `done`, an address with `{code}` or `{person}` in it.

    `person`, `study` and `submission` are the parameters' names. `person_placeholder` is what the platform
    replaces by an id. A person who does not consent goes to `done` only where there is a code for that.
    """

    name: str = "panel"
    person: str = "person"
    study: str | None = None
    submission: str | None = None
    person_placeholder: str | None = None
    done: str | None = None

    def __post_init__(self) -> None:
        names = [name for name in (self.person, self.study, self.submission) if name]
        if len(set(names)) < len(names):
            raise InputError("two parameters of one name", where=self._where, given=", ".join(names))
        if self.done is None:
            return
        check_address(self._back(Visit("x", "x", "x"), "x"), where=f"{self._where}, done")
        if "survey_code=" in self.done and "survey_code={person}" not in self.done:
            what = "the person is missing at the end of the address"
            hint = "SONA grants credit by it: write survey_code={person}"
            raise InputError(what, where=f"{self._where}, done", given=self.done, hint=hint)

    @property
    def _where(self) -> str:
        return f"platform {self.name}"

    def visit(self, parameters: Sequence[tuple[str, str]]) -> Visit:
        """Who enters; raises `InputError` where the address does not say who."""
        person, study, submission = (
            parameter(parameters, name, platform=self.name, required=required) if name else ""
            for name, required in ((self.person, True), (self.study, False), (self.submission, False))
        )
        return Visit(person, study, submission)

    def leave(self, visit: Visit, outcome: Outcome) -> Leave:
        """The way back with the outcome's code, or a page of ours that shows it."""
        code = self.code(outcome)
        if self.done is None or (outcome == "no_consent" and not code):
            return Leave(code=code)
        return Leave(self._back(visit, code), code=code)

    def entry(self, address: str) -> str:
        """The address for the platform, with what it replaces by ids in it."""
        check_address(address, where=f"{self._where}, address")
        mark = self.person_placeholder
        return with_parameters(address, [(self.person, mark)]) if mark else address

    def _back(self, visit: Visit, code: str) -> str:
        values = {"code": code, **{name: getattr(visit, name) for name in ("person", "study", "submission")}}
        return filled(self.done or "", values, where=f"{self._where}, done")


@dataclass(frozen=True)
class ProlificPlatform(Coded):
    """People of a Prolific study; with `study` set, people of another one are refused.

    A person who does not consent and for whom there is no code is asked to return the submission.
    """

    name: str = "prolific"
    study: str | None = None

    def visit(self, parameters: Sequence[tuple[str, str]]) -> Visit:
        """Who enters; raises `InputError` where a parameter is missing or of another study."""
        person, study, submission = (parameter(parameters, name, platform="prolific") for name in _PARAMETERS)
        if self.study and study != self.study:
            where = "prolific, parameter 'STUDY_ID'"
            raise InputError("of another study", where=where, given=study, allowed=self.study)
        return Visit(person, study, submission)

    def leave(self, visit: Visit, outcome: Outcome) -> Leave:
        """Prolific's page that ends the submission with the outcome's code."""
        code = self.code(outcome)
        return Leave(filled(COMPLETE, {"code": code}, where="prolific"), code=code) if code else Leave()

    def entry(self, address: str) -> str:
        """The study's address with the placeholders that Prolific replaces."""
        check_address(address, where="prolific, address", https=True)
        return with_parameters(address, [(name, f"{{{{%{name}%}}}}") for name in _PARAMETERS])


@dataclass(frozen=True)
class PlatformEntry:
    """A platform: its class with `preset` settings, and the least pay per hour by currency."""

    name: str
    summary: str
    target: str
    preset: Mapping[str, str] = field(default_factory=dict)
    least_pay: Mapping[str, float] = field(default_factory=dict)

    def platform(self, settings: Mapping[str, Any] | None = None) -> Platform:
        """The platform with these settings, as TOML has them."""
        kind = resolve(self.target)
        where = f"platform {self.name}"
        given = dict(settings or {})
        if "name" in given:
            raise InputError("unknown key", where=where, given="name")
        instance = kind(**values_of(kind, {**dict(self.preset), **given, "name": self.name}, where=where))
        if not isinstance(instance, Platform):
            raise InputError("its class is no platform", where=where, given=self.target)
        return instance


_LINK = "counterfoil.annotate.platforms.registry:LinkPlatform"
_PROLIFIC = "counterfoil.annotate.platforms.registry:ProlificPlatform"
_SONA = {"person": "sona_id", "person_placeholder": "%SURVEY_CODE%"}
_CONNECT = {"person": "participantId", "study": "projectId", "submission": "assignmentId"}
#: From Prolific's payment principles, which change; the recipe's `least_pay` goes before it.
_LEAST = {"GBP": 6.0, "USD": 8.0}
PLATFORMS: Registry[PlatformEntry] = Registry(
    "platform",
    PlatformEntry,
    "counterfoil.platforms",
    (
        PlatformEntry("panel", "a panel, a class or a pool whose links have parameters of any name", _LINK),
        PlatformEntry("sona", "SONA Systems, the participant pools of universities", _LINK, _SONA),
        PlatformEntry(
            "connect", "CloudResearch Connect, which adds its parameters by itself", _LINK, _CONNECT
        ),
        PlatformEntry(
            *("prolific", "Prolific, also through its API (counterfoil annotate prolific)", _PROLIFIC),
            least_pay=_LEAST,
        ),
    ),
)


def campaign_platform(entry: str, completion: str = "") -> Platform:
    """The platform that a campaign names as its `entry`, set up by its `completion`: the code of completed
    work, the address to go back to, or "key=value,key=value".
    """
    platform, text = PLATFORMS.find(entry, where="entry of the campaign"), completion.strip()
    if text.startswith(("https://", "http://")):
        return platform.platform({"done": text})
    if text and "=" not in text:
        return platform.platform({"completed": text})
    pairs = [part.partition("=") for part in text.split(",") if text]
    return platform.platform({key.strip(): value.strip() for key, _, value in pairs})
