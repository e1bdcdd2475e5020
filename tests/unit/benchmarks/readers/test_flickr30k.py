"""Flickr30k in its three layouts."""

import csv
import json

import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read
from counterfoil.benchmarks.records import FileSource
from counterfoil.errors import DataError
from refusals import refuses

#: (split, file, [(id, text), ...])
RELEASED = (
    ("train", "1.jpg", [(0, "a")]),
    ("test", "2.jpg", [(1, 'a "dog", running'), (2, "a dog")]),
    ("test", "3.jpg", [(3, "ein Hündchen"), (4, "a cat")]),
)


def _json(path):
    images = [
        {
            "split": split,
            "filename": name,
            "imgid": 7,
            "sentences": [{"sentid": i, "raw": t} for i, t in said],
        }
        for split, name, said in RELEASED
    ]
    path.write_text(json.dumps({"images": images, "dataset": "flickr30k"}))
    return path


def _csv(path):
    with open(path, "w", newline="", encoding="utf-8") as file:
        rows = csv.writer(file)
        rows.writerow(["raw", "sentids", "split", "filename", "img_id"])
        for row, (split, name, said) in enumerate(RELEASED):
            rows.writerow(
                [json.dumps([t for _, t in said]), json.dumps([i for i, _ in said]), split, name, row]
            )
    return path


def _check(found, ids):
    assert [image.id for image in found.images] == ["2.jpg", "3.jpg"]
    assert [caption.id for caption in found.captions] == ids
    assert [caption.text for caption in found.captions] == [t for _, _, said in RELEASED[1:] for _, t in said]
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
    lines = [f"{name}#{k}\t{text}" for _, name, said in RELEASED[1:] for k, (_, text) in enumerate(said)]
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
