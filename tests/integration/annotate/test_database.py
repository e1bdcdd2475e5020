"""The database of a campaign: made, migrated, held against the campaign, refused, written by many at once."""

import asyncio
import importlib
import sqlite3
import sys
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, nullcontext
from dataclasses import replace

import pytest

from annotate.small_campaigns import Worker, make, pair, pairs
from counterfoil.annotate import database, tables
from counterfoil.annotate.answers import counts, judgement_table
from counterfoil.annotate.campaign import DATABASE, ITEMS, RECIPE, items_table, open_campaign
from counterfoil.annotate.database import open_database
from counterfoil.annotate.server.group_commit import GroupCommit
from counterfoil.annotate.tables import METADATA, meta, sa
from counterfoil.errors import DataError, InputError, MissingExtraError, StorageError
from counterfoil.store import write_parquet
from refusals import refuses


def test_an_older_database_is_migrated_and_keeps_its_answers(tmp_path, new_database):
    campaign, address = make(tmp_path / "c", pairs(4), overlap=1), new_database()
    old = open_database(campaign, address)
    # What the first revision did not have.
    with old.writing() as connection:
        for column in database._LATER:
            connection.exec_driver_sql(f"ALTER TABLE {column.table.name} DROP COLUMN {column.name}")
        connection.exec_driver_sql("DROP TABLE adjudications")
        connection.execute(sa.update(METADATA.tables["alembic_version"]).values(version_num="0001"))
        # A person of that time, halfway through.
        for line in (
            "people (id, state, platform, language, parameters, entered)"
            " VALUES ('p', 'work', 'link', 'en', '{}', 1.0)",
            "answers (person, item, attempt, role, key, lease, answer, seconds, submitted)"
            """ VALUES ('p', 0, 0, 'work', 'k', 'l', '{"match": "yes"}', 1.0, 2.0)""",
        ):
            connection.exec_driver_sql(f"INSERT INTO {line}")
    old.close()
    with closing(open_database(campaign, address)) as db, db.reading() as connection:
        assert judgement_table(db, campaign)["answer"].to_pylist() == ["yes"]
        version = connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
        wanted = connection.execute(sa.text("SELECT wanted FROM people")).scalar()
        for name, table in METADATA.tables.items():
            columns = {item["name"]: item["nullable"] for item in sa.inspect(connection).get_columns(name)}
            assert columns == {column.name: column.nullable for column in table.columns}
    assert (version, wanted) == (database.REVISIONS[-1], 1)


def test_a_newer_database_is_refused_and_left_as_it_is(tmp_path, new_database):
    campaign, address = make(tmp_path / "c", pairs(2)), new_database()
    with closing(open_database(campaign, address)) as db:
        with db.writing() as connection:
            connection.execute(sa.text("UPDATE alembic_version SET version_num = '0999'"))
        with pytest.raises(DataError, match=r"newer version of counterfoil; given: revision 0999; allowed"):
            open_database(campaign, address)
        with db.reading() as connection:
            assert connection.execute(sa.text("SELECT version_num FROM alembic_version")).scalar() == "0999"


def test_what_is_no_campaigns_database_is_refused(tmp_path):
    campaign = make(tmp_path / "c", pairs(2))
    path, content = campaign.folder / DATABASE, b"no database" * 500
    path.write_bytes(content)
    refuses("damaged database", open_database, campaign)
    assert path.read_bytes() == content
    path.unlink()
    with closing(sqlite3.connect(path)) as other:
        other.execute("CREATE TABLE holiday_photos (name TEXT)")
    refuses("not a campaign's database", open_database, campaign)


def test_changed_items_are_refused_once_there_are_answers(tmp_path, new_database):
    campaign, address = make(tmp_path / "c", pairs(2)), new_database()
    open_database(campaign, address).close()

    def change(items):
        write_parquet(campaign.folder / ITEMS, items_table(items, campaign.form))
        return open_campaign(campaign.folder)

    # Nothing was answered: the new items take the place of the old ones.
    changed = change(pairs(3))
    with closing(open_database(changed, address)) as db:
        assert counts(db).items == 3
        Worker(db, changed, 1).do(1)
    with pytest.raises(DataError, match="items or form were changed after people had answered"):
        open_database(change([*pairs(2), pair("new")]), address)


@pytest.mark.parametrize(
    ("design", "fields", "message"),
    [
        ("queue", {"seed": 5}, r"key 'seed': the plan was changed .*given: 5; allowed: 0 as before"),
        ("queue", {"overlap": 1}, r"key 'overlap'.*allowed: 2 as before or more"),
        ("queue", {"overlap": 3}, None),
        ("queue", {"per_person": 3, "lease_minutes": 1.0}, None),
        ("blocks", {"per_person": 1}, "key 'per_person'"),
        ("blocks", {"overlap": 3}, "key 'overlap'"),
    ],
)
def test_only_the_overlap_of_a_queue_grows_under_answers(tmp_path, design, fields, message):
    campaign = make(tmp_path / "c", pairs(4), design=design, overlap=2, per_person=2)
    with closing(open_database(campaign)) as db:
        Worker(db, campaign, 1).do(1)
    (campaign.folder / RECIPE).write_text(replace(campaign.recipe, **fields).to_toml())
    changed = open_campaign(campaign.folder)
    refused = pytest.raises(DataError, match=message) if message else nullcontext()
    with refused, closing(open_database(changed)) as db:
        assert counts(db).wanted == 4 * changed.recipe.overlap - 1


