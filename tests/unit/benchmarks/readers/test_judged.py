"""Judged captions: Pascal-50S and Abstract-50S as MATLAB files, FOIL, Composite, Flickr8k; and Flickr30k."""

import csv
import json

import numpy as np
import pytest
from scipy.io import savemat

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import specs
from counterfoil.benchmarks.readers.specs import read
from counterfoil.benchmarks.records import FileSource
from counterfoil.errors import DataError
from judged_rows import judged_rows
from refusals import refuses


def _structure(rows):
    """A 1 x n structure, as `struct` makes it in MATLAB."""
    result = np.zeros((1, len(rows)), dtype=[(f"f{i}", object) for i in range(len(rows[0]))])
    for i, row in enumerate(rows):
        result[0, i] = row
    return result


def _cell(text):
    cell = np.empty((1, 1), dtype=object)
    cell[0, 0] = text
    return cell


def _write(folder, votes, categories, name="pascal", same=()):
    """Pairs of whose 48 judgements so many are for the first caption; an image has two pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [(f" first  {i} ", f"first {i}" if i in same else f"second {i}") for i in range(len(votes))]
    pairs = _structure([(f"img_{i // 2}.jpg", *texts[i]) for i in range(len(votes))])
    rows = []
    for i, first in enumerate(votes):
        for item in range(48):
            # References belong to the image; the winners of the first caption are spread.
            winner = 1 if (item * 7) % 48 < first else -1
            rows.append((_cell(f"reference {i // 2}.{item} "), *map(_cell, texts[i]), float(winner)))
    facts = {"new_input": pairs, "category": np.array([categories], dtype=np.uint8)}
    savemat(folder / f"pair_{name}.mat", facts)
    savemat(folder / f"consensus_{name}.mat", {"triplets": _structure(rows)}, do_compression=True)


def test_votes_labels_and_references(tmp_path, read_free, jpeg):
    _write(tmp_path / "pyCIDErConsensus", [48, 20, 0, 25], [1, 2, 3, 4])
    (tmp_path / "VOC2010" / "JPEGImages").mkdir(parents=True)
    (tmp_path / "VOC2010" / "JPEGImages" / "img_1.jpg").write_bytes(jpeg(1))
    benchmark = read_free("pascal-50s", tmp_path)
    asked = benchmark.judged
    assert asked.votes.tolist() == [[48, 0], [20, 28], [0, 48], [25, 23]]
    assert asked.label.tolist() == [0, 1, 1, 0]
    assert asked.groupings == {"category": ("HC", "HI", "HM", "MM")}
    assert judged_rows(benchmark) == [
        (str(i), f"img_{i // 2}.jpg", f"{side} {i}", [f"reference {i // 2}.{k}" for k in range(48)])
        for i in range(4)
        for side in ("first", "second")
    ]
    assert [image.source is not None for image in benchmark.images] == [False, True]
    assert (asked.sample, asked.draws, asked.seed) == (5, 5, 0)
    assert "drawn" not in benchmark.source
    assert np.array_equal(benchmark.clusters, [0, 0, 1, 1])


def test_equal_votes_are_drawn_once_for_all(tmp_path, read_free):
    # One pair has two captions that are the same: all votes are for both.
    _write(tmp_path, [24] * 12, [1] * 12, same=(3,))
    first, again = (read_free("pascal-50s", tmp_path) for _ in range(2))
    asked = first.judged
    assert asked.votes[3].tolist() == [48, 48]
    assert (np.delete(asked.votes, 3, axis=0) == 24).all()
    assert first.digest == again.digest
    assert 0 < asked.label.sum() < 12  # both happen: throws of a coin
    assert "(12 labels drawn with seed 0, votes being equal)" in first.source


def test_the_counts_of_the_card(tmp_path):
    """A hundredth of the release, 40 pairs and 1,920 judgements, against a hundredth of the counts."""
    votes = np.random.default_rng(0).integers(0, 49, 40).tolist()
    _write(tmp_path, votes, [i // 10 + 1 for i in range(40)])
    counts = {name: number // 100 for name, number in card("pascal-50s").counts.items()}
    benchmark = read(card("pascal-50s").model_copy(update={"size": 40, "counts": counts}), tmp_path, None)
    assert benchmark.judged.votes[:, 0].tolist() == votes
    # 80 candidates, and 48 references of each of 20 images, kept once.
    assert len(benchmark.captions) == 80 + 48 * 20
    refuses(r"of questions Pascal-50S has in group 'HC'; given: 10", read, card("pascal-50s"), tmp_path, None)


def test_abstract_with_and_without_its_pairs(tmp_path, read_free, monkeypatch):
    """Both captions are right in the first half of its pairs."""
    (layout,) = specs.layouts("abstract-50s")
    assert (card("abstract-50s").size, layout.open["alike"]) == (400, 200)
    halves = layout.model_copy(update={"open": {**layout.open, "alike": 1}})
    monkeypatch.setattr(specs, "layouts", lambda name: (halves,))
    _write(tmp_path, [30, 10], [1, 1], "abstract")
    whole = read_free("abstract-50s", tmp_path)
    assert [image.id for image in whole.images] == ["img_0.jpg"]
    (tmp_path / "pair_abstract.mat").unlink()
    bare = read_free("abstract-50s", tmp_path)
    assert [image.id for image in bare.images] == ["0", "1"]
    for benchmark in (whole, bare):
        asked = benchmark.judged
        assert (asked.votes.tolist(), asked.label.tolist()) == ([[30, 18], [10, 38]], [0, 1])
        assert asked.groupings["category"] == ("HC", "HI")


def test_matlab_files_that_do_not_fit(tmp_path, read_free):
    _write(tmp_path, [30, 10], [1, 3])
    pairs, consensus = tmp_path / "pair_pascal.mat", tmp_path / "consensus_pascal.mat"
    good = consensus.read_bytes()
    _write(tmp_path / "other", [30], [1])
    consensus.write_bytes((tmp_path / "other" / "consensus_pascal.mat").read_bytes())
    with pytest.raises(DataError, match=r"not 48 judgements of every pair; given: 48 judgements of 2 pairs"):
        read_free("pascal-50s", tmp_path)
    consensus.write_bytes(good[: len(good) // 2])
    refuses(r"consensus_pascal.mat: not a MATLAB file that scipy reads", read_free, "pascal-50s", tmp_path)
    consensus.write_bytes(good)
    savemat(pairs, {"new_input": _structure([("a.jpg", "x", "y"), ("a.jpg", "z", "w")])})
    refuses("no variable 'category'; given: new_input", read_free, "pascal-50s", tmp_path)
    facts = {"category": np.array([[1, 3]])}
    savemat(pairs, {"new_input": _structure([("a.jpg", "x", "y"), ("a.jpg", "z", "w")]), **facts})
    with pytest.raises(DataError, match="triplets, row 1: the judgement is not of pair 0; given: first 0"):
        read_free("pascal-50s", tmp_path)
    savemat(pairs, {"new_input": _structure([("a.jpg", "x", " "), ("a.jpg", "z", "w")]), **facts})
    refuses("new_input, row 1: an empty caption", read_free, "pascal-50s", tmp_path)
    pairs.unlink()
    with pytest.raises(DataError, match=r"pair_pascal.mat: file missing; it may lie in pyCIDErConsensus too"):
        read_free("pascal-50s", tmp_path)


def _file(**changes):
    """Image 7 with two originals (three foils), image 42 with one; blanks are there to be collapsed."""
    rows = [
        (1, 7, "a dog  runs", False, "ORIG", 0),
        (1, 7, "a cat runs", True, "cat", 1),
        (1, 7, "a cow runs", True, "cow", 2),
        (2, 7, "a man sits", False, "ORIG", 3),
        (2, 7, "a pan sits", True, "pan", 4),
        (3, 42, "a bus", True, "bus", 5),
        (3, 42, "a car", False, "ORIG", 6),
    ]
    keys = ("id", "image_id", "caption", "foil", "foil_word", "foil_id")
    images = [{"id": i, "file_name": f"COCO_val2014_{i:012d}.jpg"} for i in (7, 42)]
    target = {2: "dog", 3: "dog", 5: "man", 6: "car"}
    marks = [{"target_word": target.get(i, "")} for i in range(1, len(rows) + 1)]
    notes = [dict(zip(keys, row, strict=True)) | mark for row, mark in zip(rows, marks, strict=True)]
    return {"images": images, "annotations": notes, **changes}


CAPTIONS = {
    7: ["one dog", "a dog runs", "a dog runs ", "a man sits", "people"],
    42: ["a car", "the car", "red car"],
}


@pytest.fixture
def folder(tmp_path, coco_captions):
    (tmp_path / "foilv1.0_test_2017.json").write_text(json.dumps(_file()))
    coco_captions(tmp_path, CAPTIONS)
    return tmp_path


def _shown(benchmark):
    """(image, original, foil, references) by question."""
    asked = benchmark.judged
    assert (asked.votes.tolist(), asked.label.tolist()) == ([[1, 0]] * len(asked), [0] * len(asked))
    rows = judged_rows(benchmark)
    assert [row[3] for row in rows[::2]] == [row[3] for row in rows[1::2]]
    return {
        name: (image, original, foil, references)
        for (name, image, original, references), (_, _, foil, _) in zip(rows[::2], rows[1::2], strict=True)
    }


ALL = {
    "1/1": ("7", "a dog runs", "a cat runs", ["one dog", "a man sits", "people"]),
    "1/2": ("7", "a dog runs", "a cow runs", ["one dog", "a man sits", "people"]),
    "2/4": ("7", "a man sits", "a pan sits", ["one dog", "a dog runs", "a dog runs", "people"]),
    "3/5": ("42", "a car", "a bus", ["the car", "red car"]),
}


def test_all_pairs(folder, read_free, jpeg):
    (folder / "val2014").mkdir()
    (folder / "val2014" / "COCO_val2014_000000000042.jpg").write_bytes(jpeg(1))
    benchmark = read_free("foil", folder)
    assert _shown(benchmark) == ALL
    assert benchmark.judged.groupings == {"word": ("dog", "dog", "man", "car")}
    assert [image.source is not None for image in benchmark.images] == [False, True]
    assert "captions_val2014.json (6 references equal to the original taken out)" in benchmark.source
    one = read_free("foil-1ref", folder / "foilv1.0_test_2017.json")
    assert _shown(one) == {name: (*facts, refs[:1]) for name, (*facts, refs) in ALL.items()}
    assert one.digest != benchmark.digest


def test_one_pair_of_each_image(folder, read_free):
    benchmark = read_free("foil-clipscore", folder)
    result = _shown(benchmark)
    assert len(result) == 2
    assert {facts[0] for facts in result.values()} == {"7", "42"}
    assert all(ALL[name] == facts for name, facts in result.items())
    assert read_free("foil-clipscore", folder).digest == benchmark.digest
    assert "(one pair of each image, drawn with seed 0; " in benchmark.source
    one = _shown(read_free("foil-clipscore-1ref", folder))
    assert one == {name: (*facts, refs[:1]) for name, (*facts, refs) in result.items()}


def test_pairs_are_drawn_evenly(tmp_path, read_free):
    """Of 600 images with three pairs each, every place is drawn about as often: 200, give or take 12."""
    notes = []
    for image in range(600):
        facts = {"image_id": image, "target_word": ""}
        notes.append({**facts, "id": image, "caption": f"{image} is", "foil": False, "foil_id": 0})
        facts |= {"id": image, "foil": True}
        notes += [{**facts, "caption": f"{image} is {k}", "foil_id": k} for k in range(3)]
    images = [{"id": i, "file_name": f"COCO_val2014_{i:012d}.jpg"} for i in range(600)]
    (tmp_path / "foilv1.0_test_2017.json").write_text(json.dumps({"images": images, "annotations": notes}))
    result = read_free("foil-clipscore", tmp_path)
    assert "without references: COCO's captions are not in the folder" in result.source
    assert result.judged.references is None
    places = [name.split("/")[1] for name in result.judged.ids]
    assert len(places) == 600
    assert all(150 < places.count(str(k)) < 250 for k in range(3))


def test_pairs_that_pac_s_did_not_train_on(folder, read_free, karpathy):
    with pytest.raises(DataError, match=r"dataset_coco.json: file missing; PAC-S's pairs are those of its"):
        read_free("foil-pac-s", folder)
    karpathy(folder, {(7, "restval"): ["x"], (42, "val"): ["x"], (8, "test"): ["x"]})
    assert _shown(read_free("foil-pac-s", folder)) == {"3/5": ALL["3/5"]}
    assert _shown(read_free("foil-pac-s-1ref", folder)) == {"3/5": (*ALL["3/5"][:3], ["the car"])}
    # The same draw as the larger set.
    assert _shown(read_free("foil-clipscore", folder))["3/5"] == ALL["3/5"]
    karpathy(folder, {(7, "restval"): ["x"], (42, "train"): ["x"], (8, "test"): ["x"]})
    refuses("no image is in Karpathy's validation or test part", read_free, "foil-pac-s", folder)


def test_references_of_karpathys_file(folder, read_free, karpathy):
    (folder / "captions_val2014.json").unlink()
    refuses(r"no captions of COCO here, .*'-1ref'", read_free, "foil-1ref", folder)
    karpathy(folder, {(7, "train"): CAPTIONS[7], (42, "restval"): CAPTIONS[42]})
    assert _shown(read_free("foil", folder)) == ALL


def test_a_pair_whose_references_are_all_the_original(folder, read_free, coco_captions):
    coco_captions(folder, {**CAPTIONS, 42: ["a car", " a  car"]})
    benchmark = read_free("foil", folder)
    assert list(_shown(benchmark)) == ["1/1", "1/2", "2/4"]
    said = "(1 pairs without a reference left out; 7 references equal to the original taken out)"
    assert said in benchmark.source
    coco_captions(folder, {7: CAPTIONS[7]})
    refuses(r"captions_val2014\.json: no references of an image; given: 42", read_free, "foil", folder)


@pytest.mark.parametrize(
    ("at", "change", "message"),
    [
        (0, {"foil": True}, "annotations of id 1: not an original and its foils of one image"),
        (1, {"foil": False}, "annotations of id 1: not an original .* given: 2 originals, 1 foils"),
        (1, {"image_id": 42}, "not an original and its foils of one image; given: 1 originals, 2 foils"),
        (1, {"image_id": 9}, "annotations, entry 2: a candidate without an image; given: image_id 9"),
        (1, {"image_id": "x"}, "entry 2, column 'image_id': not a whole number; given: x"),
        (1, {"caption": "\t"}, "annotations, entry 2, column 'caption': empty text"),
        (1, {"foil": "maybe"}, "column 'foil': neither true nor false; given: maybe"),
    ],
)
def test_annotations_that_do_not_fit(folder, read_free, at, change, message):
    value = _file()
    value["annotations"][at] |= change
    (folder / "foilv1.0_test_2017.json").write_text(json.dumps(value))
    refuses(message, read_free, "foil", folder)


def test_files_that_do_not_fit(folder, read_free):
    path = folder / "foilv1.0_test_2017.json"
    path.write_text(json.dumps({"images": []}))
    refuses("not a file of this layout; given: images; allowed: an object", read_free, "foil", folder)
    path.unlink()
    refuses(r"no file of 'FOIL.*' in this folder", read_free, "foil", folder)


SITE = "http://example.org/images/"


def _table(name, rows, junk=2):
    """27 columns about the worker, the address, the texts, the ratings; `;` between, quotes around."""
    k = 3 if name == "8k" else 4
    header = [f"Worker{i}" for i in range(27)] + ["Input.image_url"]
    header += [f"Input.text{i + 1}" for i in range(k)] + [f"Answer.Q{i + 1}Answer" for i in range(k)]
    lines = [header, *([*["x"] * 27, SITE + image, *texts, *map(str, given)] for image, texts, given in rows)]
    lines += [["", "total", *[""] * (26 + 2 * k)]] * junk
    return "".join(";".join(f'"{cell}"' for cell in line) + "\n" for line in lines)


@pytest.fixture
def survey(tmp_path):
    """An image of each source, and one more of COCO whose first candidate is no reference to the letter."""
    rows_of = {
        "8k": [("1_a.jpg", ["A  dog .", "a cat", "two; dogs"], [5, 1, 2])],
        "30k": [("22.jpg", ["a man", "a man", "men", "unused"], [4, 4, 3, 1])],
        "coco": [
            ("COCO_val2014_000000000042.jpg", ["one bus", "a bus", "a car", "unused"], [5, 4, 1, 1]),
            ("COCO_val2014_000000000007.jpg", ["the tall tree.", "tree", "a", "unused"], [3, 3, 2, 1]),
        ],
    }
    for name, rows in rows_of.items():
        for scale in ("correctness", "throughness"):
            (tmp_path / f"{name}_{scale}.csv").write_text(_table(name, rows))
    other = [("1_a.jpg", ["A  dog .", "a cat", "two; dogs"], [3, 2, 1])]
    (tmp_path / "8k_throughness.csv").write_text(_table("8k", other))
    (tmp_path / "Flickr8k.token.txt").write_text("1_a.jpg#0\ta dog\n1_a.jpg#1\tA dog .\n1_a.jpg#2\tdogs\n")
    (tmp_path / "results_20130124.token").write_text("22.jpg#0\ta man\n22.jpg#1\ta man\n22.jpg#2\tguy\n")
    return tmp_path


@pytest.fixture
def captioned(survey, coco_captions):
    coco_captions(survey, {42: ["a bus", "one bus", "red"], 7: ["a car", "the tall trees .", "the"]})
    return survey


def _rows(benchmark):
    """(id, image, caption, rating, references) of every question."""
    ratings = benchmark.rated.ratings[:, 0].tolist()
    return [(*row[:3], rating, row[3]) for row, rating in zip(judged_rows(benchmark), ratings, strict=True)]


def test_the_first_three_captions_without_the_reference_that_is_one_and_throughness(captioned, read_free):
    benchmark = read_free("composite", captioned)
    bus, tree = "COCO_val2014_000000000042.jpg", "COCO_val2014_000000000007.jpg"
    assert _rows(benchmark) == [
        ("flickr8k/1/1", "1_a.jpg", "A dog .", 5, ["a dog", "dogs"]),
        ("flickr8k/1/2", "1_a.jpg", "a cat", 1, ["a dog", "dogs"]),
        ("flickr8k/1/3", "1_a.jpg", "two; dogs", 2, ["a dog", "dogs"]),
        # Of two references that are the candidate, the first goes.
        ("flickr30k/1/1", "22.jpg", "a man", 4, ["a man", "guy"]),
        ("flickr30k/1/2", "22.jpg", "a man", 4, ["a man", "guy"]),
        ("flickr30k/1/3", "22.jpg", "men", 3, ["a man", "guy"]),
        # "a bus" stays among the references, though a machine said it too.
        ("coco/1/1", bus, "one bus", 5, ["a bus", "red"]),
        ("coco/1/2", bus, "a bus", 4, ["a bus", "red"]),
        ("coco/1/3", bus, "a car", 1, ["a bus", "red"]),
        # "the tall trees ." is two letters away, the others more.
        ("coco/2/1", tree, "the tall tree.", 3, ["a car", "the"]),
        ("coco/2/2", tree, "tree", 3, ["a car", "the"]),
        ("coco/2/3", tree, "a", 2, ["a car", "the"]),
    ]
    asked = benchmark.judged
    assert asked.groupings["source"] == ("flickr8k",) * 3 + ("flickr30k",) * 3 + ("coco",) * 6
    assert asked.groupings["candidate"][:4] == ("candidate 1", "candidate 2", "candidate 3", "candidate 1")
    assert "6 rows at the end of a file, without an image, left out" in benchmark.source
    assert "4 references nearest to the first candidate taken out" in benchmark.source
    assert np.array_equal(np.unique(benchmark.clusters, return_counts=True)[1], [3, 3, 3, 3])
    benchmark = read_free("composite-throughness", captioned)
    assert [row[3] for row in _rows(benchmark)][:3] == [3, 2, 1]
    assert "8k_throughness.csv" in benchmark.source


def test_rows_at_the_end_may_hold_anything_but_an_image(captioned, read_free):
    path = captioned / "8k_correctness.csv"
    before = _rows(read_free("composite", captioned))
    sums = ["x"] * 27 + ["average", "3.1", "2.2", "1.0", "4", "3", "2"]
    path.write_text(path.read_text() + ";".join(sums) + "\n")
    benchmark = read_free("composite", captioned)
    assert _rows(benchmark) == before
    assert "7 rows at the end of a file, without an image" in benchmark.source


def test_without_any_captions_there_are_no_references(survey, read_free):
    refuses("no captions of coco here; allowed: Flickr8k", read_free, "composite", survey)
    (survey / "Flickr8k.token.txt").unlink()
    (survey / "results_20130124.token").unlink()
    benchmark = read_free("composite", survey)
    assert benchmark.judged.references is None
    assert "without references: the captions of the images are not in the folder" in benchmark.source
    assert len(benchmark) == 12


def test_photographs_in_the_folders_of_their_releases(captioned, read_free, jpeg):
    for release, name in (
        ("Flicker8k_Dataset", "1_a.jpg"),
        ("flickr30k-images", "22.jpg"),
        ("val2014", "COCO_val2014_000000000042.jpg"),
    ):
        (captioned / release).mkdir()
        (captioned / release / name).write_bytes(jpeg(1))
    for images in (None, captioned):
        benchmark = read_free("composite", captioned, images)
        assert [image.source is not None for image in benchmark.images] == [True, True, True, False]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("1_a.jpg", ["x", "y", "z"], [1, "good", 3]), "row 2, column 'rating': a rating is no number"),
        (("1_a.jpg", ["x", " ", "z"], [1, 2, 3]), "row 2, column 'caption': empty text"),
        (("1_a.jpg", ["x", "y", "z"], [1]), "row 2: a row is cut short; given: 32 cells"),
        (("", ["x", "y", "z"], [1, 2, 3]), "row 2: a candidate without an image"),
        (("2_b.jpg", ["x", "y", "z"], [1, 2, 3]), "no references of an image; given: 2_b.jpg"),
    ],
)
def test_rows_of_composite_that_do_not_fit(captioned, read_free, row, message):
    good = ("1_a.jpg", ["a", "b", "c"], [1, 2, 3])
    (captioned / "8k_correctness.csv").write_text(_table("8k", [good, row, good]))
    refuses(message, read_free, "composite", captioned)


def test_files_of_composite_that_do_not_fit(captioned, read_free):
    (captioned / "8k_correctness.csv").write_text(_table("8k", []))
    refuses(r"8k_correctness.csv: no rows", read_free, "composite", captioned)
    path = captioned / "coco_correctness.csv"
    path.write_text(path.read_text().replace("COCO_val2014_000000000042", "cat"))
    (captioned / "8k_correctness.csv").write_text(_table("8k", [("1_a.jpg", ["a", "b", "c"], [1, 2, 3])]))
    refuses(r"row 1: no image of COCO; given: cat.jpg", read_free, "composite", captioned)
    path.unlink()
    refuses(r"file missing: coco_correctness.csv", read_free, "composite", captioned)


# "shared" is a caption of a.jpg and of b.jpg; blanks are there to be collapsed.
TOKENS = """a.jpg#0\tone  dog .
a.jpg#1\tshared
a.jpg#2\ttwo dogs
b.jpg#0\tshared
b.jpg#1\t a cat

