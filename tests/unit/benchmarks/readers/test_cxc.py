"""CxC: files of positives and tables of ratings."""

import csv
import json
import sys

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import coco
from counterfoil.benchmarks.readers.coco import read_ratings
from counterfoil.errors import DataError, InputError, MissingExtraError
from refusals import refuses

HEADER = "caption,image,agg_score,sampling_method"


def _row(caption, image, score, method="c2i_original"):
    return f"COCO_val2014:sentid:{caption},COCO_val2014_{image:012d}.jpg,{score},{method}"


@pytest.fixture
def rated(half):
    """Every own pair is rated 4 but one (2.9); the first caption fits the second image just enough (3)."""
    made = half()
    odd = made.captions[2][3]
    pairs = [(c, i) for i, own in zip(made.images, made.captions, strict=True) for c in own]
    rows = [_row(c, i, 2.9 if c == odd else 4) for c, i in pairs]
    rows += [_row(made.captions[0][0], made.images[1], 3, "c2i_intrasim")]
    rows += [_row(made.captions[0][1], made.images[3], 2.99, "c2i_intrasim")]
    made.write("sits_test.csv", "\n".join([HEADER, *rows]))
    back = {str(i): [c for c in own if c != odd] for i, own in zip(made.images, made.captions, strict=True)}
    back[str(made.images[1])].append(made.captions[0][0])
    forth = {}
    for image, captions in back.items():
        for caption in captions:
            forth.setdefault(str(caption), []).append(int(image))
    made.write("cxc_image_to_caption.json", back)
    made.write("cxc_caption_to_image.json", forth)
    return made


def _check(found):
    """By hand: items 0 to 3 and 0 to 19; caption 13 has nothing right, caption 0 has images 0 and 1."""
    questions = found.gallery
    assert questions.t2i.positives.items.tolist() == [0, 1, *[0] * 4, *[1] * 5, *[2] * 4, *[3] * 5]
    assert np.flatnonzero(~questions.t2i.defined).tolist() == [13]
    assert questions.i2t.positives.counts.tolist() == [5, 6, 4, 5]
    right = [*range(5), 0, *range(5, 10), *(10, 11, 12, 14), *range(15, 20)]
    assert questions.i2t.positives.items.tolist() == right


def test_files(rated, read_free):
    found = read_free("cxc", rated.folder)
    _check(found)
    assert found.source.endswith("cxc_image_to_caption.json, cxc_caption_to_image.json")
    assert len(found) == 24  # all are queries, one of them without a right answer


def test_table_alone(rated, read_free, monkeypatch):
    monkeypatch.setitem(sys.modules, "eccv_caption", None)
    for file in rated.folder.glob("cxc_*.json"):
        file.unlink()
    _check(read_free("cxc", rated.folder))
    (rated.folder / "sits_test.csv").unlink()
    refuses("eccv", read_free, "cxc", rated.folder, error=MissingExtraError)


def test_what_does_not_agree(rated, read_free):
    forth = json.loads((rated.folder / "cxc_caption_to_image.json").read_text())
    forth[str(rated.captions[0][0])] = [rated.images[0]]
    rated.write("cxc_caption_to_image.json", forth)
    refuses("the two directions do not agree", read_free, "cxc", rated.folder)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ((",2.99,", ",nan,"), r"row 22, column 'agg_score': not a finite number; given: nan"),
        ((",2.99,", ",5.5,"), "rating out of range; given: 5.5; allowed: 0 to 5"),
        (("sentid:", "sent/"), "row 1, column 'caption': no id of COCO"),
        ((".jpg", ".png"), "row 1, column 'image': no id of COCO"),
        (("COCO_val2014:sentid:", "COCO_val2014:sentid:9"), "22 of 22 rated pairs are outside the gallery"),
    ],
)
def test_broken_tables(rated, read_free, change, message, monkeypatch):
    monkeypatch.setitem(sys.modules, "eccv_caption", None)
    for file in rated.folder.glob("cxc_*.json"):
        file.unlink()
    table = rated.folder / "sits_test.csv"
    table.write_text(table.read_text().replace(*change))
    refuses(message, read_free, "cxc", rated.folder, error=InputError)


