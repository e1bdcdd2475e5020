"""Checkpoint files: every layout gives the same tensors, and nothing in a file is ever run."""

import argparse
import io
import pickle
import zipfile
from itertools import permutations
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save, save_file

from counterfoil.errors import ModelError
from counterfoil.models.base import digest_tensors
from counterfoil.models.checkpoint_files import fit, packed, read_checkpoint
from embedded import Bomb
from refusals import refuses


@pytest.fixture
def state(tiny_model):
    return dict(tiny_model("tiny").state_dict())


def same(found, expected):
    return digest_tensors(found) == digest_tensors(expected)


@pytest.mark.parametrize(
    "wrap",
    [
        pytest.param(lambda state: state, id="tensors"),
        pytest.param(lambda state: {"state_dict": state, "epoch": 3}, id="state_dict"),
        pytest.param(
            lambda state: {"epoch": 9, "model_state_dict": state, "optimizer_state_dict": {}, "loss": 0.1},
            id="fine-tunes",
        ),
        pytest.param(
            lambda state: {"state_dict": {f"module.{k}": v for k, v in state.items()}}, id="parallel"
        ),
        # As PAC-S releases them: OpenAI's archives carry sizes beside the weights, scripts what they like.
        pytest.param(
            lambda state: {
                "state_dict": {f"module.{k}": v for k, v in state.items()},
                "optimizer": {"state": {0: {"exp_avg": next(iter(state.values()))}}, "param_groups": [{}]},
                "best_acc1": np.float64(61.5),
                "args": argparse.Namespace(lr=1e-4, batch_size=256),
            },
            id="PAC-S",
        ),
        pytest.param(lambda state: {f"module._orig_mod.{k}": v for k, v in state.items()}, id="compiled"),
    ],
)
def test_layouts(wrap, state, tmp_path):
    torch.save(wrap(state), tmp_path / "model.pt")
    assert same(read_checkpoint(tmp_path / "model.pt").tensors, state)


def test_safetensors_and_what_they_say(state, tmp_path):
    save_file(state, tmp_path / "model.safetensors", metadata={"counterfoil": '{"quick_gelu": true}'})
    found = read_checkpoint(tmp_path / "model.safetensors")
    assert same(found.tensors, state)
    assert found.notes["counterfoil"] == '{"quick_gelu": true}'


def test_plain_values_beside_the_weights_are_kept(state, tmp_path):
    torch.save({"model_state_dict": state, "epoch": 9, "loss": 0.25}, tmp_path / "model.pt")
    assert read_checkpoint(tmp_path / "model.pt").notes == {"epoch": 9, "loss": 0.25}


def test_digest_is_of_tensors_not_of_files(state):
    backwards = dict(reversed(state.items()))
    changed = {name: tensor.clone() for name, tensor in state.items()}
    changed["visual.proj"][0, 0] += 1
    assert digest_tensors(backwards) == digest_tensors(state) != digest_tensors(changed)
    renamed = {("x" if name == "visual.proj" else name): tensor for name, tensor in state.items()}
    assert digest_tensors(renamed) != digest_tensors(state)


# -- files that are refused -------------------------------------------------------------------------------


def refused(path, pattern):
    words = refuses(pattern, read_checkpoint, path, error=ModelError)
    assert str(path) in words


@pytest.mark.parametrize("old", [False, True])
def test_code_in_a_pickle_is_not_run(old, tmp_path):
    mark = tmp_path / "mark"
    content = {"state_dict": {"visual.proj": Bomb(mark)}}
    torch.save(content, tmp_path / "model.pt", _use_new_zipfile_serialization=not old)
    refused(tmp_path / "model.pt", "running code from it, and that is not done.*save the state dict alone")
    assert not mark.exists()
    # The bomb is a real one.
    pickle.loads(pickle.dumps(Bomb(mark)))
    assert mark.read_text() == "executed"


def test_whole_models_are_refused(tiny_model, tmp_path):
    torch.save(tiny_model("tiny"), tmp_path / "model.pt")
    refused(tmp_path / "model.pt", "given: open_clip.model.CLIP; allowed: safetensors")


def test_torchscript_is_refused(tmp_path):
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("model/code/__torch__.py", "def f(): ...")
        archive.writestr("model/constants.pkl", b"")
    refused(tmp_path / "model.pt", "TorchScript archive, which holds code; it is not run")


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_cut_off_files(suffix, state, tmp_path):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    data = save(state) if suffix == ".safetensors" else buffer.getvalue()
    path = tmp_path / f"model{suffix}"
    path.write_bytes(data[: len(data) // 2])
    refused(path, "is the file cut off?")
    path.write_bytes(b"")
    refused(path, "is the file cut off?")


def test_no_file_no_weights_no_names(tmp_path):
    refused(tmp_path / "none.pt", "no such checkpoint file")
    refused(tmp_path, "is a folder, not a checkpoint")
    torch.save({"epoch": 3}, tmp_path / "empty.pt")
    refused(tmp_path / "empty.pt", "holds no weights; given: epoch; allowed: state_dict, model_state_dict")
    torch.save([torch.zeros(2)], tmp_path / "list.pt")
    refused(tmp_path / "list.pt", "holds no weights by name; given: list")


# -- fitting ----------------------------------------------------------------------------------------------


def test_temperatures_and_buffers_do_not_matter(state):
    given = {**state, "attn_mask": torch.zeros(2, 2), "logit_scale": state["logit_scale"].reshape(1)}
    fitted = fit(given, state, where=Path("x"), architecture="tiny")
    assert fitted["logit_scale"].shape == ()
    assert set(fitted) == set(state)
    del given["logit_scale"]
    assert same(fit(given, state, where=Path("x"), architecture="tiny"), state)


def test_missing_and_left_over_tensors_are_named(state):
    given = {**state, "extra.weight": state["visual.proj"]}
    del given["ln_final.weight"], given["ln_final.bias"]
    pattern = r"ln_final.weight is missing \(2 are\); extra.weight is not in the model \(1 are not\)"
    refuses(pattern, fit, given, state, where=Path("x"), architecture="tiny", error=ModelError)


def test_equal_weights_give_equal_bytes(tiny_model, tmp_path):
    """The library's own order of the metadata changes from one call to the next."""
    state, said = dict(tiny_model("tiny").state_dict()), {"format": "pt", "b": "\u00e9", "a": "1", "c": "{}"}
    assert len({save(state, metadata=said) for _ in range(20)}) > 1
    files = {b"".join(packed(state, dict(order))) for order in permutations(said.items())}
    assert len(files) == 1
    path = tmp_path / "model.safetensors"
    path.write_bytes(files.pop())
    assert same(read_checkpoint(path).tensors, state)
    with safe_open(path, framework="pt") as file:
        assert dict(file.metadata()) == said
