"""`world-rated` and `world-preferences`: captions of pictures that are right by degrees.

A caption is right about a scene to one of four levels, its rating; preferences are votes of simulated people.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations, permutations
from typing import Unpack

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Preference, Rated
from counterfoil.benchmarks.references import References
from counterfoil.world import truth
from counterfoil.world.captions import OPENINGS, Meaning, Phrase, describe, matches, text
from counterfoil.world.edits import SUBSETS, edit
from counterfoil.world.painting import LazyDrawing
from counterfoil.world.people import Annotator, annotate
from counterfoil.world.sample import DrawingOptions, DrawingSettings, Items, Progress, silent, stream
from counterfoil.world.scenes import Scene, one_of, sample_scene

#: What the levels of a picture's captions are called, from 1 up: the scale of Flickr8k-Expert.
LEVELS = ("wrong", "partly", "nearly", "right")


def claims(meaning: Meaning) -> tuple[Meaning, ...]:
    """What the caption claims, each a caption of its own: the shapes, the things as described, and all of it.

    >>> from counterfoil.world.captions import text
    >>> from counterfoil.world.truth import read
    >>> [text(claim) for claim in claims(read("A red star is above a moon."))]
    ['A star.', 'A red star.', 'A moon.', 'A red star is above a moon.']
    """
    parts: list[Meaning] = []
    for phrase in meaning.phrases:
        if phrase.shape is not None:
            parts.append(Meaning((Phrase(phrase.shape),)))
        parts.append(Meaning((phrase,)))
    return tuple(dict.fromkeys([*parts, meaning]))


def level(meaning: Meaning, scene: Scene) -> int:
    """How much of the caption is true: 4 where all its claims are, 3 where half or more, 2 fewer, 1 none."""
    true = [matches(claim, scene) for claim in claims(meaning)]
    return int(levels(np.asarray([sum(true)]), np.asarray([len(true)]))[0])


def levels(true: Int64[ndarray, "*rows"], of: Int64[ndarray, "*rows"]) -> Int64[ndarray, "*rows"]:
    """The level of captions, from the number of their true claims and of all their claims."""
    return np.where(true == of, 4, np.where(2 * true >= of, 3, np.where(true > 0, 2, 1)))


def level_table(meanings: Sequence[Meaning], scenes: Sequence[Scene]) -> Int64[ndarray, "captions scenes"]:
    """The level of every caption about every scene: what `level` says of each pair."""
    parts = [claims(meaning) for meaning in meanings]
    number = {claim: i for i, claim in enumerate(dict.fromkeys(claim for part in parts for claim in part))}
    true = truth.table(list(number), scenes)
    sums = np.asarray([true[[number[claim] for claim in part]].sum(axis=0) for part in parts])
    return levels(sums, np.asarray([[len(part)] * len(scenes) for part in parts]))


def words(sentences: Sequence[str]) -> Float64[ndarray, "captions"]:
    return np.asarray([len(sentence.split()) for sentence in sentences], dtype=np.float64)


#: References of an image.
REFERENCES = 5
#: Edits of a scene whose captions are tried, and sentences tried for its true ones.
_EDITED, _TRUE = 6, 60
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
    sentences: tuple[str, ...]


def generate_captions(n: int, rng: np.random.Generator, progress: Progress = silent) -> list[GradedCaptions]:
    """`n` different scenes with a candidate of each level and references.

    Wrong captions are edits of a scene's own ("nearly" as a rule) and what was said of others. Candidates are
    a word apart in length as a rule, each level as often the longest, so that length tells nothing.
    """
    scenes: dict[Scene, list[Meaning]] = {}
    pool: list[Meaning] = []
    edited: dict[Meaning, Scene] = {}
    while len(scenes) < n + _SPARE:
        scene = sample_scene(rng)
        true = list(dict.fromkeys(describe(scene, rng) for _ in range(_TRUE)))
        if scene in scenes or len(true) <= REFERENCES:
            continue
        scenes[scene] = true
        pool += true[: REFERENCES + 1]
        for _ in range(_EDITED):
            pair = edit(scene, one_of(SUBSETS, rng), rng)
            if pair is not None:
                edited[pair.captions[1]] = scene
        progress("making up scenes", min(n, len(scenes)), n)
    pool = list(dict.fromkeys([*pool, *edited]))
    table = level_table(pool, list(scenes))
    # How long captions are, without an opening and with one, which takes the verb of a relation away.
    long = [words([text(meaning, opening=opening) for meaning in pool]) for opening in OPENINGS[:2]]
    number = {scene: i for i, scene in enumerate(scenes)}
    source = np.asarray([number[edited[meaning]] if meaning in edited else -1 for meaning in pool])
    ranks = np.asarray(list(permutations(range(len(LEVELS)))))
    generated: list[GradedCaptions] = []
    for column, (scene, true) in enumerate(scenes.items()):
        fits = [np.flatnonzero(table[:, column] == pick) for pick in range(1, len(LEVELS))]
        if not all(map(len, fits)):
            continue
        # Where the scene's own caption was changed a little, that is the wrong one that is hard to tell.
        column_fits = fits[-1][source[fits[-1]] == column]
        fits[-1] = column_fits if len(column_fits) else fits[-1]
        if len(generated) % len(ranks) == 0:
            ranks = rng.permutation(ranks)
        opening = one_of(OPENINGS, rng)
        spoken = long[bool(opening)]
        wrong = [rng.permutation(rows)[:_LOOKED_AT] for rows in fits]
        own_words = words([text(true_meaning, opening=OPENINGS[bool(opening)]) for true_meaning in true])
        lengths = [*(spoken[rows] for rows in wrong), own_words]
        chosen = in_order(lengths, ranks[len(generated) % len(ranks)], rng)
        right = true[chosen[-1]]
        candidates = (*(pool[rows[pick]] for rows, pick in zip(wrong, chosen, strict=False)), right)
        sentences = tuple(text(meaning, opening=opening) for meaning in candidates)
        others = [meaning for meaning in true if meaning != right][:REFERENCES]
        references = tuple(text(meaning, opening=one_of(OPENINGS, rng)) for meaning in others)
        generated.append(GradedCaptions(scene, references, candidates, sentences))
        if len(generated) == n:
            break
    return generated


def in_order(
    lengths: Sequence[Float64[ndarray, "_"]], rank: Int64[ndarray, "kinds"], rng: np.random.Generator
) -> list[int]:
    """One of each kind, by their lengths: rank 0 the shortest, each next one a word longer if there is one.

    >>> rng = np.random.default_rng(0)
    >>> in_order([np.array([3.0, 8.0]), np.array([9.0, 5.0]), np.array([7.0, 2.0])], np.array([1, 2, 0]), rng)
    [1, 0, 0]
    """
    starts = np.unique(np.concatenate([kind - shift for kind, shift in zip(lengths, rank, strict=True)]))
    misses = [abs(kind - shift - starts[:, None]) for kind, shift in zip(lengths, rank, strict=True)]
    missed = np.sum([kind.min(axis=1) for kind in misses], axis=0)
    start = one_of(np.flatnonzero(missed == missed.min()).tolist(), rng)
    rows = [kind[start] for kind in misses]
    return [one_of(np.flatnonzero(row == row.min()).tolist(), rng) for row in rows]


#: Default voters on preferences: an odd number, so that there is always a majority.
VOTERS = tuple(Annotator(f"voter-{i:02d}", accuracy=(0.95, 0.9, 0.85, 0.8)[i % 4]) for i in range(25))
#: Between captions of which two levels preferences are asked, the better one first; all equally often.
PAIRS = tuple((better, worse) for worse, better in combinations(range(1, len(LEVELS) + 1), 2))[::-1]
#: Preferences asked about one image.
_PER_IMAGE = 3


class GradedDrawing(LazyDrawing):
    """A scene drawn when it is read whose captions are right by degrees."""


def rated(n: int, *, style: str = "natural", **options: Unpack[DrawingOptions]) -> Benchmark:
    """`n` rated captions, four to an image, one of each level; the same seed gives the same bytes.

    The rating is the level, 4 for right to 1 for wrong. Candidates of an image differ by a word or so in
    length, in every order equally often. References are five other true captions. Grouping: `things`, how
    many the scene has. Where n is a multiple of 4 the levels come equally often, so that tau-c can be 1.

    >>> made = rated(8, size=48)
    >>> made.questions.ratings[:, 0].tolist(), len(made.images), len(made.questions.references.row(0))
    ([4.0, 3.0, 2.0, 1.0, 4.0, 3.0, 2.0, 1.0], 2, 5)
    """
    drawing = DrawingSettings.checked(n, "questions", [style], options)
    generated = generate_captions(-(-n // len(LEVELS)), stream("rated", drawing.seed), drawing.progress)
    rows = [(i, grade) for i in range(len(generated)) for grade in range(len(LEVELS), 0, -1)][:n]
    items = Items(drawing=GradedDrawing)
    images = items.pictured((generated[i].scene for i, _ in rows), style)
    captions = [items.caption(generated[i].sentences[grade - 1]) for i, grade in rows]
    references = [[items.caption(sentence) for sentence in one.references] for one in generated]
    questions = Rated(
        tuple(f"scene-{i:05d}-{LEVELS[grade - 1]}" for i, grade in rows),
        captions=np.asarray(captions, dtype=np.int64),
        images=images,
        ratings=np.asarray([[grade] for _, grade in rows], dtype=np.float64),
        references=References.of([references[i] for i, _ in rows]),
        groupings={"things": tuple(f"{len(generated[i].scene.things)} things" for i, _ in rows)},
    )
    return items.benchmark("world-rated", questions, drawing)


def preferences(n: int, *, style: str = "natural", **options: Unpack[DrawingOptions]) -> Benchmark:
    """`n` choices between two captions of an image of different levels, three to an image.

    Each of `VOTERS` says whether the first is the better one, rightly or wrongly by their rates; the label is
    what most say, which is what is so. Which caption is first is a coin. References as in `rated`. Grouping:
    `kind` ("right-nearly").

    >>> made = preferences(6, size=48)
    >>> made.questions.groupings["kind"][:3], len(made.images)
    (('right-nearly', 'right-partly', 'nearly-partly'), 2)
    """
    drawing = DrawingSettings.checked(n, "questions", [style], options)
    generated = generate_captions(-(-n // _PER_IMAGE), stream("preferences", drawing.seed), drawing.progress)
    rng = stream("preferences", drawing.seed, 1)
    rows = [(k // _PER_IMAGE, PAIRS[k % len(PAIRS)]) for k in range(n)]
    first = rng.random(n) < 0.5
    yes = annotate(first, VOTERS, rng).votes.sum(axis=0)
    votes = np.stack([yes, len(VOTERS) - yes], axis=1).astype(np.float64)
    label = (votes[:, 1] > votes[:, 0]).astype(np.int64)
    items = Items(drawing=GradedDrawing)
    images = items.pictured((generated[i].scene for i, _ in rows), style)
    captions = [
        [items.caption(generated[i].sentences[j - 1]) for j in (pair if front else pair[::-1])]
        for (i, pair), front in zip(rows, first, strict=True)
    ]
    references = [[items.caption(sentence) for sentence in one.references] for one in generated]
    kinds = tuple("-".join(LEVELS[i - 1] for i in pair) for _, pair in rows)
    questions = Preference.between(
        tuple(f"{kind}-{k:05d}" for k, kind in enumerate(kinds)),
        np.asarray(captions, dtype=np.int64),
        images,
        votes,
        label,
        references=References.of([references[i] for i, _ in rows]),
        groupings={"kind": kinds},
    )
    return items.benchmark("world-preferences", questions, drawing)
