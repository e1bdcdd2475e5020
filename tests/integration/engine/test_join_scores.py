"""Given answers find their questions: rated captions in any order, and released answers on released data."""

import csv

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from contracts.forms import ratings_of
from counterfoil import catalog
from counterfoil.benchmarks import Caption, Image
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import specs
from counterfoil.engine.join_scores import join_scores
from counterfoil.errors import ScoreError
from counterfoil.metrics import contrast
from counterfoil.models import precomputed, precomputed_galleries
from counterfoil.models.base import Options
from refusals import refuses

#: Two pictures; the text "a dog" is rated for both, and the second question of x.jpg has a text of y.jpg.
ASKED = ratings_of(
    np.array([[1.0], [2.0], [3.0], [4.0]]),
    np.array([0, 0, 1, 1]),
    ids=["x.jpg/x.jpg#0", "x.jpg/y.jpg#1", "y.jpg/y.jpg#0", "y.jpg/x.jpg#3"],
    shown=[Image("x.jpg"), Image("y.jpg")],
    captions=[
        Caption(name, text) for name, text in zip("abcd", ("a cat", "a dog", "a cow", "a pig"), strict=True)
    ],
)
#: One caption item that two pictures share, as readers make of equal texts: known by the first name only.
SHARED = ratings_of(
    np.array([[1.0], [2.0], [3.0]]),
    np.array([0, 1, 1]),
    ids=["x.jpg/x.jpg#0", "y.jpg/y.jpg#0", "y.jpg/y.jpg#1"],
    shown=[Image("x.jpg"), Image("y.jpg")],
    captions=[Caption("x.jpg#0", "a dog"), Caption("x.jpg#0 again", "a dog"), Caption("y.jpg#1", "a cow")],
)


def loaded(path, **options):
    return precomputed.load(str(path), Options(whole_rows=True, **options))


def written(tmp_path, header, rows, name="scores.csv"):
    path = tmp_path / name
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        writer.writerows(rows)
    return path


def never(message):
    raise AssertionError(message)


def aligned(path, benchmark=ASKED, note=never):
    return join_scores(loaded(path), benchmark, note=note).values.tolist()


@pytest.mark.parametrize(
    ("header", "rows"),
    [
        ("image_id,caption_id", ["y.jpg,x.jpg#3", "x.jpg,x.jpg#0", "y.jpg,y.jpg#0", "x.jpg,y.jpg#1"]),
        ("image,caption", ["y.jpg,a pig", "x.jpg,A  cat", "y.jpg,a cow", "x.jpg,a dog "]),
        ("Image_Path,Candidate", ["a/y.jpg,a pig", "a/x.jpg,a cat", "a/y.jpg,a cow", "a/x.jpg,a dog"]),
        ("id,image_id,caption_id", ["7,y,d", "8,x,a", "9,y,c", "10,x,b"]),
        ("label,image_id,caption_id", ["1,y,d", "1,x,a", "2,y,c", "2,x,b"]),
    ],
)
def test_every_way_to_name_a_pair_gives_the_same_scores(tmp_path, header, rows):
    scored = [[*row.split(","), score] for row, score in zip(rows, (4, 1, 3, 2), strict=True)]
    path = written(tmp_path, [*header.split(","), "score"], scored)
    assert aligned(path) == [1, 2, 3, 4]


def test_numbers_at_the_end_of_names_are_ids_and_so_are_floats_of_a_data_frame(tmp_path):
    captions = [Caption("648388", None), Caption("33416", None)]
    images = [Image("431431"), Image("9")]
    asked = ratings_of(np.ones((2, 1)), np.array([0, 1]), shown=images, captions=captions)
    rows = [["sentid:33416", "COCO_val2014_000000000009.jpg", 2]]
    rows += [["sentid:648388", "COCO_val2014_000000431431.jpg", 1]]
    assert aligned(written(tmp_path, ["caption", "image", "score"], rows), asked) == [1, 2]
    path = tmp_path / "scores.parquet"
    columns = {"image_id": [9.0, 431431.0], "caption_id": [33416.0, 648388.0], "score": [0.5, 0.25]}
    pq.write_table(pa.table(columns), path)
    assert aligned(path, asked) == [0.25, 0.5]


