"""Settings of a campaign, as `campaign.toml` has them, and what it pays."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from typing import Any, Literal

from counterfoil.annotate.forms.base import WorkForm
from counterfoil.annotate.languages import phrase_in
from counterfoil.annotate.platforms.registry import PLATFORMS
from counterfoil.errors import InputError
from counterfoil.inputs.fields import setting
from counterfoil.inputs.limits import most
from counterfoil.inputs.options import rows_of

_PEOPLE, _ITEMS, _PAY, _MINUTES = most("people"), most("items"), most("price"), 525_600
Design = Literal["blocks", "queue", "adaptive"]
#: What people are told of their pay; `phrases/LANGUAGE.json` has it in other languages.
UNPAID = "This work is not paid."
BY_ITEM = (
    "You are paid {currency} {item} for each item; at {seconds} seconds for each that is {currency} {hour} "
    "per hour."
)
BY_HOUR = "You are paid {currency} {hour} per hour of work, counted at {seconds} seconds for each item."


@dataclass(frozen=True, kw_only=True)
class CampaignRecipe:
    """How a campaign is run. Every field can stand in `campaign.toml`.

    Designs: `blocks` are made before it starts, each for one person, so that a design is exact; in a `queue`
    people take items one after the other; `adaptive` is a queue that asks for more answers of the items on
    which people are undecided: until a label is as likely as `certainty`, or until one answer of an item was
    given `first_to` times, as Winoground's crowd seems to have been asked.
    """

    form: str
    title: str = field(metadata={"help": "Title that people see."})
    seed: int = setting(0, "Seed of assignment, sides and order.", low=0, high=most("seed"))
    design: Design = setting("queue", "Items in blocks, in a queue, or until labels are sure (adaptive).")
    overlap: int = setting(3, "Answers per item, each from a different person.", low=1, high=_PEOPLE)
    per_person: int = setting(
        0, "Items per block, or the most that one person does in a queue; 0 means all.", low=0, high=_ITEMS
    )
    people_per_block: int = setting(
        1, "How many people do the same block; they count towards the overlap.", low=1, high=_PEOPLE
    )
    by_direction: bool = setting(False, "In a block, ask one direction of questions first, then the other.")
    golden_per_block: int = setting(0, "Golden items per block.", low=0, high=_ITEMS)
    golden_share: float = setting(0.0, "Share of golden items in a queue.", low=0, high=1)
    golden_misses: int = setting(
        0, "Disqualify after N wrong golden answers; 0 disables.", low=0, high=_ITEMS
    )
    #: The command's option of this name is the table of these items.
    onboarding: int = setting(0, "Items of the test before the work.", low=0, high=_ITEMS, hidden=True)
    onboarding_warnings: int = setting(
        1, "Errors in the qualification test that are explained; one more disqualifies.", low=0, high=_ITEMS
    )
    certainty: float = setting(0.95, "Adaptive: stop when a label has this probability.", low=0, high=1)
    first_to: int = setting(
        0, "Adaptive: stop when an answer has N votes; 0 uses --certainty.", low=0, high=_PEOPLE
    )
    most: int = setting(9, "Adaptive: most answers per item.", low=1, high=_PEOPLE)
    lease_minutes: float = setting(
        10.0, "Minutes until an unanswered item is given to others.", low=0.01, high=_MINUTES
    )
    block_minutes: float = setting(
        120.0, "Minutes until an unfinished block is given to others.", low=0.01, high=_MINUTES
    )
    pay_per_hour: float = setting(
        0.0, "Target pay per hour; 0 means none, or 12 on a paying platform.", low=0, high=_PAY
    )
    pay_per_item: float = setting(
        0.0, "Pay per item; 0: its usual time at the pay per hour.", low=0, high=_PAY
    )
    currency: str = setting("USD", "Currency of the pay.", pattern="[A-Z]{3}")
    least_pay: float = setting(
        0.0, "Warn below this pay per hour; 0: the platform's minimum.", low=0, high=_PAY
    )
    least_seconds: float = setting(0.0, "Flag answers faster than this many seconds.", low=0, high=_MINUTES)
    languages: tuple[str, ...] = setting(("en",), "Languages of the captions.")
    entry: str = setting("link", "How people enter: link, open, or a platform's name.")
    code: str = setting("", "Code that an open link asks for; empty: none.")
    completion: str = setting("", "Code or URL that the platform expects at the end.")
    keep_until: str = setting("", "Date after which answers must be deleted.")
    keep_labels: bool = setting(False, "When answers are deleted, keep labels with two or more answers.")
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in rows_of(CampaignRecipe):
            value = getattr(self, row.name)
            row.converted(value, f"key '{row.name}'")
            if value == "" and row.option.shown:
                _refuse(row.name, value, "a word")
        blocks, adaptive, overlap = self.design == "blocks", self.design == "adaptive", self.overlap
        drawn_per_person, even = self.per_person > self.golden_per_block, not overlap % self.people_per_block
        first_to = self.first_to
        for name, holds, allowed in (
            (
                "per_person",
                drawn_per_person or not blocks,
                "blocks of one item or more beside the golden ones",
            ),
            ("people_per_block", even, f"a divisor of the overlap of {overlap}"),
            ("people_per_block", blocks or self.people_per_block == 1, "1 but for the design 'blocks'"),
            ("by_direction", blocks or not self.by_direction, "False but for the design 'blocks'"),
            ("golden_share", self.golden_share < 1, "0 to below 1"),
            ("certainty", self.certainty < 1, "0 to below 1"),
            ("most", self.most >= overlap or not adaptive, f"the overlap of {overlap} or more"),
            ("first_to", adaptive or not first_to, "0 but for the design 'adaptive'"),
            ("most", self.most >= first_to, f"the {first_to} of first_to or more"),
        ):
            if not holds:
                _refuse(name, getattr(self, name), allowed)
        if self.keep_until:
            try:
                date.fromisoformat(self.keep_until)
            except ValueError:
                _refuse("keep_until", self.keep_until, "a date such as 2027-12-31")

    def to_toml(self) -> str:
        """The recipe as TOML, every field with what it means."""
        lines = []
        for setting_field in fields(self):
            if setting_field.name != "settings":
                value = getattr(self, setting_field.name)
                text = json.dumps(list(value) if isinstance(value, tuple) else value, ensure_ascii=False)
                note = setting_field.metadata.get("help", "")
                lines.append(f"{setting_field.name} = {text}" + (f"  # {note}" if note else ""))
        lines += ["", "[settings]", *(f"{k} = {json.dumps(v)}" for k, v in self.settings.items())]
        return "\n".join(lines) + "\n"


def _refuse(name: str, value: object, allowed: str) -> None:
    raise InputError("campaign cannot be run so", where=f"key '{name}'", given=str(value), allowed=allowed)


@dataclass(frozen=True)
class Pay:
    """What an item pays, and per hour at `seconds` for each; `least` is what `limited_by` allows, or 0."""

    per_item: float
    per_hour: float
    by_item: bool
    currency: str
    seconds: float
    least: float = 0.0
    limited_by: str = ""

    def sentence_in(self, language: str = "") -> str:
        """What people are told, in a language.

        >>> Pay(0.05, 45.0, True, "USD", 4.0).sentence_in()
        'You are paid USD 0.05 for each item; at 4 seconds for each that is USD 45.00 per hour.'
        >>> Pay(0.01, 9.0, False, "EUR", 4.0).sentence_in("de")
        'Sie erhalten EUR 9.00 pro Arbeitsstunde, gerechnet mit 4 Sekunden je Aufgabe.'
        """
        english = UNPAID if not self.per_item else BY_ITEM if self.by_item else BY_HOUR
        return phrase_in(language, english).format(
            currency=self.currency, item=self._price, hour=f"{self.per_hour:.2f}", seconds=f"{self.seconds:g}"
        )

    @property
    def terms(self) -> str:
        """What was set: "0.05 per item" or "12.00 per hour"."""
        return f"{self._price} per item" if self.by_item else f"{self.per_hour:.2f} per hour"

    @property
    def _price(self) -> str:
        # Prices of items can be fractions of a cent.
        return f"{self.per_item:.4f}".rstrip("0").ljust(len(f"{self.per_item:.2f}"), "0")

    def below_least(self, effective: float | None) -> str:
        """A warning where pay per hour, as measured, else as set, is below the least; else empty.

        >>> Pay(0.01, 9.0, True, "USD", 4.0, 8.0, "prolific").below_least(6.5)
        'pay per hour is USD 6.50 in the median, below the least that prolific allows, 8.00'
        """
        hourly = self.per_hour if effective is None else effective
        if not hourly < self.least:
            return ""
        how = "at the usual time" if effective is None else "in the median"
        return (
            f"pay per hour is {self.currency} {hourly:.2f} {how}, below the least that {self.limited_by} "
            f"allows, {self.least:.2f}"
        )


def pay_of(recipe: CampaignRecipe, form: WorkForm) -> Pay:
    """The pay of a campaign: the price of its items, else what their usual time is worth per hour.

    >>> from counterfoil.annotate.forms.builtin import YesNo
    >>> found = pay_of(CampaignRecipe(form="yes-no", title="", pay_per_hour=18.0), YesNo())
    >>> round(found.per_item, 4), found.terms
    (0.02, '18.00 per hour')
    >>> pay_of(CampaignRecipe(form="yes-no", title="", pay_per_item=0.025), YesNo()).per_hour
    22.5
    """
    by_item = recipe.pay_per_item > 0
    per_item = recipe.pay_per_item if by_item else recipe.pay_per_hour * form.seconds / 3600
    per_hour = 3600 * per_item / form.seconds if by_item else recipe.pay_per_hour
    least, limited_by = recipe.least_pay, "the recipe"
    if not least and (entry := PLATFORMS.get(recipe.entry)) is not None:
        least, limited_by = dict(entry.least_pay).get(recipe.currency, 0.0), recipe.entry
    return Pay(per_item, per_hour, by_item, recipe.currency, form.seconds, least, limited_by)
