"""Events of Prolific: verified, fresh, once."""

import base64
import hashlib
import hmac
import json

import pytest

from counterfoil.annotate.platforms.prolific_webhooks import LARGEST, verified
from counterfoil.errors import InputError

NOW = 1_795_000_000.0
BODY = json.dumps(
    {"event_type": "submission.status.change", "resource_id": "5b1", "status": "RETURNED"}
).encode()


def signed(
    body: bytes = BODY, *, at: object = int(NOW), secret: str = "secret", event: str = "e1"
) -> dict[str, str]:
    """The headers of a request, made without the code under test."""
    made = hmac.new(secret.encode(), str(at).encode() + body, hashlib.sha256).digest()
    return {
        "X-Prolific-Request-Signature": base64.b64encode(made).decode(),
        "X-Prolific-Request-Timestamp": str(at),
        "X-Event-Id": event,
    }


def test_an_event_is_taken_once() -> None:
    seen: set[str] = set()
    for repeat in (False, True, True):
        event = verified(BODY, signed(), secret="secret", now=NOW + 1, seen=seen)
        assert (event.kind, event.resource, event.status) == ("submission.status.change", "5b1", "RETURNED")
        assert event.repeat == repeat
        seen.add(event.id)
    assert not verified(BODY, signed(event="e2"), secret="secret", now=NOW, seen=seen).repeat


def test_names_of_headers_have_any_case() -> None:
    headers = {name.upper(): value for name, value in signed().items()}
    assert verified(BODY, headers, secret="secret", now=NOW).id == "e1"


@pytest.mark.parametrize(
    ("body", "headers", "message"),
    [
        (BODY + b" ", signed(), "the signature is not Prolific's"),
        (BODY.replace(b"5b1", b"5b2"), signed(), "the signature is not Prolific's"),
        (BODY, signed(secret="another"), "the signature is not Prolific's"),
        (BODY, {**signed(), "X-Prolific-Request-Timestamp": str(int(NOW) + 1)}, "the signature is not"),
        (BODY, {**signed(), "X-Prolific-Request-Signature": "?"}, "the signature is not Prolific's"),
        (BODY, {**signed(), "X-Prolific-Request-Signature": "ä"}, "the signature is not Prolific's"),
        (BODY, {**signed(), "X-Prolific-Request-Signature": ""}, "header is missing"),
        (
            BODY,
            {k: v for k, v in signed().items() if k != "X-Event-Id"},
            "header is missing; given: x-event-id",
        ),
        (BODY, signed(at=int(NOW) - 301), "too old or from the future"),
        (BODY, signed(at=int(NOW) + 301), "too old or from the future"),
        (BODY, signed(at="soon"), "too old or from the future"),
        (BODY, signed(at=""), "header is missing"),
        (b"[]", signed(b"[]"), "no event"),
        (b'{"event_type": 1}', signed(b'{"event_type": 1}'), "no event"),
        (b"\xff", signed(b"\xff"), "not valid JSON"),
        (b" " * (LARGEST + 1), signed(b" " * (LARGEST + 1)), "too long for an event"),
    ],
)
def test_requests_of_others_are_refused(body: bytes, headers: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        verified(body, headers, secret="secret", now=NOW)


def test_without_a_secret_nothing_is_verified() -> None:
    with pytest.raises(InputError, match="no secret to verify events with"):
        verified(BODY, signed(secret=""), secret="", now=NOW)
