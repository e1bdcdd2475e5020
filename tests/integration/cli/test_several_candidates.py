"""`captions score` where images have several candidates, against files of one candidate each."""

import csv
import json

import numpy as np
import pytest

from counterfoil.metrics.captions.clip_score import clip_s
from counterfoil.stats.bootstrap import mean_intervals

from .caption_samples import written

WORDS = ["a", "the", "dog", "cat", "cow", "runs", "sleeps", "on", "grass", "bed", "green", "brown"]
NAMES = [f"i{k}" for k in range(14)]
#: Metrics that are a mean over images, and those that are of all captions as one text.
MEANS, WHOLES = ("rouge-l", "cider", "length"), ("bleu-1", "bleu-4")
METRICS = ",".join((*MEANS, *WHOLES))


def sentences(rng, n):
    return [" ".join(rng.choice(WORDS, rng.integers(3, 9))) for _ in range(n)]


@pytest.fixture
def references(tmp_path):
    rng = np.random.default_rng(0)
    return written(tmp_path / "r.json", {name: sentences(rng, 3) for name in NAMES})


def of_file(counterfoil, candidates, references, *options):
    """The values of a file, and the rows that are written."""
    out = candidates.with_suffix(".out.csv")
    said = counterfoil.succeeds(
        f"captions score --metrics {METRICS} --candidates {candidates} --references {references} --out {out} "
        "--json - --overwrite",
        *options,
    )
    return json.loads(said.out), list(csv.DictReader(out.read_text().splitlines()))


def scores(rows, metric):
    return np.array([float(row[metric]) for row in rows])


def test_as_many_of_each_are_the_files_of_one_each(counterfoil, references, tmp_path):
    rng = np.random.default_rng(1)
    candidates = {name: sentences(rng, 3) for name in NAMES}
    # Equal candidates count as they are.
    candidates["i3"][1] = candidates["i3"][0]
    found, rows = of_file(counterfoil, written(tmp_path / "c.json", candidates), references)
    assert (found["captions"], found["images"], found["per_image"]) == (42, 14, "mean")
    assert [(row["image"], int(row["candidate"]), row["caption"]) for row in rows] == [
        (name, k, text) for name, texts in candidates.items() for k, text in enumerate(texts)
    ]
    # Every file has the references of each image once, so CIDEr counts the same documents.
    single = []
    for k in range(3):
        alone = written(tmp_path / f"{k}.json", {name: candidates[name][k] for name in NAMES})
        single.append(of_file(counterfoil, alone, references)[1])
    for metric in (*MEANS, *WHOLES):
        expected = np.stack([scores(own, metric) for own in single], axis=1)
        np.testing.assert_allclose(scores(rows, metric).reshape(14, 3), expected, rtol=1e-12, atol=0)
        value = found["metrics"][metric]
        assert value["mean"] == pytest.approx(expected.mean(), abs=1e-12)
        assert value["n"] == 14
    of_images = np.stack([scores(rows, metric).reshape(14, 3).sum(axis=1) / 3 for metric in MEANS], axis=1)
    low, high = mean_intervals(of_images)
    for at, metric in enumerate(MEANS):
        value = found["metrics"][metric]
        assert (value["low"], value["high"]) == pytest.approx((low[at], high[at]))
    # Of all as one text: every candidate beside its image's references.
    people = json.loads(references.read_text())
    apart = [(f"{name}x{k}", name, text) for name, own in candidates.items() for k, text in enumerate(own)]
    one_each, _ = of_file(
        counterfoil,
        written(tmp_path / "apart.json", {key: text for key, _, text in apart}),
        written(tmp_path / "apart_r.json", {key: people[name] for key, name, _ in apart}),
    )
    for metric in WHOLES:
        assert found["metrics"][metric]["value"] == pytest.approx(one_each["metrics"][metric]["value"])


