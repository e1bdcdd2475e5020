"""Dual encoders of open_clip: equal to the library's own towers, whatever the batch or workers."""

import json

import numpy as np
import open_clip
import pytest
import torch
from hypothesis import given, strategies as st
from open_clip.transformer import LayerScale
from safetensors.torch import save_file

from counterfoil.errors import ModelError
from counterfoil.models import clip_fast, open_clip as ours, runtime
from counterfoil.models.base import Embedder, Options
from counterfoil.models.clip_fast import FastTextTower, grow, image_tower, text_tower
from embedded import embedded
from refusals import refuses

pytestmark = pytest.mark.usefixtures("tiny_architectures")

CPU = Options(device="cpu")


def load(name, path, **options):
    return ours.load(f"{name}/{path}", Options(device="cpu", **options))


def by_the_library(model, images, texts):
    """What open_clip gives when called as its documentation shows: full-length texts, its own transform."""
    transform = open_clip.transform.image_transform(model.visual.image_size, is_train=False)
    with torch.inference_mode():
        pixels = torch.stack([transform(image.decode()) for image in images])
        return model.encode_image(pixels, normalize=True).numpy(), model.encode_text(
            open_clip.SimpleTokenizer()(texts), normalize=True
        ).numpy()


@pytest.mark.parametrize(
    ("name", "images", "texts"),
    [
        ("tiny", "fast", "fast, cut to the longest caption"),
        ("tiny-quickgelu", "fast", "fast, cut to the longest caption"),
        ("tiny-custom", "fast", "fast, cut to the longest caption"),
        # Both ways of attention, last token pooled: what comes after a caption matters, so nothing is cut.
        ("tiny-last", "fast", "library"),
        # All patches pooled: no token can be left out of the last block.
        ("tiny-average", "library", "fast, cut to the longest caption"),
    ],
)  # fmt: skip
def test_equals_the_librarys_towers(name, images, texts, checkpoint, tiny_model, drawn_images, captions):
    model = load(name, checkpoint(name))
    assert isinstance(model, Embedder)
    assert (model.provenance["image tower"], model.provenance["text tower"]) == (images, texts)
    expected = by_the_library(tiny_model(name), drawn_images, [str(caption.text) for caption in captions])
    result = next(model.embed_images([drawn_images])), next(model.embed_captions([captions]))
    for embeddings, exact in zip(result, expected, strict=True):
        assert embeddings.dtype == np.float32
        assert abs(embeddings - exact).max() <= 1e-5


def test_gelu_and_quickgelu_are_distinguished(checkpoint, captions):
    # The same weights under both activations; were the fast towers to mix them up, nothing else would notice.
    path = checkpoint("tiny-quickgelu")
    plain, quick = load("tiny-gelu", path), load("tiny-quickgelu", path)
    embedded = [next(model.embed_captions([captions])) for model in (plain, quick)]
    assert abs(embedded[0] - embedded[1]).max() > 1e-3
    assert plain.identity.options["activation"] == "gelu"
    assert plain.identity.options["trained_with"] == "quickgelu"
    assert quick.identity.options["activation"] == "quickgelu"
    assert quick.provenance["activation"] == "quickgelu: the checkpoint says so"
    assert "trained_with" not in quick.identity.options


def test_a_changed_library_is_noticed(checkpoint, monkeypatch):
    """Were open_clip to compute something else in the same structure, its own towers would be used."""
    monkeypatch.setattr(clip_fast, "QUICK", 1.6)
    result = load("tiny-quickgelu", checkpoint("tiny-quickgelu")).provenance
    assert (result["image tower"], result["text tower"]) == ("library", "library")


