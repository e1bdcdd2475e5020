"""The study of the demo: four trainings and two detectors on the small world, and what they show.

It repeats what BiVLC found, on networks from scratch and a world in which every answer is known. Whether a
finding holds is decided by the runs; nothing here depends on how it comes out.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

from counterfoil.data.benchmark import Benchmark
from counterfoil.engine.progress import Note, Progress, silent, warn
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.evaluation.run import Run
from counterfoil.evaluation.studies.findings import Finding, Ordering, confirmed, findings, ordering
from counterfoil.evaluation.studies.sweeps import Sweep
from counterfoil.report.study.page import TrainingSummary
from counterfoil.studies import ablations, captions, folder
from counterfoil.studies.captions import CaptionStudy
from counterfoil.studies.measuring import ALIKE, CHOICES, QUADS, EvaluationRuns, world
from counterfoil.studies.plan import Pace, Plan
from counterfoil.studies.trainings import TUNED, TrainingRuns, combined
from counterfoil.world.sample import painted

#: Which network each pair of detectors stands on.
DETECTORS = {"detectors": "pretrained", "trohn-img-detectors": "trohn-img"}
#: Which network learns from generated positives on top.
AUGMENTED = "trohn-img"
#: What every model is compared with.
BASELINE = "pretrained"


@dataclass(frozen=True, eq=False)
class Study:
    """What came of it."""

    plan: Plan
    #: BiVLC's findings from the control, then where the second picture is synthetic.
    findings: tuple[Finding, ...]
    order: Ordering | None
    sweeps: tuple[Sweep, ...]
    #: One comparison per benchmark, of the first seed's networks.
    comparisons: tuple[Comparison, ...]
    trained: tuple[TrainingSummary, ...]
    #: What was asked, drawn when it is read, so that pages can show it larger.
    benchmarks: tuple[Benchmark, ...]
    #: Metrics of captions, of the first seed's networks.
    captions: CaptionStudy
    #: What took how many seconds, in order.
    seconds: Mapping[str, float]
    #: Rows that were drawn to learn from.
    rows: int = 0


def study(
    plan: Plan,
    out: Path,
    *,
    facts: Callable[[Benchmark, Any], Mapping[str, Any]],
    progress: Progress = silent,
    note: Note = warn,
    draws: int = 10_000,
) -> Study:
    """Build, train and measure as the plan says; networks and runs are kept in `out`.

    A study that was stopped goes on where it was when it is asked for again with the same plan; what
    another plan left there is removed first (`folder.claim`). `facts` says how a run came about.
    Raises `InputError` for a folder that holds something else, and what building, training and measuring
    raise.
    """
    clock = _Clock(note)
    if begun := folder.claim(out, plan):
        note(f"going on with the study in {out}")
    # What is left of a study that was begun is not known; of a new one, its first steps tell.
    pace = progress if begun else Pace(plan.work, progress, note)
    workshop = TrainingRuns(plan, out / folder.NETWORKS, progress=pace)
    with clock("drawing the world"):
        drawn = world(plan)
        bench = EvaluationRuns(tuple(map(painted, drawn)), out / folder.RUNS, facts, progress)
        rows = len(workshop.loose) + len(workshop.contrasts) + len(workshop.generated)

    runs: dict[str, list[Run]] = {}
    controls: dict[str, list[Run]] = {}
    makings: list[dict[str, TrainingSummary]] = []
    for seed in plan.seeds:
        suffix = f", seed {seed}" if len(plan.seeds) > 1 else ""
        with clock("training", f"trained on loose captions{suffix}"):
            made = {"pretrained": workshop.pretrained(seed)}
        for name in TUNED:
            with clock("training", f"trained {name}{suffix}"):
                made[name] = workshop.tuned(name, seed)
        places = {name: workshop.place(name, seed) for name in made}
        with clock("training", f"trained pac on generated positives{suffix}"):
            made["pac"] = workshop.augmented("pac", seed, on=AUGMENTED)
        makings.append(made)
        with clock("training", f"trained detectors of what is synthetic{suffix}"):
            places |= {name: workshop.detectors(name, seed, on=on) for name, on in DETECTORS.items()}
        with clock("measuring", f"measured {len(places)} models{suffix}"):
            for name, place in places.items():
                only = (QUADS, CHOICES) if name in DETECTORS else ()
                for run in bench.measure(name, place, only=only):
                    kept = controls if run.benchmark.name == ALIKE else runs
                    kept.setdefault(name, []).append(run)

    swept: list[Sweep] = []
    if plan.noise:
        with clock("the study of noise", "studied noise"):
            of_seeds = [run for run in runs["trohn-img"] if run.benchmark.name == QUADS]
            both = zip(plan.seeds, of_seeds, controls["trohn-img"], strict=True)
            clean = [run for seed, *two in both if seed in plan.dialled for run in two]
            swept += ablations.noise(workshop, bench, clean, draws=draws)
    if plan.mining:
        with clock("the study of mining", "studied mining"):
            swept.append(ablations.mining(workshop, bench, draws=draws))
    with clock("caption metrics", "asked caption metrics"):
        looking = {name: workshop.place(name, plan.seeds[0]) for name in captions.NETWORKS}
        metrics = captions.study(plan, looking, out / folder.RUNS, facts=facts, progress=progress)
    with clock("statistics"):
        found = led(runs, controls, draws=draws)
        order = ordering(controls, draws=draws)
        first = [
            run
            for of_models in (runs, controls)
            for each in of_models.values()
            for run in each[: len(each) // len(plan.seeds)]
        ]
        comparisons = compare(first, baseline=BASELINE, draws=2_000)
    return Study(
        plan,
        found,
        order,
        tuple(swept),
        comparisons,
        combined(makings),
        drawn,
        metrics,
        clock.seconds,
        rows,
    )


def led(
    runs: Mapping[str, Sequence[Run]], controls: Mapping[str, Sequence[Run]], *, draws: int
) -> tuple[Finding, ...]:
    """BiVLC's findings from the control, then where the second picture is synthetic, held to the control.

    In the control style says nothing, so what it denies is no finding, however the other quads come out.
    Questions of other forms are the same for both.
    """
    others = {name: [run for run in each if run.benchmark.name != QUADS] for name, each in runs.items()}
    first = findings({name: [*each, *others[name]] for name, each in controls.items()}, draws=draws)
    usual = findings(runs, draws=draws)
    return (*first, *confirmed(usual, first, where="Where the second picture is synthetic", suffix="styles"))


class _Clock:
    """Seconds by what they were spent on; says what was done, and how long it took."""

    def __init__(self, note: Note) -> None:
        self.seconds: dict[str, float] = {}
        self._note = note
        self._running: list[tuple[str, str, float]] = []

    def __call__(self, what: str, said: str = "") -> "_Clock":
        self._running.append((what, said, perf_counter()))
        return self

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        what, said, began = self._running.pop()
        spent = perf_counter() - began
        self.seconds[what] = self.seconds.get(what, 0.0) + spent
        if said and kind is None:
            self._note(f"{said} ({spent:.0f} s)")
