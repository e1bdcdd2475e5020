"""PMRP: codes from instances, two protocols, and what has no object."""

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import coco
from counterfoil.errors import DataError
from refusals import refuses

#: The categories that the images of a half show, in its order: 0 and 1 alike, 2 has none, 3 one more.
SHOWN = ([1, 90, 90], [90, 1], [], [1, 90, 17])


def _instances(made, shown=SHOWN):
    return {
        "images": [{"id": image} for image in made.images],
        "annotations": [
            {"image_id": image, "category_id": category, "segmentation": [[0.5] * 6]}
            for image, categories in zip(made.images, shown, strict=True)
            for category in categories
        ],
    }


@pytest.fixture
def objects(half, captions_of):
    """A folder of COCO whose test half is listed in it."""
    made = half()
    made.write("annotations/captions_val2014.json", captions_of(made))
    made.write("annotations/instances_val2014.json", _instances(made))
    return made


def _rule(search):
    return search.positives


def _matches(search, threshold):
    found = _rule(search).distances(slice(None)) <= threshold
    return [np.flatnonzero(row).tolist() for row in found]


def test_equal_codes(objects, read_free):
    """By hand: images 0 and 1 match each other; 3 itself; 2 is no query and matches nobody."""
    found = read_free("pmrp", objects.folder)
    questions = found.gallery
    assert (len(found.images), len(found.captions)) == (4, 20)
    assert questions.i2t.queries.tolist() == [0, 1, 3]
    assert questions.t2i.queries.tolist() == [*range(10), *range(15, 20)]
    assert _matches(questions.i2t, 0) == [list(range(10)), list(range(10)), list(range(15, 20))]
    assert _matches(questions.t2i, 0) == [[0, 1]] * 10 + [[3]] * 5
    for search in (questions.i2t, questions.t2i):
        assert (_rule(search).thresholds, _rule(search).cap) == ((0,), 50)
        assert _rule(search).item_codes.shape[1] == 3  # categories 1, 17 and 90 occur
    assert found.source.startswith("COCO's test half: ")
    assert found.source.endswith("instances_val2014.json")
    # The rows of a smaller search are its queries'.
    assert _matches(questions.select(np.array([2, 3])).i2t, 0) == [list(range(15, 20))]


def test_instances_alone_are_enough(objects, read_free):
    """Without captions there are no texts; what is right is the same."""
    whole = read_free("pmrp", objects.folder)
    (objects.folder / "annotations" / "captions_val2014.json").unlink()
    found = read_free("pmrp", objects.folder)
    assert not found.captions_at_hand
    assert _matches(found.gallery.t2i, 0) == _matches(whole.gallery.t2i, 0)


def test_the_original_protocol(objects, read_free):
    """Image 2 is out: positions move up. 0 and 1 differ from 3 in one class, so threshold 1 has all three."""
    found = read_free("pmrp-original", objects.folder)
    questions = found.gallery
    assert [image.id for image in found.images] == [str(objects.images[i]) for i in (0, 1, 3)]
    assert [c.id for c in found.captions] == [str(c) for i in (0, 1, 3) for c in objects.captions[i]]
    assert questions.owners.tolist() == [i for i in range(3) for _ in range(5)]
    assert (_rule(questions.i2t).thresholds, _rule(questions.i2t).cap) == ((0, 1, 2), None)
    assert _matches(questions.i2t, 0) == [list(range(10)), list(range(10)), list(range(10, 15))]
    assert _matches(questions.i2t, 1) == [list(range(15))] * 3
    assert _matches(questions.t2i, 0) == [[0, 1]] * 10 + [[2]] * 5
    assert len(found) == 18


