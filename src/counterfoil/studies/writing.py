"""A study as files: the page that opens with what held, beside it every question, and the numbers as JSON."""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from counterfoil.report.page import page as questions_page
from counterfoil.report.study_page import page
from counterfoil.store import write_json, write_text
from counterfoil.studies.demo import Study

REPORT, QUESTIONS, NUMBERS = "report.html", "questions.html", "findings.json"


def write(study: Study, out: Path, *, seconds: float) -> Path:
    """Write the report of a study into `out`; returns its path. `seconds` is what all of it took."""
    plan = study.plan
    write_text(
        out / QUESTIONS,
        questions_page(study.comparisons, title="The small world, question by question"),
    )
    facts = {
        "Learned from": f"{plan.loose:,} scenes with loose captions, then {plan.contrasts:,} contrasts",
        "Trained for": f"{plan.first_steps:,} steps, then {plan.steps:,} steps each, "
        f"{plan.batch_size} pictures at a time",
        "Pictures": f"{plan.size} x {plan.size} pixels for the networks",
        "Seeds": ", ".join(map(str, plan.seeds)),
        "Time": "; ".join(f"{what} {spent:.0f} s" for what, spent in study.seconds.items())
        + f"; {seconds:.0f} s in all",
    }
    write_text(
        out / REPORT,
        page(
            study.findings,
            order=study.order,
            comparisons=study.comparisons,
            trained=study.trained,
            sweeps=study.sweeps,
            facts=facts,
            browse=QUESTIONS,
        ),
    )
    write_json(out / NUMBERS, _numbers(study, seconds))
    return out / REPORT


def _numbers(study: Study, seconds: float) -> dict[str, Any]:
    return {
        "plan": study.plan.to_json(),
        "findings": [asdict(each) for each in study.findings],
        "order": None if study.order is None else asdict(study.order),
        "studies": [asdict(each) for each in study.sweeps],
        "seconds": {**study.seconds, "all": seconds},
    }
