"""One's own tables: pairs, ratings, preferences, galleries, and benchmarks that a TOML file describes."""

import json
import re

import numpy as np
import PIL.Image
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import own
from counterfoil.benchmarks.records import FileSource
from counterfoil.engine.plan import check_at_hand
from counterfoil.errors import CounterfoilError, DataError
from counterfoil.jobs.evaluation_inputs import whole_benchmark
from judged_rows import judged_rows
from refusals import refuses

PAIRS = card("pairs")


@pytest.fixture
def folder(tmp_path, jpeg):
    for name in ("0", "1", "2", "a", "b"):
        (tmp_path / f"{name}.jpg").write_bytes(jpeg(int(name, 16)))
    return tmp_path


def _csv(path, *rows):
    path.write_text("\n".join(rows) + "\n")
    return path


def test_choices(folder, jpeg):
    path = _csv(
        folder / "mine.csv",
        "id,image,caption,negative_caption,type,subtype",
        "x,0.jpg,a cat,a dog,replace,obj",
        "y,0.jpg,a mat,a hat,swap,",
    )
    result = own.read_pairs(PAIRS, path, None)
    assert result.questions.ids == ("x", "y")
    assert [image.id for image in result.images] == ["0.jpg"]  # one image, two questions, one cluster
    assert result.images[0].read() == jpeg(0)
    np.testing.assert_array_equal(result.clusters, [0, 0])
    assert result.questions.groupings == {"type": ("replace", "swap"), "subset": ("replace_obj", "swap")}
    assert (result.card.form, result.card.size, result.card.title) == ("choice", 2, "mine")
    assert result.card.measures == ("accuracy",)


def test_quads(folder):
    path = _csv(
        folder / "mine.tsv",
        "image\tcaption\tnegative_image\tnegative_caption",
        "0.jpg\ta cat\t1.jpg\ta dog",
        "1.jpg\ta mat\t2.jpg\ta hat",
    )
    result = own.read_pairs(PAIRS, path, None)
    assert result.questions.ids == ("0", "1")
    np.testing.assert_array_equal(result.questions.images, [[0, 1], [1, 2]])  # 1.jpg is one item
    assert (result.card.form, result.card.measures[0]) == ("quad", "group")


def test_a_replaced_parquet_file_is_read_anew(tmp_path, jpeg, hub_parquet):
    columns = {"image": [jpeg(1)], "caption": ["a"], "negative_caption": ["b"]}
    first = own.read_pairs(PAIRS, hub_parquet(tmp_path / "a.parquet", columns), None)
    assert first.images[0].read() == jpeg(1)
    second = own.read_pairs(PAIRS, hub_parquet(tmp_path / "a.parquet", {**columns, "image": [jpeg(2)]}), None)
    assert second.images[0].read() == jpeg(2)


def test_an_error_says_where_an_image_was_looked_for_or_that_there_are_captions_alone(folder):
    path = _csv(folder / "mine.csv", "image,caption,negative_caption", "0.jpg,a,b", "gone.jpg,c,d")
    result = own.read_pairs(PAIRS, path, folder)
    where = re.escape(str(folder / "gone.jpg"))
    refuses(rf"first: gone\.jpg \(looked for {where}\)", check_at_hand, result)
    refuses(rf"'gone\.jpg' is not at hand; given: looked for {where}", result.images[1].read)
    path = _csv(folder / "mine.csv", "picture,caption,negative_caption", "0.jpg,a,b", "0.jpg,a,c")
    result = own.read_pairs(PAIRS, path, None)
    assert len(result) == 2
    refuses(r"images are not at hand; .*\(.*mine.csv has no column 'image'\)", check_at_hand, result)


def test_names_and_separators_of_other_programs(folder):
    path = _csv(folder / "mine.csv", "Filename;Caption;Foil", "0.jpg;a cat, black;a dog", "1.jpg;b;c")
    result = own.read_pairs(PAIRS, path, None)
    assert [image.id for image in result.images] == ["0.jpg", "1.jpg"]
    assert result.images[0].source is not None
    assert [caption.text for caption in result.captions] == ["a cat, black", "a dog", "b", "c"]
    path = _csv(folder / "mine.csv", "image,Image,caption,negative_caption", "0.jpg,1.jpg,a,b")
    refuses("two columns differ in capitals alone; given: image, Image", own.read_pairs, PAIRS, path, None)
    refuses("--data", own.read_pairs, PAIRS, None, None)


