import csv
import json

import numpy as np
import pytest

from contracts import forms
from contracts.forms import paragraphs_of, ratings_of
from counterfoil.benchmarks import Caption, Image, Outcomes, Scores
from counterfoil.engine.join_scores import answered, join_scores, matched
from counterfoil.engine.run import run
from counterfoil.errors import CounterfoilError, ScoreError
from counterfoil.models import precomputed, precomputed_galleries
from counterfoil.models.base import Identity, Options


def quads(ids, texts=None):
    texts = texts or [None] * (2 * len(ids))
    return forms.quads_of(
        [Image(f"{name}_i{j}") for name in ids for j in (0, 1)],
        [Caption(f"{name}_c{j}", texts[2 * q + j]) for q, name in enumerate(ids) for j in (0, 1)],
        ids=ids,
        name="quads",
        title="Quads",
    )


def choices(rows, **groupings):
    """Rows of (id, file name, caption, negative caption)."""
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
    return ratings_of(np.ones((n, 1)), np.arange(n), ids=ids, captions=_captions(captions or [None] * n))


def preferred(ids, captions=None, sentences=1):
    n = len(ids)
    rows = 2 * n * sentences
    images = np.repeat(np.arange(n), 2 * sentences)
    return paragraphs_of(n, sentences, images, ids=ids, captions=_captions(captions or [None] * rows))


def _captions(texts):
    return [Caption(f"c{i}", text) for i, text in enumerate(texts)]


ABC = choices([("a", "1.jpg", "A cat ", "a dog"), ("b", "2.jpg", "a cow", "a pig"), ("c", "3.jpg", "x", "y")])


def table(tmp_path, rows, name="table.csv"):
    """A CSV with the columns of the first row's keys."""
    path = tmp_path / name
    path.parent.mkdir(exist_ok=True, parents=True)
    with open(path, "w", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)
    return precomputed.load(str(path))


def never(message):
    raise AssertionError(message)


# -- by ids -----------------------------------------------------------------------------------------------


def test_rows_of_any_order_go_to_their_ids(tmp_path):
    rows = [{"id": name, "s0": score, "s1": 0} for name, score in (("c", 3), ("a", 1), ("b", 2))]
    answers = join_scores(table(tmp_path, rows), ABC, note=never)
    assert isinstance(answers, Scores)
    assert answers.values.tolist() == [[1, 0], [2, 0], [3, 0]]


def test_pairs_go_to_their_question_caption_and_image(tmp_path):
    # The score is 100 q + 10 c + i, so every cell shows where it belongs.
    labels = [(q, c, i) for q in (1, 0) for i in (1, 0) for c in (0, 1)]
    rows = [{"label": f"{q}_c{c}_i{i}", "score": 100 * q + 10 * c + i} for q, c, i in labels]
    answers = join_scores(table(tmp_path, rows), quads(["0", "1"]), note=never)
    assert answers.values.tolist() == [[[0, 1], [10, 11]], [[100, 101], [110, 111]]]


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        (["a", "b"], r"the ids are not those of choices; given: 1 of 3 questions are missing: 'c'; allowed"),
        (["a", "x", "y", "z", "w"], r"2 of 3 questions are missing: 'b', 'c'; 4 of 5 ids are unknown"),
        (["a", "b", "b", "c"], r"id occurs twice"),
        (["x", "y", "z"], r"3 of 3 questions are missing.*every id once: 'a', 'b', 'c'"),
    ],
)
def test_ids_that_do_not_fit_are_counted_and_named(tmp_path, ids, message):
    with pytest.raises(ScoreError, match=message):
        join_scores(table(tmp_path, [{"id": name, "correct": 1} for name in ids]), ABC)


