"""COCO 5K and 1K from every kind of folder, captions files, the codes of PMRP, and CxC with its ratings."""

import csv
import json
import sys
from functools import cache
from itertools import pairwise

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import coco
from counterfoil.benchmarks.readers.released_captions import read_codes
from counterfoil.benchmarks.records import FileSource
from counterfoil.errors import DataError, InputError, MissingExtraError
from counterfoil.registry import resolve
from refusals import refuses


@pytest.fixture(scope="module")
def real(shared_data):
    """real(name, data): the released benchmark; those of one folder read its test half once."""
    read_test = cache(coco.read_test)

    @cache
    def read(name, data=shared_data / "eccv"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(coco, "read_test", read_test)
            return resolve(card(name).reader)(card(name), data, None)

    return read


def _right(found):
    """Right answers by question id."""
    questions = found.gallery
    right = {}
    sides = (("i2t", questions.i2t, found.captions), ("t2i", questions.t2i, found.images))
    for prefix, search, items in sides:
        asked = found.images if prefix == "i2t" else found.captions
        for row, query in enumerate(search.queries.tolist()):
            positives = search.positives.take(np.array([row])).items.tolist()
            right[f"{prefix}/{asked[query].id}"] = [items[i].id for i in positives]
    assert tuple(right) == questions.ids
    return right


def _check(found, half):
    flat = [str(c) for own in half.captions for c in own]
    assert [image.id for image in found.images] == [str(i) for i in half.images]
    assert [caption.id for caption in found.captions] == flat
    assert found.gallery.owners.tolist() == [i for i in range(len(half.images)) for _ in range(5)]
    right = {f"i2t/{i}": [str(c) for c in own] for i, own in zip(half.images, half.captions, strict=True)}
    right |= {f"t2i/{c}": [str(i)] for i, own in zip(half.images, half.captions, strict=True) for c in own}
    assert _right(found) == right


def test_ids_alone_and_with_texts_and_photographs(half, read_free, captions_of):
    made = half()
    result = read_free("coco-5k", made.folder)
    _check(result, made)
    assert result.card.size == len(result) == 4 + 20
    assert not result.captions_at_hand
    assert not result.images_at_hand
    assert result.gallery.image_parts is None
    refuses(r"given: 4 images missing and 20 captions missing", result.available)
    made.write("annotations/captions_val2014.json", captions_of(made))
    photo = made.write(f"val2014/COCO_val2014_{made.images[1]:012d}.jpg", "pixels")
    result = read_free("coco-5k", made.folder)
    _check(result, made)
    assert all(caption.text == f"caption {caption.id}" for caption in result.captions)
    assert [image.source for image in result.images] == [None, FileSource(photo), None, None]


@pytest.mark.parametrize("inside", ["", "val2014", "images/val2014"])
def test_where_photographs_may_lie(half, read_free, inside):
    made = half()
    photo = made.write(f"elsewhere/{inside}/{made.images[2]:012d}.jpg", "pixels")
    result = read_free("coco-5k", made.folder, made.folder / "elsewhere")
    assert [image.source for image in result.images] == [None, None, FileSource(photo), None]
    # One that is a link is read where the link lies.
    photo.rename(photo.with_name("original.jpg"))
    photo.symlink_to("original.jpg")
    result = read_free("coco-5k", made.folder, made.folder / "elsewhere")
    assert result.images[2].read() == b"pixels"
    (made.folder / "empty").mkdir()
    with pytest.raises(DataError, match="none of the 4 images is in this folder; it should hold files like"):
        read_free("coco-5k", made.folder, made.folder / "empty")


def test_karpathys_file(half, read_free):
    """Its test split, the first five captions of each image; ids of the folder go before it."""
    made = half()
    images = [
        {
            "cocoid": image,
            "split": "test",
            "filename": "x.jpg",
            "sentences": [{"sentid": c, "raw": f"raw {c}", "tokens": []} for c in [*own, 90_000 + image]],
        }
        for image, own in zip(made.images, made.captions, strict=True)
    ]
    other = {"cocoid": 1, "split": "train", "sentences": []}
    for data in (made.write("dataset_coco.json", {"images": [other, *images]}), made.folder):
        result = read_free("coco-5k", data)
        _check(result, made)
        assert result.captions[3].text == f"raw {result.captions[3].id}"
    (made.folder / "coco_test_ids.npy").unlink()
    _check(read_free("coco-5k", made.folder), made)
    made.write("dataset_coco.json", {"images": [{"split": "test", "cocoid": 3}]})
    refuses("images, entry 1: not as expected: KeyError", read_free, "coco-5k", made.folder)
    made.write("dataset_coco.json", {"images": [other]})
    refuses("no image of the split 'test'", read_free, "coco-5k", made.folder)


def test_1k_is_parts_of_a_thousand(half, read_free, monkeypatch):
    assert coco.PART == 1000
    monkeypatch.setattr(coco, "PART", 3)
    made = half(6)
    result = read_free("coco-1k", made.folder)
    _check(result, made)
    questions = result.gallery
    assert questions.image_parts.tolist() == [0] * 3 + [1] * 3
    assert questions.caption_parts.tolist() == [0] * 15 + [1] * 15
    refuses(r"do not make parts of 3; given: 4 images", read_free, "coco-1k", half(4, "small").folder)


def _change_ids(made, places, taken_from):
    ids = np.load(made.folder / "coco_test_ids.npy")
    ids[places] = ids[taken_from]
    np.save(made.folder / "coco_test_ids.npy", ids)


BROKEN = {
    "no ids": (lambda m, c: np.save(m.folder / "coco_test_ids.npy", np.ones((2, 5))), r"float64 \(2, 5\)"),
    "cut off": (lambda m, c: (m.folder / "coco_test_ids.npy").write_bytes(b"\x93NUM"), "not an npy file"),
    "out of order": (lambda m, c: _change_ids(m, [0, 7], [7, 0]), "captions do not come 5 to an image"),
    "one id twice": (lambda m, c: _change_ids(m, [1], [0]), "caption id occurs twice"),
    "json": (lambda m, c: m.write("original_caption_to_image.json", "{"), "not valid JSON"),
    "list": (lambda m, c: m.write("original_caption_to_image.json", "[1]"), "list of 1; allowed: an object"),
    "value": (lambda m, c: m.write("original_caption_to_image.json", {"1": 2}), "'1': .*given: 2; .*list"),
    "key": (lambda m, c: m.write("original_caption_to_image.json", {"one": [2]}), "'one': .*a valid integer"),
    "text": (lambda m, c: m.write("original_caption_to_image.json", {"1": ["x"]}), "'1.0': .*'x'; .*integer"),
    "owner": (
        lambda m, c: m.write("original_caption_to_image.json", {str(m.captions[0][0]): [m.images[0]]}),
        "a caption does not have one image",
    ),
    "missing texts": (
        lambda m, c: m.write("annotations/captions_val2014.json", {**c, "annotations": c["annotations"][3:]}),
        r"3 of the 20 captions of COCO's test half are not in this file; given: no caption \d+; they are in",
    ),
}


@pytest.mark.parametrize("what", BROKEN)
def test_broken_folders(half, read_free, captions_of, what):
    made = half()
    spoil, message = BROKEN[what]
    spoil(made, captions_of(made))
    refuses(message, read_free, "coco-5k", made.folder)


def test_without_the_package(monkeypatch, half, read_free):
    monkeypatch.setitem(sys.modules, "eccv_caption", None)
    refuses(r"pip install 'counterfoil\[eccv\]'", read_free, "coco-5k", None, error=MissingExtraError)
    made = half()
    _check(read_free("coco-5k", made.folder), made)


def test_the_real_test_half(real):
    """5,000 images, 25,000 captions; the first image and its captions as FORMATS 4.1 gives them."""
    five, one = real("coco-5k"), real("coco-1k")
    assert len(five) == 30_000
    assert [c.id for c in five.captions[:5]] == ["770337", "771687", "772707", "776154", "781998"]
    assert five.images[0].id == "391895"
    assert np.array_equal(five.gallery.owners, np.arange(25_000) // 5)
    assert np.bincount(one.gallery.image_parts).tolist() == [1000] * 5
    assert five.digest != one.digest
    assert [i.id for i in five.images] == [i.id for i in one.images]


@pytest.mark.parametrize(
    ("name", "more"),
    [("coco-5k", ""), ("eccv", ", eccv_caption, eccv_image_to_caption.json, eccv_caption_to_image.json")],
)
def test_the_package_holds_the_same(real, name, more):
    pytest.importorskip("eccv_caption", reason="pip install '.[eccv]'")
    result = real(name, None)
    assert (result.digest, result.source) == (real(name).digest, f"eccv_caption, coco_test_ids.npy{more}")


def test_captions_files(half, captions_of):
    """Two files are one gallery; captions stand by image; one image has no captions."""
    first, second = half(2, "a"), half(3, "b")
    shifted = captions_of(second)
    for image in shifted["images"]:
        image["id"] += 100_000
    for item in shifted["annotations"]:
        item["id"] += 100_000
        item["image_id"] += 100_000
    shifted["images"].append({"id": 7, "file_name": "lonely.jpg"})
    first.write("annotations/captions_train2017.json", captions_of(first))
    first.write("annotations/captions_val2017.json", shifted)
    photo = first.write("images/val2017/lonely.jpg", "pixels")
    result = coco.read_files(card("coco-captions"), first.folder, None)
    assert (len(result.images), len(result.captions)) == (2 + 3 + 1, 25)
    assert result.images[-1].source == FileSource(photo)
    assert (np.diff(result.gallery.owners) >= 0).all()
    right = _right(result)
    assert right["i2t/7"] == []
    assert result.gallery.defined.sum() == len(result) - 1
    for image, own in zip(first.images, first.captions, strict=True):
        assert right[f"i2t/{image}"] == [str(c) for c in sorted(own)]
        assert all(right[f"t2i/{c}"] == [str(image)] for c in own)
    assert result.card.size == 31
    assert result.source.endswith("annotations, captions_train2017.json, captions_val2017.json")


def test_the_same_captions_in_two_files(half, captions_of):
    made = half()
    for year in (2014, 2017):
        made.write(f"annotations/captions_val{year}.json", captions_of(made))
    with pytest.raises(DataError, match=r"image id occurs twice; .* over all files; name one of the files"):
        coco.read_files(card("coco-captions"), made.folder, None)
    result = coco.read_files(card("coco-captions"), made.folder / "annotations/captions_val2014.json", None)
    assert len(result) == 24
    with pytest.raises(DataError, match="no captions file in this folder"):
        coco.read_files(card("coco-captions"), half(2, "other").folder, None)


def test_real_photographs(shared_data):
    result = coco.read_files(card("coco-captions"), shared_data / "coco_mini", None)
    assert (len(result.images), len(result.captions)) == (159, 795)
    assert result.available() is result
    assert result.images[0].decode().mode == "RGB"
    assert np.bincount(result.gallery.owners).tolist() == [5] * 159


def test_some_queries_and_no_transpose(half, read_free):
    made = half()
    images, captions = made.images, made.captions
    made.write("eccv_image_to_caption.json", {str(images[2]): [captions[0][1], 1, captions[2][0]]})
    back = {str(captions[3][0]): [images[3], images[0]], str(captions[0][0]): [images[0]]}
    made.write("eccv_caption_to_image.json", back)
    result = read_free("eccv", made.folder)
    questions = result.gallery
    # Queries in the order of the gallery, whatever that of the files.
    assert result.questions.ids == (f"i2t/{images[2]}", f"t2i/{captions[0][0]}", f"t2i/{captions[3][0]}")
    assert (questions.i2t.queries.tolist(), questions.i2t.positives.items.tolist()) == ([2], [-1, 1, 10])
    assert (questions.i2t.positives.absent.tolist(), questions.t2i.queries.tolist()) == ([1], [0, 15])
    assert questions.t2i.positives.items.tolist() == [0, 0, 3]
    assert (len(result.images), len(result.captions)) == (4, 20)


def test_the_real_files(real):
    """ECCV Table 3, every count of it that COCO, CxC and ECCV Caption have; FORMATS 4.1's two strangers."""
    result = real("eccv")
    questions = result.gallery
    galleries = [real("coco-5k").gallery, real("cxc").gallery, questions]

    def count(search, queries):
        rows = np.searchsorted(search.queries, queries)
        assert np.array_equal(search.queries[rows], queries)
        return len(search.positives.take(rows).items)

    assert [count(g.t2i, questions.t2i.queries) for g in galleries] == [1_332, 1_895, 11_279]
    assert [count(g.i2t, questions.i2t.queries) for g in galleries] == [6_305, 8_906, 22_550]
    lacking = questions.i2t.queries[questions.i2t.positives.absent > 0]
    assert {result.images[i].id for i in lacking.tolist()} == {"575916", "421999"}
    # What the card says of the data: nine image queries lack an own caption, one a positive of CxC.
    right = _sets(questions.i2t)
    for gallery, lacking_queries in zip(galleries, (9, 1), strict=False):
        theirs = _sets(gallery.i2t)
        assert sum(not theirs[image] <= found_ for image, found_ in right.items()) == lacking_queries
    assert (questions.i2t.positives.counts.min(), questions.i2t.positives.counts.max()) == (6, 48)
    assert (questions.t2i.positives.counts.min(), questions.t2i.positives.counts.max()) == (1, 19)


def _sets(search):
    starts, items = search.positives.starts.tolist(), search.positives.items.tolist()
    return {q: set(items[a:b]) for q, (a, b) in zip(search.queries.tolist(), pairwise(starts), strict=True)}


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


def _matches(search, threshold):
    return [np.flatnonzero(row).tolist() for row in (search.positives.distances(slice(None)) <= threshold)]


def test_equal_codes_for_which_instances_alone_are_enough(objects, read_free):
    """By hand: images 0 and 1 match each other; 3 itself; 2 is no query and matches nobody."""
    result = read_free("pmrp", objects.folder)
    questions = result.gallery
    assert (len(result.images), len(result.captions)) == (4, 20)
    assert questions.i2t.queries.tolist() == [0, 1, 3]
    assert questions.t2i.queries.tolist() == [*range(10), *range(15, 20)]
    assert _matches(questions.i2t, 0) == [list(range(10)), list(range(10)), list(range(15, 20))]
    assert _matches(questions.t2i, 0) == [[0, 1]] * 10 + [[3]] * 5
    for search in (questions.i2t, questions.t2i):
        assert (search.positives.thresholds, search.positives.cap) == ((0,), 50)
        assert search.positives.item_codes.shape[1] == 3  # categories 1, 17 and 90 occur
    assert result.source.startswith("COCO's test half: ")
    assert result.source.endswith("instances_val2014.json")
    # The rows of a smaller search are its queries'.
    assert _matches(questions.select(np.array([2, 3])).i2t, 0) == [list(range(15, 20))]
    # Without captions there are no texts; what is right is the same.
    (objects.folder / "annotations" / "captions_val2014.json").unlink()
    result = read_free("pmrp", objects.folder)
    assert not result.captions_at_hand
    assert _matches(result.gallery.t2i, 0) == _matches(questions.t2i, 0)


def test_the_original_protocol(objects, read_free):
    """Image 2 is out: positions move up. 0 and 1 differ from 3 in one class, so threshold 1 has all three."""
    result = read_free("pmrp-original", objects.folder)
    questions = result.gallery
    assert [image.id for image in result.images] == [str(objects.images[i]) for i in (0, 1, 3)]
    assert [c.id for c in result.captions] == [str(c) for i in (0, 1, 3) for c in objects.captions[i]]
    assert questions.owners.tolist() == [i for i in range(3) for _ in range(5)]
    assert (questions.i2t.positives.thresholds, questions.i2t.positives.cap) == ((0, 1, 2), None)
    assert _matches(questions.i2t, 0) == [list(range(10)), list(range(10)), list(range(10, 15))]
    assert _matches(questions.i2t, 1) == [list(range(15))] * 3
    assert _matches(questions.t2i, 0) == [[0, 1]] * 10 + [[2]] * 5
    assert len(result) == 18


def test_parts_are_cut_before_images_are_left_out(half, read_free, captions_of, monkeypatch):
    """Six images in parts of three, the first without an object: two and three are left."""
    monkeypatch.setattr(coco, "PART", 3)
    made = half(6)
    made.write("annotations/captions_val2014.json", captions_of(made))
    made.write("annotations/instances_val2014.json", _instances(made, [[]] + [[3]] * 5))
    questions = read_free("pmrp-original-1k", made.folder).gallery
    assert np.bincount(questions.image_parts).tolist() == [2, 3]
    assert np.bincount(questions.caption_parts).tolist() == [10, 15]
    assert np.array_equal(questions.caption_parts, questions.image_parts[questions.owners])


def test_captions_files_that_do_not_hold_the_test_half(half, captions_of, read_free):
    made = half()
    made.write("annotations/captions_mine.json", captions_of(made))
    np.save(made.folder / "coco_test_ids.npy", np.array(made.captions[0]) + 1)
    made.write("original_caption_to_image.json", {str(c + 1): [made.images[0]] for c in made.captions[0]})
    refuses("5 of the 5 captions of COCO's test half are not in this file", read_free, "pmrp", made.folder)


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
    for item in (read, coco.read_pmrp_original):
        refuses("no image has", item, free("pmrp"), objects.folder, None)
    path.unlink()
    refuses("no instances here, which say what objects an image shows", read_free, "pmrp", objects.folder)


def test_real_instances(shared_data):
    """Two images of coco_mini are at the distance of their sets of categories, by Python's own sets."""
    shown = {}
    for split in ("train2017", "val2017"):
        path = shared_data / "coco_mini" / "annotations" / f"instances_{split}.json"
        value = json.loads(path.read_text())
        for image in value["images"]:
            shown.setdefault(str(image["id"]), set())
        for item in value["annotations"]:
            shown[str(item["image_id"])].add(item["category_id"])
    files = sorted((shared_data / "coco_mini" / "annotations").glob("instances_*.json"))
    codes = read_codes(files, np.array([int(image) for image in shown]))
    assert len(codes) == len(shown) >= 159
    for code, mine in list(zip(codes, shown.values(), strict=True))[::37]:
        assert (codes ^ code).sum(axis=1).tolist() == [len(mine ^ other) for other in shown.values()]


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


def _check_ratings(found):
    """By hand: items 0 to 3 and 0 to 19; caption 13 has nothing right, caption 0 has images 0 and 1."""
    questions = found.gallery
    assert questions.t2i.positives.items.tolist() == [0, 1, *[0] * 4, *[1] * 5, *[2] * 4, *[3] * 5]
    assert np.flatnonzero(~questions.t2i.defined).tolist() == [13]
    assert questions.i2t.positives.counts.tolist() == [5, 6, 4, 5]
    right = [*range(5), 0, *range(5, 10), *(10, 11, 12, 14), *range(15, 20)]
    assert questions.i2t.positives.items.tolist() == right


def test_files_of_positives_and_two_that_do_not_agree(rated, read_free):
    result = read_free("cxc", rated.folder)
    _check_ratings(result)
    assert result.source.endswith("cxc_image_to_caption.json, cxc_caption_to_image.json")
    assert len(result) == 24  # all are queries, one of them without a right answer
    forth = json.loads((rated.folder / "cxc_caption_to_image.json").read_text())
    forth[str(rated.captions[0][0])] = [rated.images[0]]
    rated.write("cxc_caption_to_image.json", forth)
    refuses("the two directions do not agree", read_free, "cxc", rated.folder)


def test_table_alone(rated, read_free, monkeypatch):
    monkeypatch.setitem(sys.modules, "eccv_caption", None)
    for file in rated.folder.glob("cxc_*.json"):
        file.unlink()
    _check_ratings(read_free("cxc", rated.folder))
    (rated.folder / "sits_test.csv").unlink()
    refuses("eccv", read_free, "cxc", rated.folder, error=MissingExtraError)


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


def test_the_real_pairs(real):
    """35,585 pairs over 24,972 captions."""
    result = real("cxc")
    questions = result.gallery
    assert len(questions.i2t.positives.items) == len(questions.t2i.positives.items) == 35_585
    assert int(questions.t2i.defined.sum()) == 24_972
    i = [caption.id for caption in result.captions].index("620511")
    assert questions.t2i.positives.take(np.array([i])).items.tolist() != [questions.owners[i]]


def test_ratings_of_the_validation_half(shared_data):
    folder = shared_data / "cxc"
    benchmark = coco.read_ratings(card("cxc-sits"), folder, shared_data / "coco_mini" / "images")
    asked = benchmark.judged
    with open(folder / "sits_val.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(benchmark) == len(rows) == 44_722
    assert asked.ratings[:, 0].tolist() == [float(row["agg_score"]) for row in rows]
    for i in range(0, len(rows), 997):
        caption = benchmark.captions[asked.captions[i]].id
        image = benchmark.images[asked.images[i]].id
        assert rows[i]["caption"] == f"COCO_val2014:sentid:{caption}"
        assert rows[i]["image"] == f"COCO_val2014_{int(image):012d}.jpg"
        assert asked.ids[i] == f"{caption}-{image}"
    assert asked.groupings["sampling"].count("c2i_original") == 25_000
    assert asked.references is None
    assert not benchmark.captions_at_hand
    assert sum(image.source is not None for image in benchmark.images) == 21
    assert benchmark.card.title == "CrissCrossed Captions, SITS (sits_val.csv)"
    assert "without texts: COCO's captions are not in the folder" in benchmark.source
    assert len(np.unique(benchmark.clusters)) == 5000


@pytest.fixture
def sits(tmp_path, coco_captions):
    """Two images with two captions each, ids 0 to 3 in the order of the file."""
    rows = [_row(3, 7, 0.5, "c2i_intrasim"), _row(0, 42, 4.75), _row(3, 42, 5, "c2i_intrasim")]
    (tmp_path / "sits_val.csv").write_text("\n".join([HEADER, *rows]))
    coco_captions(tmp_path, {42: [" a  cat ", "a dog"], 7: ["a car", "a bus\n"]})
    return tmp_path


def test_texts_of_coco(sits, read_free, karpathy):
    benchmark = read_free("cxc-sits", sits)
    asked = benchmark.judged
    assert asked.ids == ("3-7", "0-42", "3-42")
    assert [benchmark.captions[i].text for i in asked.captions] == ["a bus", "a cat", "a bus"]
    assert [benchmark.images[i].id for i in asked.images] == ["7", "42", "42"]
    assert asked.ratings.tolist() == [[0.5], [4.75], [5.0]]
    assert benchmark.captions_at_hand
    # Karpathy's file has the same captions, in every split.
    (sits / "captions_val2014.json").unlink()
    karpathy(sits, {(42, "restval"): ["a cat", "a dog"], (7, "test"): ["a car", "a bus"]})
    assert read_free("cxc-sits", sits / "sits_val.csv").digest == benchmark.digest
    karpathy(sits, {(42, "restval"): ["a cat", "a dog"]})
    refuses("1 of the 2 rated captions are not in this file", read_free, "cxc-sits", sits)


def test_the_test_half_goes_first_and_is_counted(sits):
    (sits / "sits_test.csv").write_text("\n".join([HEADER, _row(1, 7, 2, "c2i_intrasim")]))
    with pytest.raises(DataError, match=r"SITS has in group 'c2i_original'; given: 0; allowed: 25,000"):
        coco.read_ratings(card("cxc-sits"), sits, None)
    assert len(coco.read_ratings(card("cxc-sits"), sits / "sits_val.csv", None)) == 3


def test_a_lone_table_is_a_gallery_of_what_it_names(tmp_path, read_free):
    """First the pairs that belong together, in the order of the table; caption 3 is no image's own."""
    table = tmp_path / "sits_val.csv"
    rows = [_row(3, 7, 3, "c2i_intrasim"), _row(1, 42, 2.9), _row(0, 7, 5), _row(1, 7, 4, "c2i_intrasim")]
    table.write_text("\n".join([HEADER, *rows]))
    lone = read_free("cxc", tmp_path)
    assert [item.id for item in (*lone.captions, *lone.images)] == ["1", "0", "3", "42", "7"]
    assert lone.gallery.owners.tolist() == [0, 1, -1]
    assert lone.gallery.t2i.positives.items.tolist() == [1, 1, 1]
    title = "CrissCrossed Captions (sits_val.csv)"
    assert (lone.card.title, read_free("cxc", table).digest) == (title, lone.digest)
    table.write_text("\n".join([HEADER, *rows, rows[2]]))
    refuses("a caption has two rows 'c2i_original'", read_free, "cxc", tmp_path)


def test_no_ratings_and_nothing_of_coco(tmp_path, read_free):
    refuses(r"no ratings here; allowed: sits_test\.csv or sits_val\.csv", read_free, "cxc-sits", tmp_path)
    refuses("nothing of COCO here", read_free, "coco-5k", tmp_path)
