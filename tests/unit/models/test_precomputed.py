"""Given tables: what a header says, every layout people use, and rows that cannot be right."""

import json

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.benchmarks.tables import DataTable
from counterfoil.catalog import model
from counterfoil.errors import DataError, InputError, ScoreError
from counterfoil.models import precomputed, precomputed_galleries
from counterfoil.models.base import Options
from counterfoil.models.precomputed import PrecomputedTable
from counterfoil.models.precomputed_galleries import PrecomputedRankings, load_similarity
from counterfoil.models.score_table_layouts import recognise
from counterfoil.store import write_parquet
from refusals import refuses

DIRECTIONS = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return str(path)


def csv(path, header, *rows):
    return write(path / "table.csv", "\n".join([header, *rows]) + "\n")


QUADS, CHOICES = [[[1, 2], [3, 4]], [[5, 6], [7, 8]]], [[1, 2], [3, 4]]
DRAWN = np.swapaxes(QUADS, 1, 2).tolist()
PAIRS = "a_c1_i1,4 b_c0_i0,5 a_c0_i1,2 b_c1_i1,8 a_c0_i0,1 b_c1_i0,7 a_c1_i0,3 b_c0_i1,6"


@pytest.mark.parametrize(
    ("header", "rows", "kind", "values"),
    [
        ("id,c0_i0,c0_i1,c1_i0,c1_i1", "a,1,2,3,4 b,5,6,7,8", "quad_scores", QUADS),
        ("id,T0_I0,T0_I1,T1_I0,T1_I1", "a,1,2,3,4 b,5,6,7,8", "quad_scores", QUADS),
        ("id,q0i0,q0i1,q1i0,q1i1", "a,1,2,3,4 b,5,6,7,8", "quad_scores", QUADS),
        ("c1_i1,c0_i1,id,c1_i0,c0_i0", "4,2,a,3,1 8,6,b,7,5", "quad_scores", QUADS),
        ("label,score", PAIRS, "quad_scores", QUADS),
        ("id,score", "a_c1,2 a_c0,1 a_c2,3 b_c1,5 b_c0,4 b_c2,6", "choice_scores", [[1, 2, 3], [4, 5, 6]]),
        ("id,score", "a_i1,2 a_i0,1 b_i1,4 b_i0,3", "choice_scores", CHOICES),
        ("id,score", "a_s1,2 a_s0,1 b_s1,4 b_s0,3", "choice_scores", CHOICES),
        ("question,s0,s1", "a,1,2 b,3,4", "choice_scores", CHOICES),
        ("uid,Positive_Score,negative_score", "a,1,2 b,3,4", "choice_scores", CHOICES),
        ("id,pos,neg", "a,1,2 b,3,4", "choice_scores", CHOICES),
        # Two candidates as runs keep them, and a row per candidate.
        ("question,a,b", "a,1,2 b,3,4", "choice_scores", CHOICES),
        ("question,a_d0,b_d0,a_d1,b_d1", "a,1,2,3,4 b,5,6,7,8", "drawn_scores", DRAWN),
        ("id,side,score", "b,1,4 a,0,1 a,1,2 b,0,3", "choice_scores", CHOICES),
        ("id,score", "a,0.5 b,-1", "rated_scores", [0.5, -1]),
    ],
)
def test_layouts(header, rows, kind, values, tmp_path):
    table = precomputed.load(csv(tmp_path, header, *rows.split()))
    assert (table.kind, table.ids) == (kind, ("a", "b"))
    assert (table.values.tolist(), table.folded) == (values, len(rows.split()) > 2)


def test_objects_of_scores_by_pair_and_of_right_and_wrong_by_question(tmp_path):
    scores = {f"x_c{c}_i{i}": 2 * c + i for c in (0, 1) for i in (0, 1)}
    result = precomputed.load(write(tmp_path / "scores.json", json.dumps(scores)))
    assert (result.kind, result.ids) == ("quad_scores", ("x",))
    for name, text in (("a", '{"0": true, "1": false}'), ("b", '{"0": 1, "1": 0}')):
        (tmp_path / f"{name}.json").write_text(text)
        table = precomputed.load(str(tmp_path / f"{name}.json"))
        assert (table.kind, table.ids) == ("choice_outcome", ("0", "1"))
        assert table.right["accuracy"].tolist() == [True, False]
    # Ones and zeros beside ids of pairs are scores: a crowd may be that sure.
    (tmp_path / "c.json").write_text('{"0_c0": 1, "0_c1": 0}')
    assert precomputed.load(str(tmp_path / "c.json")).kind == "choice_scores"


