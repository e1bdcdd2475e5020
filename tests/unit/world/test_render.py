from dataclasses import replace
from itertools import combinations

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.records import decode
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.world.painting import (
    DARKEST,
    LIGHTEST,
    LOOKS,
    OUTLINES,
    PALETTE,
    RADII,
    SHEETS,
    STRONGEST,
    STYLES,
    draw,
    draw_many,
    encode,
    sheet,
)
from counterfoil.world.scenes import (
    COLOURS,
    CONTAINERS,
    PAPERS,
    SHAPES,
    SIZES,
    TEXTURES,
    TURNS,
    Scene,
    Thing,
    sample_scene,
)
from refusals import refuses


def one(**changes):
    return Scene((replace(Thing("circle", "large", "plain", "red", x=0.5, y=0.5), **changes),))


def pixels(scene, size=96):
    return np.asarray(draw(scene, size), dtype=np.float64)


def test_same_scene_same_bytes():
    scene = sample_scene(np.random.default_rng(4))
    first = encode(draw(scene))
    assert encode(draw(scene)) == first
    assert decode(first, where="a test").size == (192, 192)
    assert draw(scene, 97).size == (97, 97)


def test_every_value_can_be_drawn_and_seen():
    for name, values in (("shape", SHAPES), ("size", SIZES), ("texture", TEXTURES), ("colour", COLOURS)):
        for a, b in combinations([pixels(one(**{name: value})) for value in values], 2):
            # At least half a per cent of the pixels change plainly.
            assert (np.abs(a - b).max(axis=2) > 30).mean() > 0.005, name
    assert set(SHEETS) == set(PAPERS)
    assert set(PALETTE) == set(COLOURS)
    assert set(RADII) == set(SIZES)


def test_no_shape_is_cut_off_or_runs_into_its_neighbour():
    """Two large things in neighbouring cells: their pixels add up to those of each alone."""
    for shape in SHAPES:
        for turn in (-9, 9):
            left = Thing(shape, "large", "plain", "blue", x=0.185 + 0.015, y=0.17, turn=turn)
            right = Thing(shape, "large", "plain", "blue", x=0.5 - 0.015, y=0.17, turn=turn)

            def blue(*things):
                picture = pixels(Scene(things), 192)
                return int((picture[:, :, 2] - picture[:, :, 0] > 80).sum())

            assert blue(left) == pytest.approx(blue(replace(left, x=0.5, y=0.5)), rel=0.02), shape
            assert blue(left, right) == pytest.approx(blue(left) + blue(right), rel=0.005), shape


