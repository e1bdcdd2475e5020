"""Caption metrics with a model behind them, as a user meets them."""

import csv
import json

import numpy as np
import PIL.Image
import pytest

from .caption_samples import CANDIDATES, written


@pytest.fixture
def spec(tmp_path):
    pytest.importorskip("open_clip")
    from tiny_families import write_random_checkpoint

    return write_random_checkpoint(tmp_path / "tiny")


@pytest.fixture
def never_loads(monkeypatch):
    from counterfoil.models import open_clip

    def refuse(argument, options):
        raise AssertionError("the model was loaded again")

    return lambda: monkeypatch.setattr(open_clip, "load", refuse)


def test_a_second_run_loads_no_model_and_says_the_same(
    counterfoil, caption_inputs, spec, never_loads, tmp_path
):
    long = written(tmp_path / "c.json", {**CANDIDATES, "dog": "a brown dog and " * 40})
    command = (
        "captions", "score", "--metrics", "clip-s,ref-pac-s,em-score", "--candidates", long,
        "--references", caption_inputs["references"], "--images", caption_inputs["images"],
        "--backbone", spec, "--device", "cpu", "--workers", "0",
    )  # fmt: skip
    first = counterfoil.succeeds(*command, "--out", tmp_path / "1.csv")
    assert "metric:clip-s: 1 of 3 captions is longer than the model reads and cut off" in first.err
    never_loads()
    second = counterfoil.succeeds(*command, "--out", tmp_path / "2.csv")
    assert (tmp_path / "1.csv").read_bytes() == (tmp_path / "2.csv").read_bytes()
    assert second.out == first.out
    assert second.err.replace("2.csv", "1.csv") == first.err


def test_videos_in_folders_of_frames(counterfoil, spec, never_loads, tmp_path):
    rng = np.random.default_rng(0)
    for name, count in (("one", 5), ("two", 2), ("nobody", 1)):
        (tmp_path / "videos" / name).mkdir(parents=True)
        for frame in range(count):
            pixels = rng.integers(0, 256, (20, 20, 3)).astype(np.uint8)
            PIL.Image.fromarray(pixels).save(tmp_path / "videos" / name / f"{frame}.png")
    candidates = written(tmp_path / "c.json", {"one": "a dog runs", "two": "a cat sleeps"})
    command = (
        "captions", "score", "--metrics", "em-score,pac-s", "--candidates", candidates,
        "--videos", tmp_path / "videos", "--backbone", spec, "--device", "cpu", "--json", "-",
    )  # fmt: skip
    said = counterfoil.succeeds(*command)
    assert "1 video that no candidate names is left out" in said.err
    found = json.loads(said.out)["metrics"]
    # With one model behind both, PAC-S of videos is EMScore.
    assert found["em-score"] == found["pac-s"]
    few = counterfoil(*command, "--frames", "1")
    assert json.loads(few.out)["metrics"] != found
    never_loads()
    assert json.loads(counterfoil(*command).out)["metrics"] == found
    counterfoil.fails(
        *command[:3], "clip-s", *command[4:], says="metric:clip-s: is about pictures, and these are videos"
    )


def test_several_candidates_share_their_references_once(counterfoil, caption_inputs, spec, tmp_path):
    several = {name: [text, f"{text} somewhere", "nothing at all"] for name, text in CANDIDATES.items()}

    def rows(candidates, *settings):
        counterfoil.succeeds(
            f"captions score --metrics ref-em-score,em-score --backbone {spec} "
            f"--candidates {written(tmp_path / 'some.json', candidates)} "
            f"--references {caption_inputs['references']} --images {caption_inputs['images']} "
            f"--out {tmp_path}/s.csv --overwrite --workers 0",
            *settings,
        )
        table = csv.DictReader((tmp_path / "s.csv").read_text().splitlines())
        return {
            (row["image"], row["caption"]): (float(row["ref-em-score"]), float(row["em-score"]))
            for row in table
        }

    # em-score counts all candidates, ref-em-score the references of each image, once.
    corpus = written(tmp_path / "corpus.json", [text for own in several.values() for text in own])
    together = rows(several)
    for k in range(3):
        alone = rows({name: own[k] for name, own in several.items()}, "--set", f"em-score.idf={corpus}")
        for key, values in alone.items():
            assert together[key] == pytest.approx(values, abs=1e-9)
