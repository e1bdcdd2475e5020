"""Recipes: how a model is trained, as values, by name or from a TOML file. Nothing here loads torch."""

from counterfoil.train.recipes.base import Recipe
from counterfoil.train.recipes.published import (
    Coco,
    Detection,
    NegativePairs,
    NegativeTexts,
    NegClip,
    Polysemous,
    PositiveAugmented,
    Probabilistic,
    Triplet,
)
from counterfoil.train.recipes.reading import RECIPES, read, read_file

__all__ = [
    "RECIPES",
    "Coco",
    "Detection",
    "NegClip",
    "NegativePairs",
    "NegativeTexts",
    "Polysemous",
    "PositiveAugmented",
    "Probabilistic",
    "Recipe",
    "Triplet",
    "read",
    "read_file",
]
