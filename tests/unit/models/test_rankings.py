"""Rankings in files: JSON and npz say the same, and what is refused names the query."""

import json

import numpy as np
import pytest

from counterfoil.catalog import scorer
from counterfoil.models.precomputed import PrecomputedTable
from counterfoil.models.precomputed_galleries import PrecomputedRankings, load_rankings
from refusals import refuses

I2T = {"10": [3, 1, 2], "11": [], "4": [2]}
T2I = {"1": [4, 10], "2": [11, 4, 10], "3": [10]}
ARRAYS = {
    "image_ids": np.array([10, 11, 4]), "i2t": np.array([[3, 1, 2], [-1, -1, -1], [2, -1, -1]]),
    "caption_ids": np.array([1, 2, 3]), "t2i": np.array([[4, 10, -1], [11, 4, 10], [10, -1, -1]]),
}  # fmt: skip

# The same, but for ids too large to be looked up in a table.
LARGE = {name: np.where(ids > 0, ids + 2**40, ids) for name, ids in ARRAYS.items()}


def save_json(path, value):
    path.write_text(json.dumps(value))
    return path


def save_npz(path, **arrays):
    np.savez(path, **arrays)  # type: ignore[arg-type]
    return path


def files(folder):
    """The same rankings in every form."""
    words = {"i2t": {i: [str(c) for c in row] for i, row in I2T.items()}, "t2i": T2I}
    strings = {
        name: np.where(ids == -1, "", ids.astype(str)) if ids.ndim == 2 else ids.astype(str)
        for name, ids in ARRAYS.items()
    }
    return {
        "numbers": save_json(folder / "a.json", {"i2t": I2T, "t2i": T2I}),
        "the other first": save_json(folder / "b.json", {"t2i": T2I, "i2t": I2T}),
        "strings": save_json(folder / "c.json", words),
        "npz": save_npz(folder / "d.npz", **ARRAYS),
        "npz of strings": save_npz(folder / "e.npz", **strings),
        "npz of large numbers": save_npz(folder / "f.npz", **LARGE),
    }


def test_every_form_says_the_same(tmp_path):
    for name, path in files(tmp_path).items():
        found = scorer(f"given:{path}")
        assert isinstance(found, PrecomputedRankings), name
        for lists, said in ((found.i2t, I2T), (found.t2i, T2I)):
            less = 2**40 if name == "npz of large numbers" else 0
            assert [int(q) - less for q in lists.queries] == [int(q) for q in said], name
            assert [[int(i) - less for i in lists[q]] for q in lists.queries] == list(said.values()), name
            assert lists.lengths.tolist() == [len(row) for row in said.values()], name
            assert len(set(lists.items)) == len(lists.items) == len({i for row in said.values() for i in row})
            assert lists.entries.dtype == np.int32, name


def test_large_arrays_are_read_in_parts(tmp_path):
    # 5,000 rows of 1,000 are more than one part.
    rng = np.random.default_rng(0)
    rows = rng.permuted(np.tile(np.arange(1000, 2000), (5000, 1)), axis=1)
    lengths = rng.integers(0, 1001, 5000)
    cut = np.where(np.arange(1000) < lengths[:, None], rows, -1)
    path = save_npz(
        tmp_path / "r.npz", image_ids=np.arange(5000), i2t=cut, caption_ids=np.arange(2), t2i=cut[:2]
    )
    lists = load_rankings(str(path)).i2t
    assert lists.lengths.tolist() == lengths.tolist()
    assert np.array_equal(np.array(lists.items, dtype=int)[lists.entries], cut[cut >= 0])
    rows[4999, 999] = rows[4999, 0]
    save_npz(path, image_ids=np.arange(5000), i2t=rows, caption_ids=np.arange(2), t2i=cut[:2])
    refuses(r"query '4999': a ranking names an item twice; given", load_rankings, str(path))


def test_unsigned_ids(tmp_path):
    arrays = {**ARRAYS, "i2t": np.array([[3], [1], [0]], np.uint64)}
    assert load_rankings(str(save_npz(tmp_path / "r.npz", **arrays))).i2t["4"] == ("0",)