def test_our_own_scores(tmp_path):
    quads = {"question": ["a", "b"], **{f"c{c}_i{i}": [1.0 * c, 1.0 * i] for c in (0, 1) for i in (0, 1)}}
    write_parquet(tmp_path / "run" / "quads" / "answers.parquet", pa.table(quads))
    outcomes = {"question": ["a", "b"], **{name: [True, n > 1] for n, name in enumerate(DIRECTIONS)}}
    write_parquet(tmp_path / "run" / "outcomes" / "answers.parquet", pa.table(outcomes))
    write_parquet(tmp_path / "run" / "outcomes" / "items.parquet", pa.table({"question": ["a"]}))
    assert precomputed.load(str(tmp_path / "run" / "quads")).kind == "quad_scores"
    result = precomputed.load(str(tmp_path / "run" / "outcomes"))
    assert {name: result.right[name].tolist() for name in DIRECTIONS} == {
        name: [True, n > 1] for n, name in enumerate(DIRECTIONS)
    }
    refuses(r"a folder per benchmark.*run/outcomes, .*run/quads", precomputed.load, str(tmp_path / "run"))


def test_a_folder_with_a_file_per_subset(tmp_path):
    for name, rows in (("swap_obj", {"0": True, "1": False}), ("add_att", {"0": False, "3": True})):
        content = {key: {"caption": f"{name} {key}", "correct": right} for key, right in rows.items()}
        # As in GPT-4V's released answers: beside the objects a key with a number.
        content |= {"accuracy": 0.6667} if name == "swap_obj" else {}
        (tmp_path / f"{name}.json").write_text(json.dumps(content))
    result = precomputed.load(str(tmp_path))
    assert result.kind == "choice_outcome"
    assert result.subsets == ("add_att", "add_att", "swap_obj", "swap_obj")
    assert result.ids == ("0", "3", "0", "1")
    assert result.right["accuracy"].tolist() == [False, True, True, False]
    assert result.described.endswith("'accuracy' of swap_obj.json is passed over; 2 files")


def test_scores_go_before_outcomes():
    cells = {f"c{c}_i{i}": [0.5] for c in (0, 1) for i in (0, 1)}
    both = DataTable({"id": ["a"], "correct": ["1"], **cells}, "both.csv")
    assert recognise(both).kind == "quad_scores"
    assert recognise(both, "correct").kind == "choice_outcome"
    # A column of the four stands for the four.
    assert recognise(both, "c1_i0").columns == ("c0_i0", "c0_i1", "c1_i0", "c1_i1")
    # A column of captions is no score.
    table = DataTable({"positive": ["a cat"], "negative": ["a dog"], "correct": ["true"]}, "t.csv")
    assert recognise(table).kind == "choice_outcome"


def test_without_ids_and_with_a_column_of_choice(tmp_path):
    plain = precomputed.load(csv(tmp_path, "score", "0.5", "0.25"))
    assert (plain.kind, plain.ids, len(plain)) == ("rated_scores", None, 2)
    chosen = precomputed.load(csv(tmp_path, "name,words", "a,1", "b,7"), Options(column="words"))
    assert (chosen.kind, chosen.column) == ("rated_scores", ("words",))
    path = csv(tmp_path, "label,clip,blip", *(f"1_c{c}_i{i},{c},{i}" for c in (0, 1) for i in (0, 1)))
    assert precomputed.load(path, Options(column="blip")).values.tolist() == [[[0, 1], [0, 1]]]
    # The only column of true and false is guessed and noted.
    path = csv(tmp_path, "id,model,solved", "a,x,true", "b,x,false")
    for options in (Options(), Options(column="solved")):
        outcome = precomputed.load(path, options)
        assert outcome.described == "right or wrong per question in column solved; ids in 'id'"
    write_parquet(tmp_path / "t.parquet", pa.table({"id": [17.0, 18.0], "s0": [1, 2], "s1": [2, 1]}))
    assert precomputed.load(str(tmp_path / "t.parquet")).ids == ("17", "18")


@pytest.mark.parametrize(
    ("column", "pattern"),
    [
        ("words", "no such column; given: words; allowed: id, s0, s1"),
        ("id", "column 'id': the column is neither"),
    ],
)
def test_a_column_that_is_no_answer(column, pattern, tmp_path):
    with pytest.raises(ScoreError, match=pattern):
        precomputed.load(csv(tmp_path, "id,s0,s1", "a,1,2"), Options(column=column))


