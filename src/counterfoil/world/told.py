"""What is said of scenes, from right to wrong by degrees: candidates of every level, and references."""

from dataclasses import dataclass

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
class Told:
    """A scene, true sentences about it, and per level (1 to 4) a caption to ask about, also as said."""

    scene: Scene
    references: tuple[str, ...]
    candidates: tuple[Meaning, ...]
    said: tuple[str, ...]


def tell(n: int, rng: np.random.Generator, progress: Progress = silent) -> list[Told]:
    """`n` different scenes with a candidate of each level and references.

    Wrong captions are edits of a scene's own ("nearly" as a rule) and what was said of others.
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
) -> list[Told]:
    table = level_table(pool, list(scenes))
    long = words([text(meaning) for meaning in pool])
    number = {scene: i for i, scene in enumerate(scenes)}
    source = np.asarray([number[edited[meaning]] if meaning in edited else -1 for meaning in pool])
    told: list[Told] = []
    for column, (scene, true) in enumerate(scenes.items()):
        fits = [np.flatnonzero(table[:, column] == at) for at in range(1, len(LEVELS))]
        if not all(map(len, fits)):
            continue
        # Where the scene's own caption was changed a little, that is the wrong one that is hard to tell, and
        # there are few: the others are as long as that.
        own = fits[-1][source[fits[-1]] == column]
        nearly = pool[one_of((own if len(own) else fits[-1]).tolist(), rng)]
        asked = len(text(nearly).split())
        wrong = [pool[_as_long(rng.permutation(rows)[:_LOOKED_AT], long, asked)] for rows in fits[:-1]]
        right = true[_as_long(np.arange(len(true)), words([text(meaning) for meaning in true]), asked)]
        candidates = (*wrong, nearly, right)
        others = [meaning for meaning in true if meaning != right][:REFERENCES]
        spoken = [text(meaning, opening=one_of(OPENINGS, rng)) for meaning in (*candidates, *others)]
        split = len(LEVELS)
        told.append(Told(scene, tuple(spoken[split:]), candidates, tuple(spoken[:split])))
        if len(told) == n:
            break
    return told


def _as_long(rows: Int64[ndarray, "some"], long: Float64[ndarray, "all"], asked: int) -> int:
    """The row whose caption is nearest to so many words, so that length tells nothing."""
    return int(rows[np.argmin(abs(long[rows] - asked))])
