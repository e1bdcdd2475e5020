"""Captions that are right by degrees: levels of truth, candidates of every level, and references."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.world import truth
from counterfoil.world.captions import OPENINGS, Meaning, Phrase, describe, matches, text
from counterfoil.world.edits import SUBSETS, edit
from counterfoil.world.sample import Progress, silent
from counterfoil.world.scenes import Scene, one_of, sample_scene

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


#: References of an image.
REFERENCES = 5
#: Edits of a scene whose captions are tried, and sentences tried for its true ones.
_EDITED, _SAID = 6, 60
#: Scenes of which more captions are drawn than are asked about, so that there are wrong ones of every length.
_SPARE = 40
#: Captions of a level that are looked at for one of the right length.
_LOOKED_AT = 40


@dataclass(frozen=True)
class GradedCaptions:
    """A scene, true sentences about it, and per level (1 to 4) a caption to ask about, also as said."""

    scene: Scene
    references: tuple[str, ...]
    candidates: tuple[Meaning, ...]
    said: tuple[str, ...]


def tell(n: int, rng: np.random.Generator, progress: Progress = silent) -> list[GradedCaptions]:
    """`n` different scenes with a candidate of each level and references.

    Wrong captions are edits of a scene's own ("nearly" as a rule) and what was said of others. Candidates of
    a scene are a word apart in length as a rule, each level as often the longest as any other, so that length
    tells nothing, and does not tie either.
    """
    scenes: dict[Scene, list[Meaning]] = {}
    pool: list[Meaning] = []
    edited: dict[Meaning, Scene] = {}
    while len(scenes) < n + _SPARE:
        scene = sample_scene(rng)
        true = list(dict.fromkeys(describe(scene, rng) for _ in range(_SAID)))
        if scene in scenes or len(true) <= REFERENCES:
            continue
        scenes[scene] = true
        pool += true[: REFERENCES + 1]
        for _ in range(_EDITED):
            contrast = edit(scene, one_of(SUBSETS, rng), rng)
            if contrast is not None:
                edited[contrast.captions[1]] = scene
        progress("making up scenes", min(n, len(scenes)), n)
    return _told(n, scenes, list(dict.fromkeys([*pool, *edited])), edited, rng)


def _told(
    n: int,
    scenes: dict[Scene, list[Meaning]],
    pool: list[Meaning],
    edited: dict[Meaning, Scene],
    rng: np.random.Generator,
) -> list[GradedCaptions]:
    table = level_table(pool, list(scenes))
    # How long captions are, without an opening and with one, which takes the verb of a relation away.
    long = [words([text(meaning, opening=opening) for meaning in pool]) for opening in OPENINGS[:2]]
    number = {scene: i for i, scene in enumerate(scenes)}
    source = np.asarray([number[edited[meaning]] if meaning in edited else -1 for meaning in pool])
    ranks = np.asarray(list(permutations(range(len(LEVELS)))))
    told: list[GradedCaptions] = []
    for column, (scene, true) in enumerate(scenes.items()):
        fits = [np.flatnonzero(table[:, column] == at) for at in range(1, len(LEVELS))]
        if not all(map(len, fits)):
            continue
        # Where the scene's own caption was changed a little, that is the wrong one that is hard to tell.
        own = fits[-1][source[fits[-1]] == column]
        fits[-1] = own if len(own) else fits[-1]
        if len(told) % len(ranks) == 0:
            ranks = rng.permutation(ranks)
        opening = one_of(OPENINGS, rng)
        spoken = long[bool(opening)]
        wrong = [rng.permutation(rows)[:_LOOKED_AT] for rows in fits]
        own_words = words([text(each, opening=OPENINGS[bool(opening)]) for each in true])
        lengths = [*(spoken[rows] for rows in wrong), own_words]
        chosen = in_order(lengths, ranks[len(told) % len(ranks)], rng)
        right = true[chosen[-1]]
        candidates = (*(pool[rows[at]] for rows, at in zip(wrong, chosen, strict=False)), right)
        said = tuple(text(meaning, opening=opening) for meaning in candidates)
        others = [meaning for meaning in true if meaning != right][:REFERENCES]
        references = tuple(text(meaning, opening=one_of(OPENINGS, rng)) for meaning in others)
        told.append(GradedCaptions(scene, references, candidates, said))
        if len(told) == n:
            break
    return told


def in_order(
    lengths: Sequence[Float64[ndarray, "_"]], rank: Int64[ndarray, "kinds"], rng: np.random.Generator
) -> list[int]:
    """One of each kind, by their lengths: the one of rank 0 the shortest, each next one a word longer.

    Where no length to begin with gives just that, the one that comes nearest is taken, of several one by
    chance.

    >>> rng = np.random.default_rng(0)
    >>> in_order([np.array([3.0, 8.0]), np.array([9.0, 5.0]), np.array([7.0, 2.0])], np.array([1, 2, 0]), rng)
    [1, 0, 0]
    """
    starts = np.unique(np.concatenate([each - at for each, at in zip(lengths, rank, strict=True)]))
    misses = [abs(each - at - starts[:, None]) for each, at in zip(lengths, rank, strict=True)]
    missed = np.sum([each.min(axis=1) for each in misses], axis=0)
    start = one_of(np.flatnonzero(missed == missed.min()).tolist(), rng)
    rows = [each[start] for each in misses]
    return [one_of(np.flatnonzero(row == row.min()).tolist(), rng) for row in rows]
