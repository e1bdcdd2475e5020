"""A user's own ratings, and preferences, of captions."""

import json

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import own
from judged_rows import judged_rows
from refusals import refuses

RATINGS, VOTES = card("ratings"), card("preferences")
PAIR = "image,caption_a,caption_b"


@pytest.fixture
def folder(tmp_path, jpeg):
    for name in "ab":
        (tmp_path / f"{name}.jpg").write_bytes(jpeg(ord(name)))
    return tmp_path


def written(folder, *rows):
    path = folder / "mine.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_ratings_of_several_people(folder):
    path = written(
        folder,
        "Image,Caption,rating_1,rating_2,reference_1,reference_2,type",
        "a.jpg,a  cat,4,3,the cat,a cat sits,x",
        "a.jpg,a dog,1,,the cat,,y",
        "b.jpg,a cat,2,2,a bus,,x",
        "b.jpg,nobody rated it,,,a bus,,x",
    )
    found = own.read_ratings(RATINGS, path, None)
    questions = found.judged
    assert found.card.title == "mine"
    np.testing.assert_array_equal(questions.ratings, [[4, 3], [1, np.nan], [2, 2]])
    assert judged_rows(found) == [
        ("0", "a.jpg", "a cat", ["the cat", "a cat sits"]),
        ("1", "a.jpg", "a dog", ["the cat"]),
        ("2", "b.jpg", "a cat", ["a bus"]),
    ]
    assert all(image.source is not None for image in found.images)
    assert questions.groupings["type"] == ("x", "y", "x")
    assert "1 rows without a rating left out" in found.source


def test_images_by_their_whole_path_and_references_as_lists(folder, tmp_path_factory):
    rows = [{"image": str(folder / "a.jpg"), "caption": "a cat", "rating": 3, "references": ["x", "y"]}]
    path = tmp_path_factory.mktemp("elsewhere") / "mine.json"
    path.write_text(json.dumps(rows))
    # Whole paths lie in the folder of images; beside the table they do not.
    refuses("an image outside of the folder of images", own.read_ratings, RATINGS, path, None)
    found = own.read_ratings(RATINGS, path, folder)
    assert found.images[0].source is not None
    assert found.judged.references.counts.tolist() == [2]


def test_votes_and_choices(folder):
    path = written(
        folder,
        "id,image,caption_a,caption_b,votes_a,votes_b",
        "p,a.jpg,a cat,a dog,5,2",
        "q,b.jpg,a bus,a cat,0,1",
    )
    questions = own.read_preferences(VOTES, path, None).judged
    assert questions.ids == ("p", "q")
    assert questions.label.tolist() == [0, 1]
    assert questions.votes.tolist() == [[5, 2], [0, 1]]
    path = written(folder, "image,caption_a,caption_b,preferred", "a.jpg,a cat,a dog,B")
    assert own.read_preferences(VOTES, path, None).judged.label.tolist() == [1]
