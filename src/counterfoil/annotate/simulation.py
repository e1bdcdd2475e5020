"""A whole campaign run by simulated people on a database of its own, under a clock of its own.

They come in, agree, pass the test before the work or fail it, take items and answer them, through the
functions that the server calls. The campaign's own database is never touched.
"""

import heapq
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from counterfoil.annotate import participants, work
from counterfoil.annotate.answers import Counts, counts, judgement_table
from counterfoil.annotate.campaign import DATABASE, IMAGES, ITEMS, RECIPE, SECRETS, SOURCE, TEXTS, Campaign
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.forms.base import WorkItem
from counterfoil.annotate.leases import find_lease
from counterfoil.annotate.simulated_people import SimulatedPerson, respond, right_answer
from counterfoil.annotate.tables import people as people_table
from counterfoil.annotate.tables import sa
from counterfoil.annotate.work import WorkState
from counterfoil.stats.resampling import random_numbers
from counterfoil.store import begin, end, write_text, writing


@dataclass(eq=False)
class CampaignClient:
    """How simulated people reach a campaign: by the functions that the server calls.

    People are named by the ids of the judgement table.
    """

    campaign: Campaign
    db: Database

    def enter(self, link: str, now: float) -> None:
        """Come in by a personal link and agree to take part."""
        by_link: dict[str, Any] = {"worker": link, "platform": "link", "parameters": {}, "now": now}
        with self.db.writing() as connection:
            entered = participants.enter(connection, self.campaign, **by_link)
            participants.consent(connection, entered.person, now, text=self.campaign.consent_in())

    def look(self, person: str, now: float) -> WorkState:
        """What is before a person."""
        with self.db.writing() as connection:
            known = participants.person_by_id(connection, person)
            return work.work_state(connection, self.campaign, known, now)

    def answer(
        self, person: str, lease: str, raw: Mapping[str, Any], seconds: float, now: float
    ) -> WorkState:
        """Send an answer, and see what is next; raises `InputError` where it is refused as none."""
        sent = work.AnswerIn(lease=lease, key=lease, answer=dict(raw), seconds=seconds)
        with self.db.writing() as connection:
            known = participants.person_by_id(connection, person)
            issued = find_lease(connection, person, lease)
            return work.record_answer(connection, self.campaign, known, issued, sent, now).work


#: The most seconds between two arrivals on average; who found nothing looks again after so many, so often.
_ARRIVAL, _LOOK_AGAIN, _LOOKS = 30.0, 300.0, 20

#: Before the title of a campaign whose answers are a simulation's.
SIMULATED = "Simulated"
#: How far it is: answers so far, and those that are wanted.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Simulation:
    """What came of a simulated campaign.

    `judgements` are all answers with those that were set aside (`counted` is false); `truth` is the right
    answer of every item of work, drawn where the items do not have one (`drawn` of them); `people` are those
    who came, by the ids that the table has, and `states` how each ended. `seconds` is the time from the first
    arrival to the last answer.
    """

    judgements: pa.Table
    counts: Counts
    truth: Mapping[str, str]
    drawn: int
    people: Mapping[str, SimulatedPerson]
    states: Mapping[str, str]
    seconds: float

    @property
    def hours_worked(self) -> float:
        """Hours that all answers took together, those that were set aside among them."""
        rows = self.judgements.group_by(["item", "person"]).aggregate([("seconds", "max")])
        return float(np.sum(rows["seconds_max"].to_numpy())) / 3600


def simulate(
    campaign: Campaign,
    people: Sequence[SimulatedPerson],
    *,
    seed: int = 0,
    progress: Progress | None = None,
    keep: Path | None = None,
) -> Simulation:
    """Run a campaign by simulated people until no more work is to be had or all of them are done.

    With `keep` that folder becomes a copy of the campaign's with all that was answered.
    Equal seeds give equal answers. Raises `InputError` where the campaign cannot be planned, and where
    simulated people cannot answer its form.
    """
    campaign, drawn = with_truth(campaign, seed)
    with scratch_database(campaign, keep) as db:
        inside, seconds = _let_work(CampaignClient(campaign, db), people, seed, progress)
        table = judgement_table(db, campaign, everything=True)
        with db.reading() as connection:
            rows = connection.execute(sa.select(people_table.c.id, people_table.c.state))
            states = dict(map(tuple, rows))
        return Simulation(
            table,
            counts(db),
            {item.id: right_answer(campaign.form, item) for item in campaign.items if item.role == "work"},
            drawn,
            dict(zip(inside, people, strict=True)),
            states,
            seconds,
        )