def test_a_folder_with_a_file_per_subset_and_one_of_images(folder, tmp_path_factory):
    data = tmp_path_factory.mktemp("sets")
    for name in ("swap", "add"):
        row = {"filename": "0.jpg", "caption": "a cat", "negative_caption": "a dog"}
        (data / f"{name}.json").write_text(json.dumps({"0": row}))
    result = own.read_pairs(PAIRS, data, folder)
    assert result.questions.ids == ("add/0", "swap/0")
    assert result.questions.groupings["subset"] == ("add", "swap")
    assert [image.id for image in result.images] == ["0.jpg"]
    path = _csv(tmp_path_factory.mktemp("tables") / "a.csv", "image,caption,negative_caption", "2.jpg,a,b")
    assert own.read_pairs(PAIRS, path, folder).images_at_hand
    assert not own.read_pairs(PAIRS, path, None).images_at_hand


RATINGS, VOTES = card("ratings"), card("preferences")
PAIR = "image,caption_a,caption_b"


def test_ratings_of_several_people(folder):
    path = _csv(
        folder / "mine.csv",
        "Image,Caption,rating_1,rating_2,reference_1,reference_2,type",
        "a.jpg,a  cat,4,3,the cat,a cat sits,x",
        "a.jpg,a dog,1,,the cat,,y",
        "b.jpg,a cat,2,2,a bus,,x",
        "b.jpg,nobody rated it,,,a bus,,x",
    )
    result = own.read_ratings(RATINGS, path, None)
    questions = result.judged
    assert result.card.title == "mine"
    np.testing.assert_array_equal(questions.ratings, [[4, 3], [1, np.nan], [2, 2]])
    assert judged_rows(result) == [
        ("0", "a.jpg", "a cat", ["the cat", "a cat sits"]),
        ("1", "a.jpg", "a dog", ["the cat"]),
        ("2", "b.jpg", "a cat", ["a bus"]),
    ]
    assert all(image.source is not None for image in result.images)
    assert questions.groupings["type"] == ("x", "y", "x")
    assert "1 rows without a rating left out" in result.source


def test_images_by_their_whole_path_and_references_as_lists(folder, tmp_path_factory):
    rows = [{"image": str(folder / "a.jpg"), "caption": "a cat", "rating": 3, "references": ["x", "y"]}]
    path = tmp_path_factory.mktemp("elsewhere") / "mine.json"
    path.write_text(json.dumps(rows))
    # Whole paths lie in the folder of images; beside the table they do not.
    refuses("an image outside of the folder of images", own.read_ratings, RATINGS, path, None)
    result = own.read_ratings(RATINGS, path, folder)
    assert result.images[0].source is not None
    assert result.judged.references.counts.tolist() == [2]


def test_votes_and_choices(folder):
    path = _csv(
        folder / "mine.csv",
        "id,image,caption_a,caption_b,votes_a,votes_b",
        "p,a.jpg,a cat,a dog,5,2",
        "q,b.jpg,a bus,a cat,0,1",
    )
    questions = own.read_preferences(VOTES, path, None).judged
    assert (questions.ids, questions.label.tolist()) == (("p", "q"), [0, 1])
    assert questions.votes.tolist() == [[5, 2], [0, 1]]
    path = _csv(folder / "mine.csv", "image,caption_a,caption_b,preferred", "a.jpg,a cat,a dog,B")
    assert own.read_preferences(VOTES, path, None).judged.label.tolist() == [1]


#: b.jpg is right for "a dog" by half; c.jpg and "a fish" are in the gallery only.
GRADED = """image,caption,relevance
a.jpg,a dog,1.0
b.jpg,a cat,1.0
b.jpg,a dog,0.5
a.jpg,an animal,0.25
c.jpg,a fish,0.0
"""


