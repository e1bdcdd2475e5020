"""Situation of a person: what is read of them when they send an answer, and before they get items.

Each is one statement, since with PostgreSQL the way there and back takes longer than most statements.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from counterfoil.annotate.campaign import Campaign
from counterfoil.annotate.lease import COLUMNS, Lease
from counterfoil.annotate.statements import DatabaseQuery, PreparedStatement
from counterfoil.annotate.tables import answers, items, leases, meta, people, sa, tokens
from counterfoil.errors import InputError

PersonState = Literal["consent", "onboarding", "work", "disqualified", "withdrawn", "ended"]


@dataclass(frozen=True)
class Who:
    """A person by their id, or by the hash of a token that their pages have."""

    id: str | None = None
    token: str | None = None

    @property
    def values(self) -> Mapping[str, Any]:
        """What statements about the person are given."""
        return {"the_person": self.id, "the_token": self.token}


@dataclass(frozen=True)
class Asked:
    """What is there before an answer is taken.

    `lease` is None for an unknown id and for another person's; `before` are lease and answer of what the
    person sent with the same key.
    """

    person: str
    state: PersonState
    lease: Lease | None
    before: tuple[str, str] | None


@dataclass(frozen=True)
class Situation:
    """A person before they get items, with their leases without an answer; `next` is the next item.

    `running` is what the researcher has set ("" for nothing), `expired` whether any lease is over that has
    not been given back. `next` is None where nothing is left, and where people do blocks.
    """

    person: str
    state: PersonState
    pages: int
    done: int
    wanted: int
    finished: float | None
    running: str
    expired: bool
    next: int | None
    unanswered: tuple[Lease, ...]


_NOW = sa.bindparam("the_now", type_=sa.Float)
_PERSON = sa.func.coalesce(
    sa.bindparam("the_person", type_=sa.Text),
    sa.select(tokens.c.person)
    .where(tokens.c.hash == sa.bindparam("the_token", type_=sa.Text))
    .scalar_subquery(),
)
_LEASE = [column.label(f"lease_{column.name}") for column in COLUMNS]
_ASKED = PreparedStatement(
    sa.select(people.c.id, people.c.state, answers.c.lease, answers.c.answer, *_LEASE)
    .select_from(people)
    .outerjoin(answers, (answers.c.person == people.c.id) & (answers.c.key == sa.bindparam("the_key")))
    .outerjoin(leases, (leases.c.person == people.c.id) & (leases.c.id == sa.bindparam("the_id")))
    .where(people.c.id == _PERSON)
)
_had, _over = leases.alias("had"), leases.alias("over")
_HAD = sa.select(_had.c.id).where(_had.c.person == _PERSON, _had.c.instance == items.c.instance)
_FREE = ~_HAD.exists(), sa.or_(items.c.author.is_(None), items.c.author != _PERSON)
_NEXT = sa.select(items.c.position).where(items.c.open == 1, *_FREE).order_by(items.c.rank).limit(1)
# A word in the text of the statement, so that the index of live leases serves it.
_OVER = sa.select(_over.c.id, _over.c.item, _over.c.role).where(
    _over.c.state == sa.literal_column("'live'"), _over.c.expires < _NOW, _over.c.block.is_(None)
)
_OPEN = sa.and_(
    leases.c.person == people.c.id,
    leases.c.state != sa.literal_column("'answered'"),
    leases.c.role != sa.literal_column("'onboarding'"),
)


def _situation(next_item: Any) -> PreparedStatement:
    own = [people.c[name] for name in ("id", "state", "pages", "done", "wanted", "finished")]
    running = sa.select(meta.c.value).where(meta.c.key == sa.literal_column("'running'")).scalar_subquery()
    more = running.label("running"), sa.exists(_OVER).label("expired"), next_item.label("next")
    return PreparedStatement(
        sa.select(*own, *more, *_LEASE)
        .select_from(people)
        .outerjoin(leases, _OPEN)
        .where(people.c.id == _PERSON)
        .order_by(leases.c.place)
    )


#: Where people take items one after the other, and where they do blocks.
OF_QUEUE, OF_BLOCKS = _situation(_NEXT.scalar_subquery()), _situation(sa.null())
#: The next item of a person; golden items that the person can get; leases that are over.
NEXT, EXPIRED = PreparedStatement(_NEXT), PreparedStatement(_OVER)
GOLDEN = PreparedStatement(sa.select(items.c.position).where(items.c.role == "golden", *_FREE))


def question_of(connection: sa.Connection, who: Who, lease: str, key: str) -> DatabaseQuery:
    """What `asked_with` asks, to be asked ahead."""
    return _ASKED.question(connection, **who.values, the_id=lease, the_key=key)


def asked_with(connection: sa.Connection, who: Who, lease: str, key: str) -> Asked:
    """What is there before an answer is taken that came with a lease and a key.

    Raises `InputError` for a token that no person has.
    """
    row = _ASKED.first(connection, **who.values, the_id=lease, the_key=key)
    if row is None:
        raise unknown_token()
    found = None if row.lease_id is None else Lease(*row[4:])
    before = None if row.lease is None else (row.lease, row.answer)
    return Asked(row.id, row.state, found, before)


def situation_of(connection: sa.Connection, campaign: Campaign, who: Who, now: float) -> Situation:
    """The situation of a person at a time; raises `InputError` for a token that no person has."""
    statement = OF_BLOCKS if campaign.recipe.design == "blocks" else OF_QUEUE
    rows = statement.all(connection, **who.values, the_now=now)
    if not rows:
        raise unknown_token()
    first = rows[0]
    unanswered = tuple(Lease(*row[9:]) for row in rows if row.lease_id is not None)
    return Situation(
        first.id,
        first.state,
        first.pages,
        first.done,
        first.wanted,
        first.finished,
        first.running or "",
        bool(first.expired),
        first.next,
        unanswered,
    )


def unknown_token() -> InputError:
    """The error of a token that no person has."""
    return InputError("no such page", hint="open the link that you were given once more")
