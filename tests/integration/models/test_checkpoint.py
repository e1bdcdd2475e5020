"""Checkpoint folders: what was saved is what is read, and answers the same."""

import json
import resource
import shutil
from contextlib import contextmanager

import numpy as np
import open_clip
import pytest
import torch
from safetensors.torch import load_file, save_file

from contracts import forms
from counterfoil import catalog
from counterfoil.errors import InputError, MissingExtraError, ModelError, StorageError
from counterfoil.models import checkpoint, hf_loading, pcme, recurrent, registry
from counterfoil.models.base import Embedder, Options
from embedded import embedded, forward
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
    return [each.detach().numpy() for each in parts if each is not None]


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_the_same_bits_after_saving(kind, backbones, tmp_path, drawn_images, captions):
    before = backbones(kind)
    checkpoint.save(tmp_path / "ckpt", before, FACTS)
    torch.manual_seed(99)
    after = checkpoint.read(tmp_path / "ckpt")
    assert after.card == json.loads(json.dumps(before.card))
    first, second = (answered(each, drawn_images, captions) for each in (before, after))
    assert len(first) == len(second) >= 3
    for one, other in zip(first, second, strict=True):
        assert one.tobytes() == other.tobytes()
    assert checkpoint.facts(tmp_path / "ckpt") == FACTS
    # And saved again: the same weights by the same names.
    checkpoint.save(tmp_path / "again", after, FACTS)
    assert (tmp_path / "again" / "card.json").read_bytes() == (tmp_path / "ckpt" / "card.json").read_bytes()


@pytest.mark.parametrize("kind", ["open-clip", "siglip", "small", "pvse", "pcme"])
def test_a_checkpoint_is_an_embedder(kind, backbones, tmp_path, drawn_images, captions):
    before = backbones(kind)
    checkpoint.save(tmp_path, before, {})
    scorer = catalog.scorer(str(tmp_path), CPU)
    assert isinstance(scorer, Embedder)
    assert scorer.identity.weights == json.loads((tmp_path / "card.json").read_text())["weights"]
    network = before.network.eval()
    with torch.inference_mode():
        images, texts = (pcme.rows(e).numpy() for e in forward(before, drawn_images, captions)[:2])
    found = embedded(scorer, drawn_images, 4, "images"), embedded(scorer, captions, 3, "captions")
    assert abs(found[0] - images).max() <= 1e-5 * max(1.0, abs(images).max())
    assert abs(found[1] - texts).max() <= 1e-5 * max(1.0, abs(texts).max())
    how = network.comparison()
    exact = (
        (texts[:10] * images[: len(texts[:10])]).sum(axis=1)
        if how is None
        else how.pairs(texts[:10], images[: len(texts[:10])])
    )
    np.testing.assert_allclose(scorer.compare(texts[:10], images[: len(texts[:10])]), exact, atol=1e-6)
    assert all(length > 0 for length in scorer.lengths(captions))


def test_weights_go_by_the_librarys_names(backbones, tmp_path, captions, drawn_images):
    """open_clip and transformers read what we write."""
    checkpoint.save(tmp_path / "clip", backbones("open-clip"), {})
    scorer = catalog.scorer(f"open-clip:tiny/{tmp_path / 'clip' / 'model.safetensors'}", CPU)
    ours = checkpoint.load(str(tmp_path / "clip"), CPU)
    assert abs(embedded(scorer, captions) - embedded(ours, captions)).max() <= 1e-6
    # The file says which activation it was trained with.
    with pytest.raises(ModelError, match=r"trained with GELU .*, tiny-quickgelu builds QuickGELU"):
        catalog.scorer(f"open-clip:tiny-quickgelu/{tmp_path / 'clip' / 'model.safetensors'}", CPU)

    checkpoint.save(tmp_path / "hf", backbones("hf"), {})
    folder = tmp_path / "plain"
    shutil.copytree(tmp_path / "hf" / "processor", folder)
    shutil.copy(tmp_path / "hf" / "model.safetensors", folder)
    scorer, ours = catalog.scorer(f"hf:{folder}", CPU), checkpoint.load(str(tmp_path / "hf"), CPU)
    assert abs(embedded(scorer, captions) - embedded(ours, captions)).max() <= 1e-5


