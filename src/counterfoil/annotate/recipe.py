"""The recipe of a campaign: how it is run, field by field, as `campaign.toml` has it."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Any, Literal

from counterfoil.errors import InputError

Design = Literal["blocks", "queue", "adaptive"]


@dataclass(frozen=True, kw_only=True)
class CampaignRecipe:
    """How a campaign is run. Every field can stand in `campaign.toml`.

    Designs: `blocks` are made before it starts, each for one person, so that a design is exact; in a `queue`
    people take items one after the other; `adaptive` is a queue that asks for more answers of the items on
    which people are undecided: until a label is as likely as `certainty`, or until one answer of an item was
    given `first_to` times, as Winoground's crowd seems to have been asked.
    """

    form: str
    title: str = field(metadata={"help": "What the campaign is called; people see it."})
    seed: int = field(default=0, metadata={"help": "Seed of assignment, sides and order."})
    design: Design = field(default="queue", metadata={"help": "blocks, queue or adaptive."})
    overlap: int = field(default=3, metadata={"help": "Answers per item, each of another person."})
    per_person: int = field(
        default=0,
        metadata={"help": "Items of a block, or the most that one person does in a queue; 0 is all."},
    )
    people_per_block: int = field(
        default=1,
        metadata={"help": "How many people do each block, so that those agree or not; part of the overlap."},
    )
    by_direction: bool = field(
        default=False,
        metadata={"help": "In a block, one direction of questions first, then the other, not mixed."},
    )
    golden_per_block: int = field(default=0, metadata={"help": "Of a block, how many items are golden."})
    golden_share: float = field(default=0.0, metadata={"help": "In a queue, the share of golden items."})
    golden_misses: int = field(
        default=0, metadata={"help": "So many wrong golden answers end a person's work; 0 is never."}
    )
    onboarding: int = field(default=0, metadata={"help": "Items of the test before the work."})
    onboarding_warnings: int = field(
        default=1, metadata={"help": "Errors of the test that are pointed out; the next one disqualifies."}
    )
    certainty: float = field(default=0.95, metadata={"help": "Adaptive: ask until a label is this likely."})
    first_to: int = field(
        default=0, metadata={"help": "Adaptive: ask until one answer has so many; 0 goes by certainty."}
    )
    most: int = field(default=9, metadata={"help": "Adaptive: the most answers of an item."})
    lease_minutes: float = field(
        default=10.0, metadata={"help": "An item not answered so long goes to others."}
    )
    block_minutes: float = field(
        default=120.0, metadata={"help": "A block not finished so long goes to others."}
    )
    pay_per_hour: float = field(
        default=0.0,
        metadata={"help": "Pay that is aimed at; 0 is none, for people of a paying platform 12."},
    )
    pay_per_item: float = field(
        default=0.0, metadata={"help": "Pay of an item; 0: what its usual time is worth at the pay per hour."}
    )
    currency: str = field(default="USD", metadata={"help": "Currency of the pay."})
    least_pay: float = field(
        default=0.0, metadata={"help": "Pay per hour below which is warned; 0: the platform's least."}
    )
    least_seconds: float = field(default=0.0, metadata={"help": "Answers faster than this are marked."})
    languages: tuple[str, ...] = field(default=("en",), metadata={"help": "Languages of the captions."})
    entry: str = field(
        default="link", metadata={"help": "How people come: link, open, or a platform's name."}
    )
    code: str = field(default="", metadata={"help": "The code of an open link; empty asks for none."})
    completion: str = field(
        default="", metadata={"help": "Code or address that a platform expects at the end."}
    )
    keep_until: str = field(default="", metadata={"help": "Date after which answers are to be deleted."})
    keep_labels: bool = field(
        default=False, metadata={"help": "When answers are deleted, keep labels of two answers or more."}
    )
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        positive = ("overlap", "people_per_block", "most", "lease_minutes", "block_minutes")
        for setting in fields(self):
            name, value = setting.name, getattr(self, setting.name)
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if number and (value < 0 or (name in positive and value == 0)):
                _refuse(name, value, "above 0" if name in positive else "0 or above")
        if self.design == "blocks" and not self.per_person > self.golden_per_block:
            _refuse("per_person", self.per_person, "blocks of one item or more beside the golden ones")
        if self.overlap % self.people_per_block:
            _refuse("people_per_block", self.people_per_block, f"a divisor of the overlap of {self.overlap}")
        for name, usual in (("people_per_block", 1), ("by_direction", False)):
            if getattr(self, name) != usual and self.design != "blocks":
                _refuse(name, getattr(self, name), f"{usual} but for the design 'blocks'")
        for name in ("golden_share", "certainty"):
            if not getattr(self, name) < 1:
                _refuse(name, getattr(self, name), "0 to below 1")
        if self.design == "adaptive" and self.most < self.overlap:
            _refuse("most", self.most, f"the overlap of {self.overlap} or more")
        if self.first_to and self.design != "adaptive":
            _refuse("first_to", self.first_to, "0 but for the design 'adaptive'")
        if self.first_to > self.most:
            _refuse("most", self.most, f"the {self.first_to} of first_to or more")
        if self.keep_until:
            try:
                date.fromisoformat(self.keep_until)
            except ValueError:
                _refuse("keep_until", self.keep_until, "a date such as 2027-12-31")

    def to_toml(self) -> str:
        """The recipe as TOML, every field with what it means."""
        lines = []
        for setting in fields(self):
            if setting.name != "settings":
                value = getattr(self, setting.name)
                text = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
                note = setting.metadata.get("help", "")
                lines.append(f"{setting.name} = {text}" + (f"  # {note}" if note else ""))
        lines += ["", "[settings]", *(f"{k} = {json.dumps(v)}" for k, v in self.settings.items())]
        return "\n".join(lines) + "\n"


def _refuse(name: str, value: object, allowed: str) -> None:
    raise InputError("campaign cannot be run so", where=f"key '{name}'", given=str(value), allowed=allowed)
