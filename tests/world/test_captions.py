"""The checker against a slow twin that knows nothing of meanings: it reads the English."""

import re
from itertools import product

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.world.captions import OPENINGS, Meaning, Phrase, matches, text
from counterfoil.world.scenes import Scene, Thing, sample_scene

WORDS = {
    "shape": ["circle", "square", "triangle", "star", "heart", "diamond", "moon", "flower"],
    "size": ["small", "large"],
    "texture": ["plain", "striped", "dotted"],
    "colour": ["red", "orange", "yellow", "green", "blue", "purple", "pink"],
}
KIND = {word: kind for kind, words in WORDS.items() for word in words}


def true_by_reading(sentence: str, scene: Scene) -> bool:
    """Whether an English caption is true of a scene: every way to point at things is tried, one by one."""
    rest = sentence.rstrip(".").lower()
    rest, closes_things, _ = rest.partition(", and nothing else")
    rest, closes_textures, _ = rest.partition(", with no other stripes or dots")
    rest = re.sub(r"^(there is |a picture of )", "", rest)
    relation = None
    for words in ("to the left of", "to the right of", "above", "below"):
        if words in rest:
            relation = words
            rest = re.sub(rf" (is )?{words} ", " and ", rest)
    phrases = [re.sub(r"^an? ", "", part).split() for part in re.split(r", | and ", rest)]

    def true_of(pointed: tuple[int, ...]) -> bool:
        if len(set(pointed)) < len(pointed):
            return False
        things = [scene.things[i] for i in pointed]
        for words, thing in zip(phrases, things, strict=True):
            for word in words:
                if word != "shape" and getattr(thing, KIND[word]) != word:
                    return False
        if relation is not None:
            (a, b) = things
            far = {
                "to the left of": b.x - a.x,
                "to the right of": a.x - b.x,
                "above": b.y - a.y,
                "below": a.y - b.y,
            }[relation]
            # Neighbours of the grid lie 0.315 apart give or take 0.03, others in line by 0.03 at most.
            if far < 0.2:
                return False
        if closes_things and len(scene.things) > len(things):
            return False
        if closes_textures:
            spoken = {
                i for i, words in zip(pointed, phrases, strict=True) if set(words) & {*WORDS["texture"]}
            }
            for i, thing in enumerate(scene.things):
                if thing.texture in ("striped", "dotted") and i not in spoken:
                    return False
        return True

    return any(true_of(pointed) for pointed in product(range(len(scene.things)), repeat=len(phrases)))


def random_meaning(scene: Scene, rng: np.random.Generator) -> Meaning:
    """A caption loosely after the scene: about half of what it says is taken from there."""
    count = int(rng.integers(1, 4))

    def phrase() -> Phrase:
        thing = scene.things[rng.integers(len(scene.things))]
        said = {
            kind: getattr(thing, kind) if rng.random() < 0.9 else str(rng.choice(words))
            for kind, words in WORDS.items()
            if rng.random() < 0.4
        }
        return Phrase(**said)

    related = count == 2 and rng.random() < 0.6
    relation = str(rng.choice(["to the left of", "to the right of", "above", "below"])) if related else None
    closed = str(rng.choice(["", "", "things", "textures"]))
    return Meaning(tuple(phrase() for _ in range(count)), relation, closed)


def test_checker_agrees_with_its_slow_twin():
    rng = np.random.default_rng(11)
    verdicts = {"": [], "things": [], "textures": []}
    for _ in range(1500):
        scene = sample_scene(rng)
        meaning = random_meaning(scene, rng)
        opening = OPENINGS[rng.integers(len(OPENINGS))]
        said = text(meaning, opening=opening)
        assert matches(meaning, scene) == true_by_reading(said, scene), said
        verdicts[meaning.closed].append(matches(meaning, scene))
    # Both answers must be common for every kind of caption, or the agreement says little.
    for closed, answers in verdicts.items():
        assert 0.05 < np.mean(answers) < 0.95, closed


RED_STAR = Thing("star", "small", "plain", "red", x=0.2, y=0.2)
BLUE_STAR = Thing("star", "large", "plain", "blue", x=0.8, y=0.2)
DOTTED_MOON = Thing("moon", "large", "dotted", "red", x=0.8, y=0.8)
SCENE = Scene((RED_STAR, BLUE_STAR, DOTTED_MOON))


@pytest.mark.parametrize(
    ("meaning", "answer"),
    [
        (Meaning((Phrase("star"),)), True),
        (Meaning((Phrase(),)), True),
        (Meaning((Phrase("heart"),)), False),
        (Meaning((Phrase("star", colour="red", size="large"),)), False),
        # Two stars are two things: one star cannot be both.
        (Meaning((Phrase("star"), Phrase("star"))), True),
        (Meaning((Phrase("star"), Phrase("star", colour="red"))), True),
        (Meaning((Phrase("star", colour="red"), Phrase("star", size="small"))), False),
        (Meaning((Phrase("star"), Phrase("star")), "to the left of"), True),
        (Meaning((Phrase("star", colour="blue"), Phrase("star")), "to the left of"), False),
        # The red star is to the left of the moon, and above it too.
        (Meaning((Phrase("star", colour="red"), Phrase("moon")), "to the left of"), True),
        (Meaning((Phrase("star", colour="red"), Phrase("moon")), "above"), True),
        (Meaning((Phrase("star"), Phrase("moon")), "below"), False),
        (Meaning((Phrase("star"), Phrase("moon")), closed="things"), False),
        (Meaning((Phrase("star"), Phrase("moon"), Phrase("star")), closed="things"), True),
        (Meaning((Phrase("star"), Phrase("moon", texture="dotted")), closed="textures"), True),
        # The dots are there but not said, and nothing else may have any.
        (Meaning((Phrase("star"), Phrase("moon")), closed="textures"), False),
        (Meaning((Phrase("star", texture="plain"),), closed="textures"), False),
    ],
)
def test_by_hand(meaning, answer):
    assert matches(meaning, SCENE) is answer


def test_a_relation_takes_two():
    with pytest.raises(InputError, match="a relation of exactly two; given: 1 phrases"):
        Meaning((Phrase("star"),), "above")
    with pytest.raises(InputError, match="at least one thing"):
        Meaning(())


@pytest.mark.parametrize(
    ("meaning", "opening", "said"),
    [
        (Meaning((Phrase("star", texture="striped", size="small"),)), "", "A small striped star."),
        (Meaning((Phrase("star", colour="orange"),)), "there is ", "There is an orange star."),
        (
            Meaning((Phrase("star"), Phrase("moon")), "to the right of"),
            "",
            "A star is to the right of a moon.",
        ),
        (
            Meaning((Phrase("star"), Phrase("moon", texture="dotted")), closed="textures"),
            "a picture of ",
            "A picture of a star and a dotted moon, with no other stripes or dots.",
        ),
        (Meaning((Phrase(colour="red"),), closed="things"), "", "A red shape, and nothing else."),
    ],
)
def test_english(meaning, opening, said):
    assert text(meaning, opening=opening) == said
