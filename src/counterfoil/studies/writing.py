"""A study as files: the page that opens with what held, beside it every question, and the numbers as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.galleries import Gallery
from counterfoil.evaluation.compare import Comparison
from counterfoil.report.page import page as questions_page
from counterfoil.report.study_page import page
from counterfoil.store import write_json, write_text
from counterfoil.studies.demo import Study
from counterfoil.studies.folder import NUMBERS, QUESTIONS, REPORT
from counterfoil.studies.measuring import world
from counterfoil.world.drawings import sized

#: Pixels to a side at which the pages show what the networks see smaller: the few pictures of the report, and
#: the many beside the questions, of which there are those of so many questions of a form.
_SHOWN, _SHOWN_SMALL, _PICTURED = 192, 96, 1_400
#: What those may take in bytes. All of them take about 2.6 million.
_BUDGET = 4_000_000


def write(study: Study, out: Path, *, seconds: float) -> Path:
    """Write the report of a study into `out`; returns its path. `seconds` is what all of it took."""
    plan = study.plan
    drawn = world(plan, size=_SHOWN, lazy=True)
    small = _pictured(study.comparisons, [_some(sized(each, _SHOWN_SMALL)) for each in drawn])
    write_text(
        out / QUESTIONS,
        questions_page(small, title="The small world, question by question", budget=_BUDGET),
    )
    facts = {
        "Learned from": f"{plan.loose:,} scenes with loose captions, then {plan.contrasts:,} contrasts",
        "Trained for": f"{plan.first_steps:,} steps, then {plan.steps:,} steps each, "
        f"{plan.batch_size} pictures at a time",
        "Pictures": f"{plan.size} x {plan.size} pixels for the networks, {_SHOWN} x {_SHOWN} on this page",
        "Seeds": ", ".join(map(str, plan.seeds)),
        "Time": "; ".join(f"{what} {spent:.0f} s" for what, spent in study.seconds.items())
        + f"; {seconds:.0f} s in all",
    }
    write_text(
        out / REPORT,
        page(
            study.findings,
            order=study.order,
            comparisons=_pictured(study.comparisons, drawn),
            seen=f"{plan.size} x {plan.size}",
            trained=study.trained,
            sweeps=study.sweeps,
            facts=facts,
            browse=QUESTIONS,
        ),
    )
    write_json(out / NUMBERS, _numbers(study, seconds))
    return out / REPORT


def _pictured(comparisons: Sequence[Comparison], drawn: Sequence[Benchmark]) -> tuple[Comparison, ...]:
    """The same runs over the same questions, with the pictures of `drawn`."""
    by_name = {each.name: each for each in drawn}
    return tuple(
        replace(each, runs=tuple(run.with_benchmark(by_name[run.benchmark.name]) for run in each.runs))
        for each in comparisons
    )


def _some(benchmark: Benchmark) -> Benchmark:
    """The benchmark with the pictures of its first questions; of a gallery, which is small, with all."""
    if isinstance(benchmark.questions, Gallery) or len(benchmark) <= _PICTURED:
        return benchmark
    _, images = benchmark.paired.pairs()
    shown = set(images[:_PICTURED].reshape(-1).tolist())
    return replace(
        benchmark,
        images=tuple(
            image if at in shown else replace(image, source=None) for at, image in enumerate(benchmark.images)
        ),
    )


def _numbers(study: Study, seconds: float) -> dict[str, Any]:
    return {
        "plan": study.plan.to_json(),
        "findings": [asdict(each) for each in study.findings],
        "order": None if study.order is None else asdict(study.order),
        "studies": [asdict(each) for each in study.sweeps],
        "seconds": {**study.seconds, "all": seconds},
    }
