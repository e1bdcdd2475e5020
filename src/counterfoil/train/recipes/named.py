"""The recipes with the papers' values, by name."""

from counterfoil.registry import Registry
from counterfoil.train.recipes.base import Recipe
from counterfoil.train.recipes.contrastive import (
    Coco,
    NegativePairs,
    NegativeTexts,
    NegClip,
    PositiveAugmented,
)
from counterfoil.train.recipes.detector import Detection
from counterfoil.train.recipes.ranking import HardestTriplet, Polysemous, Probabilistic, Triplet

RECIPES: Registry[Recipe] = Registry(
    "recipe",
    Recipe,
    "counterfoil.recipes",
    lambda: (
        Coco(),
        NegClip(),
        NegativeTexts(),
        NegativePairs(),
        PositiveAugmented(),
        Triplet(),
        HardestTriplet(),
        Polysemous(),
        Probabilistic(),
        Detection(),
    ),
)
