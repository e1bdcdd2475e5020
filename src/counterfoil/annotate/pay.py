"""Pay of a campaign: per hour or per item, what one is as the other, and the least that is allowed."""

from dataclasses import dataclass

from counterfoil.annotate.forms.base import WorkForm
from counterfoil.annotate.languages import phrase_in
from counterfoil.annotate.platforms.registry import PLATFORMS
from counterfoil.annotate.recipe import CampaignRecipe

#: What people are told of their pay.
UNPAID = "This work is not paid."
BY_ITEM = (
    "You are paid {currency} {item} for each item; at {seconds} seconds for each that is {currency} {hour} "
    "per hour."
)
BY_HOUR = "You are paid {currency} {hour} per hour of work, counted at {seconds} seconds for each item."


@dataclass(frozen=True)
class Pay:
    """What an item pays, and what that is per hour of a person who takes `seconds` for each.

    `by_item` is whether items have a price of their own. `least` is the least pay per hour that `limited_by`
    (a platform, or the recipe itself) allows in this currency; 0 where there is none.
    """

    per_item: float
    per_hour: float
    by_item: bool
    currency: str
    seconds: float
    least: float = 0.0
    limited_by: str = ""

    def sentence_in(self, language: str = "") -> str:
        """What people are told, in a language of `languages.LANGUAGES`; in English by default.

        >>> Pay(0.05, 45.0, True, "USD", 4.0).sentence_in()
        'You are paid USD 0.05 for each item; at 4 seconds for each that is USD 45.00 per hour.'
        >>> Pay(0.01, 9.0, False, "EUR", 4.0).sentence_in("de")
        'Sie erhalten EUR 9.00 pro Arbeitsstunde, gerechnet mit 4 Sekunden je Aufgabe.'
        """
        english = UNPAID if not self.per_item else BY_ITEM if self.by_item else BY_HOUR
        return phrase_in(language, english).format(
            currency=self.currency,
            item=self._price,
            hour=f"{self.per_hour:.2f}",
            seconds=f"{self.seconds:g}",
        )

    @property
    def terms(self) -> str:
        """What was set, in few words: "0.05 per item" or "12.00 per hour"."""
        return f"{self._price} per item" if self.by_item else f"{self.per_hour:.2f} per hour"

    @property
    def _price(self) -> str:
        # Prices of items can be fractions of a cent.
        return f"{self.per_item:.4f}".rstrip("0").ljust(len(f"{self.per_item:.2f}"), "0")

    def below_least(self, effective: float | None) -> str:
        """A warning where pay per hour is below the least: as measured, else as set; else empty.

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

    >>> from counterfoil.annotate.forms.pairs import YesNo
    >>> found = pay_of(CampaignRecipe(form="yes-no", title="", pay_per_hour=18.0), YesNo())
    >>> round(found.per_item, 4), found.terms
    (0.02, '18.00 per hour')
    >>> pay_of(CampaignRecipe(form="yes-no", title="", pay_per_item=0.025), YesNo()).per_hour
    22.5
    """
    by_item = recipe.pay_per_item > 0
    per_item = recipe.pay_per_item if by_item else recipe.pay_per_hour * form.seconds / 3600
    per_hour = 3600 * per_item / form.seconds if by_item else recipe.pay_per_hour
    entry = PLATFORMS.get(recipe.entry)
    least, limited_by = recipe.least_pay, "the recipe"
    if not least and entry is not None:
        least, limited_by = dict(entry.least_pay).get(recipe.currency, 0.0), recipe.entry
    return Pay(per_item, per_hour, by_item, recipe.currency, form.seconds, least, limited_by)
