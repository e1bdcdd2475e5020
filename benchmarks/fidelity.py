"""Whether a benchmark built by the recipe `bivlc` says of networks what `world-quads` says.

    python benchmarks/fidelity.py FOLDER [--rows 5000] [--tiny]

Both are of the drawn world: in one pictures belong to their captions by construction, the other is what the
whole recipe makes of captions (negative captions, four images for each of which 61 % are wrong, simulated
people who choose one and drop ambiguous questions). Prints the group measure of the demo's networks on both,
with intervals, and the order of the networks. What is trained and built is kept in FOLDER, so that a second
run goes on where one stopped. About five minutes on one core; --tiny takes seconds, to see that it works.
Exits with 1 where they do not say the same.
"""

import argparse
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.folder import load
from counterfoil.build.pipeline import read_recipe, run_recipe
from counterfoil.build.step import StepContext
from counterfoil.engine.session import Session, run
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.result import Estimate
from counterfoil.models import checkpoint
from counterfoil.models.base import Options
from counterfoil.world.sample import quads
from small_trainings import SHORT, TINY, TUNED, Plan, TrainingRuns

#: The networks, all but the first with a curriculum of contrasts.
NETWORKS = ("pretrained", *TUNED)
#: Pixels to a side of the pictures of either benchmark, as the recipe draws them.
_SIDE = 96


@dataclass(frozen=True)
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


def build_fidelity(folder: Path, plan: Plan, *, rows: int) -> FidelityStudy:
    """Train the networks, build the benchmark and ask both; all is kept in `folder` and taken up there again.

    The quads are those of the catalog's stream, as many as `plan.questions`.
    """
    workshop = TrainingRuns(plan, folder)
    workshop.pretrained(0)
    for name in TUNED:
        workshop.tuned(name, 0)
    recipe = read_recipe("bivlc", settings={"read.n": str(rows)}, seed=1)
    made = run_recipe(recipe, StepContext(folder / "build", session=Session(note=lambda text: None)))
    assert made.benchmark is not None
    both = quads(plan.questions, size=_SIDE), load(made.benchmark, verify=False)
    drawn, built = ({name: _group(each, workshop.place(name, 0)) for name in NETWORKS} for each in both)
    return FidelityStudy(drawn, built, (len(both[0]), len(both[1])), rows)


def _group(asked: Benchmark, place: Path) -> Estimate:
    model = checkpoint.load(str(place), Options(device="cpu"))
    return evaluate(asked, run(asked, model, session=Session(batch_size=256)), model=place.name).measures[
        "group"
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", type=Path)
    parser.add_argument("--rows", type=int, default=5_000)
    parser.add_argument("--tiny", action="store_true")
    given = parser.parse_args()
    began = perf_counter()
    study = build_fidelity(given.folder, TINY if given.tiny else SHORT, rows=given.rows)
    print(study.table())
    print(f"{perf_counter() - began:.0f} s", file=sys.stderr)
    sys.exit(0 if study.same_order and all(map(study.inside, study.drawn)) else 1)
