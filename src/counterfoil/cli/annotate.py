"""`counterfoil annotate`: people in the loop, from the question to agreement to a benchmark."""

from typing import TYPE_CHECKING, Annotated, Any

from counterfoil.cli.program import CommandGroup
from counterfoil.inputs.options import Option

if TYPE_CHECKING:
    from rich.console import Console

    from counterfoil.jobs.annotate_campaign import CampaignProgress

#: Every command, in the order of `--help`. What they write is about people, so that it is its owner's alone.
COMMANDS = {
    "forms": "listings:forms listings:show_entries",
    "create": "jobs.annotate_create:create_campaign",
    "simulate": "jobs.annotate_simulate:annotate_simulate",
    "status": "jobs.annotate_campaign:annotate_status annotate:show_status",
    "agreement": "jobs.annotate_judgements:annotate_agreement",
    "review": "jobs.annotate_campaign:annotate_review annotate:show_lines",
    "approve": "jobs.annotate_campaign:annotate_approve annotate:show_lines",
    "reject": "jobs.annotate_campaign:annotate_reject annotate:show_lines",
    "adjudicate": "jobs.annotate_campaign:annotate_adjudicate annotate:show_lines",
    "withdraw": "jobs.annotate_campaign:annotate_withdraw annotate:show_lines",
    "readmit": "jobs.annotate_campaign:annotate_readmit annotate:show_lines",
    "delete-after": "jobs.annotate_campaign:annotate_delete annotate:show_lines",
    "export": "jobs.annotate_judgements:annotate_export",
    "import": "jobs.annotate_judgements:import_judgements annotate:show_facts",
    "serve": "jobs.annotate_campaign:serve_campaign annotate:show_lines",
    "links": "jobs.annotate_campaign:campaign_links annotate:show_lines",
    "preferences": "jobs.preferences:preferences",
    "prolific": "annotate:prolific",
}
_PROLIFIC = ("status", "approve", "reject")

app = CommandGroup(
    COMMANDS,
    help="People judge images and captions in the browser: blind, several per item, from one folder.",
    epilog="Start with: counterfoil annotate forms",
    private=True,
)
prolific = CommandGroup(
    {name: f"jobs.annotate_prolific:{name} annotate:show_facts" for name in _PROLIFIC},
    help="Prolific: the submissions of a campaign's study, and their review.",
    epilog="Start with: counterfoil annotate prolific status campaign/",
)


def show_lines(result: Any, console: "Console") -> None:
    """Tables, and notes as lines that are as much what was asked for."""
    from counterfoil.cli.tables import show

    show(console, result.tables)
    for line in result.notes:
        console.print(line, soft_wrap=True)


def show_facts(result: Any, console: "Console") -> None:
    """Facts by name."""
    from counterfoil.cli.listings import print_facts

    if result.facts:
        print_facts(
            console,
            {name: f"{fact:,}" if isinstance(fact, int) else fact for name, fact in result.facts.items()},
        )


def show_status(
    progress: "CampaignProgress",
    console: "Console",
    *,
    by_person: Annotated[bool, Option("Add a line per person.")] = False,
) -> None:
    """The facts of a campaign, and its people."""
    from counterfoil.cli.tables import show

    show_facts(progress, console)
    show(console, progress.tables if by_person else ())
