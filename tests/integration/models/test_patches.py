"""Features of patches against what each family's pooling gives when it is made to look at one patch alone."""

import numpy as np
import open_clip
import pytest
import torch
from transformers import AutoImageProcessor, CLIPModel, SiglipModel

from counterfoil import catalog
from counterfoil.benchmarks import Caption, Image, PixelSource
from counterfoil.engine.explain import PairToExplain, explain, methods_of, words_of
from counterfoil.models import hf
from counterfoil.models import open_clip as scorers
from counterfoil.models.base import Options
from counterfoil.models.dual import box_of
from counterfoil.models.images import Resized
from counterfoil.models.networks import network_scorer
from counterfoil.models.small import Sizes, backbone
from embedded import noise
from tiny_families import save_family

CPU = Options(device="cpu")


def pictures():
    return noise((32, 32), (40, 64), seed=5)


def unit(rows):
    return torch.nn.functional.normalize(rows.detach().float(), dim=-1).numpy()


def patches_of(scorer):
    images = pictures()
    found = list(scorer.patches.embed_patches([images[:1], images[1:]]))
    return [each for batch in found for each in batch]


def test_transformers_clip(clip_folder):
    model, processor = (of.from_pretrained(clip_folder) for of in (CLIPModel, AutoImageProcessor))
    found = patches_of(hf.load(str(clip_folder), CPU))
    for image, one in zip(pictures(), found, strict=True):
        assert one.vectors.shape == (4, 4, 24)
        pixels = processor(images=image.decode(), return_tensors="pt")["pixel_values"]
        states = model.vision_model(pixels, output_hidden_states=True).hidden_states[-2][0, 1:]
        layer = model.vision_model.encoder.layers[-1]
        for place in range(16):
            # An attention over one place gives that place's value whatever is asked.
            normed = layer.layer_norm1(states[place])[None, None]
            alone = layer.self_attn(normed, attention_mask=None)[0][0, 0]
            expected = unit(model.visual_projection(model.vision_model.post_layernorm(alone)))
            np.testing.assert_allclose(one.vectors[place // 4, place % 4], expected, atol=1e-5)
    assert found[0].box == (0, 0, 1, 1)
    # Of 64 x 40 pixels the model sees the middle 40 x 40.
    np.testing.assert_allclose(found[1].box, (12 / 64, 0, 52 / 64, 1))


def test_siglip(siglip_folder):
    model, processor = (of.from_pretrained(siglip_folder) for of in (SiglipModel, AutoImageProcessor))
    for image, one in zip(pictures(), patches_of(hf.load(str(siglip_folder), CPU)), strict=True):
        pixels = processor(images=image.decode(), return_tensors="pt")["pixel_values"]
        states = model.vision_model(pixels).last_hidden_state[0]
        head = model.vision_model.head
        for place in (0, 5, 15):
            expected = unit(head(states[place][None, None])[0])
            np.testing.assert_allclose(one.vectors[place // 4, place % 4], expected, atol=1e-5)
        assert one.box == (0, 0, 1, 1)


def test_open_clip(tiny_model, checkpoint):
    scorer, visual = scorers.load(f"tiny/{checkpoint('tiny')}", CPU), tiny_model("tiny").visual
    transform = open_clip.transform.image_transform(visual.image_size, is_train=False)
    rows, columns = visual.grid_size
    for image, one in zip(pictures(), patches_of(scorer), strict=True):
        assert one.vectors.shape[:2] == (rows, columns)
        with torch.inference_mode():
            states = visual._embeds(transform(image.decode())[None])
            for block in visual.transformer.resblocks[:-1]:
                states = block(states)
            block = visual.transformer.resblocks[-1]
            for place in range(0, rows * columns, 5):
                normed = block.ln_1(states[:, 1 + place : 2 + place])
                alone = block.attn(normed, normed, normed, need_weights=False)[0][0, 0]
                expected = unit(visual.ln_post(alone) @ visual.proj)
                np.testing.assert_allclose(one.vectors[divmod(place, columns)], expected, atol=1e-5)
    # A tower that pools otherwise has no such patches.
    assert scorers.load(f"tiny-average/{checkpoint('tiny-average')}", CPU).patches is None

    # Heatmaps are cosines of patches with each word by itself and with the caption, remembered models too.
    lazily = catalog.scorer(f"open-clip:tiny/{checkpoint('tiny')}", CPU, memory=checkpoint("tiny").parent)
    lazily = catalog.scorer(f"open-clip:tiny/{checkpoint('tiny')}", CPU, memory=checkpoint("tiny").parent)
    image, caption = pictures()[1], Caption("c", "a red cat")
    pair = PairToExplain(image, caption, words_of("a red cat"))
    for each in (scorer, lazily):
        assert methods_of(each) == ("patches", "occlusion")
        (found,) = explain(each, [pair], methods=["patches"])
        texts = [Caption(str(k), text) for k, text in enumerate(("a red cat", "a", "red", "cat"))]
        captions = np.concatenate(list(scorer.embed_captions([texts])))
        expected = patches_of(scorer)[1].vectors @ captions.T
        (heat,) = found.heats
        np.testing.assert_allclose(heat.whole, expected[..., 0], atol=1e-5)
        np.testing.assert_allclose(heat.parts, expected[..., 1:].transpose(2, 0, 1), atol=1e-5)
        np.testing.assert_allclose(heat.box, (12 / 64, 0, 52 / 64, 1))


def test_a_small_network():
    small = backbone(["a red star"], sizes=Sizes(picture=32, channels=(8, 16)))
    trained = network_scorer(small, CPU, where="small")
    even = [Image("even", PixelSource(np.full((32, 32, 3), 90, np.uint8)))]
    (one,) = next(trained.patches.embed_patches([even]))
    assert one.vectors.shape == (4, 4, 128)
    np.testing.assert_allclose(np.linalg.norm(one.vectors, axis=-1), 1, atol=1e-5)
    cells = small.network.visual(small.pixels([np.full((32, 32, 3), 90, np.uint8)])).places
    expected = unit(small.network.visual.projection(torch.cat([cells, cells], dim=-1)))[0]
    np.testing.assert_allclose(one.vectors.reshape(16, -1), expected, atol=1e-5)


def test_what_has_no_patches_says_so(tmp_path):
    assert hf.load(str(save_family("align", tmp_path)), CPU).patches is None
    assert box_of(Resized(10), (30, 20)) == pytest.approx((1 / 6, 0, 5 / 6, 1))
