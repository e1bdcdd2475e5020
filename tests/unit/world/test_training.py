from collections import Counter
from math import sqrt

import numpy as np
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks.training_files import read
from counterfoil.errors import InputError, StorageError
from counterfoil.world.captions import OPENINGS, describe, matches, text
from counterfoil.world.edits import SUBSETS
from counterfoil.world.generator import imagine
from counterfoil.world.painting import STYLES, draw_many
from counterfoil.world.sample import contrasts, stream
from counterfoil.world.scenes import one_of, sample_scene
from counterfoil.world.training import KINDS, TRAIN, VALIDATION, save_training, training
from counterfoil.world.truth import matches as matches_said
from refusals import refuses


def shown(made, role):
    """What a column holds: texts, or the bytes of images."""
    return [item.read() if "image" in role else item.text for item in made.items(role, np.arange(len(made)))]


def everything(made):
    return {role: shown(made, role) for role in made.rows}, dict(made.groupings)


@pytest.mark.parametrize("kind", KINDS)
def test_same_seed_same_bytes_and_a_larger_set_begins_with_the_smaller(kind):
    one, again, other, large = (
        training(n, kind=kind, seed=seed, size=32) for n, seed in ((30, 3), (30, 3), (30, 4), (50, 3))
    )
    assert everything(one) == everything(again)
    assert everything(one) != everything(other)
    assert all(shown(large, role)[:30] == shown(one, role) for role in one.rows)


def test_three_kinds_have_the_same_rows_and_ever_more_columns():
    sets = [training(60, kind=kind, seed=1, size=32) for kind in ("coco", "trohn-text", "trohn-img")]
    assert [list(made.rows) for made in sets] == [
        ["image", "caption"],
        ["image", "caption", "negative_caption"],
        ["image", "caption", "negative_caption", "negative_image"],
    ]
    coco, texts, images = sets
    for role in ("image", "caption"):
        assert shown(coco, role) == shown(texts, role) == shown(images, role)
    assert shown(texts, "negative_caption") == shown(images, "negative_caption")
    assert coco.groupings["subset"] == texts.groupings["subset"] == images.groupings["subset"]
    assert set(coco.groupings["faithful"]) == set(texts.groupings["faithful"]) == {""}


def test_rows_are_contrasts():
    made = training(70, kind="trohn-img", seed=5, size=32)
    chosen = contrasts(70, seed=5, of="contrasts", distinct=False)
    assert Counter(made.groupings["subset"]) == dict.fromkeys(SUBSETS, 10)
    assert set(made.groupings["faithful"]) == {"yes"}
    for row, contrast in enumerate(chosen):
        for role, meaning in zip(("caption", "negative_caption"), contrast.captions, strict=True):
            said = made.captions[made.rows[role][row]].text
            assert said in {text(meaning, opening=opening) for opening in OPENINGS}
        positive = made.images[made.rows["image"][row]].source.pixels
        assert (positive == draw_many([contrast.scenes[0]], 32, style="natural")[0]).all()
        scene, _ = imagine(contrast, stream("contrasts", 5, 2, 1 + row), failure=0.0)
        assert matches(contrast.captions[1], scene)
        negative = made.images[made.rows["negative_image"][row]].source.pixels
        assert (negative == draw_many([scene], 32, style="synthetic")[0]).all()


def test_loose_captions_and_generated_positives_are_true_and_styles_take_turns():
    made, loose = (training(200, kind=kind, seed=9, size=32, styles=STYLES) for kind in ("pac", "loose"))
    assert list(loose.rows) == ["image", "caption"]
    assert set(made.groupings["subset"]) == {""}
    for role in loose.rows:
        assert shown(made, role) == shown(loose, role)
    rng = stream("loose", 9)
    for row in range(len(made)):
        scene = sample_scene(rng)
        meaning = describe(scene, rng)
        assert matches(meaning, scene)
        assert made.captions[made.rows["caption"][row]].text == text(meaning, opening=one_of(OPENINGS, rng))
        assert matches_said(made.captions[made.rows["generated_caption"][row]].text, scene)
        for role, style in (("image", STYLES[row % 2]), ("generated_image", "synthetic")):
            pixels = made.images[made.rows[role][row]].source.pixels
            assert (pixels == draw_many([scene], 32, style=style)[0]).all()
    # A machine says something else about most pictures.
    assert np.mean(made.rows["caption"] != made.rows["generated_caption"]) > 0.8


