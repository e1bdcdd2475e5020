"""Benchmarks that were saved as training data: questions become rows."""

import numpy as np
import pytest

from counterfoil.benchmarks import (
    Benchmark,
    BytesSource,
    Caption,
    Card,
    Choice,
    Gallery,
    Image,
    Quad,
    RetrievalDirection,
)
from counterfoil.benchmarks.folder import save
from counterfoil.benchmarks.training_files import read
from counterfoil.errors import InputError
from counterfoil.metrics.ranks import Qrels
from refusals import refuses
from role_values import pictures, texts


def _benchmark(questions, jpeg, images, captions):
    return Benchmark(
        card=Card(name="mine", title="Mine", form=questions.form),
        images=tuple(Image(f"i{i}", BytesSource(jpeg(i))) for i in range(images)),
        captions=tuple(Caption(f"c{i}", f"caption {i}") for i in range(captions)),
        questions=questions,
    )


def test_a_saved_quad_gives_all_four_roles(tmp_path, jpeg):
    columns = {"captions": np.array([[0, 1], [2, 3]]), "images": np.array([[1, 0], [2, 3]])}
    quad = Quad(("a", "b"), groupings={"type": ("swap", "add")}, **columns)
    save(_benchmark(quad, jpeg, 4, 4), tmp_path / "quads")
    data = read(tmp_path / "quads")
    assert texts(data, "caption") == ["caption 0", "caption 2"]
    assert texts(data, "negative_caption") == ["caption 1", "caption 3"]
    assert pictures(data, "image") == [jpeg(1), jpeg(2)]
    assert pictures(data, "negative_image") == [jpeg(0), jpeg(3)]
    assert data.groupings == {"type": ("swap", "add")}
    with pytest.raises(InputError, match="has no splits; given: validation"):
        read(tmp_path / "quads", split="validation")


def test_a_saved_choice_gives_every_right_with_every_wrong_candidate(tmp_path, jpeg):
    candidates = np.array([[0, 1, 2, 3], [4, 5, 6, 7]])
    choice = Choice(("a", "b"), query=np.array([1, 0]), candidates=candidates, correct=2)
    save(_benchmark(choice, jpeg, 2, 8), tmp_path / "choices")
    data = read(tmp_path / "choices")
    expected = [
        (query, right, wrong)
        for query, row in zip((1, 0), candidates.tolist(), strict=True)
        for right in row[:2]
        for wrong in row[2:]
    ]
    found = zip(*(data.rows[role].tolist() for role in ("image", "caption", "negative_caption")), strict=True)
    assert list(found) == expected
    assert "negative_image" not in data.rows


def test_a_choice_among_images_gives_negative_images(tmp_path, jpeg):
    choice = Choice(("a",), query=np.array([0]), candidates=np.array([[2, 0]]), asks="caption")
    save(_benchmark(choice, jpeg, 3, 1), tmp_path / "choices")
    data = read(tmp_path / "choices")
    assert pictures(data, "image") == [jpeg(2)]
    assert pictures(data, "negative_image") == [jpeg(0)]
    assert set(data.rows) == {"image", "caption", "negative_image"}


@pytest.mark.parametrize("owned", [True, False])
def test_a_saved_gallery_gives_images_with_their_captions(tmp_path, jpeg, owned):
    # Caption 0 was written for image 1 and fits image 0 too, of which nobody says so where it is owned.
    gallery = Gallery(
        ("i2t/i0", "i2t/i1", "t2i/c0", "t2i/c1"),
        i2t=RetrievalDirection(np.array([0, 1]), Qrels.of([[0], [0, 1]])),
        t2i=RetrievalDirection(np.array([0, 1]), Qrels.of([[0, 1], [1]], [[1.0, 1.0], [0.5]])),
        owners=np.array([1, 1]) if owned else np.array([-1, -1]),
        n_images=2,
    )
    save(_benchmark(gallery, jpeg, 2, 2), tmp_path / "gallery")
    data = read(tmp_path / "gallery")
    pairs = list(zip(data.rows["image"].tolist(), data.rows["caption"].tolist(), strict=True))
    # Without owners: full matches only, and caption 1 matches in part.
    assert pairs == ([(1, 0), (1, 1)] if owned else [(0, 0), (1, 0)])


def test_a_benchmark_without_pictures_teaches_nothing(tmp_path, jpeg):
    choice = Choice(("a",), query=np.array([0]), candidates=np.array([[0, 1]]))
    benchmark = Benchmark(
        card=Card(name="mine", title="Mine", form="choice"),
        images=(Image("lost.jpg"),),
        captions=(Caption("a", "a"), Caption("b", "b")),
        questions=choice,
    )
    save(benchmark, tmp_path / "choices")
    refuses(r"1 of 1 rows have no image at hand; given: image 'lost.jpg'", read, tmp_path / "choices")
    kept = read(tmp_path / "choices", missing="keep")
    refuses(r"image 'lost.jpg' is not at hand", kept.images[0].decode)
