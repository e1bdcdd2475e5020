"""Who takes part, by which token, and with whose consent; all functions work within a transaction.

The id of a worker is hashed with the campaign's salt before it reaches the database.
"""

import hashlib
import hmac
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.tables import Connection, insert, log_event, run, set_person
from counterfoil.errors import InputError

#: Tokens of a person that are valid at once: pages left open in other tabs go on.
_TOKENS = 8
#: What the owner of an unknown token is told.
UNKNOWN_TOKEN = "no such page; open the link that you were given once more"
#: Longest id of a worker, and characters of all parameters.
_LONGEST, _PARAMETERS = 200, 4_000


@dataclass(frozen=True)
class Person:
    """Who takes part; `state` is consent, onboarding, work, disqualified, withdrawn or ended.

    `warned` counts errors of the test that were pointed out, `wrong` golden items answered wrong, `pages`
    items that were shown and `done` those answered; `wanted` is how many blocks the person came for.
    `running` is what the researcher has set for the campaign.
    """

    id: str
    state: str
    warned: int
    language: str
    platform: str
    wrong: int
    pages: int
    done: int
    wanted: int
    finished: float | None
    running: str | None


@dataclass(frozen=True)
class Entered:
    """A person who has come in, and the token by which their pages know them."""

    person: Person
    token: str


class OtherBrowserError(InputError):
    """Somebody came with this id before, and with another browser."""


_NAMES = [name for name in Person.__dataclass_fields__ if name != "running"]
_COLUMNS = f"{', '.join(_NAMES)}, (SELECT value FROM meta WHERE key = 'running') AS running"
BY_ID = f"SELECT {_COLUMNS} FROM people WHERE id = :person"
BY_TOKEN = f"SELECT {_COLUMNS} FROM people JOIN tokens ON person = id WHERE hash = :hash"


def enter(
    connection: Connection,
    campaign: Campaign,
    *,
    worker: str,
    platform: str,
    parameters: Mapping[str, str],
    now: float,
    browser: str = "",
) -> Entered:
    """Let a person in: a new one, or the same one again with a new token.

    Anybody can type a platform's id, so such a person comes again with the secret of the first `browser`. An
    open link makes a new person each time. In blocks, who comes with another assignment wants another block.
    """
    _check(campaign, worker, platform, parameters)
    if platform == "open" and not worker:
        worker = secrets.token_hex(16)
    id = person_id(campaign, platform, worker)
    given = sorted(parameters.get("language", "").lower().split("-"))
    languages = campaign.recipe.languages
    usual = languages[0] if languages else "en"
    language = next((offered for offered in languages if offered.lower() in given), usual)
    # Neither the worker's id, by whatever name a platform gives it, nor the code is kept.
    stored = {name: value for name, value in sorted(parameters.items()) if value != worker and name != "code"}
    text, token, hashed = json.dumps(stored), secrets.token_urlsafe(32), token_hash(browser)
    row = run(connection, "SELECT * FROM people WHERE id = :id", id=id).first()
    if row is None:
        new = {"id": id, "platform": platform, "language": language, "entered": now}
        new |= {"state": "consent", "parameters": text, "browser": hashed}
        insert(connection, "people", new)
        log_event(connection, now, "entered", id)
    elif platform not in ("link", "open"):
        first_browser = row.browser or hashed
        if not hmac.compare_digest(first_browser, hashed):
            what = "you began this study in another browser or on another device"
            raise OtherBrowserError(what, hint="go on there, or ask the researcher to let you in here")
        set_person(connection, id, browser=first_browser)
    if row is not None and row.state != "withdrawn" and text != row.parameters:
        changed: dict[str, Any] = {"parameters": text}
        if row.finished is not None and campaign.recipe.design == "blocks":
            state = "work" if row.state == "ended" else row.state
            changed |= {"wanted": row.wanted + 1, "finished": None, "state": state}
        set_person(connection, id, **changed)
    issued: dict[str, Any] = {"hash": token_hash(token), "person": id, "issued": now}
    insert(connection, "tokens", issued)
    newest = f"SELECT hash FROM tokens WHERE person = :person ORDER BY issued DESC, hash LIMIT {_TOKENS}"
    old = f"DELETE FROM tokens WHERE person = :person AND hash <> :hash AND hash NOT IN ({newest})"
    run(connection, old, **issued)
    return Entered(person_by_id(connection, id), token)


def person_of(connection: Connection, token: str) -> Person | None:
    """The person whose token it is; only hashes are compared, so that times say nothing about near ones."""
    row = run(connection, BY_TOKEN, hash=token_hash(token)).first()
    return None if row is None else Person(*row)


def consent(connection: Connection, person: Person, now: float, *, text: str = "") -> Person:
    """Note that a person agreed to take part, and to which text; who agreed already has."""
    if set_person(connection, person.id, "AND state = 'consent'", state="onboarding", consented=now):
        read = hashlib.blake2b(text.encode(), digest_size=16).hexdigest()
        log_event(connection, now, "consented", person.id, read)
    return person_by_id(connection, person.id)


def readmit(connection: Connection, person: str, now: float, *, named: str = "") -> None:
    """Let a person in again with the next browser that comes with their id; pages that are open end."""
    if not set_person(connection, person, browser=None):
        raise InputError("no such person in this campaign", given=named or person)
    run(connection, "DELETE FROM tokens WHERE person = :person", person=person)
    log_event(connection, now, "readmitted", person)


def person_by_id(connection: Connection, id: str) -> Person:
    """The person with an id."""
    return Person(*run(connection, BY_ID, person=id).one())


def person_id(campaign: Campaign, platform: str, worker: str) -> str:
    """The id of a worker in the campaign's database: a hash that only the campaign's salt leads to."""
    return _keyed(campaign, "person", platform, worker)


def make_links(campaign: Campaign, n: int) -> tuple[str, ...]:
    """n personal links that cannot be guessed; the same ones each time, so that none needs to be stored."""
    return tuple(f"{i}-{_keyed(campaign, 'link', str(i))}" for i in range(1, n + 1))


def _check(campaign: Campaign, worker: str, platform: str, parameters: Mapping[str, str]) -> None:
    expected = campaign.recipe.entry
    if platform not in (expected, "link"):
        raise InputError("this campaign is entered another way", given=platform, allowed=(expected, "link"))
    if len(worker) > _LONGEST or sum(map(len, (*parameters, *parameters.values()))) > _PARAMETERS:
        raise InputError("these parameters are too long", allowed=f"ids of {_LONGEST} characters")
    if platform == "link":
        number = worker.partition("-")[0]
        right_key = f"{number}-{_keyed(campaign, 'link', number)}"
        if not number.isdecimal() or not hmac.compare_digest(worker.encode(), right_key.encode()):
            raise InputError("no such link", hint="open the whole link that you were given")
    elif platform == "open":
        code = campaign.recipe.code
        if code and not hmac.compare_digest(parameters.get("code", "").encode(), code.encode()):
            raise InputError("this is not the code of this study", hint="check what you were given")
    elif not worker.strip():
        raise InputError("no id of a worker", hint=f"open the study from {platform}")


def _keyed(campaign: Campaign, *names: str) -> str:
    key = campaign.secrets["salt"].encode()[:64]
    return hashlib.blake2b("\x1f".join(names).encode(), key=key, digest_size=16).hexdigest()


def token_hash(token: str) -> str:
    return hashlib.blake2b(token.encode(), digest_size=32).hexdigest()