def test_the_best_of_each(counterfoil, references, tmp_path):
    rng = np.random.default_rng(3)
    candidates = {name: sentences(rng, 4) for name in NAMES}
    path = written(tmp_path / "c.json", candidates)
    found, rows = of_file(counterfoil, path, references, "--per-image", "best")
    for metric in (*MEANS, *WHOLES):
        own = scores(rows, metric).reshape(14, 4)
        value = found["metrics"][metric]
        assert value["mean"] == pytest.approx(own.max(axis=1).mean(), abs=1e-12)
        chosen = {name: candidates[name][int(at)] for name, at in zip(NAMES, own.argmax(axis=1), strict=True)}
        alone, _ = of_file(counterfoil, written(tmp_path / "best.json", chosen), references)
        assert value["value"] == pytest.approx(alone["metrics"][metric]["value"], abs=1e-12)
    said = counterfoil(f"captions score --metrics length --candidates {path} --per-image best")
    assert "56 captions of 14 images, the best of each" in said.out
    assert "c.json: 56 candidates of 14 images, 4 of each" in said.err


def test_candidates_that_are_left_out_are_counted(counterfoil, tmp_path):
    people = written(tmp_path / "r.json", {"a": ["a dog runs", "the dog"], "b": ["a cat"], "c": ["a cow"]})
    path = written(
        tmp_path / "c.json", {"a": ["", "a dog runs", "a dog"], "b": ["cats", "a  cat"], "c": [""]}
    )
    common = (
        "captions", "score", "--metrics", "bleu-1,rouge-l", "--candidates", path, "--references", people,
        "--empty", "leave-out", "--out", tmp_path / "s.csv", "--json", "-", "--overwrite",
    )  # fmt: skip
    said = counterfoil.succeeds(*common)
    assert "c.json: 2 empty candidates left out, and 1 image with no other" in said.err
    assert "c.json: 4 candidates of 2 images, 2 of each" in said.err

    def rows():
        table = csv.DictReader((tmp_path / "s.csv").read_text().splitlines())
        return [(row["image"], row["candidate"]) for row in table]

    assert rows() == [("a", "1"), ("a", "2"), ("b", "0"), ("b", "1")]
    assert json.loads(said.out)["images"] == 2
    fewer = counterfoil(*common, "--references-contain", "drop-item")
    assert (json.loads(fewer.out)["captions"], rows()) == (2, [("a", "2"), ("b", "0")])
    # What is taken out for one candidate is gone for all of its image, which then has none.
    gone = counterfoil.fails(
        *common, "--references-contain drop-reference", says="a caption has no references"
    )
    assert "'cats'" in gone.err


def test_embeddings_are_found_by_the_names_of_candidates(counterfoil, tmp_path):
    rng = np.random.default_rng(4)
    names = ["dog", "dog@1", "dog@2", "cat"]
    captions, images = rng.standard_normal((4, 5)), rng.standard_normal((2, 5))
    np.savez(
        tmp_path / "e.npz", images=images, captions=captions, image_ids=["dog", "cat"], caption_ids=names
    )
    path = written(tmp_path / "c.json", {"cat": "a cat", "dog": ["a dog", "dogs", "a dog"]})
    command = (
        "captions", "score", "--metrics", "clip-s", "--candidates", path, "--backbone",
        f"embeddings:{tmp_path}/e.npz", "--out", tmp_path / "s.json", "--json", "-",
        "--overwrite",
    )  # fmt: skip
    said = counterfoil.succeeds(*command)
    found = json.loads((tmp_path / "s.json").read_text())
    asked = [row["image"] + (f"@{row['candidate']}" if row["candidate"] else "") for row in found]
    assert asked == ["cat", "dog", "dog@1", "dog@2"]
    expected = clip_s(captions[[names.index(name) for name in asked]], images[[1, 0, 0, 0]])
    assert [row["clip-s"] for row in found] == pytest.approx(expected)
    assert json.loads(said.out)["metrics"]["clip-s"]["value"] == pytest.approx(
        (expected[0] + np.mean(expected[1:])) / 2
    )
    written(path, {"dog": ["a dog", "dogs"], "dog@1": "a dog"})
    counterfoil.fails(*command, says="c.json: two captions of one name; given: 'dog@1'")
