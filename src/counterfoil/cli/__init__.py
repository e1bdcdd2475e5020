"""The command line: every command, and where it stands."""

from functools import partial

import click

from counterfoil.cli import program
from counterfoil.cli.program import CommandGroup

#: What these write is about people, so that it is its owner's alone.
_ANNOTATE: dict[str, str | CommandGroup] = {
    "forms": "listings:forms listings:show_entries",
    "create": "jobs.annotate_create:create_campaign",
    "simulate": "jobs.annotate_simulate:annotate_simulate",
    "status": "jobs.annotate_campaign:annotate_status tables:show_status",
    "agreement": "jobs.annotate_judgements:annotate_agreement",
    "review": "jobs.annotate_campaign:annotate_review tables:show_lines",
    "approve": "jobs.annotate_campaign:annotate_approve tables:show_lines",
    "reject": "jobs.annotate_campaign:annotate_reject tables:show_lines",
    "adjudicate": "jobs.annotate_campaign:annotate_adjudicate tables:show_lines",
    "withdraw": "jobs.annotate_campaign:annotate_withdraw tables:show_lines",
    "readmit": "jobs.annotate_campaign:annotate_readmit tables:show_lines",
    "delete-after": "jobs.annotate_campaign:annotate_delete tables:show_lines",
    "export": "jobs.annotate_judgements:annotate_export",
    "import": "jobs.annotate_judgements:import_judgements tables:show_facts",
    "serve": "jobs.annotate_campaign:serve_campaign tables:show_lines",
    "links": "jobs.annotate_campaign:campaign_links tables:show_lines",
    "preferences": "jobs.preferences:preferences",
    "prolific": CommandGroup(
        {
            name: f"jobs.annotate_prolific:{name} tables:show_facts"
            for name in ("status", "approve", "reject")
        },
        help="Prolific: the submissions of a campaign's study, and their review.",
        epilog="Start with: counterfoil annotate prolific status campaign/",
    ),
}
#: Every command, in the order of `--help`, and where it stands (`CommandGroup`).
COMMANDS: dict[str, str | CommandGroup] = {
    "evaluate": "jobs.evaluate:evaluate_all tables:show_run",
    "compare": "jobs.compare:compare tables:show_comparison",
    "compare rankings": "jobs.compare:rank",
    "compare lengths": "jobs.compare:lengths",
    "audit": "jobs.audit:audit",
    "explain": "jobs.explain:explain",
    "captions": CommandGroup(
        {"score": "jobs.captions:score_captions", "systems": "jobs.caption_systems:compare_systems"},
        help="Score captions of images or videos by caption metrics, with or without references.",
        epilog="Example: "
        "counterfoil captions score --metrics bleu,cider --candidates c.json --references r.json",
    ),
    "benchmarks": CommandGroup(
        {
            "list": "listings:benchmarks listings:show_entries",
            "show": "listings:show_benchmark listings:show_entries",
            "fetch": "benchmarks:fetch",
            "save": "benchmarks:save",
            "publish": "jobs.publish:publish",
        },
        help="List, fetch, save and publish benchmarks.",
        epilog="Example: counterfoil benchmarks fetch sugarcrepe",
    ),
    "build": "build:app",
    "pool": "jobs.pool:pool",
    "pool rounds": "jobs.pool_rounds:pool_rounds",
    "pool bias": "jobs.bias:bias",
    "annotate": CommandGroup(
        _ANNOTATE,
        help="Let people judge images and captions in the browser: blind, and several per item.",
        epilog="Start with: counterfoil annotate forms",
        private=True,
    ),
    "train": "jobs.training:train_model",
    "train mix": "jobs.training:mix",
    "world": CommandGroup(
        {"build": "jobs.world:build_world tables:show_drawn"},
        help="Build benchmarks and training sets of a small drawn world in which everything is known.",
        epilog="Example: counterfoil world build quads --out world",
    ),
    "demo": "jobs.tour:demo tables:show_demo",
    "list": CommandGroup(
        {
            name: f"listings:{name} listings:show_entries"
            for name in ("benchmarks", "models", "metrics", "measures", "recipes")
        },
        help="List benchmarks, kinds of model, caption metrics, measures and training recipes.",
        epilog="Example: counterfoil list benchmarks",
    ),
    "cache": CommandGroup(
        {"list": "cache:list_ listings:show_entries", "limit": "cache:limit", "clear": "cache:clear"},
        help="List cached work, limit its size, or clear it.",
        epilog="Example: counterfoil cache limit 5GB",
    ),
    "reproduce": "jobs.reproduce:reproduce tables:show_ledger",
}

app = CommandGroup(
    COMMANDS,
    name="counterfoil",
    help="Do these images and captions belong together, and how sure can we be of the answer?",
    epilog="Start with: counterfoil demo --files first",
    context_settings={"help_option_names": ["--help", "-h"]},
    params=[
        click.Option([f"--{name}"], is_flag=True, is_eager=True, callback=program.print_and_leave, help=text)
        for name, text in (
            ("version", "Print the version and leave."),
            # `program.run` takes it from wherever it stands.
            ("debug", "Print the traceback of an error; also after the command."),
        )
    ],
)

main = partial(program.run, app)
