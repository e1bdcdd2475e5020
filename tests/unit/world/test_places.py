"""Places of things: against pictures drawn with and without each, and against the palette."""

import numpy as np
import pytest

from counterfoil.world.painting import PALETTE, draw, masks
from counterfoil.world.sample import quads
from counterfoil.world.scenes import Scene, sample_scene
from counterfoil.world.truth import SAYS, read, spoken_of


@pytest.mark.parametrize("seed", range(6))
def test_a_mask_is_where_the_thing_changes_the_picture(seed: int) -> None:
    scene = sample_scene(np.random.default_rng(seed))
    whole = np.asarray(draw(scene, 192)).astype(int)
    found = masks(scene, 192)
    assert not (found.sum(axis=0) > 1).any()
    for number, (mask, thing) in enumerate(zip(found, scene.things, strict=True)):
        others = tuple(other for k, other in enumerate(scene.things) if k != number)
        # With the light and grain of the whole scene, so that nothing but the thing and its shadow differs.
        without = np.asarray(draw(Scene(others, scene.paper), 192, light=scene)).astype(int)
        changed = np.abs(whole - without).max(axis=2) > 8
        # The ink of stripes and dots is as light as the sheet.
        assert changed[mask].mean() > (0.98 if thing.texture == "plain" else 0.5)
        near = np.abs(whole - PALETTE[thing.colour]).max(axis=2) < 40
        if thing.texture == "plain":
            assert near[mask].mean() > 0.85
        assert (near & changed)[~mask].mean() < 0.005


def test_a_word_speaks_of_what_a_caption_says_by_it() -> None:
    benchmark = quads(40, size=32)
    words = {word for caption in benchmark.captions for word in (caption.text or "").strip(".").split()}
    for number, image in enumerate(benchmark.images):
        scene = sample_scene(np.random.default_rng(number))
        for word in words:
            name, value = SAYS.get(word.lower().strip(",;."), ("", ""))
            own = [k for k, thing in enumerate(scene.things) if name and getattr(thing, name) == value]
            assert spoken_of(word.strip(",;."), scene) == own, image.id
    said = {
        value for caption in benchmark.captions for p in read(caption.text or "").phrases for value in p.said
    }
    assert said <= set(SAYS.values())
