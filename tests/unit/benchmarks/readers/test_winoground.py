"""Winoground in all its layouts, and ARO's four sets."""

import csv
import json

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import caption_words, read
from counterfoil.benchmarks.readers.table_functions import SECOND_TAGS
from counterfoil.errors import DataError
from refusals import refuses


@pytest.fixture(scope="module")
def small():
    return card("winoground").model_copy(update={"size": 3, "counts": {"Object": 1, "Relation": 2}})


@pytest.fixture(scope="module")
def columns(jpeg):
    """Three items with one, two and no visual tags."""
    return {
        "id": [0, 1, 2],
        "image_0": [jpeg(seed, form="PNG") for seed in (1, 2, 3)],
        "image_1": [jpeg(seed, form="PNG") for seed in (4, 5, 6)],
        "caption_0": ["an old person kisses a young person", "the taller person hugs", "a dog"],
        "caption_1": ["a young person kisses an old person", "the shorter person hugs", "a big dog"],
        "tag": ["Adjective-Age", "Adjective-Size", "Noun"],
        "secondary_tag": ["Symbolic", "Symbolic, Series", ""],
        "num_main_preds": [1, 2, 1],
        "collapsed_tag": ["Relation", "Relation", "Object"],
    }


def _check(found, columns):
    assert found.questions.ids == ("0", "1", "2")
    assert [found.captions[i].id for i in found.questions.captions[1]] == ["1_c0", "1_c1"]
    texts = [found.captions[i].text for i in found.questions.captions[1]]
    assert texts == [columns[f"caption_{k}"][1] for k in (0, 1)]
    images = [found.images[i] for i in found.questions.images[2]]
    assert [image.id for image in images] == ["2_i0", "2_i1"]
    assert [image.read() for image in images] == [columns[f"image_{k}"][2] for k in (0, 1)]
    _check_groups(found)


def _check_groups(found):
    assert {name: np.flatnonzero(mask).tolist() for name, mask in found.questions.groups().items()} == {
        "Relation": [0, 1],
        "Object": [2],
        "1 Main Pred": [0, 2],
        "2 Main Preds": [1],
        "Symbolic": [0],  # exactly this tag
        "any Symbolic": [0, 1],  # contains it
        "any Series": [1],
        "Adjective-Age": [0],
        "Adjective-Size": [1],
        "Noun": [2],
    }


def test_parquet(tmp_path, small, columns, hub_parquet):
    hub_parquet(tmp_path / "data" / "test-00000-of-00001.parquet", columns)
    _check(read(small, tmp_path, None), columns)
    np.testing.assert_array_equal(caption_words(tmp_path), [[7, 7], [4, 4], [2, 3]])


def test_examples_and_images(tmp_path, small, columns):
    (tmp_path / "images").mkdir()
    with open(tmp_path / "examples.jsonl", "w") as file:
        for row in range(3):
            item = {name: cells[row] for name, cells in columns.items()}
            for k in (0, 1):
                name = f"ex_{row}_img_{k}"
                (tmp_path / "images" / f"{name}.png").write_bytes(item[f"image_{k}"])
                item[f"image_{k}"] = name
            file.write(json.dumps(item) + "\n")
    _check(read(small, tmp_path, None), columns)
    (tmp_path / "images" / "ex_1_img_0.png").unlink()
    assert read(small, tmp_path, None).available().questions.ids == ("0", "2")
    (tmp_path / "elsewhere").mkdir()
    with pytest.raises(DataError, match=r"none of the 6 images is in this folder.*ex_0_img_0\.png"):
        read(small, tmp_path, tmp_path / "elsewhere")
    refuses("no such image folder", read, small, tmp_path, tmp_path / "nowhere")


