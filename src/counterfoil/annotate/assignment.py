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
from counterfoil.annotate.tables import ROUND, Connection, insert, log_event, run

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


_COLUMNS = ", ".join(Lease.__dataclass_fields__)
FIND = f"SELECT {_COLUMNS} FROM leases WHERE id = :lease AND person = :person"
_SET_STATE = "UPDATE leases SET state = :state WHERE id = :lease"
_INSTANCE = "(SELECT instance FROM items WHERE position = :item)"
_INSERT = f"INSERT INTO leases ({_COLUMNS}, instance) VALUES (:{_COLUMNS.replace(', ', ', :')}, {_INSTANCE})"
_COUNT_LEASED = f"UPDATE items SET leased = leased + :n, rank = rank + {ROUND} * :n WHERE position = :item"
COUNT_DONE = (
    'UPDATE people SET done = done + :n, "right" = "right" + :right, wrong = wrong + :wrong '
    "WHERE id = :person"
)
# "live" and "answered" are words of the statements, so that the indexes of such leases serve them.
EXPIRED = "SELECT id FROM leases WHERE state = 'live' AND expires < :now AND block IS NULL"
_NEW = (
    "NOT EXISTS (SELECT 1 FROM leases WHERE person = :person AND leases.instance = items.instance) "
    "AND (author IS NULL OR author <> :person)"
)
#: The next item of the queue that is new to a person, and the golden items that are.
NEXT = f"SELECT position FROM items WHERE open = 1 AND {_NEW} ORDER BY rank LIMIT 1"
GOLD_ITEMS = f"SELECT position FROM items WHERE role = 'golden' AND {_NEW}"
#: A person's leases without an answer, in the order of their pages.
UNANSWERED = (
    f"SELECT {_COLUMNS} FROM leases WHERE person = :person AND state <> 'answered' AND role <> 'onboarding' "
    "ORDER BY place"
)


def find_lease(connection: Connection, person: str, lease: str) -> Lease | None:
    """A person's lease by its id; None for an unknown id and for another person's."""
    row = run(connection, FIND, lease=lease, person=person).first()
    return None if row is None else Lease(*row)


