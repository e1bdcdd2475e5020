"""A small world in which everything is known: scenes, captions, edits of both, pictures, benchmarks."""

from counterfoil.world.captions import Meaning, Phrase, text
from counterfoil.world.describing import describe
from counterfoil.world.edits import SUBSETS, Contrast, edit
from counterfoil.world.reading import matches, positives, read
from counterfoil.world.render import draw, encode
from counterfoil.world.sample import contrasts, quads
from counterfoil.world.scenes import Scene, Thing, sample_scene

__all__ = [
    "SUBSETS",
    "Contrast",
    "Meaning",
    "Phrase",
    "Scene",
    "Thing",
    "contrasts",
    "describe",
    "draw",
    "edit",
    "encode",
    "matches",
    "positives",
    "quads",
    "read",
    "sample_scene",
    "text",
]
