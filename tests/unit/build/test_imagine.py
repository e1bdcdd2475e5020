"""The step that makes images, by the drawn world."""

import numpy as np
import PIL.Image
import pyarrow as pa
import pytest

from counterfoil.build.pipeline import run_step
from counterfoil.build.step import StepContext
from counterfoil.build.steps.imagine import Imagine
from counterfoil.build.steps.read import ReadRows
from counterfoil.errors import DataError, InputError
from counterfoil.world.scenes import Scene
from counterfoil.world.truth import matches
from refusals import refuses
from unchanged import digests

N = 28


@pytest.fixture(scope="module")
def rows(tmp_path_factory):
    return ReadRows(n=N, size=48).run(pa.table({"id": []}), StepContext(tmp_path_factory.mktemp("read"))).kept


def made(step, rows, folder, seed=0):
    return run_step(step, rows, StepContext(folder, seed=seed, step="2-imagine"))


def test_every_negative_is_drawn_and_known_and_captions_get_images_too(rows, tmp_path):
    output = made(Imagine(size=48), rows, tmp_path)
    assert output.kept["id"].to_pylist() == rows["id"].to_pylist()
    assert (len(output.dropped), output.facts["right"]) == (0, N)
    for row in output.kept.to_pylist():
        scene = Scene.from_json(row["negative_scene"])
        assert matches(row["negative_caption"], scene)
        assert not matches(row["caption"], scene)
        with PIL.Image.open(tmp_path / "images" / row["negative_image"]) as picture:
            assert picture.size == (48, 48)
        assert (row["negative_image_by"], row["negative_image_from"]) == ("world synthetic", row["id"])
    output = made(Imagine(column="caption", size=32), rows, tmp_path)
    assert output.facts["right"] == N
    assert {"generated_image", "generated_scene", "generated_image_seed"} <= {*output.kept.column_names}
    assert made(Imagine(column="caption", size=32, failure=1.0), rows, tmp_path).facts["right"] <= 1


def test_candidates(rows, tmp_path):
    step = Imagine(k=3, size=32, failure=0.5)
    output = made(step, rows, tmp_path)
    kept = output.kept
    assert kept["id"].to_pylist()[:4] == ["row-000000#0", "row-000000#1", "row-000000#2", "row-000001#0"]
    assert kept["of"].to_pylist() == list(np.repeat(rows["id"].to_pylist(), 3))
    assert len(set(kept["negative_image_seed"].to_pylist())) == 3 * N
    assert set(step.produces) <= {*kept.column_names}
    # Three standard errors of a share of 84.
    assert output.facts["right"] / (3 * N) == pytest.approx(0.5, abs=0.17)
    refuses(r"candidates already.*put 'choose' before", made, step, kept, tmp_path)


def test_a_seed_gives_the_same_bytes_whatever_else_is_asked_for(rows, tmp_path):
    first = made(Imagine(size=32, k=2), rows, tmp_path / "a", seed=5)
    assert first.kept.equals(made(Imagine(size=32, k=2), rows, tmp_path / "b", seed=5).kept)
    assert digests(tmp_path / "a" / "images") == digests(tmp_path / "b" / "images")
    # A row's images do not depend on the rows beside it, nor on how many there are of each.
    alone = made(Imagine(size=32), rows.slice(20, 5), tmp_path / "c", seed=5).kept
    wanted = first.kept.slice(40, 10).take([0, 2, 4, 6, 8])
    assert alone["negative_image"].to_pylist() == wanted["negative_image"].to_pylist()
    other = made(Imagine(size=32), rows, tmp_path / "d", seed=6).kept
    assert other["negative_image"].to_pylist() != first.kept["negative_image"].to_pylist()[::2]


def test_what_cannot_be_drawn_goes_with_its_reason_and_scenes_that_are_none_are_refused(rows, tmp_path):
    said = rows["negative_caption"].to_pylist()
    said[3:6] = ["A dog on a mat.", "A star is inside a heart.", None]
    some = rows.set_column(rows.column_names.index("negative_caption"), "negative_caption", pa.array(said))
    output = made(Imagine(k=2, size=32), some, tmp_path)
    assert output.reasons == {
        "no caption to draw": 2,
        "the world cannot read the caption": 2,
        "the world has no such scene": 2,
    }
    assert output.dropped["id"].to_pylist()[:2] == ["row-000003#0", "row-000003#1"]
    assert len(output.kept) == 2 * (N - 3)
    dogs = pa.table({"id": ["a"], "caption": ["A dog."], "negative_caption": ["A cat."]})
    with pytest.raises(DataError, match=r"can read none of the captions; given: A cat\.; .*name a pipeline"):
        made(Imagine(), dogs, tmp_path)
    broken = rows.set_column(rows.column_names.index("scene"), "scene", pa.array(["{}"] * N))
    refuses(r"row 'row-000000': no scene of the drawn world; given: \{\}", made, Imagine(), broken, tmp_path)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"style": "oil"}, "unknown style; given: oil"),
        ({"size": 8}, "too small to see anything"),
        ({"source": "image"}, "the world edits no images"),
        ({"by": "diffusers:x", "failure": 0.5}, "failure is of the drawn world"),
    ],
)
def test_bad_settings(settings, message):
    refuses(message, Imagine, error=InputError, **settings)
