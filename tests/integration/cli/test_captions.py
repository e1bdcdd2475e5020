"""`counterfoil captions score`, as a user meets it."""

import csv
import json
import re

import numpy as np
import PIL.Image
import pytest

from .caption_samples import CANDIDATES, REFERENCES, written


def test_the_example_of_clip_score(counterfoil, shared_data, tmp_path):
    folder = shared_data / "clipscore_example"
    said = counterfoil.succeeds(
        f"captions score --metrics bleu,rouge-l,cider --candidates {folder}/good_captions.json "
        f"--references {folder}/refs.json --out {tmp_path}/s.csv --json {tmp_path}/s.json"
    )
    # As CLIPScore's README prints them.
    printed = [line.split()[1] for line in said.out.splitlines()[2:8]]
    assert printed == ["0.6667", "0.4899", "0.3469", "0.0000", "0.4280", "0.5637"]
    table = list(csv.DictReader((tmp_path / "s.csv").read_text().splitlines()))
    assert [(row["image"], row["candidate"]) for row in table] == [("image1", "0"), ("image2", "0")]
    found = json.loads((tmp_path / "s.json").read_text())["metrics"]
    assert found["cider"]["n"] == 2
    assert found["cider"]["is_mean"]
    assert found["cider"]["value"] == pytest.approx(np.mean([float(row["cider"]) for row in table]))
    assert [found[name]["low"] for name in ("cider", "rouge-l", "bleu-1")] == [None] * 3
    assert "interval" not in said.out.splitlines()[1]
    assert "rouge-l, cider: too few captions for an interval: 2, and it takes 10" in said.err
    assert "bleu-1, bleu-2, bleu-3, bleu-4: of all captions as one text, not a mean" in said.err
    assert found["cider"]["no_interval"].startswith("too few captions")


def test_metrics_of_embeddings_that_are_given(counterfoil, caption_inputs, caption_vectors, tmp_path):
    path, held = caption_vectors
    said = counterfoil.succeeds(
        f"captions score --metrics clip-s,pac-s --candidates {caption_inputs['candidates']} "
        f"--images {caption_inputs['images']} --scorer embeddings:{path} --out {tmp_path}/s.json"
    )
    assert "1 image that no candidate names is left out" in said.err
    rows = json.loads((tmp_path / "s.json").read_text())
    for k, row in enumerate(rows):
        image, caption = held["images"][k], held["captions"][k]
        cosine = image @ caption / np.linalg.norm(image) / np.linalg.norm(caption)
        assert row["clip-s"] == pytest.approx(2.5 * max(cosine, 0))
        assert row["pac-s"] == pytest.approx(2 * max(cosine, 0))
    # Where all is embedded the images themselves are not needed.
    weighed = counterfoil(
        f"captions score --metrics clip-s,pac-s --candidates {caption_inputs['candidates']} "
        f"--scorer embeddings:{path} --set clip-s.weight=1 --json - -q"
    )
    found = json.loads(weighed.out)["metrics"]
    assert found["clip-s"]["value"] == pytest.approx(np.mean([row["clip-s"] for row in rows]) / 2.5)
    assert found["pac-s"]["value"] == pytest.approx(np.mean([row["pac-s"] for row in rows]))


def test_references_that_are_the_candidate(counterfoil, caption_inputs, tmp_path):
    again = written(
        tmp_path / "again.json", {**REFERENCES, "dog": ["a brown  dog runs", "the brown dog runs"]}
    )
    common = (
        f"captions score --metrics bleu-1 --references {again} --candidates",
        caption_inputs["candidates"],
    )
    kept = counterfoil(*common, "--json", "-")
    assert "1 candidate of 3 with a reference that says the same, which is kept; see --ref" in kept.err
    assert json.loads(kept.out)["metrics"]["bleu-1"]["n"] == 3
    dropped = counterfoil(*common, "--references-contain", "drop-reference", "--json", "-")
    assert "1 references equal to a candidate taken out" in dropped.err
    left = counterfoil(*common, "--references-contain", "drop-item", "--json", "-")
    assert json.loads(left.out)["captions"] == 2
    values = [json.loads(said.out)["metrics"]["bleu-1"]["value"] for said in (kept, dropped)]
    assert values[0] > values[1]


@pytest.mark.parametrize(
    ("change", "options", "said"),
    [
        ({}, "--metrics clipp", "unknown caption metric; given: clipp; .*did you mean 'clip-s'?"),
        ({}, "--metrics ,", "no metric is named"),
        ({}, "--metrics clip-s --scorer hf:x", "a metric that looks at images, and none were given"),
        ({}, "--metrics cider --scorer hf:x", "none of these metrics has a model behind it"),
        ({"fox": "a fox"}, "--metrics length --images {images}", "an image; given: 1 of 4 "),
        ({}, "--metrics cider", "a metric that compares with references, and none were given"),
        ({}, "--metrics length --set cider.df=x", "a setting of a metric that is not asked for"),
        ({}, "--metrics length --frames 3", "frames are those of videos"),
        ({}, "--metrics length --videos {images} --images {images}", "images or of videos"),
        ({}, "--metrics length --images nowhere", "nowhere: no such folder; check --images"),
        ({}, "--metrics length --references-contain drop-item", "no references that could"),
    ],
)
def test_what_is_refused_in_one_line(counterfoil, caption_inputs, tmp_path, change, options, said):
    candidates = written(tmp_path / "c.json", {**CANDIDATES, **change})
    out = tmp_path / "out.csv"
    places = {
        "images": caption_inputs["images"],
        "r": caption_inputs["references"],
        "out": out,
    }
    more = "-q" if "--out" in options else f"-q --out {out}"
    found = counterfoil.refused(f"captions score --candidates {candidates} {options.format(**places)} {more}")
    assert re.search(said, found.err), found.err
    assert not out.exists()


def test_two_files_of_one_name_are_not_guessed_between(counterfoil, caption_inputs):
    PIL.Image.new("RGB", (8, 8)).save(caption_inputs["images"] / "dog.jpg")
    counterfoil.fails(
        f"captions score --metrics length --candidates {caption_inputs['candidates']} "
        f"--images {caption_inputs['images']}",
        says="'dog' may be several of what is there; given: dog.jpg, dog.png",
    )
