"""Scorers: anything that gives a number to an image and a caption. torch lives here, imported where used."""

from counterfoil.scorers.base import Embedder, Identity, Scorer

__all__ = ["Embedder", "Identity", "Scorer"]
