"""Models: anything that gives a number to an image and a caption. torch lives here, imported where used."""

from counterfoil.models.base import Embedder, Identity, Model, Options
from counterfoil.models.registry import ModelEntry

__all__ = ["Embedder", "Identity", "Model", "ModelEntry", "Options"]
