"""Benchmarks of the world: galleries, and all those of the catalog, drawn on the spot.

Collected galleries know of one right pair (COCO) or of those that people verified; here every true pair is
known.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Unpack

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import gallery_of_pairs
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.limits import check_amount, check_room
from counterfoil.world import ratings, sample
from counterfoil.world.captions import OPENINGS, Meaning, describe, text
from counterfoil.world.sample import DrawingOptions, DrawingSettings, Items, stream
from counterfoil.world.scenes import Scene, one_of, sample_scene
from counterfoil.world.truth import positives

#: Tries at another sentence for a scene before it is given up.
_TRIES = 500


def gallery(
    n: int, *, captions_each: int = 2, style: str = "natural", **options: Unpack[DrawingOptions]
) -> Benchmark:
    """`n` images with `captions_each` captions written for each; the same seed gives the same bytes.

    All captions differ. Right for an image are all captions that are true of it, right for a caption all
    images it is true of; `owners` says which image it was written for. Raises `InputError` for more captions
    than there is to say.

    >>> made = gallery(4, captions_each=3, size=48)
    >>> len(made.images), len(made.captions), made.gallery.owners.tolist()
    (4, 12, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    """
    drawing = DrawingSettings.checked(n, "images", [style], options)
    sample.check_number(captions_each, "captions for each image")
    check_amount("captions of each image", captions_each)
    scenes, meanings, items = described(n, captions_each, stream("gallery", drawing.seed), style)
    owners = np.repeat(np.arange(n, dtype=np.int64), captions_each)
    what = f"which of {len(meanings):,} captions are true of which of {n:,} images"
    check_room(8 * len(meanings) * n, where="the world", what=what, hint="draw a smaller gallery")
    caption, image = np.nonzero(positives(meanings, scenes))
    pictures, captions, source = items.images(drawing), items.captions(), drawing.source
    card = sample.card_of("world-gallery", n + len(meanings)).model_copy(update={"counts": {}})
    return gallery_of_pairs(card, pictures, captions, owners, (image, caption), source=source)


def described(
    n: int, captions_each: int, rng: np.random.Generator, style: str
) -> tuple[list[Scene], list[Meaning], Items]:
    """`n` different scenes, captions of them in their order, and the items they are."""
    items = Items()
    scenes: list[Scene] = []
    meanings: list[Meaning] = []
    while len(scenes) < n:
        scene = sample_scene(rng)
        if items.image(scene, style) < len(scenes):
            continue
        scenes.append(scene)
        for _ in range(_TRIES * captions_each):
            meaning = describe(scene, rng)
            if items.caption(text(meaning, opening=one_of(OPENINGS, rng))) == len(meanings):
                meanings.append(meaning)
            if len(meanings) == captions_each * len(scenes):
                break
        else:
            problem = "a scene does not have that many different captions"
            given = f"{captions_each} captions for each of {n:,} images"
            raise InputError(problem, given=given, hint="ask for fewer captions or fewer images")
    return scenes, meanings, items


#: How many images the gallery has, and captions for each.
IMAGES, CAPTIONS_EACH = 300, 2
#: Pixels to a side of every picture.
SIZE = 192

#: What draws the benchmarks of the catalog, given the number of questions.
_DRAWN: Mapping[str, Callable[[int], Benchmark]] = {
    "world-quads": lambda n: sample.quads(n, size=SIZE, lazy=True),
    "world-choices": lambda n: sample.choices(n, size=SIZE, lazy=True),
    "world-statements": lambda n: sample.statements(n, size=SIZE, lazy=True),
    "world-gallery": lambda _: gallery(IMAGES, captions_each=CAPTIONS_EACH, size=SIZE, lazy=True),
    "world-rated": lambda n: ratings.rated(n, size=SIZE, lazy=True),
    "world-preferences": lambda n: ratings.preferences(n, size=SIZE, lazy=True),
}


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """The benchmark of a card, of as many questions as it says; raises `DataError` where a file is named."""
    if data is not None:
        allowed = "no --data, or a folder that 'counterfoil world build' made"
        raise DataError(f"{card.title} is drawn, not read", where=data, allowed=allowed)
    if card.size is None:
        raise DataError("the card does not say how many questions to draw", where=card.name)
    return _DRAWN[card.name](card.size)
