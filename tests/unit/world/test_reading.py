import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.errors import DataError
from counterfoil.world.captions import CLOSINGS, OPENINGS, Meaning, Phrase, describe, text
from counterfoil.world.scenes import ATTRIBUTES, CONTAINERS, RELATIONS, SHAPES, Scene, Thing, sample_scene
from counterfoil.world.truth import VOCABULARY, matches, positives, read
from world.english import random_meaning

#: What a phrase says: shape, size, texture, colour, count.
PHRASES = st.tuples(
    st.sampled_from([None, *SHAPES, *CONTAINERS]),
    *(st.sampled_from([None, *values]) for values in ATTRIBUTES.values()),
    st.integers(1, 4),
)


@given(
    st.lists(PHRASES, min_size=1, max_size=5),
    st.sampled_from([None, *RELATIONS]),
    st.sampled_from(list(CLOSINGS)),
    st.sampled_from(OPENINGS),
)
@settings(deadline=None)
def test_reading_undoes_speaking(phrases, relation, closed, opening):
    related = relation if len(phrases) > 1 else None
    meaning = Meaning(tuple(Phrase(*said) for said in phrases), related, closed)
    assert read(text(meaning, opening=opening)) == meaning


def test_round_trip_of_a_thousand():
    rng = np.random.default_rng(8)
    said = {}
    for _ in range(500):
        scene = sample_scene(rng)
        for meaning in (describe(scene, rng), random_meaning(scene, rng)):
            sentence = text(meaning, opening=OPENINGS[rng.integers(len(OPENINGS))])
            assert read(sentence) == meaning, sentence
            # One sentence has one meaning.
            assert said.setdefault(sentence, meaning) == meaning
            words = sentence.lower().replace(",", " ,").replace(";", " ;").replace(".", " .").split()
            assert set(words) <= VOCABULARY
    assert len(said) > 500


@pytest.mark.parametrize(
    "same",
    [
        "a large red star is above a moon.",
        "A red large star is above a moon.",
        "An large red star  is above an moon.",
        "THERE IS A LARGE RED STAR ABOVE A MOON.",
    ],
)
def test_a_little_freedom(same):
    assert read(same) == Meaning((Phrase("star", size="large", colour="red"), Phrase("moon")), "above")


@pytest.mark.parametrize(
    ("sentence", "message"),
    [
        ("A red stra.", "no caption says this word; given: stra; did you mean 'star'?"),
        ("A zebra.", "no caption says this word; given: zebra"),
        ("A red.", "expected the name of a shape after 'a red'; given: ."),
        ("Two star.", "expected the name of a shape, in the plural after 'two'; given: star"),
        ("A stars.", "expected the name of a shape after 'a'; given: stars"),
        ("A red blue star.", "expected one colour for a thing after 'a red'; given: blue"),
        ("A star", "expected a full stop at the end after 'a star'; given: the end"),
        ("A star. A moon.", "expected a full stop at the end after 'a star .'; given: a"),
        ("A star is a moon.", "expected one of to the left of, to the right of"),
        ("A star above a moon above a heart.", "expected a full stop at the end"),
        ("A star, a moon.", "expected 'and' before the last of several things"),
        ("Star.", "expected 'a', 'an' or a number; given: star"),
        ("", "expected 'a', 'an' or a number; given: the end"),
        ("A picture of.", "expected 'a', 'an' or a number after 'a picture of'; given: ."),
        ("A star is above.", "expected 'a', 'an' or a number after 'a star is above'; given: ."),
        ("A star and nothing else.", "expected 'a', 'an' or a number after 'a star and'; given: nothing"),
    ],
)
def test_what_cannot_be_read(sentence, message):
    with pytest.raises(DataError) as caught:
        read(sentence)
    assert str(caught.value).startswith(f"caption {sentence!r}: ")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_sentences_and_meanings_are_judged_alike():
    ring = Thing("ring", "large", "plain", "blue", x=0.5, y=0.5)
    scene = Scene((ring, Thing("star", "small", "dotted", "red", x=0.5, y=0.5)))
    told = [
        "A star is inside a ring.",
        "A ring is inside a star.",
        "Two stars.",
        "A blue ring around a star.",
    ]
    expected = [True, False, False, True]
    assert [matches(sentence, scene) for sentence in told] == expected
    assert [matches(read(sentence), scene) for sentence in told] == expected
    assert positives([told[0], *map(read, told[1:])], [scene])[:, 0].tolist() == expected
    with pytest.raises(DataError, match="given: stra; did you mean 'star'"):
        positives(["A star.", "A stra."], [scene])
