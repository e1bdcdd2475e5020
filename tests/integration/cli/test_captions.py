"""`counterfoil captions score`, as a user meets it."""

import csv
import json

import numpy as np
import PIL.Image
import pytest

from .caption_samples import REFERENCES, written


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


def test_two_files_of_one_name_are_not_guessed_between(counterfoil, caption_inputs):
    PIL.Image.new("RGB", (8, 8)).save(caption_inputs["images"] / "dog.jpg")
    counterfoil.fails(
        f"captions score --metrics length --candidates {caption_inputs['candidates']} "
        f"--images {caption_inputs['images']}",
        says="'dog' may be several of what is there; given: dog.jpg, dog.png",
    )
