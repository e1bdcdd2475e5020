"""Jobs on Prolific for a campaign: its study, its submissions, and what its people are paid."""

import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from counterfoil.annotate.campaign import open_campaign
from counterfoil.annotate.platforms import prolific_bonuses
from counterfoil.annotate.platforms.prolific_submissions import (
    ProlificSubmission,
    Reconciled,
    Rejection,
)
from counterfoil.benchmarks.tables import labels, read_table
from counterfoil.errors import DataError, InputError, MissingExtraError
from counterfoil.jobs.feedback import SILENT, Feedback
from counterfoil.store import csv_text

if TYPE_CHECKING:
    from counterfoil.annotate.platforms.prolific_api import BonusBatch, ProlificClient
    from counterfoil.annotate.platforms.prolific_campaign import StudyChoices
    from counterfoil.annotate.platforms.prolific_study import ProlificStudy, StudyPlan

    Client = ProlificClient


@dataclass(frozen=True)
class StudyState:
    """A study with its submissions by state, and what they mean for the campaign."""

    study: "ProlificStudy"
    submissions: tuple[ProlificSubmission, ...]
    reconciled: Reconciled
    #: Answers that no longer count, since their people gave the place back.
    set_aside: int = 0

    @property
    def by_status(self) -> dict[str, int]:
        """How many submissions there are in each state."""
        return dict(sorted(Counter(submission.status for submission in self.submissions).items()))


@contextmanager
def prolific(token: str, address: str | None = None) -> "Iterator[Client]":
    """Prolific with a token; raises `MissingExtraError` where the library for requests is not installed."""
    try:
        from counterfoil.annotate.platforms.prolific_api import ADDRESS, ProlificClient, ProlificSettings
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "annotate") from None
    with ProlificClient(token, ProlificSettings(address or ADDRESS)) as client:
        yield client


def plan_study(
    folder: Path, choices: "StudyChoices", *, write: bool = True, feedback: Feedback = SILENT
) -> "StudyPlan":
    """The study for a campaign, with new completion codes where it has none; `write` keeps them in it."""
    from counterfoil.annotate.platforms.prolific_campaign import codes_of, new_codes, plan_of, write_codes

    campaign = open_campaign(folder)
    known = codes_of(campaign)
    codes = known or new_codes()
    plan = plan_of(campaign, choices, codes)
    if write and not known:
        write_codes(campaign, codes)
        feedback.note(f"completion codes are in {folder}/campaign.toml; start a running server again")
    return plan


def create_study(folder: Path, plan: "StudyPlan", client: "Client") -> "ProlificStudy":
    """The draft of a study for a campaign, which notes it; the one made before where there is one."""
    from counterfoil.annotate.platforms.prolific_campaign import write_study

    study = client.create(plan)
    write_study(open_campaign(folder), study.id)
    return study


def move_study(folder: Path, action: str, client: "Client") -> "ProlificStudy":
    """The campaign's study after PUBLISH, PAUSE, START or STOP."""
    return client.move(_study(folder), action)


def add_places(folder: Path, total: int, client: "Client") -> "ProlificStudy":
    """The campaign's study with so many places in all."""
    return client.add_places(_study(folder), total)


def study_state(
    folder: Path, client: "Client", *, database: str | None = None, release: bool = False
) -> StudyState:
    """The campaign's study and submissions now; with `release` places that were given back go to others."""
    from counterfoil.annotate.database import open_database
    from counterfoil.annotate.platforms.prolific_campaign import give_back, reconciled

    campaign = open_campaign(folder)
    study = client.study(_study(folder))
    submissions = client.submissions(study.id)
    db = open_database(campaign, database)
    try:
        reconciliation = reconciled(db, campaign, submissions)
        aside = give_back(db, campaign, reconciliation.free, time.time()) if release else 0
    finally:
        db.close()
    return StudyState(study, submissions, reconciliation, aside)


def approve(folder: Path, client: "Client", *, database: str | None = None, pay: bool) -> tuple[str, ...]:
    """The submissions that wait for review and whose people are done; approved, and so paid, with `pay`."""
    state = study_state(folder, client, database=database)
    waiting = tuple(submission.id for submission in state.reconciled.payable)
    if pay:
        client.approve(waiting)
    return waiting


def read_rejections(path: Path) -> tuple[Rejection, ...]:
    """Rejections in a table with columns `submission`, `message` and `category`, all of them checked."""
    table = read_table(path)
    columns = [
        [csv_text(cell) for cell in labels(table, name)] for name in ("submission", "message", "category")
    ]
    rejections: list[Rejection] = []
    for row, (submission, message, category) in enumerate(zip(*columns, strict=True)):
        if not submission or submission in {rejection.submission for rejection in rejections}:
            what = "empty" if not submission else "occurs twice"
            raise DataError(what, where=table.where(row, "submission"), given=submission or None)
        rejections.append(Rejection(submission, message, category))
    return tuple(rejections)


def reject(folder: Path, rejections: tuple[Rejection, ...], client: "Client", *, send: bool) -> None:
    """Reject submissions of the campaign's study with `send`; without it they are only looked up.

    Raises `InputError` for one that is of another study, or that does not wait for review.
    """
    study = _study(folder)
    known = {submission.id: submission for submission in client.submissions(study)}
    for rejection in rejections:
        if rejection.submission not in known:
            raise InputError(
                "no submission of this study", where=f"study {study}", given=rejection.submission
            )
        status = known[rejection.submission].status
        if status not in ("AWAITING REVIEW", "REJECTED"):
            raise InputError(
                "cannot be rejected now",
                where=f"submission {rejection.submission}",
                given=status,
                allowed="AWAITING REVIEW",
            )
    if send:
        client.reject(
            [rejection for rejection in rejections if known[rejection.submission].status != "REJECTED"]
        )


def pay_bonuses(
    folder: Path, bonuses: Mapping[str, int], client: "Client", *, round_name: str = "", pay: bool
) -> "BonusBatch | None":
    """Bonuses in hundredths by person, set up and paid with `pay`; None where they were paid before."""
    notes = prolific_bonuses.BonusNotes(folder, _study(folder))
    batch = prolific_bonuses.set_up(client, notes, bonuses, round_name)
    if batch is not None and pay:
        prolific_bonuses.pay(client, notes, bonuses, batch, round_name)
    return batch


def _study(folder: Path) -> str:
    from counterfoil.annotate.platforms.prolific_campaign import read_study

    return read_study(open_campaign(folder))
