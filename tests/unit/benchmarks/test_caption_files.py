import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks.caption_files import Named, read_candidates, read_references, spellings
from counterfoil.errors import DataError
from refusals import refuses


def written(tmp_path, value, name="c.json"):
    path = tmp_path / name
    path.write_text(value if isinstance(value, str) else json.dumps(value))
    return path


def test_clip_score_s_layout_and_annotations_of_coco(tmp_path):
    result = read_candidates(written(tmp_path, {"image2": "a dog", "image1": " a cat."}))
    assert dict(result.captions) == {"image2": ("a dog",), "image1": (" a cat.",)}
    assert list(result.captions) == ["image2", "image1"]
    references = read_references(written(tmp_path, {"image1": ["x", "y"], "image2": "z"}))
    assert dict(references.captions) == {"image1": ("x", "y"), "image2": ("z",)}
    value = {
        "images": [{"id": 42, "file_name": "COCO_val2014_000000000042.jpg"}],
        "annotations": [{"id": 1, "image_id": 42, "caption": "a"}, {"id": 2, "image_id": 42, "caption": "b"}],
    }
    result = read_references(written(tmp_path, value))
    assert dict(result.captions) == {"42": ("a", "b")}
    assert dict(result.files) == {"42": "COCO_val2014_000000000042.jpg"}


@pytest.mark.parametrize("key", ["image_id", "id", "file_name"])
def test_results_of_coco(tmp_path, key):
    entries = [{key: 42, "caption": "a"}, {key: 7, "caption": "b"}]
    assert dict(read_candidates(written(tmp_path, entries)).captions) == {"42": ("a",), "7": ("b",)}
    several = [*entries, {key: 42, "caption": "c"}]
    assert dict(read_references(written(tmp_path, several)).captions) == {"42": ("a", "c"), "7": ("b",)}


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": 3}, r"c.json, 'a': the caption is no string; given: 3"),
        ({"a": "b", "c": " "}, r"c.json, 'c': the caption is empty; given: ' '"),
        ({"a": ["b"]}, r"c.json, 'a': a list where one caption is asked for"),
        ({}, r"c.json: no captions"),
        ([], r"c.json: no captions"),
        ([{"image_id": 1, "caption": "a"}, {"image_id": 1, "caption": "b"}], r"entry 2: a second candidate"),
        ([{"image_id": 1, "caption": None}], r"c.json, entry 1: the caption is no string; given: "),
        ([{"image_id": 1}], r"c.json, entry 1: no caption; given: image_id"),
        ([{"caption": "a"}], r"c.json, entry 1: no id of an image or video; given: caption"),
        ([{"image_id": True, "caption": "a"}], r"entry 1: no id of an image"),
        (["a"], r"c.json, entry 1: not an entry"),
        ("3", r"c.json: not captions"),
        ('{"a": "b", "a": "c"}', r"c.json: key occurs twice in a JSON object; given: 'a'"),
        ('{"a": "b"', r"c.json, line 1, column \d+: not valid JSON"),
    ],
)
def test_candidates_that_cannot_be_right(tmp_path, value, said):
    refuses(said, read_candidates, written(tmp_path, value))


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": ["b", 3]}, r"c.json, 'a', reference 2: the caption is no string; given: 3"),
        ({"a": ["b", ""]}, r"c.json, 'a', reference 2: the caption is empty"),
        ({"a": []}, r"c.json, 'a': no references; given: \[\]"),
        ({"annotations": [], "images": []}, r"c.json: no captions"),
        ({"annotations": [], "images": [3]}, r"c.json, image 1: not an image of COCO; given: 3"),
    ],
)
def test_references_that_cannot_be_right(tmp_path, value, said):
    refuses(said, read_references, written(tmp_path, value))


def test_files_that_are_not_there(tmp_path):
    refuses(r"none.json: no such file", read_candidates, tmp_path / "none.json")
    path = tmp_path / "bytes.json"
    path.write_bytes(b"\xff{}")
    refuses(r"not UTF-8 text", read_candidates, path)


@pytest.mark.parametrize("name", ["42", "{}", "{}.jpg", "COCO_val2014_{}", "x/COCO_val2014_{}.png"])
def test_names_of_one_image_of_coco_meet(name):
    name = name.format("000000000042")
    assert Named(["COCO_val2014_000000000042.jpg"]).find(name) == "COCO_val2014_000000000042.jpg"
    assert set(spellings(name)) & set(spellings("COCO_val2014_000000000042.jpg"))