def test_ids_of_no_question_are_left_out_and_counted(tmp_path):
    said = []
    rows = [{"id": name, "correct": name in "ac"} for name in "dcba"]
    assert join_scores(table(tmp_path, rows), ABC, note=said.append).right["accuracy"].tolist() == [1, 0, 1]
    assert len(said) == 1
    assert said[0].endswith("1 of 4 ids belong to no question of choices and are left out: 'd'")


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

    BENCHMARK = choices(
        [("swap/0", "2.jpg", "c", "d"), ("swap/1", "3.jpg", "e", "f"), ("add/0", "1.jpg", "a", "b")]
    )

    def test_they_are_refused_without_a_policy(self, folder):
        with pytest.raises(
            ScoreError,
            match=r"gpt-swap.json, item '0', column 'correct': a question without an answer; given: 2 of 4 "
            r"without; allowed: true or false; .* --unanswered wrong or --unanswered leave-out",
        ):
            precomputed.load(str(folder))

    def test_they_are_wrong_and_counted(self, folder):
        loaded = precomputed.load(str(folder), Options(unanswered="wrong"))
        said = []
        found = matched(loaded, self.BENCHMARK, note=said.append)
        assert found.right["accuracy"].tolist() == [False, False, True]
        assert found.unanswered.tolist() == [True, True, False]
        assert "1 of 4 ids belong to no question of choices and are left out: 'swap/7'" in said[0]
        assert join_scores(found, self.BENCHMARK, note=never).right["accuracy"].tolist() == [0, 0, 1]

    def test_they_are_left_out(self, folder):
        loaded = precomputed.load(str(folder), Options(unanswered="leave-out"))
        found, benchmark = answered(matched(loaded, self.BENCHMARK, note=[].append), self.BENCHMARK)
        assert benchmark.questions.ids == ("add/0",)
        assert benchmark.card.title == "Choices (those answered of its 3)"
        assert join_scores(found, benchmark, note=never).right["accuracy"].tolist() == [True]


def test_ids_win_but_their_captions_must_agree(tmp_path):
    rows = [
        {"id": "b", "caption": "A COW", "negative_caption": "a pig", "correct": 0},
        {"id": "a", "caption": "a cat", "negative_caption": "a dog", "correct": 1},
        {"id": "c", "caption": "x", "negative_caption": "y", "correct": 1},
    ]
    assert join_scores(table(tmp_path, rows), ABC, note=never).right["accuracy"].tolist() == [
        True,
        False,
        True,
    ]
    rows[0]["negative_caption"] = "a hen"
    with pytest.raises(ScoreError) as caught:
        join_scores(table(tmp_path, rows), ABC)
    assert "row 1: a caption differs from that of question 'b'" in str(caught.value)
    assert "given: 'a hen'; allowed: 'a pig'; 1 of 3 rows differ" in str(caught.value)


def test_somebody_elses_numbering_gives_way_to_captions(tmp_path):
    rows = [
        {"index": 0, "caption": "x", "negative_caption": "y", "correct": 0},
        {"index": 1, "caption": "a cat", "negative_caption": "a dog", "correct": 1},
        {"index": 2, "caption": "a cow", "negative_caption": "a pig", "correct": 1},
    ]
    assert join_scores(table(tmp_path, rows), ABC, note=never).right["accuracy"].tolist() == [
        True,
        True,
        False,
    ]


def test_a_file_per_subset_has_ids_of_its_own(tmp_path):
    benchmark = choices([("swap/0", "1", "a", "b"), ("swap/2", "2", "c", "d"), ("add/0", "3", "e", "f")])
    folder = tmp_path / "scores"
    folder.mkdir()
    (folder / "add.json").write_text(json.dumps({"0": {"s0": 5, "s1": 0}}))
    (folder / "swap.json").write_text(json.dumps({"2": {"s0": 7, "s1": 0}, "0": {"s0": 6, "s1": 0}}))
    assert join_scores(precomputed.load(str(folder)), benchmark, note=never).values[:, 0].tolist() == [
        6,
        7,
        5,
    ]
    (folder / "swap.json").write_text(json.dumps({"1": {"s0": 7, "s1": 0}, "0": {"s0": 6, "s1": 0}}))
    with pytest.raises(ScoreError, match=r"missing: 'swap/2'; 1 of 3 ids are unknown: 'swap/1'"):
        join_scores(precomputed.load(str(folder)), benchmark)


# -- by order and captions --------------------------------------------------------------------------------


