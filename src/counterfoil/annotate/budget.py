"""Budget of a campaign: answers, hours and pay; `settings.pay_of` prices an item from the pay per hour."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import ceil

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import ROLES, Role

#: Words that a person reads in a minute.
_WORDS_PER_MINUTE = 200
#: What takes people's time: items by role, and the instructions and what they agree to.
READING = "reading"


@dataclass(frozen=True)
class BudgetPart:
    """Answers, hours and pay of one role of items, or of reading, whose "answers" are the people."""

    answers: int
    hours: float
    cost: float


@dataclass(frozen=True)
class Budget:
    """What a campaign comes to by role, for so many people; hours at the form's usual time per item."""

    people: int
    parts: Mapping[str, BudgetPart]

    @property
    def hours(self) -> float:
        """All hours, reading among them."""
        return sum(part.hours for part in self.parts.values())

    @property
    def cost(self) -> float:
        """All pay, reading among it."""
        return sum(part.cost for part in self.parts.values())


def budget_of(campaign: Campaign, people: int | None = None) -> Budget:
    """The budget of a campaign, by default for as many people as it needs at least.

    Golden items count as often as the recipe shows them, each once to a person at most; reading is at 200
    words a minute and the pay per hour.
    """
    recipe, seconds, pay = campaign.recipe, campaign.form.seconds, campaign.pay
    work, known, test = (len(positions_of(campaign, role)) for role in ROLES)
    work *= recipe.overlap
    if recipe.design == "blocks":
        needed = ceil(work / (recipe.per_person - recipe.golden_per_block))
        golden = needed * recipe.golden_per_block
        people = needed if people is None else people
    else:
        share = recipe.golden_share / (1 - recipe.golden_share)
        per_person = items_per_person(campaign)
        people = max(recipe.overlap, ceil(work * (1 + share) / per_person)) if people is None else people
        golden = min(round(work * share), people * known)
    words = len(f"{campaign.instructions_in()} {campaign.consent_in()}".split())
    answers = {"work": work, "golden": golden, "onboarding": people * min(recipe.onboarding, test)}
    parts = {role: BudgetPart(n, n * seconds / 3600, n * pay.per_item) for role, n in answers.items() if n}
    hours = people * words / _WORDS_PER_MINUTE / 60
    return Budget(people, {**parts, READING: BudgetPart(people, hours, hours * pay.per_hour)})


@lru_cache(maxsize=64)
def positions_of(campaign: Campaign, role: Role) -> tuple[int, ...]:
    """The positions of the campaign's items of a role."""
    return tuple(at for at, item in enumerate(campaign.items) if item.role == role)


@lru_cache(maxsize=64)
def items_per_person(campaign: Campaign) -> int:
    """About how many items one person can do, golden ones among them: a block, or one of each instance."""
    recipe = campaign.recipe
    if recipe.design == "blocks":
        return recipe.per_person
    apart = len({campaign.items[at].apart for at in positions_of(campaign, "work")})
    golden = round(apart * recipe.golden_share / (1 - recipe.golden_share))
    most = apart + min(golden, len(positions_of(campaign, "golden")))
    return min(recipe.per_person or most, most)