"""


@pytest.fixture
def flickr8k(tmp_path):
    (tmp_path / "Flickr8k.token.txt").write_text(TOKENS)
    return tmp_path


def judgements(*rows):
    """Lines of an image, a caption and three numbers; "a b#1 1 2 3" is about a.jpg and b.jpg#1."""
    return "".join(
        "\t".join((f"{image}.jpg", caption.replace("#", ".jpg#"), *numbers)) + "\n"
        for image, caption, *numbers in (row.split() for row in rows)
    )


def _texts(benchmark):
    """(candidate, image, references) of every question."""
    return [(caption, image, references) for _, image, caption, references in judged_rows(benchmark)]


@pytest.fixture(scope="module")
def released(shared_data):
    """The experts' benchmark, and independently the captions by their names and the rows of the file."""
    flickr8k = shared_data / "flickr8k"
    captions = dict(line.split("\t") for line in (flickr8k / "Flickr8k.token.txt").read_text().splitlines())
    rows = [line.split("\t") for line in (flickr8k / "ExpertAnnotations.txt").read_text().splitlines()]
    return read(card("flickr8k-expert"), flickr8k, None), captions, rows


def test_the_experts_of_flickr8k(released):
    benchmark, captions, rows = released
    asked = benchmark.judged
    assert (asked.ratings.shape, asked.raters) == ((5664, 3), "points")
    assert (asked.references.counts == 5).all()
    assert "158 rows whose candidate is a reference left out" in benchmark.source
    # Every row of the file but those whose caption the image has itself.
    own = {name.split("#")[0]: [captions[f"{name.split('#')[0]}#{k}"] for k in range(5)] for name in captions}
    left = [row for row in rows if captions[row[1]] not in own[row[0]]]
    assert len(rows) - len(left) == 158
    assert asked.ids == tuple(f"{row[0]}/{row[1]}" for row in left)
    assert np.array_equal(asked.ratings, np.array([[float(item) for item in row[2:]] for row in left]))
    expected = [(" ".join(captions[row[1]].split()), row[0], own[row[0]]) for row in left]
    assert _texts(benchmark) == [(a, b, [" ".join(item.split()) for item in refs]) for a, b, refs in expected]
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
        judged += [{**facts, "rating": float(item)} for item in ratings]
    (tmp_path / "flickr8k.json").write_text(json.dumps(index))
    result = read_free("flickr8k-expert", tmp_path / "flickr8k.json")
    assert read_free("flickr8k-expert", tmp_path).digest == result.digest
    # The file has the candidates of an image together, so compare without their order.
    wanted, rated = (zip(_texts(one), one.judged.ratings.tolist(), strict=True) for one in (text, result))
    assert sorted(row for row in wanted if row[0][1] in chosen) == sorted(rated)
    assert len(result) > 500


