"""CxC's ratings of captions and images: the real ones, and small ones with texts."""

import csv
import json
from collections.abc import Callable

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import Card, card
from counterfoil.benchmarks.readers.cxc import read_ratings
from counterfoil.errors import DataError

Free = Callable[[str], Card]

HEADER = "caption,image,agg_score,sampling_method\n"


def _row(caption, image, score, how="c2i_intrasim"):
    return f"COCO_val2014:sentid:{caption},COCO_val2014_{image:012d}.jpg,{score},{how}\n"


def test_the_validation_half(shared_data):
    folder = shared_data / "cxc"
    benchmark = read_ratings(card("cxc-sits"), folder, shared_data / "coco_mini" / "images")
    asked = benchmark.judged
    with open(folder / "sits_val.csv", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(benchmark) == len(rows) == 44_722
    assert asked.ratings[:, 0].tolist() == [float(row["agg_score"]) for row in rows]
    for at in range(0, len(rows), 997):
        caption = benchmark.captions[asked.captions[at]].id
        image = benchmark.images[asked.images[at]].id
        assert rows[at]["caption"] == f"COCO_val2014:sentid:{caption}"
        assert rows[at]["image"] == f"COCO_val2014_{int(image):012d}.jpg"
        assert asked.ids[at] == f"{caption}-{image}"
    assert asked.groupings["sampling"].count("c2i_original") == 25_000
    assert asked.references is None
    assert not benchmark.captions_at_hand
    assert sum(image.source is not None for image in benchmark.images) == 21
    assert benchmark.card.title == "CrissCrossed Captions, SITS (sits_val.csv)"
    assert "without texts: COCO's captions are not in the folder" in benchmark.source
    assert len(np.unique(benchmark.clusters)) == 5000


@pytest.fixture
def folder(tmp_path, coco_captions):
    """Two images with two captions each, ids 0 to 3 in the order of the file."""
    (tmp_path / "sits_val.csv").write_text(
        HEADER + _row(3, 7, 0.5) + _row(0, 42, 4.75, "c2i_original") + _row(3, 42, 5)
    )
    coco_captions(tmp_path, {42: [" a  cat ", "a dog"], 7: ["a car", "a bus\n"]})
    return tmp_path


def test_texts_of_coco(folder, free):
    benchmark = read_ratings(free("cxc-sits"), folder, None)
    asked = benchmark.judged
    assert asked.ids == ("3-7", "0-42", "3-42")
    assert [benchmark.captions[at].text for at in asked.captions] == ["a bus", "a cat", "a bus"]
    assert [benchmark.images[at].id for at in asked.images] == ["7", "42", "42"]
    assert asked.ratings.tolist() == [[0.5], [4.75], [5.0]]
    assert benchmark.captions_at_hand
    # Karpathy's file has the same captions, in every split.
    (folder / "captions_val2014.json").unlink()
    images = [
        {"cocoid": image, "split": split, "sentences": [{"sentid": at, "raw": text}]}
        for image, split, at, text in ((42, "restval", 0, "a cat"), (7, "test", 3, "a bus"))
    ]
    (folder / "dataset_coco.json").write_text(json.dumps({"images": images}))
    assert read_ratings(free("cxc-sits"), folder / "sits_val.csv", None).digest == benchmark.digest
    images.pop()
    (folder / "dataset_coco.json").write_text(json.dumps({"images": images}))
    with pytest.raises(DataError, match="1 of the 2 rated captions are not in this file"):
        read_ratings(free("cxc-sits"), folder, None)


def test_the_test_half_goes_first_and_is_counted(folder):
    (folder / "sits_test.csv").write_text(HEADER + _row(1, 7, 2))
    with pytest.raises(DataError, match=r"SITS has in group 'c2i_original'; given: 0; allowed: 25,000"):
        read_ratings(card("cxc-sits"), folder, None)
    assert len(read_ratings(card("cxc-sits"), folder / "sits_val.csv", None)) == 3


def test_no_ratings(tmp_path, free):
    with pytest.raises(DataError, match=r"no ratings here; allowed: sits_test\.csv or sits_val\.csv"):
        read_ratings(free("cxc-sits"), tmp_path, None)
