"""A small world in which everything is known: scenes, captions, edits of both, pictures, benchmarks."""

from counterfoil.world.captions import Meaning, Phrase, matches, text
from counterfoil.world.edits import SUBSETS, Contrast, edit
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
    "draw",
    "edit",
    "encode",
    "matches",
    "quads",
    "sample_scene",
    "text",
]
