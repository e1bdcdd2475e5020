"""Platforms by name, those of other packages (entry points `counterfoil.platforms`) among them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from counterfoil.annotate.platforms.base import Platform
from counterfoil.errors import InputError
from counterfoil.inputs.fields import values_of
from counterfoil.registry import Registry, resolve

#: Ways into a campaign that are no platform's.
OWN_ENTRIES = ("link", "open")


@dataclass(frozen=True)
class PlatformEntry:
    """A platform's name, a line about it, its class with `preset` settings, and the least pay per hour by
    currency.
    """

    name: str
    summary: str
    target: str
    preset: Mapping[str, str] = field(default_factory=dict)
    least_pay: Mapping[str, float] = field(default_factory=dict)

    def platform(self, settings: Mapping[str, Any] | None = None) -> Platform:
        """The platform with these settings, as TOML has them."""
        kind = resolve(self.target)
        where = f"platform {self.name}"
        given = dict(settings or {})
        if "name" in given:
            raise InputError("unknown key", where=where, given="name")
        instance = kind(**values_of(kind, {**dict(self.preset), **given, "name": self.name}, where=where))
        if not isinstance(instance, Platform):
            raise InputError("its class is no platform", where=where, given=self.target)
        return instance


_LINK = "counterfoil.annotate.platforms.links:LinkPlatform"
_PROLIFIC = "counterfoil.annotate.platforms.links:ProlificPlatform"
_SONA = {"person": "sona_id", "person_placeholder": "%SURVEY_CODE%"}
_CONNECT = {"person": "participantId", "study": "projectId", "submission": "assignmentId"}
#: From Prolific's payment principles, which change; the recipe's `least_pay` goes before it.
_LEAST = {"GBP": 6.0, "USD": 8.0}
PLATFORMS: Registry[PlatformEntry] = Registry(
    "platform",
    PlatformEntry,
    "counterfoil.platforms",
    (
        PlatformEntry("panel", "a panel, a class or a pool whose links have parameters of any name", _LINK),
        PlatformEntry("sona", "SONA Systems, the participant pools of universities", _LINK, _SONA),
        PlatformEntry(
            "connect", "CloudResearch Connect, which adds its parameters by itself", _LINK, _CONNECT
        ),
        PlatformEntry(
            *("prolific", "Prolific, also through its API (counterfoil annotate prolific)", _PROLIFIC),
            least_pay=_LEAST,
        ),
    ),
)


def campaign_platform(entry: str, completion: str = "") -> Platform:
    """The platform that a campaign names as its `entry`, set up by its `completion`.

    That is the code of completed work, the address to go back to, or settings as "key=value" with commas
    between them.
    """
    platform = PLATFORMS.find(entry, where="entry of the campaign")
    text = completion.strip()
    if not text:
        return platform.platform()
    if text.startswith(("https://", "http://")):
        return platform.platform({"done": text})
    if "=" not in text:
        return platform.platform({"completed": text})
    pairs = [part.partition("=") for part in text.split(",")]
    return platform.platform({key.strip(): value.strip() for key, _, value in pairs})