def test_short_numbers_are_names_of_their_own():
    assert Named(["042.jpg"]).find("42") is None
    assert Named(["42.jpg", "000000000042.jpg"]).find("42.jpg") == "42.jpg"
    assert Named(["42.jpg", "000000000042.jpg"]).find("42") is None


@pytest.mark.parametrize("name", ["c.csv", "c.parquet"])
def test_tables(tmp_path, name):
    rows = [("a.jpg", "a dog"), ("b.jpg", "two cats"), ("a.jpg", "the dog")]
    path = tmp_path / name
    if name.endswith("parquet"):
        pq.write_table(pa.table(dict(zip(("Image", "Caption"), zip(*rows, strict=True), strict=True))), path)
    else:
        path.write_text("".join(",".join(row) + "\n" for row in [("image_id", "caption"), *rows]))
    assert dict(read_references(path).captions) == {"a.jpg": ("a dog", "the dog"), "b.jpg": ("two cats",)}
    refuses(f"{name}, .* 3: a second candidate for one image; given: 'a.jpg'", read_candidates, path)
    several = read_candidates(path, several=True)
    assert dict(several.captions) == {"a.jpg": ("a dog", "the dog"), "b.jpg": ("two cats",)}
    assert dict(several.numbers) == {"a.jpg": (0, 1), "b.jpg": (0,)}


@pytest.mark.parametrize("name", ["c.jsonl", "c.parquet", "c.json"])
def test_lists_of_captions_in_entries(tmp_path, name):
    path, held = tmp_path / name, {"a": ["x", "y"], "b": ["z"]}
    if name.endswith("parquet"):
        pq.write_table(pa.table({"image_id": list(held), "caption": list(held.values())}), path)
    else:
        entries = [{"image_id": image, "caption": own} for image, own in held.items()]
        path.write_text("\n".join(map(json.dumps, entries)) if name == "c.jsonl" else json.dumps(entries))
    expected = {image: tuple(own) for image, own in held.items()}
    assert dict(read_candidates(path, several=True).captions) == expected
    assert dict(read_references(path).captions) == expected
    refuses("a list where one caption is asked for", read_candidates, path)


def test_a_list_and_another_entry_of_one_image_are_not_put_together(tmp_path):
    for entries in ([["x"], "y"], ["y", ["x"]], [["x"], ["y"]]):
        path = written(tmp_path, [{"image_id": 7, "caption": caption} for caption in entries])
        with pytest.raises(DataError, match="entry 2: captions of one image in a list and in another entry"):
            read_candidates(path, several=True)
    refuses("'b': no candidates", read_candidates, written(tmp_path, {"a": "x", "b": []}), several=True)


@pytest.mark.parametrize("as_text", [False, True])
def test_candidates_are_numbered_as_the_file_says(tmp_path, as_text):
    rows = [("a", "z", 2), ("b", "u", 0), ("a", "x", 0), ("a", "y", 1)]
    number_of = str if as_text else int
    entries = [{"image": image, "caption": text, "candidate": number_of(at)} for image, text, at in rows]
    result = read_candidates(written(tmp_path, entries), several=True)
    assert dict(result.captions) == {"a": ("x", "y", "z"), "b": ("u",)}
    assert dict(result.numbers) == {"a": (0, 1, 2), "b": (0,)}
    twice = written(tmp_path, [{"image": "a", "caption": text, "candidate": 1} for text in "xy"])
    with pytest.raises(DataError, match="entry 2: two candidates of one image have one number; given: 'a', "):
        read_candidates(twice, several=True)
    # What is no number is somebody's own column.
    other = [{"image": "a", "caption": text, "candidate": f"beam {text}"} for text in "xy"]
    assert dict(read_candidates(written(tmp_path, other), several=True).numbers) == {"a": (0, 1)}


def test_an_empty_candidate_is_refused_or_left_out_and_the_others_keep_their_numbers(tmp_path):
    path = written(tmp_path, {"a": "a dog", "b": " ", "c": ""})
    refuses(r"c.json, 'b': the caption is empty", read_candidates, path)
    result = read_candidates(path, empty="leave-out")
    assert (dict(result.captions), result.left_out) == ({"a": ("a dog",)}, 2)
    refuses("no captions", read_candidates, written(tmp_path, {"b": ""}), empty="leave-out")
    path = written(tmp_path, {"a": ["", "x", " ", "y"], "b": "z", "c": ["", ""]})
    result = read_candidates(path, several=True, empty="leave-out")
    assert dict(result.captions) == {"a": ("x", "y"), "b": ("z",)}
    assert dict(result.numbers) == {"a": (1, 3), "b": (0,)}
    assert (result.left_out, result.images_left_out) == (4, 1)
