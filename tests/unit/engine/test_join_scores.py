import json

import numpy as np
import pytest

from contracts import forms
from contracts.forms import paragraphs_of, ratings_of
from counterfoil.benchmarks import Caption, Image
from counterfoil.engine import session
from counterfoil.engine.join_scores import answered, join_scores, matched
from counterfoil.errors import CounterfoilError, ScoreError
from counterfoil.models import precomputed, precomputed_galleries
from counterfoil.models.base import Identity, Options
from refusals import refuses


def quads(ids):
    return forms.quads_of(
        [Image(f"{name}_i{j}") for name in ids for j in (0, 1)],
        [Caption(f"{name}_c{j}") for name in ids for j in (0, 1)],
        ids=ids,
        name="quads",
        title="Quads",
    )


def choices(text, **groupings):
    """A line per question: id, file name, caption and negative caption, with commas between."""
    rows = [line.split(",") for line in text.split(" / ")]
    return forms.choices_of(
        [Image(row[1]) for row in rows],
        [Caption(f"{row[0]}_c{j}", row[2 + j]) for row in rows for j in (0, 1)],
        ids=[row[0] for row in rows],
        labels={name: tuple(labels) for name, labels in groupings.items()},
        name="choices",
        title="Choices",
    )


def rated(ids, captions=None):
    n = len(ids)
    captions = [Caption(f"c{i}", text) for i, text in enumerate(captions or [None] * n)]
    return ratings_of(np.ones((n, 1)), np.arange(n), ids=ids, captions=captions)


def preferred(ids, sentences=1):
    n = len(ids)
    images = np.repeat(np.arange(n), 2 * sentences)
    captions = [Caption(f"c{i}", "x") for i in range(2 * n * sentences)]
    return paragraphs_of(n, sentences, images, ids=ids, captions=captions)


ABC = choices("a,1.jpg,A cat ,a dog / b,2.jpg,a cow,a pig / c,3.jpg,x,y")
SUBSETS = choices("swap/0,1,a,b / swap/1,2,c,d / add/0,3,e,f")
#: Columns of a table with captions, and its rows for `ABC`.
HEAD = "filename,caption,negative_caption,correct / "
CAT, COW, X = "1.jpg,a cat,A dog,1", "2.jpg,a cow ,a pig,0", "3.jpg,x,y,1"


#: The score is 100 q + 10 c + i, so every cell shows where it belongs.
PAIRED = "label,score" + "".join(
    f" / {q}_c{c}_i{i},{100 * q + 10 * c + i}" for q in (1, 0) for i in (1, 0) for c in (0, 1)
)


