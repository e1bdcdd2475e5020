"""Simulated people of known accuracy, speed and habits, and a whole campaign run by them in a copy of its
database, through the functions that the server calls.
"""

import heapq
import itertools
import json
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from counterfoil.annotate import answering, participants
from counterfoil.annotate.answering import WorkState
from counterfoil.annotate.answers import Counts, counts, judgement_table
from counterfoil.annotate.campaign import DATABASE, IMAGES, ITEMS, RECIPE, SECRETS, SOURCE, TEXTS, Campaign
from counterfoil.annotate.database import Database, open_database
from counterfoil.annotate.forms.base import FormField, WorkForm, WorkItem, WorkPage, check_answer
from counterfoil.annotate.pictures import FIGURES
from counterfoil.annotate.tables import run
from counterfoil.errors import InputError
from counterfoil.inputs.files import digest
from counterfoil.stats.bootstrap import random_numbers
from counterfoil.store import begin, end, write_text, writing

#: Answer times spread as a gamma of this shape: the standard deviation is half the mean.
_SHAPE = 4.0
#: Words of a simulated text; two fields of one page get them in another order.
_WORDS = ("a", "red", "box", "beside", "the", "cat")
#: So often an answer whose fields do not go together is tried anew.
_ATTEMPTS = 100


@dataclass(frozen=True)
class SimulatedPerson:
    """One person. An answer ignores the item and takes the first option shown with chance `first`, or any
    option with chance `guesses`; else it is right with chance `accuracy`. It takes `seconds` on average, of a
    bot always exactly that.

    Wrong answers are spread evenly over the other options; on a scale they are the step beside the right one.
    """

    name: str
    kind: str = "able"
    accuracy: float = 0.95
    first: float = 0.0
    guesses: float = 0.0
    seconds: float = 1.0
    even: bool = False


#: Kinds of people, their seconds in units of those that the form expects. Careless people answer at random,
#: bots too, but in no time; adversarial people know the answer and give another.
KINDS: Mapping[str, SimulatedPerson] = {
    "able": SimulatedPerson("able"),
    "hasty": SimulatedPerson("hasty", "hasty", accuracy=0.8, seconds=0.4),
    "one-sided": SimulatedPerson("one-sided", "one-sided", accuracy=0.9, first=0.5, seconds=0.7),
    "careless": SimulatedPerson("careless", "careless", guesses=1.0, seconds=0.3),
    "adversarial": SimulatedPerson("adversarial", "adversarial", accuracy=0.05),
    "bot": SimulatedPerson("bot", "bot", first=1.0, seconds=0.05, even=True),
}


def crowd(
    shares: Mapping[str, float], n: int, *, seconds: float = 1.0, accuracy: float | None = None
) -> tuple[SimulatedPerson, ...]:
    """People of several kinds, by their shares; what rounding leaves over is of the first kind."""
    odd = next((kind for kind in shares if kind not in KINDS), None)
    total = sum(shares.values())
    if odd is not None or not total > 0 or min(shares.values()) < 0:
        given = odd if odd is not None else ", ".join(f"{kind}={share}" for kind, share in shares.items())
        raise InputError("kinds of simulated people", given=given or "none", allowed=sorted(KINDS))
    counts = {kind: round(n * share / total) for kind, share in shares.items()}
    chosen = [kind for kind, count in counts.items() for _ in range(count)][:n]
    chosen += [next(iter(shares))] * (n - len(chosen))
    people = []
    for i, kind in enumerate(chosen):
        usual, name = KINDS[kind], f"{kind}-{chosen[: i + 1].count(kind)}"
        able = usual.accuracy if accuracy is None or kind != "able" else accuracy
        people.append(replace(usual, name=name, accuracy=able, seconds=usual.seconds * seconds))
    return tuple(people)


def right_answer(form: WorkForm, item: WorkItem) -> str:
    """The right value of the form's main field: the first golden one, else the truth; empty where unknown."""
    gold = item.golden.get(form.main, ())
    return gold[0] if gold else item.truth


def respond(
    person: SimulatedPerson, form: WorkForm, item: WorkItem, page: WorkPage, rng: np.random.Generator
) -> tuple[dict[str, Any], float]:
    """A person's answer to a page as a browser sends it, and its seconds.

    Where the form's own check refuses what a habit gives, the person takes any option.
    """
    answering = person
    for _ in range(_ATTEMPTS):
        raw = _fill(answering, right_answer(form, item), form.main, page, rng)
        try:
            form.check(item, check_answer(page, raw))
        except InputError as error:
            refused = error
            answering = replace(person, first=0.0, guesses=1.0)
        else:
            mean = person.seconds
            return raw, mean if person.even else float(rng.gamma(_SHAPE, mean / _SHAPE))
    what = "simulated people cannot answer this form"
    raise InputError(what, where=f"item '{item.id}'", given=str(refused))


def _fill(
    person: SimulatedPerson, truth: str, main: str, page: WorkPage, rng: np.random.Generator
) -> dict[str, Any]:
    raw: dict[str, Any] = {}
    answer: dict[str, Any] = {}
    for number, field in enumerate(page.fields):
        if not field.is_open(answer):
            continue
        if field.kind == "one":
            raw[field.name] = _option(person, truth if field.name == main else "", field, rng)
            answer[field.name] = field.values[raw[field.name]]
        elif field.kind == "many":
            raw[field.name] = [int(rng.integers(len(field.options)))]
            answer[field.name] = [field.values[i] for i in raw[field.name]]
        elif field.kind == "text":
            raw[field.name] = " ".join(np.roll(_WORDS, number))
        else:
            # One word of the text, marked with any label.
            text = next((shown.content for shown in page.shown if shown.label == field.text), "")
            raw[field.name] = []
            if text.split():
                word = text.split()[int(rng.integers(len(text.split())))]
                start, label = text.index(word), int(rng.integers(len(field.options)))
                raw[field.name] = [{"start": start, "end": start + len(word), "label": label}]
    return raw


