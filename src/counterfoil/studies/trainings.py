"""The trainings of a study: four from the same random weights, and what is made of them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.training_rows import TrainingSet
from counterfoil.engine.progress import Progress, silent
from counterfoil.report.study.page import TrainingSummary
from counterfoil.studies.plan import Plan
from counterfoil.world.render import STYLES
from counterfoil.world.sample import quads
from counterfoil.world.training import training

if TYPE_CHECKING:
    from counterfoil.scorers.networks import Backbone

#: The trainings with a curriculum, over the same rows, and what each learns from.
TUNED = ("coco", "trohn-text", "trohn-img")
LEARNED = {
    "pretrained": "loose captions",
    "coco": "pictures and captions",
    "trohn-text": "the same, and hard-negative captions",
    "trohn-img": "the same, and the pictures that those describe",
    "pac": "pictures and captions, and generated ones",
    "sum": "pictures and captions, all negatives",
    "semi-hard": "pictures and captions, semi-hard negatives",
    "hardest": "pictures and captions, the hardest negatives",
}
#: Kinds of edit that change how things lie or what is whose: a training begins with those.
FIRST = ("replace_rel", "swap_obj", "swap_att")
#: A stream of questions that no benchmark takes its own from.
_WATCHED = 1_000_003


@dataclass(frozen=True, eq=False)
class TrainingRuns:
    """Where the networks of one study are made: `folder/NAME-SEED` is the checkpoint of each."""

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
        """Positives, hard-negative captions and hard-negative pictures, all as they should be."""
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
        from counterfoil.scorers import small

        return small.backbone(self.captions, sizes=small.Sizes(picture=self.plan.size), seed=seed)

    def pretrained(self, seed: int) -> TrainingSummary:
        """A network from scratch, trained on loose captions alone."""
        return self._fit(self.untrained(seed), "pretrained", "pretrained", self.loose, seed)

    @cached_property
    def generated(self) -> TrainingSet:
        """Loose captions, and what machines make of them."""
        return training(
            self.plan.generated, kind="pac", size=self.plan.size, styles=STYLES, progress=self.progress
        )

    def tuned(
        self, name: str, seed: int, *, recipe: str | None = None, data: TrainingSet | None = None
    ) -> TrainingSummary:
        """A network from scratch, trained as `recipe` (by default `name`) says, with a curriculum.

        First on the rows of relations and swaps, then on all: among all edits those are learned last, and
        hardly at all in few steps. A way of mining has no such part, and goes on from `pretrained`.
        """
        from counterfoil.scorers import checkpoint

        recipe, data = recipe or name, self.contrasts if data is None else data
        if recipe not in TUNED:
            return self._fit(checkpoint.read(self.place("pretrained", seed)), name, recipe, data, seed)
        backbone = self.untrained(seed)
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

    def augmented(self, name: str, seed: int, *, on: str) -> TrainingSummary:
        """The network `on` of that seed with its projections trained on generated positives (PAC-S)."""
        from counterfoil.scorers import checkpoint

        return self._fit(checkpoint.read(self.place(on, seed)), name, "pac", self.generated, seed)

    def detectors(self, name: str, seed: int, *, on: str) -> Path:
        """Detectors of what is synthetic on the frozen network `on`, from the same rows."""
        from counterfoil.scorers import checkpoint
        from counterfoil.train import detectors
        from counterfoil.train.recipes import Detection

        # The released code's learning rate (the paper's would take a hundred times as long).
        recipe = Detection(lr=1e-3, seed=seed)
        backbone = checkpoint.read(self.place(on, seed))
        detectors.fit(backbone, recipe, self.contrasts, out=self.place(name, seed))
        return self.place(name, seed)

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
        return TrainingSummary(
            name=name,
            learned=LEARNED.get(recipe, recipe),
            rows=len(data),
            steps=fitted.step,
            seconds=fitted.seconds,
            history=fitted.history,
        )


def combined(of_seeds: Sequence[Mapping[str, TrainingSummary]]) -> tuple[TrainingSummary, ...]:
    """The trainings as a page shows them: of each the first seed's curve, and the seconds of all."""
    return tuple(
        replace(one, seconds=sum(each[name].seconds for each in of_seeds), seeds=len(of_seeds))
        for name, one in of_seeds[0].items()
    )
