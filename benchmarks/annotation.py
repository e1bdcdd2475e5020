"""What a campaign of 20,000 items and 100,000 answers costs: opening, answering, counting, reading.

    python benchmarks/annotation.py                        SQLite, in a temporary folder
    python benchmarks/annotation.py --quick                a tenth of it; --items N is any number
    python benchmarks/annotation.py --database URL         an empty PostgreSQL database

Nine tenths of the answers are written at once; the rest one by one by `answering.record_answer`, as a
server does, by one thread and then by many at the same time, each waiting for the disk. Memory is what the
process takes at most beyond what it had when the campaign was open. The file system is that of the temporary
folder (TMPDIR): on a disk that waits for its writes an answer takes what the disk takes.
"""

import argparse
import gc
import io
import json
import os
import resource
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import PIL.Image

from counterfoil.annotate import answering, participants
from counterfoil.annotate.answers import counts, judgement_table
from counterfoil.annotate.campaign import Campaign, CampaignRecipe, create_folder
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.tables import answers, items, leases, people, sa

ITEMS, OVERLAP, PEOPLE = 20_000, 5, 250
#: Answers of one thread, and threads at once with answers of each.
ALONE, TOGETHER, EACH = 150, 50, 10


def timed(name: str, function: Callable[[], Any]) -> Any:
    """Run a function, print how long it took and what memory it needed at most."""
    gc.collect()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    start = perf_counter()
    found = function()
    seconds = perf_counter() - start
    more = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{name:<44} {seconds:8.2f} s   {more:+7.0f} MiB at most")
    return found


def make(folder: Path, n: int) -> Campaign:
    """A campaign of n pairs."""
    file = io.BytesIO()
    PIL.Image.new("RGB", (1, 1)).save(file, "PNG")
    cells = {"image": "a.png", "caption": "A caption of a usual length, with a few more words."}
    made = [WorkItem(f"item-{at:06}", cells, kind="abcd"[at % 4]) for at in range(n)]
    recipe = CampaignRecipe(form="yes-no", title="Benchmark", overlap=OVERLAP)
    return create_folder(folder, recipe, made, {"a.png": file.getvalue()})


def fill(db: Database, campaign: Campaign) -> int:
    """Answers of `PEOPLE` people to the first nine tenths of the queue, written at once."""
    rng = np.random.default_rng(0)
    ids = [f"{at:032x}" for at in range(PEOPLE)]
    with db.writing() as connection:
        ordered = sa.select(items.c.position, items.c.instance).order_by(items.c.rank)
        chosen = connection.execute(ordered.limit(len(campaign.items) * 9 // 10)).all()
        usual = {"state": "work", "platform": "link", "language": "en", "parameters": "{}", "entered": 0.0}
        connection.execute(sa.insert(people), [{"id": id, **usual} for id in ids])
        rows = []
        for at, (position, instance) in enumerate(chosen):
            for k in range(OVERLAP):
                person = ids[(at * OVERLAP + k) % PEOPLE]
                rows.append((person, position, instance, "yes" if rng.random() < 0.6 else "no"))
        for first in range(0, len(rows), 5_000):
            part = rows[first : first + 5_000]
            issued = [
                {
                    "id": f"{first + at:032x}",
                    "person": person,
                    "item": item,
                    "instance": instance,
                    "attempt": 0,
                    "role": "work",
                    "place": first + at,
                    "issued": 0.0,
                    "expires": 1.0,
                    "state": "answered",
                }
                for at, (person, item, instance, _) in enumerate(part)
            ]
            connection.execute(sa.insert(leases), issued)
            given = [
                {
                    "person": person,
                    "item": item,
                    "attempt": 0,
                    "role": "work",
                    "key": f"{first + at}",
                    "lease": f"{first + at:032x}",
                    "answer": json.dumps({"match": answer}),
                    "seconds": 3.5,
                    "submitted": float(first + at),
                }
                for at, (person, item, _, answer) in enumerate(part)
            ]
            connection.execute(sa.insert(answers), given)
        done = items.c.position.in_([position for position, _ in chosen])
        connection.execute(sa.update(items).where(done).values(answered=OVERLAP))
    return len(rows)


def answer(db: Database, campaign: Campaign, number: int, times: int) -> list[float]:
    """Seconds of each of so many answers of a new person: the answer taken, the next item given."""
    link = participants.make_links(campaign, number)[-1]
    with db.writing() as connection:
        person = participants.enter(
            connection, campaign, worker=link, platform="link", parameters={}, now=1e6
        ).person
        participants.consent(connection, person, 1e6)
    with db.writing() as connection:
        person = participants.person_by_id(connection, person.id)
        state, seconds = answering.work_state(connection, campaign, person, 1e6), []
    for at in range(times):
        lease = state.assignments[0].lease
        sent = answering.AnswerIn(
            lease=lease, key=f"{number:04}-{at:04}", answer={"match": at % 2}, seconds=3.0
        )
        start = perf_counter()
        with db.writing() as connection:
            person = participants.person_by_id(connection, person.id)
            state = answering.record_answer(connection, campaign, person, sent, 1e6 + at).work
        seconds.append(perf_counter() - start)
    return seconds


def report(name: str, seconds: list[float], wall: float) -> None:
    """Print how long answers took."""
    ms = 1000 * np.array(seconds)
    print(
        f"{name:<44} median {np.median(ms):6.1f} ms, p95 {np.quantile(ms, 0.95):6.1f} ms, "
        f"{len(ms) / wall:6.0f} answers/s"
    )


def main() -> None:
    """Make the campaign and take the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--items", type=int)
    parser.add_argument("--database")
    given = parser.parse_args()
    n = given.items or (ITEMS // 10 if given.quick else ITEMS)
    with tempfile.TemporaryDirectory() as folder:
        campaign = timed(f"create {n:,} items", lambda: make(Path(folder) / "campaign", n))
        db = timed("open, first time", lambda: open_database(campaign, given.database))
        rows = timed("fill", lambda: fill(db, campaign))
        print(f"{rows:,} answers on {os.cpu_count()} cores, {db.engine.dialect.name}")

        start = perf_counter()
        report(
            "one after the other",
            answer(db, campaign, 1, min(ALONE, max(1, n // 20))),
            perf_counter() - start,
        )
        found: list[list[float]] = []
        threads = [
            threading.Thread(
                target=lambda at=at: found.append(answer(db, campaign, 2 + at, min(EACH, max(1, n // 200))))
            )
            for at in range(TOGETHER)
        ]
        start = perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        report(
            f"{TOGETHER} people at once, none ever pausing",
            [each for one in found for each in one],
            perf_counter() - start,
        )

        timed("counts", lambda: counts(db))
        table = timed("judgement table", lambda: judgement_table(db, campaign))
        print(f"{table.num_rows:,} judgements, {table.nbytes / 2**20:.0f} MiB")
        db.close()
        again = timed("open again", lambda: open_database(campaign, given.database))
        again.close()


if __name__ == "__main__":
    main()
