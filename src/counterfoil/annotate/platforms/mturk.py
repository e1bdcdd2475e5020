"""External questions of Mechanical Turk: their XML, the parameters that AWS appends, and the way to finish.

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
from xml.sax.saxutils import escape

from counterfoil.annotate.platforms.base import Leave, Outcome, Visit, check_address, parameter
from counterfoil.errors import InputError
from counterfoil.inputs.xml import Element, parse_xml

NAMESPACE = "http://mechanicalturk.amazonaws.com/AWSMechanicalTurkDataSchemas/2006-07-14/ExternalQuestion.xsd"
#: Where work may be handed in: the worker site and its sandbox.
HOSTS = ("https://www.mturk.com", "https://workersandbox.mturk.com")
PREVIEW = "ASSIGNMENT_ID_NOT_AVAILABLE"
#: Bytes of a question's XML, and pixels of its frame, at most.
_LARGEST, _TALLEST = 65_535, 100_000


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
        return ExternalQuestion(address).address


@dataclass(frozen=True)
class ExternalQuestion:
    """A question whose page is at `address`, over https; a `height` of 0 pixels lets the site decide.

    >>> ExternalQuestion("https://example.org/enter?c=1&d=2").xml().splitlines()[2].strip()
    '<ExternalURL>https://example.org/enter?c=1&amp;d=2</ExternalURL>'
    """

    address: str
    height: int = 0

    def __post_init__(self) -> None:
        where = "the external question"
        if "${" in self.address:
            raise InputError(
                "placeholders have no meaning in its address",
                where=where,
                given=self.address,
                hint="leave them out: assignmentId, hitId, workerId and turkSubmitTo are appended",
            )
        check_address(self.address, where=where, https=True)
        if not 0 <= self.height <= _TALLEST:
            raise InputError(
                "height out of range",
                where=where,
                given=self.height,
                allowed=f"0 (the site decides) to {_TALLEST:,} pixels",
            )
        if len(self.xml().encode()) > _LARGEST:
            raise InputError("too long", where=where, allowed=f"{_LARGEST:,} bytes of XML")

    def xml(self) -> str:
        """The question as XML, for the `Question` of CreateHIT."""
        return (
            '<?xml version="1.0" encoding="UTF-8"?>\n'
            f'<ExternalQuestion xmlns="{NAMESPACE}">\n'
            f"  <ExternalURL>{escape(self.address)}</ExternalURL>\n"
            f"  <FrameHeight>{self.height}</FrameHeight>\n"
            "</ExternalQuestion>\n"
        )


def read_external_question(text: str | bytes, *, where: object = "the external question") -> ExternalQuestion:
    """The question in an XML text, held to its schema.

    That is: the element ExternalQuestion of Amazon's namespace, and in it ExternalURL, an https address, and
    FrameHeight, a whole number, in this order and nothing else. Raises `DataError` or `InputError` otherwise.

    >>> read_external_question(ExternalQuestion("https://example.org/enter", 600).xml()).height
    600
    """
    root = parse_xml(text, where=where)
    if root.name != f"{NAMESPACE} ExternalQuestion":
        raise InputError(
            "no external question", where=where, given=root.name, allowed=f"ExternalQuestion of {NAMESPACE}"
        )
    wanted = [f"{NAMESPACE} ExternalURL", f"{NAMESPACE} FrameHeight"]
    if [child.name for child in root.children] != wanted or root.text.strip():
        raise InputError(
            "not as its schema says",
            where=where,
            given=", ".join(child.name.rpartition(" ")[2] for child in root.children) or "(nothing)",
            allowed="ExternalURL, then FrameHeight, each once",
        )
    address, height = (_simple(child, where) for child in root.children)
    if not height.removeprefix("-").isascii() or not height.removeprefix("-").isdigit() or len(height) > 9:
        raise InputError("FrameHeight is no whole number", where=where, given=height)
    return ExternalQuestion(address, int(height))


def _simple(element: Element, where: object) -> str:
    if element.children or element.attributes:
        name = element.name.rpartition(" ")[2]
        raise InputError(f"{name} holds more than a text", where=where)
    return element.text.strip()


def _given(parameters: Sequence[tuple[str, str]], name: str) -> str:
    found = {value for key, value in parameters if key == name}
    if len(found) != 1:
        raise InputError(
            "missing in the address" if not found else "has two values",
            where=f"mturk, parameter '{name}'",
            hint="open the HIT on the worker site",
        )
    (value,) = found
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
