"""`counterfoil estimate`: how long a command would take, before it is started."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from counterfoil.cli.options import Json, Quiet

if TYPE_CHECKING:
    from counterfoil.tasks.estimate import WorkEstimate

#: What follows the name of another command is that command's.
CONTEXT_SETTINGS = {"allow_interspersed_args": False}

EPILOG = """Examples:

  counterfoil estimate evaluate vqa:Qwen/Qwen3-VL-4B-Instruct bivlc

  counterfoil estimate --machines 64 --price 2.5 evaluate vqa:Qwen/Qwen3-VL-4B-Instruct bivlc

  counterfoil estimate build bivlc --imagine diffusers:stabilityai/sd-turbo

  counterfoil estimate --card h100 --card a100 evaluate open-clip:ViT-B-32-quickgelu/openai coco-5k"""


def command(
    words: Annotated[list[str], typer.Argument(metavar="COMMAND ...", help="The command, with its options.")],
    sample: Annotated[int, typer.Option(min=2, max=10_000, help="Batches of each stage to time.")] = 12,
    machines: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Machines like this one, or ranks of a job.")
    ] = 1,
    price: Annotated[float | None, typer.Option(min=0, help="Price of a machine's hour.")] = None,
    watts: Annotated[float | None, typer.Option(min=0, help="Power of a machine.")] = None,
    carbon: Annotated[float | None, typer.Option(min=0, help="Grams of CO2 per kWh, with --watts.")] = None,
    card: Annotated[
        list[str] | None,
        typer.Option(help="Also the time of the models on a card, such as h100; may be repeated."),
    ] = None,
    share: Annotated[float, typer.Option(min=0.001, max=1, help="Share of a card's peak.")] = 0.4,
    json: Json = None,
    quiet: Quiet = False,
) -> None:
    """Estimate how long a command takes on this machine, without doing all of it.

    COMMAND is one of evaluate, captions, audit, explain and build. Benchmarks are read and models loaded as
    it does that. Of what the cache lacks a sample of each stage is computed, spread evenly over it; the rest
    is made up from that, so that comparing, ranking and intervals are timed at their real size. Of a build
    all steps are run, on as many rows as the sample lets through. No result is written, and no values are
    added to the cache. The interval is that of the sample alone: another load is not in it.
    """
    import tempfile
    import time

    from counterfoil.cli import paths, replay
    from counterfoil.engine.estimating import EstimatingExecutor
    from counterfoil.scorers.chat import sending_nothing
    from counterfoil.tasks.estimate import Costs, WorkEstimate

    costs = Costs(
        machines=machines, price=price, watts=watts, carbon=carbon, cards=tuple(card or ()), share=share
    )
    paths.check(json=json)
    executor, asked = EstimatingExecutor(sample), replay.prepared(words)
    with (
        replay.thrown_away(quiet=quiet) as results,
        sending_nothing(),
        tempfile.TemporaryDirectory(prefix="counterfoil-") as nothing,
    ):
        # Without a cache everything is to be done: an empty one says the same.
        empty = Path(nothing) if asked.params["no_cache"] else None
        asked.params["no_cache"] = False
        # Draws stay, and a build's report: they are part of the time.
        named = {name: asked.params.get(name) for name in ("draws", "html")}
        stay = {name: value for name, value in named.items() if isinstance(value, int)}
        replay.run(asked, lambda it: {**results(it), **stay}, executor=executor, cache=empty)
    rest = max(0.0, time.time() - _started() - executor.spent)
    found = WorkEstimate(" ".join(words), tuple(executor.stages), rest, costs)
    _show(found, json, quiet=quiet)


def _show(found: "WorkEstimate", json: str | None, *, quiet: bool) -> None:
    """Tables, JSON and notes."""
    from counterfoil.cli import terminal
    from counterfoil.cli.tables import show

    show(terminal.beside(json), () if quiet and json == "-" else found.tables)
    if json is not None:
        terminal.write_result(json, found.to_json())
    console = terminal.beside(json)
    for note in found.notes:
        console.print(note, highlight=False)


def _started() -> float:
    """When this process started, in seconds since 1970; where the system does not say, when it was asked."""
    import os
    import time
    from pathlib import Path

    try:
        ticks = float(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
        uptime = float(Path("/proc/uptime").read_text().split()[0])
    except (OSError, IndexError, ValueError):
        return time.time()
    return time.time() - (uptime - ticks / os.sysconf("SC_CLK_TCK"))