def test_a_checkpoint_needs_nothing_but_itself(clip_folder, tmp_path, captions):
    start = tmp_path / "start"
    shutil.copytree(clip_folder, start)
    backbone = registry.backbone(f"hf:{start}")
    checkpoint.save(tmp_path / "ckpt", backbone, {})
    shutil.rmtree(start)
    shutil.move(tmp_path / "ckpt", tmp_path / "elsewhere")
    found = checkpoint.load(str(tmp_path / "elsewhere"), CPU)
    assert len(embedded(found, captions)) == len(captions)


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
    found = checkpoint.load(str(tmp_path / "ckpt"), CPU)
    assert len(embedded(found, captions)) == len(captions)


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
    for one, other in zip(expected, answered(checkpoint.read(tmp_path), drawn_images, captions), strict=True):
        assert one.tobytes() == other.tobytes()


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
    for one, other in zip(expected, answered(checkpoint.read(tmp_path), drawn_images, captions), strict=True):
        assert one.tobytes() == other.tobytes()


def test_tied_weights_are_kept(backbones, tmp_path):
    backbone = backbones("open-clip")
    tied = backbone.network.model.visual.ln_pre.weight
    backbone.network.model.visual.ln_post.weight = tied
    checkpoint.save(tmp_path, backbone, {})
    found = checkpoint.read(tmp_path).network.model.visual
    assert torch.equal(found.ln_pre.weight, tied)
    assert torch.equal(found.ln_post.weight, tied)


# -- what is refused -----------------------------------------------------------------------------------------


@pytest.fixture
def saved(backbones, tmp_path):
    checkpoint.save(tmp_path / "ckpt", backbones("open-clip"), FACTS)
    return tmp_path / "ckpt"


def refused(folder, pattern, error=ModelError):
    for ask in (checkpoint.read, lambda folder: checkpoint.load(str(folder), CPU)):
        refuses(pattern, ask, folder, error=error)


def test_folders_that_hold_no_checkpoint(tmp_path, saved):
    refused(tmp_path / "nowhere", "nowhere: no such checkpoint folder; allowed: a folder with model.safet")
    (tmp_path / "empty").mkdir()
    refused(tmp_path / "empty", r"empty: not a checkpoint folder; given: no card.json and no model.safeten")
    (saved / "model.safetensors").unlink()
    refused(saved, "ckpt: not a checkpoint folder; given: no model.safetensors")


@pytest.mark.parametrize("keep", [0, -1000])
def test_weights_that_are_cut_off(keep, saved):
    path = saved / "model.safetensors"
    path.write_bytes(path.read_bytes()[:keep])
    refused(saved, r"model\.safetensors: not a readable safetensors file.*is the file cut off\?")
    refuses("not a readable safetensors", checkpoint.facts, saved, error=ModelError)


def test_damaged_weights(saved):
    path = saved / "model.safetensors"
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(bytes(data))
    refused(saved, r"model\.safetensors: the weights are not those that were saved; is the file damaged")


def test_weights_of_another_model(saved, backbones, tmp_path):
    checkpoint.save(tmp_path / "other", registry.backbone("open-clip:tiny-wide"), {})
    shutil.copy(tmp_path / "other" / "model.safetensors", saved)
    refused(
        saved,
        r"model\.safetensors: not a checkpoint of the model that card.json describes \(open-clip:tiny\); "
        "given: positional_embedding is 77x96 instead of 77x48",
    )
    # Of the same shapes, and yet not of that card.
    checkpoint.save(tmp_path / "quick", registry.backbone("open-clip:tiny-quickgelu"), {})
    shutil.copy(tmp_path / "quick" / "model.safetensors", saved)
    refused(saved, "ckpt: card.json is not the card of these weights; is model.safetensors that of")


def test_plain_weights_beside_a_card(saved):
    save_file(load_file(saved / "model.safetensors"), saved / "model.safetensors")
    refused(saved, "card.json is not the card of these weights")


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
    refuses("not valid JSON", catalog.scorer, str(saved), CPU, error=InputError)


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