def test_a_text_of_two_pictures_is_found_by_either_name(tmp_path):
    rows = [["y.jpg", "y.jpg#1", 3], ["y.jpg", "y.jpg#0", 2], ["x.jpg", "x.jpg#0", 1]]
    assert aligned(written(tmp_path, ["image_id", "caption_id", "score"], rows), SHARED) == [1, 2, 3]


def test_rows_without_a_question_are_left_out_and_counted(tmp_path):
    rows = [["y", "d", 4], ["z", "a", 9], ["x", "a", 1], ["y", "c", 3], ["x", "b", 2], ["x", "d", 9]]
    said = []
    path = written(tmp_path, ["image_id", "caption_id", "score"], rows)
    assert aligned(path, note=said.append) == [1, 2, 3, 4]
    assert len(said) == 1
    assert "2 of 6 rows are of pairs that toy-rated does not ask about" in said[0]


def test_a_pair_that_occurs_twice_needs_one_score(tmp_path):
    rows = [["y", "d", 4], ["x", "a", 1], ["x", "a", 1], ["y", "c", 3], ["x", "b", 2]]
    header = ["image_id", "caption_id", "score"]
    assert aligned(written(tmp_path, header, rows)) == [1, 2, 3, 4]
    rows[2][2] = 5
    with pytest.raises(ScoreError, match=r"row 2 and .*row 3: .* two scores; given: 1 and 5"):
        aligned(written(tmp_path, header, rows))


@pytest.mark.parametrize(
    ("header", "rows", "message"),
    [
        ("image_id,caption_id", ["p,a", "p,b", "q,c", "q,d"], "column 'image_id': the column does not hold"),
        ("image_id,caption_id", ["x,1", "x,2", "y,3", "y,4"], "column 'caption_id': the column does not"),
        ("image_id,caption_id", ["y,a", "x,b", "y,c", "x,d"], "2 of 4 missing: 'x.jpg/x.jpg#0'"),
        ("image_id", ["x", "x", "y", "y"], "column 'image_id' does not tell the questions of toy-rated"),
    ],
)
def test_ids_that_do_not_fit_are_refused_in_a_line(tmp_path, header, rows, message):
    path = written(tmp_path, [*header.split(","), "score"], [[*r.split(","), n] for n, r in enumerate(rows)])
    refuses(message, aligned, path, error=ScoreError)


def test_the_id_of_a_question_beside_another_pair_is_refused(tmp_path):
    names = list(ASKED.questions.ids)
    rows = [[name, "x" if i < 2 else "y", "abcd"[i], i] for i, name in enumerate(names)]
    header = ["id", "image_id", "caption_id", "score"]
    assert aligned(written(tmp_path, header, rows)) == [0, 1, 2, 3]
    rows[0][2], rows[1][2] = "b", "a"
    with pytest.raises(ScoreError, match=r"row 1, column 'caption_id': .* id of question 'x.jpg/x.jpg#0'"):
        aligned(written(tmp_path, header, rows))


def test_captions_alone_may_follow_the_questions(tmp_path):
    said = []
    path = written(tmp_path, ["caption", "score"], [["a dog", 1], ["a dog", 2], ["a cow", 3]])
    assert aligned(path, SHARED, said.append) == [1, 2, 3]
    assert "no column names images" in said[0]
    path = written(tmp_path, ["caption", "score"], [["a cow", 3], ["a dog", 1], ["a dog", 2]])
    with pytest.raises(ScoreError, match="column 'caption' does not tell the questions of toy-rated apart"):
        aligned(path, SHARED)


