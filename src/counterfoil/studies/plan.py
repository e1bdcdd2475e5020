"""How large a study is: rows, questions, steps and seeds. Nothing in it depends on a result."""

from dataclasses import asdict, dataclass, replace
from typing import Any

from counterfoil.train.recipes import (
    Coco,
    NegativePairs,
    NegativeTexts,
    PositiveAugmented,
    Recipe,
    Triplet,
)

#: In steps of the first training, as measured: what the three trainings that part take for a step of each,
#: where batches are as large; measuring for each question; and detectors, caption metrics, statistics and
#: pages together.
_PARTED, _MEASURING, _REST = 3.4, 0.13, 500.0


@dataclass(frozen=True)
class Plan:
    """The numbers of a study on the small world.

    The recipes are the papers' but for what a network from scratch needs: a learning rate a thousand times
    that of fine-tuning, small batches, few steps, CLIP's clamp of the temperature at 100, and a curriculum:
    rows that differ in how things lie, or in what is whose, come first, then all.
    """

    #: Rows of loose captions to begin with, of contrasts to go on with, and of generated positives.
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
    #: Steps of the optimiser before the trainings part, and of each training after it: on rows of relations
    #: and swaps alone, then on all.
    first_steps: int = 400
    relation_steps: int = 500
    steps: int = 250
    #: Steps on generated positives.
    generated_steps: int = 150
    #: Captions in a batch, before the trainings part and after it.
    first_batch: int = 128
    batch_size: int = 64
    first_lr: float = 4e-3
    lr: float = 2e-3
    weight_decay: float = 0.01
    #: Pixels to a side that a network sees.
    size: int = 48
    #: A network is trained from scratch for each.
    seeds: tuple[int, ...] = (0,)
    #: Shares of negative images that show something else than they should, the last of them with a filter as
    #: well; BiVLC estimates 0.61 (section 5.2).
    noise: tuple[float, ...] = ()
    #: Ways to choose the negatives of a triplet loss.
    mining: tuple[str, ...] = ()
    #: Steps of those trainings, after the same start.
    mining_steps: int = 500
    #: The seeds, of those above, of both studies with a dial.
    dialled: tuple[int, ...] = (0,)

    def recipe(self, name: str, *, seed: int) -> Recipe:
        """The recipe of a training: "pretrained", one of the three, "pac", or a way of mining."""
        first, mined = name == "pretrained", name in ("sum", "semi-hard", "hardest")
        shared: dict[str, Any] = {
            "steps": self.first_steps if first else self.mining_steps if mined else self.steps,
            "lr": self.first_lr if first else self.lr,
            "weight_decay": self.weight_decay,
            "select": "last",
            "seed": seed,
        }
        shared["validate_every"] = max(1, shared["steps"] // 5)
        if mined:
            # VSE's, with the optimiser of the others, so that the choice of negatives is all that differs.
            return Triplet(
                name=f"triplet-{name}",
                mining=name,  # type: ignore[arg-type]
                batch_size=self.batch_size,
                optimiser="adamw",
                schedule="cosine",
                warmup=50,
                stages=(),
                augment="none",
                reduction="mean",
                **shared,
            )
        if name == "pac":
            # PAC-S's own, but for the learning rate and the number of steps.
            steps = self.generated_steps
            shared |= {"steps": steps, "validate_every": max(1, steps // 5), "patience": None}
            return PositiveAugmented(batch_size=self.first_batch, max_logit_scale=100.0, **shared)
        kind = {"trohn-text": NegativeTexts, "trohn-img": NegativePairs}.get(name, Coco)
        # As in BiVLC: hard negatives come on top of half a batch.
        captions = self.first_batch if first else self.batch_size
        size = captions if kind is Coco else captions // 2
        return kind(name=name, batch_size=size, max_logit_scale=100.0, **shared)

    def first(self, name: str, *, seed: int) -> Recipe:
        """The recipe of the first part of a training after the start: the same, at one learning rate."""
        steps = self.relation_steps
        every = max(1, steps // 5)
        return replace(self.recipe(name, seed=seed), steps=steps, validate_every=every, schedule="constant")

    @property
    def work(self) -> float:
        """All that is done after drawing, in steps of the first training, roughly: what a demo takes."""
        batch = self.batch_size / self.first_batch
        tuned = self.relation_steps + self.steps
        steps = self.first_steps + _PARTED * batch * tuned + self.generated_steps
        dials = batch * (tuned * (len(self.noise) + bool(self.noise)) + self.mining_steps * len(self.mining))
        measuring = _MEASURING * self.questions
        return len(self.seeds) * (steps + measuring) + len(self.dialled) * dials + _REST

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


#: A few minutes; the demo says how many.
SHORT = Plan()
#: Three seeds, trained longer, what noise costs, and which negatives to count.
FULL = Plan(
    questions=14_000,
    relation_steps=2_000,
    steps=1_000,
    seeds=(0, 1, 2),
    noise=(0.3, 0.61),
    mining=("sum", "semi-hard", "hardest"),
)
