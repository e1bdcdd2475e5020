"""`counterfoil annotate prolific`: the study of a campaign on Prolific, its submissions and its pay."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterfoil.cli import usage
from counterfoil.cli.options import Json, Overwrite
from counterfoil.inputs.limits import most

if TYPE_CHECKING:
    from counterfoil.annotate.platforms.prolific_api import ProlificClient
    from counterfoil.annotate.platforms.prolific_study import ProlificStudy

app = typer.Typer(
    cls=usage.CommandGroup,
    help="Prolific: a study for a campaign, its submissions, and what people are paid.",
    no_args_is_help=True,
    epilog="Start with: counterfoil annotate prolific create campaign/ --url https://... --dry-run",
)

CampaignFolder = Annotated[Path, typer.Argument(metavar="CAMPAIGN", help="The campaign's folder.")]
TokenEnv = Annotated[
    str, typer.Option(metavar="VARIABLE", help="Environment variable with the token of Prolific's API.")
]
Api = Annotated[str | None, typer.Option("--api", metavar="URL", help="Another address of the API.")]
Database = Annotated[
    str | None,
    typer.Option(
        metavar="URL", help="The campaign's database where it is not in its folder: postgresql://..."
    ),
]
Yes = Annotated[bool, typer.Option("--yes", help="Do it. Without this it is only shown what would be done.")]
_TOKEN = "PROLIFIC_TOKEN"

CREATE_EPILOG = """Examples:
  counterfoil annotate prolific create campaign/ --url https://study.example.org --dry-run
  counterfoil annotate prolific create campaign/ --url https://study.example.org --places 40 --minutes 12

The address is that at which 'counterfoil annotate serve' is reached from outside. Nothing is published, and
nothing is paid: the study is a draft until 'counterfoil annotate prolific publish'. The same command finds
the draft that it made before."""


def create(
    campaign: CampaignFolder,
    url: Annotated[str, typer.Option(metavar="URL", help="Public address of the server, over https.")],
    places: Annotated[
        int | None,
        typer.Option(min=1, max=most("people"), help="People to recruit. Default: as the campaign needs."),
    ] = None,
    minutes: Annotated[
        int | None, typer.Option(min=1, max=1440, help="Usual time per person. Default: from the form.")
    ] = None,
    description: Annotated[str | None, typer.Option(help="What people read of the study.")] = None,
    approve: Annotated[
        bool, typer.Option("--approve", help="Let Prolific approve completed work by itself.")
    ] = False,
    project: Annotated[str, typer.Option(metavar="ID", help="Project of Prolific that it is put into.")] = "",
    device: Annotated[
        list[str] | None,
        typer.Option(help="desktop, tablet or mobile; all by default. May be given several times."),
    ] = None,
    filter_set: Annotated[str, typer.Option(metavar="ID", help="A filter set of Prolific.")] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only show what would be sent, and what it costs.")
    ] = False,
    token_env: TokenEnv = _TOKEN,
    api: Api = None,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Make the draft of a study: places, pay and completion codes follow from the campaign.

    Pay per person is the campaign's pay per hour for the minutes that the work takes, rounded up.
    """
    from counterfoil.annotate.platforms.prolific_campaign import StudyChoices
    from counterfoil.annotate.platforms.prolific_study import DEVICES
    from counterfoil.cli import paths
    from counterfoil.jobs.annotate_prolific import create_study, plan_study
    from counterfoil.jobs.feedback import terminal_feedback

    paths.check(json=json)
    choices = StudyChoices(
        address=url,
        places=places,
        minutes=minutes,
        description=description,
        approve=approve,
        project=project,
        devices=tuple(device or DEVICES),
        filter_set=filter_set,
    )
    plan = plan_study(campaign, choices, write=not dry_run, feedback=terminal_feedback())
    facts: dict[str, object] = {
        "name": plan.name,
        "description": plan.description,
        "address": plan.address,
        "places": f"{plan.places:,}",
        "minutes": plan.minutes,
        "pay": f"{plan.reward / 100:,.2f} per person, {plan.pay_per_hour:,.2f} per hour",
        "pay in all": f"{plan.reward * plan.places / 100:,.2f} without fees",
        "approved by": "Prolific itself" if plan.approve else "you",
    }
    if dry_run:
        _show(facts, json, {"plan": plan.payload()})
        return
    with _client(token_env, api) as client:
        study = create_study(campaign, plan, client)
    _show({**facts, "study": study.id, "state": study.status}, json, _facts(study))


PUBLISH_EPILOG = """Example:
  counterfoil annotate prolific publish campaign/

People can take part from now on, and Prolific sets the money aside. 'counterfoil annotate serve' must be
reached at the study's address."""


def publish(
    campaign: CampaignFolder, token_env: TokenEnv = _TOKEN, api: Api = None, json: Json = None
) -> None:
    """Publish the campaign's study; one that is published already stays so."""
    _move(campaign, "PUBLISH", token_env, api, json)


