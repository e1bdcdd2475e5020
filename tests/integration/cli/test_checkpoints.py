"""A checkpoint folder on the command line: a model like any other, mixed, or refused where it is none."""

import json

import numpy as np
import pytest
import torch

from contracts import forms
from counterfoil.benchmarks import Caption, Image
from counterfoil.benchmarks.folder import save
from counterfoil.benchmarks.records import PixelSource
from counterfoil.models import checkpoint, networks, registry
from tiny_families import write_random_checkpoint

pytest.importorskip("open_clip")


@pytest.fixture
def questions(tmp_path):
    pictures = np.random.default_rng(1).integers(0, 256, (16, 40, 50, 3)).astype(np.uint8)
    images = tuple(Image(f"i{n}", PixelSource(pixels)) for n, pixels in enumerate(pictures))
    captions = tuple(Caption(f"c{n}", f"{n} birds on a wire") for n in range(16))
    save(forms.quads_of(images, captions, name="birds", title="Birds"), tmp_path / "b")
    return tmp_path / "b"


def test_a_detector_is_a_model(tmp_path, questions, counterfoil):
    backbone = registry.backbone(write_random_checkpoint(tmp_path / "start"))
    checkpoint.save(tmp_path / "detector", networks.detector(backbone), {})
    run, out = tmp_path / "run", tmp_path / "result.json"
    command = f"evaluate {tmp_path}/detector {questions}"
    said = counterfoil.succeeds(f"{command} --device cpu --out {run} --json {out}")
    assert {"i2t", "t2i", "group"} <= set(json.loads(out.read_text())["measures"])
    assert "equal probabilities are wrong, and one half is natural" in " ".join(said.out.split())
    says = "has no use for the option 'prompt'"
    counterfoil.fails(f"{command} --prompt", "a photo of {}", says=says)


@pytest.fixture(scope="module")
def ends(tmp_path_factory):
    from counterfoil.models import checkpoint, small

    folder = tmp_path_factory.mktemp("ends")
    sizes = small.Sizes(picture=32, channels=(4, 8), words=8, hidden=16, width=8)
    for seed, name in enumerate(("start", "tuned")):
        made = small.backbone(["a red star above two moons"], sizes=sizes, seed=seed)
        checkpoint.save(folder / name, made, {})
    return folder / "start", folder / "tuned"


def test_a_mixture_is_kept_as_a_checkpoint(counterfoil, ends, tmp_path):
    from counterfoil.models import checkpoint

    mix = ("train mix", *ends, "--alpha", 0.25, "--out", tmp_path / "mixed")
    counterfoil.succeeds(*mix)
    start, tuned, mixed = (checkpoint.read(item).network for item in (*ends, tmp_path / "mixed"))
    for name, weights in mixed.named_parameters():
        expected = 0.75 * start.get_parameter(name) + 0.25 * tuned.get_parameter(name)
        assert torch.allclose(weights, expected, atol=1e-6), name
    assert checkpoint.facts(tmp_path / "mixed")["mixture"]["alpha"] == 0.25
    # Neither another mixture nor a training replaces it.
    (tmp_path / "rows.csv").write_text("image,caption\na.png,a cat\n")
    for again in (mix, (f"train coco --model small --data {tmp_path}/rows.csv --out {tmp_path}/mixed",)):
        counterfoil.refused(*again, says="mixed: the folder holds files (")
