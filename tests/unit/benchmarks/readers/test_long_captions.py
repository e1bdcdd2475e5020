"""Galleries of long captions, NegBench's retrieval, IIW's preferences, ImageCoDe's sets, rated pictures."""

import json

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.folder import load, save
from counterfoil.benchmarks.readers import specs
from counterfoil.benchmarks.readers.specs import read
from counterfoil.errors import DataError
from refusals import refuses


def small(name, images):
    """The card for so many images with a caption each."""
    counts = dict.fromkeys(("images", "captions", "i2t", "t2i"), images)
    return card(name).model_copy(update={"size": 2 * images, "counts": counts})


def write(path, rows):
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "\n".join(map(json.dumps, rows)) if path.suffix.startswith(".jsonl") else json.dumps(rows)
    path.write_text(rows if isinstance(rows, str) else lines)


def urban(folder):
    for name in ("1", "2", "10"):
        write(folder / "caption" / f"{name}.txt", f"A street {name}.\nmore")
        write(folder / "image" / f"{name}.jpg", "")
    return folder


def sharegpt(folder):
    turns = [{"from": "human", "value": "?"}, {"from": "gpt", "value": "a\nlong caption"}]
    write(folder / "list.json", [{"image": f"sam/sa_{i}.jpg", "conversations": turns} for i in range(5)])
    return folder / "list.json"


def docci(folder):
    rows = [{"example_id": f"t{i}", "image_file": f"t{i}.jpg", "description": f"a {i}"} for i in range(6)]
    rows = [{**row, "split": "test" if i < 4 else "train"} for i, row in enumerate(rows)]
    write(folder / "docci_descriptions.jsonlines", rows)
    known = [{"example_id": f"t{i}", "cluster_id": "c1" if i < 2 else ""} for i in range(6)]
    write(folder / "docci_metadata.jsonlines", known)
    return folder


def iiw(folder):
    rows = [{"image/key": f"aar_{i}", "IIW": f"a wall {i}", "IIW-P5B": f"a door {i}"} for i in range(3)]
    said = ("IIW-Human is substantially better", "IIW-P5B is marginally better", "Neutral")
    for row, answer in zip(rows, said, strict=True):
        row["iiw-human-sxs-iiw-p5b"] = {"metrics/Specificity": answer, "metrics/Human Like": "Neutral"}
    write(folder / "data.jsonl", rows)
    return folder


@pytest.mark.parametrize(
    ("name", "make", "images", "first"),
    [
        ("urban1k", urban, 3, "A street 1."),
        ("sharegpt4v-1k", sharegpt, 4, "a long caption"),
        ("docci", docci, 4, "a 0"),
        ("iiw-400", iiw, 3, "a wall 0"),
    ],
)
def test_every_image_is_right_for_its_own_caption(name, make, images, first, tmp_path):
    made = specs.read(small(name, images), make(tmp_path), None)
    assert (len(made), made.captions[0].text) == (2 * images, first)
    for search in (made.gallery.i2t, made.gallery.t2i):
        assert search.positives.items.tolist() == list(range(images))


def test_pictures_of_urban1k_lie_beside_the_captions(tmp_path):
    made = specs.read(small("urban1k", 3), urban(tmp_path), None)
    assert [image.id for image in made.images] == ["1.jpg", "2.jpg", "10.jpg"]
    assert all(image.source is not None for image in made.images)


def test_near_duplicates_of_docci_are_drawn_together_also_after_a_save(tmp_path):
    made = specs.read(small("docci", 4), docci(tmp_path / "docci"), None)
    together = [[0, 0, 1, 2]] * 2
    save(made, tmp_path / "saved", progress=lambda *_: None)
    for item in (made, load(tmp_path / "saved")):
        result = item.dependence.images[:, 0].reshape(2, 4)
        assert [np.unique(row, return_inverse=True)[1].tolist() for row in result] == together


