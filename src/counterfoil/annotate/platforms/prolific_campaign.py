"""A campaign on Prolific: the study that is made for it, and its people beside the study's submissions."""

import math
import re
import secrets
from collections.abc import Iterable, Mapping
from typing import Any

from counterfoil.annotate.campaign import RECIPE, Campaign
from counterfoil.annotate.database import Database
from counterfoil.annotate.leases import invalidate
from counterfoil.annotate.participants import person_id
from counterfoil.annotate.platforms.base import OUTCOMES, Outcome
from counterfoil.annotate.platforms.links import ProlificPlatform
from counterfoil.annotate.platforms.prolific_study import (
    ProlificSubmission,
    Reconciled,
    StudyChoices,
    StudyPlan,
    reconcile,
)
from counterfoil.annotate.platforms.registry import campaign_platform
from counterfoil.annotate.platforms.signatures import read_keys
from counterfoil.annotate.tables import log_event, people, sa
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import Stored, read_model, read_text
from counterfoil.store import write_json, write_text

#: The file in a campaign's folder that says which study is its own.
STUDY = "prolific.json"
NAME = "prolific"


class _StudyOf(Stored):
    study: str
    campaign: str


def plan_of(campaign: Campaign, choices: StudyChoices, codes: Mapping[Outcome, str]) -> StudyPlan:
    """The study for a campaign, with completion codes by outcome.

    By default there are as many places as people are needed for all answers, and as many minutes as the form
    takes for what one of them does.
    """
    recipe = campaign.recipe
    work = sum(item.role == "work" for item in campaign.items)
    per_person = min(recipe.per_person or work, work)
    golden = recipe.golden_per_block if recipe.design == "blocks" else round(per_person * recipe.golden_share)
    usual = math.ceil((per_person + recipe.onboarding) * campaign.form.seconds / 60)
    minutes, pay = choices.minutes or max(1, usual), campaign.pay
    # Prolific is told what a person's items cost, by the minutes that it is told.
    price = pay.per_item * (per_person + recipe.onboarding)
    summary = campaign.form.summary
    facts: dict[str, Any] = {
        "description": choices.description or f"{summary[:1].upper()}{summary[1:]}.",
        "address": choices.address.rstrip("/") + "/enter",
        "places": choices.places or math.ceil(work * recipe.overlap / max(1, per_person - golden)),
        "minutes": minutes,
        "pay_per_hour": 60 * price / minutes if pay.by_item else pay.per_hour,
        "signed": bool(read_keys(campaign.folder)),
    }
    return StudyPlan(name=recipe.title, codes=codes, **{**vars(choices), **facts})


def codes_of(campaign: Campaign) -> Mapping[Outcome, str]:
    """The completion codes of a campaign by outcome; none where its recipe has no completion.

    Raises `InputError` where people enter the campaign another way.
    """
    recipe = campaign.recipe
    if recipe.entry != NAME:
        raise InputError(
            "people enter this campaign another way",
            where=campaign.folder / RECIPE,
            given=f"entry = {recipe.entry}",
            hint=f'write entry = "{NAME}" into it',
        )
    platform = campaign_platform(recipe.entry, recipe.completion)
    return platform.codes if isinstance(platform, ProlificPlatform) else {}


def new_codes() -> dict[Outcome, str]:
    """A completion code for every outcome, which cannot be guessed."""
    # Codes are typed by people now and then: no letters or digits that look alike.
    letters = "ABCDEFGHJKMNPQRSTUVWXYZ23456789"
    return {outcome: "".join(secrets.choice(letters) for _ in range(8)) for outcome in OUTCOMES}


def write_codes(campaign: Campaign, codes: Mapping[Outcome, str]) -> None:
    """Write completion codes into the recipe of a campaign, which is otherwise left as it is."""
    text = ", ".join(f"{outcome}={code}" for outcome, code in codes.items())
    path = campaign.folder / RECIPE
    line, before = f'completion = "{text}"', read_text(path)
    after, count = re.subn(r'^completion[ \t]*=[ \t]*"[^"\n]*"', line, before, count=1, flags=re.MULTILINE)
    write_text(path, after if count else f"{line}\n{before}")


def write_study(campaign: Campaign, study: str) -> None:
    """Note which study is the campaign's."""
    write_json(campaign.folder / STUDY, {"study": study, "campaign": campaign.digest})


def read_study(campaign: Campaign) -> str:
    """The campaign's study; raises `DataError` where it has none yet, or one of other items or questions."""
    path = campaign.folder / STUDY
    if not path.exists():
        raise DataError(
            "no study on Prolific yet",
            where=campaign.folder,
            hint=f"make one with: counterfoil annotate prolific create {campaign.folder} --url https://...",
        )
    note = read_model(path, _StudyOf)
    if note.campaign != campaign.digest:
        raise DataError(
            "the study was made when the campaign had other items or questions",
            where=path,
            given=note.study,
            hint="look after it on Prolific, and make another for this campaign: remove the file first",
        )
    return note.study


def reconciled(db: Database, campaign: Campaign, submissions: Iterable[ProlificSubmission]) -> Reconciled:
    """Submissions of the study beside those who entered the campaign from Prolific."""
    came = people.c.platform == NAME, people.c.state != "withdrawn"
    with db.reading() as connection:
        rows = connection.execute(sa.select(people.c.id, people.c.finished).where(*came)).all()
    return reconcile(
        tuple(submissions),
        {id: finished is not None for id, finished in rows},
        lambda worker: person_id(campaign, NAME, worker),
    )


def give_back(db: Database, campaign: Campaign, free: Iterable[str], now: float) -> int:
    """Let others do what these people left; how many of their answers no longer count.

    Answers of a person who gave the place back are not paid for, so they do not count either; they stay in
    the database.
    """
    answers = 0
    with db.writing() as connection:
        for person in free:
            aside = invalidate(connection, campaign, person)
            if aside:
                log_event(connection, now, "place given back", person, f"{aside} answers set aside")
            answers += aside
    return answers
