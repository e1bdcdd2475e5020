from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from counterfoil.world.captions import describe, matches, mention, speak, text
from counterfoil.world.scenes import CONTAINERS, sample_scene
from counterfoil.world.truth import positives
from world.english import true_by_reading

SEEDS = st.integers(0, 2**32 - 1)


@given(SEEDS)
@settings(deadline=None)
def test_a_caption_is_true_of_its_scene(seed):
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng, fewest=1, most=5, containers=0.5)
    for _ in range(5):
        meaning = describe(scene, rng)
        assert matches(meaning, scene)
        assert true_by_reading(text(meaning), scene)
        assert 1 <= len(meaning.phrases) <= 3
        assert len({*meaning.phrases}) == len(meaning.phrases)


@given(SEEDS)
@settings(deadline=None)
def test_a_seed_gives_the_same_caption(seed):
    scene = sample_scene(np.random.default_rng(seed))
    assert describe(scene, np.random.default_rng(seed)) == describe(scene, np.random.default_rng(seed))


def test_captions_are_varied_and_partial():
    rng = np.random.default_rng(2)
    scenes = [sample_scene(rng) for _ in range(2000)]
    told = [describe(scene, rng) for scene in scenes]
    phrases = Counter(len(meaning.phrases) for meaning in told)
    assert set(phrases) == {1, 2, 3}
    assert min(phrases.values()) > 200
    assert 0.2 < np.mean([meaning.relation is not None for meaning in told]) < 0.6
    assert len({meaning.relation for meaning in told}) == 7
    assert 0.03 < np.mean([any(p.count > 1 for p in meaning.phrases) for meaning in told]) < 0.3
    assert 0 < np.mean([meaning.closed == "things" for meaning in told]) < 0.1
    # Captions never mention what all containers are, nor that a thing is plain.
    for phrase in (phrase for meaning in told for phrase in meaning.phrases):
        assert phrase.texture != "plain"
        assert phrase.shape not in CONTAINERS or phrase.size is phrase.texture is None
    # Loose: about three captions in four are true of scenes they were not made for.
    assert np.mean(positives(told[:300], scenes).sum(axis=1) > 1) > 0.65


@given(SEEDS)
@settings(deadline=None)
def test_what_is_mentioned_is_so(seed):
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng, containers=0.5)
    for thing in scene.things:
        assert mention(thing, rng).fits(thing)
        assert mention(thing, rng, "shape", "colour").colour == thing.colour
        assert mention(thing, rng).said


@given(SEEDS)
@settings(deadline=None)
def test_phrases_speak_of_different_things(seed):
    rng = np.random.default_rng(seed)
    scene = sample_scene(rng, fewest=3, most=5)
    spoken = speak(scene.things, scene, rng)
    pointed = [thing for _, group in spoken for thing in group]
    assert len(set(pointed)) == len(pointed)
    for phrase, group in spoken:
        assert len(group) == phrase.count
        assert all(phrase.fits(thing) for thing in group)
        if phrase.count > 1:
            assert sum(phrase.fits(thing) for thing in scene.things) == phrase.count
