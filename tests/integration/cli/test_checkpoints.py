"""A checkpoint folder on the command line: evaluated like any scorer, refused in a line where it is none."""

import json

import numpy as np
import pytest

from contracts import forms
from counterfoil.benchmarks import Caption, Image
from counterfoil.benchmarks.folder import save
from counterfoil.benchmarks.records import PixelSource
from counterfoil.models import checkpoint, networks, registry
from tiny_families import write_random_checkpoint

pytest.importorskip("open_clip")


@pytest.fixture
def questions(tmp_path):
    """A benchmark of eight quads, saved in a folder of its own."""
    rng = np.random.default_rng(1)
    pictures = rng.integers(0, 256, (16, 40, 50, 3)).astype(np.uint8)
    images = tuple(Image(f"i{n}", PixelSource(pixels)) for n, pixels in enumerate(pictures))
    captions = tuple(Caption(f"c{n}", f"{n} birds on a wire") for n in range(16))
    save(forms.quads_of(images, captions, name="birds", title="Birds"), tmp_path / "b")
    return tmp_path / "b"


@pytest.mark.parametrize("spec", ["{}", "ckpt:{}"])
def test_the_folder_is_a_scorer(spec, tmp_path, questions, counterfoil):
    backbone = registry.backbone(write_random_checkpoint(tmp_path / "start"))
    checkpoint.save(tmp_path / "ckpt", backbone, {"step": 3})
    out = tmp_path / "result.json"
    scorer = spec.format(tmp_path / "ckpt")
    counterfoil.succeeds("evaluate", scorer, questions, "--device", "cpu", "--json", out, "--workers", 0)
    result = json.loads(out.read_text())
    assert f"ckpt:{tmp_path / 'ckpt'}" in json.dumps(result)


def test_a_detector_is_one_too(tmp_path, questions, counterfoil):
    backbone = registry.backbone(write_random_checkpoint(tmp_path / "start"))
    checkpoint.save(tmp_path / "detector", networks.detector(backbone), {})
    run, out = tmp_path / "run", tmp_path / "result.json"
    said = counterfoil.succeeds(
        f"evaluate {tmp_path}/detector {questions} --device cpu --out {run} --json {out}"
    )
    assert {"i2t", "t2i", "group"} <= set(json.loads(out.read_text())["measures"])
    assert "equal probabilities are wrong, and one half is natural" in " ".join(said.out.split())
    counterfoil.fails(
        f"evaluate {tmp_path}/detector {questions} --prompt",
        "a photo of {}",
        says="has no use for the option 'prompt'",
    )
