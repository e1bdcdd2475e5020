"""`counterfoil mix`: weights between two networks, measured on both tasks, and kept if wanted."""

from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from counterfoil.cli import options
from counterfoil.cli.options import Available, Json, Overwrite

if TYPE_CHECKING:
    from collections.abc import Sequence

    from counterfoil.benchmarks.benchmark import Benchmark
    from counterfoil.evaluation.result import Estimate
    from counterfoil.models.networks import Backbone
    from counterfoil.report.tables import Table
    from counterfoil.train.validation import Mixture

EPILOG = """Examples:
  counterfoil mix open-clip:ViT-B-32-quickgelu/openai ckpt/ --task bivlc --held-out winoground
  counterfoil mix hf:./my-clip ckpt/ --task bivlc --held-out sugarcrepe --images sugarcrepe=val2017/
  counterfoil mix ckpt/pretrained ckpt/trohn-img --task world-quads --held-out world-gallery --points 6
  counterfoil mix ckpt/pretrained ckpt/trohn-img --alpha 0.5 --out ckpt/mixed"""

#: What both ends may be.
_ALLOWED = "a checkpoint's folder, open-clip:ARCH/WEIGHTS, hf:NAME"


def command(
    start: Annotated[str, typer.Argument(help="Where training began: a checkpoint's folder or KIND:WHAT.")],
    tuned: Annotated[Path, typer.Argument(help="What came of it: a checkpoint's folder.")],
    task: Annotated[
        str | None,
        typer.Option(help="Benchmark of what was trained for.", autocompletion=options.complete_benchmarks),
    ] = None,
    held_out: Annotated[
        str | None,
        typer.Option(
            help="Benchmark of what should not be forgotten.", autocompletion=options.complete_benchmarks
        ),
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]PATH",
            help="Where the data of a benchmark lie, as in 'evaluate'; may be repeated.",
        ),
    ] = None,
    images: Annotated[
        list[str] | None,
        typer.Option(metavar="[NAME=]FOLDER", help="Folder of the images of a benchmark; may be repeated."),
    ] = None,
    available: Available = False,
    points: Annotated[int, typer.Option(min=2, max=101, help="Mixtures from start to end.")] = 11,
    alpha: Annotated[
        float | None, typer.Option(min=0.0, max=1.0, help="Keep this mixture: 0 is the start, 1 the end.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the checkpoint to keep it in.")] = None,
    json: Json = None,
    overwrite: Overwrite = False,
) -> None:
    """Mix the weights of a network before and after training (WiSE-FT): often both tasks are kept.

    With --task and --held-out both are measured at mixtures from the start to the end: of quads group, of
    choices accuracy, of galleries the mean of both directions of the main measure. With --alpha and --out
    one mixture is written as a checkpoint.
    """
    from counterfoil import terminal
    from counterfoil.cli import paths
    from counterfoil.cli.tables import show
    from counterfoil.errors import InputError
    from counterfoil.jobs.training_inputs import network
    from counterfoil.models import checkpoint
    from counterfoil.outputs import Folder

    if (task is None) != (held_out is None) or (alpha is None) != (out is None):
        raise InputError("options come in pairs", allowed="--task with --held-out, --alpha with --out")
    if task is None and alpha is None:
        raise InputError(
            "nothing to do", hint="measure with --task and --held-out, keep with --alpha and --out"
        )
    paths.check(json=json, folders=[] if out is None else [Folder(out, checkpoint.FILES)])
    names = [name for name in (task, held_out) if name is not None]
    benchmarks = _benchmarks(names, data or (), images or (), available=available)
    ends = network(start, allowed=_ALLOWED), network(str(tuned), allowed=_ALLOWED)
    measured: Sequence[Mixture] = ()
    if task is not None and held_out is not None:
        measured = _measured(ends, benchmarks, points)
        show(terminal.out(), [_table(measured, task, held_out)])
    if alpha is not None and out is not None:
        _keep(ends, start, tuned, alpha, out)
        terminal.note(f"wrote the mixture at {alpha:g}: {out}")
    if json is not None:
        terminal.write_result(
            json,
            {
                "start": start,
                "tuned": str(tuned),
                "mixtures": [
                    {
                        "alpha": mixture.alpha,
                        "task": mixture.task.value,
                        "held_out": mixture.held_out.value,
                        "intervals": {
                            "task": [mixture.task.low, mixture.task.high],
                            "held_out": [mixture.held_out.low, mixture.held_out.high],
                            "mean": list(_mean(mixture)[1:]),
                        },
                    }
                    for mixture in measured
                ],
            },
        )


