"""`world-clips`: moving scenes and captions that are true of the whole clip, of a part of it, of nothing."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import permutations

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Rated
from counterfoil.data.records import Caption
from counterfoil.data.references import References
from counterfoil.data.videos import Video
from counterfoil.world.captions import Meaning, describe, text
from counterfoil.world.drawings import MOTIONS, Animation, moving
from counterfoil.world.edits import SUBSETS, edit
from counterfoil.world.ratings import GRADES, in_order, share, words
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
from counterfoil.world.scenes import Scene, one_of

#: References of a clip.
REFERENCES = 5
#: Ways to begin a caption of a clip.
OPENINGS = ("", "there is ", "here is ", "we see ")
#: A caption of a part is true of at least this share of the frames, and false of as many.
_PART = 0.2
#: Sentences about a clip that are tried, from its begin, its middle and its end, and edits of those.
_SAID, _EDITED = 24, 8


@dataclass(frozen=True)
class ClipCaptions:
    """A clip and what is said of it: one caption per grade, in the order of `GRADES`, and references."""

    motion: str
    frames: tuple[Scene, ...]
    candidates: tuple[str, ...]
    references: tuple[str, ...]


def clips(
    n: int,
    *,
    seed: int = 0,
    size: int = 192,
    style: str = "natural",
    progress: Progress = silent,
) -> Benchmark:
    """`n` rated captions of moving scenes, three to a clip; the same seed gives the same clips.

    The rating is 1 where the caption is true of every frame, 1/2 where it is true of some (a fifth to four
    fifths of them), 0 where it is true of none; where n is a multiple of 3 each comes as often, so that tau-c
    can be 1. References are five other captions that are true of the whole clip and say other things than the
    candidate does. Captions of one clip are a word apart in length, each grade being as often the
    longest. Groupings: `motion`, one of `MOTIONS`.

    Frames are drawn when they are looked at. Raises `InputError` for n below 1 and pictures too small to see,
    `UnknownNameError` for unknown styles.

    >>> made = clips(6, size=48)
    >>> made.questions.ratings[:, 0].tolist(), len(made.images), len(made.questions.references.row(0))
    ([1.0, 0.5, 0.0, 1.0, 0.5, 0.0], 2, 5)
    """
    check_number(n, "questions")
    check_size(size)
    check_styles([style])
    rng = stream("clips", seed)
    ranks = np.asarray(list(permutations(range(len(GRADES)))))
    told: list[ClipCaptions] = []
    while len(told) * len(GRADES) < n:
        if len(told) % len(ranks) == 0:
            ranks = rng.permutation(ranks)
        made = tell(MOTIONS[len(told) % len(MOTIONS)], ranks[len(told) % len(ranks)], rng)
        if made is not None:
            told.append(made)
            progress("making up clips", min(n, len(told) * len(GRADES)), n)
    rows = [(i, grade) for i in range(len(told)) for grade in range(len(GRADES))][:n]
    items = Items()
    captions = [items.caption(told[i].candidates[grade]) for i, grade in rows]
    references = [[items.caption(said) for said in one.references] for one in told]
    names = tuple(GRADES)
    return Benchmark(
        card=card_of("world-clips", n),
        images=tuple(
            Video(f"clip-{i:05d}", Animation(one.frames, size, style, where=f"clip {i} of the world"))
            for i, one in enumerate(told)
        ),
        captions=tuple(Caption(f"caption-{i:05d}", said) for said, i in items.texts.items()),
        questions=Rated(
            tuple(f"clip-{i:05d}-{names[grade]}" for i, grade in rows),
            captions=np.asarray(captions, dtype=np.int64),
            images=np.asarray([i for i, _ in rows], dtype=np.int64),
            ratings=np.asarray([[GRADES[names[grade]]] for _, grade in rows]),
            references=References.of([references[i] for i, _ in rows]),
            groupings={"motion": tuple(told[i].motion for i, _ in rows)},
        ),
        source=drawn_with(seed, size, style),
    )


def tell(motion: str, rank: Int64[ndarray, "grades"], rng: np.random.Generator) -> ClipCaptions | None:
    """A clip and what may be said of it; None where too little can.

    `rank` says of each grade how many words longer its caption is than the shortest (`told.in_order`).
    """
    frames = moving(motion, rng)
    # Each begins alike, or how it begins would make it longer.
    opening = one_of(OPENINGS, rng)
    said: dict[str, dict[str, Meaning]] = {name: {} for name in GRADES}
    for meaning in _meanings(frames, rng):
        true = share(meaning, frames)
        name = "whole" if true == 1 else "nothing" if true == 0 else "part"
        if name != "part" or _PART <= true <= 1 - _PART:
            said[name][text(meaning, opening=opening)] = meaning
    if len(said["whole"]) <= REFERENCES or not all(said.values()):
        return None
    of_grade = [list(said[name]) for name in GRADES]
    chosen = in_order([words(each) for each in of_grade], rank, rng)
    candidates = tuple(each[at] for each, at in zip(of_grade, chosen, strict=True))
    # What is true of a whole clip is short as a rule: clips of which it cannot be long enough are left out.
    long = words(candidates)
    if (long - long.min() != rank).any():
        return None
    # One of the true captions is asked about; the references are others than that, each begun as it comes.
    others = [true for true in said["whole"] if true != candidates[0]]
    rows = sorted(rng.permutation(len(others))[:REFERENCES])
    references = tuple(text(said["whole"][others[i]], opening=one_of(OPENINGS, rng)) for i in rows)
    return ClipCaptions(motion, frames, candidates, references)


def _meanings(frames: Sequence[Scene], rng: np.random.Generator) -> list[Meaning]:
    """Different captions of a clip, complete or not."""
    seen = [frames[0], frames[len(frames) // 2], frames[-1]]
    found = [describe(seen[k % 3], rng) for k in range(_SAID)]
    for k in range(_EDITED):
        contrast = edit(seen[2 * (k % 2)], one_of(SUBSETS, rng), rng)
        if contrast is not None:
            found += contrast.captions
    return list(dict.fromkeys(found))
