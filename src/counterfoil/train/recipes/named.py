"""The recipes with the papers' values, by name."""

from collections.abc import Mapping

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

NAMES: Mapping[str, Recipe] = {
    recipe.name: recipe
    for recipe in (
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
    )
}