def test_without_ids_rows_are_in_order_and_must_be_as_many(tmp_path):
    rows = [{"s0": score, "s1": 0} for score in (1, 2, 3)]
    said = []
    assert join_scores(table(tmp_path, rows), ABC, note=said.append).values[:, 0].tolist() == [1, 2, 3]
    assert len(said) == 1
    assert "no column of ids or captions; its rows are taken to be in the order of choices" in said[0]
    with pytest.raises(ScoreError, match=r"given: 2 rows; allowed: 3, in the benchmark"):
        join_scores(table(tmp_path, rows[:2]), ABC)


def test_files_of_subsets_without_ids_follow_the_benchmarks_order_within_each(tmp_path):
    # The benchmark begins with swap, the folder with add: plain row order would be wrong and look right.
    benchmark = choices([("swap/0", "1", "a", "b"), ("swap/1", "2", "c", "d"), ("add/0", "3", "e", "f")])
    table(tmp_path, [{"s0": 5, "s1": 0}], "scores/add.csv")
    table(tmp_path, [{"s0": 6, "s1": 0}, {"s0": 7, "s1": 0}], "scores/swap.csv")
    loaded, said = precomputed.load(str(tmp_path / "scores")), []
    assert join_scores(loaded, benchmark, note=said.append).values[:, 0].tolist() == [6, 7, 5]
    assert len(said) == 1
    table(tmp_path, [{"s0": 5, "s1": 0}] * 2, "scores/add.csv")
    table(tmp_path, [{"s0": 5, "s1": 0}], "scores/swap.csv")
    with pytest.raises(ScoreError, match=r"subset 'swap' has another number.*given: 1 rows; allowed: 2"):
        join_scores(precomputed.load(str(tmp_path / "scores")), benchmark)


CAPTIONED = [
    {"filename": "1.jpg", "caption": "a cat", "negative_caption": "A dog", "correct": 1},
    {"filename": "2.jpg", "caption": "a cow ", "negative_caption": "a pig", "correct": 0},
    {"filename": "3.jpg", "caption": "x", "negative_caption": "y", "correct": 1},
]


def test_rows_in_order_with_agreeing_captions_need_no_word(tmp_path):
    assert join_scores(table(tmp_path, CAPTIONED), ABC, note=never).right["accuracy"].tolist() == [1, 0, 1]


def test_rows_of_another_order_are_matched_by_captions_and_noted(tmp_path):
    notes = []
    answers = join_scores(table(tmp_path, CAPTIONED[::-1]), ABC, note=notes.append)
    assert answers.right["accuracy"].tolist() == [1, 0, 1]
    assert len(notes) == 1
    assert "not in the order of choices; matched by their captions" in notes[0]


def test_the_first_caption_that_differs_is_named_with_its_row(tmp_path):
    rows = [CAPTIONED[0], {**CAPTIONED[1], "caption": "a hen"}, {**CAPTIONED[2], "caption": "z"}]
    with pytest.raises(ScoreError) as caught:
        join_scores(table(tmp_path, rows), ABC)
    assert "row 2: a caption differs from that of question 'b' of choices" in str(caught.value)
    assert "given: 'a hen'; allowed: 'a cow'; 2 of 3 rows differ" in str(caught.value)


def test_rows_of_no_question_are_dropped_only_by_captions_and_noted(tmp_path):
    extra = {"filename": "9.jpg", "caption": "old", "negative_caption": "item", "correct": 0}
    notes = []
    answers = join_scores(table(tmp_path, [CAPTIONED[0], extra, *CAPTIONED[1:]]), ABC, note=notes.append)
    assert answers.right["accuracy"].tolist() == [1, 0, 1]
    assert len(notes) == 1
    assert "row 2: 1 of 4 rows belong to no question of choices and are left out" in notes[0]
    with pytest.warns(UserWarning, match="belong to no question"):
        join_scores(table(tmp_path, [*CAPTIONED, extra]), ABC)


def test_questions_without_a_row_are_an_error(tmp_path):
    with pytest.raises(ScoreError, match=r"no row with their captions; given: 1 of 3 missing: 'b'.*'a cow'"):
        join_scores(table(tmp_path, [CAPTIONED[0], CAPTIONED[2]]), ABC)


