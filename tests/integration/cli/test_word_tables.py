"""Words in tables stay whole at any width."""

import io

import pytest
from rich.console import Console

from counterfoil.cli.list import print_words

HEADER = ("name", "form", "what it says")
ROWS = [("recall_at_1", "gallery", "an extraordinarily long explanation"), ("i2t", "quad", "short")]


def printed(width):
    console = Console(width=width, file=io.StringIO())
    print_words(console, HEADER, ROWS)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [24, 34, 40, 60, 200])
def test_no_word_is_broken(width):
    lines = printed(width)
    assert max(map(len, lines)) <= width
    words = " ".join(lines).split()
    for row in ROWS:
        for cell in row:
            assert set(cell.split()) <= {word.strip(";:") for word in words}


def test_entries_are_paragraphs_only_where_columns_would_break_words():
    # "recall_at_1", "gallery" and "extraordinarily" with two blanks between: 11 + 2 + 7 + 2 + 15.
    assert printed(37)[0].split() == ["name", "form", "what", "it", "says"]
    assert printed(36)[0] == "recall_at_1"
