"""Scorers: anything that gives a number to an image and a caption. torch lives here, imported where used."""

from counterfoil.models.base import Embedder, Identity, Options, Scorer
from counterfoil.models.registry import ScorerEntry

__all__ = ["Embedder", "Identity", "Options", "Scorer", "ScorerEntry"]
