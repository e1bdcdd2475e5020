"""Truth by degrees: how much of a caption is so, and in how much of a clip.

Nothing here is a judgement: a caption is cut into the claims it makes, and each is true of a scene or not.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.world import truth
from counterfoil.world.captions import Meaning, Phrase, matches
from counterfoil.world.scenes import Scene

#: What the levels of a picture's captions are called, from 1 up: the scale of Flickr8k-Expert.
LEVELS = ("wrong", "partly", "nearly", "right")
#: What a caption may be true of in a clip, and its grade.
GRADES = {"whole": 1.0, "part": 0.5, "nothing": 0.0}


def claims(meaning: Meaning) -> tuple[Meaning, ...]:
    """What the caption claims, each a caption of its own: the shapes, the things as described, and all of it.

    All of them are true exactly where the caption is.

    >>> from counterfoil.world.captions import text
    >>> from counterfoil.world.reading import read
    >>> [text(claim) for claim in claims(read("A red star is above a moon."))]
    ['A star.', 'A red star.', 'A moon.', 'A red star is above a moon.']
    """
    found: list[Meaning] = []
    for phrase in meaning.phrases:
        if phrase.shape is not None:
            found.append(Meaning((Phrase(phrase.shape),)))
        found.append(Meaning((phrase,)))
    return tuple(dict.fromkeys([*found, meaning]))


def level(meaning: Meaning, scene: Scene) -> int:
    """How much of the caption is true of the scene, 1 to 4.

    4 where all its claims are, 3 where half of them or more are, 2 where fewer are, 1 where none is.

    >>> from counterfoil.world.reading import read
    >>> from counterfoil.world.scenes import Thing
    >>> scene = Scene((Thing("star", "small", "plain", "red", x=0.2, y=0.5),))
    >>> [level(read(said), scene) for said in ("A red star.", "A blue star.", "A star and a moon.")]
    [4, 3, 2]
    """
    true = [matches(claim, scene) for claim in claims(meaning)]
    return int(levels(np.asarray([sum(true)]), np.asarray([len(true)]))[0])


def levels(true: Int64[ndarray, "*rows"], of: Int64[ndarray, "*rows"]) -> Int64[ndarray, "*rows"]:
    """The level of captions of which so many claims are true, of so many."""
    return np.where(true == of, 4, np.where(2 * true >= of, 3, np.where(true > 0, 2, 1)))


def level_table(meanings: Sequence[Meaning], scenes: Sequence[Scene]) -> Int64[ndarray, "captions scenes"]:
    """The level of every caption about every scene: what `level` says of each pair."""
    parts = [claims(meaning) for meaning in meanings]
    number = {claim: i for i, claim in enumerate(dict.fromkeys(claim for part in parts for claim in part))}
    true = truth.table(list(number), scenes)
    sums = np.asarray([true[[number[claim] for claim in part]].sum(axis=0) for part in parts])
    return levels(sums, np.asarray([[len(part)] * len(scenes) for part in parts]))


def share(meaning: Meaning, frames: Sequence[Scene]) -> float:
    """Of how many frames of a clip the caption is true, as a share."""
    known: dict[Scene, bool] = {}
    for scene in frames:
        if scene not in known:
            known[scene] = matches(meaning, scene)
    return sum(known[scene] for scene in frames) / len(frames)


def grade(meaning: Meaning, frames: Sequence[Scene]) -> float:
    """1 where the caption is true of the whole clip, of every frame; 1/2 of a part of it; 0 of nothing."""
    found = share(meaning, frames)
    return GRADES["whole" if found == 1 else "part" if found > 0 else "nothing"]


def words(said: Sequence[str]) -> Float64[ndarray, "captions"]:
    """How many words sentences have."""
    return np.asarray([len(sentence.split()) for sentence in said], dtype=np.float64)
