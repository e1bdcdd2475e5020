"""Answers without end, without haste or from elsewhere end a request; a key is sent to its endpoint alone."""

import time

import pytest

from counterfoil.errors import InputError, ModelError
from counterfoil.inputs.secrets import secret
from counterfoil.models.chat import client
from counterfoil.models.chat.endpoint import ChatRequest, ChatSettings, Endpoint
from hostile_server import hostile
from refusals import refuses

KEY = "sk-very-secret-0123456789"


def _ask(server, *, key=KEY, timeout=0.3):
    settings = ChatSettings(f"{server.address}/v1", "m", retries=1, wait=0.01, timeout=timeout)
    words = refuses("", list, Endpoint(settings, key=key).ask([ChatRequest(("hello",), 5)]), error=ModelError)
    assert KEY not in words
    return words


@pytest.mark.parametrize("kind", ["endless", "bomb"])
def test_an_answer_without_end(kind, monkeypatch):
    assert client._MOST == 64 << 20
    monkeypatch.setattr(client, "_MOST", 1 << 20)
    with hostile(kind) as server:
        assert "the answer is too large; allowed: at most 1 MiB" in _ask(server, timeout=60)
        # It is not asked for again.
        assert len(server.requests) == 1


@pytest.mark.parametrize("kind", ["slow body", "slow headers", "silent"])
def test_an_answer_without_haste(kind):
    with hostile(kind) as server:
        start = time.monotonic()
        assert "no answer after 2 tries; given: ReadTimeout" in _ask(server)
        # Two tries of four time-outs at most; without the limit it would be 5,000 seconds.
        assert time.monotonic() - start < 600
        assert len(server.requests) == 2


def test_a_redirect_is_not_followed():
    with hostile(KEY) as other, hostile("redirect", to=f"{other.address}/v1/chat/completions") as server:
        assert "status 307" in _ask(server)
        assert other.requests == []
        assert f"Bearer {KEY}".encode() in server.requests[0]


def test_a_key_with_a_line_break():
    with hostile("redirect", to="/") as server:
        _ask(server, key=f"{KEY}\n")
        assert f"Bearer {KEY}\r\n".encode() in server.requests[0]


@pytest.mark.parametrize("key", [f"{KEY}\n{KEY}", f"{KEY} {KEY}", f"{KEY}\u00e9", f"{KEY}\x00"])
def test_what_is_no_key_is_not_shown(key):
    settings = ChatSettings("http://127.0.0.1:9/v1", "m")
    words = refuses("not a key", Endpoint, settings, key=key, error=InputError)
    assert KEY not in words


def test_a_key_is_in_no_representation():
    found = Endpoint(ChatSettings("http://127.0.0.1:9/v1", "m"), key=KEY)
    assert KEY not in repr(vars(found)) + repr(secret(KEY, where="x")) + f"{[secret(KEY, where='x')]}"
