"""Servers that are killed while people work: what was acknowledged is there, once."""

import asyncio

import pytest

from annotate import killed_in_commit, postgres_server
from annotate.server_load import Server, check, crowd, work_through_kills
from annotate.small_campaigns import make, pairs


@pytest.mark.slow
def test_no_answer_is_lost_when_the_server_of_200_people_is_killed_ten_times(tmp_path, new_database):
    work_through_kills(tmp_path / "campaign", new_database(), people=200, items=1_000, times=10)


def test_no_answer_is_lost_when_a_commit_is_killed(tmp_path, new_database):
    work_through_a_killed_commit(tmp_path / "campaign", new_database())


@pytest.mark.slow
def test_no_answer_is_lost_where_postgresql_waits_for_the_disk(tmp_path):
    with postgres_server.running(durable=True) as postgres:
        import psycopg

        with psycopg.connect(postgres.new()) as connection:
            assert connection.execute("SHOW fsync").fetchone() == ("on",)
        work_through_kills(tmp_path / "campaign", postgres.new(), people=200, items=1_000, times=10)
        for number in range(5):
            work_through_a_killed_commit(tmp_path / f"campaign {number}", postgres.new())


def work_through_a_killed_commit(folder, url):
    """Let four people do a whole campaign while the server is killed in the middle of a commit."""
    campaign = make(folder, pairs(20), overlap=2)
    server = Server(campaign, url)

    async def start_again(load):
        assert await asyncio.to_thread(server.process.wait) == -9, "the server was not killed"
        server.process.stdout.close()
        await asyncio.to_thread(server.start)

    # The first commits fill the tables and let people in.
    server.start(str(killed_in_commit.__file__), "25")
    try:
        load = crowd(server, 4, meanwhile=start_again)
    finally:
        server.stop()
    assert check(campaign, url, load) == len(load.acknowledged) == 40
    assert load.again
