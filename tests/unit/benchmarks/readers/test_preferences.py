"""Pascal-50S and Abstract-50S, written as MATLAB files, and FOIL's three sets of pairs."""

import json

import numpy as np
import pytest
from scipy.io import savemat

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import specs
from counterfoil.benchmarks.readers.specs import read
from counterfoil.errors import DataError
from judged_rows import judged_rows
from refusals import refuses


def _structure(rows):
    """A 1 x n structure, as `struct` makes it in MATLAB."""
    found = np.zeros((1, len(rows)), dtype=[(f"f{at}", object) for at in range(len(rows[0]))])
    for at, row in enumerate(rows):
        found[0, at] = row
    return found


def _cell(text):
    cell = np.empty((1, 1), dtype=object)
    cell[0, 0] = text
    return cell


def _write(folder, votes, categories, name="pascal", same=()):
    """Pairs of whose 48 judgements so many are for the first caption; an image has two pairs."""
    folder.mkdir(parents=True, exist_ok=True)
    texts = [(f" first  {at} ", f"first {at}" if at in same else f"second {at}") for at in range(len(votes))]
    pairs = _structure([(f"img_{at // 2}.jpg", *texts[at]) for at in range(len(votes))])
    rows = []
    for at, first in enumerate(votes):
        for each in range(48):
            # References belong to the image; the winners of the first caption are spread.
            winner = 1 if (each * 7) % 48 < first else -1
            rows.append((_cell(f"reference {at // 2}.{each} "), *map(_cell, texts[at]), float(winner)))
    savemat(
        folder / f"pair_{name}.mat", {"new_input": pairs, "category": np.array([categories], dtype=np.uint8)}
    )
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
        (str(at), f"img_{at // 2}.jpg", f"{side} {at}", [f"reference {at // 2}.{k}" for k in range(48)])
        for at in range(4)
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
    _write(tmp_path, votes, [at // 10 + 1 for at in range(40)])
    counts = {name: number // 100 for name, number in card("pascal-50s").counts.items()}
    small = card("pascal-50s").model_copy(update={"size": 40, "counts": counts})
    benchmark = read(small, tmp_path, None)
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
        assert asked.votes.tolist() == [[30, 18], [10, 38]]
        assert asked.label.tolist() == [0, 1]
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
    notes = [
        {**dict(zip(keys, row, strict=True)), "target_word": target.get(at, "")}
        for at, row in enumerate(rows, 1)
    ]
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
    assert asked.votes.tolist() == [[1, 0]] * len(asked)
    assert asked.label.tolist() == [0] * len(asked)
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
    found = _shown(benchmark)
    assert len(found) == 2
    assert {facts[0] for facts in found.values()} == {"7", "42"}
    assert all(ALL[name] == facts for name, facts in found.items())
    assert read_free("foil-clipscore", folder).digest == benchmark.digest
    assert "(one pair of each image, drawn with seed 0; " in benchmark.source
    one = _shown(read_free("foil-clipscore-1ref", folder))
    assert one == {name: (*facts, refs[:1]) for name, (*facts, refs) in found.items()}


def test_pairs_are_drawn_evenly(tmp_path, read_free):
    """Of 600 images with three pairs each, every place is drawn about as often: 200, give or take 12."""
    notes = []
    for image in range(600):
        facts = {"image_id": image, "target_word": ""}
        notes.append({**facts, "id": image, "caption": f"{image} is", "foil": False, "foil_id": 0})
        notes += [
            {**facts, "id": image, "caption": f"{image} is {k}", "foil": True, "foil_id": k} for k in range(3)
        ]
    images = [{"id": i, "file_name": f"COCO_val2014_{i:012d}.jpg"} for i in range(600)]
    (tmp_path / "foilv1.0_test_2017.json").write_text(json.dumps({"images": images, "annotations": notes}))
    found = read_free("foil-clipscore", tmp_path)
    assert "without references: COCO's captions are not in the folder" in found.source
    assert found.judged.references is None
    places = [name.split("/")[1] for name in found.judged.ids]
    assert len(places) == 600
    assert all(150 < places.count(str(k)) < 250 for k in range(3))


def test_pairs_that_pac_s_did_not_train_on(folder, read_free, karpathy):
    with pytest.raises(DataError, match=r"dataset_coco.json: file missing; PAC-S's pairs are those of its"):
        read_free("foil-pac-s", folder)
    karpathy(folder, {(7, "restval"): ["x"], (42, "val"): ["x"], (8, "test"): ["x"]})
    assert _shown(read_free("foil-pac-s", folder)) == {"3/5": ALL["3/5"]}
    one = _shown(read_free("foil-pac-s-1ref", folder))
    assert one == {"3/5": (*ALL["3/5"][:3], ["the car"])}
    # The same draw as the larger set.
    larger = _shown(read_free("foil-clipscore", folder))
    assert larger["3/5"] == ALL["3/5"]
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
    assert "(1 pairs without a reference left out; 7 references equal to the original taken out)" in (
        benchmark.source
    )
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
    refuses(r"no file of FOIL.* in this folder", read_free, "foil", folder)
