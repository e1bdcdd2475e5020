"""Who gets which item: from the queue, from a block of their own, or from the test before the work.

All functions work within a writing transaction, which holds the whole database, so that what was read stays
true. An item's counts (`answered`, `leased`) change here, and where all people are deleted (`privacy`).
"""

import json
import secrets
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from counterfoil.annotate.campaign import Campaign, CampaignRecipe, positions_of
from counterfoil.annotate.forms.base import NOT_VISIBLE, Role
from counterfoil.annotate.golden import is_golden_place, own_order
from counterfoil.annotate.participants import Person
from counterfoil.annotate.tables import (
    ROUND,
    answers,
    block_items,
    blocks,
    items,
    leases,
    log_event,
    people,
    sa,
    set_person,
)

#: What is believed of a person's accuracy before golden answers: its mean, and the answers it is worth.
_ACCURACY, _WEIGHT = 0.8, 5.0


@dataclass(frozen=True)
class Lease:
    """An item before a person; `item` is its place in the campaign, `place` counts the person's pages."""

    id: str
    person: str
    item: int
    attempt: int
    role: Role
    place: int
    block: int | None
    issued: float
    expires: float
    state: str


COLUMNS = tuple(leases.c[name] for name in Lease.__dataclass_fields__)
# Statements that every answer runs are built once: to build one takes longer than to run it.
LEASE_ID, PERSON_ID = sa.bindparam("lease_id", type_=sa.Text), sa.bindparam("person_id", type_=sa.Text)
_POSITION = sa.bindparam("item_position", type_=sa.Integer)
_MORE = sa.bindparam("more", type_=sa.Integer)
FIND = sa.select(*COLUMNS).where(leases.c.id == LEASE_ID, leases.c.person == PERSON_ID)
_SET_STATE = sa.update(leases).where(leases.c.id == LEASE_ID).values(state=sa.bindparam("new_state"))
_EXTEND = sa.update(leases).where(leases.c.id == LEASE_ID).values(state="live", expires=sa.bindparam("until"))
_INSTANCE = sa.select(items.c.instance).where(items.c.position == _POSITION).scalar_subquery()
_INSERT = sa.insert(leases).values(
    {column: sa.bindparam(f"lease_{column.name}", type_=column.type) for column in COLUMNS}
    | {leases.c.instance: _INSTANCE}
)
_OF_ITEM = sa.update(items).where(items.c.position == _POSITION)
_OF_PERSON = sa.update(people).where(people.c.id == PERSON_ID)
_COUNT_LEASED = _OF_ITEM.values(leased=items.c.leased + _MORE, rank=items.c.rank + ROUND * _MORE)
_COUNT_PAGE = _OF_PERSON.values(pages=people.c.pages + 1)
_COUNT_ANSWERED = _OF_ITEM.values(leased=items.c.leased - 1, answered=items.c.answered + 1)
_COUNT_DONE = _OF_PERSON.values(
    done=people.c.done + 1,
    right=people.c.right + sa.bindparam("is_right", type_=sa.Integer),
    wrong=people.c.wrong + sa.bindparam("is_wrong", type_=sa.Integer),
)
_STORE = sa.insert(answers).values(
    {
        column: sa.bindparam(f"answer_{column.name}", type_=column.type)
        for column in answers.c
        if column.name not in ("number", "counted")
    }
)
#: What is written of a new lease, and of the answer to one, by the role of its item.
_ISSUE = {
    "work": (_COUNT_LEASED, _COUNT_PAGE, _INSERT),
    "golden": (_COUNT_PAGE, _INSERT),
    "onboarding": (_INSERT,),
}
_ANSWER = {
    "work": (_SET_STATE, _COUNT_DONE, _COUNT_ANSWERED, _STORE),
    "golden": (_SET_STATE, _COUNT_DONE, _STORE),
    "onboarding": (_SET_STATE, _STORE),
}
# A word in the text of the statement, so that the index of live leases serves it.
_LIVE = leases.c.state == sa.literal_column("'live'")
EXPIRED = sa.select(leases.c.id).where(
    _LIVE, leases.c.expires < sa.bindparam("now", type_=sa.Float), leases.c.block.is_(None)
)
_had = leases.alias("had")
_NEW = (
    ~sa.select(_had.c.id).where(_had.c.person == PERSON_ID, _had.c.instance == items.c.instance).exists(),
    sa.or_(items.c.author.is_(None), items.c.author != PERSON_ID),
)
#: The next item of the queue that is new to a person, and the golden items that are.
NEXT = sa.select(items.c.position).where(items.c.open == 1, *_NEW).order_by(items.c.rank).limit(1)
GOLDEN = sa.select(items.c.position).where(items.c.role == "golden", *_NEW)
#: A person's leases without an answer, in the order of their pages.
UNANSWERED = (
    sa.select(*COLUMNS)
    .where(
        leases.c.person == PERSON_ID,
        leases.c.state != sa.literal_column("'answered'"),
        leases.c.role != sa.literal_column("'onboarding'"),
    )
    .order_by(leases.c.place)
)


