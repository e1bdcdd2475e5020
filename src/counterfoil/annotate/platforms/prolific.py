"""Links of Prolific: its three parameters, and the address at which a completion code ends a submission."""

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

COMPLETE = "https://app.prolific.com/submissions/complete?cc={code}"
_PARAMETERS = ("PROLIFIC_PID", "STUDY_ID", "SESSION_ID")


@dataclass(frozen=True)
class ProlificPlatform(Coded):
    """People of a Prolific study; the codes are the study's completion codes.

    A person who does not consent and for whom there is no code is asked to return the submission. With
    `study` set, people of another study are refused.

    >>> prolific = ProlificPlatform(completed="C1X2")
    >>> visit = prolific.visit([("PROLIFIC_PID", "5f8a"), ("STUDY_ID", "60a"), ("SESSION_ID", "61b")])
    >>> visit.submission, prolific.leave(visit, "completed").address
    ('61b', 'https://app.prolific.com/submissions/complete?cc=C1X2')
    """

    name: str = "prolific"
    study: str | None = None

    framed = False
    frames: tuple[str, ...] = ()
    #: Where a study has secured parameters: the token's name, and what holds the parameters in it.
    signed, claim = "prolific_token", "prolific"

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
