"""Contract of a platform: who enters by the parameters of an address, and where they go when they leave.

A platform is a frozen dataclass whose fields are its settings. It trusts no parameter: an address can be
typed by hand, so its ids name a person and prove nothing.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, get_args, runtime_checkable
from urllib.parse import quote, urlsplit

from counterfoil.errors import InputError

#: How a person's work ended. Each may have a code of its own on the platform.
Outcome = Literal["completed", "screened_out", "failed_checks", "no_consent"]
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

#: No platform's ids are longer.
_LONGEST = 200
#: Marks of placeholders that a platform would have replaced by an id.
_PLACEHOLDERS = ("{{%", "%}}", "${", "%SURVEY_CODE%", "[[", "{{")


@dataclass(frozen=True)
class Visit:
    """Who enters: the platform's ids of the person, of the work and of this person's piece of it."""

    person: str
    study: str = ""
    submission: str = ""


@dataclass(frozen=True)
class Leave:
    """Where a person goes, a page of ours without an `address`, and the `code` that they hand in."""

    address: str = ""
    code: str = ""


@dataclass(frozen=True)
class Coded:
    """Codes that people hand in on a platform, by outcome.

    An outcome without a code of its own has that of `completed`, so that work that was done is paid; only a
    person who does not consent has none then.
    """

    completed: str | None = None
    screened_out: str | None = None
    failed_checks: str | None = None
    no_consent: str | None = None

    def code(self, outcome: Outcome) -> str:
        """The code to hand in; empty where there is none."""
        return getattr(self, outcome) or ("" if outcome == "no_consent" else self.completed or "")


@runtime_checkable
class Platform(Protocol):
    """A platform: see the module. Registered ones are dataclasses whose fields are settings."""

    def visit(self, parameters: Sequence[tuple[str, str]]) -> Visit:
        """Who enters, from the parameters of the address in order; `InputError` where they do not say."""
        ...

    def leave(self, visit: Visit, outcome: Outcome) -> Leave:
        """Where that person goes afterwards."""
        ...

    def entry(self, address: str) -> str:
        """The address to give to the platform, for a page of ours."""
        ...


def parameter(
    parameters: Sequence[tuple[str, str]], name: str, *, platform: str, required: bool = True
) -> str:
    """The id in a parameter; empty where it is not there and not required."""
    where = f"{platform}, parameter '{name}'"
    values = {value.strip() for key, value in parameters if key == name} - {""}
    if not values:
        if required:
            raise InputError("missing in the address", where=where, hint=f"open the link on {platform}")
        return ""
    if len(values) > 1:
        raise InputError("has two values", where=where, given=", ".join(sorted(values)))
    (value,) = values
    if any(mark in value for mark in _PLACEHOLDERS):
        what, hint = "the placeholder was not replaced by an id", "open the link there"
        raise InputError(what, where=where, given=value, hint=hint)
    if len(value) > _LONGEST or not value.isprintable() or any(c in value for c in " <>\"'\\"):
        allowed = f"up to {_LONGEST} characters without blanks"
        raise InputError("not an id", where=where, given=value, allowed=allowed)
    return value


def with_parameters(address: str, parameters: Sequence[tuple[str, str]]) -> str:
    """`address` with parameters added as they are, so that placeholders survive; its own ones stay."""
    base, _, _ = address.partition("#")
    sign = "&" if urlsplit(base).query else "?"
    return base.rstrip("?&") + sign + "&".join(f"{name}={value}" for name, value in parameters)


def filled(template: str, values: Mapping[str, str], *, where: object) -> str:
    """A template of an address with `{name}` replaced by percent-encoded values."""

    def value(placeholder: re.Match[str]) -> str:
        if placeholder[1] not in values or not placeholder[2]:
            given, allowed = f"{{{placeholder[1]}}}", ", ".join(f"{{{name}}}" for name in values)
            raise InputError("unknown placeholder", where=where, given=given, allowed=allowed)
        return quote(values[placeholder[1]], safe="")

    return re.sub(r"\{([^}]*)(\}?)", value, template)


def check_address(address: str, *, where: object, https: bool = False) -> str:
    """Check the address of a page; raise `InputError` where it is none, or not over https if asked."""
    allowed, wrong = "https://..." if https else "https://... or http://...", ""
    try:
        parts = urlsplit(address)
        odd = any(c.isspace() or c in "<>\"'\\" or not c.isprintable() for c in address)
        if not parts.hostname or odd or parts.port == 0 or parts.username is not None:
            wrong = "not an address"
        elif parts.scheme not in (("https",) if https else ("https", "http")):
            wrong = "not an address over https" if https else "not an address of a page"
    except ValueError:
        wrong = "not an address"
    if wrong:
        raise InputError(wrong, where=where, given=address, allowed=allowed)
    return address