def find_lease(connection: sa.Connection, person: str, lease: str) -> Lease | None:
    """A person's lease by its id; None for an unknown id and for another person's."""
    row = connection.execute(FIND, {"lease_id": lease, "person_id": person}).first()
    return None if row is None else Lease(*row)


def issue(
    connection: sa.Connection,
    campaign: Campaign,
    person: str,
    item: int,
    place: int,
    now: float,
    expires: float,
    *,
    attempt: int = 0,
    block: int | None = None,
) -> Lease:
    """Store a new lease, and count it where its item and its person are counted."""
    role = campaign.items[item].role
    lease = Lease(secrets.token_hex(16), person, item, attempt, role, place, block, now, expires, "live")
    values = {f"lease_{name}": value for name, value in vars(lease).items()}
    values |= {"person_id": person, "item_position": item, "more": 1}
    for statement in _ISSUE[role]:
        connection.execute(statement, values)
    return lease


def extend(connection: sa.Connection, lease: Lease, now: float, expires: float) -> Lease:
    """The lease with a new limit, written only where the old one is past its half."""
    if lease.expires - now > (expires - now) / 2:
        return lease
    connection.execute(_EXTEND, {"lease_id": lease.id, "until": expires})
    return replace(lease, state="live", expires=expires)


def store_answer(connection: sa.Connection, campaign: Campaign, lease: Lease, row: dict[str, Any]) -> None:
    """Store the answer to a lease, and count it where its item and its person are counted."""
    # Work may have a known answer too, for the researcher alone: only golden items count against a person.
    golden = lease.role == "golden"
    own = {name: getattr(lease, name) for name in ("person", "item", "attempt", "role")}
    values = {
        "lease_id": lease.id,
        "new_state": "answered",
        "person_id": lease.person,
        "item_position": lease.item,
        "is_right": int(golden and row["right"] is True),
        "is_wrong": int(golden and row["right"] is False),
        **{f"answer_{name}": value for name, value in {**row, **own, "lease": lease.id}.items()},
    }
    for statement in _ANSWER[lease.role]:
        connection.execute(statement, values)
    if lease.role == "work" and campaign.recipe.design == "adaptive":
        set_target(connection, campaign, lease.item)


def release(connection: sa.Connection, *where: Any) -> int:
    """Let others have the items of live leases where conditions hold; how many."""
    live = sa.select(leases.c.id, leases.c.item, leases.c.role).where(_LIVE, *where)
    rows = connection.execute(live).all()
    for row in rows:
        connection.execute(_SET_STATE, {"lease_id": row.id, "new_state": "returned"})
        if row.role == "work":
            connection.execute(_COUNT_LEASED, {"item_position": row.item, "more": -1})
    return len(rows)