def test_parts_are_cut_before_images_are_left_out(half, read_free, captions_of, monkeypatch):
    """Six images in parts of three, the first without an object: two and three are left."""
    monkeypatch.setattr(coco, "PART", 3)
    made = half(6)
    made.write("annotations/captions_val2014.json", captions_of(made))
    shown = [[]] + [[3]] * 5
    made.write("annotations/instances_val2014.json", _instances(made, shown))
    found = read_free("pmrp-original-1k", made.folder)
    questions = found.gallery
    assert np.bincount(questions.image_parts).tolist() == [2, 3]
    assert np.bincount(questions.caption_parts).tolist() == [10, 15]
    assert np.array_equal(questions.caption_parts, questions.image_parts[questions.owners])


def test_captions_files_that_do_not_hold_the_test_half(half, captions_of):
    """Then all of their images count, and the source and the title say so."""
    made = half()
    value = captions_of(made)
    value["images"].append({"id": 7, "file_name": "lonely.jpg"})
    instances = _instances(made)
    instances["images"].append({"id": 7})
    instances["annotations"].append({"image_id": 7, "category_id": 1})
    made.write("annotations/captions_mine.json", value)
    made.write("annotations/instances_mine.json", instances)
    np.save(made.folder / "coco_test_ids.npy", np.array([3, 4]))
    found = coco.read_pmrp(card("pmrp"), made.folder, None)
    assert found.source.startswith("all 5 images of ")
    assert found.card.title == "PMRP (ECCV Caption), coco"
    # Image 7 shows an object and has no caption: it is in the gallery, and no query.
    assert found.gallery.n_images == 5
    asked = [found.images[i].id for i in found.gallery.i2t.queries.tolist()]
    assert sorted(asked) == sorted(str(made.images[i]) for i in (0, 1, 3))
    with pytest.raises(DataError, match=r"do not make parts of 1,000; given: 5 images"):
        coco.read_pmrp_original_1k(card("pmrp-original-1k"), made.folder, None)


def test_broken_instances(objects, free, read_free):
    read, path = coco.read_pmrp, objects.folder / "annotations" / "instances_val2014.json"
    value = _instances(objects)
    objects.write("annotations/instances_val2014.json", {**value, "images": value["images"][1:]})
    with pytest.raises(DataError, match=f"not known of 1 of 4 images; given: image {objects.images[0]}"):
        read_free("pmrp", objects.folder)
    objects.write("annotations/instances_val2014.json", _instances(objects, [[]] * 4))
    refuses(r"instances_val2014\.json, annotations: the table has no rows", read_free, "pmrp", objects.folder)
    others = {"images": [*value["images"], {"id": 9}], "annotations": [{"image_id": 9, "category_id": 1}]}
    objects.write("annotations/instances_val2014.json", others)
    for each in (read, coco.read_pmrp_original):
        refuses("no image has", each, free("pmrp"), objects.folder, None)
    path.unlink()
    refuses("no instances here, which say what objects an image shows", read_free, "pmrp", objects.folder)


def _codes_by_hand(shared_data):
    import json

    shown = {}
    for split in ("train2017", "val2017"):
        path = shared_data / "coco_mini" / "annotations" / f"instances_{split}.json"
        value = json.loads(path.read_text())
        for image in value["images"]:
            shown.setdefault(str(image["id"]), set())
        for each in value["annotations"]:
            shown[str(each["image_id"])].add(each["category_id"])
    return {name: frozenset(found) for name, found in shown.items()}


def test_real_instances(shared_data):
    """Two images of coco_mini are at the distance of their sets of categories, by Python's own sets."""
    shown = _codes_by_hand(shared_data)

    def check(found):
        search = found.gallery.t2i
        owners = found.gallery.owners[search.queries]
        distances = _rule(search).distances(slice(None))
        assert distances.shape == (len(search), len(found.images))
        for query, owner in list(enumerate(owners.tolist()))[::37]:
            mine = shown[found.images[owner].id]
            assert distances[query].tolist() == [len(mine ^ shown[image.id]) for image in found.images]

    found = coco.read_pmrp(card("pmrp"), shared_data / "coco_mini", None)
    assert len(found.images) == 159
    assert len(found) == sum(6 for categories in shown.values() if categories)
    check(found)
    check(coco.read_pmrp_original(card("pmrp-original"), shared_data / "coco_mini", None))