def test_a_question_answered_twice_is_an_error(tmp_path):
    with pytest.raises(ScoreError, match=r"row 1 and .*row 4: a question is answered twice; given: 'a cat'"):
        join_scores(table(tmp_path, [*CAPTIONED, CAPTIONED[0]]), ABC)


def test_file_name_and_subset_tell_questions_of_equal_captions_apart(tmp_path):
    benchmark = choices(
        [("s/0", "1.jpg", "a", "b"), ("s/1", "2.jpg", "a", "b"), ("t/0", "2.jpg", "a", "b")],
        subset=["s_x", "s_x", "t_x"],
    )
    asked = [("2.jpg", "t", 1), ("2.jpg", "s", 0), ("1.jpg", "s", 1), ("5.jpg", "s", 0)]
    rows = [
        {"filename": name, **dict(zip(("caption", "negative_caption"), "ab", strict=True)), "type": kind}
        | {"subtype": "x", "correct": right}
        for name, kind, right in asked
    ]
    notes = []
    answers = join_scores(table(tmp_path, rows), benchmark, note=notes.append)
    assert answers.right["accuracy"].tolist() == [True, False, True]
    assert len(notes) == 1


def test_equal_questions_are_matched_in_order_and_noted(tmp_path):
    benchmark = choices([("0", "1", "a", "b"), ("1", "2", "a", "b"), ("2", "3", "c", "d")])
    rows = [
        {"caption": text, "negative_caption": other, "s0": score, "s1": 0}
        for text, other, score in (("c", "d", 1), ("a", "b", 2), ("a", "b", 3))
    ]
    notes = []
    assert join_scores(table(tmp_path, rows), benchmark, note=notes.append).values[:, 0].tolist() == [2, 3, 1]
    assert "2 questions of choices have the captions of another; they are matched in order" in notes[0]


# -- what is answered -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("columns", "benchmark", "message"),
    [
        (("c0_i0", "c0_i1", "c1_i0", "c1_i1"), ABC, "questions of another form"),
        (("s0", "s1"), quads(["0", "1", "2"]), "questions of another form.*outcomes of quads"),
        (("ipos2t", "ineg2t", "tpos2i", "tneg2i"), ABC, "questions of another form"),
        (("s0", "s1", "s2"), ABC, "another number of candidates than choices; given: 3; allowed: 2"),
    ],
)
def test_answers_to_other_questions_are_refused(tmp_path, columns, benchmark, message):
    with pytest.raises(ScoreError, match=message):
        join_scores(table(tmp_path, [dict.fromkeys(columns, 1)] * 3), benchmark)


def test_outcomes_of_quads_keep_their_directions(tmp_path):
    names = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")
    rows = [{"id": q, **dict(zip(names, bits, strict=True))} for q, bits in (("1", "0110"), ("0", "1000"))]
    answers = join_scores(table(tmp_path, rows), quads(["0", "1"]), note=never)
    assert isinstance(answers, Outcomes)
    assert {name: right.tolist() for name, right in answers.right.items()} == {
        "ipos2t": [True, False],
        "ineg2t": [False, True],
        "tpos2i": [False, True],
        "tneg2i": [False, False],
    }


# -- embeddings -------------------------------------------------------------------------------------------


def embeddings(images, captions, image_ids=None, caption_ids=None):
    return precomputed_galleries.PrecomputedEmbeddings(
        Identity("embeddings:x.npz"),
        np.asarray(images, dtype=np.float32),
        np.asarray(captions, dtype=np.float32),
        image_ids,
        caption_ids,
    )


def test_embeddings_in_order_are_compared_by_cosine():
    # Images along the axes, captions at 3-4-5 angles and of other lengths: cosines by hand.
    answers = join_scores(embeddings([[2, 0], [0, 7]], [[3, 4], [-8, 6]]), quads(["0"]), note=never)
    np.testing.assert_allclose(answers.values, [[[0.6, 0.8], [-0.8, 0.6]]], rtol=1e-15)
    assert answers.values.dtype == np.float64


