"""Each recipe trains on real photographs, on networks of both libraries: what it moves and what it leaves."""

import json
from dataclasses import replace

import numpy as np
import open_clip
import pytest
import torch
import transformers

from counterfoil.benchmarks.training_files import read as read_data
from counterfoil.models import checkpoint, registry
from counterfoil.train import detectors
from counterfoil.train.loop import fit
from counterfoil.train.objectives import with_heads
from counterfoil.train.optim import trained_parameters as trained_of
from counterfoil.train.recipes import RECIPES, read
from tiny_families import save_words

TINY = {
    "embed_dim": 16,
    "vision_cfg": {"image_size": 32, "patch_size": 16, "width": 32, "layers": 1, "head_width": 16},
    "text_cfg": {"context_length": 77, "vocab_size": 49408, "width": 32, "heads": 2, "layers": 1},
}
TRAINED = [name for name in RECIPES if name != "detector"]


@pytest.fixture(scope="module")
def photographs(shared_data):
    """Twelve photographs and their captions; the next photograph and its caption are the negatives."""
    whole = read_data(shared_data / "coco_mini")
    _, first = np.unique(whole.rows["image"], return_index=True)
    rows = whole.select(np.sort(first)[:12])
    image, caption = rows.rows["image"], rows.rows["caption"]
    more = {
        "negative_image": np.roll(image, 1),
        "negative_caption": np.roll(caption, 1),
        # Another caption of the same photograph stands for a generated one.
        "generated_caption": caption + 1,
        "generated_image": image,
    }
    return replace(rows, rows={**rows.rows, **more})


def of_open_clip(folder):
    (folder / "tiny-photographs.json").write_text(json.dumps(TINY))
    open_clip.add_model_config(folder)
    return registry.backbone("open-clip:tiny-photographs")


def of_transformers(folder):
    layers = {"hidden_size": 32, "intermediate_size": 64, "num_hidden_layers": 1, "num_attention_heads": 2}
    # Words of the tiny tokenizer in a text tower that is otherwise CLIP's.
    config = transformers.CLIPConfig(
        text_config={**layers, "vocab_size": 40, "bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0},
        vision_config={**layers, "image_size": 32, "patch_size": 16},
        projection_dim=16,
    )
    transformers.CLIPModel(config).save_pretrained(folder)
    transformers.CLIPImageProcessor(size={"shortest_edge": 32}, crop_size=32).save_pretrained(folder)
    save_words(folder)
    return registry.backbone(f"hf:{folder}")


LIBRARIES = {"open_clip": of_open_clip, "transformers": of_transformers}


def few_steps(name, rows):
    """The recipe with its own values, but for a few steps of few rows that must show in fp32."""
    return read(name, steps=2, batch_size=rows, lr=1e-3, warmup=0, validate_every=2)


def trains(backbone, recipe, data, out):
    """Train, and check what moved, what stayed, and that the checkpoint answers as the network does."""
    backbone = with_heads(backbone, recipe)
    before = {name: item.detach().clone() for name, item in backbone.network.named_parameters()}
    moves = {name for stage in recipe.staged() for name, _ in trained_of(backbone.network, stage)}
    fitted = fit(backbone, recipe, data, validation=data, out=out, device="cpu")
    assert fitted.history[-1]["step"] == 2 * len(recipe.staged())
    assert all(np.isfinite(value) for entry in fitted.history for value in entry.values())
    after = dict(backbone.network.named_parameters())
    moved = {name for name in before if not torch.equal(before[name], after[name])}
    assert moved <= moves
    # Some never see a gradient in so few words (rare tokens do, places no caption reaches do not).
    assert len(moved) >= 0.9 * len(moves)
    again = checkpoint.read(out)
    pixels = backbone.pixels([backbone.preparation(data.images[int(data.rows["image"][0])].decode())])
    tokens = backbone.tokens(["a red cat on the mat"])
    with torch.no_grad():
        ours, theirs = backbone.network.eval()(pixels, tokens), again.network.eval()(pixels, tokens)
    torch.testing.assert_close(ours.images.points, theirs.images.points)
    torch.testing.assert_close(ours.texts.points, theirs.texts.points)


@pytest.mark.parametrize(
    ("name", "library"),
    [
        *((name, "open_clip") for name in TRAINED),
        # What a recipe asks of a network: its points, several vectors, spreads.
        *((name, "transformers") for name in ("coco", "pvse", "pcme")),
        *(
            pytest.param(name, "transformers", marks=pytest.mark.slow)
            for name in TRAINED
            if name not in ("coco", "pvse", "pcme")
        ),
    ],
)
def test_every_recipe_trains_small_networks(name, library, photographs, tmp_path):
    torch.manual_seed(0)
    (tmp_path / "start").mkdir()
    trains(LIBRARIES[library](tmp_path / "start"), few_steps(name, 6), photographs, tmp_path / "ckpt")


@pytest.mark.parametrize("library", LIBRARIES)
def test_detectors_train(library, photographs, tmp_path):
    (tmp_path / "start").mkdir()
    recipe = replace(RECIPES["detector"], batch_size=4, epochs=2)
    backbone = LIBRARIES[library](tmp_path / "start")
    fitted = detectors.fit(backbone, recipe, photographs, out=tmp_path / "ckpt", device="cpu")
    assert [len(fitted.history[side]) for side in ("image", "caption")] == [1, 2]
    assert checkpoint.facts(tmp_path / "ckpt")["recipe"]["name"] == "detector"
