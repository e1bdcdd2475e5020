"""Checkpoints as PAC-S releases them: OpenAI's names beside whatever the training script kept."""

import argparse
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import ModelError
from counterfoil.models import open_clip
from counterfoil.models.base import Options, digest_tensors
from counterfoil.models.checkpoint_files import read_checkpoint

pytestmark = [pytest.mark.models, pytest.mark.usefixtures("tiny_architectures")]

CPU = Options(device="cpu")


def released(state: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """The layout of clip_ViT-B-32.pth, with what scripts of this kind keep beside the weights."""
    import torch

    # OpenAI's archives carry these three beside the weights.
    sizes = {name: torch.tensor(n) for name, n in (("input_resolution", 224), ("context_length", 77))}
    return {
        "epoch": 4,
        "state_dict": {prefix + name: tensor for name, tensor in {**state, **sizes}.items()},
        "optimizer": {"state": {0: {"exp_avg": torch.zeros(3)}}, "param_groups": [{"lr": 1e-4}]},
        "scaler": {"scale": 65536.0},
        "best_acc1": np.float64(61.5),
        "args": argparse.Namespace(lr=1e-4, batch_size=256),
    }


def test_every_bit_comes_back(tiny_model: Callable[[str], Any], tmp_path: Path) -> None:
    import torch

    model, path = tiny_model("tiny-quickgelu"), tmp_path / "clip_ViT-tiny.pth"
    torch.save(released(model.state_dict(), "module."), path)
    found = read_checkpoint(path)
    assert found.notes["epoch"] == 4
    scorer = open_clip.load(f"tiny-quickgelu/{path}", CPU)
    assert scorer.identity.weights == digest_tensors(model.state_dict())
    torch.save(model.state_dict(), tmp_path / "plain.pt")
    plain = open_clip.load(f"tiny-quickgelu/{tmp_path / 'plain.pt'}", CPU)
    captions = [[Caption("0", "A photo depicts a cat")]]
    np.testing.assert_array_equal(next(scorer.embed_captions(captions)), next(plain.embed_captions(captions)))


def test_the_wrong_model_is_refused_in_a_line(tiny_model: Callable[[str], Any], tmp_path: Path) -> None:
    import torch

    path = tmp_path / "clip_ViT-tiny.pth"
    torch.save(released(tiny_model("tiny-quickgelu").state_dict()), path)
    # Nothing in a released file says which activation it needs, so the name must.
    with pytest.raises(ModelError, match=r"nothing in this file says.*use open-clip:tiny-quickgelu/"):
        open_clip.load(f"tiny/{path}", CPU)
    with pytest.raises(ModelError, match="not a checkpoint of tiny-wide; given: "):
        open_clip.load(f"tiny-wide/{path}", CPU)


def test_the_one_release_that_is_not_openais(tiny_model: Callable[[str], Any], tmp_path: Path) -> None:
    import torch

    path = tmp_path / "openClip_ViT-tiny.pth"
    torch.save(released(tiny_model("tiny").state_dict()), path)
    assert open_clip.load(f"tiny-gelu/{path}", CPU).identity.options["activation"] == "gelu"
