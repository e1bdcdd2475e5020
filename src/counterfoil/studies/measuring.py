"""Networks measured on the benchmarks of a study, as runs like any others."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.scores import Answers
from counterfoil.engine.progress import Progress, silent
from counterfoil.engine.retrieve import rank_galleries
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.run import Run, save_run
from counterfoil.scorers.base import Options, abilities
from counterfoil.studies.plan import Plan
from counterfoil.world.galleries import as_collected, gallery
from counterfoil.world.sample import benchmark as questions_of
from counterfoil.world.sample import choices, contrasts

#: The benchmarks of questions, by name.
QUADS, CHOICES = "world-quads", "world-choices"
#: The control: the same quads with both pictures in one style, so that style carries no information.
ALIKE = "world-quads-alike"

#: Draws of the bootstrap behind the intervals of single runs; findings draw more.
_DRAWS = 2_000


@dataclass(frozen=True, eq=False)
class EvaluationRuns:
    """The benchmarks of a study, and the folder in which its runs are kept as RUNS/MODEL-SEED/BENCHMARK."""

    benchmarks: tuple[Benchmark, ...]
    runs: Path
    #: How a run came about, from its benchmark and its scorer: what the manifest of every run says.
    facts: Callable[[Benchmark, Any], Mapping[str, Any]]
    progress: Progress = silent

    def measure(self, name: str, checkpoint: Path, *, only: Collection[str] = ()) -> list[Run]:
        """The runs of one checkpoint on the benchmarks, or on those that are named.

        A detector of styles is not asked the control, in which there is nothing to detect.
        """
        from counterfoil.scorers import checkpoint as checkpoint_folder

        scorer = checkpoint_folder.load(str(checkpoint), Options(device="cpu"))
        made = []
        for benchmark in self.benchmarks:
            if only and benchmark.name not in only:
                continue
            if benchmark.name == ALIKE and "classifies" in abilities(scorer):
                continue
            given = run(benchmark, scorer, session=self._session)
            made.append(self._keep(name, checkpoint, benchmark, given, scorer))
        return made

    def measure_gallery(self, name: str, checkpoint: Path) -> tuple[Run, Run]:
        """The runs of one checkpoint on the gallery, ranked once: all true pairs right, and the own ones."""
        from counterfoil.scorers import checkpoint as checkpoint_folder

        scorer = checkpoint_folder.load(str(checkpoint), Options(device="cpu"))
        whole = next(each for each in self.benchmarks if each.questions.directed)
        both = (whole, as_collected(whole))
        given = rank_galleries(both, scorer, session=self._session)
        every, own = (
            self._keep(name, checkpoint, benchmark, each, scorer)
            for benchmark, each in zip(both, given, strict=True)
        )
        return every, own

    @property
    def _session(self) -> Session:
        return Session(batch_size=256, progress=self.progress)

    def _keep(self, name: str, checkpoint: Path, benchmark: Benchmark, given: Answers, scorer: Any) -> Run:
        facts = dict(self.facts(benchmark, scorer))
        said: dict[str, Any] = {
            key: facts[key] for key in ("benchmark", "scorer", "versions") if key in facts
        }
        result = evaluate(benchmark, given, scorer=name, draws=_DRAWS, provenance=said)
        folder = self.runs / checkpoint.name / benchmark.name
        return save_run(folder, benchmark, given, result, facts)


def world(plan: Plan) -> tuple[Benchmark, ...]:
    """Quads in both styles and in one, choices and a gallery, drawn when read, as the networks see them."""
    made, size = contrasts(plan.questions), plan.size
    control = questions_of(made, size=size, styles=("natural", "natural"), lazy=True)
    card = control.card.model_copy(update={"name": ALIKE, "title": "World, quads in one style"})
    return (
        questions_of(made, size=size, styles=("natural", "synthetic"), lazy=True),
        replace(control, card=card),
        choices(plan.questions, size=size, lazy=True),
        gallery(plan.images, size=size, lazy=True),
    )