def test_tags_alone(tmp_path, small, columns):
    names = ("id", "tag", "secondary_tag", "collapsed_tag", "num_main_preds")
    with open(tmp_path / "tags.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow([*names, "caption_0_words", "caption_1_words"])
        writer.writerows([*(columns[name][row] for name in names), 5 + row, 6] for row in range(3))
    result = read(small, tmp_path, None)
    _check_groups(result)
    assert not result.captions_at_hand
    assert not result.images_at_hand
    assert len(np.unique(result.clusters)) == 3
    np.testing.assert_array_equal(caption_words(tmp_path), [[5, 6], [6, 6], [7, 6]])


def test_real_tags(shared_data):
    """Table 5 of the paper has items of exactly a visual tag, Table 1 those that contain the tag.

    The reader refuses files whose groups have other sizes than the card says.
    """
    result = read(card("winoground"), shared_data / "winoground", None)
    counts = [result.card.counts[name] for name in ("Symbolic", "any Symbolic", "Series", "any Series")]
    assert counts == [28, 41, 23, 31]
    assert len(set(result.questions.groupings["tag"])) == 70
    words = caption_words(shared_data / "winoground")
    assert words.shape == (400, 2)
    assert words.min() > 0


def test_second_tags(shared_data, tmp_path):
    """Diwan et al.'s file beside the items; an item may have several of their tags, 172 have none."""
    for folder, name in (("winoground", "tags.csv"), ("winoground_tags", SECOND_TAGS)):
        (tmp_path / name).write_bytes((shared_data / folder / name).read_bytes())
    result = read(card("winoground"), tmp_path, None)
    groups = {name: int(mask.sum()) for name, mask in result.questions.groups().items()}
    given = json.loads((tmp_path / SECOND_TAGS).read_text())
    assert groups["No Tag"] == 172 == sum(not tags for tags in given.values())
    for tag in {tag for tags in given.values() for tag in tags}:
        assert groups[f"any {tag}"] == sum(tag in tags for tags in given.values())
        assert groups[tag] == sum(tags == [tag] for tags in given.values())
    assert result.questions.groupings["second_tags"][3] == "Ambiguously Correct"
    # Without the file there are no such groups, and none is missed.
    alone = read(card("winoground"), shared_data / "winoground", None)
    assert not [name for name in alone.questions.groupings if name.startswith("second")]


@pytest.mark.parametrize(
    ("tags", "message"),
    [
        ({"0": [], "1": []}, "an item without an entry; given: 2"),
        ({"0": [], "1": ["Odd"], "2": []}, r"json, field '1\.0': .*given: 'Odd'; allowed: 'Complex"),
        ([], r"assignments\.json: .*list of 0; allowed: an object"),
    ],
)
def test_odd_second_tags(tags, message, tmp_path, small, columns, hub_parquet):
    file = hub_parquet(tmp_path / "a.parquet", columns)
    (tmp_path / SECOND_TAGS).write_text(json.dumps(tags))
    refuses(message, read, small, file, None)


def test_rows_without_tags(columns, small, tmp_path):
    names = ("id", "caption_0", "caption_1", "secondary_tag")
    rows = [{name: columns[name][row] for name in names} for row in range(3)]
    (tmp_path / "examples.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = read(small, tmp_path, None)
    assert result.questions.groupings["visual"] == ("Symbolic", "", "")
    assert "preds" not in result.questions.groupings
    refuses("not the number of questions", read, small.model_copy(update={"size": 4}), tmp_path, None)


def _sized(name, size, **facts):
    return card(name).model_copy(update={"size": size, **facts})


@pytest.fixture
def relations(tmp_path, jpeg):
    """Four items on two photographs; two of them look at one box of one photograph."""
    (tmp_path / "images").mkdir()
    for n in (1, 2):
        (tmp_path / "images" / f"{n}.jpg").write_bytes(jpeg(n, (40, 30)))
    boxes = [("1.jpg", 0, 0, 10, 20), ("1.jpg", 0, 0, 10, 20), ("1.jpg", 5, 6, 7, 8), ("2.jpg", 0, 0, 40, 30)]
    names = ["behind", "near", "on", "behind"]
    items = []
    for n, ((path, *box), name) in enumerate(zip(boxes, names, strict=True)):
        captions = {
            "true_caption": f"the horse is {name} the man {n}",
            "false_caption": f"the man is {name} the horse {n}",
        }
        sides = {f"bbox_{side}": value for side, value in zip("xywh", box, strict=True)}
        items.append({"image_path": path, **sides, **captions, "relation_name": name})
    (tmp_path / "visual_genome_relation.json").write_text(json.dumps(items))
    return tmp_path


def test_relation(relations):
    result = read(_sized("aro-vg-relation", 4), relations, None)
    assert result.questions.ids == ("0", "1", "2", "3")
    assert [result.captions[i].text for i in result.questions.candidates[0]] == [
        "the horse is behind the man 0",
        "the man is behind the horse 0",
    ]
    assert [image.id for image in result.images] == ["1.jpg#0,0,10,20", "1.jpg#5,6,12,14", "2.jpg#0,0,40,30"]
    whole = PIL.Image.open(relations / "images" / "1.jpg").convert("RGB")
    # Rows 6 to 13, columns 5 to 11: a box of 7 x 8 at (5, 6).
    np.testing.assert_array_equal(np.asarray(result.images[1].decode()), np.asarray(whole)[6:14, 5:12])
    groups = {name: np.flatnonzero(mask).tolist() for name, mask in result.questions.groups().items()}
    # "near" is on the authors' list of symmetric relations: it is a group, but not one of the macro average.
    assert groups == {"behind": [0, 3], "near": [1], "on": [2]}
    assert result.questions.groupings["relation_kept"] == ("behind", "", "on", "behind")
    assert result.card.macro == "relation_kept"


def test_attribution_keeps_groups_of_enough_items(tmp_path):
    pairs = [["furry", "white"], ["old", "red"], ["furry", "white"]]
    box = {"bbox_x": 0, "bbox_y": 0, "bbox_w": 4, "bbox_h": 4}
    captions = {"true_caption": "the furry dog", "false_caption": "the white dog"}
    items = [{"image_path": f"{n}.jpg", **box, **captions, "attributes": of} for n, of in enumerate(pairs)]
    path = tmp_path / "visual_genome_attribution.json"
    path.write_text(json.dumps(items))
    result = read(_sized("aro-vg-attribution", 3, macro_least=2), path, None)
    assert result.questions.groupings["attributes"] == ("furry_white", "old_red", "furry_white")
    assert result.questions.groupings["attributes_kept"] == ("furry_white", "", "furry_white")
    assert not result.images_at_hand
    items[1]["attributes"] = ["old"]
    path.write_text(json.dumps(items))
    with pytest.raises(DataError, match=r"row 2, column 'attributes': no '1' in the cell"):
        read(_sized("aro-vg-attribution", 3), path, None)


def test_hub_layout_with_a_box_in_a_cell(tmp_path, jpeg, hub_parquet):
    columns = {
        "image": [jpeg(1, (40, 30)), jpeg(2, (40, 30))],
        "bbox": [{"x": 1, "y": 2, "w": 10, "h": 20}, {"x": 0, "y": 0, "w": 40, "h": 30}],
        "true_caption": ["a", "b"],
        "false_caption": ["c", "d"],
        "relation_name": ["on", "in"],
    }
    path = hub_parquet(tmp_path / "a.parquet", columns)
    result = read(_sized("aro-vg-relation", 2), path, None)
    assert [image.crop for image in result.images] == [(1, 2, 11, 22), (0, 0, 40, 30)]
    assert result.images[0].decode().size == (10, 20)
    columns["bbox"][1]["w"] = 0
    with pytest.raises(DataError, match="row 2: empty box; given: 0 x 30 pixels"):
        read(_sized("aro-vg-relation", 2), hub_parquet(path, columns), None)


def test_order(tmp_path, jpeg, hub_parquet):
    columns = {"images": [jpeg(1), jpeg(2)]}
    for j, name in enumerate(("correct_caption", "hard_text_1", "hard_text_2", "hard_text_3", "hard_text_4")):
        columns[name] = [f"words {j}", "the same words"]
    hub_parquet(tmp_path / "data" / "test-0.parquet", columns)
    result = read(_sized("aro-coco-order", 2), tmp_path, None)
    assert result.questions.candidates.shape == (2, 5)
    assert [result.captions[i].text for i in result.questions.candidates[0]] == [
        f"words {j}" for j in range(5)
    ]
    assert result.images[1].read() == jpeg(2)
    rows = [{"image": "1.jpg", **{name: cells[0] for name, cells in columns.items() if name != "images"}}] * 2
    local = tmp_path / "order.jsonl"
    local.write_text("".join(json.dumps(row) + "\n" for row in rows))
    result = read(_sized("aro-flickr-order", 2), local, None)
    assert [image.id for image in result.images] == ["1.jpg"]  # two captions of one image
    local.write_text(json.dumps({name: "x" for name in columns if name != "images"}) + "\n")
    with pytest.raises(DataError, match=r"no column 'image'; given: correct_caption, hard_text_1"):
        read(_sized("aro-flickr-order", 1), local, None)
