"""Events that Prolific sends to a public address: their signature, their age, and those that come again.

An event only says that something changed. What changed is read from the API, so that an event that is lost,
late or out of order does no harm.

Source: docs.prolific.com/api-reference/webhooks.
"""

import base64
import binascii
import hashlib
import hmac
from collections.abc import Container, Mapping
from dataclasses import dataclass

from counterfoil.errors import InputError
from counterfoil.inputs.files import parse_json

SIGNATURE = "x-prolific-request-signature"
TIMESTAMP = "x-prolific-request-timestamp"
EVENT_ID = "x-event-id"
#: Bytes of an event that is looked at, at most.
LARGEST = 1 << 16


@dataclass(frozen=True)
class ProlificEvents:
    """What it takes to deal with events: the secret that they are signed with, and a token of the API.

    `address` is another address of the API than Prolific's own.
    """

    secret: str
    token: str
    address: str | None = None


@dataclass(frozen=True)
class WebhookEvent:
    """A verified event: id, kind ("submission.status.change"), and the id and state of what it is about.

    `repeat` where it was received before: it is to be answered as the first time, and does nothing. The id
    is no part of what is signed, so it tells repeats apart and proves nothing.
    """

    id: str
    kind: str
    resource: str
    status: str = ""
    repeat: bool = False


def signature(body: bytes, timestamp: str, secret: str) -> str:
    """The signature of a body: base64 of HMAC-SHA256 over the timestamp and the body as it came.

    >>> signature(b"{}", "100", "secret")
    '8v+xdKBdZ/6HiiC389lGJ1Ea8VIKg30XsOyEpEBW45E='
    """
    found = hmac.new(secret.encode(), timestamp.encode() + body, hashlib.sha256).digest()
    return base64.b64encode(found).decode()


def verified(
    body: bytes,
    headers: Mapping[str, str],
    *,
    secret: str,
    now: float,
    tolerance: float = 300.0,
    seen: Container[str] = (),
) -> WebhookEvent:
    """The event in a request, once it is known to come from Prolific.

    `headers` have names in any case; `now` is in seconds since the epoch; `seen` are the ids of events that
    were dealt with. Raises `InputError` where there is no secret, a header is missing, the signature is
    another, the timestamp is more than `tolerance` seconds away, or the body is no event: answer such a
    request with 401 or 400 and do nothing.
    """
    if not secret:
        raise InputError("no secret to verify events with", where="webhook")
    if len(body) > LARGEST:
        raise InputError("too long for an event", where="webhook", given=f"{len(body):,} bytes")
    given = {name.lower(): value for name, value in headers.items()}
    lacking = next((name for name in (SIGNATURE, TIMESTAMP, EVENT_ID) if not given.get(name)), None)
    if lacking is not None:
        raise InputError("header is missing", where="webhook", given=lacking)
    timestamp = given[TIMESTAMP].strip()
    try:
        wanted = base64.b64decode(signature(body, timestamp, secret))
        # Bytes are compared, in a time that does not depend on them.
        good = hmac.compare_digest(base64.b64decode(given[SIGNATURE].strip(), validate=True), wanted)
    except (binascii.Error, ValueError):
        good = False
    if not good:
        raise InputError("the signature is not Prolific's", where="webhook")
    if not timestamp.isascii() or not timestamp.isdigit() or abs(now - int(timestamp[:15])) > tolerance:
        raise InputError(
            "too old or from the future",
            where="webhook",
            given=timestamp,
            allowed=f"within {tolerance:g} s of now",
        )
    found = parse_json(body.decode("utf-8", "replace"), where="webhook", finite=True)
    if not isinstance(found, dict) or not isinstance(found.get("event_type"), str):
        raise InputError("no event", where="webhook")
    event = given[EVENT_ID].strip()
    return WebhookEvent(
        event,
        found["event_type"],
        str(found.get("resource_id") or ""),
        str(found.get("status") or ""),
        event in seen,
    )
