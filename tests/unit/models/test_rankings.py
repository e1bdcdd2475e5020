"""Rankings in JSON files, and what is refused names the query."""

import json

import numpy as np
import pytest

from counterfoil.catalog import scorer
from counterfoil.models.precomputed import PrecomputedTable
from counterfoil.models.precomputed_galleries import PrecomputedRankings
from refusals import refuses

I2T = {"10": [3, 1, 2], "11": [], "4": [2]}
T2I = {"1": [4, 10], "2": [11, 4, 10], "3": [10]}


def save_json(path, value):
    path.write_text(json.dumps(value))
    return path


@pytest.mark.parametrize(
    "value",
    [
        {"i2t": I2T, "t2i": T2I},
        {"t2i": T2I, "i2t": I2T},
        {"i2t": {i: [str(c) for c in row] for i, row in I2T.items()}, "t2i": T2I},
    ],
)
def test_every_form_says_the_same(value, tmp_path):
    found = scorer(f"given:{save_json(tmp_path / 'r.json', value)}")
    assert isinstance(found, PrecomputedRankings)
    for lists, said in ((found.i2t, I2T), (found.t2i, T2I)):
        assert list(lists.queries) == list(said)
        assert [[int(i) for i in lists[q]] for q in lists.queries] == list(said.values())
        assert lists.lengths.tolist() == [len(row) for row in said.values()]
        assert len(set(lists.items)) == len(lists.items) == len({i for row in said.values() for i in row})
        assert lists.entries.dtype == np.int32


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


def test_other_files(tmp_path):
    refuses("no such file; check the path after 'given:'", scorer, f"given:{tmp_path / 'none.npy'}")
    np.savez(tmp_path / "r.npz", i2t=np.arange(3))
    refuses("no table of scores; given: an npz file; embeddings are", scorer, f"given:{tmp_path / 'r.npz'}")
