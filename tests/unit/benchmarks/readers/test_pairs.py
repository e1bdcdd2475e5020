"""A user's own pairs."""

import re

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import own
from counterfoil.engine.deduplicate import check_at_hand
from refusals import refuses

PAIRS = card("pairs")


@pytest.fixture
def folder(tmp_path, jpeg):
    for n in range(3):
        (tmp_path / f"{n}.jpg").write_bytes(jpeg(n))
    return tmp_path


def _csv(path, *rows):
    path.write_text("\n".join(rows) + "\n")
    return path


def test_choices(folder, jpeg):
    path = _csv(
        folder / "mine.csv",
        "id,image,caption,negative_caption,type,subtype",
        "x,0.jpg,a cat,a dog,replace,obj",
        "y,0.jpg,a mat,a hat,swap,",
    )
    found = own.read_pairs(PAIRS, path, None)
    assert found.questions.ids == ("x", "y")
    assert [image.id for image in found.images] == ["0.jpg"]  # one image, two questions, one cluster
    assert found.images[0].read() == jpeg(0)
    np.testing.assert_array_equal(found.clusters, [0, 0])
    assert found.questions.groupings == {"type": ("replace", "swap"), "subset": ("replace_obj", "swap")}
    assert (found.card.form, found.card.size, found.card.title) == ("choice", 2, "mine")
    assert found.card.measures == ("accuracy",)


def test_quads(folder):
    path = _csv(
        folder / "mine.tsv",
        "image\tcaption\tnegative_image\tnegative_caption",
        "0.jpg\ta cat\t1.jpg\ta dog",
        "1.jpg\ta mat\t2.jpg\ta hat",
    )
    found = own.read_pairs(PAIRS, path, None)
    assert found.questions.ids == ("0", "1")
    np.testing.assert_array_equal(found.questions.images, [[0, 1], [1, 2]])  # 1.jpg is one item
    assert found.card.form == "quad"
    assert found.card.measures[0] == "group"


def test_a_replaced_parquet_file_is_read_anew(tmp_path, jpeg, hub_parquet):
    columns = {"image": [jpeg(1)], "caption": ["a"], "negative_caption": ["b"]}
    first = own.read_pairs(PAIRS, hub_parquet(tmp_path / "a.parquet", columns), None)
    assert first.images[0].read() == jpeg(1)
    second = own.read_pairs(PAIRS, hub_parquet(tmp_path / "a.parquet", {**columns, "image": [jpeg(2)]}), None)
    assert second.images[0].read() == jpeg(2)


def test_image_folder(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("tables")
    path = _csv(elsewhere / "a.csv", "image,caption,negative_caption", "2.jpg,a,b")
    assert own.read_pairs(PAIRS, path, folder).images_at_hand
    assert not own.read_pairs(PAIRS, path, None).images_at_hand


def test_captions_alone_are_asked_of_scorers_that_see_no_image(folder):
    path = _csv(folder / "mine.csv", "picture,caption,negative_caption", "0.jpg,a,b", "0.jpg,a,c")
    found = own.read_pairs(PAIRS, path, None)
    assert len(found) == 2
    refuses(r"images are not at hand; .*\(.*mine.csv has no column 'image'\)", check_at_hand, found)


def test_an_error_says_where_an_image_was_looked_for(folder):
    path = _csv(folder / "mine.csv", "image,caption,negative_caption", "0.jpg,a,b", "gone.jpg,c,d")
    found = own.read_pairs(PAIRS, path, folder)
    where = re.escape(str(folder / "gone.jpg"))
    refuses(rf"first: gone\.jpg \(looked for {where}\)", check_at_hand, found)
    refuses(rf"'gone\.jpg' is not at hand; given: looked for {where}", found.images[1].read)


def test_names_and_separators_of_other_programs(folder):
    path = _csv(folder / "mine.csv", "Filename;Caption;Foil", "0.jpg;a cat, black;a dog", "1.jpg;b;c")
    found = own.read_pairs(PAIRS, path, None)
    assert [image.id for image in found.images] == ["0.jpg", "1.jpg"]
    assert found.images[0].source is not None
    assert [caption.text for caption in found.captions] == ["a cat, black", "a dog", "b", "c"]
    path = _csv(folder / "mine.csv", "image,Image,caption,negative_caption", "0.jpg,1.jpg,a,b")
    refuses("two columns differ in capitals alone; given: image, Image", own.read_pairs, PAIRS, path, None)


def test_a_folder_with_a_file_per_subset(folder, tmp_path_factory):
    data = tmp_path_factory.mktemp("sets")
    for name in ("swap", "add"):
        (data / f"{name}.json").write_text(
            '{"0": {"filename": "0.jpg", "caption": "a cat", "negative_caption": "a dog"}}'
        )
    found = own.read_pairs(PAIRS, data, folder)
    assert found.questions.ids == ("add/0", "swap/0")
    assert found.questions.groupings["subset"] == ("add", "swap")
    assert [image.id for image in found.images] == ["0.jpg"]


def test_data_must_be_given():
    refuses("--data", own.read_pairs, PAIRS, None, None)