@pytest.mark.parametrize(
    ("lines", "pattern"),
    [
        (["id,s0,s1", "a,1,2", "b,nan,1"], r"table.csv, row 2, column 's0': not a finite number; given: nan"),
        (["id,s0,s1", "a,1,inf"], r"row 1, column 's1': not a finite number; given: inf"),
        (["id,s0,s1", "a,1,"], r"row 1, column 's1': not a number; given: \(empty\)"),
        (["id,s0,s1", "a,1,two"], r"row 1, column 's1': not a number; given: two"),
        (["id,s0,s1", "a,1,2", "a,1,2"], r"row 2, column 'id': id occurs twice; given: 'a', also in .*row 1"),
        (["id,s0,s1", ",1,2"], r"row 1, column 'id': id is missing"),
        (["id,correct", "a,1", "b,maybe"], r"no scores or outcomes recognised in the header"),
        (["id,ipos2t,ineg2t,tpos2i,tneg2i", "a,1,1,1,x"], r"row 1, column 'tneg2i': neither true nor false"),
        (["label,score", "1_c0_i0,1", "1_c0_i1,1", "1_c1_i0,1"], r"question '1' has 3 of its 4 scores"),
        (["label,score", "1_c0_i0,1", "1_c0_i0,1"], r"row 2, column 'label': id occurs twice"),
        (["label,score", "1_c0_i0,1", "seven,1"], r"row 2, column 'label': the id does not say which pair"),
        (["id,score", "a,0.7", "b,nan"], r"row 2, column 'score': not a finite number; given: nan"),
        (["id,side,score", "a,0,0.7", "a,1,1", "b,1,2"], r"question 'b' has 1 of its 2 scores"),
        (["id,side,score", "a,0,0.7", "a,0,1", "b,1,2"], r"row 2, column 'id': id occurs twice; given: 'a'"),
        (["id,score", "a_c0,1", "a_c2,1"], r"question 'a' has 2 of its 3 scores"),
        (["id,good,fine", "a,1,0"], r"several columns could be the answers; given: good \| fine; choose one"),
        (["id,correct,accuracy", "a,1,0"], r"several columns could be the answers; given: correct"),
        (["label,score,sim", "1_c0_i0,1,2"], r"several columns could be the answers; given: score \| sim"),
        (["text_pred,img_pred", "0.5,0.1"], r"no scores or outcomes recognised.*given: text_pred, img_pred"),
    ],
)
def test_tables_that_cannot_be_right(lines, pattern, tmp_path):
    assert "table.csv" in refuses(pattern, precomputed.load, csv(tmp_path, *lines), error=ScoreError)


def save(path, **arrays):
    np.savez(path, **arrays)
    return str(path)


IMAGES = np.array([[3.0, 4.0], [0.0, 2.0]], dtype=np.float32)
CAPTIONS = np.array([[1.0, 0.0], [0.0, 1.0], [5.0, 0.0]], dtype=np.float32)


@pytest.mark.parametrize(
    ("image", "caption"), [("images", "captions"), ("img", "cap"), ("image", "text"), ("images", "texts")]
)
def test_names_of_arrays(image, caption, tmp_path):
    result = precomputed_galleries.load_embeddings(
        save(tmp_path / "e.npz", **{image: IMAGES, caption: CAPTIONS})
    )
    assert (result.images.tolist(), result.captions.tolist()) == (IMAGES.tolist(), CAPTIONS.tolist())
    assert result.image_ids is result.caption_ids is None
    scores = result.compare(result.captions[[0, 1, 2]], result.images[[0, 0, 1]])
    # cos((1,0),(3,4)) = 3/5, cos((0,1),(3,4)) = 4/5, cos((5,0),(0,2)) = 0.
    np.testing.assert_allclose(scores, [0.6, 0.8, 0.0], atol=1e-12)
    assert scores.dtype == np.float64


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_types_and_ids(dtype, tmp_path):
    path = save(
        tmp_path / "e.npz", images=IMAGES.astype(dtype), captions=CAPTIONS.astype(dtype),
        image_ids=np.array([17, 3]), caption_ids=np.array(["a", "b", "ü"]),
    )  # fmt: skip
    result = precomputed_galleries.load_embeddings(path)
    assert result.images.dtype == (np.float64 if dtype is np.float64 else np.float32)
    assert (result.image_ids, result.caption_ids) == (("17", "3"), ("a", "b", "ü"))


