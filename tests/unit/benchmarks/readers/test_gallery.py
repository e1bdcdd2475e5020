"""A gallery of one's own, from tables of every kind."""

import json

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import own
from counterfoil.benchmarks.records import FileSource
from counterfoil.errors import DataError

#: image, caption, relevance: b.jpg is right for "a dog" by half; c.jpg and "a fish" are in the gallery only.
ROWS = (
    ("a.jpg", "a dog", 1.0),
    ("b.jpg", "a cat", 1.0),
    ("b.jpg", "a dog", 0.5),
    ("a.jpg", "an animal", 0.25),
    ("c.jpg", "a fish", 0.0),
)


def _write(folder, kind):
    path = folder / f"mine.{kind}"
    names = ("image", "caption", "relevance")
    if kind in ("csv", "tsv"):
        mark = "," if kind == "csv" else "\t"
        path.write_text("\n".join(mark.join(str(cell) for cell in row) for row in (names, *ROWS)))
    elif kind == "parquet":
        pq.write_table(pa.table(dict(zip(names, zip(*ROWS, strict=True), strict=True))), path)
    else:
        objects = [dict(zip(names, row, strict=True)) for row in ROWS]
        lines = "\n".join(json.dumps(each) for each in objects)
        path.write_text(json.dumps(objects) if kind == "json" else lines)
    return path


def _check(found):
    questions = found.gallery
    assert [image.id for image in found.images] == ["a.jpg", "b.jpg", "c.jpg"]
    assert [caption.text for caption in found.captions] == ["a dog", "a cat", "an animal", "a fish"]
    assert questions.ids == ("i2t/a.jpg", "i2t/b.jpg", "i2t/c.jpg", "t2i/c0", "t2i/c1", "t2i/c2", "t2i/c3")
    i2t, t2i = questions.i2t.positives, questions.t2i.positives
    assert (i2t.starts.tolist(), i2t.items.tolist()) == ([0, 2, 4, 4], [0, 2, 0, 1])
    assert i2t.gains.tolist() == [1.0, 0.25, 0.5, 1.0]
    assert (t2i.starts.tolist(), t2i.items.tolist()) == ([0, 2, 3, 4, 4], [0, 1, 1, 0])
    assert t2i.gains.tolist() == [1.0, 0.5, 1.0, 0.25]
    # "a dog" has two right images, "a fish" none: its owner is unknown.
    assert questions.owners.tolist() == [-1, 1, 0, -1]
    assert questions.defined.tolist() == [True, True, False, True, True, True, False]
    # Images a and b with "an animal" and "a cat"; each of the others by itself.
    assert found.clusters.tolist() == [0, 1, 2, 3, 1, 0, 4]


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "parquet"])
def test_every_kind_of_table(tmp_path, kind):
    path = _write(tmp_path, kind)
    (tmp_path / "b.jpg").write_bytes(b"pixels")
    found = own.read_gallery(card("gallery"), path, None)
    _check(found)
    assert [image.source for image in found.images] == [None, FileSource(tmp_path / "b.jpg"), None]
    assert (found.card.title, found.card.size) == ("mine", 7)


def test_without_relevance_all_rows_are_right(tmp_path):
    path = tmp_path / "mine.csv"
    path.write_text("image,caption\na.jpg,a dog\na.jpg,a cat\nb.jpg,a dog")
    found = own.read_gallery(card("gallery"), path, None).gallery
    assert found.i2t.positives.items.tolist() == [0, 1, 0]
    assert found.i2t.positives.gains.tolist() == [1.0, 1.0, 1.0]
    assert found.owners.tolist() == [-1, 0]


def test_ids_and_owners(tmp_path):
    """Equal texts under two ids are two captions; `written_for` may name an image that is wrong."""
    path = tmp_path / "mine.csv"
    path.write_text(
        "image,image_id,caption,caption_id,relevance,written_for\n"
        "x/a.jpg,1,a dog,10,1,1\n"
        "x/b.jpg,2,a dog,11,1,\n"
        "x/b.jpg,2,a cat,12,0.5,1\n"
        "x/a.jpg,1,a cat,12,0,1\n"
    )
    found = own.read_gallery(card("gallery"), path, None)
    assert [image.id for image in found.images] == ["1", "2"]
    captions = {caption.id: caption.text for caption in found.captions}
    assert list(captions.items()) == [("10", "a dog"), ("11", "a dog"), ("12", "a cat")]
    assert found.gallery.owners.tolist() == [0, -1, 0]
    assert found.gallery.t2i.positives.items.tolist() == [0, 1, 1]


def test_bytes_in_cells(tmp_path, jpeg):
    path = tmp_path / "mine.parquet"
    images = [jpeg(1), jpeg(2), jpeg(1)]
    columns = {"image": images, "image_id": ["one", "two", "one"], "caption": ["a", "b", "c"]}
    pq.write_table(pa.table(columns), path)
    found = own.read_gallery(card("gallery"), path, None)
    assert [image.read() for image in found.images] == images[:2]
    assert found.gallery.owners.tolist() == [0, 1, 0]
    pq.write_table(pa.table({"image": images, "caption": ["a", "b", "c"]}), path)
    with pytest.raises(DataError, match=r"an image without a name; .* with a column 'image_id'"):
        own.read_gallery(card("gallery"), path, None)
