"""Composite, from tables as the survey of the workers left them."""

import numpy as np
import pytest

from judged_rows import judged_rows
from refusals import refuses

TEXTS = {"8k": 3, "30k": 4, "coco": 4}
SITE = "http://example.org/images/"


def _table(name, rows, junk=2):
    """27 columns about the worker, the address, the texts, the ratings; `;` between, quotes around."""
    k = TEXTS[name]
    header = [f"Worker{at}" for at in range(27)] + ["Input.image_url"]
    header += [f"Input.text{at + 1}" for at in range(k)] + [f"Answer.Q{at + 1}Answer" for at in range(k)]
    lines = [header]
    for image, texts, ratings in rows:
        lines.append([*["x"] * 27, SITE + image, *texts, *map(str, ratings)])
    lines += [["", "total", *[""] * (26 + 2 * k)]] * junk
    return "".join(";".join(f'"{cell}"' for cell in line) + "\n" for line in lines)


@pytest.fixture
def folder(tmp_path):
    """An image of each source, and one more of COCO whose first candidate is no reference to the letter."""
    rows_of = {
        "8k": [("1_a.jpg", ["A  dog .", "a cat", "two; dogs"], [5, 1, 2])],
        "30k": [("22.jpg", ["a man", "a man", "men", "unused"], [4, 4, 3, 1])],
        "coco": [
            ("COCO_val2014_000000000042.jpg", ["one bus", "a bus", "a car", "unused"], [5, 4, 1, 1]),
            ("COCO_val2014_000000000007.jpg", ["the tall tree.", "tree", "a", "unused"], [3, 3, 2, 1]),
        ],
    }
    for name, rows in rows_of.items():
        for scale in ("correctness", "throughness"):
            (tmp_path / f"{name}_{scale}.csv").write_text(_table(name, rows))
    other = [("1_a.jpg", ["A  dog .", "a cat", "two; dogs"], [3, 2, 1])]
    (tmp_path / "8k_throughness.csv").write_text(_table("8k", other))
    (tmp_path / "Flickr8k.token.txt").write_text("1_a.jpg#0\ta dog\n1_a.jpg#1\tA dog .\n1_a.jpg#2\tdogs\n")
    (tmp_path / "results_20130124.token").write_text("22.jpg#0\ta man\n22.jpg#1\ta man\n22.jpg#2\tguy\n")
    return tmp_path


@pytest.fixture
def captioned(folder, coco_captions):
    coco_captions(folder, {42: ["a bus", "one bus", "red"], 7: ["a car", "the tall trees .", "the"]})
    return folder


def _rows(benchmark):
    """(id, image, caption, rating, references) of every question."""
    ratings = benchmark.rated.ratings[:, 0].tolist()
    return [(*row[:3], rating, row[3]) for row, rating in zip(judged_rows(benchmark), ratings, strict=True)]


def test_the_first_three_captions_without_the_reference_that_is_one(captioned, read_free):
    benchmark = read_free("composite", captioned)
    bus, tree = "COCO_val2014_000000000042.jpg", "COCO_val2014_000000000007.jpg"
    assert _rows(benchmark) == [
        ("flickr8k/1/1", "1_a.jpg", "A dog .", 5, ["a dog", "dogs"]),
        ("flickr8k/1/2", "1_a.jpg", "a cat", 1, ["a dog", "dogs"]),
        ("flickr8k/1/3", "1_a.jpg", "two; dogs", 2, ["a dog", "dogs"]),
        # Of two references that are the candidate, the first goes.
        ("flickr30k/1/1", "22.jpg", "a man", 4, ["a man", "guy"]),
        ("flickr30k/1/2", "22.jpg", "a man", 4, ["a man", "guy"]),
        ("flickr30k/1/3", "22.jpg", "men", 3, ["a man", "guy"]),
        # "a bus" stays among the references, though a machine said it too.
        ("coco/1/1", bus, "one bus", 5, ["a bus", "red"]),
        ("coco/1/2", bus, "a bus", 4, ["a bus", "red"]),
        ("coco/1/3", bus, "a car", 1, ["a bus", "red"]),
        # "the tall trees ." is two letters away, the others more.
        ("coco/2/1", tree, "the tall tree.", 3, ["a car", "the"]),
        ("coco/2/2", tree, "tree", 3, ["a car", "the"]),
        ("coco/2/3", tree, "a", 2, ["a car", "the"]),
    ]
    asked = benchmark.judged
    assert asked.groupings["source"] == ("flickr8k",) * 3 + ("flickr30k",) * 3 + ("coco",) * 6
    assert asked.groupings["candidate"][:4] == ("candidate 1", "candidate 2", "candidate 3", "candidate 1")
    assert "6 rows at the end of a file, without an image, left out" in benchmark.source
    assert "4 references nearest to the first candidate taken out" in benchmark.source
    assert np.array_equal(np.unique(benchmark.clusters, return_counts=True)[1], [3, 3, 3, 3])