def test_embeddings_by_ids_may_have_any_order_and_more_rows():
    answers = join_scores(
        embeddings([[1, 1], [0, 7], [2, 0]], [[-8, 6], [3, 4]], ("other", "0_i1", "0_i0"), ("0_c1", "0_c0")),
        quads(["0"]),
    )
    np.testing.assert_allclose(answers.values, [[[0.6, 0.8], [-0.8, 0.6]]], rtol=1e-15)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ((np.eye(3), np.eye(4, 3)), "number of image embeddings .* of quads; given: 3 rows; allowed: 4"),
        ((np.eye(4, 3), np.eye(5, 3)), "number of caption embeddings .* of quads; given: 5 rows; allowed: 4"),
        (
            (np.eye(4), np.eye(4), ("0_i0", "0_i1", "2_i0", "x"), None),
            r"images of quads have no embedding; given: 2 of 4 missing: '1_i0', '1_i1'; .*'0_i0', '0_i1'",
        ),
    ],
)
def test_embeddings_that_do_not_fit_are_refused(rows, message):
    with pytest.raises(CounterfoilError, match=message):
        join_scores(embeddings(*rows), quads(["0", "1"]))


def test_many_pairs_are_compared_in_blocks(monkeypatch):
    import sys

    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((40, 5)), rng.standard_normal((40, 5))
    benchmark = quads([str(q) for q in range(20)])
    whole = join_scores(embeddings(images, captions), benchmark).values
    monkeypatch.setattr(sys.modules["counterfoil.engine.join_scores"], "_BLOCK", 35)  # seven pairs at a time
    assert join_scores(embeddings(images, captions), benchmark).values.tobytes() == whole.tobytes()


def test_the_engine_takes_given_answers(tmp_path):
    rows = [{"id": name, "s0": 1, "s1": 0} for name in "abc"]
    assert run(ABC, table(tmp_path, rows)).values.shape == (3, 2)


