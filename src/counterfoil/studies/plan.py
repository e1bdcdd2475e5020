"""How large a study is: rows, questions, steps and seeds. Nothing in it depends on a result."""

from dataclasses import asdict, dataclass
from typing import Any

from counterfoil.train.recipes import Coco, NegativePairs, NegativeTexts, Recipe, Triplet


@dataclass(frozen=True)
class Plan:
    """The numbers of a study on the small world.

    The recipes are the papers' but for what a network from scratch needs: a learning rate a thousand times
    that of fine-tuning, small batches, few steps, and CLIP's clamp of the temperature at 100.
    """

    #: Rows of loose captions to begin with, and of contrasts to go on with.
    loose: int = 20_000
    contrasts: int = 10_000
    #: Questions of the quads and of the choices, images of the gallery.
    questions: int = 1_400
    images: int = 300
    #: Rated captions, as many preferences between captions, and half as many captions of clips.
    judged: int = 640
    #: Questions that are asked during training.
    watched: int = 210
    #: Steps of the optimiser before the trainings part, and of each training after it.
    first_steps: int = 1_200
    steps: int = 500
    batch_size: int = 128
    first_lr: float = 4e-3
    lr: float = 3e-3
    weight_decay: float = 0.01
    #: Pixels to a side that a network sees.
    size: int = 48
    #: A network is trained from scratch for each.
    seeds: tuple[int, ...] = (0,)
    #: Shares of negative images that show something else than they should, the last of them with a filter as
    #: well; P000 estimates 0.61 (section 5.2).
    noise: tuple[float, ...] = ()
    #: Ways to choose the negatives of a triplet loss.
    mining: tuple[str, ...] = ()
    #: Steps of those trainings, after the same start.
    mining_steps: int = 500
    #: The seeds, of those above, of both studies with a dial.
    dialled: tuple[int, ...] = (0,)

    def recipe(self, name: str, *, seed: int) -> Recipe:
        """The recipe of one training: "pretrained", "coco", "trohn-text", "trohn-img", or a way of mining."""
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
        kind = {"trohn-text": NegativeTexts, "trohn-img": NegativePairs}.get(name, Coco)
        # As in P000: hard negatives come on top of half a batch.
        size = self.batch_size if kind is Coco else self.batch_size // 2
        return kind(name=name, batch_size=size, max_logit_scale=100.0, **shared)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


#: Three minutes on two cores.
SHORT = Plan()
#: A quarter of an hour: three seeds, what noise costs, and which negatives to count.
FULL = Plan(
    questions=14_000,
    steps=1_000,
    seeds=(0, 1, 2),
    noise=(0.3, 0.61),
    mining=("sum", "semi-hard", "hardest"),
)