PAUSE_EPILOG = "Example: counterfoil annotate prolific pause campaign/"


def pause(campaign: CampaignFolder, token_env: TokenEnv = _TOKEN, api: Api = None, json: Json = None) -> None:
    """Pause the campaign's study: no new people come, those at work go on."""
    _move(campaign, "PAUSE", token_env, api, json)


START_EPILOG = "Example: counterfoil annotate prolific start campaign/"


def start(campaign: CampaignFolder, token_env: TokenEnv = _TOKEN, api: Api = None, json: Json = None) -> None:
    """Start a paused study again."""
    _move(campaign, "START", token_env, api, json)


STOP_EPILOG = "Example: counterfoil annotate prolific stop campaign/"


def stop(campaign: CampaignFolder, token_env: TokenEnv = _TOKEN, api: Api = None, json: Json = None) -> None:
    """Stop the campaign's study for good; submissions can still be reviewed."""
    _move(campaign, "STOP", token_env, api, json)


PLACES_EPILOG = "Example: counterfoil annotate prolific places campaign/ 60"


def places(
    campaign: CampaignFolder,
    total: Annotated[int, typer.Argument(min=1, max=most("people"), help="Places in all.")],
    token_env: TokenEnv = _TOKEN,
    api: Api = None,
    json: Json = None,
) -> None:
    """Add places to the campaign's study: their number can only grow."""
    from counterfoil.cli import paths
    from counterfoil.jobs.annotate_prolific import add_places

    paths.check(json=json)
    with _client(token_env, api) as client:
        study = add_places(campaign, total, client)
    _show(_lines(study), json, _facts(study))


STATUS_EPILOG = """Examples:
  counterfoil annotate prolific status campaign/
  counterfoil annotate prolific status campaign/ --release

With --release the open items of people who gave their place back go to others, and their answers no longer
count, since they are not paid for. Run it now and then: a laptop has no address for Prolific to report to."""


