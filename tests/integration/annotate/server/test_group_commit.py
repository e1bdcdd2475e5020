"""Writes that wait together are one transaction, and none is acknowledged before it is on the disk."""

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from annotate.small_campaigns import make, pairs
from counterfoil.annotate.database import open_database
from counterfoil.annotate.server.group_commit import GroupCommit
from counterfoil.annotate.tables import meta, sa


@pytest.mark.parametrize(("odd", "commits"), [(None, 2), (5, 10)])
def test_all_who_wait_are_one_transaction_unless_one_fails(tmp_path, new_database, odd, commits):
    database = open_database(make(tmp_path / "c", pairs(2)), new_database())
    begun, go_on = threading.Event(), threading.Event()
    waits, answered = [], []

    @sa.event.listens_for(database.engine, "commit")
    def slow(connection):
        waits.append(len(answered))
        begun.set()
        assert go_on.wait(10)

    async def all_of_them():
        group = GroupCommit(database)

        async def one(number):
            def write(connection):
                connection.execute(sa.insert(meta).values(key=f"t-{number}", value=""))
                if number == odd:
                    raise ValueError("odd")
                return number

            answered.append(await group.write(write))
            return number

        first = asyncio.create_task(one(0))
        assert await asyncio.to_thread(begun.wait, 10)
        # While the first is being committed, ten more come in.
        more = [asyncio.create_task(one(number)) for number in range(1, 11)]
        await asyncio.sleep(0.05)
        assert answered == []
        go_on.set()
        return await asyncio.gather(first, *more, return_exceptions=True)

    with ThreadPoolExecutor(1) as pool:
        outcomes = pool.submit(asyncio.run, all_of_them()).result(20)
    assert [number for number in outcomes if not isinstance(number, ValueError)] == sorted(answered)
    assert len(answered) == 11 - (odd is not None)
    assert len(waits) == commits
    with database.reading() as connection:
        rows = connection.execute(sa.select(meta.c.key).where(meta.c.key.like("t-%"))).scalars().all()
    assert sorted(rows) == sorted(f"t-{number}" for number in answered)
    database.close()


@pytest.mark.usefixtures("durable")
@pytest.mark.parametrize(("options", "mode"), [({}, 2), ({"durable": False}, 0)])
def test_a_commit_waits_for_the_disk_unless_answers_can_be_lost(tmp_path, options, mode):
    database = open_database(make(tmp_path / "c", pairs(2)), **options)
    with database.reading() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == mode
    database.close()
