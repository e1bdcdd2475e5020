"""A small world with known truth: scenes, captions, edits of both, pictures, benchmarks, people.

Training sets are drawn by `counterfoil.world.training` and written by `counterfoil.world.training`.
"""

from counterfoil.world.benchmarks import gallery
from counterfoil.world.captions import Meaning, Phrase, describe, text
from counterfoil.world.drawings import Animation, contact_sheet
from counterfoil.world.edits import SUBSETS, Contrast, edit
from counterfoil.world.generator import imagine
from counterfoil.world.painting import STYLES, draw, draw_many, encode
from counterfoil.world.people import Annotator, annotate
from counterfoil.world.ratings import preferences, rated
from counterfoil.world.sample import choices, contrasts, quads, statements
from counterfoil.world.scenes import Scene, Thing, sample_scene
from counterfoil.world.truth import matches, positives, read

__all__ = [
    "STYLES",
    "SUBSETS",
    "Animation",
    "Annotator",
    "Contrast",
    "Meaning",
    "Phrase",
    "Scene",
    "Thing",
    "annotate",
    "choices",
    "contact_sheet",
    "contrasts",
    "describe",
    "draw",
    "draw_many",
    "edit",
    "encode",
    "gallery",
    "imagine",
    "matches",
    "positives",
    "preferences",
    "quads",
    "rated",
    "read",
    "sample_scene",
    "statements",
    "text",
]
