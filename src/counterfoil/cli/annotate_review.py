"""`counterfoil annotate review | approve | reject | adjudicate | withdraw | delete-after`."""

from pathlib import Path
from typing import Annotated, Any

import typer

from counterfoil.cli.annotate import Database, Folder
from counterfoil.cli.options import Json, Overwrite
from counterfoil.errors import InputError

By = Annotated[str, typer.Option(help="Who decides, kept with the decision.")]

REVIEW_EPILOG = """Examples:
  counterfoil annotate review campaign/
  counterfoil annotate review campaign/ --out reviews.csv
  counterfoil annotate review campaign/ --person 3fa9c1

Signs: fast, straight (the same answer again and again), golden (wrong where the answer is known), disagree
(with what others answer). The chance that any careful person shows one is 5 %."""


def review(
    campaign: Folder,
    out: Annotated[
        Path | None, typer.Option(help="Write people, signs and decisions here (.csv), for who pays them.")
    ] = None,
    person: Annotated[
        str, typer.Option(help="All answers of this one (an id, or how it begins), before a rejection.")
    ] = "",
    database: Database = None,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """People whose answers look careless, each with the reasons and what they suggest.

    Nothing is approved or rejected by this: 'counterfoil annotate approve' and 'reject' do it. With --person
    it lists what one person answered; the researcher's page shows it with the images.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show
    from counterfoil.jobs.annotate_review import annotate_person, annotate_review

    if out is not None and out.suffix.lower() != ".csv":
        raise InputError("unknown kind of table", where="--out", given=out, allowed=".csv")
    paths.check(csv=out, json=json)
    reviewed: Any = (
        annotate_person(campaign, person, database=database)
        if person
        else annotate_review(campaign, database=database)
    )
    if json != "-":
        show(terminal.out(), reviewed.tables)
        for note in reviewed.notes:
            terminal.out().print(note, highlight=False, markup=False)
    if out is not None:
        reviewed.save(out)
    if json is not None:
        terminal.write_result(json, reviewed.to_json())


APPROVE_EPILOG = """Examples:
  counterfoil annotate approve campaign/ 3fa9c1 b81c77
  counterfoil annotate approve campaign/ --suggested"""


def approve(
    campaign: Folder,
    people: Annotated[
        list[str] | None, typer.Argument(help="Ids of people, or how they begin; see 'annotate review'.")
    ] = None,
    suggested: Annotated[
        bool, typer.Option("--suggested", help="All who are done, without a sign and not decided yet.")
    ] = False,
    reason: Annotated[str, typer.Option(help="A note, kept with the decision.")] = "",
    by: By = "",
    database: Database = None,
) -> None:
    """Approve people's work, so that they are paid."""
    from counterfoil import terminal
    from counterfoil.jobs.annotate_review import annotate_approve

    if not people and not suggested:
        raise InputError("no one to approve", hint="name people, or use --suggested")
    done = annotate_approve(
        campaign, people or (), suggested=suggested, reason=reason, by=by, database=database
    )
    terminal.out().print(f"{done:,} approved", highlight=False)


REJECT_EPILOG = """Examples:
  counterfoil annotate reject campaign/ 3fa9c1 --reason "Nine of ten items of known answer were wrong."

On Prolific a reason has 100 characters or more and a category, such as --category LOW_EFFORT."""


def reject(
    campaign: Folder,
    person: Annotated[str, typer.Argument(help="The id of a person, or how it begins.")],
    reason: Annotated[str, typer.Option(help="What was wrong, with examples: the person reads it.")],
    category: Annotated[str, typer.Option(help="The platform's category of the reason.")] = "",
    by: By = "",
    database: Database = None,
) -> None:
    """Reject a person's work: their answers leave the labels, and their items are open to others again."""
    from counterfoil import terminal
    from counterfoil.jobs.annotate_review import annotate_reject

    aside = annotate_reject(campaign, person, reason=reason, category=category, by=by, database=database)
    terminal.out().print(
        f"rejected; {aside:,} answers set aside, their items are open again", highlight=False
    )


ADJUDICATE_EPILOG = """Examples:
  counterfoil annotate adjudicate campaign/
  counterfoil annotate adjudicate campaign/ 17 yes --note "The dog is behind the tree."

The researcher's page shows the images and takes decisions by keyboard."""


def adjudicate(
    campaign: Folder,
    item: Annotated[str | None, typer.Argument(help="The id of an item to decide.")] = None,
    answer: Annotated[str | None, typer.Argument(help="The value of an option.")] = None,
    question: Annotated[str, typer.Option(help="The question. Default: the form's main one.")] = "",
    note: Annotated[str, typer.Option(help="Why, kept with the decision.")] = "",
    by: By = "",
    database: Database = None,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Items that people disagree on, most undecided first; or decide one of them.

    A decision stands beside the answers, and is the item's label.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show
    from counterfoil.jobs.annotate_review import annotate_adjudicate, annotate_disputes

    paths.check(json=json)
    if item is not None:
        if answer is None:
            raise InputError("no answer", where=f"item '{item}'", hint="give the value of an option after it")
        decided = annotate_adjudicate(
            campaign, item, answer, question=question, note=note, by=by, database=database
        )
        if json is not None:
            terminal.write_result(json, decided.to_json())
        else:
            terminal.out().print(
                f"item {decided.item}, {decided.question}: {decided.answer}", highlight=False, markup=False
            )
        return
    disputes = annotate_disputes(campaign, database=database)
    if json != "-":
        show(terminal.out(), disputes.tables)
        for line in disputes.notes:
            terminal.out().print(line, highlight=False)
    if json is not None:
        terminal.write_result(json, disputes.to_json())


WITHDRAW_EPILOG = """Examples:
  counterfoil annotate withdraw campaign/ --worker 5f8a60b1c2
  counterfoil annotate withdraw campaign/ --person 3fa9c1"""


def withdraw(
    campaign: Folder,
    worker: Annotated[
        str, typer.Option(help="The platform's id of the person, or their personal link.")
    ] = "",
    platform: Annotated[
        str, typer.Option(help="Of --worker: how they came in. Default: the campaign's own way.")
    ] = "",
    person: Annotated[str, typer.Option(help="The id of the person here, or how it begins.")] = "",
    database: Database = None,
) -> None:
    """Delete all answers of a person who asks for it; others get the items. It cannot be undone."""
    from counterfoil import terminal
    from counterfoil.jobs.annotate_review import annotate_withdraw

    if bool(worker) == bool(person):
        raise InputError(
            "who withdraws", given="both" if worker else "no one", allowed="--worker or --person"
        )
    count = annotate_withdraw(campaign, worker=worker, platform=platform, person=person, database=database)
    terminal.out().print(f"withdrawn; {count:,} answers deleted", highlight=False)


READMIT_EPILOG = """Examples:
  counterfoil annotate readmit campaign/ --worker 5f8a60b1c2
  counterfoil annotate readmit campaign/ --person 3fa9c1"""


def readmit(
    campaign: Folder,
    worker: Annotated[str, typer.Option(help="The platform's id of the person.")] = "",
    person: Annotated[str, typer.Option(help="The id of the person here, or how it begins.")] = "",
    database: Database = None,
) -> None:
    """Let a person in from another browser or device; pages of theirs that are open elsewhere end.

    Anybody can type an id, so a person whom a platform sent goes on in the browser that came first. The next
    browser that comes with the id is taken for it: see first that it is the person who asks.
    """
    from counterfoil import terminal
    from counterfoil.jobs.annotate_review import annotate_readmit

    if bool(worker) == bool(person):
        raise InputError(
            "who is let in", given="both" if worker else "no one", allowed="--worker or --person"
        )
    known = annotate_readmit(campaign, worker=worker, person=person, database=database)
    terminal.out().print(
        f"person {known[:10]} may come with another browser, by the platform's link", highlight=False
    )


DELETE_AFTER_EPILOG = """Examples:
  counterfoil annotate export campaign/ --no-people --out labels/
  counterfoil annotate delete-after campaign/ --yes

The date is 'keep_until' in campaign.toml. An export in the campaign's folder goes, too; files that were
exported elsewhere are not touched: delete those with answers."""


def delete_after(
    campaign: Folder,
    now: Annotated[
        bool, typer.Option("--now", help="Also before the date, and of a campaign without one.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    database: Database = None,
) -> None:
    """Delete all answers and people of a campaign whose date has passed. It cannot be undone.

    Items and decisions about them stay, and with 'keep_labels' in campaign.toml the labels of items that two
    people or more answered.
    """
    from counterfoil import terminal
    from counterfoil.jobs.annotate_review import annotate_delete

    if not yes and not terminal.confirmed(f"all answers and people of {campaign}"):
        return
    deletion = annotate_delete(campaign, early=now, database=database)
    terminal.out().print(
        f"{deletion.people:,} people and {deletion.answers:,} answers deleted", highlight=False
    )
    if deletion.labels or deletion.single:
        alone = f"; {deletion.single:,} left out that one person alone answered" if deletion.single else ""
        terminal.note(f"labels of {deletion.labels:,} items kept in {campaign / 'kept_labels.csv'}{alone}")
