"""The short way of answers: replies are the framework's, nothing is acknowledged before it is on the disk."""

import asyncio
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from counterfoil.annotate import work
from counterfoil.annotate.server.turns import Turns
from counterfoil.annotate.tables import meta, sa

#: A parameter that no route knows: with it the framework answers.
ROUND = "?round=1"


def both(site: Any, method: str, path: str, **given: Any) -> tuple[Any, Any]:
    """The replies of the short way and of the framework to the same request."""
    return site.client.request(method, path, **given), site.client.request(method, path + ROUND, **given)


def test_replies_are_those_of_the_framework(site: Any) -> None:
    token = site.token()
    path = f"/api/work/{token}"
    lease = site.work(token)["items"][0]["lease"]
    good = {"lease": lease, "key": "key-0001", "answer": {"match": 0}, "seconds": 1.0}
    assert site.client.post(f"{path}/answers", json=good).json()["accepted"]
    for method, where, given in [
        ("GET", path, {}),
        ("GET", path, {"headers": {"accept-language": "de"}}),
        ("GET", f"{path}x", {}),
        ("GET", "/api/work/%C3%A4", {}),
        ("HEAD", path, {}),
        ("POST", f"{path}/answers", {"json": good}),
        ("POST", f"{path}/answers", {"json": {**good, "key": "key-0002"}}),
        ("POST", f"{path}/answers", {"json": {**good, "answer": {"match": 1}}}),
        ("POST", f"{path}/answers", {"json": {**good, "answer": {"match": 9}, "key": "key-0003"}}),
        ("POST", f"{path}/answers", {"json": {**good, "lease": "none", "key": "key-0004"}}),
        ("POST", f"{path}/answers", {"json": {**good, "more": 1}}),
        ("POST", f"{path}/answers", {"json": {**good, "seconds": -1}}),
        ("POST", f"{path}/answers", {"json": [good]}),
        (
            "POST",
            f"{path}/answers",
            {"content": b"{", "headers": {"content-type": "application/json"}},
        ),
        ("POST", f"{path}x/answers", {"json": good}),
    ]:
        here, there = both(site, method, where, **given)
        assert (here.status_code, here.content) == (there.status_code, there.content), (where, given)
        assert dict(here.headers) == dict(there.headers), (where, given)


def test_the_short_way_is_taken_and_leaves_what_it_cannot_answer(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = site.token()

    def fail(*given: object, **more: object) -> None:
        raise AssertionError("the framework's way")

    monkeypatch.setattr(work, "standing", fail)
    monkeypatch.setattr(work, "submit", fail)
    lease = site.work(token)["items"][0]["lease"]
    assert site.answer(token, lease, {"match": 0}).json()["accepted"]
    assert site.client.get(f"/api/work/{token}{ROUND}").status_code == 500


def test_who_waits_together_is_written_together_and_answered_after_the_disk(
    site: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, waits, answered = site.database, [], []
    begun, go_on = threading.Event(), threading.Event()

    def slow(handle: int) -> None:
        waits.append(len(answered))
        begun.set()
        assert go_on.wait(10)

    def write(number: int) -> Any:
        def write(connection: sa.Connection) -> int:
            connection.execute(sa.insert(meta).values(key=f"t-{number}", value=""))
            if number == 5:
                raise ValueError("five")
            return number

        return write

    async def all_of_them() -> list[Any]:
        turns = Turns(database)

        async def one(number: int) -> Any:
            found = await turns.write(write(number))
            answered.append(found)
            return found

        first = asyncio.create_task(one(0))
        assert await asyncio.to_thread(begun.wait, 10)
        # While the disk is at work on the first, ten more come in.
        more = [asyncio.create_task(one(number)) for number in range(1, 11)]
        await asyncio.sleep(0.05)
        assert answered == []
        go_on.set()
        return await asyncio.gather(first, *more, return_exceptions=True)

    monkeypatch.setattr(os, "fsync", slow)
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(asyncio.run, all_of_them()).result(20)
    assert isinstance(found[5], ValueError)
    assert [each for each in found if not isinstance(each, ValueError)] == [0, 1, 2, 3, 4, 6, 7, 8, 9, 10]
    with database.reading() as connection:
        rows = connection.execute(sa.select(meta.c.key).where(meta.c.key.like("t-%"))).scalars().all()
    assert sorted(rows) == sorted(f"t-{at}" for at in range(11) if at != 5)
    # One wait for the first, one each for the others, of which one had failed and took all apart.
    assert len(waits) == 10