def release_expired(connection: sa.Connection, now: float) -> int:
    """Let others have the items of expired leases; how many. Blocks go back when another person needs one."""
    return release(connection, leases.c.expires < now, leases.c.block.is_(None))


def reclaim(connection: sa.Connection, lease: Lease) -> bool:
    """Make a lease that was released live again; False where others have taken its item."""
    if lease.role == "work":
        free = sa.update(items).where(items.c.position == lease.item, items.c.open == 1)
        if not connection.execute(free.values(leased=items.c.leased + 1, rank=items.c.rank + ROUND)).rowcount:
            return False
    connection.execute(_SET_STATE, {"lease_id": lease.id, "new_state": "live"})
    return True


def invalidate(
    connection: sa.Connection, campaign: Campaign, person: str, *, block: int | None = None
) -> int:
    """Count a person's answers no more, of one block or all, and let others have the items; how many."""
    mine = [leases.c.person == person]
    if block is not None:
        mine.append(leases.c.block == block)
    release(connection, *mine)
    of_person = answers.c.lease.in_(sa.select(leases.c.id).where(*mine))
    counted = sa.select(answers.c.number, answers.c.item, answers.c.role)
    rows = connection.execute(counted.where(answers.c.person == person, answers.c.counted, of_person)).all()
    for row in rows:
        connection.execute(sa.update(answers).where(answers.c.number == row.number).values(counted=False))
        if row.role == "work":
            fewer = sa.update(items).where(items.c.position == row.item)
            connection.execute(fewer.values(answered=items.c.answered - 1, rank=items.c.rank - ROUND))
            if campaign.recipe.design == "adaptive":
                set_target(connection, campaign, row.item)
    own_blocks = blocks.c.person == person if block is None else blocks.c.id == block
    connection.execute(sa.update(blocks).where(own_blocks).values(person=None, expires=None, done=False))
    return len(rows)


def set_target(connection: sa.Connection, campaign: Campaign, item: int) -> None:
    """Set how many answers an item of an adaptive design is to get, by those that it has."""
    rows = connection.execute(
        sa.select(answers.c.answer, people.c.right, people.c.wrong)
        .join(people, people.c.id == answers.c.person)
        .where(answers.c.item == item, answers.c.counted)
    )
    main = campaign.form.main
    given = [(json.loads(text).get(main), right, wrong) for text, right, wrong in rows]
    votes = [
        (value if isinstance(value, str) else json.dumps(value), right, wrong)
        for value, right, wrong in given
        if value != NOT_VISIBLE
    ]
    fields = [field for field in campaign.form.page(campaign.items[item]).fields if field.name == main]
    n_options = len(fields[0].options) if fields and fields[0].kind == "one" else 0
    wanted = still_needed(votes, n_options, campaign.recipe)
    taken = items.c.answered + items.c.leased
    target = sa.case((taken > wanted, taken), else_=wanted)
    connection.execute(sa.update(items).where(items.c.position == item).values(target=target))


def posterior(votes: Sequence[tuple[str, int, int]], n_options: int) -> dict[str, float]:
    """The chance of each answer to be right, from votes (answer, the person's right and wrong golden ones).

    By the one-coin model, with each person's posterior mean accuracy; answers without a vote share the rest.

    >>> found = posterior([("yes", 0, 0), ("yes", 0, 0), ("no", 0, 0)], 2)
    >>> round(found["yes"], 3)
    0.8
    """
    prior = _ACCURACY * _WEIGHT
    accuracies = [(answer, (right + prior) / (right + wrong + _WEIGHT)) for answer, right, wrong in votes]
    given = sorted({answer for answer, _ in accuracies})
    n = max(n_options, 2, len(given))
    logs = [
        sum(np.log(a if answer == candidate else (1 - a) / (n - 1)) for answer, a in accuracies)
        for candidate in given
    ]
    others = sum(np.log((1 - a) / (n - 1)) for _, a in accuracies)
    weights = np.exp(np.array([*logs, others]) - max([*logs, others]))
    total = weights[:-1].sum() + (n - len(given)) * weights[-1]
    return dict(zip(given, (weights[:-1] / total).tolist(), strict=True))


