"""Notes in a campaign's database: values by key, and what happened when."""

from counterfoil.annotate.tables import events, meta, sa


def value_of(connection: sa.Connection, key: str, default: str = "") -> str:
    """What `meta` holds under a key."""
    found = connection.execute(sa.select(meta.c.value).where(meta.c.key == key)).scalar()
    return default if found is None else found


def set_value(connection: sa.Connection, key: str, value: str) -> None:
    """Let `meta` hold a value under a key."""
    if not connection.execute(sa.update(meta).where(meta.c.key == key).values(value=value)).rowcount:
        connection.execute(sa.insert(meta).values(key=key, value=value))


def log(
    connection: sa.Connection, now: float, kind: str, person: str | None = None, detail: str = ""
) -> None:
    """Note what happened."""
    connection.execute(sa.insert(events).values(at=now, kind=kind, person=person, detail=detail))