def test_side_by_side_judgements_are_preferences(tmp_path):
    made = specs.read(card("iiw-400-preferences"), iiw(tmp_path), None)
    questions = made.preferences
    assert questions.ids == ("aar_0.jpg/Specificity", "aar_1.jpg/Specificity")
    assert questions.label.tolist() == [0, 1]
    assert questions.groupings["degree"] == ("substantially", "marginally")
    assert "4 neutral judgements left out" in made.source
    rows = [{"image/key": "a", "IIW": "a", "IIW-P5B": "b", "iiw-human-sxs-iiw-p5b": {"metrics/x": "better"}}]
    write(tmp_path / "data.jsonl", rows)
    refuses("not a judgement; given: better", specs.read, card("iiw-400-preferences"), tmp_path, None)


def test_both_galleries_of_negbench(tmp_path):
    path = tmp_path / "COCO_val_retrieval.csv"
    path.write_text("filepath,captions\nval/1.jpg,\"['a cat', 'a small cat']\"\nval/2.jpg,\"['no cat']\"\n")
    made = specs.read(card("negbench-retrieval"), tmp_path, None)
    assert [image.id for image in made.images] == ["1.jpg", "2.jpg"]
    assert made.gallery.owners.tolist() == [0, 0, 1]
    refuses("no file of 'NegBench", specs.read, card("negbench-retrieval-negated"), tmp_path, None)
    path.write_text("filepath,captions\nval/1.jpg,a cat\n")
    with pytest.raises(DataError, match=r"row 1, column 'captions': not a list of texts"):
        specs.read(card("negbench-retrieval"), path, None)


def test_the_released_captions_of_imagecode(shared_data):
    made = specs.read(card("imagecode"), shared_data / "imagecode", None)
    questions = made.choices
    assert (questions.shape, questions.asks) == ((2302, 10), "caption")
    groups = questions.groups()
    assert (int(groups["static"].sum()), int(groups["video"].sum())) == (430, 1872)
    directory, _, number = questions.ids[5].rpartition("/")
    names = [made.images[i].id for i in questions.candidates[5]]
    assert names[0] == f"{directory}/img{number}.jpg"
    assert sorted(names) == [f"{directory}/img{k}.jpg" for k in range(10)]


def entry(prompt, **models):
    return {"prompt": prompt, "models": models}


def test_ratings_of_an_image_are_averaged_and_tags_are_groups(tmp_path):
    prompts = {
        "00000": entry("a  cat", DALLE_3=[5, 4, 3], SDXL_Base=[1, 1, 2]),
        "00001": entry("two dogs", DALLE_3=[2, 2, 2]),
    }
    write(tmp_path / "genai_image.json", prompts)
    write(tmp_path / "genai_skills.json", {"basic": [0], "counting": ["00001"], "none": []})
    (tmp_path / "DALLE_3").mkdir()
    (tmp_path / "DALLE_3" / "00001.jpeg").touch()
    made = read(card("genai-bench"), tmp_path, None)
    questions = made.rated
    assert questions.ids == ("DALLE_3/00000", "SDXL_Base/00000", "DALLE_3/00001")
    assert questions.ratings[:, 0] == pytest.approx([4, 4 / 3, 2])
    assert [caption.text for caption in made.captions] == ["a cat", "two dogs"]
    assert [image.source is not None for image in made.images] == [False, False, True]
    assert {label: mask.tolist() for label, mask in questions.groups().items()} == {
        "DALLE_3": [True, False, True],
        "SDXL_Base": [False, True, False],
        "basic": [True, True, False],
        "counting": [False, False, True],
    }


def test_nine_images_of_each_prompt(tmp_path):
    rated = entry("a cat", DALLE_3={"1": [5, 4], "2": [1, 2]}, SD={"1": [3]})
    write(tmp_path / "human_rating.json", [{"id": 7, **rated}])
    made = read(card("genai-bench-ranking"), tmp_path, None)
    names = ("DALLE_3/00007_01", "DALLE_3/00007_02", "SD/00007_01")
    assert [image.id for image in made.images] == [f"{name}.jpeg" for name in names]
    assert made.rated.ratings[:, 0].tolist() == [4.5, 1.5, 3]