def still_needed(votes: Sequence[tuple[str, int, int]], n_options: int, recipe: CampaignRecipe) -> int:
    """How many answers of an item are wanted; with `first_to` as many as if all that come are equal, so that
    none is asked in vain.

    >>> recipe = CampaignRecipe(form="yes-no", title="", design="adaptive", overlap=3, most=5)
    >>> yes, no = ("yes", 9, 1), ("no", 9, 1)
    >>> [still_needed(votes, 2, recipe) for votes in ([yes], [yes] * 3, [yes, no, no], [yes, no] * 3)]
    [3, 3, 4, 5]
    """
    if recipe.first_to:
        ahead = max(Counter(answer for answer, _, _ in votes).values(), default=0)
        wanted = min(len(votes) + max(0, recipe.first_to - ahead), recipe.most)
        return max(recipe.overlap, wanted)
    if recipe.design != "adaptive" or len(votes) < recipe.overlap:
        return recipe.overlap
    if max(posterior(votes, n_options).values()) >= recipe.certainty:
        return max(recipe.overlap, min(len(votes), recipe.most))
    return min(len(votes) + 1, recipe.most)


def next_items(
    connection: sa.Connection, campaign: Campaign, person: Person, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items that a person has before them, at most `ahead`, new ones leased where there are fewer."""
    recipe = campaign.recipe
    if connection.execute(EXPIRED, {"now": now}).first() is not None:
        release_expired(connection, now)
    unanswered = [Lease(*row) for row in connection.execute(UNANSWERED, {"person_id": person.id})]
    if recipe.design == "blocks":
        return _items_of_block(connection, campaign, person, unanswered, now, ahead)
    before: list[Lease] = []
    expires = now + 60 * recipe.lease_minutes
    # What the person has before them already, and released items that are still wanted.
    for lease in unanswered:
        if len(before) < ahead and (lease.state == "live" or reclaim(connection, lease)):
            before.append(extend(connection, lease, now, expires))
    pages, most = person.pages, recipe.per_person or float("inf")
    while len(before) < ahead and person.done + len(before) < most:
        item = connection.execute(NEXT, {"person_id": person.id}).scalar()
        if item is None:
            break
        # Golden items stand among the work, and are not shown for their own sake.
        if is_golden_place(recipe.seed, person.id, pages, recipe.golden_share):
            known = positions_of(campaign, "golden")
            golden = [campaign.items[at] for at in known]
            order = own_order(golden, recipe.seed, person.id, "golden")
            free: set[Any] = set(connection.execute(GOLDEN, {"person_id": person.id}).scalars())
            item = next((known[at] for at in order if known[at] in free), item)
        before.append(issue(connection, campaign, person.id, item, pages, now, expires))
        pages += 1
    return tuple(before)


def qualification_items(
    connection: sa.Connection, campaign: Campaign, person: str, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items of the test that a person has not answered rightly yet, at most `ahead`; none: passed."""
    recipe, positions = campaign.recipe, positions_of(campaign, "onboarding")
    order = own_order([campaign.items[at] for at in positions], recipe.seed, person, "onboarding")
    query = sa.select(*COLUMNS).where(leases.c.person == person, leases.c.role == "onboarding")
    rows = connection.execute(query.order_by(leases.c.attempt))
    latest = {row.item: Lease(*row) for row in rows}
    of_test = answers.c.person == person, answers.c.role == "onboarding", answers.c.right
    right = set(connection.execute(sa.select(answers.c.item).where(*of_test)).scalars())
    before: list[Lease] = []
    expires = now + 60 * recipe.lease_minutes
    for place, at in enumerate(order[: recipe.onboarding]):
        item = positions[at]
        if item in right or len(before) == ahead:
            continue
        lease = latest.get(item)
        if lease is not None and lease.state != "answered":
            before.append(extend(connection, lease, now, expires))
        else:
            attempt = 0 if lease is None else lease.attempt + 1
            before.append(issue(connection, campaign, person, item, place, now, expires, attempt=attempt))
    return tuple(before)


def _items_of_block(
    connection: sa.Connection,
    campaign: Campaign,
    person: Person,
    unanswered: Sequence[Lease],
    now: float,
    ahead: int,
) -> tuple[Lease, ...]:
    """The next items of a person's block, at most `ahead`; of a new block where one is wanted and free."""
    mine = connection.execute(sa.select(blocks).where(blocks.c.person == person.id)).all()
    block = next((row.id for row in mine if not row.done), None)
    if block is None and len(mine) < person.wanted:
        block = _take_block(connection, campaign, person.id, now)
    if block is None:
        return ()
    expires = connection.execute(sa.select(blocks.c.expires).where(blocks.c.id == block)).scalar_one()
    # Those of a person who ended early and came back are theirs again, as long as the block is.
    before = [
        replace(lease, state="live")
        for lease in unanswered
        if lease.block == block and (lease.state == "live" or reclaim(connection, lease))
    ][:ahead]
    issued = sa.select(sa.func.count()).where(leases.c.person == person.id, leases.c.block == block)
    place = connection.execute(issued).scalar_one()
    members = sa.select(block_items.c.item).where(block_items.c.block == block, block_items.c.place >= place)
    ordered = members.order_by(block_items.c.place).limit(ahead - len(before))
    new = connection.execute(ordered).scalars().all()
    before += [
        issue(connection, campaign, person.id, item, at, now, expires, block=block)
        for at, item in enumerate(new, place)
    ]
    return tuple(before)


def _take_block(connection: sa.Connection, campaign: Campaign, person: str, now: float) -> int | None:
    """A block without what the person had or made: a free one, else one that is overdue."""
    members = (
        sa.select(block_items.c.item)
        .join(items, items.c.position == block_items.c.item)
        .where(block_items.c.block == blocks.c.id)
    )
    of_person = sa.and_(leases.c.person == person, leases.c.instance == items.c.instance)
    had, written = members.join(leases, of_person), members.where(items.c.author == person)
    late = sa.and_(blocks.c.expires < now, blocks.c.person != person, ~blocks.c.done)
    row = connection.execute(
        sa.select(blocks.c.id, blocks.c.person)
        .where(sa.or_(blocks.c.person.is_(None), late), ~had.exists(), ~written.exists())
        .order_by(blocks.c.person.is_not(None), blocks.c.expires, blocks.c.id)
        .limit(1)
    ).first()
    if row is None:
        return None
    if row.person is not None:
        n = invalidate(connection, campaign, row.person, block=row.id)
        set_person(connection, row.person, done=people.c.done - n)
        log_event(connection, now, "block returned", row.person, f"block {row.id}, {n} answers set aside")
    expires = now + 60 * campaign.recipe.block_minutes
    taken = sa.update(blocks).where(blocks.c.id == row.id)
    connection.execute(taken.values(person=person, expires=expires, done=False))
    return int(row.id)


def finish_in_block(connection: sa.Connection, campaign: Campaign, lease: Lease, now: float) -> None:
    """An item of a block was answered: the block stays its person's, and is done with its last item."""
    mine = leases.c.person == lease.person, leases.c.block == lease.block, leases.c.state == "answered"
    answered = connection.execute(sa.select(sa.func.count()).where(*mine)).scalar_one()
    members = sa.select(sa.func.count()).where(block_items.c.block == lease.block)
    size = connection.execute(members).scalar_one()
    # Who is at work keeps the block, however long it has taken.
    least = now + 60 * campaign.recipe.lease_minutes
    expires = sa.case((blocks.c.expires < least, least), else_=blocks.c.expires)
    change = sa.update(blocks).where(blocks.c.id == lease.block)
    connection.execute(change.values(done=answered == size, expires=expires))
