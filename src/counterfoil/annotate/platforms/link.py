"""Links whose parameters name a person, their study and their submission, whatever these are called.

One class serves every platform that sends people to an address with ids in it and takes them back at
another: SONA and Connect are this class with their parameters' names, a class of students is it without a
way back.
"""

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


@dataclass(frozen=True)
class LinkPlatform(Coded):
    """People enter by `?person=...` and go to `done`, an address with `{code}` or `{person}` in it.

    `person`, `study` and `submission` are the parameters' names; the last two are not looked for where they
    are not set. A `..._placeholder` is what the platform replaces by an id, and is put into the address that
    it is given. A person who does not consent goes to `done` only where there is a code for that.

    >>> sona = LinkPlatform(person="sona_id", done="https://uni.example/credit?survey_code={person}")
    >>> sona.leave(sona.visit([("sona_id", "123")]), "completed").address
    'https://uni.example/credit?survey_code=123'
    """

    name: str = "panel"
    person: str = "person"
    study: str | None = None
    submission: str | None = None
    person_placeholder: str | None = None
    study_placeholder: str | None = None
    submission_placeholder: str | None = None
    done: str | None = None

    framed = False
    frames: tuple[str, ...] = ()

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
        wanted = (
            (self.person, self.person_placeholder),
            (self.study, self.study_placeholder),
            (self.submission, self.submission_placeholder),
        )
        added = [(name, mark) for name, mark in wanted if name and mark]
        check_address(address, where=f"{self._where}, address")
        return with_parameters(address, added) if added else address

    def _back(self, visit: Visit, code: str) -> str:
        values = {
            "code": code,
            "person": visit.person,
            "study": visit.study,
            "submission": visit.submission,
        }
        return filled(self.done or "", values, where=f"{self._where}, done")
