from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from counterfoil.data.records import decode
from counterfoil.world.render import PALETTE, RADII, SHEETS, draw, encode
from counterfoil.world.sample import contrasts
from counterfoil.world.scenes import COLOURS, PAPERS, SHAPES, SIZES, TEXTURES, Scene, Thing, sample_scene


def one(**changes) -> Scene:
    return Scene((replace(Thing("circle", "large", "plain", "red", x=0.5, y=0.5), **changes),))


def pixels(scene: Scene, size: int = 96) -> np.ndarray:
    return np.asarray(draw(scene, size), dtype=np.float64)


@pytest.mark.parametrize("size", [32, 97, 192])
def test_size_and_mode(size):
    picture = draw(sample_scene(np.random.default_rng(0)), size)
    assert (picture.size, picture.mode) == ((size, size), "RGB")


def test_same_scene_same_bytes():
    scene = sample_scene(np.random.default_rng(4))
    first = encode(draw(scene))
    assert encode(draw(scene)) == first
    assert decode(first, where="a test").size == (192, 192)


def test_drawing_one_scene_leaves_no_trace_on_the_next():
    scene = sample_scene(np.random.default_rng(4))
    before = pixels(scene)
    draw(sample_scene(np.random.default_rng(5)), 96)
    np.testing.assert_array_equal(pixels(scene), before)


def test_every_value_can_be_drawn_and_seen():
    for name, values in (("shape", SHAPES), ("size", SIZES), ("texture", TEXTURES), ("colour", COLOURS)):
        pictures = [pixels(one(**{name: value})) for value in values]
        for a, b in combinations(pictures, 2):
            # At least half a per cent of the pixels change plainly.
            assert (np.abs(a - b).max(axis=2) > 30).mean() > 0.005, name
    assert set(SHEETS) == set(PAPERS)
    assert set(PALETTE) == set(COLOURS)
    assert set(RADII) == set(SIZES)


def test_both_pictures_of_a_contrast_can_be_told_apart():
    for contrast in contrasts(140, seed=2):
        a, b = (pixels(scene) for scene in contrast.scenes)
        assert (np.abs(a - b).max(axis=2) > 30).mean() > 0.002, contrast


def test_things_are_where_the_scene_says():
    """The red of a red circle has its middle at the circle's centre, to a pixel."""
    picture = pixels(one(x=0.2, y=0.75), 100)
    red = picture[:, :, 0] - picture[:, :, 1] > 100
    rows, columns = np.nonzero(red)
    assert columns.mean() + 0.5 == pytest.approx(20, abs=1)
    assert rows.mean() + 0.5 == pytest.approx(75, abs=1)
    # Its area is that of a circle of radius 0.93 * 13.2 pixels (corners are softened, there are none).
    assert red.sum() == pytest.approx(np.pi * (0.93 * 13.2) ** 2, rel=0.04)


def test_no_shape_is_cut_off_or_runs_into_its_neighbour():
    """Two large things in neighbouring cells: their pixels add up to those of each alone."""
    for shape in SHAPES:
        for turn in (-9, 9):
            left = Thing(shape, "large", "plain", "blue", x=0.185 + 0.015, y=0.17, turn=turn)
            right = Thing(shape, "large", "plain", "blue", x=0.5 - 0.015, y=0.17, turn=turn)

            def blue(*things: Thing) -> int:
                picture = pixels(Scene(things), 192)
                return int((picture[:, :, 2] - picture[:, :, 0] > 80).sum())

            middle = replace(left, x=0.5, y=0.5)
            assert blue(left) == pytest.approx(blue(middle), rel=0.02), shape
            assert blue(left, right) == pytest.approx(blue(left) + blue(right), rel=0.005), shape


# Severe red-green colour blindness in linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.0.
PROTAN = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
DEUTAN = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def lab(linear: np.ndarray) -> np.ndarray:
    """CIE Lab (D65) of linear RGB in [0, 1]."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ linear / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("sight", [np.eye(3), PROTAN, DEUTAN], ids=["full", "protan", "deutan"])
def test_colours_stay_apart_for_every_eye(sight):
    """A just noticeable difference is about 2.3 in Lab; all pairs, with the sheet, keep seven times that."""
    seen = {}
    for name, rgb in {**PALETTE, "sheet": SHEETS["cream"]}.items():
        encoded = np.asarray(rgb) / 255
        linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
        seen[name] = lab(np.clip(sight @ linear, 0, 1))
    for a, b in combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 16.0, (a, b)
