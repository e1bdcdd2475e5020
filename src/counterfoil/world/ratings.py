"""`world-rated` and `world-preferences`: captions of pictures that are right by degrees, and who says so.

A caption is right about a scene to one of four levels (`counterfoil.world.graded_captions`), its rating.
Simulated people can rate instead, each claim of a caption judged by itself; preferences are always votes.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np
from jaxtyping import Float64
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Preference, Rated
from counterfoil.data.records import Image
from counterfoil.data.references import References
from counterfoil.world.captions import Meaning, matches
from counterfoil.world.graded_captions import LEVELS, claims, levels, tell
from counterfoil.world.lazy_drawings import LazyDrawing
from counterfoil.world.people import Annotator, annotate
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
from counterfoil.world.scenes import Scene

#: Default voters on preferences: an odd number, so that there is always a majority.
VOTERS = tuple(Annotator(f"voter-{i:02d}", accuracy=(0.95, 0.9, 0.85, 0.8)[i % 4]) for i in range(25))
#: Between captions of which two levels preferences are asked, the better one first; all equally often.
PAIRS = tuple((better, worse) for worse, better in combinations(range(1, len(LEVELS) + 1), 2))[::-1]
#: Preferences asked about one image.
_PER_IMAGE = 3


@dataclass(frozen=True)
class GradedDrawing(LazyDrawing):
    """A scene drawn when it is read whose captions are right by degrees: `world:oracle` gives levels."""


def rated(
    n: int,
    *,
    seed: int = 0,
    size: int = 192,
    style: str = "natural",
    people: Sequence[Annotator] = (),
    lazy: bool = False,
    progress: Progress = silent,
) -> Benchmark:
    """`n` rated captions, four to an image, one of each level; the same seed gives the same bytes.

    The rating is the level, 4 for right to 1 for wrong. With `people` there is a column per person instead:
    each judges every claim of a caption by their own rates and gives the level of what they hold true.
    Candidates of an image differ by a word or so in length, in every order equally often. References are five
    other true captions, all of other meanings: the one that is asked about is left out of them (the policy
    "drop-reference").
    Groupings: `things`, how many the scene has.

    Where n is a multiple of 4 the levels come equally often, so that tau-c can be 1. `lazy` pictures are
    drawn when they are read. Raises `InputError` for n below 1 and pictures too small to see,
    `UnknownNameError` for unknown styles.

    >>> made = rated(8, size=48)
    >>> made.questions.ratings[:, 0].tolist(), len(made.images), len(made.questions.references.row(0))
    ([4.0, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0], 2, 5)
    """
    _check(n, size, style)
    told = tell(-(-n // len(LEVELS)), stream("rated", seed), progress)
    rows = [(i, at) for i in range(len(told)) for at in range(len(LEVELS), 0, -1)][:n]
    ratings = np.asarray([[at] for _, at in rows], dtype=np.float64)
    if people:
        asked = [(told[i].candidates[at - 1], told[i].scene) for i, at in rows]
        ratings = judged(asked, people, stream("rated", seed, 1))
    items = Items()
    images = [items.image(told[i].scene, style) for i, _ in rows]
    captions = [items.caption(told[i].said[at - 1]) for i, at in rows]
    references = [[items.caption(said) for said in one.references] for one in told]
    return Benchmark(
        card=card_of("world-rated", n),
        images=_weighed(items, size, lazy, progress),
        captions=items.captions(),
        questions=Rated(
            tuple(f"scene-{i:05d}-{LEVELS[at - 1]}" for i, at in rows),
            captions=np.asarray(captions, dtype=np.int64),
            images=np.asarray(images, dtype=np.int64),
            ratings=ratings,
            references=References.of([references[i] for i, _ in rows]),
            groupings={"things": tuple(_things(told[i].scene) for i, _ in rows)},
        ),
        source=drawn_with(seed, size, style),
    )


def preferences(
    n: int,
    *,
    seed: int = 0,
    size: int = 192,
    style: str = "natural",
    people: Sequence[Annotator] = VOTERS,
    lazy: bool = False,
    progress: Progress = silent,
) -> Benchmark:
    """`n` choices between two captions of an image of different levels, three to an image.

    Everybody of `people` says whether the first is the better one, rightly or wrongly by their rates; the
    label is what most say, and a coin where as many say both. By default that is what is so: that 13 of those
    25 voters err has a chance of about one in ten million. Which caption is first is a coin too. References
    as in `rated`, the same for both candidates. Groupings: `kind` ("right-nearly": of which levels they are).

    `lazy` and errors as `rated`; people's names must differ.

    >>> made = preferences(6, size=48)
    >>> made.questions.groupings["kind"][:3], len(made.images)
    (('right-nearly', 'right-partly', 'nearly-partly'), 2)
    """
    _check(n, size, style)
    told = tell(-(-n // _PER_IMAGE), stream("preferences", seed), progress)
    rng = stream("preferences", seed, 1)
    rows = [(k // _PER_IMAGE, PAIRS[k % len(PAIRS)]) for k in range(n)]
    first = rng.random(n) < 0.5
    yes = annotate(first, list(people), rng).said.sum(axis=0)
    votes = np.stack([yes, len(people) - yes], axis=1).astype(np.float64)
    coin = rng.random(n) < 0.5
    label = np.where(votes[:, 0] == votes[:, 1], coin, votes[:, 1] > votes[:, 0]).astype(np.int64)
    items = Items()
    images = [items.image(told[i].scene, style) for i, _ in rows]
    captions = [
        [items.caption(told[i].said[at - 1]) for at in (pair if front else pair[::-1])]
        for (i, pair), front in zip(rows, first, strict=True)
    ]
    references = [[items.caption(said) for said in one.references] for one in told]
    kinds = tuple("-".join(LEVELS[at - 1] for at in pair) for _, pair in rows)
    return Benchmark(
        card=card_of("world-preferences", n),
        images=_weighed(items, size, lazy, progress),
        captions=items.captions(),
        questions=Preference.between(
            tuple(f"{kind}-{k:05d}" for k, kind in enumerate(kinds)),
            np.asarray(captions, dtype=np.int64),
            np.asarray(images, dtype=np.int64),
            votes,
            label,
            references=References.of([references[i] for i, _ in rows]),
            groupings={"kind": kinds},
        ),
        source=drawn_with(seed, size, style),
    )


def judged(
    asked: Sequence[tuple[Meaning, Scene]], people: Sequence[Annotator], rng: np.random.Generator
) -> Float64[ndarray, "asked people"]:
    """What people rate captions of scenes: everybody judges each claim, and gives the level of the sum.

    >>> from counterfoil.world.reading import read
    >>> from counterfoil.world.scenes import Thing
    >>> scene = Scene((Thing("star", "small", "plain", "red", x=0.2, y=0.5),))
    >>> rng = np.random.default_rng(0)
    >>> judged([(read("A blue star."), scene)], [Annotator("sure"), Annotator("contrary", accuracy=0.0)], rng)
    array([[3., 3.]])
    """
    made = [claims(meaning) for meaning, _ in asked]
    counts = np.asarray([len(part) for part in made])
    truth = [matches(claim, scene) for part, (_, scene) in zip(made, asked, strict=True) for claim in part]
    said = annotate(np.asarray(truth, dtype=bool), list(people), rng).said
    starts = np.concatenate([[0], np.cumsum(counts)[:-1]])
    true = np.add.reduceat(said.astype(np.int64), starts, axis=1).T
    return levels(true, np.repeat(counts[:, None], len(people), axis=1)).astype(np.float64)


def _weighed(items: Items, size: int, lazy: bool, progress: Progress) -> tuple[Image, ...]:
    """The pictures; those that are drawn when read know that captions are right by degrees."""
    made = items.images(size, lazy=lazy, progress=progress)
    return tuple(
        replace(image, source=GradedDrawing(**vars(image.source)))
        if isinstance(image.source, LazyDrawing)
        else image
        for image in made
    )


def _things(scene: Scene) -> str:
    """How many things there are, in a word."""
    return f"{len(scene.things)} things"


def _check(n: int, size: int, style: str) -> None:
    check_number(n, "questions")
    check_size(size)
    check_styles([style])