def test_pairs_with_grades_are_a_gallery_and_without_relevance_all_rows_are_right(tmp_path):
    (tmp_path / "mine.csv").write_text(GRADED)
    (tmp_path / "b.jpg").write_bytes(b"pixels")
    result = own.read_gallery(card("gallery"), tmp_path / "mine.csv", None)
    questions = result.gallery
    assert [image.id for image in result.images] == ["a.jpg", "b.jpg", "c.jpg"]
    assert [caption.text for caption in result.captions] == ["a dog", "a cat", "an animal", "a fish"]
    assert questions.ids == ("i2t/a.jpg", "i2t/b.jpg", "i2t/c.jpg", "t2i/c0", "t2i/c1", "t2i/c2", "t2i/c3")
    i2t, t2i = questions.i2t.positives, questions.t2i.positives
    assert (i2t.starts.tolist(), i2t.items.tolist()) == ([0, 2, 4, 4], [0, 2, 0, 1])
    assert i2t.gains.tolist() == [1.0, 0.25, 0.5, 1.0]
    assert (t2i.starts.tolist(), t2i.items.tolist()) == ([0, 2, 3, 4, 4], [0, 1, 1, 0])
    assert t2i.gains.tolist() == [1.0, 0.5, 1.0, 0.25]
    # "a dog" has two right images, "a fish" none: its owner is unknown.
    assert questions.owners.tolist() == [-1, 1, 0, -1]
    assert questions.defined.tolist() == [True, True, False, True, True, True, False]
    # Images a and b with "an animal" and "a cat"; each of the others by itself.
    assert result.clusters.tolist() == [0, 1, 2, 3, 1, 0, 4]
    assert [image.source for image in result.images] == [None, FileSource(tmp_path / "b.jpg"), None]
    assert (result.card.title, result.card.size) == ("mine", 7)
    path = tmp_path / "mine.csv"
    path.write_text("image,caption\na.jpg,a dog\na.jpg,a cat\nb.jpg,a dog")
    result = own.read_gallery(card("gallery"), path, None).gallery
    assert result.i2t.positives.items.tolist() == [0, 1, 0]
    assert (result.i2t.positives.gains.tolist(), result.owners.tolist()) == ([1.0, 1.0, 1.0], [-1, 0])


def test_ids_and_owners(tmp_path):
    """Equal texts under two ids are two captions; `written_for` may name an image that is wrong."""
    path = tmp_path / "mine.csv"
    path.write_text(
        "image,image_id,caption,caption_id,relevance,written_for\n"
        "x/a.jpg,1,a dog,10,1,1\n"
        "x/b.jpg,2,a dog,11,1,\n"
        "x/b.jpg,2,a cat,12,0.5,1\n"
        "x/a.jpg,1,a cat,12,0,1\n"
    )
    result = own.read_gallery(card("gallery"), path, None)
    assert [image.id for image in result.images] == ["1", "2"]
    captions = {caption.id: caption.text for caption in result.captions}
    assert list(captions.items()) == [("10", "a dog"), ("11", "a dog"), ("12", "a cat")]
    assert result.gallery.owners.tolist() == [0, -1, 0]
    assert result.gallery.t2i.positives.items.tolist() == [0, 1, 1]


def test_bytes_in_cells(tmp_path, jpeg):
    path = tmp_path / "mine.parquet"
    images = [jpeg(1), jpeg(2), jpeg(1)]
    columns = {"image": images, "image_id": ["one", "two", "one"], "caption": ["a", "b", "c"]}
    pq.write_table(pa.table(columns), path)
    result = own.read_gallery(card("gallery"), path, None)
    assert [image.read() for image in result.images] == images[:2]
    assert result.gallery.owners.tolist() == [0, 1, 0]
    pq.write_table(pa.table({"image": images, "caption": ["a", "b", "c"]}), path)
    with pytest.raises(DataError, match=r"an image without a name; .* with a column 'image_id'"):
        own.read_gallery(card("gallery"), path, None)


EXAMPLE = """[signs]
form = "choice"
measures = ["accuracy"]
groupings = ["colour"]

[signs.layout]
files = ["signs.csv"]
captions = ["a {sign} sign in {place}", "a {other} sign in {place}"]
images = ["{photo}.png"]
groups.colour = { of = "sign", pattern = "red|blue" }
"""
SIGNS = "photo,sign,other,place\n0,red,blue,a park\n1,dark blue,red,a street\n"
LAYOUT = "[signs.layout]\n"


