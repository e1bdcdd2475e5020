"""Pools out, judgements in: what people may write, several answers, and what is refused."""

import numpy as np
import pytest

from counterfoil.benchmarks.judgements import gain_of, pool_table, read_judgements, read_votes
from counterfoil.benchmarks.tables import read_table
from counterfoil.errors import InputError
from counterfoil.metrics.annotators import pool
from counterfoil.store import write_table
from refusals import refuses


def written(folder, text):
    path = folder / "judged.csv"
    path.write_text(text)
    return path


ANSWERS = {
    1.0: ("100% YES", "100% yes", " 100 % Yes "),
    0.5: ("Partially YES, but", "partially  yes", "Weak yes"),
    0.0: ("Mostly NO, because", "100% NO", "no"),
    None: ("not sure", "yes, I think", ""),
}


@pytest.mark.parametrize("gain", ANSWERS)
def test_the_words_of_eccv_caption(gain):
    assert {gain_of(answer) for answer in ANSWERS[gain]} == {gain}


def test_a_row_per_pair_whose_answer_counts_in_both_directions(tmp_path):
    text = (
        "direction,image,caption,answer,place:a,place:b\nt2i,10,7,100% YES,1,0\ni2t,10,7,100% YES,,2\n"
        "t2i,11,7,Partially YES,0,3\nt2i,10,5,100% NO,2,1\nt2i,12,5,,1,1\n"
    )
    judged = read_judgements(written(tmp_path, text))
    i2t, t2i = judged.directions
    assert (i2t.direction, i2t.queries, i2t.items) == ("i2t", ("10",), ("7",))
    assert i2t.gain.tolist() == [1]
    assert {name: place.tolist() for name, place in i2t.place.items()} == {"a": [0], "b": [2]}
    assert (t2i.queries, t2i.items) == (("7", "5"), ("10", "11"))
    result = list(zip(t2i.query.tolist(), t2i.item.tolist(), t2i.gain.tolist(), strict=True))
    assert result == [(0, 0, 1.0), (0, 1, 0.5), (1, 0, 0.0)]
    assert t2i.place["a"].tolist() == [1, 0, 2]
    # One pair stands in both directions and was judged once; one has no answer.
    assert (judged.rows, judged.pairs, judged.several, judged.unanswered) == (5, 3, 0, 1)
    judged = read_judgements(written(tmp_path, "direction,image,caption,gain\nt2i,10,7,\ni2t,10,7,0.5\n"))
    assert [one.gain.tolist() for one in judged.directions] == [[0.5], [0.5]]
    assert (judged.pairs, judged.unanswered) == (1, 0)


