"""Votes as people hand them in: rows and squares say the same, and what is neither is refused."""

import pytest

from counterfoil.benchmarks.judgements import read_votes
from counterfoil.errors import DataError


def written(folder, text):
    path = folder / "votes.csv"
    path.write_text(text)
    return path


def test_rows_and_a_square_say_the_same(tmp_path):
    rows = read_votes(written(tmp_path, "winner,loser,count\nb,a,2\na,b,1\nc,a,4\nb,a,1\n"))
    square = read_votes(written(tmp_path, "who,a,b,c\na,0,1,0\nb,3,0,0\nc,4,0,9\n"))
    assert rows.names == square.names == ("a", "b", "c")
    assert rows.wins.tolist() == [[0, 1, 0], [3, 0, 0], [4, 0, 0]]
    # The diagonal is no vote between two things.
    assert rows.total == square.total == 8
    assert rows.judges is square.judges is None


def test_judges_keep_their_votes(tmp_path):
    found = read_votes(written(tmp_path, "winner,loser,worker\nb,a,w2\na,b,w1\nb,a,w2\n"))
    assert found.judges.tolist() == [[[0, 1], [0, 0]], [[0, 0], [2, 0]]]
    assert (found.judges.sum(axis=0) == found.wins).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("winner,looser\na,b\n", "no column 'loser'; given: winner, looser; did you mean 'looser'"),
        ("winner,loser\na,\n", "row 1, column 'loser': empty name"),
        ("winner,loser,count\na,b,1.5\n", "row 1, column 'count': not a whole number; given: 1.5"),
        ("winner,loser,count\na,b,-1\n", "column 'count': votes are counts; given: -1; allowed: 0 and above"),
        ("winner,loser,judge\na,b,\n", "column 'judge': empty name"),
        ("who,a,b\na,0,1\n", "neither a list of votes nor a square table"),
        ("who,a,b\nb,0,1\na,1,0\n", "neither a list of votes nor a square table"),
        ("who,a,b\na,0,-1\nb,1,0\n", "column 'b': votes are counts"),
    ],
)
def test_what_is_neither_is_refused(tmp_path, text, message):
    with pytest.raises(DataError, match=message):
        read_votes(written(tmp_path, text))
