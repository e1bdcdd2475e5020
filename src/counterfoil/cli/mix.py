"""`counterfoil mix`: weights between two networks, measured on both tasks, and kept if wanted."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.table import Table

    from counterfoil.scorers.networks import Backbone
    from counterfoil.train.guard import Mixture

EPILOG = """Examples:

  counterfoil mix open-clip:ViT-B-32-quickgelu/openai ckpt/ --task bivlc --held-out sugarcrepe

  counterfoil mix ckpt/pretrained ckpt/trohn-img --task world-quads --held-out world-gallery --points 6

  counterfoil mix ckpt/pretrained ckpt/trohn-img --alpha 0.5 --out ckpt/mixed"""

#: What both ends may be.
_ALLOWED = "a checkpoint's folder, open-clip:ARCH/WEIGHTS, hf:NAME"


def command(
    start: Annotated[str, typer.Argument(help="Where training began: a checkpoint's folder or KIND:WHAT.")],
    tuned: Annotated[Path, typer.Argument(help="What came of it: a checkpoint's folder.")],
    task: Annotated[str | None, typer.Option(help="Benchmark of what was trained for.")] = None,
    held_out: Annotated[str | None, typer.Option(help="Benchmark of what should not be forgotten.")] = None,
    points: Annotated[int, typer.Option(min=2, max=101, help="Mixtures from start to end.")] = 11,
    alpha: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Keep this mixture: 0 is the start, 1 the end.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the checkpoint to keep it in.")] = None,
    json: Annotated[
        str | None, typer.Option(metavar="PATH|-", help="Write the machine-readable result here.")
    ] = None,
) -> None:
    """Mix the weights of a network before and after training (WiSE-FT): often both tasks are kept.

    With --task and --held-out both are measured at mixtures from the start to the end: of quads group, of
    choices accuracy, of galleries the mean of both directions of the main measure. With --alpha and --out
    one mixture is written as a checkpoint.
    """
    from counterfoil.cli import terminal
    from counterfoil.cli.networks import network
    from counterfoil.errors import InputError

    if (task is None) != (held_out is None) or (alpha is None) != (out is None):
        raise InputError("options come in pairs", allowed="--task with --held-out, --alpha with --out")
    if task is None and alpha is None:
        raise InputError(
            "nothing to do", hint="measure with --task and --held-out, keep with --alpha and --out"
        )
    terminal.check_targets(json, folder=out)
    ends = network(start, allowed=_ALLOWED), network(str(tuned), allowed=_ALLOWED)
    measured: Sequence[Mixture] = ()
    if task is not None and held_out is not None:
        measured = _measured(ends, task, held_out, points)
        console = terminal.out()
        console.print(_table(measured, task, held_out))
    if alpha is not None and out is not None:
        _keep(ends, start, tuned, alpha, out)
        terminal.note(f"wrote the mixture at {alpha:g}: {out}")
    if json is not None:
        terminal.write_result(
            json, {"start": start, "tuned": str(tuned), "mixtures": [each._asdict() for each in measured]}
        )


def _measured(
    ends: "tuple[Backbone, Backbone]", task: str, held_out: str, points: int
) -> "Sequence[Mixture]":
    import numpy as np

    from counterfoil import catalog
    from counterfoil.cli import terminal
    from counterfoil.train.guard import Guard, sweep

    guards = [Guard(catalog.benchmark(name), name=name) for name in (task, held_out)]
    with terminal.progress() as report:
        done = iter(range(1, 2 * points + 1))

        def asked(guard: Guard, backbone: "Backbone") -> float:
            value = guard.measure(backbone)
            report("measuring mixtures", next(done), 2 * points)
            return value

        return sweep(
            ends[1],
            ends[0].network.state_dict(),
            ends[1].network.state_dict(),
            task=lambda backbone: asked(guards[0], backbone),
            held_out=lambda backbone: asked(guards[1], backbone),
            alphas=np.linspace(0, 1, points).round(4).tolist(),
        )


def _keep(ends: "tuple[Backbone, Backbone]", start: str, tuned: Path, alpha: float, out: Path) -> None:
    from counterfoil.scorers import trained
    from counterfoil.train.guard import interpolate

    before, after = (each.network.state_dict() for each in ends)
    ends[1].network.load_state_dict(interpolate(before, after, alpha))
    facts: dict[str, Any] = {"mixture": {"start": start, "tuned": str(tuned), "alpha": alpha}}
    trained.save(out, ends[1], facts)


def _table(measured: "Sequence[Mixture]", task: str, held_out: str) -> "Table":
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="dim")
    for head in ("alpha", task, held_out, "mean"):
        table.add_column(head, justify="right", no_wrap=True)
    means = [(each.task + each.held_out) / 2 for each in measured]
    for each, mean in zip(measured, means, strict=True):
        cells = [f"{100 * value:.1f}" for value in (each.task, each.held_out, mean)]
        best = mean == max(means)
        table.add_row(f"{each.alpha:g}", *cells, style="bold" if best else "")
    return table
