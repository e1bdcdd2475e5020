"""SugarCrepe's seven files, SugarCrepe++'s five, and released tables that carry their own questions."""

import json
import re
from itertools import compress

import numpy as np
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import specs
from counterfoil.benchmarks.readers.specs import from_table, layouts, read
from counterfoil.benchmarks.tables import DataTable, read_table
from counterfoil.evaluation.evaluate import evaluate
from refusals import refuses

SUBSETS = layouts("sugarcrepe")[1].subsets
PP_SUBSETS = layouts("sugarcrepe-pp")[0].subsets


def _item(name, number):
    image = f"{number % 3:012}.jpg"
    return {"filename": image, "caption": f" {name} {number} ", "negative_caption": f"not {number}"}


@pytest.fixture
def folder(tmp_path):
    """Two items in each of the seven files; swap_obj's keys skip a number. Three images in all."""
    for name in SUBSETS:
        keys = (0, 2) if name == "swap_obj" else (0, 1)
        (tmp_path / f"{name}.json").write_text(json.dumps({str(key): _item(name, key) for key in keys}))
    return tmp_path


@pytest.fixture(scope="module")
def small():
    counts = dict.fromkeys(SUBSETS, 2)
    return card("sugarcrepe").model_copy(update={"size": 14, "counts": counts, "also": {"swap_obj": 3}})


def test_seven_files(folder, small):
    result = read(small, folder, None)
    assert result.questions.ids[:3] == ("add_obj/0", "add_obj/1", "add_att/0")
    assert result.questions.ids[-4:-2] == ("swap_obj/0", "swap_obj/2")  # the key of the file, not a count
    assert [image.id for image in result.images] == [f"{n:012}.jpg" for n in (0, 1, 2)]  # each listed once
    assert [result.captions[i].text for i in result.questions.candidates[0]] == [" add_obj 0 ", "not 0"]
    assert result.questions.correct == 1
    sizes = {name: int(mask.sum()) for name, mask in result.questions.groups().items()}
    assert sizes == {**dict.fromkeys(SUBSETS, 2), "add": 4, "replace": 6, "swap": 4}
    assert not result.images_at_hand
    # The items of each of the three images hang together, and no caption joins two images.
    assert len(np.unique(result.clusters)) == 3


def test_images_that_are_there(folder, small, jpeg, tmp_path):
    pictures = tmp_path / "val2017"
    pictures.mkdir()
    (pictures / f"{1:012}.jpg").write_bytes(jpeg(1))
    result = read(small, folder, pictures)
    assert [image.source is not None for image in result.images] == [False, True, False]
    there = result.available()
    assert all(name.endswith("/1") for name in there.questions.ids)
    assert len(there) == 6  # every file but swap_obj has an item 1
    assert there.images[0].decode().size == (24, 16)


def test_one_file_alone_and_one_that_is_cut_off(folder, small):
    assert read(small, folder / "swap_obj.json", None).questions.ids == ("swap_obj/0", "swap_obj/2")
    (folder / "add_att.json").unlink()
    refuses(r"file missing: add_att\.json; name one file", read, small, folder, None)
    refuses("no such folder", read, small, folder / "nowhere", None)
    (folder / "add_obj.json").write_text(json.dumps({"0": _item("a", 0)}))
    words = refuses("in group 'add_obj'; given: 1; allowed: 2", read, small, folder / "add_obj.json", None)
    assert str(folder / "add_obj.json") in words


def test_the_papers_edition_is_accepted(folder, small):
    items = {str(n): _item("swap_obj", n) for n in range(3)}
    (folder / "swap_obj.json").write_text(json.dumps(items))
    assert len(read(small, folder, None)) == 15
    items["3"] = _item("swap_obj", 3)
    (folder / "swap_obj.json").write_text(json.dumps(items))
    refuses("in group 'swap_obj'; given: 4; allowed: 2 or 3", read, small, folder, None)


def test_real_files(shared_data):
    """7,511 items; 211 of them lie on the 47 photographs at hand."""
    data, pictures = shared_data / "sugarcrepe", shared_data / "coco_mini" / "images" / "val2017"
    result = read(card("sugarcrepe"), data, pictures)
    assert len(result) == 7511
    assert "swap_obj/108" not in result.questions.ids
    assert "swap_obj/245" in result.questions.ids
    groups = result.questions.groups()
    assert groups["same words"].sum() == 572
    assert (groups["same words"] & groups["swap_obj"]).sum() == 164
    assert (groups["same words"] & groups["swap_att"]).sum() == 408
    there = result.available()
    assert (len(there), len(there.images)) == (211, 47)