def test_the_released_ids_of_flickr8k_find_their_questions(shared_data, tmp_path):
    """All 5,822 released rows, 158 of which the protocol does not ask about, with the ids of the release."""
    benchmark = catalog.benchmark("flickr8k-expert", data=shared_data / "flickr8k")
    lines = (shared_data / "flickr8k" / "ExpertAnnotations.txt").read_text("utf-8").splitlines()
    rows = [line.split("\t") for line in lines if line.strip()]
    table = [[image, caption, sum(map(int, ratings)) / 3] for image, caption, *ratings in rows]
    rng, said = np.random.default_rng(0), []
    table = [table[i] for i in rng.permutation(len(table))]
    path = written(tmp_path, ["image_id", "caption_id", "score"], table)
    answers = join_scores(loaded(path), benchmark, note=said.append)
    assert np.array_equal(answers.values, benchmark.listed.ratings.mean(axis=1))
    assert "158 of 5,822 rows are of pairs that flickr8k-expert does not ask about" in said[0]
    # By texts, too, and not by names of other images.
    questions, scores = benchmark.listed, answers.values.tolist()
    asked = zip(questions.images, questions.captions, scores, strict=True)
    spoken = [[benchmark.images[i].id, benchmark.captions[c].text, score] for i, c, score in asked]
    spoken = [spoken[i] for i in rng.permutation(len(spoken))]
    assert aligned(written(tmp_path, ["image", "caption", "score"], spoken), benchmark) == scores
    renamed = [[f"other_{row[0]}", *row[1:]] for row in spoken]
    foreign = written(tmp_path, ["image", "caption", "score"], renamed)
    words = "column 'image': the column does not hold the items of"
    refuses(words, aligned, foreign, benchmark, error=ScoreError)


EMBEDDINGS = "winoground/clip_vit_b32_laion2b_embeddings.npz"


@pytest.fixture(scope="module")
def winoground_tags(shared_data):
    return specs.read(card("winoground"), shared_data / "winoground", None)


@pytest.fixture(scope="module")
def sugarcrepe_items(shared_data):
    return specs.read(card("sugarcrepe"), shared_data / "sugarcrepe", None)


def means(answers):
    shares = (float(contrast.QUAD[name](answers.values).mean()) for name in ("i2t", "t2i", "group"))
    return tuple(round(100 * share, 2) for share in shares)


def test_winoground_embeddings(shared_data, winoground_tags):
    loaded = precomputed_galleries.load_embeddings(str(shared_data / EMBEDDINGS))
    answers = join_scores(loaded, winoground_tags, note=never)
    # The README of the data names the first three; 270 of 400 right matchings is the fourth.
    assert means(answers) == (34.75, 11.0, 7.5)
    assert contrast.group_match(answers.values).sum() == 270


SUBSETS = ("add_att", "add_obj", "replace_att", "replace_obj", "replace_rel", "swap_att", "swap_obj")


@pytest.mark.parametrize(
    ("model", "correct", "by_subset"),
    [
        # Of the 7,511 items there are today, by subset; the last has one item fewer than the table.
        ("ViT-B-32", 5750, (476, 1592, 631, 1502, 973, 426, 150)),
        ("CLIP_COCO", 6360, (566, 1853, 682, 1564, 1067, 473, 155)),
        ("CLIP_TROHN-Text", 7015, (671, 2000, 744, 1568, 1295, 542, 195)),
    ],
)
def test_sugarcrepe_outcomes_of_7512_rows_on_7511_questions(
    shared_data, sugarcrepe_items, model, correct, by_subset
):
    notes = []
    loaded = precomputed.load(str(shared_data / f"bivlc/SUGARCREPE_{model}.csv"))
    right = join_scores(loaded, sugarcrepe_items, note=notes.append).right["accuracy"]
    assert (len(right), right.sum()) == (7511, correct)
    groups = sugarcrepe_items.questions.groups()
    assert tuple(int(right[groups[name]].sum()) for name in SUBSETS) == by_subset
    assert len(notes) == 1
    assert "row 6709: 1 of 7512 rows belong to no question" in notes[0]
    assert "a west 32nd sign" in notes[0]


def test_outputs_of_detectors(shared_data):
    """FORMATS of the released tables: 66.6894, 19.6386 and 19.6386 on BiVLC, 74.5873 on SugarCrepe."""
    folder, released = shared_data / "detectors", shared_data / "bivlc"
    benchmark = specs.read(card("bivlc"), released / "ViT-B-32.csv", None)
    loaded = precomputed.load(str(folder / "bivlc_CLIP_baseline.csv"))
    values = contrast.from_directions(join_scores(loaded, benchmark, note=[].append).right)
    shares = [round(100 * values[name].mean(), 4) for name in ("i2t", "t2i", "group")]
    assert shares == [66.6894, 19.6386, 19.6386]
    benchmark = specs.read(card("sugarcrepe"), released / "SUGARCREPE_ViT-B-32.csv", None)
    loaded = precomputed.load(str(folder / "sugarcrepe_CLIP_baseline.csv"))
    assert round(100 * join_scores(loaded, benchmark, note=[].append).right["accuracy"].mean(), 4) == 74.5873