def test_experts_skip_and_count(flickr8k, read_free):
    # The candidate of the second row, "shared", is a caption of a.jpg too.
    rows = ("a b#1 1 2 3", "a b#0 1 1 1", "b a#0 4 nan 4", "b a#2 nan nan nan")
    (flickr8k / "ExpertAnnotations.txt").write_text(judgements(*rows))
    benchmark = read_free("flickr8k-expert", flickr8k)
    assert _texts(benchmark) == [
        ("a cat", "a.jpg", ["one dog .", "shared", "two dogs"]),
        ("one dog .", "b.jpg", ["shared", "a cat"]),
    ]
    np.testing.assert_array_equal(benchmark.judged.ratings, [[1, 2, 3], [4, np.nan, 4]])
    assert benchmark.source.endswith(
        "(4 ratings that are NaN left out; 1 rows whose candidate is a reference left out; "
        "1 rows without a rating left out)"
    )


def test_the_crowd_keeps_the_candidate_and_drops_the_reference(flickr8k, read_free, jpeg):
    rows = ("a b#1 0.25 1 3", "a b#0 1.0 3 0", "b a#0 0.0 0 3", "a b#1 0.5 1 1")
    (flickr8k / "CrowdFlowerAnnotations.txt").write_text(judgements(*rows))
    (flickr8k / "Flicker8k_Dataset").mkdir()
    (flickr8k / "Flicker8k_Dataset" / "b.jpg").write_bytes(jpeg(1))
    benchmark = read_free("flickr8k-cf", flickr8k)
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
    (flickr8k / "crowdflower_flickr8k.json").write_text(json.dumps(released))
    result = read_free("flickr8k-cf", flickr8k / "crowdflower_flickr8k.json")
    assert sorted(_texts(result), key=str) == sorted(_texts(benchmark), key=str)
    assert result.source == str(flickr8k / "crowdflower_flickr8k.json")  # nothing was left out here


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ("a.jpg\tb.jpg#1\t1\t2", "line 2: not a judgement; given: 4 cells; allowed: 5, tabs between them"),
        ("c.jpg\tb.jpg#1\t1\t2\t3", "line 2: no such image or caption; given: c.jpg"),
        ("a.jpg\tb.jpg#9\t1\t2\t3", "line 2: no such image or caption; given: b.jpg#9; allowed: those"),
        ("a.jpg\tb.jpg#1\t1\tgood\t3", "line 2, column 'rating_2': a rating is no number; given: good"),
    ],
)
def test_lines_of_flickr8k_that_do_not_fit(flickr8k, read_free, row, message):
    (flickr8k / "ExpertAnnotations.txt").write_text(f"a.jpg\tb.jpg#1\t1\t2\t3\n{row}\n")
    refuses(message, read_free, "flickr8k-expert", flickr8k)


