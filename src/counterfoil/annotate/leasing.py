"""Leasing: which items a person has before them, and what an answer to one changes.

All functions work within a writing transaction, which holds the whole database, so that what they read stays
true.
"""

from dataclasses import replace
from functools import lru_cache

from counterfoil.annotate import assignment
from counterfoil.annotate.blocks import finish_in_block, items_of_block
from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.forms.base import Role
from counterfoil.annotate.lease import COLUMNS, Lease, count_answer, extended, issue, new_lease, take_late
from counterfoil.annotate.returns import set_target
from counterfoil.annotate.situation import GOLDEN, NEXT, Situation, Who
from counterfoil.annotate.tables import answers, leases, sa


def lease_items(
    connection: sa.Connection, campaign: Campaign, situation: Situation, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items that a person has before them, at most `ahead`, new ones leased where there are fewer.

    Leases that have expired are given back before, by `release_expired`; nothing was written since the
    situation was read.
    """
    if campaign.recipe.design == "blocks":
        return items_of_block(connection, campaign, situation, now, ahead)
    found: list[Lease] = []
    expires = now + 60 * campaign.recipe.lease_minutes
    # What the person has before them already, and items given back that are still wanted.
    for lease in situation.unanswered:
        if len(found) < ahead and (lease.state == "live" or take_late(connection, lease)):
            found.append(extended(connection, lease, now, expires))
    item, pages = situation.next, situation.pages
    while item is not None and len(found) < ahead and not _has_all(campaign, situation.done + len(found)):
        # Golden items stand among the work, and are not shown for their own sake.
        golden = _golden(connection, campaign, situation.person, pages)
        lease = new_lease(campaign, situation.person, item if golden is None else golden, pages, now, expires)
        found.append(issue(connection, lease))
        pages += 1
        if len(found) < ahead:
            row = NEXT.first(connection, **Who(situation.person).values)
            item = None if row is None else row.position
    return tuple(found)


def lease_onboarding(
    connection: sa.Connection, campaign: Campaign, person: str, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items of the test that a person has not answered rightly yet, at most `ahead`; none: passed.

    An item that was answered wrongly is leased once more, as the next attempt.
    """
    recipe, known = campaign.recipe, places_of(campaign, "onboarding")
    order = assignment.own_order([campaign.items[at] for at in known], recipe.seed, person, "onboarding")
    rows = connection.execute(
        sa.select(*COLUMNS).where(leases.c.person == person, leases.c.role == "onboarding")
    )
    latest: dict[int, Lease] = {}
    for lease in sorted((Lease(*row) for row in rows), key=lambda lease: lease.attempt):
        latest[lease.item] = lease
    of_test = answers.c.person == person, answers.c.role == "onboarding", answers.c.right
    right = set(connection.execute(sa.select(answers.c.item).where(*of_test)).scalars())
    found: list[Lease] = []
    expires = now + 60 * recipe.lease_minutes
    for place, at in enumerate(order[: recipe.onboarding]):
        item = known[at]
        if item in right or len(found) == ahead:
            continue
        before = latest.get(item)
        if before is not None and before.state != "answered":
            found.append(extended(connection, before, now, expires))
        else:
            lease = new_lease(campaign, person, item, place, now, expires)
            again = 0 if before is None else before.attempt + 1
            found.append(issue(connection, replace(lease, attempt=again)))
    return tuple(found)


def finish(
    connection: sa.Connection, campaign: Campaign, lease: Lease, now: float, right: bool | None
) -> None:
    """A lease was answered: count the answer, keep the block its person's, and ask for more where needed."""
    count_answer(connection, lease, right)
    if lease.role == "work" and campaign.recipe.design == "adaptive":
        set_target(connection, campaign, lease.item)
    if lease.block is not None:
        finish_in_block(connection, campaign, lease, now)


@lru_cache(maxsize=64)
def places_of(campaign: Campaign, role: Role) -> tuple[int, ...]:
    """The places of the campaign's items of a role."""
    return tuple(at for at, item in enumerate(campaign.items) if item.role == role)


@lru_cache(maxsize=64)
def reach(campaign: Campaign) -> int:
    """About how many items one person can do, golden ones among them: a block, or one of each instance."""
    recipe = campaign.recipe
    if recipe.design == "blocks":
        return recipe.per_person
    apart = len({campaign.items[at].apart for at in places_of(campaign, "work")})
    golden = round(apart * recipe.golden_share / (1 - recipe.golden_share))
    most = apart + min(golden, len(places_of(campaign, "golden")))
    return min(recipe.per_person or most, most)


def _has_all(campaign: Campaign, items: int) -> bool:
    """Whether a person with so many items is to get no more."""
    return 0 < campaign.recipe.per_person <= items


def _golden(connection: sa.Connection, campaign: Campaign, person: str, place: int) -> int | None:
    """The golden item of a person's page, None where the page is for work or no golden one is left."""
    recipe = campaign.recipe
    if not assignment.is_golden_place(recipe.seed, person, place, recipe.golden_share):
        return None
    known = places_of(campaign, "golden")
    order = assignment.own_order([campaign.items[at] for at in known], recipe.seed, person, "golden")
    free = {row.position for row in GOLDEN.all(connection, **Who(person).values)}
    return next((known[at] for at in order if known[at] in free), None)
