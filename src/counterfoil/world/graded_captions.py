"""Captions that are right by degrees: candidates of every level, and references."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.world.captions import OPENINGS, Meaning, text
from counterfoil.world.describing import describe
from counterfoil.world.edits import SUBSETS, edit
from counterfoil.world.grading import LEVELS, level_table, words
from counterfoil.world.sample import Progress, silent
from counterfoil.world.scenes import Scene, one_of, sample_scene

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