def issue(
    connection: Connection,
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
    if role == "work":
        run(connection, _COUNT_LEASED, item=item, n=1)
    if role != "onboarding":
        run(connection, "UPDATE people SET pages = pages + 1 WHERE id = :person", person=person)
    run(connection, _INSERT, **vars(lease))
    return lease


def extend(connection: Connection, lease: Lease, now: float, expires: float) -> Lease:
    """The lease with a new limit, written only where the old one is past its half."""
    if lease.expires - now > (expires - now) / 2:
        return lease
    longer = "UPDATE leases SET state = 'live', expires = :expires WHERE id = :lease"
    run(connection, longer, lease=lease.id, expires=expires)
    return replace(lease, state="live", expires=expires)


def store_answer(connection: Connection, campaign: Campaign, lease: Lease, row: dict[str, Any]) -> None:
    """Store the answer to a lease, and count it where its item and its person are counted."""
    run(connection, _SET_STATE, lease=lease.id, state="answered")
    if lease.role != "onboarding":
        # Work may have a known answer too, for the researcher alone: only golden items count for a person.
        right, wrong = (int(lease.role == "golden" and row["right"] is outcome) for outcome in (True, False))
        run(connection, COUNT_DONE, person=lease.person, n=1, right=right, wrong=wrong)
    if lease.role == "work":
        one_more = "UPDATE items SET leased = leased - 1, answered = answered + 1 WHERE position = :item"
        run(connection, one_more, item=lease.item)
    columns = {name: getattr(lease, name) for name in ("person", "item", "attempt", "role")}
    insert(connection, "answers", {**columns, "lease": lease.id, **row})
    if lease.role == "work" and campaign.recipe.design == "adaptive":
        set_target(connection, campaign, lease.item)


def release(connection: Connection, where: str, **values: Any) -> int:
    """Let others have the items of live leases where a condition in SQL holds; how many."""
    live = f"SELECT id, item, role FROM leases WHERE state = 'live' AND {where}"
    rows = run(connection, live, **values).all()
    for row in rows:
        run(connection, _SET_STATE, lease=row.id, state="returned")
        if row.role == "work":
            run(connection, _COUNT_LEASED, item=row.item, n=-1)
    return len(rows)


def release_expired(connection: Connection, now: float) -> int:
    """Let others have the items of expired leases; how many. Blocks go back when another person needs one."""
    return release(connection, "expires < :now AND block IS NULL", now=now)


def reclaim(connection: Connection, lease: Lease) -> bool:
    """Make a lease that was released live again; False where others have taken its item."""
    free = f"{_COUNT_LEASED} AND open = 1"
    if lease.role == "work" and not run(connection, free, item=lease.item, n=1).rowcount:
        return False
    run(connection, _SET_STATE, lease=lease.id, state="live")
    return True


def invalidate(connection: Connection, campaign: Campaign, person: str, *, block: int | None = None) -> int:
    """Count a person's answers no more, of one block or all, and let others have the items; how many."""
    mine = "person = :person" + ("" if block is None else " AND block = :block")
    values: dict[str, Any] = {"person": person, "block": block}
    release(connection, mine, **values)
    counted = f"person = :person AND counted AND lease IN (SELECT id FROM leases WHERE {mine})"
    work = f"SELECT item FROM answers WHERE {counted} AND role = 'work'"
    judged = run(connection, work, **values).scalars().all()
    fewer = f"UPDATE items SET answered = answered - 1, rank = rank - {ROUND} WHERE position IN ({work})"
    run(connection, fewer, **values)
    n: int = run(connection, f"UPDATE answers SET counted = false WHERE {counted}", **values).rowcount
    for item in judged if campaign.recipe.design == "adaptive" else ():
        set_target(connection, campaign, item)
    condition = "person = :person" if block is None else "id = :block"
    given_back = f"UPDATE blocks SET person = NULL, expires = NULL, done = false WHERE {condition}"
    run(connection, given_back, **values)
    return n


def set_target(connection: Connection, campaign: Campaign, item: int) -> None:
    """Set how many answers an item of an adaptive design is to get, by those that it has."""
    given_answers = (
        'SELECT answer, people."right", wrong FROM answers JOIN people ON people.id = answers.person '
        "WHERE item = :item AND counted"
    )
    main = campaign.form.main
    rows = run(connection, given_answers, item=item)
    given = [(json.loads(text).get(main), right, wrong) for text, right, wrong in rows]
    votes = [
        (value if isinstance(value, str) else json.dumps(value), right, wrong)
        for value, right, wrong in given
        if value != NOT_VISIBLE
    ]
    fields = [field for field in campaign.form.page(campaign.items[item]).fields if field.name == main]
    n_options = len(fields[0].options) if fields and fields[0].kind == "one" else 0
    wanted = still_needed(votes, n_options, campaign.recipe)
    taken = "answered + leased"
    target = f"CASE WHEN {taken} > :wanted THEN {taken} ELSE :wanted END"
    change = f"UPDATE items SET target = {target} WHERE position = :item"
    run(connection, change, wanted=wanted, item=item)


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
    connection: Connection, campaign: Campaign, person: Person, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items that a person has before them, at most `ahead`, new ones leased where there are fewer."""
    recipe = campaign.recipe
    if run(connection, EXPIRED, now=now).first() is not None:
        release_expired(connection, now)
    unanswered = [Lease(*row) for row in run(connection, UNANSWERED, person=person.id)]
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
        item = run(connection, NEXT, person=person.id).scalar()
        if item is None:
            break
        # Golden items stand among the work, and are not shown for their own sake.
        if is_golden_place(recipe.seed, person.id, pages, recipe.golden_share):
            golden_positions = positions_of(campaign, "golden")
            gold = [campaign.items[i] for i in golden_positions]
            order = own_order(gold, recipe.seed, person.id, "golden")
            free: set[Any] = set(run(connection, GOLD_ITEMS, person=person.id).scalars())
            item = next((golden_positions[i] for i in order if golden_positions[i] in free), item)
        before.append(issue(connection, campaign, person.id, item, pages, now, expires))
        pages += 1
    return tuple(before)


def qualification_items(
    connection: Connection, campaign: Campaign, person: str, now: float, ahead: int
) -> tuple[Lease, ...]:
    """The items of the test that a person has not answered rightly yet, at most `ahead`; none: passed."""
    recipe, positions = campaign.recipe, positions_of(campaign, "onboarding")
    order = own_order([campaign.items[position] for position in positions], recipe.seed, person, "onboarding")
    of_test = f"SELECT {_COLUMNS} FROM leases WHERE person = :person AND role = 'onboarding' ORDER BY attempt"
    latest = {row.item: Lease(*row) for row in run(connection, of_test, person=person)}
    passed = "SELECT item FROM answers WHERE person = :person AND role = 'onboarding' AND \"right\""
    right = set(run(connection, passed, person=person).scalars())
    before: list[Lease] = []
    expires = now + 60 * recipe.lease_minutes
    for place, position in enumerate(order[: recipe.onboarding]):
        item = positions[position]
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
    connection: Connection,
    campaign: Campaign,
    person: Person,
    unanswered: Sequence[Lease],
    now: float,
    ahead: int,
) -> tuple[Lease, ...]:
    """The next items of a person's block, at most `ahead`; of a new block where one is wanted and free."""
    mine = run(connection, "SELECT id, done FROM blocks WHERE person = :person", person=person.id).all()
    block = next((row.id for row in mine if not row.done), None)
    if block is None and len(mine) < person.wanted:
        block = _take_block(connection, campaign, person.id, now)
    if block is None:
        return ()
    expires = run(connection, "SELECT expires FROM blocks WHERE id = :block", block=block).scalar_one()
    # Those of a person who ended early and came back are theirs again, as long as the block is.
    before = [
        replace(lease, state="live")
        for lease in unanswered
        if lease.block == block and (lease.state == "live" or reclaim(connection, lease))
    ][:ahead]
    issued = "SELECT count(*) FROM leases WHERE person = :person AND block = :block"
    place = run(connection, issued, person=person.id, block=block).scalar_one()
    members = "SELECT item FROM block_items WHERE block = :block AND place >= :place ORDER BY place LIMIT :n"
    new = run(connection, members, block=block, place=place, n=ahead - len(before)).scalars().all()
    before += [
        issue(connection, campaign, person.id, item, i, now, expires, block=block)
        for i, item in enumerate(new, place)
    ]
    return tuple(before)


def _take_block(connection: Connection, campaign: Campaign, person: str, now: float) -> int | None:
    """A block without what the person had or made: a free one, else one that is overdue."""
    not_new = (
        "SELECT 1 FROM block_items JOIN items ON position = item WHERE block = blocks.id AND "
        "(author = :person OR instance IN (SELECT instance FROM leases WHERE leases.person = :person))"
    )
    free = (
        "SELECT id, person FROM blocks WHERE (person IS NULL OR expires < :now AND person <> :person AND NOT "
        f"done) AND NOT EXISTS ({not_new}) ORDER BY person IS NOT NULL, expires, id LIMIT 1"
    )
    row = run(connection, free, now=now, person=person).first()
    if row is None:
        return None
    if row.person is not None:
        n = invalidate(connection, campaign, row.person, block=row.id)
        run(connection, COUNT_DONE, person=row.person, n=-n, right=0, wrong=0)
        log_event(connection, now, "block returned", row.person, f"block {row.id}, {n} answers set aside")
    expires = now + 60 * campaign.recipe.block_minutes
    taken = "UPDATE blocks SET person = :person, expires = :expires, done = false WHERE id = :block"
    run(connection, taken, person=person, expires=expires, block=row.id)
    return int(row.id)


def finish_in_block(connection: Connection, campaign: Campaign, lease: Lease, now: float) -> None:
    """An item of a block was answered: the block stays its person's, and is done with its last item."""
    mine = "SELECT count(*) FROM leases WHERE person = :person AND block = :block AND state = 'answered'"
    answered = run(connection, mine, person=lease.person, block=lease.block).scalar_one()
    members = "SELECT count(*) FROM block_items WHERE block = :block"
    done = answered == run(connection, members, block=lease.block).scalar_one()
    # Who is at work keeps the block, however long it has taken.
    change = (
        "UPDATE blocks SET done = :done, expires = CASE WHEN expires < :least THEN :least ELSE expires END "
        "WHERE id = :block"
    )
    least = now + 60 * campaign.recipe.lease_minutes
    run(connection, change, done=done, least=least, block=lease.block)
