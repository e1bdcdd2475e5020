"""Checkpoint folders: what was saved is what is read, and answers the same."""

import argparse
import io
import json
import pickle
import resource
import shutil
import zipfile
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path

import numpy as np
import open_clip
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file, save, save_file

from contracts import forms
from counterfoil import catalog
from counterfoil.errors import InputError, MissingExtraError, ModelError, StorageError
from counterfoil.models import checkpoint, hf_loading, pcme, recurrent, registry
from counterfoil.models.base import Embedder, Options, digest_tensors
from counterfoil.models.checkpoint_files import fit, packed, read_checkpoint
from embedded import Bomb, embedded, forward
from refusals import refuses

pytestmark = [
    pytest.mark.usefixtures("tiny_architectures"),
    pytest.mark.filterwarnings("ignore:.*longer than the model reads"),
]

CPU = Options(device="cpu")

FACTS = {"recipe": "coco", "step": 12, "measures": {"accuracy": 0.25}}

KINDS = (
    *("open-clip", "open-clip-last", "hf", "siglip", "small", "vse", "vsrn"),
    *("pvse", "pcme", "pcme-hf", "detector"),
)


@pytest.fixture
def quads(drawn_images, captions):
    """Five quads of drawn pictures."""
    return forms.quads_of(drawn_images, captions, ids="abcde")


