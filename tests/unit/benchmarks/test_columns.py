"""Typed columns: what fits, and what a cell that does not fit says."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.benchmarks.tables import DataTable, booleans, floats, integers, labels, texts
from counterfoil.errors import CounterfoilError, DataError, ScoreError
from refusals import refuses


def _table(*cells):
    return DataTable({"x": cells}, "a.csv")


def test_floats_read_numbers_and_their_texts():
    np.testing.assert_array_equal(
        floats(_table("0.5", 2, -1.5, "1e-3", " 7 "), "x"), [0.5, 2.0, -1.5, 0.001, 7.0]
    )


@given(st.lists(st.floats(-1e100, 1e100), min_size=1))
def test_floats_lose_no_digit_through_text(numbers):
    np.testing.assert_array_equal(floats(_table(*map(repr, numbers)), "x"), numbers)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("nan", "a.csv, row 2, column 'x': not a finite number; given: nan"),
        (float("inf"), "a.csv, row 2, column 'x': not a finite number; given: inf"),
        ("high", "a.csv, row 2, column 'x': not a number; given: high"),
        ("", "a.csv, row 2, column 'x': not a number; given: (empty)"),
        (None, "a.csv, row 2, column 'x': not a number; given: nothing"),
        (True, "a.csv, row 2, column 'x': not a number; given: True"),
        ([1], "a.csv, row 2, column 'x': not a number; given: [1]"),
    ],
)
def test_floats_name_the_odd_cell(cell, message):
    words = refuses("", floats, _table(1.0, cell), "x", error=ScoreError)
    assert words == message


def test_booleans_in_every_spelling():
    yes = ("True", "true", "TRUE", "1", 1, 1.0, "1.0", "yes", "Yes", True)
    no = ("False", "false", "0", 0, 0.0, "0.0", "no", "NO", False)
    assert booleans(_table(*yes), "x").all()
    assert not booleans(_table(*no), "x").any()


@pytest.mark.parametrize("cell", ["maybe", "", None, 2, 0.5, "nan"])
def test_booleans_name_the_odd_cell(cell):
    with pytest.raises(ScoreError, match=r"a\.csv, row 1, column 'x': neither true nor false"):
        booleans(_table(cell), "x")


def test_integers():
    np.testing.assert_array_equal(integers(_table("3", 4, 5.0), "x"), [3, 4, 5])
    for cell in ("3.5", "x", None, float("nan")):
        refuses("not a whole number", integers, _table(cell), "x")


def test_texts_keep_blanks_and_refuse_emptiness():
    assert texts(_table(" a ", "b"), "x") == (" a ", "b")
    for cell in ("", "  ", None, 3, {"a": 1}):
        refuses(r"a\.csv, row 2, column 'x': (empty|not a) text", texts, _table("a", cell), "x")


def test_labels():
    assert labels(_table("a", 3, None, " b "), "x") == ("a", "3", "", "b")
    with pytest.raises(DataError, match=r"row 2, column 'x': unknown label; given: flip; allowed: add, swap"):
        labels(_table("add", "flip"), "x", ("add", "swap"))
    refuses("not a label", labels, _table(1.5), "x")


def test_long_cells_are_cut_in_messages():
    words = refuses("", floats, _table("x" * 5000), "x", error=CounterfoilError)
    assert len(words) < 150
