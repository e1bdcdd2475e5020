"""A study of a built benchmark: does it say of networks what a benchmark says in which every answer is known.

The recipe `bivlc` is run as a whole in the drawn world: captions, negative captions, four images for each of
them of which 61 % are wrong, simulated people who choose one and drop ambiguous questions. The networks of
the demo answer the result, and `world-quads`, whose pictures belong to their captions by construction.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from counterfoil.build.recipe import read_recipe
from counterfoil.build.run import run_recipe
from counterfoil.build.step import Work
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.folder import load
from counterfoil.engine.plan import Progress, silent
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.result import Estimate
from counterfoil.scorers.base import Options
from counterfoil.studies.plan import Plan
from counterfoil.studies.runs import TUNED, TrainingRuns
from counterfoil.world.sample import painted, quads

#: The networks, all but the first with a curriculum of contrasts.
NETWORKS = ("pretrained", *TUNED)
#: Pixels to a side of the pictures of either benchmark, as the recipe draws them.
_SIDE = 96


@dataclass(frozen=True, eq=False)
class FidelityStudy:
    """The group measure of each network on `world-quads` (`drawn`) and on what the recipe built (`built`).

    `questions` says how many of each there are, `rows` how many the recipe began with.
    """

    drawn: Mapping[str, Estimate]
    built: Mapping[str, Estimate]
    questions: tuple[int, int]
    rows: int

    def order(self, of: Mapping[str, Estimate]) -> tuple[str, ...]:
        """The networks, the best first."""
        return tuple(sorted(of, key=lambda name: -of[name].value))

    @property
    def same_order(self) -> bool:
        """Whether both benchmarks put the networks in one order."""
        return self.order(self.drawn) == self.order(self.built)

    def inside(self, name: str) -> bool:
        """Whether the built benchmark's group lies in the interval of the drawn one's."""
        return self.drawn[name].low <= self.built[name].value <= self.drawn[name].high

    def table(self) -> str:
        """All of it as text, in per cent, with 95 % intervals over questions."""
        drawn, built = self.questions
        lines = [
            f"group in per cent: world-quads, {drawn:,} questions; bivlc, {built:,} of {self.rows:,} rows",
            *(
                f"  {name:<12} {_ends(self.drawn[name])}  {_ends(self.built[name])}  "
                f"{'inside' if self.inside(name) else 'OUTSIDE'}"
                for name in self.order(self.drawn)
            ),
            f"order by bivlc: {', '.join(self.order(self.built))} "
            f"({'the same' if self.same_order else 'ANOTHER'})",
        ]
        return "\n".join(lines)


def _ends(of: Estimate) -> str:
    return f"{100 * of.value:.1f} [{100 * of.low:.1f}, {100 * of.high:.1f}]"


def build_fidelity(
    folder: Path, plan: Plan, *, rows: int = 5_000, seed: int = 1, progress: Progress = silent
) -> FidelityStudy:
    """Train the networks, build the benchmark and ask both; all is kept in `folder` and taken up there again.

    The quads are those of the catalog's stream, as many as `plan.questions`. Raises what training, building
    and measuring raise.
    """
    workshop = TrainingRuns(plan, folder, progress)
    workshop.pretrained(0)
    for name in TUNED:
        workshop.tuned(name, 0)
    recipe = read_recipe("bivlc", settings={"read.n": str(rows)}, seed=seed)
    work = Work(folder / "build", session=Session(progress=progress, note=lambda text: None))
    made = run_recipe(recipe, work)
    assert made.benchmark is not None
    both = painted(quads(plan.questions, size=_SIDE, lazy=True)), load(made.benchmark, verify=False)
    drawn, built = (
        {name: _group(each, workshop.place(name, 0), progress) for name in NETWORKS} for each in both
    )
    return FidelityStudy(drawn, built, (len(both[0]), len(both[1])), rows)


def _group(asked: Benchmark, place: Path, progress: Progress) -> Estimate:
    from counterfoil.scorers import checkpoint

    scorer = checkpoint.load(str(place), Options(device="cpu"))
    given = run(asked, scorer, session=Session(batch_size=256, progress=progress))
    return evaluate(asked, given, scorer=place.name).measures["group"]
