"""The study of the small world: built, trained on, measured in both directions, and reported."""

import json
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter, process_time
from typing import TYPE_CHECKING, Annotated, Any, Unpack

import pyarrow as pa

from counterfoil.benchmarks.answers import command
from counterfoil.claims import claimed
from counterfoil.errors import MissingExtraError
from counterfoil.inputs.options import with_default
from counterfoil.jobs.arguments import SEED, Reporting, feedback_of
from counterfoil.jobs.compare import RunComparison
from counterfoil.jobs.job import job
from counterfoil.jobs.results import Tabular, declared
from counterfoil.report.tables import Table
from counterfoil.store import check_writable

if TYPE_CHECKING:
    from counterfoil.evaluation.findings import Finding
    from counterfoil.studies.demo import Study


FIRST_SEED = with_default(SEED, 0, help="The first seed of the networks.", panel="")


@dataclass(frozen=True, eq=False, repr=False)
class StudyReport(Tabular):
    """The results of a study: its findings, the networks' runs, and the folder of its report."""

    study: "Study"
    #: The page; networks, runs and all numbers (findings.json) lie beside it.
    path: Path
    #: Duration of the study by the clock, and of this process, in seconds.
    seconds: float
    processor: float

    rows_by = declared(
        finding="one per claim: `claim`, `verdict` (holds, does not hold, undecided) and the `sentence` that "
        "says why",
        measure="those of the runs, as EvaluationRun has them",
    )

    @property
    def comparison(self) -> RunComparison:
        """The runs of the first seed's networks, side by side on each benchmark."""
        return RunComparison(self.study.comparisons)

    @property
    def findings(self) -> "list[Finding]":
        """The claims of the study and of its captions, with their verdicts."""
        return [*self.study.findings, *self.study.captions.findings]

    def _rows(self, by: str) -> pa.Table | list[Any]:
        return self.comparison.to_arrow(by="measure") if by == "measure" else self.findings

    @property
    def tables(self) -> list[Table]:
        """The main measures of each benchmark, and the differences."""
        return self.comparison.tables

    @property
    def notes(self) -> list[str]:
        """Each claim and its verdict."""
        return [
            f"{finding.claim} {finding.verdict.capitalize()} in this run. {finding.sentence}"
            for finding in self.findings
        ]

    def to_json(self) -> dict[str, Any]:
        from counterfoil.studies.plan import NUMBERS

        numbers: dict[str, Any] = json.loads((self.path.parent / NUMBERS).read_text(encoding="utf-8"))
        return numbers

    def plot(self, *, benchmark: str | None = None) -> Any:
        """A matplotlib figure of the main measures on a benchmark, by default the first."""
        return self.comparison.plot(benchmark=benchmark or self.study.comparisons[0].benchmark)


@job()
def study(
    out: str | Path, *, seed: Annotated[int, FIRST_SEED] = 0, **reporting: Unpack[Reporting]
) -> StudyReport:
    """The study of `counterfoil demo --full`: four models trained on a drawn world, measured, and what held.

    Minutes of work, of which every stage shows its progress. A study that was stopped goes on where it was.
    Raises `MissingExtraError` without the extras `train` and `report`,
    `InputError` for a folder that holds something else or that another study writes to.

    Arguments:
        out: The folder of networks, runs and the report.
    """
    feedback, worked = feedback_of(reporting), process_time()
    began, out = perf_counter(), Path(out)
    check_writable(out, folder=True)
    from counterfoil.report.figure_style import check

    check()
    for library in ("torch", "lightning_fabric", "safetensors"):
        try:
            __import__(library)
        except ModuleNotFoundError:
            raise MissingExtraError(library, "train") from None
    from counterfoil.studies import demo, plan

    chosen = replace(plan.SHORT, seed=seed)
    with claimed(out, "demo", plan.FILES):
        with feedback.progress() as report:
            # The engine and the evaluation say all the rest of how a run came about.
            facts = {"command": command()}
            small_world = demo.study(chosen, out, facts=lambda *_: facts, progress=report, note=feedback.note)
        with feedback.busy("writing the report"):
            path = demo.write(small_world, out, seconds=perf_counter() - began)
    return StudyReport(small_world, path, perf_counter() - began, process_time() - worked)