def test_without_the_extra_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "sqlalchemy", None)
    monkeypatch.delitem(sys.modules, tables.__name__)
    words = r"'sqlalchemy' is not installed; .*'counterfoil\[annotate\]'"
    refuses(words, importlib.import_module, tables.__name__, error=MissingExtraError)


def test_another_campaigns_database_is_refused(tmp_path, new_database):
    campaign, address = make(tmp_path / "c", pairs(2)), new_database()
    open_database(campaign, address).close()
    other = make(tmp_path / "other", pairs(2), salt="")
    refuses("another campaign's", open_database, other, address or f"sqlite:///{campaign.folder / DATABASE}")


def test_a_campaign_is_not_served_twice(tmp_path, new_database):
    campaign, address = make(tmp_path / "c", pairs(2)), new_database()
    first = open_database(campaign, address, serve=True)
    with pytest.raises(InputError, match=r"this campaign is being served; stop the other server first"):
        open_database(campaign, address, serve=True)
    # Others may read and write beside the server.
    open_database(campaign, address).close()
    first.close()
    open_database(campaign, address, serve=True).close()


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mysql://u:secret@h/n", r"no address of a database; given: mysql://u@h/n"),
        ("campaign.db", "no address"),
        ("postgresql://", "no address"),
        ("postgresql://u:secret@127.0.0.1:1/n", r"psycopg://u@127.0.0.1:1/n: the database cannot"),
        ("sqlite:////nowhere/at/all/d.sqlite", r"/nowhere/at/all/d.sqlite: the database cannot be used"),
    ],
)
def test_addresses_that_lead_nowhere_are_refused_without_the_password(tmp_path, url, message):
    campaign = make(tmp_path / "c", pairs(2))
    assert "secret" not in refuses(message, open_database, campaign, url, error=(InputError, StorageError))


def test_many_people_at_once_take_no_item_too_often(tmp_path, new_database):
    items = [pair(f"{i}{kind}", instance=str(i), kind=kind) for i in range(15) for kind in "ab"]
    campaign = make(tmp_path / "c", [*items, *pairs(0, golden=3)], overlap=2, golden_share=0.2)
    address = new_database()
    # With a connection of its own each, as two processes have.
    first = closing(open_database(campaign, address, serve=True))
    with first as db, closing(open_database(campaign, address)) as beside:

        def run(number):
            worker = Worker(beside if number % 4 == 0 else db, campaign, number)
            # The same answer comes twice, as from a page with a bad connection.
            result = worker.state()
            while result.assignments:
                receipt = worker.answer(result.assignments[0], key=f"key-{number}-{worker.sent:04}")
                again = worker.answer(result.assignments[0], key=f"key-{number}-{worker.sent - 1:04}")
                assert receipt.accepted
                assert again.repeated
                result = again.work

        with ThreadPoolExecutor(12) as pool:
            list(pool.map(run, range(1, 13)))
        assert counts(db).complete == 30
        # No item has more answers than wanted, nobody answered an instance twice, and the counts are true.
        table = judgement_table(db, campaign, everything=True).to_pylist()
        of_item = Counter(row["item"] for row in table if row["role"] == "work" and row["counted"])
        assert max(of_item.values()) <= 2
        apart = {item.id: item.exclusion_group for item in campaign.items}
        assert len({(row["person"], apart[row["item"]]) for row in table}) == len(table)
        with db.reading() as connection:
            rows = connection.execute(sa.select(METADATA.tables["items"])).all()
            live = sa.text("SELECT item FROM leases WHERE state = 'live' AND role = 'work'")
            leased = Counter(connection.execute(live).scalars())
        for row in rows:
            answers = of_item[campaign.items[row.position].id]
            assert (row.answered, row.leased) == (answers, leased[row.position])


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


def test_a_new_database_has_the_tables_of_the_source(tmp_path, new_database):
    campaign = make(tmp_path / "c", pairs(2))
    with closing(open_database(campaign, new_database())) as db, db.reading() as connection:
        made = sa.inspect(connection)
        for name, table in METADATA.tables.items():
            columns = {item["name"]: item["nullable"] for item in made.get_columns(name)}
            assert columns == {column.name: column.nullable for column in table.columns}
            assert {item["name"] for item in made.get_indexes(name)} >= {item.name for item in table.indexes}
            unique = {tuple(item["column_names"]) for item in made.get_unique_constraints(name)}
            constraints = (item for item in table.constraints if isinstance(item, sa.UniqueConstraint))
            assert unique == {tuple(column.name for column in item.columns) for item in constraints}
        assert set(made.get_table_names()) == {*METADATA.tables, "alembic_version"}