def _benchmarks(
    names: "Sequence[str]", data: "Sequence[str]", images: "Sequence[str]", *, available: bool
) -> "list[Benchmark]":
    """The benchmarks, read before any network is loaded."""
    from counterfoil import catalog, terminal
    from counterfoil.benchmarks.data_paths import Places
    from counterfoil.cli import paths
    from counterfoil.engine.deduplicate import check_at_hand

    places, pictures = Places.read(data, names), Places.read(images, names, option="--images")
    benchmarks = []
    for name in names:
        where = places.of(name, many=len(names) > 1)
        benchmark = catalog.benchmark(name, data=where, images=pictures.images_of(name))
        if available:
            whole, benchmark = len(benchmark), benchmark.available()
            terminal.note(f"{name}: {len(benchmark):,} of {whole:,} questions are at hand")
        check_at_hand(benchmark)
        paths.also_read(benchmark.path)
        benchmarks.append(benchmark)
    return benchmarks


def _measured(
    ends: "tuple[Backbone, Backbone]", benchmarks: "Sequence[Benchmark]", points: int
) -> "Sequence[Mixture]":
    import numpy as np

    from counterfoil import terminal
    from counterfoil.train.validation import estimate, sweep

    with terminal.progress() as report:
        done = iter(range(1, 2 * points + 1))

        def asked(benchmark: "Benchmark", backbone: "Backbone") -> "Estimate":
            value = estimate(backbone, benchmark)
            report("measuring mixtures", next(done), 2 * points)
            return value

        return sweep(
            ends[1],
            ends[0].network.state_dict(),
            ends[1].network.state_dict(),
            task=lambda backbone: asked(benchmarks[0], backbone),
            held_out=lambda backbone: asked(benchmarks[1], backbone),
            alphas=np.linspace(0, 1, points).round(4).tolist(),
        )


def _keep(ends: "tuple[Backbone, Backbone]", start: str, tuned: Path, alpha: float, out: Path) -> None:
    from counterfoil.models import checkpoint
    from counterfoil.train.validation import interpolate

    before, after = (end.network.state_dict() for end in ends)
    ends[1].network.load_state_dict(interpolate(before, after, alpha))
    facts: dict[str, Any] = {"mixture": {"start": start, "tuned": str(tuned), "alpha": alpha}}
    checkpoint.save(out, ends[1], facts)


def _mean(mixture: "Mixture") -> tuple[float, float, float]:
    """The mean of both tasks with its interval, for two tasks that share no question.

    Source: Zou and Donner, Construction of confidence limits about effect measures, 2008 (the square-and-add
    limits of a sum).
    """
    value = (mixture.task.value + mixture.held_out.value) / 2
    below = hypot(mixture.task.value - mixture.task.low, mixture.held_out.value - mixture.held_out.low) / 2
    above = hypot(mixture.task.high - mixture.task.value, mixture.held_out.high - mixture.held_out.value) / 2
    return value, value - below, value + above


def _table(measured: "Sequence[Mixture]", task: str, held_out: str) -> "Table":
    """A row per mixture, every value with its interval; the best mean has rank 1."""
    from counterfoil.report.tables import Cell, Column, Row, Table

    best = max(_mean(mixture)[0] for mixture in measured)
    rows = []
    for mixture in measured:
        ends = [(e.value, e.low, e.high) for e in (mixture.task, mixture.held_out)]
        cells = (Cell(*of, rank=int(_mean(mixture)[0] == best)) for of in (*ends, _mean(mixture)))
        rows.append(Row(f"{mixture.alpha:g}", tuple(cells)))
    columns = tuple(Column(name) for name in (Path(task).name, Path(held_out).name, "mean"))
    return Table("Mixtures, per cent with 95 % intervals", columns, tuple(rows), "alpha")
