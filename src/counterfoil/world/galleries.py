"""Galleries drawn from the world: every image and every caption, and exactly which belong together.

A caption is written for one image and may be true of many. Collected benchmarks know of one (COCO) or of
those that people verified (CxC, ECCV Caption); here every true pair is known.
"""

from dataclasses import replace

import numpy as np
from jaxtyping import Bool
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.readers.questions import gallery as from_searches
from counterfoil.data.readers.questions import own, search
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.inputs.amounts import check_amount
from counterfoil.inputs.memory import check_room
from counterfoil.world.captions import OPENINGS, Meaning, describe, text
from counterfoil.world.reading import positives
from counterfoil.world.sample import (
    Items,
    Progress,
    card_of,
    check_number,
    check_size,
    check_styles,
    drawn_with,
    silent,
    stream,
)
from counterfoil.world.scenes import Scene, one_of, sample_scene

#: Which pairs count as right: all that are true, or only those that a caption was written for.
KNOWN = ("all", "own")
#: Tries at another sentence for a scene before it is given up.
_TRIES = 500


def gallery(
    n: int,
    *,
    seed: int = 0,
    size: int = 192,
    captions_each: int = 2,
    style: str = "natural",
    known: str = "all",
    lazy: bool = False,
    progress: Progress = silent,
) -> Benchmark:
    """`n` images with `captions_each` captions written for each; the same seed gives the same bytes.

    All captions differ. Right for an image are all captions that are true of it, right for a caption all
    images it is true of; `owners` says which image it was written for. Where only the "own" are `known`,
    nothing else is right, as in COCO (`as_collected`). `lazy` pictures are drawn when they are read. Raises
    `InputError` for numbers below 1, pictures too small to see, and more captions than there is to say,
    `UnknownNameError` for unknown styles and another `known`.

    >>> made = gallery(4, captions_each=3, size=48)
    >>> len(made.images), len(made.captions), made.gallery.owners.tolist()
    (4, 12, [0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])
    """
    check_number(n, "images")
    check_number(captions_each, "captions for each image")
    check_amount("captions of each image", captions_each)
    check_size(size)
    check_styles([style])
    if known not in KNOWN:
        raise UnknownNameError("choice of known pairs", known, KNOWN)
    scenes, meanings, items = described(n, captions_each, stream("gallery", seed), style)
    owners = np.repeat(np.arange(n, dtype=np.int64), captions_each)
    caption, image = np.nonzero(truth(meanings, scenes))
    names = [f"caption-{i:05d}" for i in range(len(meanings))]
    pictures = items.images(size, lazy=lazy, progress=progress)
    source = drawn_with(seed, size, style)
    made = from_searches(
        card_of("world-gallery", n + len(meanings)).model_copy(update={"counts": {}}),
        pictures,
        items.captions(),
        owners,
        (
            search(np.arange(n), (image, caption), names=[i.id for i in pictures], where=source),
            search(np.arange(len(meanings)), (caption, image), names=names, where=source),
        ),
        source=source,
        path=None,
    )
    return as_collected(made) if known == "own" else made


def as_collected(made: Benchmark) -> Benchmark:
    """The same queries and items, where right is only what was written for the image, as COCO counts it.

    What else is true counts as wrong. The benchmark is called "...-own", so that neither is taken for the
    other.

    >>> collected = as_collected(gallery(4, captions_each=3, size=48))
    >>> collected.name, collected.gallery.t2i.positives.counts.tolist()
    ('world-gallery-own', [1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1])
    """
    i2t, t2i = own(made.gallery.owners, len(made.images))
    card = made.card.model_copy(
        update={
            "name": f"{made.card.name}-own",
            "title": f"{made.card.title}, own captions only",
        }
    )
    return replace(made, card=card, questions=replace(made.gallery, i2t=i2t, t2i=t2i))


def described(
    n: int, captions_each: int, rng: np.random.Generator, style: str
) -> tuple[list[Scene], list[Meaning], Items]:
    """`n` different scenes, captions of them in their order, and the items they are.

    Raises `InputError` for more captions of a scene than can be told apart.
    """
    items = Items()
    scenes: list[Scene] = []
    meanings: list[Meaning] = []
    while len(scenes) < n:
        scene = sample_scene(rng)
        if items.image(scene, style) < len(scenes):
            continue
        scenes.append(scene)
        said = 0
        for _ in range(_TRIES * captions_each):
            meaning = describe(scene, rng)
            known = len(items.texts)
            items.caption(text(meaning, opening=one_of(OPENINGS, rng)))
            if len(items.texts) > known:
                meanings.append(meaning)
                said += 1
            if said == captions_each:
                break
        else:
            raise InputError(
                "there are not so many different captions of a scene",
                given=f"{captions_each} captions for each of {n:,} images",
                hint="ask for fewer captions or fewer images",
            )
    return scenes, meanings, items


def truth(meanings: list[Meaning], scenes: list[Scene]) -> Bool[ndarray, "captions images"]:
    """Which caption is true of which scene: exactly all of them."""
    check_room(
        8 * len(meanings) * len(scenes),
        where="the world",
        what=f"which of {len(meanings):,} captions are true of which of {len(scenes):,} images",
        hint="draw a smaller gallery",
    )
    return np.asarray(positives(meanings, scenes), dtype=bool)
