"""What captions mean, by hand and against a slow twin that reads the English."""

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.world.captions import OPENINGS, Meaning, Phrase, matches, text
from counterfoil.world.scenes import Scene, Thing, sample_scene
from world.english import random_meaning, true_by_reading


def test_checker_agrees_with_its_slow_twin():
    rng = np.random.default_rng(11)
    verdicts = {}
    for _ in range(1000):
        scene = sample_scene(rng, most=5, containers=0.6)
        meaning = random_meaning(scene, rng)
        said = text(meaning, opening=OPENINGS[rng.integers(len(OPENINGS))])
        answer = matches(meaning, scene)
        assert answer == true_by_reading(said, scene), said
        for kind in (
            meaning.closed,
            meaning.relation,
            f"{len(meaning.phrases)} phrases",
            f"up to {max(p.count for p in meaning.phrases)}",
        ):
            verdicts.setdefault(kind, []).append(answer)
    assert len(verdicts) == 2 + 7 + 3 + 4
    # Both answers must be common for every kind of caption, or the agreement says little.
    for kind, answers in verdicts.items():
        assert 0.03 < np.mean(answers) < 0.97, kind


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
    ],
)
def test_by_hand(meaning, answer):
    assert matches(meaning, SCENE) is answer


BLUE_RING = Thing("ring", "large", "plain", "blue", x=0.2, y=0.2)
HELD = Scene((BLUE_RING, *SCENE.things))


@pytest.mark.parametrize(
    ("meaning", "answer"),
    [
        (Meaning((Phrase("star"), Phrase("ring")), "inside"), True),
        (Meaning((Phrase("ring"), Phrase("star")), "around"), True),
        (Meaning((Phrase("ring"), Phrase("star")), "inside"), False),
        (Meaning((Phrase("star"), Phrase("box")), "inside"), False),
        (Meaning((Phrase("star", colour="blue"), Phrase("ring")), "inside"), False),
        # What lies inside is to no side.
        (Meaning((Phrase("star", colour="red"), Phrase("ring")), "above"), False),
        (Meaning((Phrase("star", colour="blue"), Phrase("ring")), "to the right of"), True),
        # A numeral is exact, an article is not.
        (Meaning((Phrase("star", count=2),)), True),
        (Meaning((Phrase("star", count=3),)), False),
        (Meaning((Phrase("star", colour="red", count=2),)), False),
        (Meaning((Phrase(colour="red", count=2), Phrase(colour="blue", count=2))), True),
        # The red star cannot be one of the two stars and one of the two red things as well.
        (Meaning((Phrase("star", count=2), Phrase(colour="red", count=2))), False),
        (Meaning((Phrase("star", count=2), Phrase("moon")), closed="things"), False),
        (Meaning((Phrase("star", count=2), Phrase("moon"), Phrase("ring")), closed="things"), True),
        # From each to each.
        (Meaning((Phrase("star", count=2), Phrase("moon")), "above"), True),
        (Meaning((Phrase("star", count=2), Phrase("moon")), "to the left of"), False),
        (Meaning((Phrase("star"), Phrase("ring"), Phrase("star", colour="blue")), "inside"), True),
        # One red star cannot be in the ring and elsewhere.
        (Meaning((Phrase("star"), Phrase("ring"), Phrase("star", colour="red")), "inside"), False),
    ],
)
def test_containers_and_counts_by_hand(meaning, answer):
    assert matches(meaning, HELD) is answer


@pytest.mark.parametrize(
    ("speak", "message"),
    [
        (lambda: Phrase("star", count=0), "one to four things; given: 0; allowed: 1 to 4"),
        (lambda: Phrase("star", count=5), "one to four things; given: 5"),
        (lambda: Meaning((Phrase("star"),) * 2, "beneath"), "unknown relation; given: beneath; allowed: to"),
        (lambda: Meaning((Phrase("star"),), "above"), "a relation of at least two; given: 1 phrases"),
        (lambda: Meaning(()), "at least one thing"),
    ],
)
def test_what_cannot_be_meant(speak, message):
    with pytest.raises(InputError, match=message):
        speak()


@pytest.mark.parametrize(
    ("meaning", "opening", "said"),
    [
        (Meaning((Phrase("star", texture="striped", size="small"),)), "", "A small striped star."),
        (Meaning((Phrase("star", colour="orange"),)), "there is ", "There is an orange star."),
        (Meaning((Phrase(colour="red"),), closed="things"), "", "A red shape, and nothing else."),
        (Meaning((Phrase("box", count=3),)), "there is ", "There are three boxes."),
        (Meaning((Phrase("star", count=2), Phrase())), "here is ", "Here are two stars and a shape."),
        (Meaning((Phrase("star", count=2), Phrase("moon")), "below"), "", "Two stars are below a moon."),
    ],
)
def test_english(meaning, opening, said):
    # What doctests of `text` do not say: plurals, words in their order, shapes of no name.
    assert text(meaning, opening=opening) == said
