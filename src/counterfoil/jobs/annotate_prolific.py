"""Jobs on Prolific for a campaign: the submissions of its study, and their review."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Unpack

from counterfoil.annotate.campaign import Campaign, open_campaign
from counterfoil.annotate.platforms.prolific import ProlificSubmission, Reconciled, study_of
from counterfoil.errors import MissingExtraError
from counterfoil.inputs.options import Option
from counterfoil.jobs.annotate_judgements import CAMPAIGN, Change, StoredAnswers
from counterfoil.jobs.job import documented, feedback_of, job, option

if TYPE_CHECKING:
    from counterfoil.annotate.database import Database
    from counterfoil.annotate.platforms.prolific_api import ProlificClient


@documented
class StoredAccess(StoredAnswers, total=False):
    """How Prolific is reached, and where the answers of the campaign are.

    Arguments:
        token_env: Environment variable with the token of Prolific's API.
        api: URL of the API.
    """

    token_env: Annotated[str, option("PROLIFIC_TOKEN", metavar="VARIABLE")]
    api: Annotated[str | None, option(None, metavar="URL")]


YES = Option("Do it; without this, only show what would be done.")


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
    """The submissions of the study beside the people of the campaign.

    Arguments:
        release: Give others the items of people who left.
    """
    from counterfoil.annotate.review import release_items

    with _submitted(campaign, options) as (_, source, db, submissions, participants):
        aside = release_items(db, source, participants.free, time.time()) if release else 0
    ids = {
        "payable": [submission.id for submission in participants.payable],
        "rejected": [rejection.submission for rejection in participants.rejected],
        "unfinished": [submission.id for submission in participants.unfinished],
        "unseen": [submission.id for submission in participants.unseen],
    }
    names = ("to approve", "to reject", "not done in the campaign", "never entered the campaign")
    waiting = dict(zip(names, map(len, ids.values()), strict=True))
    by_state = dict(sorted(Counter(submission.status for submission in submissions).items()))
    study, free, strangers = study_of(source), len(participants.free), len(participants.strangers)
    facts = {"study": study, "submissions": by_state, **waiting}
    facts |= {"people whose place is free again": free, "people without a submission": strangers}
    facts |= {"answers set aside": aside} if release else {}
    counts = {"free": free, "strangers": strangers, "set_aside": aside}
    return Change({"study": study, "submissions": by_state, **ids, **counts}, facts=facts)


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
    with _submitted(campaign, options) as (client, *_, participants):
        waiting = [submission.id for submission in participants.payable]
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
    with _submitted(campaign, options) as (client, *_, participants):
        if yes:
            client.reject(participants.rejected)
    return _reviewed("rejected", yes, [rejection.submission for rejection in participants.rejected])


@contextmanager
def _submitted(
    folder: Path, options: StoredAccess
) -> "Iterator[tuple[ProlificClient, Campaign, Database, tuple[ProlificSubmission, ...], Reconciled]]":
    """Prolific, a campaign with its database, submissions of its study, and what they mean for it."""
    try:
        from counterfoil.annotate.platforms.prolific_api import ADDRESS, ProlificClient
    except ModuleNotFoundError as error:
        raise MissingExtraError(str(error.name), "annotate") from None
    from counterfoil.annotate.database import open_database
    from counterfoil.annotate.review import reconciled

    token, address = os.environ.get(options["token_env"], ""), options["api"] or ADDRESS
    with ProlificClient(token, address) as client, feedback_of(options).busy("asking Prolific"):
        campaign = open_campaign(folder)
        submissions = client.submissions(study_of(campaign))
        with closing(open_database(campaign, options["database"])) as db:
            yield client, campaign, db, submissions, reconciled(db, campaign, submissions)


def _reviewed(verdict: str, yes: bool, submissions: list[str]) -> Change:
    name = verdict if yes else f"would be {verdict} (--yes does it)"
    return Change({verdict: yes, "submissions": submissions}, facts={name: len(submissions)})
