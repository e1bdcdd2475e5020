"""Flickr8k's judgements, the real ones and small ones, and Flickr30k in its three layouts."""

import csv
import json

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read
from counterfoil.benchmarks.records import FileSource
from counterfoil.errors import DataError
from judged_rows import judged_rows
from refusals import refuses

# "shared" is a caption of a.jpg and of b.jpg; blanks are there to be collapsed.
TOKENS = """a.jpg#0\tone  dog .
a.jpg#1\tshared
a.jpg#2\ttwo dogs
b.jpg#0\tshared
b.jpg#1\t a cat

"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "Flickr8k.token.txt").write_text(TOKENS)
    return tmp_path


def judgements(*rows):
    """Lines of an image, a caption and three numbers; "a b#1 1 2 3" is about a.jpg and b.jpg#1."""
    cells = [row.split() for row in rows]
    return "".join(
        "\t".join((f"{image}.jpg", caption.replace("#", ".jpg#"), *numbers)) + "\n"
        for image, caption, *numbers in cells
    )


def _texts(benchmark):
    """(candidate, image, references) of every question."""
    return [(caption, image, references) for _, image, caption, references in judged_rows(benchmark)]


@pytest.fixture(scope="module")
def released(shared_data):
    """The experts' benchmark, and independently the captions by their names and the rows of the file."""
    folder = shared_data / "flickr8k"
    captions = dict(line.split("\t") for line in (folder / "Flickr8k.token.txt").read_text().splitlines())
    rows = [line.split("\t") for line in (folder / "ExpertAnnotations.txt").read_text().splitlines()]
    return read(card("flickr8k-expert"), folder, None), captions, rows


def test_the_experts_of_flickr8k(released):
    benchmark, captions, rows = released
    asked = benchmark.judged
    assert asked.ratings.shape == (5664, 3)
    assert asked.raters == "points"
    assert (asked.references.counts == 5).all()
    assert "158 rows whose candidate is a reference left out" in benchmark.source
    # Every row of the file but those whose caption the image has itself.
    own = {name.split("#")[0]: [captions[f"{name.split('#')[0]}#{k}"] for k in range(5)] for name in captions}
    left = [row for row in rows if captions[row[1]] not in own[row[0]]]
    assert len(rows) - len(left) == 158
    assert asked.ids == tuple(f"{row[0]}/{row[1]}" for row in left)
    assert np.array_equal(asked.ratings, np.array([[float(each) for each in row[2:]] for row in left]))
    expected = [(" ".join(captions[row[1]].split()), row[0], own[row[0]]) for row in left]
    assert _texts(benchmark) == [(a, b, [" ".join(each.split()) for each in refs]) for a, b, refs in expected]
    assert len(benchmark.images) == len({row[0] for row in left})
    assert not benchmark.images_at_hand
    assert len(np.unique(benchmark.clusters)) == len(benchmark.images)


def test_the_released_json_asks_the_same(released, read_free, tmp_path):
    """Written as CLIPScore's download.py writes it: an entry per rating, the references of each image."""
    text, captions, rows = released
    index, chosen = {}, {*[*dict.fromkeys(row[0] for row in rows)][::10]}
    for image, caption, *ratings in (row for row in rows if row[0] in chosen):
        own = [captions[f"{image}#{k}"] for k in range(5)]
        if captions[caption] in own:
            continue
        stem, path = image.removesuffix(".jpg"), f"Flicker8k_Dataset/{image}"
        empty = {"human_judgement": [], "image_id": stem, "image_path": path, "ground_truth": own}
        judged = index.setdefault(stem, empty)["human_judgement"]
        facts = {"image_id": stem, "image_path": path, "caption": captions[caption]}
        judged += [{**facts, "rating": float(each)} for each in ratings]
    (tmp_path / "flickr8k.json").write_text(json.dumps(index))
    found = read_free("flickr8k-expert", tmp_path / "flickr8k.json")
    assert read_free("flickr8k-expert", tmp_path).digest == found.digest
    # The file has the candidates of an image together, so compare without their order.
    wanted, rated = (zip(_texts(one), one.judged.ratings.tolist(), strict=True) for one in (text, found))
    assert sorted(row for row in wanted if row[0][1] in chosen) == sorted(rated)
    assert len(found) > 500


