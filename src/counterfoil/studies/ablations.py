"""Two studies with a dial, from a network that is already there: noise in negative pictures, and mining."""

from collections.abc import Sequence
from dataclasses import replace

from counterfoil.errors import InputError
from counterfoil.evaluation.run import Run
from counterfoil.evaluation.studies import sweeps
from counterfoil.evaluation.studies.sweeps import Sweep, Trial
from counterfoil.studies.measuring import ALIKE, QUADS, EvaluationRuns
from counterfoil.studies.trainings import TrainingRuns
from counterfoil.world.training import training

#: Training data as the generator made them.
_RAW = "as generated"
#: Ways to choose negatives, as ECCV Caption calls them.
_WAYS = {"sum": "none", "semi-hard": "semi-hard", "hardest": "hardest"}


def noise(
    workshop: TrainingRuns, bench: EvaluationRuns, clean: Sequence[Run], *, draws: int
) -> tuple[Sweep, Sweep]:
    """trohn-img where a share of the negative pictures is wrong, and what dropping those brings back.

    `clean` are the runs of trohn-img itself, where none is. Every training has the same number of steps. Of
    the last rate there is a second training, after a perfect filter: the most that filtering can bring back.
    Judged twice: by quads in one style, and by the same quads whose second picture is synthetic, as the
    negatives in training are. A network can learn from wrong pictures that what looks synthetic goes with a
    caption that reads like a negative; the first judge pays nothing for that.

    Raises `InputError` for a plan without rates of noise.
    """
    plan = workshop.plan
    if not plan.noise:
        raise InputError("the plan has no rates of noise")
    trials = [Trial("0 % wrong", clean, x=0.0, series=_RAW)]
    asked = [(rate, None) for rate in plan.noise] + [(plan.noise[-1], "faithful")]
    for rate, keep in asked:
        data = training(plan.contrasts, kind="trohn-img", size=plan.size, failure=rate, keep=keep)
        name = f"noise-{rate:g}{'-filtered' if keep else ''}"
        runs = []
        for seed in plan.dialled:
            workshop.tuned(name, seed, recipe="trohn-img", data=data)
            runs += bench.measure(name, workshop.place(name, seed), only=(QUADS, ALIKE))
        label = f"{100 * rate:.0f} % wrong{', filtered' if keep else ''}"
        trials.append(Trial(label, runs, x=rate, series="filtered" if keep else _RAW))

    def judged(control: bool) -> Sweep:
        return sweeps.noise(
            [
                replace(each, runs=[run for run in each.runs if (run.benchmark.name == ALIKE) == control])
                for each in trials
            ],
            draws=draws,
        )

    question = sweeps.NOISE[0].lower() + sweeps.NOISE[1:]
    styles = replace(
        judged(False), key="noise-styles", question=f"Where the second picture is synthetic, {question}"
    )
    return judged(True), styles


def mining(workshop: TrainingRuns, bench: EvaluationRuns, *, draws: int) -> Sweep:
    """A triplet loss with each way to choose negatives, judged on the gallery (ECCV Caption Figure 5a).

    By R@1 as COCO counts it, one right image per caption, and by mAP@R over all that are true.
    """
    trials, own = [], []
    for way in workshop.plan.mining:
        both = []
        for seed in workshop.plan.dialled:
            name = f"mining-{way}"
            workshop.tuned(name, seed, recipe=way)
            both.append(bench.measure_gallery(name, workshop.place(name, seed)))
        trials.append(Trial(_WAYS[way], [every for every, _ in both]))
        own.append(Trial(_WAYS[way], [collected for _, collected in both]))
    return sweeps.mining(trials, own=own, draws=draws)