def _option(person: SimulatedPerson, truth: str, field: FormField, rng: np.random.Generator) -> int:
    habit, n = rng.random(), len(field.options)
    if habit < person.first:
        return 0
    if habit < person.first + person.guesses or truth not in field.values:
        return int(rng.integers(n))
    right = field.values.index(truth)
    if rng.random() < person.accuracy or n == 1:
        return right
    # On a scale a wrong answer is one beside the right one.
    wrong = [i for i in range(n) if i != right and (field.level == "nominal" or abs(i - right) == 1)]
    return int(rng.choice(wrong))


@dataclass(eq=False)
class CampaignClient:
    """How simulated people reach a campaign: by the functions that the server calls."""

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
            participant = participants.person_by_id(connection, person)
            return answering.work_state(connection, self.campaign, participant, now)

    def answer(
        self, person: str, lease: str, raw: Mapping[str, Any], seconds: float, now: float
    ) -> WorkState:
        """Send an answer, and see what is next; raises `InputError` where it is refused as none."""
        sent = answering.AnswerIn(lease=lease, key=lease, answer=dict(raw), seconds=seconds)
        with self.db.writing() as connection:
            participant = participants.person_by_id(connection, person)
            return answering.record_answer(connection, self.campaign, participant, sent, now).work


#: The most seconds between two arrivals on average; when and how often who found nothing looks again.
_ARRIVAL, _LOOK_AGAIN, _LOOKS = 30.0, 300.0, 20
#: Before the title of a campaign whose answers are a simulation's.
SIMULATED = "Simulated"
#: How far it is: answers so far, and those that are wanted.
Progress = Callable[[int, int], None]


@dataclass(frozen=True, eq=False)
class Simulation:
    """What came of a simulated campaign; `drawn` right answers are of items without one, `seconds` from the
    first arrival to the last answer.
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
    """Run a campaign by simulated people, with equal answers for equal seeds; `keep` becomes a copy of its
    folder with all that was answered.
    """
    campaign, drawn = with_truth(campaign, seed)
    with scratch_database(campaign, keep) as db:
        inside, seconds = _let_work(CampaignClient(campaign, db), people, seed, progress)
        table = judgement_table(db, campaign, everything=True)
        with db.reading() as connection:
            states = dict(map(tuple, run(connection, "SELECT id, state FROM people")))
        work = [item for item in campaign.items if item.role == "work"]
        truth = {item.id: right_answer(campaign.form, item) for item in work}
        by_id = dict(zip(inside, people, strict=True))
        return Simulation(table, counts(db), truth, drawn, by_id, states, seconds)


def with_truth(campaign: Campaign, seed: int) -> tuple[Campaign, int]:
    """The campaign with a right answer for every item, and how many were drawn, each option as likely."""
    items: list[WorkItem] = []
    drawn = 0
    for item in campaign.items:
        if not right_answer(campaign.form, item):
            values = next(f.values for f in campaign.form.page(item).fields if f.name == campaign.form.main)
            if values:
                drawn += 1
                item = replace(item, truth=str(random_numbers(seed, "truth", item.id).choice(values)))
        items.append(item)
    copy = Campaign(campaign.folder, campaign.recipe, campaign.form)
    # The folder stays as it is; this value alone knows the truth. What people see follows from the salt.
    secrets = {**campaign.secrets, "salt": digest(f"simulated\0{seed}".encode())}
    vars(copy).update(items=tuple(items), digest=campaign.digest, secrets=secrets)
    return copy, drawn


@contextmanager
def scratch_database(campaign: Campaign, keep: Path | None = None) -> Iterator[Database]:
    """A database that is gone afterwards; with `keep` a copy of the campaign holds it."""
    with tempfile.TemporaryDirectory(prefix="counterfoil-") as folder:
        path = Path(folder) / DATABASE
        with closing(open_database(campaign, f"sqlite:///{path}", durable=False)) as db:
            yield db
        if keep is None:
            return
        begin(keep, SIMULATED)
        named = [campaign.folder / name for name in (ITEMS, SOURCE, *TEXTS, IMAGES, FIGURES)]
        files = [file for name in named for file in (name, *sorted(name.rglob("*"))) if file.is_file()]
        copies = {file: keep / file.relative_to(campaign.folder) for file in files}
        for file, to in {**copies, path: keep / DATABASE}.items():
            with file.open("rb") as source, writing(to) as copy:
                shutil.copyfileobj(source, copy)
        with writing(keep / SECRETS, private=True) as secrets:
            secrets.write(json.dumps(campaign.secrets).encode())
        title = f"{SIMULATED}: {campaign.recipe.title}"
        write_text(keep / RECIPE, replace(campaign.recipe, title=title).to_toml())
        end(keep)


def _let_work(
    client: CampaignClient, people: Sequence[SimulatedPerson], seed: int, progress: Progress | None
) -> tuple[list[str], float]:
    """Let all people come and move in the order of time until none has anything to do; their ids, and the
    seconds that it took.
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
        """What a person does: each time it goes on it is the time that it gave last."""
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
        (moment, next(numbers), moves_of(person, id, link, moment))
        for moment, person, id, link in zip(arrivals, people, inside, links, strict=True)
    ]
    heapq.heapify(waiting)
    while waiting:
        _, _, moves = heapq.heappop(waiting)
        moment = next(moves, None)
        if moment is not None:
            heapq.heappush(waiting, (moment, next(numbers), moves))
    return inside, last - min(arrivals)