def test_pixels_are_bitwise_those_of_torchvision(checkpoint, tiny_model, photographs):
    model = load("tiny", checkpoint("tiny"))
    transform = open_clip.transform.image_transform((32, 32), is_train=False)
    of_openai = (open_clip.OPENAI_DATASET_MEAN, open_clip.OPENAI_DATASET_STD)
    mean, std = (torch.tensor(item).view(3, 1, 1) for item in of_openai)
    for image in photographs[:8]:
        pixels = torch.from_numpy(model.preparation(image.decode()).copy()).permute(2, 0, 1)
        assert torch.equal(pixels.float().div(255).sub(mean).div(std), transform(image.decode()))


def test_other_resize_modes_go_through_the_librarys_transform(
    tmp_path, tiny_model, tiny_architectures, drawn_images
):
    model = tiny_model("tiny")
    save_file(model.state_dict(), tmp_path / "open_clip_model.safetensors")
    how = {"resize_mode": "longest", "interpolation": "bilinear", "fill_color": 9}
    config = {"model_cfg": tiny_architectures["tiny"], "preprocess_cfg": {"size": [32, 32], **how}}
    (tmp_path / "open_clip_config.json").write_text(json.dumps(config))
    scorer = ours.load(f"local-dir:{tmp_path}", CPU)
    transform = open_clip.transform.image_transform((32, 32), is_train=False, **how)
    with torch.inference_mode():
        pixels = torch.stack([transform(image.decode()) for image in drawn_images])
        exact = model.encode_image(pixels, normalize=True)
    assert abs(embedded(scorer, drawn_images, 5, "images") - exact.numpy()).max() < 1e-5
    assert "longest" in scorer.identity.preprocessing


@pytest.mark.parametrize("native", [True, False])
def test_bf16_is_near_fp32(native, checkpoint, drawn_images, monkeypatch):
    monkeypatch.setattr(runtime, "_has_bf16", lambda torch: native)
    exact = next(load("tiny", checkpoint("tiny")).embed_images([drawn_images]))
    model = load("tiny", checkpoint("tiny"), precision="bf16")
    rough = next(model.embed_images([drawn_images]))
    assert rough.dtype == np.float32
    assert 0 < abs(exact - rough).max() < 0.1
    assert model.identity.precision == "bf16"
    assert model.identity.options.get("activations") == (None if native else "fp32")
    # Either way the fast towers were found to agree with the library's.
    assert model.provenance["image tower"] == "fast"


def refused(argument, pattern, options=CPU):
    return refuses(pattern, ours.load, str(argument), options, error=ModelError)


@pytest.mark.parametrize(
    ("argument", "pattern"),
    [
        ("ViT-B32/openai", "knows no such architecture; given: ViT-B32.*did you mean ViT-B-32"),
        ("/openai", r"knows no such architecture; given: \(empty\)"),
        ("ViT-B-32/opnai", "no such weights of this architecture; given: opnai.*did you mean openai"),
        ("ViT-B-32", "no such weights.*nothing after the architecture"),
        ("ViT-B-32/runs/best.pt", "no such checkpoint file; given: runs/best.pt; check the path"),
        ("ViT-B-32-quickgelu/openai", "its checkpoint is not here and cannot be downloaded; load it once"),
        ("ViT-B-32/openai", "use open-clip:ViT-B-32-quickgelu/openai, or open-clip:ViT-B-32-gelu/openai"),
        ("ViT-L-14/dfn2b", "open_clip knows this tag.*use open-clip:ViT-L-14-quickgelu/dfn2b, or"),
        ("local-dir:/nowhere/at/all", "its checkpoint cannot be loaded"),
    ],
)  # fmt: skip
def test_names_that_lead_nowhere(argument, pattern):
    refused(argument, pattern)


