"""Benchmarks of the world: galleries, clips, and all those of the catalog, drawn on the spot.

Collected galleries know of one right pair (COCO) or of those that people verified; here every true pair is
known.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import permutations
from pathlib import Path
from typing import Unpack

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Rated
from counterfoil.benchmarks.readers.questions import gallery_of_pairs
from counterfoil.benchmarks.references import References
from counterfoil.benchmarks.videos import Video
from counterfoil.errors import DataError, InputError, UnknownNameError
from counterfoil.inputs.limits import check_amount, check_room
from counterfoil.world import ratings, sample
from counterfoil.world.captions import OPENINGS, Meaning, describe, text
from counterfoil.world.edits import SUBSETS, edit, with_things
from counterfoil.world.painting import Animation
from counterfoil.world.ratings import GRADES, REFERENCES, in_order, share, words
from counterfoil.world.sample import DrawingOptions, DrawingSettings, Items, Progress, silent, stream
from counterfoil.world.scenes import Scene, one_of, place, sample_scene
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
            problem = "there are not so many different captions of a scene"
            given = f"{captions_each} captions for each of {n:,} images"
            raise InputError(problem, given=given, hint="ask for fewer captions or fewer images")
    return scenes, meanings, items


#: A thing comes or goes over an edge, crosses the sheet, or the scene changes in the middle.
MOTIONS = ("enters", "leaves", "left", "right", "up", "down", "changes")
#: Frames of a clip; a quarter of them at the begin and at the end is still.
FRAMES = 16
#: Where a thing is that has not come yet, or has gone: off the sheet by this much.
_OFF = 0.25
#: The column or row that a crossing starts from, and the one that it ends in.
_CROSSINGS = {"right": (0, 2), "left": (2, 0), "down": (0, 2), "up": (2, 0)}


def moving(motion: str, rng: np.random.Generator) -> tuple[Scene, ...]:
    """The scene of each frame of a clip of the kind `motion`, one of `MOTIONS`; two or three things.

    >>> clip = moving("enters", np.random.default_rng(0))
    >>> len(clip[-1].things) - len(clip[0].things)
    1
    """
    if motion not in MOTIONS:
        raise UnknownNameError("motion", motion, MOTIONS)
    while True:
        # Nothing is hollow: what crosses a ring would be inside it for a moment.
        scene = sample_scene(rng, fewest=2, most=3, containers=0.0)
        if motion != "changes":
            scenes = _moves(scene, motion, rng)
        else:
            # One scene up to the middle, then the same after one edit.
            contrast = edit(scene, one_of(SUBSETS, rng), rng)
            halves = () if contrast is None else contrast.scenes
            scenes = tuple(half for half in halves for _ in range(FRAMES // 2)) or None
        if scenes is not None:
            return scenes


def _moves(scene: Scene, motion: str, rng: np.random.Generator) -> tuple[Scene, ...] | None:
    """The first thing moves along its row or column, which must be free."""
    mover, others = scene.things[0], scene.things[1:]
    if motion in _CROSSINGS:
        # From one side of the sheet to the other.
        start, stop = (place(rng, (at, at)) for at in _CROSSINGS[motion])
        across = motion in ("left", "right")
        ways = [[(x, mover.y) if across else (mover.x, y) for x, y in (start, stop)]]
    else:
        # From off the sheet to where the thing lies.
        edges = [(-_OFF, mover.y), (1 + _OFF, mover.y), (mover.x, -_OFF), (mover.x, 1 + _OFF)]
        ways = [[edge, (mover.x, mover.y)] for edge in edges]
    # Ways on which nothing lies nearer than half a cell.
    free = []
    for way in ways:
        (left, top), (right, foot) = np.min(way, axis=0) - 0.16, np.max(way, axis=0) + 0.16
        if not any(left < other.x < right and top < other.y < foot for other in others):
            free.append(way)
    if not free:
        return None
    path = free[0] if motion in _CROSSINGS else one_of(free, rng)
    (x0, y0), (x1, y1) = path[::-1] if motion == "leaves" else path
    scenes = []
    # Still, moving evenly, still.
    for number in range(FRAMES):
        at = min(1.0, max(0.0, (number - FRAMES // 4 + 1) / (FRAMES // 2)))
        x, y = round(x0 + at * (x1 - x0), 3), round(y0 + at * (y1 - y0), 3)
        moved = replace(mover, x=x, y=y)
        seen = 0 <= x <= 1 and 0 <= y <= 1
        scenes.append(with_things(scene, (mover, moved)) if seen else replace(scene, things=others))
    return tuple(scenes)


#: Ways to begin a caption of a clip.
CLIP_OPENINGS = ("", "there is ", "here is ", "we see ")
#: A caption of a part is true of at least this share of the frames, and false of as many.
_PART = 0.2
#: Sentences about a clip that are tried, from its begin, its middle and its end, and edits of those.
_SAID, _EDITED = 24, 8


@dataclass(frozen=True)
class ClipCaptions:
    """A clip and its captions: one per grade, in the order of `GRADES`, and references."""

    motion: str
    frames: tuple[Scene, ...]
    candidates: tuple[str, ...]
    references: tuple[str, ...]


def clips(
    n: int, *, seed: int = 0, size: int = 192, style: str = "natural", progress: Progress = silent
) -> Benchmark:
    """`n` rated captions of moving scenes, three to a clip; the same seed gives the same clips.

    The rating is 1 where the caption is true of every frame, 1/2 where it is true of some (a fifth to four
    fifths), 0 where it is true of none. References are five other captions that are true of the whole clip.
    Captions of one clip are a word apart in length, each grade being as often the longest. Grouping:
    `motion`, one of `MOTIONS`. Frames are drawn when they are looked at.

    >>> made = clips(6, size=48)
    >>> made.questions.ratings[:, 0].tolist(), len(made.images), len(made.questions.references.row(0))
    ([1.0, 0.5, 0.0, 1.0, 0.5, 0.0], 2, 5)
    """
    drawing = DrawingSettings.checked(n, "questions", [style], {"seed": seed, "size": size})
    rng, names = stream("clips", seed), tuple(GRADES)
    ranks = np.asarray(list(permutations(range(len(names)))))
    generated: list[ClipCaptions] = []
    while len(generated) * len(names) < n:
        if len(generated) % len(ranks) == 0:
            ranks = rng.permutation(ranks)
        clip = generate_clip(MOTIONS[len(generated) % len(MOTIONS)], ranks[len(generated) % len(ranks)], rng)
        if clip is not None:
            generated.append(clip)
            progress("making up clips", min(n, len(generated) * len(names)), n)
    rows = [(i, grade) for i in range(len(generated)) for grade in range(len(names))][:n]
    items = Items()
    captions = [items.caption(generated[i].candidates[grade]) for i, grade in rows]
    references = [[items.caption(sentence) for sentence in one.references] for one in generated]
    videos = tuple(
        Video(f"clip-{i:05d}", Animation(one.frames, size, style, where=f"clip {i} of the world"))
        for i, one in enumerate(generated)
    )
    questions = Rated(
        tuple(f"clip-{i:05d}-{names[grade]}" for i, grade in rows),
        captions=np.asarray(captions, dtype=np.int64),
        images=np.asarray([i for i, _ in rows], dtype=np.int64),
        ratings=np.asarray([[GRADES[names[grade]]] for _, grade in rows]),
        references=References.of([references[i] for i, _ in rows]),
        groupings={"motion": tuple(generated[i].motion for i, _ in rows)},
    )
    return items.benchmark("world-clips", questions, drawing, images=videos)


def generate_clip(
    motion: str, rank: Int64[ndarray, "grades"], rng: np.random.Generator
) -> ClipCaptions | None:
    """A clip and its captions, those of grades longer than the shortest by `rank` words; or None."""
    frames = moving(motion, rng)
    # Each begins alike, or how it begins would make it longer.
    opening = one_of(CLIP_OPENINGS, rng)
    utterances: dict[str, dict[str, Meaning]] = {name: {} for name in GRADES}
    seen = [frames[0], frames[len(frames) // 2], frames[-1]]
    meanings = [describe(seen[k % 3], rng) for k in range(_SAID)]
    for k in range(_EDITED):
        contrast = edit(seen[2 * (k % 2)], one_of(SUBSETS, rng), rng)
        if contrast is not None:
            meanings += contrast.captions
    # Different captions of the clip, true of all of it or not.
    for meaning in dict.fromkeys(meanings):
        true = share(meaning, frames)
        name = "whole" if true == 1 else "nothing" if true == 0 else "part"
        if name != "part" or _PART <= true <= 1 - _PART:
            utterances[name][text(meaning, opening=opening)] = meaning
    if len(utterances["whole"]) <= REFERENCES or not all(utterances.values()):
        return None
    of_grade = [list(utterances[name]) for name in GRADES]
    chosen = in_order([words(sentences) for sentences in of_grade], rank, rng)
    candidates = tuple(sentences[at] for sentences, at in zip(of_grade, chosen, strict=True))
    # What is true of a whole clip is short as a rule: clips of which it cannot be long enough are left out.
    long = words(candidates)
    if (long - long.min() != rank).any():
        return None
    # One of the true captions is asked about; the references are others than that, each begun as it comes.
    others = [true for true in utterances["whole"] if true != candidates[0]]
    rows = sorted(rng.permutation(len(others))[:REFERENCES])
    references = tuple(text(utterances["whole"][others[i]], opening=one_of(CLIP_OPENINGS, rng)) for i in rows)
    return ClipCaptions(motion, frames, candidates, references)


#: How many images the gallery has, and captions for each.
IMAGES, CAPTIONS_EACH = 300, 2
#: Pixels to a side of every picture.
SIZE = 192

#: What draws the benchmarks of the catalog, of so many questions.
_DRAWN: Mapping[str, Callable[[int], Benchmark]] = {
    "world-quads": lambda n: sample.quads(n, size=SIZE, lazy=True),
    "world-choices": lambda n: sample.choices(n, size=SIZE, lazy=True),
    "world-statements": lambda n: sample.statements(n, size=SIZE, lazy=True),
    "world-gallery": lambda _: gallery(IMAGES, captions_each=CAPTIONS_EACH, size=SIZE, lazy=True),
    "world-rated": lambda n: ratings.rated(n, size=SIZE, lazy=True),
    "world-preferences": lambda n: ratings.preferences(n, size=SIZE, lazy=True),
    "world-clips": lambda n: clips(n, size=SIZE),
}


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """The benchmark of a card, of as many questions as it says; raises `DataError` where a file is named."""
    if data is not None:
        allowed = "no --data, or a folder that 'counterfoil world build' made"
        raise DataError(f"{card.title} is drawn, not read", where=data, allowed=allowed)
    if card.size is None:
        raise DataError("the card does not say how many questions to draw", where=card.name)
    return _DRAWN[card.name](card.size)
