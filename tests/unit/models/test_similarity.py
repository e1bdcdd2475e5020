"""Similarities in npy files: what is read, what is refused, and that nothing is read before it is needed."""

import numpy as np
import pytest

from counterfoil.catalog import scorer
from counterfoil.errors import InputError
from counterfoil.models.base import Options
from counterfoil.models.precomputed_galleries import load_similarity
from refusals import refuses

SCORES = np.array([[0.5, 1.0, -2.0], [0.25, 0.0, 8.0]])


@pytest.fixture
def file(tmp_path):
    np.save(tmp_path / "s.npy", SCORES)
    return tmp_path / "s.npy"


def ids_at(path, **arrays):
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return Options(ids=path)


@pytest.mark.parametrize("dtype", ["f2", ">f4", "i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_numbers_stay_as_stored_and_on_the_disk(dtype, order, tmp_path):
    stored = np.array([[1, 0, 2], [3, 250, 4]]).astype(dtype, order=order)
    np.save(tmp_path / "s.npy", stored)
    found = load_similarity(str(tmp_path / "s.npy"))
    assert isinstance(found.values, np.memmap)
    assert found.values.dtype == stored.dtype
    assert found.values.tolist() == stored.tolist()
    assert (found.image_ids, found.caption_ids) == (None, None)


@pytest.mark.parametrize(
    ("image", "caption"), [("image_ids", "caption_ids"), ("img_ids", "cap_ids"), ("image_id", "text_ids")]
)
def test_ids_under_the_names_of_embeddings(image, caption, file, tmp_path):
    options = ids_at(tmp_path / "i.npz", **{image: np.array([42, 7]), caption: np.array(["c", "a", "b"])})
    found = load_similarity(str(file), options)
    assert found.image_ids == ("42", "7")
    assert found.caption_ids == ("c", "a", "b")


@pytest.mark.parametrize(
    ("array", "pattern"),
    [
        (np.zeros(3), r"wrong shape; given: \(3,\); allowed: \(images, captions\)"),
        (np.zeros((2, 3, 1)), r"wrong shape; given: \(2, 3, 1\)"),
        (np.zeros((0, 3)), r"wrong shape; given: \(0, 3\)"),
        (np.zeros((2, 2), bool), "not of real numbers; given: bool"),
        (np.array([["a"]]), "not of real numbers; given: <U1"),
    ],
)
def test_arrays_that_are_no_similarity(array, pattern, tmp_path):
    np.save(tmp_path / "s.npy", array, allow_pickle=True)
    refused(tmp_path / "s.npy", pattern)


def refused(path, pattern, options=Options()):  # noqa: B008
    refuses(pattern, load_similarity, str(path), options)


@pytest.mark.parametrize(
    ("arrays", "pattern"),
    [
        ({"image_ids": np.arange(2)}, "no ids of captions; given: image_ids; allowed: image_ids and caption"),
        ({"caption_ids": np.arange(3)}, "no ids of images; given: caption_ids"),
        ({"image_ids": np.arange(3), "caption_ids": np.arange(2)}, "array 'image_ids': not one id per row"),
        ({"image_ids": np.arange(2), "caption_ids": np.arange(2)}, "array 'caption_ids': not one id per"),
        ({"image_ids": np.arange(2), "caption_ids": np.array(["a", "b", "a"])}, "array 'caption_ids', rows"),
        ({"image_ids": np.array([0.5, 1]), "caption_ids": np.arange(3)}, "ids are not a list of integers or"),
    ],
)
def test_ids_that_do_not_fit(arrays, pattern, file, tmp_path):
    refused(file, pattern, ids_at(tmp_path / "i.npz", **arrays))


def test_where_the_path_of_a_missing_file_stands(file, tmp_path):
    refused(tmp_path / "none.npy", "no such file; check the path after 'given:'")
    refused(file, "no such file; check the path after '--ids'", Options(ids=tmp_path / "none.npz"))


def test_ids_are_for_similarities_only(file, tmp_path):
    (tmp_path / "t.csv").write_text("id,score\n1,2\n")
    (tmp_path / "r.json").write_text('{"i2t": {"1": [2]}, "t2i": {}}')
    options = ids_at(tmp_path / "i.npz", image_ids=np.arange(2), caption_ids=np.arange(3))
    for spec in (f"given:{tmp_path}/t.csv", f"given:{tmp_path}/r.json", "blind:constant"):
        refuses("has no use for the option 'ids'", scorer, spec, options, error=InputError)