def with_truth(campaign: Campaign, seed: int) -> tuple[Campaign, int]:
    """The campaign with a right answer for every item, and how many had to be drawn.

    A drawn one is any option of the form's main field, each as likely.
    """
    items: list[WorkItem] = []
    drawn = 0
    for item in campaign.items:
        if not right_answer(campaign.form, item):
            values = next(f.values for f in campaign.form.page(item).fields if f.name == campaign.form.main)
            if values:
                drawn += 1
                item = replace(item, truth=str(random_numbers(seed, "truth", item.id).choice(values)))
        items.append(item)
    known = Campaign(campaign.folder, campaign.recipe, campaign.form)
    # The items of the folder stay as they are; this value alone knows the truth.
    vars(known).update(items=tuple(items), digest=campaign.digest)
    return known, drawn


@contextmanager
def scratch_database(campaign: Campaign, keep: Path | None = None) -> Iterator[Database]:
    """A database of a campaign that does not wait for the disk and is gone afterwards.

    With `keep` a copy of the campaign's folder holds it when the block ends, and none if the block fails.
    """
    with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
        path = Path(folder) / DATABASE
        db = open_database(campaign, f"sqlite:///{path}", durable=False)
        try:
            yield db
        finally:
            db.close()
        if keep is None:
            return
        # The title says what it is.
        begin(keep, SIMULATED)
        own = [campaign.folder / name for name in (ITEMS, SOURCE, SECRETS, *TEXTS)]
        for file in (*own, *sorted((campaign.folder / IMAGES).iterdir()), path):
            if file.is_file():
                to = keep / (f"{IMAGES}/{file.name}" if file.parent.name == IMAGES else file.name)
                with file.open("rb") as source, writing(to, private=file.name == SECRETS) as copy:
                    shutil.copyfileobj(source, copy)
        title = f"{SIMULATED}: {campaign.recipe.title}"
        write_text(keep / RECIPE, replace(campaign.recipe, title=title).to_toml())
        end(keep)


def _let_work(
    client: CampaignClient, people: Sequence[SimulatedPerson], seed: int, progress: Progress | None
) -> tuple[list[str], float]:
    """Let all people come, one after the other, and go on until none has anything to do.

    Their moves are made in the order of time. Returns their ids, and the seconds from the first arrival to
    the last answer.
    """
    campaign, n, wanted = client.campaign, len(people), counts(client.db).wanted
    # All are there before half of the work is done, and kinds of people come in no order.
    rng, busy = random_numbers(seed, "arrivals"), wanted * campaign.form.seconds / n
    gaps = rng.exponential(min(_ARRIVAL, busy / (2 * n)), n)
    arrivals = np.cumsum(gaps)[rng.permutation(n)].tolist()
    links = participants.make_links(campaign, n)
    inside = [participants.person_id(campaign, "link", link) for link in links]
    last, answers = 0.0, 0

    def moves_of(person: SimulatedPerson, id: str, link: str, now: float) -> Iterator[float]:
        """What a person does from their arrival on: each time it goes on it is the time that it gave last."""
        nonlocal last, answers
        rng = random_numbers(seed, "person", person.name)
        client.enter(link, now)
        seen, looks = client.look(id, now), _LOOKS
        while True:
            if seen.assignments:
                first = seen.assignments[0]
                raw, seconds = respond(person, campaign.form, first.item, first.page, rng)
                now += seconds
                yield now
                seen, looks = client.answer(id, first.lease, raw, seconds, now), _LOOKS
                last, answers = max(last, now), answers + 1
                if progress is not None:
                    progress(min(answers, wanted), wanted)
            elif seen.state in ("full", "done") and looks and counts(client.db).leased:
                # Others have all there is: look again later.
                now += _LOOK_AGAIN
                yield now
                seen, looks = client.look(id, now), looks - 1
            else:
                return

    # The number keeps moves of one moment in the order in which they were made.
    numbers = itertools.count()
    waiting = [
        (at, next(numbers), moves_of(person, id, link, at))
        for at, person, id, link in zip(arrivals, people, inside, links, strict=True)
    ]
    heapq.heapify(waiting)
    while waiting:
        _, _, moves = heapq.heappop(waiting)
        at = next(moves, None)
        if at is not None:
            heapq.heappush(waiting, (at, next(numbers), moves))
    return inside, last - min(arrivals)