@pytest.fixture
def spec(tmp_path):
    (tmp_path / "images").mkdir()
    for i in range(2):
        PIL.Image.new("RGB", (8, 8), (i, 0, 0)).save(tmp_path / "images" / f"{i}.png")
    (tmp_path / "signs.csv").write_text(SIGNS)
    path = tmp_path / "signs.toml"
    path.write_text(EXAMPLE)
    return path


def test_a_file_of_any_columns_is_read_by_what_a_toml_file_says(spec):
    benchmark = catalog.benchmark(str(spec))
    assert (benchmark.name, benchmark.card.title, benchmark.questions.form) == ("signs", "signs", "choice")
    first = benchmark[0]
    assert (first["caption"], first["negative_caption"]) == ("a red sign in a park", "a blue sign in a park")
    assert first["image"].decode().size == (8, 8)
    assert benchmark.questions.groupings == {"colour": ("red", "blue")}
    # Pages find the pictures again, by the file or by the folder of the data.
    assert whole_benchmark("signs", benchmark.path, None).images_at_hand
    elsewhere = spec.rename(spec.parent / "images" / "signs.toml")
    assert catalog.benchmark(str(elsewhere), data=spec.parent).path == spec.parent


def test_ratings_of_any_columns_are_read_with_their_references(tmp_path):
    rows = [
        {"photo": f"{i}.png", "sentence": f"cat {i}", "stars": i, "told": [f"dog {i}", " "]} for i in (1, 2)
    ]
    (tmp_path / "stars.json").write_text(json.dumps([*rows, rows[0] | {"told": "a bird"}]))
    layout = 'files=["stars.json"]\ncaptions=["sentence"]\nimages=["photo"]\nratings=["stars"]\n'
    layout += 'references = ["told"]'
    (tmp_path / "stars.toml").write_text(f'[stars]\nform = "rated"\n[stars.layout]\n{layout}\n')
    benchmark = catalog.benchmark(str(tmp_path / "stars.toml"))
    rated, texts = benchmark.rated, [caption.text for caption in benchmark.captions]
    assert [texts[i] for i in rated.captions] == ["cat 1", "cat 2", "cat 1"]
    assert rated.ratings.tolist() == [[1.0], [2.0], [1.0]]
    assert [texts[i] for i in rated.references.captions] == ["dog 1", "dog 2", "a bird"]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (EXAMPLE, "", "not the table of one benchmark"),
        (EXAMPLE, "a = 1", "not the table of one benchmark; given: a"),
        (EXAMPLE, EXAMPLE + "[more]", "given: signs, more"),
        ("[signs", "[bivlc", "a known benchmark has this name; given: bivlc"),
        ("[signs", '["../signs"', "not a name of a benchmark; given: ../signs"),
        ('"choice"', '"chance"', "field 'form'"),
        ("groupings", "grouping", "field 'grouping'"),
        ("measures", 'reader = "os:system"\nmeasures', "no layout describes how this is read; given: os:s"),
        ("measures", 'like = "pmrp"\nmeasures', "no layout describes how this is read; given: pmrp"),
        ("measures", 'like = "winogrund"\nmeasures', "unknown benchmark; given: winogrund"),
        ("signs.csv", "sign.csv", "no file of 'signs'"),
        ("{other}", "{others}", "no column 'others'"),
        ("{other}", "{other", "neither its form nor its files; given: ValueError: .*'{' in field name"),
        ("red|blue", "red|(blue", "neither its form nor its files; given: error: missing \\)"),
        ('"choice"', '"quad"', "the layout fits neither its form nor its files"),
        (LAYOUT, LAYOUT + "wrong = 1\n", "layout, field 'wrong'"),
        ("of =", "from =", "layout: no field 'groups.colour.label.of'"),
        (LAYOUT, LAYOUT + 'steps = [{ call = "os:system" }]\n', "no such module or attribute"),
        (LAYOUT, LAYOUT + 'steps = [{ call = "second_tags", all = 1 }]\n', "neither its form nor its files"),
    ],
)
def test_what_does_not_fit_is_one_line(spec, old, new, message):
    assert old in EXAMPLE
    spec.write_text(EXAMPLE.replace(old, new))
    refuses(message, catalog.benchmark, str(spec), error=CounterfoilError)
