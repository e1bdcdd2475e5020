"""Small networks from scratch on the drawn world, which `noise_filter.py` and `fidelity.py` measure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.engine.plan import Progress, silent
from counterfoil.train.recipes import Coco, NegativePairs, NegativeTexts, Recipe
from counterfoil.world.painting import STYLES
from counterfoil.world.sample import quads
from counterfoil.world.training import training

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone


@dataclass(frozen=True)
class TrainingSummary:
    """How a model came about; `history` holds the rows of its journal."""

    name: str
    #: What it learned from, in words.
    learned: str
    rows: int
    steps: int
    seconds: float
    history: Sequence[Mapping[str, float]] = field(default_factory=tuple)


#: Steps over which the learning rate rises.
_WARMUP = 20


@dataclass(frozen=True)
class Plan:
    """The sizes, steps and learning rates of trainings on the small world.

    The recipes are the papers' but for what a network from scratch needs: a learning rate a thousand times
    that of fine-tuning, small batches, few steps, CLIP's clamp of the temperature at 100, and a curriculum:
    rows that differ in how things lie, or in what is whose, come first, then all. Every training begins at
    the same random weights, since relations are not learned on top of what loose captions teach, and has as
    many steps.
    """

    #: Rows of loose captions, and of contrasts.
    loose: int = 20_000
    contrasts: int = 10_000
    questions: int = 1_400
    #: Questions that are asked during training.
    watched: int = 210
    #: Steps of the optimiser on rows of relations and swaps alone, then on all; `pretrained` has as many.
    relation_steps: int = 150
    steps: int = 450
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
        """The recipe of a training: "pretrained", or one of the three."""
        steps = self.relation_steps + self.steps if name == "pretrained" else self.steps
        shared: dict[str, Any] = {
            "batch_size": self.batch_size,
            "steps": steps,
            "validate_every": max(1, steps // 5),
            "lr": self.lr,
            "weight_decay": self.weight_decay,
            "select": "last",
            "seed": seed,
        }
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


#: Some minutes of work, and seconds of it, with numbers that mean nothing.
SHORT = Plan()
TINY = Plan(
    loose=120, contrasts=80, questions=28, watched=7, relation_steps=4, steps=8, batch_size=16, size=32
)


#: The trainings with a curriculum, over the same rows, and what each learns from.
TUNED = ("coco", "trohn-text", "trohn-img")
LEARNED = {
    "pretrained": "loose captions",
    "coco": "pictures and captions",
    "trohn-text": "the same, and hard-negative captions",
    "trohn-img": "the same, and the pictures that those describe",
}
#: Kinds of edit that change relations or swap things or attributes: a training begins with those.
FIRST = ("replace_rel", "swap_obj", "swap_att")
#: A stream of questions that no benchmark takes its own from.
_WATCHED = 1_000_003


@dataclass(frozen=True, eq=False)
class TrainingRuns:
    """Where the networks of one plan are made: `folder/NAME-SEED` is the checkpoint of each."""

    plan: Plan
    folder: Path
    progress: Progress = silent

    @cached_property
    def loose(self) -> TrainingSet:
        """Pictures in either style, and captions that say something true of them."""
        return training(
            self.plan.loose, kind="loose", size=self.plan.size, styles=STYLES, progress=self.progress
        )

    @cached_property
    def contrasts(self) -> TrainingSet:
        """Qrels, hard-negative captions and hard-negative pictures, all as they should be."""
        return training(self.plan.contrasts, kind="trohn-img", size=self.plan.size, progress=self.progress)

    @cached_property
    def watched(self) -> Benchmark:
        """Questions that are asked during training, for its curves; none of them is asked later."""
        return quads(self.plan.watched, seed=_WATCHED, size=self.plan.size, styles=("natural", "synthetic"))

    def place(self, name: str, seed: int) -> Path:
        """The checkpoint's folder of one network."""
        return self.folder / f"{name}-{seed}"

    @cached_property
    def captions(self) -> list[str]:
        """What the vocabulary of every network is made of."""
        return [caption.text or "" for data in (self.loose, self.contrasts) for caption in data.captions]

    def untrained(self, seed: int) -> "Backbone":
        """The random weights at which all trainings of that seed begin."""
        from counterfoil.models import small

        return small.backbone(self.captions, sizes=small.Sizes(picture=self.plan.size), seed=seed)

    def pretrained(self, seed: int) -> TrainingSummary:
        """A network from scratch, trained on loose captions alone."""
        return self._fit(self.untrained(seed), "pretrained", "pretrained", self.loose, seed)

    def tuned(
        self, name: str, seed: int, *, recipe: str = "", data: TrainingSet | None = None
    ) -> TrainingSummary:
        """A network from scratch, trained as the recipe (by default of that name) says, with a curriculum.

        First on the rows of relations and swaps, then on all: among all edits those are learned last, and
        hardly at all in few steps.
        """
        data, backbone, recipe = data or self.contrasts, self.untrained(seed), recipe or name
        rows = np.flatnonzero(np.isin(data.groupings["subset"], FIRST))
        before = self._fit(backbone, f"{name}-first", recipe, data.select(rows), seed, first=True)
        after = self._fit(backbone, name, recipe, data, seed)
        later = tuple({**line, "step": line["step"] + before.steps} for line in after.history)
        return replace(
            after,
            steps=before.steps + after.steps,
            seconds=before.seconds + after.seconds,
            history=(*before.history, *later),
        )

    def _fit(
        self,
        backbone: "Backbone",
        name: str,
        recipe: str,
        data: TrainingSet,
        seed: int,
        *,
        first: bool = False,
    ) -> TrainingSummary:
        from counterfoil.train.loop import fit
        from counterfoil.train.saving import Monitors
        from counterfoil.train.validation import accuracy

        fitted = fit(
            backbone,
            (self.plan.first if first else self.plan.recipe)(recipe, seed=seed),
            data,
            monitors=Monitors(validate=lambda network: {"group": accuracy(network, self.watched)}),
            out=self.place(name, seed),
            progress=lambda stage, done, total: self.progress(f"{stage} {name}", done, total),
        )
        summary = name, LEARNED[recipe], len(data), fitted.step, fitted.seconds
        return TrainingSummary(*summary, history=fitted.history)