def test_rows_at_the_end_may_hold_anything_but_an_image(captioned, read_free):
    path = captioned / "8k_correctness.csv"
    before = _rows(read_free("composite", captioned))
    sums = ["x"] * 27 + ["average", "3.1", "2.2", "1.0", "4", "3", "2"]
    path.write_text(path.read_text() + ";".join(sums) + "\n")
    benchmark = read_free("composite", captioned)
    assert _rows(benchmark) == before
    assert "7 rows at the end of a file, without an image" in benchmark.source


def test_throughness_is_another_benchmark(captioned, read_free):
    benchmark = read_free("composite-throughness", captioned)
    assert [row[3] for row in _rows(benchmark)][:3] == [3, 2, 1]
    assert "8k_throughness.csv" in benchmark.source


def test_without_any_captions_there_are_no_references(folder, read_free):
    refuses("no captions of coco here; allowed: Flickr8k", read_free, "composite", folder)
    (folder / "Flickr8k.token.txt").unlink()
    (folder / "results_20130124.token").unlink()
    benchmark = read_free("composite", folder)
    assert benchmark.judged.references is None
    assert "without references: the captions of the images are not in the folder" in benchmark.source
    assert len(benchmark) == 12


def test_photographs_in_the_folders_of_their_releases(captioned, read_free, jpeg):
    for folder, name in (
        ("Flicker8k_Dataset", "1_a.jpg"),
        ("flickr30k-images", "22.jpg"),
        ("val2014", "COCO_val2014_000000000042.jpg"),
    ):
        (captioned / folder).mkdir()
        (captioned / folder / name).write_bytes(jpeg(1))
    for images in (None, captioned):
        benchmark = read_free("composite", captioned, images)
        assert [image.source is not None for image in benchmark.images] == [True, True, True, False]


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (("1_a.jpg", ["x", "y", "z"], [1, "good", 3]), "row 2, column 'rating': a rating is no number"),
        (("1_a.jpg", ["x", " ", "z"], [1, 2, 3]), "row 2, column 'caption': empty text"),
        (("1_a.jpg", ["x", "y", "z"], [1]), "row 2: a row is cut short; given: 32 cells"),
        (("", ["x", "y", "z"], [1, 2, 3]), "row 2: a candidate without an image"),
        (("2_b.jpg", ["x", "y", "z"], [1, 2, 3]), "no references of an image; given: 2_b.jpg"),
    ],
)
def test_rows_that_do_not_fit(captioned, read_free, row, message):
    good = ("1_a.jpg", ["a", "b", "c"], [1, 2, 3])
    (captioned / "8k_correctness.csv").write_text(_table("8k", [good, row, good]))
    refuses(message, read_free, "composite", captioned)


def test_files_that_do_not_fit(captioned, read_free):
    (captioned / "8k_correctness.csv").write_text(_table("8k", []))
    refuses(r"8k_correctness.csv: no rows", read_free, "composite", captioned)
    path = captioned / "coco_correctness.csv"
    path.write_text(path.read_text().replace("COCO_val2014_000000000042", "cat"))
    (captioned / "8k_correctness.csv").write_text(_table("8k", [("1_a.jpg", ["a", "b", "c"], [1, 2, 3])]))
    refuses(r"row 1: no image of COCO; given: cat.jpg", read_free, "composite", captioned)
    path.unlink()
    refuses(r"file missing: coco_correctness.csv", read_free, "composite", captioned)
