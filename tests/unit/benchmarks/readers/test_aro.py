"""ARO's four sets."""

import json

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read
from counterfoil.errors import DataError


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
    found = read(_sized("aro-vg-relation", 4), relations, None)
    assert found.questions.ids == ("0", "1", "2", "3")
    assert [found.captions[i].text for i in found.questions.candidates[0]] == [
        "the horse is behind the man 0",
        "the man is behind the horse 0",
    ]
    assert [image.id for image in found.images] == ["1.jpg#0,0,10,20", "1.jpg#5,6,12,14", "2.jpg#0,0,40,30"]
    whole = PIL.Image.open(relations / "images" / "1.jpg").convert("RGB")
    # Rows 6 to 13, columns 5 to 11: a box of 7 x 8 at (5, 6).
    np.testing.assert_array_equal(np.asarray(found.images[1].decode()), np.asarray(whole)[6:14, 5:12])
    groups = {name: np.flatnonzero(mask).tolist() for name, mask in found.questions.groups().items()}
    # "near" is on the authors' list of symmetric relations: it is a group, but not one of the macro average.
    assert groups == {"behind": [0, 3], "near": [1], "on": [2]}
    assert found.questions.groupings["relation_kept"] == ("behind", "", "on", "behind")
    assert found.card.macro == "relation_kept"


def test_attribution_keeps_groups_of_enough_items(tmp_path):
    pairs = [["furry", "white"], ["old", "red"], ["furry", "white"]]
    box = {"bbox_x": 0, "bbox_y": 0, "bbox_w": 4, "bbox_h": 4}
    captions = {"true_caption": "the furry dog", "false_caption": "the white dog"}
    items = [
        {"image_path": f"{n}.jpg", **box, **captions, "attributes": pair} for n, pair in enumerate(pairs)
    ]
    path = tmp_path / "visual_genome_attribution.json"
    path.write_text(json.dumps(items))
    found = read(_sized("aro-vg-attribution", 3, macro_least=2), path, None)
    assert found.questions.groupings["attributes"] == ("furry_white", "old_red", "furry_white")
    assert found.questions.groupings["attributes_kept"] == ("furry_white", "", "furry_white")
    assert not found.images_at_hand
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
    found = read(_sized("aro-vg-relation", 2), path, None)
    assert [image.crop for image in found.images] == [(1, 2, 11, 22), (0, 0, 40, 30)]
    assert found.images[0].decode().size == (10, 20)
    columns["bbox"][1]["w"] = 0
    with pytest.raises(DataError, match="row 2: empty box; given: 0 x 30 pixels"):
        read(_sized("aro-vg-relation", 2), hub_parquet(path, columns), None)


def test_order(tmp_path, jpeg, hub_parquet):
    columns = {"images": [jpeg(1), jpeg(2)]}
    for j, name in enumerate(("correct_caption", "hard_text_1", "hard_text_2", "hard_text_3", "hard_text_4")):
        columns[name] = [f"words {j}", "the same words"]
    hub_parquet(tmp_path / "data" / "test-0.parquet", columns)
    found = read(_sized("aro-coco-order", 2), tmp_path, None)
    assert found.questions.candidates.shape == (2, 5)
    assert [found.captions[i].text for i in found.questions.candidates[0]] == [f"words {j}" for j in range(5)]
    assert found.images[1].read() == jpeg(2)
    rows = [{"image": "1.jpg", **{name: cells[0] for name, cells in columns.items() if name != "images"}}] * 2
    local = tmp_path / "order.jsonl"
    local.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = read(_sized("aro-flickr-order", 2), local, None)
    assert [image.id for image in found.images] == ["1.jpg"]  # two captions of one image
    local.write_text(json.dumps({name: "x" for name in columns if name != "images"}) + "\n")
    with pytest.raises(DataError, match=r"no column 'image'; given: correct_caption, hard_text_1"):
        read(_sized("aro-flickr-order", 1), local, None)