@pytest.mark.parametrize(
    ("arrays", "pattern"),
    [
        ({"images": IMAGES, "captions": CAPTIONS.repeat(2, axis=1)}, r"differ in width; given: 'images' \(2"),
        ({"images": IMAGES, "words": CAPTIONS}, r"no array could be the captions; given: images, words"),
        ({"img": IMAGES, "images": IMAGES, "cap": CAPTIONS}, r"several arrays could be the images; given"),
        ({"images": IMAGES.reshape(2, 1, 2), "cap": CAPTIONS}, r"wrong shape; given: \(2, 1, 2\).*reshape"),
        ({"images": IMAGES.astype(int), "cap": CAPTIONS}, r"array 'images': embeddings are not floating"),
        ({"images": np.array([[1, np.nan]]), "cap": CAPTIONS}, r"array 'images', row 1: embedding is not"),
        ({"images": IMAGES, "cap": np.array([[1.0, 2], [0, 0]])}, r"array 'cap', row 2: embedding is all"),
        ({"images": IMAGES, "cap": CAPTIONS, "image_ids": np.arange(3)}, r"not one id per embedding; given"),
        ({"images": IMAGES, "cap": CAPTIONS, "image_ids": np.array([1, 1])}, r"rows 1 and 2: id occurs"),
        ({"images": IMAGES, "cap": CAPTIONS, "image_ids": np.array([1.5, 2])}, r"ids are not a list of"),
    ],
)
def test_embeddings_that_cannot_be_right(arrays, pattern, tmp_path):
    words = refuses(pattern, precomputed_galleries.load_embeddings, save(tmp_path / "e.npz", **arrays))
    assert "e.npz" in words


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
    result = load_similarity(str(tmp_path / "s.npy"))
    assert isinstance(result.values, np.memmap)
    assert (result.values.dtype, result.values.tolist()) == (stored.dtype, stored.tolist())
    assert (result.image_ids, result.caption_ids) == (None, None)


@pytest.mark.parametrize(
    ("image", "caption"), [("image_ids", "caption_ids"), ("img_ids", "cap_ids"), ("image_id", "text_ids")]
)
def test_ids_under_the_names_of_embeddings(image, caption, file, tmp_path):
    options = ids_at(tmp_path / "i.npz", **{image: np.array([42, 7]), caption: np.array(["c", "a", "b"])})
    result = load_similarity(str(file), options)
    assert (result.image_ids, result.caption_ids) == (("42", "7"), ("c", "a", "b"))


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


def test_files_that_are_not_there_and_ids_that_are_for_similarities_only(file, tmp_path):
    refuses("no such file or folder", precomputed.load, str(tmp_path / "none.csv"))
    (tmp_path / "empty").mkdir()
    refuses("no table in this folder", precomputed.load, str(tmp_path / "empty"))
    with pytest.raises(DataError, match="no such file; check the path after 'embeddings:'"):
        precomputed_galleries.load_embeddings(str(tmp_path / "none.npz"))
    refused(file, "no such file; check the path after '--ids'", Options(ids=tmp_path / "none.npz"))
    refuses("no such file; check the path after 'given:'", model, f"given:{tmp_path / 'none.npy'}")
    np.savez(tmp_path / "r.npz", i2t=np.arange(3))
    refuses("no table of scores; given: an npz file; embeddings are", model, f"given:{tmp_path / 'r.npz'}")
    (tmp_path / "t.csv").write_text("id,score\n1,2\n")
    (tmp_path / "r.json").write_text('{"i2t": {"1": [2]}, "t2i": {}}')
    options = ids_at(tmp_path / "i.npz", image_ids=np.arange(2), caption_ids=np.arange(3))
    for spec in (f"given:{tmp_path}/t.csv", f"given:{tmp_path}/r.json", "blind:constant"):
        refuses("has no use for the option 'ids'", model, spec, options, error=InputError)


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
    result = model(f"given:{save_json(tmp_path / 'r.json', value)}")
    assert isinstance(result, PrecomputedRankings)
    for lists, said in ((result.i2t, I2T), (result.t2i, T2I)):
        assert list(lists.queries) == list(said)
        assert [[int(i) for i in lists[q]] for q in lists.queries] == list(said.values())
        assert lists.lengths.tolist() == [len(row) for row in said.values()]
        assert len(set(lists.items)) == len(lists.items) == len({i for row in said.values() for i in row})
        assert lists.entries.dtype == np.int32


QUAD = {"c0_i0": 0.1, "c0_i1": 0.2, "c1_i0": 0.3, "c1_i1": 0.4}


@pytest.mark.parametrize("value", [{"i2t": QUAD, "t2i": QUAD}, {"i2t": True, "t2i": False}, [QUAD]])
def test_tables_with_such_names_stay_tables(value, tmp_path):
    result = model(f"given:{save_json(tmp_path / 't.json', value)}")
    assert isinstance(result, PrecomputedTable)
    assert result.ids == (("i2t", "t2i") if isinstance(value, dict) else None)


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
    assert str(path) in refuses(pattern, model, f"given:{path}")