def test_experts_skip_and_count(folder, read_free):
    # The candidate of the second row, "shared", is a caption of a.jpg too.
    rows = ("a b#1 1 2 3", "a b#0 1 1 1", "b a#0 4 nan 4", "b a#2 nan nan nan")
    (folder / "ExpertAnnotations.txt").write_text(judgements(*rows))
    benchmark = read_free("flickr8k-expert", folder)
    assert _texts(benchmark) == [
        ("a cat", "a.jpg", ["one dog .", "shared", "two dogs"]),
        ("one dog .", "b.jpg", ["shared", "a cat"]),
    ]
    asked = benchmark.judged
    np.testing.assert_array_equal(asked.ratings, [[1, 2, 3], [4, np.nan, 4]])
    assert benchmark.source.endswith(
        "(4 ratings that are NaN left out; 1 rows whose candidate is a reference left out; "
        "1 rows without a rating left out)"
    )


def test_the_crowd_keeps_the_candidate_and_drops_the_reference(folder, read_free, jpeg):
    rows = ("a b#1 0.25 1 3", "a b#0 1.0 3 0", "b a#0 0.0 0 3", "a b#1 0.5 1 1")
    (folder / "CrowdFlowerAnnotations.txt").write_text(judgements(*rows))
    (folder / "Flicker8k_Dataset").mkdir()
    (folder / "Flicker8k_Dataset" / "b.jpg").write_bytes(jpeg(1))
    benchmark = read_free("flickr8k-cf", folder)
    # The first candidate of a.jpg loses "shared" too, which only the second one is.
    assert _texts(benchmark) == [
        ("a cat", "a.jpg", ["one dog .", "two dogs"]),
        ("shared", "a.jpg", ["one dog .", "two dogs"]),
        ("one dog .", "b.jpg", ["shared", "a cat"]),
        ("a cat", "a.jpg", ["one dog .", "two dogs"]),
    ]
    asked = benchmark.judged
    assert asked.ratings.reshape(-1).tolist() == [0.25, 1.0, 0.0, 0.5]
    assert asked.ids[3] == "a.jpg/b.jpg#1/2"
    assert "(1 references equal to a candidate taken out)" in benchmark.source
    assert [image.source is not None for image in benchmark.images] == [False, True]
    written = {
        "a.jpg": (["one  dog .", "two dogs"], [(" a cat", 0.25), ("shared", 1.0), (" a cat", 0.5)]),
        "b.jpg": (["shared", " a cat"], [("one  dog .", 0.0)]),
    }
    released = {
        name: {
            "image_path": f"Flicker8k_Dataset/{name}",
            "ground_truth": references,
            "human_judgement": [{"caption": text, "rating": share} for text, share in rated],
        }
        for name, (references, rated) in written.items()
    }
    (folder / "crowdflower_flickr8k.json").write_text(json.dumps(released))
    found = read_free("flickr8k-cf", folder / "crowdflower_flickr8k.json")
    assert sorted(_texts(found), key=str) == sorted(_texts(benchmark), key=str)
    assert found.source == str(folder / "crowdflower_flickr8k.json")  # nothing was left out here


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a.jpg\tb.jpg#1\t1\t2", "line 2: not a judgement; given: 4 cells; allowed: 5, tabs between them"),
        ("c.jpg\tb.jpg#1\t1\t2\t3", "line 2: no such image or caption; given: c.jpg"),
        ("a.jpg\tb.jpg#9\t1\t2\t3", "line 2: no such image or caption; given: b.jpg#9; allowed: those"),
        ("a.jpg\tb.jpg#1\t1\tgood\t3", "line 2, column 'rating_2': a rating is no number; given: good"),
    ],
)
def test_rows_that_do_not_fit(folder, read_free, row, message):
    (folder / "ExpertAnnotations.txt").write_text(f"a.jpg\tb.jpg#1\t1\t2\t3\n{row}\n")
    refuses(message, read_free, "flickr8k-expert", folder)


