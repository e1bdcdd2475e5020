"""External questions of Mechanical Turk: the parameters that AWS appends, and the way to finish.

The page is shown in a frame of the worker site. AWS appends `assignmentId`, `hitId`, `turkSubmitTo` and
`workerId`; while a worker only looks at a HIT, `assignmentId` is ASSIGNMENT_ID_NOT_AVAILABLE and no worker is
named. Work is finished by a form that the browser posts to `turkSubmitTo`/mturk/externalSubmit. That address
comes in by the address line, so only Amazon's two are ever used: any other would send people, and what they
post, to the author of the link.

Source: Amazon Mechanical Turk API Reference, ExternalQuestion.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from counterfoil.annotate.platforms.base import Leave, Outcome, Visit, check_address, parameter
from counterfoil.errors import InputError

#: Where work may be handed in: the worker site and its sandbox.
HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"


@dataclass(frozen=True)
class MturkPlatform:
    """Workers of a HIT whose page is ours, in a frame of the worker site; the result names the outcome.

    >>> given = [("assignmentId", "3X"), ("hitId", "3H"), ("workerId", "A1"),
    ...          ("turkSubmitTo", "https://workersandbox.mturk.com")]
    >>> turk = MturkPlatform()
    >>> turk.leave(turk.visit(given), "completed").address
    'https://workersandbox.mturk.com/mturk/externalSubmit'
    """

    name: str = "mturk"

    framed = True
    frames: tuple[str, ...] = HOSTS

    def visit(self, parameters: Sequence[tuple[str, str]]) -> Visit:
        """Who enters, or that it is a preview.

        Raises `InputError` where the parameters are not those of Mechanical Turk, and where the work would be
        handed in at another address than Amazon's.
        """
        assignment = parameter(parameters, "assignmentId", platform="mturk")
        hit = parameter(parameters, "hitId", platform="mturk", required=False)
        if assignment == PREVIEW:
            return Visit("", hit, preview=True)
        worker = parameter(parameters, "workerId", platform="mturk")
        return Visit(worker, hit, assignment, returns_to=_submit_to(_given(parameters, "turkSubmitTo")))

    def leave(self, visit: Visit, outcome: Outcome) -> Leave:
        """The form that hands the work in; a preview is handed in nowhere."""
        if visit.preview:
            return Leave()
        return Leave(
            f"{_submit_to(visit.returns_to)}/mturk/externalSubmit",
            "POST",
            # AWS refuses a form with the assignment alone.
            {"assignmentId": visit.submission, "outcome": outcome},
        )

    def entry(self, address: str) -> str:
        """The address of the question; AWS appends its parameters by itself."""
        return check_address(address, where="the external question", https=True)


def _given(parameters: Sequence[tuple[str, str]], name: str) -> str:
    values = {value for key, value in parameters if key == name}
    if len(values) != 1:
        raise InputError(
            "missing in the address" if not values else "has two values",
            where=f"mturk, parameter '{name}'",
            hint="open the HIT on the worker site",
        )
    (value,) = values
    return value


def _submit_to(address: str) -> str:
    """One of `HOSTS`; raises `InputError` for any other address."""
    try:
        parts = urlsplit(address.strip())
        # Compared whole: hosts that only begin or end alike, users before an @ and ports are other addresses.
        origin = f"{parts.scheme}://{parts.netloc}".lower()
    except ValueError:
        origin = ""
    if origin not in HOSTS:
        raise InputError(
            "not an address of Mechanical Turk",
            where="mturk, parameter 'turkSubmitTo'",
            given=address or "(empty)",
            allowed=HOSTS,
        )
    return origin