def answered(backbone, images, captions):
    """Everything that the network says of some pictures and texts."""
    backbone.network.eval()
    with torch.inference_mode():
        answer = forward(backbone, images, captions)
    parts = [*answer.images, *answer.texts, answer.logit_scale, answer.match]
    return [item.detach().numpy().tobytes() for item in parts if item is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_the_same_bits_after_saving(kind, backbones, tmp_path, drawn_images, captions):
    before = backbones(kind)
    checkpoint.save(tmp_path / "ckpt", before, FACTS)
    torch.manual_seed(99)
    after = checkpoint.read(tmp_path / "ckpt")
    assert after.card == json.loads(json.dumps(before.card))
    first, second = (answered(item, drawn_images, captions) for item in (before, after))
    assert first == second
    assert len(first) >= 3
    assert checkpoint.facts(tmp_path / "ckpt") == FACTS
    # And saved again: the same weights by the same names.
    checkpoint.save(tmp_path / "again", after, FACTS)
    assert (tmp_path / "again" / "card.json").read_bytes() == (tmp_path / "ckpt" / "card.json").read_bytes()


@pytest.mark.parametrize("kind", ["open-clip", "siglip", "small", "pvse", "pcme"])
def test_a_checkpoint_is_an_embedder(kind, backbones, tmp_path, drawn_images, captions):
    before = backbones(kind)
    checkpoint.save(tmp_path, before, {})
    model = catalog.model(str(tmp_path), CPU)
    assert isinstance(model, Embedder)
    assert model.identity.weights == json.loads((tmp_path / "card.json").read_text())["weights"]
    network = before.network.eval()
    with torch.inference_mode():
        images, texts = (pcme.rows(e).numpy() for e in forward(before, drawn_images, captions)[:2])
    result = embedded(model, drawn_images, 4, "images"), embedded(model, captions, 3, "captions")
    assert abs(result[0] - images).max() <= 1e-5 * max(1.0, abs(images).max())
    assert abs(result[1] - texts).max() <= 1e-5 * max(1.0, abs(texts).max())
    how = network.comparison()
    some, shown = texts[:10], images[: len(texts[:10])]
    exact = (some * shown).sum(axis=1) if how is None else how.pairs(some, shown)
    np.testing.assert_allclose(model.compare(some, shown), exact, atol=1e-6)
    assert all(length > 0 for length in model.lengths(captions))


def test_weights_go_by_the_librarys_names(backbones, tmp_path, captions, drawn_images):
    """open_clip and transformers read what we write."""
    checkpoint.save(tmp_path / "clip", backbones("open-clip"), {})
    model = catalog.model(f"open-clip:tiny/{tmp_path / 'clip' / 'model.safetensors'}", CPU)
    ours = checkpoint.load(str(tmp_path / "clip"), CPU)
    assert abs(embedded(model, captions) - embedded(ours, captions)).max() <= 1e-6
    # The file says which activation it was trained with.
    with pytest.raises(ModelError, match=r"trained with GELU .*, tiny-quickgelu builds QuickGELU"):
        catalog.model(f"open-clip:tiny-quickgelu/{tmp_path / 'clip' / 'model.safetensors'}", CPU)

    checkpoint.save(tmp_path / "hf", backbones("hf"), {})
    folder = tmp_path / "plain"
    shutil.copytree(tmp_path / "hf" / "processor", folder)
    shutil.copy(tmp_path / "hf" / "model.safetensors", folder)
    model, ours = catalog.model(f"hf:{folder}", CPU), checkpoint.load(str(tmp_path / "hf"), CPU)
    assert abs(embedded(model, captions) - embedded(ours, captions)).max() <= 1e-5


def test_a_checkpoint_needs_nothing_but_itself(clip_folder, tmp_path, captions):
    start = tmp_path / "start"
    shutil.copytree(clip_folder, start)
    checkpoint.save(tmp_path / "ckpt", registry.backbone(f"hf:{start}"), {})
    shutil.rmtree(start)
    shutil.move(tmp_path / "ckpt", tmp_path / "elsewhere")
    assert len(embedded(checkpoint.load(str(tmp_path / "elsewhere"), CPU), captions)) == len(captions)


def test_a_tokenizer_of_files_goes_with_open_clips_weights(
    clip_folder, tmp_path, tiny_architectures, captions
):
    words = tmp_path / "words"
    shutil.copytree(clip_folder, words)
    config = {**tiny_architectures["tiny"]}
    config["text_cfg"] = {**config["text_cfg"], "hf_tokenizer_name": str(words)}
    (tmp_path / "tiny-words.json").write_text(json.dumps(config))
    open_clip.add_model_config(tmp_path / "tiny-words.json")
    backbone = registry.backbone("open-clip:tiny-words")
    texts = [str(caption.text) for caption in captions]
    expected = backbone.tokens(texts)
    checkpoint.save(tmp_path / "ckpt", backbone, {})
    shutil.rmtree(words)
    assert torch.equal(checkpoint.read(tmp_path / "ckpt").tokens(texts), expected)
    assert len(embedded(checkpoint.load(str(tmp_path / "ckpt"), CPU), captions)) == len(captions)


@contextmanager
def files_up_to(size):
    """No file may grow beyond `size` bytes, as on a disk that is full."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("size", [100, 100_000])
def test_a_full_disk_leaves_the_old_checkpoint(size, backbones, tmp_path, drawn_images, captions):
    old = backbones("open-clip")
    checkpoint.save(tmp_path, old, {"step": 1})
    expected = answered(old, drawn_images, captions)
    old.network.model.visual.proj.data *= 2
    # Not even the card fits, or the card does and the weights do not.
    with files_up_to(size), pytest.raises(StorageError, match="the disk is full"):
        checkpoint.save(tmp_path, old, {"step": 2})
    # A mark that writing began is all that is new.
    assert {path.name for path in tmp_path.glob("[!.]*")} == {"card.json", "model.safetensors"}
    assert checkpoint.facts(tmp_path) == {"step": 1}
    assert answered(checkpoint.read(tmp_path), drawn_images, captions) == expected


def test_a_machine_that_stops_between_the_files_leaves_the_new_one(
    backbones, tmp_path, drawn_images, captions
):
    network = backbones("open-clip")
    checkpoint.save(tmp_path, network, {"step": 1})
    card = (tmp_path / "card.json").read_bytes()
    network.network.model.visual.proj.data *= 2
    checkpoint.save(tmp_path, network, {"step": 2})
    expected = answered(network, drawn_images, captions)
    (tmp_path / "card.json").write_bytes(card)
    assert checkpoint.facts(tmp_path) == {"step": 2}
    assert answered(checkpoint.read(tmp_path), drawn_images, captions) == expected


def test_tied_weights_are_kept(backbones, tmp_path):
    backbone = backbones("open-clip")
    tied = backbone.network.model.visual.ln_pre.weight
    backbone.network.model.visual.ln_post.weight = tied
    checkpoint.save(tmp_path, backbone, {})
    result = checkpoint.read(tmp_path).network.model.visual
    assert torch.equal(result.ln_pre.weight, tied)
    assert torch.equal(result.ln_post.weight, tied)


@pytest.fixture(scope="module")
def saved_once(backbones, tiny_architectures, tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved") / "ckpt"
    checkpoint.save(folder, backbones("open-clip"), FACTS)
    return folder


@pytest.fixture
def saved(saved_once, tmp_path):
    return shutil.copytree(saved_once, tmp_path / "ckpt")


def refused(folder, pattern, error=ModelError):
    for ask in (checkpoint.read, lambda folder: checkpoint.load(str(folder), CPU)):
        refuses(pattern, ask, folder, error=error)


def test_folders_that_hold_no_checkpoint(tmp_path, saved):
    refused(tmp_path / "nowhere", "nowhere: no such checkpoint folder; allowed: a folder with model.safet")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"empty: not a checkpoint folder; given: no card.json and no model.safeten")
    (saved / "model.safetensors").unlink()
    refused(saved, "ckpt: not a checkpoint folder; given: no model.safetensors")


def test_weights_that_are_cut_off_or_damaged(saved):
    path = saved / "model.safetensors"
    whole = path.read_bytes()
    for keep in (0, -1000):
        path.write_bytes(whole[:keep])
        refused(saved, r"model\.safetensors: not a readable safetensors file.*is the file cut off\?")
        refuses("not a readable safetensors", checkpoint.facts, saved, error=ModelError)
    path.write_bytes(whole[:-3] + bytes([whole[-3] ^ 1]) + whole[-2:])
    refused(saved, r"model\.safetensors: the weights are not those that were saved; is the file damaged")
    # Plain weights beside a card.
    path.write_bytes(whole)
    save_file(load_file(path), path)
    refused(saved, "card.json is not the card of these weights")


def test_weights_of_another_model(saved, backbones, tmp_path):
    checkpoint.save(tmp_path / "other", registry.backbone("open-clip:tiny-wide"), {})
    shutil.copy(tmp_path / "other" / "model.safetensors", saved)
    other = r"model\.safetensors: not a checkpoint of the model that card.json describes \(open-clip:tiny\)"
    refused(saved, f"{other}; given: positional_embedding is 77x96 instead of 77x48")
    # Of the same shapes, and yet not of that card.
    checkpoint.save(tmp_path / "quick", registry.backbone("open-clip:tiny-quickgelu"), {})
    shutil.copy(tmp_path / "quick" / "model.safetensors", saved)
    refused(saved, "ckpt: card.json is not the card of these weights; is model.safetensors that of")


@pytest.mark.parametrize(
    ("keys", "value", "pattern"),
    [
        (("facts", "step"), 99, "card.json: the card was changed by hand; given: facts differ from"),
        (("card", "model", "quick_gelu"), True, "changed by hand; given: card differ"),
        (("card", "kind"), "resnet", "changed by hand; given: card differ"),
        (("schema",), 2, "card.json: a checkpoint of a newer version; given: schema 2; .*pip install -U"),
        (("schema",), None, "field 'schema': wrong value; given: None"),
        (("format",), "something", "card.json: not the card of a checkpoint of counterfoil"),
        (("weights",), None, "card.json, field 'weights': wrong value; given: None"),
        (("card",), [], "field 'card': wrong value; given: list of 0; allowed: an object"),
    ],
)
def test_a_card_that_was_changed(keys, value, pattern, saved):
    said = json.loads((saved / "card.json").read_text())
    place = said
    for key in keys[:-1]:
        place = place[key]
    place[keys[-1]] = value
    (saved / "card.json").write_text(json.dumps(said))
    refused(saved, pattern)


def test_a_card_that_is_cut_off(saved):
    text = (saved / "card.json").read_text()
    (saved / "card.json").write_text(text[: len(text) // 2])
    refused(saved, r"card\.json, line \d+, column \d+: not valid JSON", InputError)
    # It is still taken for a checkpoint, so that the line is about what is wrong.
    refuses("not valid JSON", catalog.model, str(saved), CPU, error=InputError)


def test_cards_that_describe_nothing():
    with pytest.raises(InputError, match=r"unknown kind of network; given: resnet; allowed: .*open-clip"):
        checkpoint.build({"kind": "resnet"})
    with pytest.raises(ModelError, match="does not describe a network completely; given: KeyError 'from'"):
        checkpoint.build({"kind": "open-clip"})
    refuses("lacks 'picture'", checkpoint.build, {"kind": "small"}, error=ModelError)
    refuses("did you mean 'vsrn'", recurrent.backbone, ["a cat"], kind="vsnr", error=InputError)


def test_a_missing_library_is_named(backbones, tmp_path, monkeypatch):
    checkpoint.save(tmp_path, backbones("hf"), {})

    def missing():
        raise MissingExtraError("transformers", "models")

    monkeypatch.setattr(hf_loading, "library_of", missing)
    refused(tmp_path, "'transformers' is not installed; pip install", MissingExtraError)


def test_a_folder_of_something_else_is_not_written_to(backbones, tmp_path):
    (tmp_path / "card.json").write_text('{"name": "my-benchmark"}')
    with pytest.raises(InputError, match=r"holds a card\.json that is no checkpoint's; choose"):
        checkpoint.save(tmp_path, backbones("open-clip"), {})
    assert [path.name for path in tmp_path.iterdir()] == ["card.json"]


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


def test_what_files_say_beside_the_weights_is_kept(state, tmp_path):
    save_file(state, tmp_path / "model.safetensors", metadata={"counterfoil": '{"quick_gelu": true}'})
    result = read_checkpoint(tmp_path / "model.safetensors")
    assert same(result.tensors, state)
    assert result.notes["counterfoil"] == '{"quick_gelu": true}'
    tuned = {"model_state_dict": state, "optimizer_state_dict": {}, "epoch": 9, "loss": 0.25}
    torch.save(tuned, tmp_path / "model.pt")
    result = read_checkpoint(tmp_path / "model.pt")
    assert same(result.tensors, state)
    assert result.notes == {"epoch": 9, "loss": 0.25}


def test_digest_is_of_tensors_not_of_files(state):
    backwards = dict(reversed(state.items()))
    changed = {name: tensor.clone() for name, tensor in state.items()}
    changed["visual.proj"][0, 0] += 1
    assert digest_tensors(backwards) == digest_tensors(state) != digest_tensors(changed)
    renamed = {("x" if name == "visual.proj" else name): tensor for name, tensor in state.items()}
    assert digest_tensors(renamed) != digest_tensors(state)


def unreadable(path, pattern):
    assert str(path) in refuses(pattern, read_checkpoint, path, error=ModelError)


@pytest.mark.parametrize("old", [False, True])
def test_code_in_a_pickle_is_not_run(old, tmp_path):
    mark = tmp_path / "mark"
    content = {"state_dict": {"visual.proj": Bomb(mark)}}
    torch.save(content, tmp_path / "model.pt", _use_new_zipfile_serialization=not old)
    unreadable(tmp_path / "model.pt", "running code from it, and that is not done.*save the state dict alone")
    assert not mark.exists()
    # The bomb is a real one.
    pickle.loads(pickle.dumps(Bomb(mark)))
    assert mark.read_text() == "executed"


def test_whole_models_and_torchscript_are_refused(tiny_model, tmp_path):
    torch.save(tiny_model("tiny"), tmp_path / "model.pt")
    unreadable(tmp_path / "model.pt", "given: open_clip.model.CLIP; allowed: safetensors")
    with zipfile.ZipFile(tmp_path / "model.pt", "w") as archive:
        archive.writestr("model/code/__torch__.py", "def f(): ...")
        archive.writestr("model/constants.pkl", b"")
    unreadable(tmp_path / "model.pt", "TorchScript archive, which holds code; it is not run")


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
def test_cut_off_files(suffix, state, tmp_path):
    buffer = io.BytesIO()
    torch.save(state, buffer)
    data = save(state) if suffix == ".safetensors" else buffer.getvalue()
    path = tmp_path / f"model{suffix}"
    path.write_bytes(data[: len(data) // 2])
    unreadable(path, "is the file cut off?")
    path.write_bytes(b"")
    unreadable(path, "is the file cut off?")


def test_no_file_no_weights_no_names(tmp_path):
    unreadable(tmp_path / "none.pt", "no such checkpoint file")
    unreadable(tmp_path, "is a folder, not a checkpoint")
    torch.save({"epoch": 3}, tmp_path / "empty.pt")
    unreadable(tmp_path / "empty.pt", "holds no weights; given: epoch; allowed: state_dict, model_state_dict")
    torch.save([torch.zeros(2)], tmp_path / "list.pt")
    unreadable(tmp_path / "list.pt", "holds no weights by name; given: list")


def test_temperatures_and_buffers_do_not_matter(state):
    given = {**state, "attn_mask": torch.zeros(2, 2), "logit_scale": state["logit_scale"].reshape(1)}
    fitted = fit(given, state, where=Path("x"), architecture="tiny")
    assert (fitted["logit_scale"].shape, set(fitted)) == ((), set(state))
    del given["logit_scale"]
    assert same(fit(given, state, where=Path("x"), architecture="tiny"), state)


def test_missing_and_left_over_tensors_are_named(state):
    given = {**state, "extra.weight": state["visual.proj"]}
    del given["ln_final.weight"], given["ln_final.bias"]
    pattern = r"ln_final.weight is missing \(2 are\); extra.weight is not in the model \(1 are not\)"
    refuses(pattern, fit, given, state, where=Path("x"), architecture="tiny", error=ModelError)


def test_equal_weights_give_equal_bytes(tmp_path):
    """The library's own order of the metadata changes from one call to the next."""
    state, said = torch.nn.Linear(5, 3).state_dict(), {"format": "pt", "b": "\u00e9", "a": "1", "c": "{}"}
    assert len({save(state, metadata=said) for _ in range(20)}) > 1
    files = {b"".join(packed(state, dict(order))) for order in permutations(said.items())}
    assert len(files) == 1
    path = tmp_path / "model.safetensors"
    path.write_bytes(files.pop())
    assert same(read_checkpoint(path).tensors, state)
    with safe_open(path, framework="pt") as file:
        assert dict(file.metadata()) == said
