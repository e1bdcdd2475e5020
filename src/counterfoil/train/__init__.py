"""Training: losses and mining, recipes, one loop, checkpoints that are scorers. Torch lives here.

What users need is here by name and loaded when it is asked for: recipes are read without torch.

>>> from counterfoil.train import read
>>> read("trohn-img").needs
('negative_caption', 'negative_image')
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from counterfoil.train.loop import Fitted, fit
    from counterfoil.train.objectives import with_heads
    from counterfoil.train.recipes import Recipe, read
    from counterfoil.train.saving import Monitors, Saving
    from counterfoil.train.validation import ForgettingGuard, interpolate

__all__ = [
    "Fitted",
    "ForgettingGuard",
    "Monitors",
    "Recipe",
    "Saving",
    "fit",
    "interpolate",
    "read",
    "with_heads",
]

#: The module of each name.
_HOMES = {
    "Fitted": "loop",
    "ForgettingGuard": "forgetting",
    "Monitors": "selection",
    "Recipe": "recipes",
    "Saving": "saving",
    "fit": "loop",
    "interpolate": "forgetting",
    "read": "recipes",
    "with_heads": "objectives",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
