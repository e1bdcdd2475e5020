"""`world-clips`: moving scenes and captions that are true of the whole clip, of a part of it, of nothing."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.ratings import Rated
from counterfoil.data.records import Caption
from counterfoil.data.references import References
from counterfoil.data.videos import Video
from counterfoil.world.captions import Meaning, text
from counterfoil.world.describing import describe
from counterfoil.world.edits import SUBSETS, edit
from counterfoil.world.grading import GRADES, share, words
from counterfoil.world.moving import MOTIONS, Reel, moving
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
class Told:
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
    candidate does. Captions of one clip are about equally long. Groupings: `motion`, one of `MOTIONS`.

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
    told: list[Told] = []
    while len(told) * len(GRADES) < n:
        made = tell(MOTIONS[len(told) % len(MOTIONS)], rng)
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
            Video(f"clip-{i:05d}", Reel(one.frames, size, style, where=f"clip {i} of the world"))
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


def tell(motion: str, rng: np.random.Generator) -> Told | None:
    """A clip and what may be said of it; None where too little can."""
    frames = moving(motion, rng)
    said: dict[str, dict[str, Meaning]] = {name: {} for name in GRADES}
    for meaning in _meanings(frames, rng):
        true = share(meaning, frames)
        name = "whole" if true == 1 else "nothing" if true == 0 else "part"
        if name != "part" or _PART <= true <= 1 - _PART:
            said[name][text(meaning, opening=one_of(OPENINGS, rng))] = meaning
    if len(said["whole"]) <= REFERENCES or not all(said.values()):
        return None
    part = one_of(list(said["part"]), rng)
    candidates = tuple(part if name == "part" else _as_long(part, list(said[name])) for name in GRADES)
    # One of the true captions is asked about; the references are all others than that.
    others = [true for true in said["whole"] if true != candidates[0]]
    chosen = rng.permutation(len(others))[:REFERENCES]
    return Told(motion, frames, candidates, tuple(others[i] for i in sorted(chosen)))


def _meanings(frames: Sequence[Scene], rng: np.random.Generator) -> list[Meaning]:
    """Different things that somebody might say who saw the clip well, or badly."""
    seen = [frames[0], frames[len(frames) // 2], frames[-1]]
    found = [describe(seen[k % 3], rng) for k in range(_SAID)]
    for k in range(_EDITED):
        contrast = edit(seen[2 * (k % 2)], one_of(SUBSETS, rng), rng)
        if contrast is not None:
            found += contrast.captions
    return list(dict.fromkeys(found))


def _as_long(said: str, choices: Sequence[str]) -> str:
    """The first of the choices that is nearest in words, so that length tells nothing."""
    return choices[int(np.argmin(abs(words(choices) - len(said.split()))))]
