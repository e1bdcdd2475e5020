"""The study of the demo: four trainings and two detectors on the small world, and what they show.

It repeats what BiVLC found, on networks from scratch and a world in which every answer is known. Whether a
finding holds is decided by the runs; nothing here depends on how it comes out.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.deduplicate import Note, Progress, silent, warn
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.evaluation.findings import Finding, Ordering, confirmed, findings, ordering
from counterfoil.evaluation.run import Run
from counterfoil.report.page import page as questions_page
from counterfoil.report.study_page import TrainingSummary, page
from counterfoil.store import write_json, write_text
from counterfoil.studies import captions
from counterfoil.studies.captions import BROWSED, CaptionStudy
from counterfoil.studies.plan import NETWORKS, NUMBERS, QUESTIONS, REPORT, RUNS, Plan, claim
from counterfoil.studies.runs import (
    ALIKE,
    CHOICES,
    QUADS,
    TUNED,
    EvaluationRuns,
    TrainingRuns,
    world,
)
from counterfoil.world.drawings import sized
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
    #: One comparison per benchmark.
    comparisons: tuple[Comparison, ...]
    trained: tuple[TrainingSummary, ...]
    #: What was asked, drawn when it is read, so that pages can show it larger.
    benchmarks: tuple[Benchmark, ...]
    #: Metrics of captions, which look through the same networks.
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
) -> Study:
    """Build, train and measure as the plan says; networks and runs are kept in `out`.

    A study that was stopped goes on where it was when it is asked for again with the same plan. `facts` says
    how a run came about. Raises `InputError` for a folder that holds something else (`plan.claim`), and what
    building, training and measuring raise.
    """
    # What took how many seconds.
    spent: dict[str, float] = {}

    @contextmanager
    def clock(what: str, message: str = "") -> Iterator[None]:
        began = perf_counter()
        yield
        took = perf_counter() - began
        spent[what] = spent.get(what, 0.0) + took
        if message:
            note(f"{message} ({took:.0f} s)")

    if claim(out, plan):
        note(f"going on with the study in {out}")
    workshop = TrainingRuns(plan, out / NETWORKS, progress=progress)
    with clock("drawing the world"):
        drawn = world(plan)
        bench = EvaluationRuns(tuple(map(painted, drawn)), out / RUNS, facts, progress)
        rows = len(workshop.loose) + len(workshop.contrasts) + len(workshop.generated)

    seed = plan.seed
    with clock("training", "trained on loose captions"):
        trained = {"pretrained": workshop.pretrained(seed)}
    for name in TUNED:
        with clock("training", f"trained {name}"):
            trained[name] = workshop.tuned(name, seed)
    places = {name: workshop.place(name, seed) for name in trained}
    with clock("training", "trained pac on generated positives"):
        trained["pac"] = workshop.augmented("pac", seed, on=AUGMENTED)
    with clock("training", "trained detectors of what is synthetic"):
        places |= {name: workshop.detectors(name, seed, on=on) for name, on in DETECTORS.items()}
    with clock("measuring", f"measured {len(places)} models"):
        measured = [
            run
            for name, place in places.items()
            for run in bench.measure(name, place, only=(QUADS, CHOICES) if name in DETECTORS else ())
        ]

    with clock("caption metrics", "asked caption metrics"):
        looking = {name: workshop.place(name, seed) for name in captions.NETWORKS}
        metrics = captions.study(plan, looking, out / RUNS, facts=facts, progress=progress)
    with clock("statistics"):
        controls = [run for run in measured if run.benchmark.name == ALIKE]
        runs = [run for run in measured if run.benchmark.name != ALIKE]
        findings = led(runs, controls)
        order = ordering(controls)
        comparisons = compare([*runs, *controls], baseline=BASELINE)
    return Study(plan, findings, order, comparisons, tuple(trained.values()), drawn, metrics, spent, rows)


def led(runs: Sequence[Run], controls: Sequence[Run]) -> tuple[Finding, ...]:
    """BiVLC's findings from the control, then where the second picture is synthetic, held to the control.

    In the control style says nothing, so what it denies is no finding, however the other quads come out.
    Questions of other forms are the same for both.
    """
    first = findings([*controls, *(run for run in runs if run.benchmark.name != QUADS)])
    usual = findings(runs)
    return (*first, *confirmed(usual, first, where="Where the second picture is synthetic", suffix="styles"))


#: The introduction of the page.
_STANDFIRST = (
    "Scenes of paper shapes are drawn, and captions say something of them in English, so that it is known "
    "of every caption whether it is true of a picture. Four small networks learn from scratch which captions "
    "and pictures belong together: “pretrained” from loose captions, “coco” from plain pairs, “trohn-text” "
    "from those and from captions in which one thing is wrong, “trohn-img” from the pictures of these wrong "
    "captions as well. Detectors only learn which of two styles a picture, or the caption of one, is in. "
    "All are asked about scenes that none of them saw, in both directions: which caption is true of this "
    "picture, and which picture does this caption describe?\n"
    "First what holds where both pictures of a question are in one style, so that style says nothing; then "
    "the same where the second picture is synthetic, as in BiVLC, which holds only where the first does."
)
#: Pixels to a side at which the pages show what the networks see smaller: the few pictures of the report, and
#: the many beside the questions.
_SHOWN, _SHOWN_SMALL = 192, 96
#: What those may take in bytes. The pictures of a short study take about 2.6 million.
_BUDGET = 4_000_000


def write(study: Study, out: Path, *, seconds: float) -> Path:
    """Write the report of a study into `out`; returns its path. `seconds` is what all of it took."""
    plan = study.plan
    browsed = [comparison for comparison in study.comparisons if comparison.runs[0].benchmark.name != ALIKE]
    small = _pictured(browsed, study.benchmarks, _SHOWN_SMALL)
    small += _pictured(
        tuple(
            replace(comparison, runs=tuple(run for run in comparison.runs if run.name in BROWSED))
            for comparison in study.captions.comparisons
        ),
        study.captions.benchmarks,
        _SHOWN_SMALL,
    )
    title = "The small world, question by question"
    write_text(out / QUESTIONS, questions_page(small, title=title, budget=_BUDGET))
    facts = {
        "Learned from": f"pretrained {plan.loose:,} scenes with loose captions, "
        f"the others {plan.contrasts:,} contrasts",
        "Trained for": f"{plan.relation_steps + plan.steps:,} steps each, {plan.batch_size} captions at a "
        f"time; of contrasts, relations and swaps alone for the first {plan.relation_steps:,}",
        "Pictures": f"{plan.size} x {plan.size} pixels for the networks, {_SHOWN} x {_SHOWN} on this page",
        "Seed": str(plan.seed),
        "Time": "; ".join(f"{what} {spent:.0f} s" for what, spent in study.seconds.items())
        + f"; {seconds:.0f} s in all",
    }
    write_text(
        out / REPORT,
        page(
            study.findings,
            standfirst=_STANDFIRST,
            order=study.order,
            comparisons=_pictured(study.comparisons, study.benchmarks, _SHOWN),
            seen=f"{plan.size} x {plan.size}",
            trained=study.trained,
            captions=study.captions.comparisons,
            claims=study.captions.findings,
            facts=facts,
            browse=QUESTIONS,
        ),
    )
    numbers = {
        "plan": asdict(study.plan),
        "findings": [asdict(finding) for finding in study.findings],
        "order": None if study.order is None else asdict(study.order),
        "captions": {
            "claims": [asdict(claim) for claim in study.captions.findings],
            "measures": {
                comparison.benchmark: {
                    run.name: {name: asdict(e) for name, e in run.result.measures.items()}
                    for run in comparison.runs
                }
                for comparison in study.captions.comparisons
            },
        },
        "seconds": {**study.seconds, "all": seconds},
    }
    write_json(out / NUMBERS, numbers)
    return out / REPORT


def _pictured(
    comparisons: Sequence[Comparison], drawn: Sequence[Benchmark], size: int
) -> tuple[Comparison, ...]:
    """The same runs over the same questions, with the pictures of `drawn`, `size` pixels to a side."""
    by_name = {benchmark.name: sized(benchmark, size) for benchmark in drawn}
    return tuple(
        replace(one, runs=tuple(run.with_benchmark(by_name[run.benchmark.name]) for run in one.runs))
        for one in comparisons
    )
