"""sDCI: the layout of its files, and its numbers against loops over batches of eight."""

import base64
import io
import json

import numpy as np
import PIL.Image
import pytest

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers.specs import read
from counterfoil.errors import DataError
from counterfoil.evaluation.evaluate import evaluate
from refusals import refuses

#: Left, top, right, bottom of the masks: one is too narrow, one at the edge.
BOXES = [(100, 50, 500, 450), (10, 10, 200, 400), (380, 260, 630, 500)]


def mask_of(size):
    buffer = io.BytesIO()
    PIL.Image.new("1", size).save(buffer, "PNG")
    return base64.b64encode(buffer.getvalue()).decode()


def file(number, *, captions=6):
    """One file: an image of 640 x 512 with three masks, two of which are large enough."""
    masks = {
        str(at): {
            "idx": at,
            "outer_mask": mask_of((640, 512)),
            "mask_quality": 0,
            "label": f"thing {at}",
            "caption": f"a thing {at} of {number}",
            "parent": -1,
            "requirements": [],
            "bounds": {"topLeft": {"x": a, "y": b}, "bottomRight": {"x": c, "y": d}},
            "area": 9,
        }
        for at, (a, b, c, d) in enumerate(BOXES)
    }
    keys = ["base", "m-0-sc", "m-2-sc"]
    return {
        "image": f"sa_{number}.jpg",
        "short_caption": "short",
        "extra_caption": "",
        "mask_data": masks,
        "mask_keys": list(masks),
        "summaries": {key: [f"{key} of {number}, text {k}" for k in range(captions)] for key in keys},
        "negatives": {
            key: {"swaps": [f"{key} {number} swap {k}" for k in (0, 1)], "basic": [f"{key} {number} basic"]}
            for key in keys
        },
        "clip_scores": {
            key: {"swaps_0": 0.1, "swaps_1": 0.3, "basic_0": 0.3 if number % 2 else 0.2} for key in keys
        },
    }


@pytest.fixture
def folder(tmp_path):
    """Six files of the test split; two are passed over, and one has too few captions for tests of five."""
    files = {f"f{number}.json": file(number, captions=4 if number == 2 else 6) for number in range(6)}
    files["f3.json"]["summaries"] = None
    del files["f4.json"]["mask_data"]["1"]["caption"]
    (tmp_path / "complete").mkdir()
    for name, whole in files.items():
        (tmp_path / "complete" / name).write_text(json.dumps(whole))
    (tmp_path / "splits.json").write_text(json.dumps({"train": ["x.json"], "test": list(files)}))
    return tmp_path


def similarity(image, text):
    """A number for any image and text."""
    return float(np.random.default_rng([len(image), *image.encode(), *text.encode()]).random())


def entries(numbers):
    return [(number, key) for number in numbers for key in ("base", "m-0-sc", "m-2-sc")]


def texts_of(entry, most):
    number, key = entry
    return [f"{key} of {number}, text {k}" for k in range(most)]


def matching(of, most):
    """The share of entries that are the largest of their row, batch by batch; a last one alone left out."""
    right = []
    for start in range(0, len(of), 8):
        batch = of[start : start + 8]
        for own, (number, key) in enumerate(batch):
            name = f"sa_{number}/{key}"
            row = [
                (min if at == own else max)(similarity(name, text) for text in texts_of(each, most))
                for at, each in enumerate(batch)
            ]
            if len(batch) > 1:
                right.append(int(np.argmax(row)) == own)
    return float(np.mean(right))


def against(of, most, wrong):
    right = []
    for number, key in of:
        name = f"sa_{number}/{key}"
        least = min(similarity(name, text) for text in texts_of((number, key), most))
        right.append(least > similarity(name, wrong[number, key]))
    return float(np.mean(right))


def accuracy(benchmark):
    captions, images = benchmark.questions.pairs()
    values = [
        similarity(benchmark.images[i].id, benchmark.captions[c].text or "")
        for c, i in zip(captions.ravel().tolist(), images.ravel().tolist(), strict=True)
    ]
    scores = Scores(benchmark.listed.collect(np.array(values)))
    return evaluate(benchmark, scores, scorer="drawn", draws=20)["accuracy"].value


def test_every_test_is_that_of_the_authors_loops(folder):
    every, five = entries((0, 1, 2, 5)), entries((0, 1, 5))
    swaps = {(number, key): f"{key} {number} swap 0" for number, key in every}
    hardest = {(n, key): f"{key} {n} basic" if n % 2 else f"{key} {n} swap 1" for n, key in every}
    found = read(card("sdci-scm"), folder, None)
    assert found.source.endswith("2 of 6 files left out")
    assert len(found) == 12
    assert accuracy(found) == pytest.approx(matching(every, 1))
    (group,) = {tuple(label for label in found.questions.groupings["kind"][at : at + 3]) for at in (0, 3, 6)}
    assert group == ("image", "region", "region")
    # Nine entries: the last alone has nothing to choose.
    few = read(card("sdci-scm-pick5"), folder, None)
    assert len(few) == 8
    assert accuracy(few) == pytest.approx(matching(five, 5))
    for name, of, most, wrong in (
        ("sdci-neg", every, 1, swaps),
        ("sdci-neg-pick5", five, 5, swaps),
        ("sdci-neg-hard", every, 1, hardest),
    ):
        benchmark = read(card(name), folder, None)
        assert len(benchmark) == len(of)
        assert accuracy(benchmark) == pytest.approx(against(of, most, wrong)), name
    whole = read(card("sdci-neg-base"), folder, None)
    assert [name.split("/")[1] for name in whole.questions.ids] == ["base"] * 4


def test_regions_are_cut_out_with_a_margin_within_the_image(folder):
    found = read(card("sdci-neg"), folder, None)
    assert [image.crop for image in found.images[:3]] == [None, (40, 0, 560, 510), (343, 224, 640, 512)]
    assert {image.photo for image in found.images[:3]} == {"sa_0.jpg"}
    (folder / "photos").mkdir()
    PIL.Image.new("RGB", (640, 512), "red").save(folder / "photos" / "sa_0.jpg")
    there = read(card("sdci-neg"), folder, None).available()
    assert [image.decode().size for image in there.images] == [(640, 512), (520, 510), (297, 288)]


def test_what_is_not_of_the_layout_is_one_line(folder):
    whole = file(0)
    whole["mask_data"]["0"]["outer_mask"] = "AAAA"
    (folder / "complete" / "f0.json").write_text(json.dumps(whole))
    refuses(r"outer_mask of sa_0\.jpg: a mask is no picture", read, card("sdci-neg"), folder, None)
    (folder / "complete" / "f1.json").unlink()
    refuses(r"f1\.json", read, card("sdci-neg-base"), folder, None)
    (folder / "splits.json").write_text(json.dumps({"test": ["f3.json"]}))
    with pytest.raises(DataError, match="1 of 1 files left out: no image or region with enough captions"):
        read(card("sdci-neg"), folder, None)
    (folder / "splits.json").write_text("[]")
    refuses("no list of files under 'test'", read, card("sdci-neg"), folder, None)
