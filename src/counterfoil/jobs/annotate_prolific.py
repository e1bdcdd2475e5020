"""Jobs on Prolific for a campaign: the draft of its study, its submissions, and their review.

Each is a command of `counterfoil annotate prolific`, and gives a `Change`.
"""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack, cast

from counterfoil.annotate.campaign import Campaign, open_campaign
from counterfoil.annotate.platforms import prolific
from counterfoil.annotate.platforms.prolific import (
    ProlificStudy,
    ProlificSubmission,
    Reconciled,
    StudyChoices,
)
from counterfoil.errors import MissingExtraError
from counterfoil.inputs.options import Option, given_of
from counterfoil.jobs.annotate_judgements import CAMPAIGN, Change, StoredAnswers
from counterfoil.jobs.arguments import Reporting, feedback_of
from counterfoil.jobs.job import documented, job, option
from counterfoil.store import write_json

if TYPE_CHECKING:
    from counterfoil.annotate.database import Database
    from counterfoil.annotate.platforms.prolific_api import ProlificClient


@documented
class Access(Reporting, total=False):
    """How Prolific is reached.

    Arguments:
        token_env: Environment variable with the token of Prolific's API.
        api: URL of the API.
    """

    token_env: Annotated[str, option("PROLIFIC_TOKEN", metavar="VARIABLE")]
    api: Annotated[str | None, option(None, metavar="URL")]


class StoredAccess(StoredAnswers, Access, total=False):
    """How Prolific is reached, and where the answers of the campaign are."""


YES = Option("Do it; without this, only show what would be done.")


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate prolific create campaign/ --url https://study.example.org --dry-run
  counterfoil annotate prolific create campaign/ --url https://study.example.org --places 40 --minutes 12

The URL is the public one of 'counterfoil annotate serve'. The study is a draft: nothing is published or
paid. Edit it (participants, devices, texts), preview and publish it on Prolific's page. Running the
command again finds its draft.""",
)
def create(
    campaign: Annotated[Path, CAMPAIGN],
    *,
    url: Annotated[str, option(metavar="URL")],
    dry_run: bool = False,
    **options: Annotated[Any, StudyChoices, Access],
) -> Change:
    """Draft a Prolific study; places, pay and completion codes follow from the campaign.

    Pay per person is the campaign's pay per hour for the minutes that the work takes, rounded up.

    Arguments:
        url: Public address of the server, over https.
        dry_run: Show what would be sent and what it costs; send nothing.
    """
    access, source = cast(Access, options), open_campaign(campaign)
    known = prolific.codes_of(source)
    codes = known or prolific.new_codes()
    choices = StudyChoices(address=url, **given_of(StudyChoices, options))
    plan = prolific.plan_of(source, choices, codes)
    facts: dict[str, object] = {
        **{name: getattr(plan, name) for name in ("name", "description", "address", "places", "minutes")},
        "pay": f"{plan.reward / 100:,.2f} per person, {plan.pay_per_hour:,.2f} per hour",
        "pay in all": f"{plan.reward * plan.places / 100:,.2f} without fees",
    }
    if dry_run:
        return Change({"plan": plan.payload()}, facts=facts)
    if not known:
        prolific.write_codes(source, codes)
        feedback_of(access).note(
            f"completion codes are in {campaign}/campaign.toml; start a running server again"
        )
    with _prolific(access) as client:
        study = client.create(plan)
    # Codes that were written are part of the campaign.
    write_json(campaign / prolific.STUDY, {"study": study.id, "campaign": open_campaign(campaign).digest})
    return replace(_facts(study), facts={**facts, "study": study.id, "state": study.status})


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate prolific status campaign/
  counterfoil annotate prolific status campaign/ --release-items

With --release-items the open items of people who returned their place go to others, and their unpaid
answers no longer count. Run it from time to time.""",
)
def status(
    campaign: Annotated[Path, CAMPAIGN],
    *,
    release: Annotated[bool, option(flag="--release-items")] = False,
    **options: Unpack[StoredAccess],
) -> Change:
    """Show the study and its submissions beside the people of the campaign.

    Arguments:
        release: Give the items of people who left to others.
    """
    from counterfoil.annotate.review import give_back

    with (
        _prolific(options) as client,
        _submitted(campaign, client, options) as (source, db, submissions, known),
    ):
        study = client.study(_study(campaign))
        aside = give_back(db, source, known.free, time.time()) if release else 0
    ids = {
        "payable": [submission.id for submission in known.payable],
        "rejected": [rejection.submission for rejection in known.rejected],
        "unfinished": [submission.id for submission in known.unfinished],
        "unseen": [submission.id for submission in known.unseen],
    }
    names = ("to approve", "to reject", "not done in the campaign", "never entered the campaign")
    waiting = dict(zip(names, map(len, ids.values()), strict=True))
    by_state = dict(sorted(Counter(submission.status for submission in submissions).items()))
    shown, free, strangers = _facts(study), len(known.free), len(known.strangers)
    facts = {**shown.facts, "submissions": by_state, **waiting}
    facts |= {"people whose place is free again": free, "people without a submission": strangers}
    facts |= {"answers set aside": aside} if release else {}
    counts = {"free": free, "strangers": strangers, "set_aside": aside}
    return Change({**shown.value, "submissions": by_state, **ids, **counts}, facts=facts)


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate prolific approve campaign/
  counterfoil annotate prolific approve campaign/ --yes