def test_where_nothing_tells_the_activation_the_name_must(tmp_path, tiny_model):
    """Whatever the file is called: what is in a name was guessed."""
    path = tmp_path / "negclip.pth"
    torch.save(tiny_model("tiny").state_dict(), path)
    said = refused(f"tiny/{path}", "nothing in this file says whether its weights were trained with Quick")
    for suffix in ("quickgelu", "gelu"):
        assert f"open-clip:tiny-{suffix}/{path}" in said
        result = load(f"tiny-{suffix}", path)
        assert result.identity.options["activation"] == suffix
        assert result.provenance["activation"] == f"{suffix}: asked for by name"
    # An architecture that open_clip has with one activation only leaves nothing to ask.
    torch.save(tiny_model("tiny-custom").state_dict(), path)
    assert load("tiny-custom", path).provenance["activation"] == "gelu: open_clip has no other"


@pytest.mark.parametrize("quick", [True, False])
def test_the_configuration_beside_open_clips_own_files_tells(quick, tmp_path, tiny_model):
    path = tmp_path / "open_clip_model.safetensors"
    save_file(tiny_model("tiny").state_dict(), path)
    config = tmp_path / "open_clip_config.json"
    config.write_text(json.dumps({"model_cfg": {"quick_gelu": True} if quick else {}}))
    right, wrong = ("tiny-quickgelu", "tiny") if quick else ("tiny", "tiny-quickgelu")
    assert "open_clip_config.json beside it" in load(right, path).provenance["activation"]
    refused(f"{wrong}/{path}", rf"open_clip_config\.json beside it says so\).*use open-clip:{right}/")
    # It speaks of the file that open_clip saved with it, and of no other.
    other = path.rename(tmp_path / "other.safetensors")
    refused(f"tiny/{other}", "nothing in this file says")
    config.write_text("[]")
    other.rename(path)
    refused(f"tiny/{path}", "is no configuration of open_clip")


@given(st.lists(st.lists(st.integers(0, 3), min_size=1, max_size=6), min_size=1, max_size=12))
def test_a_tree_gives_back_its_rows_and_shares_what_they_begin_with(rows):
    tree = grow(rows)
    for row, nodes, end in zip(rows, tree.nodes, tree.ends, strict=True):
        assert [tree.tokens[node] for node in nodes[: end + 1]] == row
        assert [tree.depths[node] for node in nodes[: end + 1]] == list(range(len(row)))
    # As many nodes as there are different beginnings, and each found where `first` says.
    assert len(tree.tokens) == len({tuple(row[:n]) for row in rows for n in range(1, len(row) + 1)})
    flat = [node for nodes in tree.nodes for node in nodes]
    assert [flat[place] for place in tree.first] == list(range(len(tree.tokens)))
    assert len({len(nodes) for nodes in tree.nodes}) == 1


@pytest.mark.parametrize(("end", "kept"), [(None, [4, 2, 9]), (2, [4, 2]), (7, [4])])
def test_texts_are_cut_at_their_end_mark(end, kept):
    # The highest id, the mark itself, or the first token where there is no mark: what the library pools.
    assert FastTextTower(end, None).cut([4, 2, 9, 9, 0, 0]) == kept


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("visual.pool_type", "avg"),
        ("visual.output_tokens", True),
        ("visual.transformer.resblocks.1.ls_1", LayerScale(64)),
        ("visual.transformer.resblocks.1.mlp.gelu", torch.nn.ReLU()),
        ("visual.transformer.resblocks.2.attn.add_zero_attn", True),
    ],
)
def test_other_image_towers_are_left_to_the_library(path, value, tiny_model):
    model = tiny_model("tiny")
    assert image_tower(model) is not None
    owner, _, name = path.rpartition(".")
    setattr(model.get_submodule(owner), name, value)
    assert image_tower(model) is None


@pytest.mark.parametrize("change", [
    lambda model: setattr(model, "text_pool_type", "last"),
    lambda model: model.attn_mask[3, 5].zero_(),
    lambda model: setattr(model, "attn_mask", None),
])  # fmt: skip
def test_texts_are_cut_only_under_a_causal_mask_and_pooled_at_the_end(change, tiny_model):
    model = tiny_model("tiny")
    assert text_tower(model) is not None
    change(model)
    assert text_tower(model) is None