@pytest.fixture
def plus(tmp_path):
    for name in PP_SUBSETS:
        items = [{"id": n, **_item(name, n), "caption2": f"also {name} {n}"} for n in (4, 9)]
        (tmp_path / f"{name}.json").write_text(json.dumps(items))
    return tmp_path


def test_sugarcrepe_pp(plus):
    small = card("sugarcrepe-pp").model_copy(update={"size": 10, "counts": dict.fromkeys(PP_SUBSETS, 2)})
    result = read(small, plus, None)
    assert (result.questions.ids[:2], result.questions.correct) == (("replace_obj/4", "replace_obj/9"), 2)
    first = [result.captions[i].text for i in result.questions.candidates[0]]
    assert first == [" replace_obj 4 ", "also replace_obj 4", "not 4"]
    assert set(result.questions.groups()) == {*PP_SUBSETS, "replace", "swap"}
    assert read(small, plus / "swap_att.json", None).questions.ids == ("swap_att/4", "swap_att/9")
    items = json.loads((plus / "swap_att.json").read_text())
    items[1]["id"] = 4
    (plus / "swap_att.json").write_text(json.dumps(items))
    refuses(r"swap_att\.json, row 2, column 'id': id occurs twice; .*/4", read, small, plus, None)


def alike(first, second):
    """The share of words that two captions have in common."""
    a, b = (set(re.findall(r"\w+", text.lower())) for text in (first, second))
    return len(a & b) / len(a | b)


def test_the_text_only_task_compares_captions(shared_data):
    """Given similarities of the real files against a loop over the released items."""
    counts = {"swap_obj": (245, 12), "swap_att": (666, 93), "replace_att": (788, 151)}
    for name, (size, by_words) in counts.items():
        file = shared_data / "sugarcrepe_pp" / f"{name}.json"
        actual = read(card("sugarcrepe-pp-tot"), file, None)
        items = json.loads(file.read_text())
        assert len(actual) == len(items) == size
        right = 0
        for item in items:
            c1, c2, wrong = (item[key] for key in ("caption", "caption2", "negative_caption"))
            right += alike(c1, c2) > alike(c1, wrong) and alike(c1, c2) > alike(c2, wrong)
        assert right == by_words
        texts = [caption.text or "" for caption in actual.captions]
        pairs = zip(*(side.ravel().tolist() for side in actual.questions.text_pairs()), strict=True)
        scores = np.array([alike(texts[a], texts[b]) for a, b in pairs]).reshape(-1, 3)
        result = evaluate(actual, Scores(scores), model="words", draws=10)
        assert result["accuracy"].value == right / size
        assert result["accuracy"].chance == pytest.approx(1 / 3)
        # Nothing is missing without images.
        assert actual.available() is actual


def test_tables_that_carry_no_questions():
    scores = DataTable({"id": ["0"], "score": [0.5]}, "a.csv")
    for name in ("bivlc", "sugarcrepe", "winoground", "pairs"):
        assert from_table(card(name), scores) is None
    assert from_table(card("winoground"), DataTable({"label": ["cat", "dog"]}, "a.csv")) is None


def test_bivlc(shared_data):
    names = ("ViT-B-32", "CLIP_COCO", "CLIP_TROHN-Text")
    tables = [read_table(shared_data / "bivlc" / f"{name}.csv") for name in names]
    first, *others = (from_table(card("bivlc"), table) for table in tables)
    assert len(first) == 2933
    # The tables of all models ask the same questions in the same order.
    assert {item.digest for item in others} == {first.digest}
    assert first.images[0].id == "0_i0"
    assert from_table(card("sugarcrepe"), tables[0]) is None


def test_sugarcrepe_ids_are_the_readers(shared_data):
    """The table has the item that the repository dropped; the other 7,511 are the same under the same ids."""
    table = read_table(shared_data / "bivlc" / "SUGARCREPE_ViT-B-32.csv")
    released = from_table(card("sugarcrepe"), table)
    assert len(released) == 7512
    files = specs.read(card("sugarcrepe"), shared_data / "sugarcrepe", None)
    shared = np.asarray([name != "swap_obj/108" for name in released.questions.ids])
    assert int(shared.sum()) == 7511
    assert released.select(shared).digest == files.digest
    # A table without the item gets the same ids: the number is skipped.
    cut = {name: list(compress(cells, shared)) for name, cells in table.columns.items()}
    assert from_table(card("sugarcrepe"), DataTable(cut, "cut.csv")).questions.ids == files.questions.ids


def test_winoground_labels(shared_data):
    table = read_table(shared_data / "winoground" / "scores" / "clip.jsonl")
    labelled = from_table(card("winoground"), table)
    tags = specs.read(card("winoground"), shared_data / "winoground", None)
    assert labelled.questions.ids == tags.questions.ids
    assert [image.id for image in labelled.images] == [image.id for image in tags.images]