class TestJudgedCaptions:
    def test_a_score_per_question_by_id_and_in_order(self, tmp_path):
        benchmark = rated(["a", "b", "c"])
        rows = [{"id": name, "score": value} for name, value in (("c", 3), ("a", 1), ("b", 2))]
        assert join_scores(table(tmp_path, rows), benchmark, note=never).values.tolist() == [1, 2, 3]
        unnamed, said = [{"score": value} for value in (0.5, 2, 1)], []
        assert join_scores(table(tmp_path, unnamed), benchmark, note=said.append).values.tolist() == [
            0.5,
            2,
            1,
        ]
        assert "in the order of toy-rated" in said[0]

    @pytest.mark.parametrize("ids", ["a_c0 a_c1 b_c0 b_c1", "1_c0_i0 1_c0_i1 1_c1_i0 1_c1_i1"])
    def test_ids_that_look_like_those_of_pairs(self, tmp_path, ids):
        names = ids.split()
        rows = [{"id": name, "score": value} for name, value in zip(names, (0.5, 0.25, 1, 2), strict=True)]
        loaded = table(tmp_path, rows)
        assert loaded.folded
        assert join_scores(loaded, rated(names), note=never).values.tolist() == [0.5, 0.25, 1, 2]

    def test_scores_that_are_all_nought_or_one(self, tmp_path):
        rows = [{"id": "a", "score": 1}, {"id": "b", "score": 0}]
        assert join_scores(table(tmp_path, rows), rated("ab"), note=never).values.tolist() == [1, 0]

    def test_rows_in_another_order_are_matched_by_their_captions(self, tmp_path):
        benchmark = rated("ab", ["a cat", "a dog"])
        rows = [{"caption": "a dog", "score": 2.5}, {"caption": "A cat", "score": 1.5}]
        assert join_scores(table(tmp_path, rows), benchmark, note=never).values.tolist() == [1.5, 2.5]

    def test_two_columns_or_a_row_per_candidate(self, tmp_path):
        benchmark = preferred("ab")
        columns = [{"id": "b", "s0": 3, "s1": 4}, {"id": "a", "s0": 1, "s1": 2}]
        sides = [
            {"id": n, "side": s, "score": v}
            for n, s, v in (("b", 1, 4), ("a", 0, 1), ("b", 0, 3), ("a", 1, 2))
        ]
        for rows in (columns, sides):
            assert join_scores(table(tmp_path, rows), benchmark, note=never).values.tolist() == [
                [1, 2],
                [3, 4],
            ]
        paragraphs = preferred("ab", ["x"] * 12, sentences=3)
        assert join_scores(table(tmp_path, columns), paragraphs, note=never).values.tolist() == [
            [1, 2],
            [3, 4],
        ]

    def test_tables_of_other_forms(self, tmp_path):
        scores = table(tmp_path, [{"id": "a", "score": 0.5}])
        two = table(tmp_path, [{"id": "a", "s0": 0.5, "s1": 1}], "two.csv")
        three = table(tmp_path, [{"id": "a", "s0": 0.5, "s1": 1, "s2": 3}], "three.csv")
        for loaded, benchmark, message in (
            (scores, quads("a"), "given: a score per question .* allowed: scores or outcomes of quads"),
            (scores, preferred("a"), "given: a score per question .* allowed: the scores of two candid"),
            (two, rated("a"), "given: scores of 2 candidates .*; allowed: a score per question"),
            (three, preferred("a"), "another number of candidates than toy-preference; given: 3; allowed: 2"),
            (scores, rated("ab"), "the ids are not those of toy-rated; given: 1 of 2 questions are missing"),
        ):
            with pytest.raises(ScoreError, match=message):
                join_scores(loaded, benchmark)

    def test_embeddings_of_candidates_alone_will_do(self):
        rng = np.random.default_rng(0)
        images, captions = rng.standard_normal((2, 3)), rng.standard_normal((8, 3))
        benchmark = preferred("ab", sentences=2)
        embeddings = precomputed_galleries.PrecomputedEmbeddings(
            Identity("e"), images, captions[::-1].copy(), ("i0", "i1"), tuple(f"c{i}" for i in range(8))[::-1]
        )
        unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, captions)]
        cosine = (unit[1] * unit[0][np.repeat([0, 1], 4)]).sum(axis=1)
        expected = cosine.reshape(2, 2, 2).mean(axis=2)
        np.testing.assert_allclose(join_scores(embeddings, benchmark).values, expected)


class TestOutputsOfDetectors:
    def test_rows_of_either_label_answer_by_the_rule_of_two_steps(self, tmp_path):
        """Of question 0 all is told apart; of question 1 caption 1 looks natural, and image 0 synthetic."""
        values = {0: [(0.1, 0.2), (0.3, 0.6)], 1: [(0.9, 0.8), (0.2, 0.7)]}
        rows = [
            {"text_pred": text, "img_pred": image, "label": float(label)}
            for label in (0, 1)
            for text, image in values[label]
        ]
        loaded = table(tmp_path, rows)
        assert "rule of two steps" in loaded.described
        right = join_scores(loaded, quads("ab"), note=[].append).right
        # Question 1: caption 0 is likelier synthetic than caption 1, so no caption is chosen rightly.
        assert {name: column.tolist() for name, column in right.items()} == {
            "ipos2t": [True, False],
            "ineg2t": [True, False],
            "tpos2i": [True, True],
            "tneg2i": [True, False],
        }


def test_columns_with_the_numbers_of_caption_and_image(tmp_path):
    row = {"S00": 4, "s01": 3, "s10": 2, "s11": 1}
    assert join_scores(table(tmp_path, [{"id": "a", **row}]), quads("a"), note=never).values.tolist() == [
        [[4, 3], [2, 1]]
    ]
    eleven = {f"s{k:02d}": k for k in range(12)}
    assert table(tmp_path, [{"id": "a", **eleven}]).values.shape == (1, 12)


def test_a_null_in_the_first_row_is_located(tmp_path):
    path = tmp_path / "scores.jsonl"
    path.write_text('{"label": "0_c0_i0", "score": null}\n{"label": "0_c0_i1", "score": 0.5}\n')
    with pytest.raises(ScoreError, match="line 1, column 'score': not a number; given: nothing"):
        precomputed.load(str(path))