def test_positives_outside_the_gallery(rated, read_free):
    """One of several is kept as absent; where all of a query are, these are another gallery's positives."""
    back = json.loads((rated.folder / "cxc_image_to_caption.json").read_text())
    first = str(rated.images[0])
    rated.write("cxc_image_to_caption.json", {**back, first: [1, 2, 3]})
    refuses(f"query '{first}': the gallery holds none of a query's right", read_free, "cxc", rated.folder)
    rated.write("cxc_image_to_caption.json", {**back, "1": [5000]})
    refuses("1 of 5 queries are no image of the gallery; given: image 1", read_free, "cxc", rated.folder)


def test_the_real_test_half(shared_data):
    """35,585 pairs over 24,972 captions."""
    found = coco.read_cxc(card("cxc"), shared_data / "eccv", None)
    questions = found.gallery
    assert len(questions.i2t.positives.items) == len(questions.t2i.positives.items) == 35_585
    assert int(questions.t2i.defined.sum()) == 24_972
    at = [caption.id for caption in found.captions].index("620511")
    assert questions.t2i.positives.take(np.array([at])).items.tolist() != [questions.owners[at]]


def test_ratings_of_the_validation_half(shared_data):
    folder = shared_data / "cxc"
    benchmark = read_ratings(card("cxc-sits"), folder, shared_data / "coco_mini" / "images")
    asked = benchmark.judged
    with open(folder / "sits_val.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(benchmark) == len(rows) == 44_722
    assert asked.ratings[:, 0].tolist() == [float(row["agg_score"]) for row in rows]
    for at in range(0, len(rows), 997):
        caption = benchmark.captions[asked.captions[at]].id
        image = benchmark.images[asked.images[at]].id
        assert rows[at]["caption"] == f"COCO_val2014:sentid:{caption}"
        assert rows[at]["image"] == f"COCO_val2014_{int(image):012d}.jpg"
        assert asked.ids[at] == f"{caption}-{image}"
    assert asked.groupings["sampling"].count("c2i_original") == 25_000
    assert asked.references is None
    assert not benchmark.captions_at_hand
    assert sum(image.source is not None for image in benchmark.images) == 21
    assert benchmark.card.title == "CrissCrossed Captions, SITS (sits_val.csv)"
    assert "without texts: COCO's captions are not in the folder" in benchmark.source
    assert len(np.unique(benchmark.clusters)) == 5000


@pytest.fixture
def folder(tmp_path, coco_captions):
    """Two images with two captions each, ids 0 to 3 in the order of the file."""
    rows = [_row(3, 7, 0.5, "c2i_intrasim"), _row(0, 42, 4.75), _row(3, 42, 5, "c2i_intrasim")]
    (tmp_path / "sits_val.csv").write_text("\n".join([HEADER, *rows]))
    coco_captions(tmp_path, {42: [" a  cat ", "a dog"], 7: ["a car", "a bus\n"]})
    return tmp_path


def test_texts_of_coco(folder, read_free, karpathy):
    benchmark = read_free("cxc-sits", folder)
    asked = benchmark.judged
    assert asked.ids == ("3-7", "0-42", "3-42")
    assert [benchmark.captions[at].text for at in asked.captions] == ["a bus", "a cat", "a bus"]
    assert [benchmark.images[at].id for at in asked.images] == ["7", "42", "42"]
    assert asked.ratings.tolist() == [[0.5], [4.75], [5.0]]
    assert benchmark.captions_at_hand
    # Karpathy's file has the same captions, in every split.
    (folder / "captions_val2014.json").unlink()
    karpathy(folder, {(42, "restval"): ["a cat", "a dog"], (7, "test"): ["a car", "a bus"]})
    assert read_free("cxc-sits", folder / "sits_val.csv").digest == benchmark.digest
    karpathy(folder, {(42, "restval"): ["a cat", "a dog"]})
    refuses("1 of the 2 rated captions are not in this file", read_free, "cxc-sits", folder)


def test_the_test_half_goes_first_and_is_counted(folder):
    (folder / "sits_test.csv").write_text("\n".join([HEADER, _row(1, 7, 2, "c2i_intrasim")]))
    with pytest.raises(DataError, match=r"SITS has in group 'c2i_original'; given: 0; allowed: 25,000"):
        read_ratings(card("cxc-sits"), folder, None)
    assert len(read_ratings(card("cxc-sits"), folder / "sits_val.csv", None)) == 3


def test_no_ratings(tmp_path, read_free):
    refuses(r"no ratings here; allowed: sits_test\.csv or sits_val\.csv", read_free, "cxc-sits", tmp_path)
