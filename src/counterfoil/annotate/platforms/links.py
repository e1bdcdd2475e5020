"""Platforms that send people to an address with ids in it and take them back at another, and Prolific."""

from collections.abc import Sequence
from dataclasses import dataclass

from counterfoil.annotate.platforms.base import (
    Coded,
    Leave,
    Outcome,
    Visit,
    check_address,
    filled,
    parameter,
    with_parameters,
)
from counterfoil.errors import InputError

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
            raise InputError(
                "the person is missing at the end of the address",
                where=f"{self._where}, done",
                given=self.done,
                hint="SONA grants credit by it: write survey_code={person}",
            )

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
            raise InputError(
                "of another study", where="prolific, parameter 'STUDY_ID'", given=study, allowed=self.study
            )
        return Visit(person, study, submission)

    def leave(self, visit: Visit, outcome: Outcome) -> Leave:
        """Prolific's page that ends the submission with the outcome's code."""
        code = self.code(outcome)
        return Leave(filled(COMPLETE, {"code": code}, where="prolific"), code=code) if code else Leave()

    def entry(self, address: str) -> str:
        """The study's address with the placeholders that Prolific replaces."""
        check_address(address, where="prolific, address", https=True)
        return with_parameters(address, [(name, f"{{{{%{name}%}}}}") for name in _PARAMETERS])