QUAD = {"c0_i0": 0.1, "c0_i1": 0.2, "c1_i0": 0.3, "c1_i1": 0.4}


@pytest.mark.parametrize("value", [{"i2t": QUAD, "t2i": QUAD}, {"i2t": True, "t2i": False}, [QUAD]])
def test_tables_with_such_names_stay_tables(value, tmp_path):
    found = scorer(f"given:{save_json(tmp_path / 't.json', value)}")
    assert isinstance(found, PrecomputedTable)
    assert found.ids == (("i2t", "t2i") if isinstance(value, dict) else None)


@pytest.mark.parametrize(
    ("value", "pattern"),
    [
        ({"i2t": {"7": [1, 2, 1]}, "t2i": {}}, "i2t, query '7': a ranking names an item twice; given: 1;"),
        ({"i2t": {"7": [1]}, "t2i": {"8": [3, "3"]}}, "t2i, query '8': a ranking names an item twice; g"),
        ({"i2t": I2T}, r"the direction 't2i' is missing; given: i2t; .* both directions"),
        ({"t2i": T2I}, r"the direction 'i2t' is missing; given: t2i; allowed: \"i2t\" with image id"),
        ({"i2t": [[1, 2]], "t2i": T2I}, "'i2t': not an object of lists"),
        ({"i2t": I2T, "t2i": [[1, 2]]}, "'t2i': not an object of lists"),
        ({"i2t": {"7": [1.5]}, "t2i": {}}, "i2t, query '7': not an id; given: 1.5"),
        ({"i2t": {"7": [True]}, "t2i": {}}, "i2t, query '7': not an id; given: True"),
        ({"i2t": {"7": [None]}, "t2i": {}}, "not an id; given: None"),
        ({"i2t": {"7": [1], "8": {"1": 2}}, "t2i": {}}, "i2t, query '8': not a list of ids; given: {'1': 2}"),
        ({"i2t": {"7": [1], "8": "12"}, "t2i": {}}, "i2t, query '8': not a list of ids; given: 12"),
    ],
)
def test_json_that_holds_no_rankings(value, pattern, tmp_path):
    path = save_json(tmp_path / "r.json", value)
    words = refuses(pattern, scorer, f"given:{path}")
    assert str(path) in words


@pytest.mark.parametrize(
    ("changes", "pattern"),
    [
        ({"i2t": np.array([[1, 2], [3, 3], [-1, -1]])}, "'i2t', query '11': a ranking names an item twice"),
        ({"i2t": np.array([[1, 2], [-1, 3], [-1, -1]])}, "'i2t', query '11': an id behind the end of a list"),
        ({"i2t": np.array([[1, 2], [-2, 3], [-1, -1]])}, "'i2t': not an id; given: -2"),
        ({"i2t": np.array([[1.0], [2], [3]])}, r"'i2t': not rows of ids; given: float64 \(3, 1\)"),
        ({"t2i": np.array([1, 2, 3])}, r"'t2i': not rows of ids; given: int64 \(3,\)"),
        ({"image_ids": np.arange(2)}, "'image_ids': not one id per row of 'i2t'; given: 2 ids; allowed: 3"),
        ({"caption_ids": np.array([1, 2, 2])}, "'caption_ids', rows 2 and 3: id occurs twice; given: 2"),
        ({"caption_ids": None}, "no ids of the caption queries; allowed: an array 'caption_ids'"),
        ({"t2i": None}, "the direction 't2i' is missing"),
        ({"i2t": None, "t2i": None}, "not rankings; given: arrays .*; embeddings are given as embeddings:"),
    ],
)
def test_arrays_that_are_no_rankings(changes, pattern, tmp_path):
    arrays = {name: array for name, array in {**ARRAYS, **changes}.items() if array is not None}
    refuses(pattern, scorer, f"given:{save_npz(tmp_path / 'r.npz', **arrays)}")


def test_a_missing_file(tmp_path):
    refuses("no such file; check the path after 'given:'", scorer, f"given:{tmp_path / 'none.npz'}")
