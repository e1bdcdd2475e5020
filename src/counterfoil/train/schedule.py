"""The learning rate of each step: a pure function of the recipe and of how many steps there will be."""

import math

from counterfoil.errors import InputError
from counterfoil.train.recipes import Recipe


def learning_rate(step: int, *, recipe: Recipe, total: int) -> float:
    """The learning rate of `step`, counted from 0, in a training of `total` steps.

    Over the first `recipe.warmup` steps it rises linearly to `recipe.lr`, which the last of them has:
    lr (step + 1) / warmup. After that "cosine" falls with every step,
    lr (1 + cos(pi (step - warmup) / (total - warmup))) / 2, which would be 0 at step `total`; "cosine-epochs"
    takes the same curve once an epoch (torch's CosineAnnealingLR over epochs); "constant" stays. Source:
    BiVLC Appendix E.3, whose code counts the steps so; PCME's code for "cosine-epochs".

    Raises `InputError` for a step outside the training.

    >>> recipe = Recipe("mine", lr=1.0, warmup=2)
    >>> [round(learning_rate(step, recipe=recipe, total=6), 3) for step in range(6)]
    [0.5, 1.0, 1.0, 0.854, 0.5, 0.146]
    """
    if not 0 <= step < total:
        raise InputError("no such step of the training", given=step, allowed=f"0 to {total - 1}")
    if step < recipe.warmup:
        return recipe.lr * (step + 1) / recipe.warmup
    if recipe.schedule == "constant":
        return recipe.lr
    gone, whole = step - recipe.warmup, total - recipe.warmup
    if recipe.schedule == "cosine-epochs":
        # Whole epochs gone; as integers, so that the last bit of a division never decides.
        gone, whole = gone * recipe.epochs // whole, recipe.epochs
    return recipe.lr * 0.5 * (1 + math.cos(math.pi * gone / whole))
