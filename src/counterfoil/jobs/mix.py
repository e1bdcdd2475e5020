"""Mixtures of the weights of a network before and after training, measured on two tasks, and one kept."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from math import hypot
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.deduplicate import check_at_hand
from counterfoil.errors import InputError
from counterfoil.evaluation.result import Estimate
from counterfoil.inputs.options import with_default
from counterfoil.jobs.arguments import AVAILABLE, BENCHMARK, Reporting, Sources, feedback_of
from counterfoil.jobs.evaluation_inputs import BenchmarkSources, at_hand
from counterfoil.jobs.job import job, option
from counterfoil.jobs.results import Tabular, declared
from counterfoil.jobs.training import network
from counterfoil.models import checkpoint
from counterfoil.outputs import Folder, guarded
from counterfoil.report.tables import Cell, Column, Row, Table

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone
    from counterfoil.train.validation import Mixture

#: What both ends may be.
_ALLOWED = "a checkpoint's folder, open-clip:ARCH/WEIGHTS, hf:NAME"


class MixRows(Sources, Reporting, total=False):
    """Where the benchmarks lie, and how the job says what it does."""


@dataclass(frozen=True, eq=False, repr=False)
class Mixtures(Tabular):
    """Mixtures of two networks, each measured on both tasks; none where only one was written."""

    start: str
    tuned: str
    #: The names of the benchmarks of both tasks.
    tasks: tuple[str, ...] = ()
    measured: "Sequence[Mixture]" = ()

    rows_by = declared(
        mixture="one per mixture: `alpha: float` (0 is the start, 1 the end), and of `task: interval`, "
        "`held_out: interval` and their `mean: interval` the value in [0, 1]",
    )

    def _rows(self, by: str) -> list[Any]:
        return [({"alpha": mixture.alpha}, _values(mixture)) for mixture in self.measured]

    @property
    def tables(self) -> list[Table]:
        """A row per mixture, every value with its interval; the best mean has rank 1."""
        if not self.measured:
            return []
        best = max(_values(mixture)["mean"][0] for mixture in self.measured)
        rows = []
        for mixture in self.measured:
            values = _values(mixture)
            cells = (Cell(*of, rank=int(values["mean"][0] == best)) for of in values.values())
            rows.append(Row(f"{mixture.alpha:g}", tuple(cells)))
        columns = tuple(Column(name) for name in (*(Path(task).name for task in self.tasks), "mean"))
        return [Table("Mixtures, per cent with 95 % intervals", columns, tuple(rows), "alpha")]

    def to_json(self) -> dict[str, Any]:
        mixtures = [
            {
                "alpha": mixture.alpha,
                "task": mixture.task.value,
                "held_out": mixture.held_out.value,
                "intervals": {name: [low, high] for name, (_, low, high) in _values(mixture).items()},
            }
            for mixture in self.measured
        ]
        return {"start": self.start, "tuned": self.tuned, "mixtures": mixtures}


@job(
    outputs="json",
    examples="""Examples:
  counterfoil train mix open-clip:ViT-B-32-quickgelu/openai ckpt/ --task bivlc --held-out winoground
  counterfoil train mix hf:./my-clip ckpt/ --task bivlc --held-out sugarcrepe --images sugarcrepe=val2017/
  counterfoil train mix ckpt/pretrained ckpt/trohn-img --task world-quads --held-out world-gallery --points 6
  counterfoil train mix ckpt/pretrained ckpt/trohn-img --alpha 0.5 --out ckpt/mixed""",
)
def mix(
    start: str,
    tuned: str,
    *,
    task: Annotated[
        str | None, with_default(BENCHMARK, None, help="Benchmark of what was trained for.")
    ] = None,
    held_out: Annotated[
        str | None, with_default(BENCHMARK, None, help="Benchmark of what should not be forgotten.")
    ] = None,
    available: Annotated[bool, AVAILABLE] = False,
    points: Annotated[int, option(low=2, high=101)] = 11,
    alpha: Annotated[float | None, option(low=0, high=1)] = None,
    out: Path | None = None,
    overwrite: bool = False,
    **options: Unpack[MixRows],
) -> Mixtures:
    """Mix the weights of a network before and after training (WiSE-FT): often both tasks are kept.

    With --task and --held-out both are measured at mixtures from the start to the end: of quads group, of
    choices accuracy, of galleries the mean of both directions of the main measure. With --alpha and --out
    one mixture is written as a checkpoint.

    Raises `InputError` where one of a pair of arguments is missing, and what reading them raises.

    Arguments:
        start: Where training began: a checkpoint's folder or KIND:WHAT.
        tuned: What came of it: a checkpoint's folder.
        points: Mixtures from start to end.
        alpha: Keep this mixture: 0 is the start, 1 the end.
        out: Folder of the checkpoint to keep it in.
    """
    if (task is None) != (held_out is None) or (alpha is None) != (out is None):
        raise InputError("options come in pairs", allowed="--task with --held-out, --alpha with --out")
    if task is None and alpha is None:
        raise InputError(
            "nothing to do", hint="measure with --task and --held-out, keep with --alpha and --out"
        )
    feedback = feedback_of(options)
    tasks = tuple(name for name in (task, held_out) if name is not None)
    with guarded("train mix", overwrite=overwrite, reads=(start, tuned, *tasks)) as outputs:
        if out is not None:
            outputs.folder(Folder(out, checkpoint.FILES))
        # They are read before any network is loaded.
        sources = BenchmarkSources.of(tasks, options["data"], options["images"])
        benchmarks = []
        for name in tasks:
            benchmark = sources.read(name, feedback)
            benchmarks.append(at_hand(benchmark, feedback, name=name) if available else benchmark)
            check_at_hand(benchmarks[-1])
        outputs.read(*(benchmark.path for benchmark in benchmarks if benchmark.path is not None))
        ends = network(start, allowed=_ALLOWED), network(tuned, allowed=_ALLOWED)
        measured: Sequence[Mixture] = ()
        if benchmarks:
            with feedback.progress() as progress:
                from counterfoil.train.validation import estimate, sweep

                done = iter(range(1, 2 * points + 1))

                def measured_on(benchmark: Benchmark, backbone: "Backbone") -> Estimate:
                    value = estimate(backbone, benchmark)
                    progress("measuring mixtures", next(done), 2 * points)
                    return value

                measured = sweep(
                    ends[1],
                    *(end.network.state_dict() for end in ends),
                    task=partial(measured_on, benchmarks[0]),
                    held_out=partial(measured_on, benchmarks[1]),
                    alphas=np.linspace(0, 1, points).round(4).tolist(),
                )
        if alpha is not None and out is not None:
            from counterfoil.train.validation import interpolate

            before, after = (end.network.state_dict() for end in ends)
            ends[1].network.load_state_dict(interpolate(before, after, alpha))
            checkpoint.save(out, ends[1], {"mixture": {"start": start, "tuned": tuned, "alpha": alpha}})
            feedback.note(f"wrote the mixture at {alpha:g}: {out}")
    return Mixtures(start, tuned, tasks, measured)


def _values(mixture: "Mixture") -> dict[str, tuple[float, float, float]]:
    """Both tasks and their mean, each with its interval, for two tasks that share no question.

    Square-and-add limits: Zou and Donner, Construction of confidence limits about effect measures, 2008.
    """
    (value, low, high), (other, other_low, other_high) = ends = [
        (estimate.value, estimate.low, estimate.high) for estimate in (mixture.task, mixture.held_out)
    ]
    mean = (value + other) / 2
    below = hypot(value - low, other - other_low) / 2
    above = hypot(high - value, other_high - other) / 2
    return {"task": ends[0], "held_out": ends[1], "mean": (mean, mean - below, mean + above)}