def test_files_of_flickr8k_that_do_not_fit(flickr8k, read_free, tmp_path):
    refuses(r"no file of 'Flickr8k-Expert' in this folder", read_free, "flickr8k-expert", flickr8k)
    refuses("no data of Flickr8k-Expert; get it from https", read_free, "flickr8k-expert", None)
    (flickr8k / "ExpertAnnotations.txt").write_text("a.jpg\tb.jpg#1\t1\t2\t3\n")
    (flickr8k / "Flickr8k.token.txt").unlink()
    with pytest.raises(DataError, match=r"token.txt: file missing; it lies beside ExpertAnnotations.txt"):
        read_free("flickr8k-expert", flickr8k)


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
        result = read_free("flickr30k", data)
        _check(result, ["1", "2", "3", "4"])
        assert [image.source for image in result.images] == [None, FileSource(photo)]
    with pytest.raises(DataError, match=r"not the number of images Flickr30k has; given: 2; allowed: 1,000"):
        read(card("flickr30k"), path, None)


def test_a_token_file_is_read_whole(tmp_path):
    lines = [f"{name}#{k}\t{text}" for _, name, said in SAID[1:] for k, (_, text) in enumerate(said)]
    path = tmp_path / "results.token"
    path.write_text("\r\n".join(lines) + "\n", encoding="utf-8", newline="")
    for data in (path, tmp_path):
        result = read(card("flickr30k"), data, None)
        _check(result, ["2.jpg#0", "2.jpg#1", "3.jpg#0", "3.jpg#1"])
        assert (result.card.title, result.card.size) == ("Captions of results.token", 6)


def test_the_real_token_file(shared_data):
    """Flickr8k's, of the same layout: 40,460 lines, five to an image."""
    path = shared_data / "flickr8k" / "Flickr8k.token.txt"
    lines = path.read_text().splitlines()
    result = read(card("flickr30k"), path, None)
    assert len(result.captions) == len(lines) == 40_460
    assert len(result.images) == len({line.split("#")[0] for line in lines})
    assert [f"{c.id}\t{c.text}" for c in result.captions] == lines


def test_no_files_and_an_image_twice(tmp_path):
    with pytest.raises(DataError, match=r"nothing of Flickr30k here; allowed: dataset_flickr30k\.json"):
        read(card("flickr30k"), tmp_path, None)
    path = _json(tmp_path / "x.json")
    value = json.loads(path.read_text())
    value["images"].append(value["images"][1])
    path.write_text(json.dumps(value))
    refuses(r"image id occurs twice; given: 2\.jpg", read, card("flickr30k"), path, None)