@pytest.mark.parametrize(
    ("gains", "majority", "mean"),
    [
        ([1, 1, 0], 1.0, 2 / 3),
        ([1, 0], 0.0, 0.5),
        ([1, 0.5, 0.5], 0.5, 2 / 3),
        # Each once: the lowest.
        ([1, 0.5, 0], 0.0, 0.5),
        ([1, 1, 0.5, 0.5], 0.5, 0.75),
    ],
)
def test_several_answers_come_to_one(tmp_path, gains, majority, mean):
    path = written(tmp_path, "image,caption,gain\n1,2,1\n" + "".join(f"9,9,{gain}\n" for gain in gains))
    for policy, expected in (("majority", majority), ("mean", mean)):
        judged = read_judgements(path, direction="t2i", aggregate=policy)
        assert judged.directions[0].gain == pytest.approx([1, expected])
        assert (judged.pairs, judged.several) == (2, 1)
    with pytest.raises(InputError, match="unknown policy for several answers; given: vote"):
        read_judgements(path, direction="t2i", aggregate="vote")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,caption,gain\n1,2,1\n", "no column 'direction'; .*--direction"),
        ("direction,image,caption,gain\nup,1,2,1\n", "row 1, column 'direction': unknown label; given: up"),
        ("direction,image,caption,gain\n,1,2,1\n", "column 'direction': unknown label; given: \\(empty\\)"),
        ("direction,image,caption,gain\nt2i,1,,1\n", "row 1, column 'caption': empty id"),
        ("direction,image,gain\nt2i,1,1\n", "no column 'caption'"),
        ("direction,image,caption\nt2i,1,2\n", "no answers: no column 'answer' or 'gain'"),
        ("direction,image,caption,gain\nt2i,1,2,2\n", "row 1, column 'gain': a gain is out of range"),
        ("direction,image,caption,gain\nt2i,1,2,nan\n", "column 'gain': not a finite number; given: nan"),
        ("direction,image,caption,gain\nt2i,1,2,\n", "no pair has an answer; given: 1 rows"),
        ("direction,image,caption,answer\nt2i,1,2,maybe\n", "an answer that cannot be read; given: maybe"),
        ("direction,image,caption,gain,place:a\nt2i,1,2,1,-1\n", "column 'place:a': a place is no place"),
    ],
)
def test_what_nobody_understands_is_refused(tmp_path, text, message):
    refuses(message, read_judgements, written(tmp_path, text), error=InputError)


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_pool_is_written_and_comes_back_judged(tmp_path, suffix):
    images, captions = ("10", "11", "12"), ("5", "6", "7")
    pools = {
        "i2t": pool([np.array([[1, 0]]), np.array([[1, 2]])]),
        "t2i": pool([np.array([[2, 0], [1, 0]]), np.array([[2, 1], [0, 1]])]),
    }
    table = pool_table(
        pools,
        models=("a", "b"),
        queries={"i2t": ("12",), "t2i": ("6", "5")},
        images=images,
        captions=captions,
        texts=('a "quoted" cat', "two, dogs", None),
    )
    columns = ("pair", "direction", "image", "caption", "place:a", "place:b")
    # Image 12 with caption 6 is proposed in both directions, by everybody: one pair, number 2.
    assert list(zip(*(table[name].to_pylist() for name in columns), strict=True)) == [
        (1, "i2t", "12", "5", 2, 0),
        (2, "i2t", "12", "6", 1, 1),
        (3, "i2t", "12", "7", 0, 2),
        (4, "t2i", "10", "6", 2, 0),
        (5, "t2i", "11", "6", 0, 2),
        (2, "t2i", "12", "6", 1, 1),
        (6, "t2i", "10", "5", 2, 1),
        (7, "t2i", "11", "5", 1, 2),
    ]
    assert table["query"].to_pylist() == ["12", "12", "12", "6", "6", "6", "5", "5"]
    path = tmp_path / f"pool{suffix}"
    write_table(path, table)
    assert list(read_table(path)["text"])[:2] == ['a "quoted" cat', "two, dogs"]
    judged = tmp_path / f"judged{suffix}"
    write_table(judged, table.append_column("gain", [[1, 0.5, 0, 0, 0, 0.5, 1, 0]]))
    result = read_judgements(judged)
    assert [one.direction for one in result.directions] == ["i2t", "t2i"]
    assert result.directions[1].gain.tolist() == [0, 0, 0.5, 1, 0]
    assert result.directions[1].place["b"].tolist() == [0, 2, 1, 1, 2]
    assert (result.rows, result.pairs, result.several) == (8, 7, 0)


def test_rows_and_a_square_say_the_same_and_judges_keep_their_votes(tmp_path):
    rows = read_votes(written(tmp_path, "winner,loser,count\nb,a,2\na,b,1\nc,a,4\nb,a,1\n"))
    square = read_votes(written(tmp_path, "who,a,b,c\na,0,1,0\nb,3,0,0\nc,4,0,9\n"))
    assert rows.names == square.names == ("a", "b", "c")
    assert rows.wins.tolist() == [[0, 1, 0], [3, 0, 0], [4, 0, 0]]
    # The diagonal is no vote between two things.
    assert rows.total == square.total == 8
    assert rows.judges is square.judges is None
    result = read_votes(written(tmp_path, "winner,loser,worker\nb,a,w2\na,b,w1\nb,a,w2\n"))
    assert result.judges.tolist() == [[[0, 1], [0, 0]], [[0, 0], [2, 0]]]
    assert (result.judges.sum(axis=0) == result.wins).all()


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
    refuses(message, read_votes, written(tmp_path, text))
