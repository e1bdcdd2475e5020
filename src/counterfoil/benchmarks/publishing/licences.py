"""Licences of data sets: SPDX identifiers, what they ask of copies, and what cards say of them."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches

from counterfoil.benchmarks.benchmark import Card
from counterfoil.errors import InputError


@dataclass(frozen=True)
class Licence:
    """A licence by its SPDX identifier, or by its address where SPDX has none for it."""

    spdx: str
    hub: str
    commercial: bool = True
    derived: bool = True
    same: bool = False
    address: str = ""

    @property
    def url(self) -> str:
        """Where it can be read."""
        return self.address or f"https://spdx.org/licenses/{self.spdx}"


#: Those that the hub does not call by the identifier in lower case, and those that what is derived keeps.
_HUB = {"GPL-3.0-only": "gpl-3.0", "ODbL-1.0": "odbl", "ODC-By-1.0": "odc-by", "PDDL-1.0": "pddl"}
_SAME = ("-SA-", "GPL-3.0-only", "ODbL-1.0", "CDLA-Sharing-1.0")
_CREATIVE = ("BY", "BY-SA", "BY-NC", "BY-ND", "BY-NC-SA", "BY-NC-ND")

#: The licences that are known, by SPDX identifier: those that data sets of this field have.
LICENCES: Mapping[str, Licence] = {
    spdx: Licence(
        spdx,
        hub=_HUB.get(spdx, spdx.lower()),
        commercial="-NC" not in spdx,
        derived="-ND" not in spdx,
        same=any(mark in spdx for mark in _SAME),
    )
    for spdx in (
        *(f"CC-{parts}-{version}" for version in ("4.0", "3.0", "2.0") for parts in _CREATIVE),
        *("CC0-1.0", "MIT", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "GPL-3.0-only", "ODbL-1.0"),
        *("ODC-By-1.0", "PDDL-1.0", "CDLA-Permissive-2.0", "CDLA-Sharing-1.0", "Unlicense"),
    )
}


def find(name: str) -> Licence:
    """The licence with this SPDX identifier, whatever the case; or the one at an address (https://...)."""
    if re.fullmatch(r"https?://[^\s\"<>]+", name):
        return Licence("", "other", address=name)
    by_lower_case = {spdx.lower(): spdx for spdx in LICENCES}
    if name.lower() in by_lower_case:
        return LICENCES[by_lower_case[name.lower()]]
    near = get_close_matches(name.lower(), by_lower_case, n=1)
    hint = f"did you mean '{by_lower_case[near[0]]}'?" if near else "an address of its text will do, too"
    raise InputError("unknown licence", given=name or "(empty)", allowed=list(LICENCES), hint=hint)


def stated(words: str) -> Licence | None:
    """The first licence that a card's words name, None where they name none that is known."""
    places = []
    for name, licence in LICENCES.items():
        words_of = "[- ]".join(map(re.escape, name.split("-")))
        match = re.search(rf"(?<![\w.-]){words_of}(?![\w-]|\.\d)", words, re.IGNORECASE)
        if match:
            places.append((match.start(), licence))
    return min(places, key=lambda place: place[0])[1] if places else None


def conflicts(licence: Licence, card: Card) -> list[str]:
    """Why a benchmark of this card may not be passed on under the licence; empty where nothing forbids it."""
    reasons = []
    under = f" ({card.licence})" if card.licence else ""
    if not card.redistributable:
        reasons.append(f"the licence of {card.title or card.name} does not let it be passed on{under}")
    source = stated(card.licence)
    if source is None or source.spdx == licence.spdx:
        return reasons
    if not source.commercial and licence.commercial and licence.spdx:
        reasons.append(f"{source.spdx} forbids commercial use, which {licence.spdx} allows")
    if not source.derived:
        reasons.append(f"{source.spdx} forbids changed versions, so that it cannot become {licence.spdx}")
    elif source.same and licence.spdx:
        reasons.append(f"{source.spdx} asks for the same licence, not {licence.spdx}")
    return reasons