def test_files_that_do_not_fit(folder, read_free, tmp_path):
    refuses(r"no file of Flickr8k-Expert in this folder", read_free, "flickr8k-expert", folder)
    refuses("no data of Flickr8k-Expert; get it from https", read_free, "flickr8k-expert", None)
    (folder / "ExpertAnnotations.txt").write_text("a.jpg\tb.jpg#1\t1\t2\t3\n")
    (folder / "Flickr8k.token.txt").unlink()
    with pytest.raises(DataError, match=r"token.txt: file missing; it lies beside ExpertAnnotations.txt"):
        read_free("flickr8k-expert", folder)


#: (split, file, [(id, text), ...])
SAID = (
    ("train", "1.jpg", [(0, "a")]),
    ("test", "2.jpg", [(1, 'a "dog", running'), (2, "a dog")]),
    ("test", "3.jpg", [(3, "ein Hündchen"), (4, "a cat")]),
)


def _json(path):
    images = [
        {"split": split, "filename": name, "sentences": [{"sentid": i, "raw": t} for i, t in said]}
        for split, name, said in SAID
    ]
    path.write_text(json.dumps({"images": images, "dataset": "flickr30k"}))
    return path


def _csv(path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["raw", "sentids", "split", "filename"])
        for split, name, said in SAID:
            rows.writerow([json.dumps([t for _, t in said]), json.dumps([i for i, _ in said]), split, name])
    return path


def _check(found, ids):
    assert [image.id for image in found.images] == ["2.jpg", "3.jpg"]
    assert [caption.id for caption in found.captions] == ids
    assert [caption.text for caption in found.captions] == [t for _, _, said in SAID[1:] for _, t in said]
    assert found.gallery.owners.tolist() == [0, 0, 1, 1]
    assert found.gallery.t2i.positives.items.tolist() == [0, 0, 1, 1]
    assert found.gallery.i2t.positives.items.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("name", "write"), [("dataset_flickr30k.json", _json), ("flickr_annotations_30k.csv", _csv)]
)
def test_the_test_split(tmp_path, read_free, name, write):
    path = write(tmp_path / name)
    (tmp_path / "flickr30k-images").mkdir()
    photo = tmp_path / "flickr30k-images" / "3.jpg"
    photo.write_bytes(b"pixels")
    for data in (path, tmp_path):
        found = read_free("flickr30k", data)
        _check(found, ["1", "2", "3", "4"])
        assert [image.source for image in found.images] == [None, FileSource(photo)]
    with pytest.raises(DataError, match=r"not the number of images Flickr30k has; given: 2; allowed: 1,000"):
        read(card("flickr30k"), path, None)


def test_a_token_file_is_read_whole(tmp_path):
    lines = [f"{name}#{k}\t{text}" for _, name, said in SAID[1:] for k, (_, text) in enumerate(said)]
    path = tmp_path / "results.token"
    path.write_text("\r\n".join(lines) + "\n", encoding="utf-8", newline="")
    for data in (path, tmp_path):
        found = read(card("flickr30k"), data, None)
        _check(found, ["2.jpg#0", "2.jpg#1", "3.jpg#0", "3.jpg#1"])
        assert found.card.title == "Captions of results.token"
        assert found.card.size == 6


def test_the_real_token_file(shared_data):
    """Flickr8k's, of the same layout: 40,460 lines, five to an image."""
    path = shared_data / "flickr8k" / "Flickr8k.token.txt"
    lines = path.read_text().splitlines()
    found = read(card("flickr30k"), path, None)
    assert len(found.captions) == len(lines) == 40_460
    assert len(found.images) == len({line.split("#")[0] for line in lines})
    assert [f"{c.id}\t{c.text}" for c in found.captions] == lines


def test_no_files(tmp_path):
    with pytest.raises(DataError, match=r"nothing of Flickr30k here; allowed: dataset_flickr30k\.json"):
        read(card("flickr30k"), tmp_path, None)


def test_an_image_twice(tmp_path):
    path = _json(tmp_path / "x.json")
    value = json.loads(path.read_text())
    value["images"].append(value["images"][1])
    path.write_text(json.dumps(value))
    refuses(r"image id occurs twice; given: 2\.jpg", read, card("flickr30k"), path, None)