# Severe red-green colour blindness in linear RGB: Machado, Oliveira and Fernandes (2009), severity 1.0.
PROTAN = np.array(
    [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
)
DEUTAN = np.array(
    [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
)


def lab(rgb, sight=np.eye(3)):  # noqa: B008
    """CIE Lab (D65) of a colour in bytes, as an eye sees it."""
    encoded = np.asarray(rgb) / 255
    linear = np.where(encoded <= 0.04045, encoded / 12.92, ((encoded + 0.055) / 1.055) ** 2.4)
    linear = np.clip(sight @ linear, 0, 1)
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    x, y, z = np.cbrt(to_xyz @ linear / [0.9505, 1.0, 1.089])
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize("sight", [np.eye(3), PROTAN, DEUTAN], ids=["full", "protan", "deutan"])
def test_colours_stay_apart_for_every_eye(sight, style):
    """A just noticeable difference is about 2.3 in Lab; all pairs, with the sheet, keep seven times that."""
    shown = {**LOOKS[style].palette, "sheet": LOOKS[style].sheets["cream"]}
    seen = {name: lab(rgb, sight) for name, rgb in shown.items()}
    for a, b in combinations(seen, 2):
        assert np.linalg.norm(seen[a] - seen[b]) > 16.0, (a, b)


def test_colours_keep_their_names_in_both_styles():
    """Each colour of the one style is nearest to the same colour of the other, half as far as any."""
    for name, rgb in LOOKS["synthetic"].palette.items():
        far = {other: np.linalg.norm(lab(rgb) - lab(PALETTE[other])) for other in PALETTE}
        assert far[name] < 0.5 * min(d for other, d in far.items() if other != name), name


def scenes(n, seed=0):
    rng = np.random.default_rng(seed)
    return [sample_scene(rng) for _ in range(n)]


@pytest.mark.parametrize("size", [48, 64, 97])
def test_many_are_drawn_as_one_is_each_in_its_style(size):
    drawn, styles = scenes(40), STYLES * 20
    many = draw_many(drawn, size, style=styles, seed=3)
    for scene, style, picture in zip(drawn, styles, many, strict=True):
        np.testing.assert_array_equal(picture, np.asarray(draw(scene, size, style=style, seed=3)))


def test_the_seed_changes_grain_and_light_and_nothing_else():
    scene = scenes(1)[0]
    a, b = (np.asarray(draw(scene, 96, seed=seed), dtype=np.float64) for seed in (0, 1))
    assert (a != b).any()
    assert np.abs(a - b).max() < 2 * STRONGEST + LOOKS["natural"].falloff * 2


def test_grain_never_leaves_a_byte():
    """Grain is added modulo 256; a wrapped pixel would differ from its neighbourhood by 200 levels."""
    assert DARKEST - STRONGEST >= 0
    assert LIGHTEST + STRONGEST <= 255
    natural = draw_many(scenes(200), 48)
    assert natural.min() >= DARKEST - STRONGEST
    assert natural.max() <= LIGHTEST + STRONGEST


def test_what_cannot_be_drawn_is_refused():
    drawn = scenes(2)
    with pytest.raises(UnknownNameError, match=r"unknown style; given: natual.*did you mean 'natural'"):
        draw_many(drawn, style="natual")
    with pytest.raises(InputError, match="one style per scene; given: 1; allowed: 2"):
        draw_many(drawn, style=["natural"])
    refuses("too small", draw_many, drawn, 8, error=InputError)


def plainly(scene, size):
    """The plain colours of a scene and where they are: for every pixel, whether it lies in a polygon."""
    picture, there = np.zeros((size, size, 3)), np.zeros((size, size), dtype=bool)
    y, x = np.mgrid[0:size, 0:size] + 0.5
    for thing in scene.things:
        radius, angle = RADII[thing.size] * size, np.deg2rad(thing.turn)
        right, down = x - round(thing.x * size), y - round(thing.y * size)
        # Turned back, in radii.
        u = (right * np.cos(angle) + down * np.sin(angle)) / radius
        v = (down * np.cos(angle) - right * np.sin(angle)) / radius
        inside = np.zeros((size, size), dtype=bool)
        for outline in OUTLINES[thing.shape]:
            crossings = np.zeros((size, size), dtype=np.int64)
            for (x0, y0), (x1, y1) in zip(outline, np.roll(outline, -1, axis=0), strict=True):
                if y0 != y1:
                    spans = (y0 > v) != (y1 > v)
                    crossings += spans & (u < x0 + (v - y0) / (y1 - y0) * (x1 - x0))
            inside |= crossings % 2 == 1
        picture[inside], there = PALETTE[thing.colour], there | inside
    return picture, there


def test_pictures_agree_with_a_plain_test_of_every_pixel():
    """Two pixels from any edge, a picture has the thing's colour; further than shadows reach, the sheet's."""
    rng, most, size = np.random.default_rng(2), LOOKS["natural"], 96
    cells = [(x, y) for y in (0.185, 0.5, 0.815) for x in (0.185, 0.5, 0.815)]
    for _ in range(6):
        things = tuple(
            Thing(
                shape, str(rng.choice(SIZES)), "plain", str(rng.choice(COLOURS)), x, y, int(rng.choice(TURNS))
            )
            for shape, (x, y) in zip(rng.permutation(SHAPES), cells, strict=False)
        )
        scene = Scene(things)
        expected, there = plainly(scene, size)
        picture = np.asarray(draw(scene, size), dtype=np.float64)
        shifts = [(i, j) for i in range(-2, 3) for j in range(-2, 3)]
        within = np.all([np.roll(there, shift, axis=(0, 1)) for shift in shifts], axis=0)
        assert within.sum() > 200
        # Light rises by `rise` over the thing, and the grain adds its own.
        assert np.abs(picture - expected)[within].max() <= most.rise / 2 + STRONGEST + 1
        shifts = [(i, j) for i in range(-5, 6) for j in range(-5, 6)]
        out = ~np.any([np.roll(there, shift, axis=(0, 1)) for shift in shifts], axis=0)
        empty = sheet(scene.paper, size, "natural", 0).astype(np.float64)
        assert np.abs(picture - empty)[out].max() <= STRONGEST + most.falloff


def test_small_things_lie_in_containers_with_clear_air():
    """In every scene, between a thing and the container around it is at least a hundredth of the side."""
    result = 0
    for scene in scenes(1500, seed=9):
        for container in (thing for thing in scene.things if thing.shape in CONTAINERS):
            for thing in scene.things:
                if thing is container or thing.cell != container.cell:
                    continue
                result += 1
                angle = np.deg2rad(thing.turn)
                turn = np.array([[np.cos(angle), np.sin(angle)], [-np.sin(angle), np.cos(angle)]])
                points = np.concatenate(OUTLINES[thing.shape]) @ turn * RADII[thing.size]
                points = points + np.array([thing.x - container.x, thing.y - container.y])
                if container.shape == "ring":
                    reach = np.hypot(*points.T).max() / RADII["large"]
                    hole = 0.86
                else:
                    # The hole of a box is square and turned by 3 degrees at most.
                    reach = np.abs(points).max() / RADII["large"]
                    hole = 0.8 * (np.cos(np.deg2rad(3)) - np.sin(np.deg2rad(3)))
                assert (hole - reach) * RADII["large"] > 0.004, (thing, container)
    assert result > 50


@pytest.mark.parametrize("shape", CONTAINERS)
def test_containers_are_hollow_and_stay_in_their_cells(shape):
    for turn in TURNS:
        picture = pixels(Scene((Thing(shape, "large", "plain", "blue", x=0.5, y=0.5, turn=turn),)), 192)
        rows, columns = np.nonzero(picture[:, :, 2] - picture[:, :, 0] > 80)
        assert np.hypot(rows - 95.5, columns - 95.5).min() > RADII["small"] * 192
        # Half a cell, less what things are moved by within it.
        assert max(np.abs(rows - 95.5).max(), np.abs(columns - 95.5).max()) < (0.315 / 2 - 0.015) * 192


def statistics(pictures):
    """Per picture: the mean of each channel, the median and lower quartile of steps to the right."""
    values = pictures.astype(np.float64)
    steps = np.abs(np.diff(values.mean(axis=3), axis=2)).reshape(len(values), -1)
    return np.column_stack(
        [values.mean(axis=(1, 2)), np.median(steps, axis=1), np.quantile(steps, 0.25, axis=1)]
    )


@pytest.mark.parametrize(("size", "stored"), [(48, "jpeg"), (96, "pixels")])
def test_a_simple_classifier_tells_the_styles_apart(size, stored):
    """Five statistics and a straight line: learnt on 90 scenes, asked about 60 others. Chance is a half."""
    labels = np.arange(150) % 2
    pictures = draw_many(scenes(150, seed=8), size, style=[STYLES[i] for i in labels])
    if stored == "jpeg":
        coded = [encode(PIL.Image.fromarray(picture)) for picture in pictures]
        pictures = np.stack([np.asarray(decode(data, where="a test")) for data in coded])
    features = np.column_stack([statistics(pictures), np.ones(150)])
    weights, *_ = np.linalg.lstsq(features[:90], 2.0 * labels[:90] - 1)
    assert ((features[90:] @ weights > 0) == labels[90:]).mean() > 0.95


@pytest.mark.parametrize("style", STYLES)
def test_textures_are_recognisable_in_small_jpegs(style):
    """In any size, the nearest clean picture of a stored one has its texture."""
    size = 48
    for size_name in SIZES:
        for shape in SHAPES:
            for colour in COLOURS[::3]:
                asked = [one(shape=shape, size=size_name, colour=colour, texture=t) for t in TEXTURES]
                clean = draw_many(asked, size, style=style).astype(np.float64)
                for i, picture in enumerate(draw_many(asked, size, style=style, seed=5)):
                    data = encode(PIL.Image.fromarray(picture))
                    seen = np.asarray(decode(data, where="a test"), dtype=np.float64)
                    middle = slice(size // 3, -(size // 3))
                    apart = (clean - seen)[:, middle, middle]
                    # The light may come from elsewhere: what it adds to all pixels alike says nothing.
                    apart -= np.median(apart, axis=(1, 2), keepdims=True)
                    far = np.abs(apart).mean(axis=(1, 2, 3))
                    assert far.argmin() == i, (shape, size_name, colour, TEXTURES[i])