Without --yes the command only shows how many it would approve. Approved submissions are paid at once.""",
)
def approve(
    campaign: Annotated[Path, CAMPAIGN], *, yes: Annotated[bool, YES] = False, **options: Unpack[StoredAccess]
) -> Change:
    """Approve all submissions that wait for review and whose people did their work here.

    Submissions of rejected people are left to 'counterfoil annotate prolific reject'.
    """
    with _prolific(options) as client, _submitted(campaign, client, options) as (*_, known):
        waiting = [submission.id for submission in known.payable]
        if yes:
            client.approve(tuple(waiting))
    return _reviewed("approved", yes, waiting)


@job(
    outputs="json",
    examples="""Examples:
  counterfoil annotate reject campaign/ 3fa9c1 --category LOW_EFFORT --reason "..."
  counterfoil annotate prolific reject campaign/
  counterfoil annotate prolific reject campaign/ --yes

Without --yes the command only shows how many it would reject. A rejected person is not paid, and too many
rejections end an account: reject only work that was plainly not done.""",
)
def reject(
    campaign: Annotated[Path, CAMPAIGN], *, yes: Annotated[bool, YES] = False, **options: Unpack[StoredAccess]
) -> Change:
    """Reject all submissions that wait for review and whose people's work was rejected here, with the reason.

    Decide about people with 'counterfoil annotate reject', or on the researcher's page.
    """
    with _prolific(options) as client, _submitted(campaign, client, options) as (*_, known):
        if yes:
            client.reject(known.rejected)
    return _reviewed("rejected", yes, [rejection.submission for rejection in known.rejected])


@contextmanager
def _prolific(access: Access) -> "Iterator[ProlificClient]":
    """Prolific with a token; raises `MissingExtraError` where the library for requests is not installed."""
    try:
        from counterfoil.annotate.platforms.prolific_api import ADDRESS, ProlificClient
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "annotate") from None
    token, address = os.environ.get(access["token_env"], ""), access["api"] or ADDRESS
    with ProlificClient(token, address) as client, feedback_of(access).busy("asking Prolific"):
        yield client


@contextmanager
def _submitted(
    folder: Path, client: "ProlificClient", options: StoredAccess
) -> "Iterator[tuple[Campaign, Database, tuple[ProlificSubmission, ...], Reconciled]]":
    """A campaign with its database, submissions of its study, and what they mean for the campaign."""
    from counterfoil.annotate.database import open_database
    from counterfoil.annotate.review import reconciled

    campaign = open_campaign(folder)
    submissions = tuple(client.submissions(_study(folder)))
    with closing(open_database(campaign, options["database"])) as db:
        yield campaign, db, submissions, reconciled(db, campaign, submissions)


def _reviewed(verdict: str, yes: bool, submissions: list[str]) -> Change:
    name = verdict if yes else f"would be {verdict} (--yes does it)"
    return Change({verdict: yes, "submissions": submissions}, facts={name: len(submissions)})


def _study(folder: Path) -> str:
    return prolific.read_study(open_campaign(folder))


def _facts(study: ProlificStudy) -> Change:
    facts = {
        "study": study.id,
        "name": study.name,
        "state": study.status,
        "places": f"{study.taken:,} of {study.places:,} taken",
        "pay": f"{study.reward / 100:,.2f} per person",
    }
    plain = {name: getattr(study, name) for name in ("places", "taken", "reward")}
    return Change({"study": study.id, "state": study.status, **plain}, facts=facts)