def status(
    campaign: CampaignFolder,
    release: Annotated[
        bool, typer.Option("--release", help="Give the work of people who left to others.")
    ] = False,
    database: Database = None,
    token_env: TokenEnv = _TOKEN,
    api: Api = None,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """The study and its submissions beside the people of the campaign."""
    from counterfoil.cli import paths
    from counterfoil.jobs.annotate_prolific import study_state

    paths.check(json=json)
    with _client(token_env, api) as client:
        state = study_state(campaign, client, database=database, release=release)
    reconciled = state.reconciled
    counts = {
        "to approve": len(reconciled.payable),
        "not done in the campaign": len(reconciled.unfinished),
        "never entered the campaign": len(reconciled.unseen),
        "people whose place is free again": len(reconciled.free),
        "people without a submission": len(reconciled.strangers),
    }
    facts: dict[str, object] = {**_lines(state.study), "submissions": state.by_status}
    facts |= {name: f"{count:,}" for name, count in counts.items()}
    if release:
        facts["answers set aside"] = f"{state.set_aside:,}"
    value = {
        **_facts(state.study),
        "submissions": state.by_status,
        "payable": [submission.id for submission in reconciled.payable],
        "unfinished": [submission.id for submission in reconciled.unfinished],
        "unseen": [submission.id for submission in reconciled.unseen],
        "free": len(reconciled.free),
        "strangers": len(reconciled.strangers),
        "set_aside": state.set_aside,
    }
    _show(facts, json, value)


APPROVE_EPILOG = """Examples:
  counterfoil annotate prolific approve campaign/
  counterfoil annotate prolific approve campaign/ --yes

Without --yes it is only shown how many would be approved. Approved submissions are paid at once."""


def approve_(
    campaign: CampaignFolder,
    yes: Yes = False,
    database: Database = None,
    token_env: TokenEnv = _TOKEN,
    api: Api = None,
    json: Json = None,
) -> None:
    """Approve all submissions that wait for review and whose people have done their work here."""
    from counterfoil.cli import paths
    from counterfoil.jobs.annotate_prolific import approve

    paths.check(json=json)
    with _client(token_env, api) as client:
        submissions = approve(campaign, client, database=database, pay=yes)
    facts = {"approved" if yes else "would be approved (--yes does it)": f"{len(submissions):,}"}
    _show({**facts}, json, {"approved": yes, "submissions": list(submissions)})


REJECT_EPILOG = """Examples:
  counterfoil annotate prolific reject campaign/ --from rejections.csv
  counterfoil annotate prolific reject campaign/ --from rejections.csv --yes

rejections.csv has columns submission, message and category. A message has 100 characters or more and tells
the person what was wrong; all of them are checked before the first is sent. A rejected person is not paid,
and too many rejections end an account: keep them to work that was plainly not done."""


def reject_(
    campaign: CampaignFolder,
    source: Annotated[Path, typer.Option("--from", metavar="TABLE", help="The rejections.")],
    yes: Yes = False,
    token_env: TokenEnv = _TOKEN,
    api: Api = None,
    json: Json = None,
) -> None:
    """Reject submissions, each with a message and a category."""
    from counterfoil.cli import paths
    from counterfoil.jobs.annotate_prolific import read_rejections, reject

    paths.check(json=json)
    rejections = read_rejections(source)
    with _client(token_env, api) as client:
        reject(campaign, rejections, client, send=yes)
    facts = {"rejected" if yes else "would be rejected (--yes does it)": f"{len(rejections):,}"}
    value = {"rejected": yes, "submissions": [rejection.submission for rejection in rejections]}
    _show({**facts}, json, value)


BONUS_EPILOG = """Examples:
  counterfoil annotate prolific bonus campaign/ --from bonuses.csv
  counterfoil annotate prolific bonus campaign/ --from bonuses.csv --yes
  counterfoil annotate prolific bonus campaign/ --from bonuses.csv --round "second week" --yes

bonuses.csv has columns person (Prolific's id) and amount (1.50). The same bonuses are paid once, whatever
happens in between: to pay the same people the same amounts again, name another round."""


def bonus(
    campaign: CampaignFolder,
    source: Annotated[Path, typer.Option("--from", metavar="TABLE", help="The bonuses.")],
    round_name: Annotated[str, typer.Option("--round", metavar="NAME", help="Tells rounds apart.")] = "",
    yes: Yes = False,
    token_env: TokenEnv = _TOKEN,
    api: Api = None,
    json: Json = None,
) -> None:
    """Pay bonuses to people of the campaign's study, after showing what they cost."""
    from counterfoil import terminal
    from counterfoil.annotate.platforms.prolific_bonuses import read_bonuses
    from counterfoil.cli import paths
    from counterfoil.jobs.annotate_prolific import pay_bonuses

    paths.check(json=json)
    bonuses = read_bonuses(source)
    with _client(token_env, api) as client:
        batch = pay_bonuses(campaign, bonuses, client, round_name=round_name, pay=yes)
    if batch is None:
        terminal.note("these bonuses were paid before; nothing was done")
        if json is not None:
            terminal.write_result(json, {"paid": False, "before": True})
        return
    facts: dict[str, object] = {
        "bonuses": f"{batch.amount / 100:,.2f}",
        "fees": f"{batch.fees / 100:,.2f}",
        "tax": f"{batch.tax / 100:,.2f}",
        "paid" if yes else "would be paid (--yes does it)": f"{batch.total / 100:,.2f}",
    }
    value = {"paid": yes, "before": False, "amount": batch.amount, "fees": batch.fees, "tax": batch.tax}
    _show(facts, json, {**value, "total": batch.total})


def _move(campaign: Path, action: str, token_env: str, api: str | None, json: str | None) -> None:
    from counterfoil.cli import paths
    from counterfoil.jobs.annotate_prolific import move_study

    paths.check(json=json)
    with _client(token_env, api) as client:
        study = move_study(campaign, action, client)
    _show(_lines(study), json, _facts(study))


@contextmanager
def _client(token_env: str, api: str | None) -> "Iterator[ProlificClient]":
    from counterfoil import terminal
    from counterfoil.jobs.annotate_prolific import prolific

    with prolific(os.environ.get(token_env, ""), api) as client, terminal.busy("asking Prolific"):
        yield client


def _lines(study: "ProlificStudy") -> dict[str, object]:
    return {
        "study": study.id,
        "name": study.name,
        "state": study.status,
        "places": f"{study.taken:,} of {study.places:,} taken",
        "pay": f"{study.reward / 100:,.2f} per person",
    }


def _facts(study: "ProlificStudy") -> dict[str, Any]:
    return {
        "study": study.id,
        "state": study.status,
        "places": study.places,
        "taken": study.taken,
        "reward": study.reward,
    }


def _show(facts: dict[str, object], json: str | None, value: dict[str, Any]) -> None:
    from counterfoil import terminal
    from counterfoil.cli.list import print_facts

    if json is not None:
        terminal.write_result(json, value)
    if json != "-" and not terminal.quiet:
        print_facts(facts)


for function, epilog in (
    (create, CREATE_EPILOG),
    (publish, PUBLISH_EPILOG),
    (pause, PAUSE_EPILOG),
    (start, START_EPILOG),
    (stop, STOP_EPILOG),
    (places, PLACES_EPILOG),
    (status, STATUS_EPILOG),
    (approve_, APPROVE_EPILOG),
    (reject_, REJECT_EPILOG),
    (bonus, BONUS_EPILOG),
):
    app.command(
        function.__name__.rstrip("_"),
        cls=usage.Command,
        help=usage.flowing(function.__doc__ or ""),
        epilog=usage.flowing(epilog),
    )(usage.with_levels(usage.for_owner(function)))