def table(tmp_path, text, name="table.csv"):
    """A table whose lines are parted by slashes."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text.replace(" / ", "\n") + "\n")
    return precomputed.load(str(path))


def never(message):
    raise AssertionError(message)


def listed(answers):
    """Scores as lists; of outcomes the accuracy."""
    return (answers.values if hasattr(answers, "values") else answers.right["accuracy"]).tolist()


@pytest.mark.parametrize(
    ("text", "benchmark", "expected"),
    [
        ("id,s0,s1 / c,3,0 / a,1,0 / b,2,0", ABC, [[1, 0], [2, 0], [3, 0]]),
        (PAIRED, quads("01"), [[[0, 1], [10, 11]], [[100, 101], [110, 111]]]),
        # Numbers of caption and image in the names of columns.
        ("id,S00,s01,s10,s11 / a,4,3,2,1", quads("a"), [[[4, 3], [2, 1]]]),
        # Ids win over the order, and captions agree whatever their case and blanks.
        (f"id,{HEAD}b,2.jpg,A COW,a pig,0 / a,{CAT} / c,{X}", ABC, [True, False, True]),
        # The numbers are the table's own: its captions say which question a row is.
        (f"index,{HEAD}0,3.jpg,x,y,0 / 1,{CAT} / 2,2.jpg,a cow,a pig,1", ABC, [True, True, False]),
        (f"{HEAD}{CAT} / {COW} / {X}", ABC, [True, False, True]),
        (f"{HEAD}{X} / {COW} / {CAT}", ABC, [True, False, True]),
        ("id,score / c,3 / a,1 / b,2", rated("abc"), [1, 2, 3]),
        # Scores that are all nought or one are no outcomes here.
        ("id,score / a,1 / b,0", rated("ab"), [1, 0]),
        ("caption,score / a dog,2.5 / A cat,1.5", rated("ab", ["a cat", "a dog"]), [1.5, 2.5]),
        # Two columns, or a row per candidate; of paragraphs too.
        ("id,s0,s1 / b,3,4 / a,1,2", preferred("ab"), [[1, 2], [3, 4]]),
        ("id,side,score / b,1,4 / a,0,1 / b,0,3 / a,1,2", preferred("ab"), [[1, 2], [3, 4]]),
        ("id,s0,s1 / b,3,4 / a,1,2", preferred("ab", 3), [[1, 2], [3, 4]]),
    ],
)
def test_rows_go_to_their_questions_without_a_note(tmp_path, text, benchmark, expected):
    assert listed(join_scores(table(tmp_path, text), benchmark, note=never)) == expected


@pytest.mark.parametrize(
    ("text", "benchmark", "expected", "note"),
    [
        ("id,correct / d,0 / c,1 / b,0 / a,1", ABC, [1, 0, 1], "no question of choices and are left out"),
        ("s0,s1 / 1,0 / 2,0 / 3,0", ABC, [[1, 0], [2, 0], [3, 0]], "taken to be in the order of choices"),
        ("score / 0.5 / 2 / 1", rated("abc"), [0.5, 2, 1], "in the order of toy-rated"),
        (f"{HEAD}{CAT} / 9.jpg,old,item,0 / {COW} / {X}", ABC, [1, 0, 1], "row 2: 1 of 4 rows belong to no"),
        # File name and subset tell questions of equal captions apart.
        (
            "filename,caption,negative_caption,type,subtype,correct / 2.jpg,a,b,t,x,1 / 2.jpg,a,b,s,x,0 / "
            "1.jpg,a,b,s,x,1 / 5.jpg,a,b,s,x,0",
            choices("s/0,1.jpg,a,b / s/1,2.jpg,a,b / t/0,2.jpg,a,b", subset=["s_x", "s_x", "t_x"]),
            [True, False, True],
            "1 of 4 rows belong to no question",
        ),
        (
            "caption,negative_caption,s0,s1 / c,d,1,0 / a,b,2,0 / a,b,3,0",
            choices("0,1,a,b / 1,2,a,b / 2,3,c,d"),
            [[2, 0], [3, 0], [1, 0]],
            "2 questions of choices have the captions of another; they are matched in order",
        ),
    ],
)
def test_what_is_believed_or_left_out_is_noted(tmp_path, text, benchmark, expected, note):
    notes = []
    assert listed(join_scores(table(tmp_path, text), benchmark, note=notes.append)) == expected
    assert note in notes[0]
    with pytest.warns(UserWarning, match="table.csv"):
        join_scores(table(tmp_path, text), benchmark)


def by_id(ids):
    return "id,correct" + "".join(f" / {name},1" for name in ids)


def of_columns(*names):
    return " / ".join([",".join(names), *[",".join("1" for _ in names)] * 3])


@pytest.mark.parametrize(
    ("text", "benchmark", "message"),
    [
        (by_id("ab"), ABC, r"of choices; given: 1 of 3 questions are missing: 'c'; allowed"),
        (by_id("axyzw"), ABC, r"2 of 3 questions are missing: 'b', 'c'; 4 of 5 ids are unknown"),
        (by_id("abbc"), ABC, r"id occurs twice"),
        (by_id("xyz"), ABC, r"3 of 3 questions are missing.*every id once: 'a', 'b', 'c'"),
        (by_id("a"), rated("ab"), "the ids are not those of toy-rated; given: 1 of 2 questions are missing"),
        (f"id,{HEAD}b,2.jpg,A COW,a hen,0 / a,{CAT} / c,{X}", ABC, "row 1: .*'b'.*hen'; allowed: 'a pig'; 1"),
        ("s0,s1 / 1,0 / 2,0", ABC, "given: 2 rows; allowed: 3, in the benchmark"),
        (f"{HEAD}{CAT} / 2.jpg,a hen,a pig,0 / 3.jpg,z,y,1", ABC, "given: 2 of 3 missing: 'b', 'c'.*'a cow'"),
        (f"{HEAD}{CAT} / {X}", ABC, "no row with their captions; given: 1 of 3 missing: 'b'.*'a cow'"),
        (f"{HEAD}{CAT} / {COW} / {X} / {CAT}", ABC, "row 1 and .*row 4: .* answered twice; given: 'a cat'"),
        # Answers to other questions.
        (of_columns("c0_i0", "c0_i1", "c1_i0", "c1_i1"), ABC, "questions of another form"),
        (of_columns("s0", "s1"), quads("012"), "questions of another form.*outcomes of quads"),
        (of_columns("ipos2t", "ineg2t", "tpos2i", "tneg2i"), ABC, "questions of another form"),
        (of_columns("s0", "s1", "s2"), ABC, "number of candidates than choices; given: 3; allowed: 2"),
        ("id,score / a,0.5", quads("a"), "given: a score per question .* allowed: scores or outcomes of q"),
        ("id,score / a,0.5", preferred("a"), "given: a score per question .* allowed: the scores of two c"),
        ("id,s0,s1 / a,0.5,1", rated("a"), "given: scores of 2 candidates .*; allowed: a score per quest"),
        ("id,s0,s1,s2 / a,0.5,1,3", preferred("a"), "another number of candidates .*; given: 3; allowed: 2"),
    ],
)
def test_tables_that_do_not_fit_are_refused(tmp_path, text, benchmark, message):
    refuses(message, lambda: join_scores(table(tmp_path, text), benchmark), error=ScoreError)


class TestOutcomesWithoutAnAnswer:
    """As of chat models that would not say: objects with a field `correct` beside others, null or NaN."""

    @pytest.fixture
    def folder(self, tmp_path):
        # Files are called after the model and the subset; item 1 of swap is no object at all.
        folder = tmp_path / "answers"
        folder.mkdir()
        asked = {"answer": {"text": "(1)"}, "filename": "1.jpg", "caption": "a", "negative_caption": "b"}
        (folder / "gpt-add.json").write_text(json.dumps({"0": {**asked, "correct": True}}))
        (folder / "gpt-swap.json").write_text(
            '{"0": {"answer": {}, "filename": "2.jpg", "caption": "c", "negative_caption": "d", '
            '"correct": NaN}, '
            '"1": NaN, "7": {"answer": {}, "filename": "9.jpg", "caption": "x", "negative_caption": "y", '
            '"correct": true}}'
        )
        return folder

    BENCHMARK = choices("swap/0,2.jpg,c,d / swap/1,3.jpg,e,f / add/0,1.jpg,a,b")

    def test_they_are_refused_without_a_policy(self, folder):
        said = "gpt-swap.json, item '0', column 'correct': .*; given: 2 of 4 without; .* --unanswered wrong"
        refuses(said, precomputed.load, str(folder), error=ScoreError)

    def test_they_are_wrong_and_counted(self, folder):
        loaded = precomputed.load(str(folder), Options(unanswered="wrong"))
        notes = []
        answers = matched(loaded, self.BENCHMARK, note=notes.append)
        assert answers.right["accuracy"].tolist() == [False, False, True]
        assert answers.unanswered.tolist() == [True, True, False]
        assert "1 of 4 ids belong to no question of choices and are left out: 'swap/7'" in notes[0]
        assert listed(join_scores(answers, self.BENCHMARK, note=never)) == [0, 0, 1]

    def test_they_are_left_out(self, folder):
        loaded = precomputed.load(str(folder), Options(unanswered="leave-out"))
        answers, benchmark = answered(matched(loaded, self.BENCHMARK, note=[].append), self.BENCHMARK)
        assert benchmark.questions.ids == ("add/0",)
        assert benchmark.card.title == "Choices (those answered of its 3)"
        assert listed(join_scores(answers, benchmark, note=never)) == [True]


def test_a_file_per_subset_has_ids_of_its_own(tmp_path):
    folder = tmp_path / "scores"
    folder.mkdir()
    (folder / "add.json").write_text(json.dumps({"0": {"s0": 5, "s1": 0}}))
    (folder / "swap.json").write_text(json.dumps({"1": {"s0": 7, "s1": 0}, "0": {"s0": 6, "s1": 0}}))
    assert join_scores(precomputed.load(str(folder)), SUBSETS, note=never).values[:, 0].tolist() == [6, 7, 5]
    (folder / "swap.json").write_text(json.dumps({"2": {"s0": 7, "s1": 0}, "0": {"s0": 6, "s1": 0}}))
    with pytest.raises(ScoreError, match=r"missing: 'swap/1'; 1 of 3 ids are unknown: 'swap/2'"):
        join_scores(precomputed.load(str(folder)), SUBSETS)


def test_files_of_subsets_without_ids_follow_the_benchmarks_order_within_each(tmp_path):
    # The benchmark begins with swap, the folder with add: plain row order would be wrong and look right.
    table(tmp_path, "s0,s1 / 5,0", "scores/add.csv")
    table(tmp_path, "s0,s1 / 6,0 / 7,0", "scores/swap.csv")
    loaded, notes = precomputed.load(str(tmp_path / "scores")), []
    assert join_scores(loaded, SUBSETS, note=notes.append).values[:, 0].tolist() == [6, 7, 5]
    assert len(notes) == 1
    table(tmp_path, "s0,s1 / 5,0 / 5,0", "scores/add.csv")
    table(tmp_path, "s0,s1 / 5,0", "scores/swap.csv")
    with pytest.raises(ScoreError, match=r"subset 'swap' has another number.*given: 1 rows; allowed: 2"):
        join_scores(precomputed.load(str(tmp_path / "scores")), SUBSETS)


@pytest.mark.parametrize("ids", ["a_c0 a_c1 b_c0 b_c1", "1_c0_i0 1_c0_i1 1_c1_i0 1_c1_i1"])
def test_ids_of_rated_captions_that_look_like_those_of_pairs(tmp_path, ids):
    names, scores = ids.split(), (0.5, 0.25, 1, 2)
    rows = [f"{name},{score}" for name, score in zip(names, scores, strict=True)]
    loaded = table(tmp_path, " / ".join(["id,score", *rows]))
    assert loaded.folded
    assert listed(join_scores(loaded, rated(names), note=never)) == list(scores)


def outcomes(answers):
    return {name: "".join(str(int(bit)) for bit in right) for name, right in answers.right.items()}


def test_outcomes_of_quads_keep_their_directions_and_detectors_answer_by_the_rule_of_two_steps(tmp_path):
    loaded = table(tmp_path, "id,ipos2t,ineg2t,tpos2i,tneg2i / 1,0,1,1,0 / 0,1,0,0,0")
    expected = {"ipos2t": "10", "ineg2t": "01", "tpos2i": "01", "tneg2i": "00"}
    assert outcomes(join_scores(loaded, quads("01"), note=never)) == expected
    # Of question 0 all is told apart; of question 1 caption 1 looks natural, and image 0 synthetic:
    # caption 0 is likelier synthetic than caption 1, so no caption is chosen rightly.
    loaded = table(tmp_path, "text_pred,img_pred,label / .1,.2,0. / .3,.6,0. / .9,.8,1. / .2,.7,1.")
    assert "rule of two steps" in loaded.described
    expected = {"ipos2t": "10", "ineg2t": "10", "tpos2i": "11", "tneg2i": "10"}
    assert outcomes(join_scores(loaded, quads("ab"), note=[].append)) == expected


def embeddings(images, captions, *ids):
    rows = (np.asarray(side, dtype=np.float32) for side in (images, captions))
    return precomputed_galleries.PrecomputedEmbeddings(Identity("embeddings:x.npz"), *rows, *ids)


@pytest.mark.parametrize(
    "rows",
    [
        ([[2, 0], [0, 7]], [[3, 4], [-8, 6]]),
        # By ids, in any order and with more rows.
        ([[1, 1], [0, 7], [2, 0]], [[-8, 6], [3, 4]], ("other", "0_i1", "0_i0"), ("0_c1", "0_c0")),
    ],
)
def test_embeddings_are_compared_by_cosine(rows):
    # Images along the axes, captions at 3-4-5 angles and of other lengths: cosines by hand.
    answers = join_scores(embeddings(*rows), quads("0"), note=never)
    np.testing.assert_allclose(answers.values, [[[0.6, 0.8], [-0.8, 0.6]]], rtol=1e-15)
    assert answers.values.dtype == np.float64


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((np.eye(3), np.eye(4, 3)), "number of image embeddings .* of quads; given: 3 rows; allowed: 4"),
        ((np.eye(4, 3), np.eye(5, 3)), "number of caption embeddings .* of quads; given: 5 rows; allowed: 4"),
        ((np.eye(4), np.eye(4), ("0_i0", "0_i1", "2_i0", "x"), None), "2 of 4 missing: '1_i0', '1_i1'; "),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(rows, message):
    refuses(message, join_scores, embeddings(*rows), quads("01"), error=CounterfoilError)


def test_many_pairs_are_compared_in_blocks(monkeypatch):
    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((40, 5)), rng.standard_normal((40, 5))
    benchmark = quads([str(q) for q in range(20)])
    whole = join_scores(embeddings(images, captions), benchmark).values
    monkeypatch.setattr(session, "_BLOCK", 35)  # seven pairs at a time
    assert join_scores(embeddings(images, captions), benchmark).values.tobytes() == whole.tobytes()


def test_embeddings_of_candidates_of_several_sentences_give_the_mean():
    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((2, 3)), rng.standard_normal((8, 3))
    given = precomputed_galleries.PrecomputedEmbeddings(
        Identity("e"), images, captions[::-1].copy(), ("i0", "i1"), tuple(f"c{i}" for i in range(8))[::-1]
    )
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, captions)]
    cosine = (unit[1] * unit[0][np.repeat([0, 1], 4)]).sum(axis=1)
    expected = cosine.reshape(2, 2, 2).mean(axis=2)
    np.testing.assert_allclose(join_scores(given, preferred("ab", sentences=2)).values, expected)


def test_more_than_ten_candidates_have_numbers_of_two_digits_and_a_null_is_located(tmp_path):
    names = ",".join(f"s{k:02d}" for k in range(12))
    assert table(tmp_path, f"id,{names} / a,{','.join('1' * 12)}").values.shape == (1, 12)
    path = tmp_path / "scores.jsonl"
    path.write_text('{"label": "0_c0_i0", "score": null}\n{"label": "0_c0_i1", "score": 0.5}\n')
    with pytest.raises(ScoreError, match="line 1, column 'score': not a number; given: nothing"):
        precomputed.load(str(path))
