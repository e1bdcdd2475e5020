"""Networks measured on the benchmarks of a study, as runs like any others."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.data.benchmark import Benchmark
from counterfoil.engine.progress import Progress, silent
from counterfoil.engine.run import run
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import Run, save_run
from counterfoil.scorers.base import Options
from counterfoil.studies.plan import Plan
from counterfoil.world.galleries import gallery
from counterfoil.world.sample import choices, quads

#: Draws of the bootstrap behind the intervals of single runs; findings draw more.
_DRAWS = 2_000


@dataclass(frozen=True, eq=False)
class Bench:
    """The benchmarks of a study, and the folder in which its runs are kept as RUNS/MODEL-SEED/BENCHMARK."""

    benchmarks: tuple[Benchmark, ...]
    runs: Path
    #: How a run came about, from its benchmark and its scorer: what the manifest of every run says.
    facts: Callable[[Benchmark, Any], Mapping[str, Any]]
    progress: Progress = silent

    def measure(self, name: str, checkpoint: Path, *, forms: tuple[str, ...] = ()) -> list[Run]:
        """The runs of one checkpoint on the benchmarks, or on those of the `forms` named."""
        from counterfoil.scorers import trained

        scorer = trained.load(str(checkpoint), Options(device="cpu"))
        made = []
        for benchmark in self.benchmarks:
            if forms and benchmark.questions.form not in forms:
                continue
            answers = run(benchmark, scorer, batch_size=256, progress=self.progress)
            facts = dict(self.facts(benchmark, scorer))
            said: dict[str, Any] = {
                key: facts[key] for key in ("benchmark", "scorer", "versions") if key in facts
            }
            result = evaluate(benchmark, answers, scorer=name, draws=_DRAWS, provenance=said)
            folder = self.runs / checkpoint.name / benchmark.name
            made.append(save_run(folder, benchmark, answers, result, facts))
        return made


def world(plan: Plan) -> tuple[Benchmark, ...]:
    """Quads in both styles, choices and a gallery, at the size that the networks see."""
    return (
        quads(plan.questions, size=plan.size, styles=("natural", "synthetic")),
        choices(plan.questions, size=plan.size),
        gallery(plan.images, size=plan.size),
    )
