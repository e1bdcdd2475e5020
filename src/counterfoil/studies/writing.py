"""A study as files: the page that opens with what held, beside it every question, and the numbers as JSON."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.scores import Scores
from counterfoil.evaluation.compare import Comparison, compare
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import Run
from counterfoil.report.page import page as questions_page
from counterfoil.report.study.page import page
from counterfoil.store import write_json, write_text
from counterfoil.studies.captions import BROWSED
from counterfoil.studies.demo import BASELINE, Study
from counterfoil.studies.folder import NUMBERS, QUESTIONS, REPORT
from counterfoil.studies.measuring import ALIKE
from counterfoil.world.drawings import sized

#: What the page says before its findings.
_STANDFIRST = (
    "First what holds where both pictures of a question are in one style, so that style says nothing; then "
    "the same where the second picture is synthetic, as in BiVLC, which holds only where the first does."
)
#: Pixels to a side at which the pages show what the networks see smaller: the few pictures of the report, and
#: the many beside the questions.
_SHOWN, _SHOWN_SMALL = 192, 96
#: How many questions of a form can be looked at one by one: a page of all would be too large to open.
_BROWSED = 1_400
#: Draws of the bootstrap on that page.
_DRAWS = 2_000
#: What those may take in bytes. All of them take about 2.6 million.
_BUDGET = 4_000_000


def write(study: Study, out: Path, *, seconds: float) -> Path:
    """Write the report of a study into `out`; returns its path. `seconds` is what all of it took."""
    plan = study.plan
    browsed = [each for each in study.comparisons if each.runs[0].benchmark.name != ALIKE]
    small = _pictured(_first(browsed), _sized(study.benchmarks, _SHOWN_SMALL))
    small += _pictured(_judged(study), _sized(study.captions.benchmarks, _SHOWN_SMALL))
    title = "The small world, question by question"
    if plan.questions > _BROWSED:
        title += f" (the first {_BROWSED:,} of each form)"
    write_text(out / QUESTIONS, questions_page(small, title=title, budget=_BUDGET))
    facts = {
        "Learned from": f"pretrained {plan.loose:,} scenes with loose captions, "
        f"the others {plan.contrasts:,} contrasts",
        "Trained for": f"{plan.relation_steps + plan.steps:,} steps each, {plan.batch_size} captions at a "
        f"time; of contrasts, relations and swaps alone for the first {plan.relation_steps:,}",
        "Pictures": f"{plan.size} x {plan.size} pixels for the networks, {_SHOWN} x {_SHOWN} on this page",
        "Seeds": ", ".join(map(str, plan.seeds)),
        "Time": "; ".join(f"{what} {spent:.0f} s" for what, spent in study.seconds.items())
        + f"; {seconds:.0f} s in all",
    }
    write_text(
        out / REPORT,
        page(
            study.findings,
            standfirst=_STANDFIRST,
            order=study.order,
            comparisons=_pictured(study.comparisons, _sized(study.benchmarks, _SHOWN)),
            seen=f"{plan.size} x {plan.size}",
            trained=study.trained,
            sweeps=study.sweeps,
            captions=study.captions.comparisons,
            claims=study.captions.findings,
            facts=facts,
            browse=QUESTIONS,
        ),
    )
    write_json(out / NUMBERS, _numbers(study, seconds))
    return out / REPORT


def _sized(benchmarks: Sequence[Benchmark], size: int) -> list[Benchmark]:
    return [sized(each, size) for each in benchmarks]


def _pictured(comparisons: Sequence[Comparison], drawn: Sequence[Benchmark]) -> tuple[Comparison, ...]:
    """The same runs over the same questions, with the pictures of `drawn`."""
    by_name = {each.name: each for each in drawn}
    return tuple(
        replace(each, runs=tuple(run.with_benchmark(by_name[run.benchmark.name]) for run in each.runs))
        for each in comparisons
    )


def _judged(study: Study) -> tuple[Comparison, ...]:
    """What caption metrics said, of those that can be looked at one by one."""
    return tuple(
        replace(each, runs=tuple(run for run in each.runs if run.name in BROWSED))
        for each in study.captions.comparisons
    )


def _first(comparisons: Sequence[Comparison]) -> tuple[Comparison, ...]:
    """The runs over the first questions of each form, compared anew; a gallery, which is small, is whole."""
    return compare(
        [_shortened(run) for each in comparisons for run in each.runs], baseline=BASELINE, draws=_DRAWS
    )


def _shortened(run: Run) -> Run:
    """The run as if it had been asked its first questions alone."""
    benchmark, answers = run.benchmark, run.answers
    if answers.has_rankings or len(benchmark) <= _BROWSED:
        return run
    shorter = benchmark.select(np.arange(_BROWSED))
    if answers.has_scores:
        answers = Scores(answers.scores[:_BROWSED], made=answers.made)
    else:
        right = {name: values[:_BROWSED] for name, values in answers.outcomes.right.items()}
        answers = replace(answers.outcomes, right=right)
    result = evaluate(shorter, answers, scorer=run.name, draws=_DRAWS, provenance=dict(run.result.provenance))
    items = {name: values[:_BROWSED] for name, values in run.items.items()}
    return replace(run, benchmark=shorter, answers=answers, items=items, result=result)


def _numbers(study: Study, seconds: float) -> dict[str, Any]:
    return {
        "plan": study.plan.to_json(),
        "findings": [asdict(each) for each in study.findings],
        "order": None if study.order is None else asdict(study.order),
        "captions": {
            "claims": [asdict(each) for each in study.captions.findings],
            "measures": {
                each.benchmark: {
                    run.name: {name: asdict(e) for name, e in run.result.measures.items()}
                    for run in each.runs
                }
                for each in study.captions.comparisons
            },
        },
        "studies": [asdict(each) for each in study.sweeps],
        "seconds": {**study.seconds, "all": seconds},
    }
