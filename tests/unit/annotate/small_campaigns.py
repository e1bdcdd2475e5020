"""Small campaigns to run: pairs to judge with yes or no, and people who answer them."""

import io
from collections.abc import Callable
from dataclasses import dataclass

import PIL.Image

from counterfoil.annotate import answering, participants
from counterfoil.annotate.campaign import Campaign, CampaignRecipe, create_folder
from counterfoil.annotate.database import Database
from counterfoil.annotate.forms.base import WorkItem


def pixel(colour="black"):
    """The smallest image file."""
    file = io.BytesIO()
    PIL.Image.new("RGB", (1, 1), colour).save(file, "PNG")
    return file.getvalue()


def pair(id, role="work", right="", **more):
    """A pair to judge; of one whose answer is known, `right` is it."""
    golden = {"match": [right]} if right else {}
    return WorkItem(id, {"image": "a.png", "caption": f"Caption {id}."}, role, golden, **more)


def pairs(n, *, golden=0, onboarding=0, kinds="a"):
    """n pairs, golden ones and those of the test, right answers yes and no in turn."""
    result = [pair(str(i), kind=kinds[i % len(kinds)]) for i in range(n)]
    for role, count in (("golden", golden), ("onboarding", onboarding)):
        result += [pair(f"{role}-{i}", role, ("yes", "no")[i % 2]) for i in range(count)]
    return result


def make(folder, items, *, salt="0" * 64, **recipe):
    """The campaign of these items; the salt says who sees which golden item, an empty one is of its own."""
    made = CampaignRecipe(**{"form": "yes-no", "title": "Pairs", **recipe})
    return create_folder(folder, made, items, {"a.png": pixel()}, salt=salt)


@dataclass(eq=False)
class Worker:
    """A person at a campaign: comes in by a link, agrees, and answers by `judge`, right unless given."""

    db: Database
    campaign: Campaign
    number: int
    now: float = 1_000.0
    judge: Callable[[WorkItem], str] | None = None
    sent: int = 0

    def __post_init__(self):
        link = participants.make_links(self.campaign, self.number)[-1]
        with self.db.writing() as connection:
            come = {"worker": link, "platform": "link", "parameters": {}}
            self.entered = participants.enter(connection, self.campaign, now=self.now, **come)
            participants.consent(connection, self.person, self.now, text=self.campaign.consent_in())

    @property
    def person(self):
        return self.entered.person

    def state(self, *, later=0.0):
        self.now += later
        with self.db.writing() as connection:
            person = participants.person_by_id(connection, self.person.id)
            return answering.work_state(connection, self.campaign, person, self.now)

    def answer(self, assignment, value=None, **changed):
        """Send an answer to an assignment, with a new key."""
        self.sent += 1
        self.now += 2
        item = assignment.item
        right = item.golden.get("match", [item.truth or "yes"])[0]
        value = value or (self.judge(item) if self.judge else right)
        sent = {"lease": assignment.lease, "key": f"key-{self.sent:04}", "seconds": 1.5}
        sent |= {"answer": {"match": ("yes", "no").index(value)}, **changed}
        with self.db.writing() as connection:
            person = participants.person_by_id(connection, self.person.id)
            answer = answering.AnswerIn(**sent)
            return answering.record_answer(connection, self.campaign, person, answer, self.now)

    def end(self):
        """End early."""
        with self.db.writing() as connection:
            answering.end_work(connection, self.person, self.now)

    def withdraw(self):
        with self.db.writing() as connection:
            person = participants.person_by_id(connection, self.person.id)
            return answering.withdraw(connection, self.campaign, person, self.now)

    def do(self, most=10**6):
        """Answer until nothing is left, or so many items."""
        state = self.state()
        while state.assignments and most:
            state = self.answer(state.assignments[0]).work
            most -= 1
        return state