@pytest.mark.parametrize("failure", [0.61, 1.0])
def test_the_generator_fails_as_often_as_chosen_and_labels_say_where(failure):
    perfect, made = (training(70, kind="trohn-img", seed=1, size=32, failure=f) for f in (0.0, failure))
    assert abs(made.groupings["faithful"].count("no") / len(made) - failure) < 4 * sqrt(0.25 / 70) + 1e-9
    for row, contrast in enumerate(contrasts(70, seed=1, of="contrasts", distinct=False)):
        scene, _ = imagine(contrast, stream("contrasts", 1, 2, 1 + row), failure=failure)
        right = matches(contrast.captions[1], scene) and not matches(contrast.captions[0], scene)
        assert made.groupings["faithful"][row] == ("yes" if right else "no")
    for role in ("image", "caption", "negative_caption"):
        assert shown(made, role) == shown(perfect, role)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "trohn-imag"}, "did you mean 'trohn-img'"),
        ({"kind": "coco", "n": 0}, "the number of rows must be positive; given: 0"),
        ({"kind": "coco", "size": 16}, "too small to see"),
        ({"kind": "coco", "styles": ("cubist",)}, "unknown style; given: cubist"),
        ({"kind": "trohn-img", "failure": 61}, "a failure rate is a chance; given: 61"),
        ({"kind": "coco", "failure": 0.5}, r"nothing is generated .* given: coco; allowed: trohn"),
    ],
)
def test_what_cannot_be_made(settings, message):
    refuses(message, training, error=InputError, **{"n": 7, **settings})


@pytest.mark.parametrize(("kind", "size"), [*((kind, 32) for kind in KINDS), ("trohn-img", 100)])
def test_saved_and_read_again(kind, size, tmp_path):
    made = training(40, kind=kind, seed=3, size=size)
    counts = save_training(made, tmp_path / "set")
    assert {path.name for path in (tmp_path / "set").iterdir()} == {TRAIN, VALIDATION}
    assert sum(counts) == 40
    assert counts[1] >= 8
    halves = [read(tmp_path / "set", split=split) for split in ("train", "validation")]
    assert tuple(len(half) for half in halves) == counts
    for role in made.rows:
        assert shown(halves[0], role) + shown(halves[1], role) == shown(made, role)
    for name in ("subset", "faithful"):
        assert halves[0].groupings[name] + halves[1].groupings[name] == made.groupings[name]


def test_columns_are_those_of_trohn_img(tmp_path):
    made, files = training(20, kind="trohn-img", size=32), []
    for _ in range(2):
        save_training(made, tmp_path)
        files.append([(tmp_path / name).read_bytes() for name in (TRAIN, VALIDATION)])
    assert files[0] == files[1]
    table = pq.read_table(tmp_path / TRAIN)
    for column in ("image", "negative_image"):
        assert table.schema.field(column).type.names == ["bytes", "path"]
    assert table["image"][0].as_py() == {"bytes": made.images[0].read(), "path": "scene-00000.png"}
    assert {"caption", "negative_caption", "subset", "faithful"} <= set(table.column_names)


def test_an_image_stays_on_one_side_wherever_its_rows_are(tmp_path):
    made = training(60, kind="coco", seed=1, size=32)
    save_training(made.select(np.random.default_rng(0).permutation(60)), tmp_path)
    halves = [read(tmp_path, split=split) for split in ("train", "validation")]
    assert not set(shown(halves[0], "image")) & set(shown(halves[1], "image"))
    assert len(halves[1]) >= 12


def test_nothing_half_written_where_saving_fails(tmp_path, monkeypatch):
    from contextlib import contextmanager

    from counterfoil.world import training as module

    made = training(20, kind="coco", size=32)
    save_training(made, tmp_path / "set")
    original = module.writing

    @contextmanager
    def full(path):
        if path.name == VALIDATION:
            raise StorageError("the disk is full", where=path)
        with original(path) as file:
            yield file

    monkeypatch.setattr(module, "writing", full)
    refuses("the disk is full", save_training, made, tmp_path / "set", error=StorageError)
    assert list((tmp_path / "set").iterdir()) == []


def test_too_few_images_to_divide(tmp_path):
    with pytest.raises(InputError, match="too few images to keep some for validation"):
        save_training(training(1, kind="coco", size=32), tmp_path)
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match=r"a share of the rows is for validation; given: 1\.0"):
        save_training(training(9, kind="coco", size=32), tmp_path, share=1.0)
