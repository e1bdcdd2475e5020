"""The plan of a study (rows, questions, steps, seeds), and its folder.

A study that was stopped goes on in its folder. A folder never holds networks or runs of two plans.
"""

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from shutil import rmtree
from typing import Any

from counterfoil import __version__
from counterfoil.errors import CounterfoilError, InputError
from counterfoil.inputs.files import read_json
from counterfoil.outputs import overwriting
from counterfoil.store import digest_value, write_json
from counterfoil.train.recipes import Coco, NegativePairs, NegativeTexts, PositiveAugmented, Recipe

#: Steps over which the learning rate rises.
_WARMUP = 20


@dataclass(frozen=True)
class Plan:
    """The numbers of a study on the small world.

    The recipes are the papers' but for what a network from scratch needs: a learning rate a thousand times
    that of fine-tuning, small batches, few steps, CLIP's clamp of the temperature at 100, and a curriculum:
    rows that differ in how things lie, or in what is whose, come first, then all. Every training begins at
    the same random weights, since relations are not learned on top of what loose captions teach, and has as
    many steps.
    """

    #: Rows of loose captions, of contrasts, and of generated positives.
    loose: int = 20_000
    contrasts: int = 10_000
    generated: int = 4_000
    #: Questions of the quads and of the choices, images of the gallery.
    questions: int = 1_400
    images: int = 300
    #: Rated captions, as many preferences between captions, and half as many captions of clips.
    judged: int = 640
    #: Questions that are asked during training.
    watched: int = 210
    #: Steps of the optimiser on rows of relations and swaps alone, then on all; `pretrained` has as many.
    relation_steps: int = 150
    steps: int = 450
    #: Steps on generated positives.
    generated_steps: int = 150
    #: Captions in a batch.
    batch_size: int = 64
    #: Learning rates of the first part of a training and of the rest.
    relation_lr: float = 1e-3
    lr: float = 1.5e-3
    weight_decay: float = 0.01
    #: Pixels to a side that a network sees.
    size: int = 48
    #: That of all trainings.
    seed: int = 0

    def recipe(self, name: str, *, seed: int) -> Recipe:
        """The recipe of a training: "pretrained", one of the three, or "pac"."""
        alone = {"pretrained": self.relation_steps + self.steps, "pac": self.generated_steps}
        steps = alone.get(name, self.steps)
        shared: dict[str, Any] = {
            "batch_size": self.batch_size,
            "steps": steps,
            "validate_every": max(1, steps // 5),
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "select": "last",
            "seed": seed,
        }
        if name == "pac":
            # PAC-S's own, but for the batch, the learning rate and the number of steps.
            return PositiveAugmented(patience=None, max_logit_scale=100.0, **shared)
        kind = {"trohn-text": NegativeTexts, "trohn-img": NegativePairs}.get(name, Coco)
        if kind is not Coco:
            # As in BiVLC: hard negatives come on top of half a batch.
            shared["batch_size"] //= 2
        return kind(name=name, warmup=_WARMUP, max_logit_scale=100.0, **shared)

    def first(self, name: str, *, seed: int) -> Recipe:
        """The recipe of the first part of a training with curriculum: a learning rate that stays as it is."""
        recipe, steps = self.recipe(name, seed=seed), self.relation_steps
        every = max(1, steps // 5)
        return replace(recipe, steps=steps, validate_every=every, lr=self.relation_lr, schedule="constant")


#: Some minutes of work.
SHORT = Plan()

PLAN, NETWORKS, RUNS = "plan.json", "networks", "runs"
REPORT, QUESTIONS, NUMBERS = "report.html", "questions.html", "findings.json"
FILES = (PLAN, NETWORKS, RUNS, REPORT, QUESTIONS, NUMBERS)


def claim(out: Path, plan: Plan) -> bool:
    """Make `out` the folder of a study by this plan; whether one was begun there that can go on.

    Raises `InputError`, and touches nothing, where the folder holds a study of another plan, or of another
    version of this package, or files of such names that no study wrote: unless replacing them was asked for.
    The networks and runs of another study are then removed.
    """
    path, ours = out / PLAN, {"study": __version__, "plan": asdict(plan)}
    try:
        known = read_json(path) if path.is_file() else None
    except CounterfoilError:
        known = None
    study = isinstance(known, dict) and {"study", "plan"} == set(known)
    if study and digest_value(known) == digest_value(ours):
        return any((out / NETWORKS).glob("*/resume.pt"))
    taken = [name for name in FILES if (out / name).exists()]
    if taken and not overwriting():
        text = f"the folder holds {'a demo of another plan' if study else 'files that are not of a demo'}"
        hint = "name a new folder" + (", or begin anew here with --overwrite" if study else "")
        raise InputError(text, where=out, given=", ".join(taken), hint=hint)
    if study:
        # Until all is removed it is no plan's, so a stop in between leaves no mixture.
        write_json(path, {"study": __version__, "plan": None})
        for name in (NETWORKS, RUNS):
            rmtree(out / name, ignore_errors=True)
    write_json(path, ours)
    return False
