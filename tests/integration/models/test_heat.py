"""Heatmaps from the inside of tiny cross-encoders against a plain use of the library's models."""

from dataclasses import replace

import numpy as np
import open_clip
import pytest
import torch
import transformers
from transformers import AutoImageProcessor, CLIPModel, SiglipModel

from counterfoil import catalog
from counterfoil.benchmarks import Caption, Image, PixelSource
from counterfoil.engine.explain import PairToExplain, check_methods, explain, methods_of, words_of
from counterfoil.errors import InputError
from counterfoil.metrics.heatmaps import rollout
from counterfoil.models import hf, itm, open_clip as models
from counterfoil.models.base import Options
from counterfoil.models.dual import box_of
from counterfoil.models.images import Resized
from counterfoil.models.lazy import LazyPairModel, lazy
from counterfoil.models.networks import network_model
from counterfoil.models.small import Sizes, backbone
from embedded import noise
from refusals import refuses
from tiny_families import save_family

#: As many tokens as words in part, and words of several tokens.
TEXT = "a red cat on mats"


def loaded(folder, protocol="", prompt="{}"):
    settings = {"protocol": protocol} if protocol else {}
    return itm.load(str(folder), Options(device="cpu", settings=settings, prompt=prompt))


def picture():
    return replace(noise((32, 48), seed=7)[0], id="i")


def asked():
    return PairToExplain(picture(), Caption("c", TEXT), words_of(TEXT))


def tokens_of(tokenizer):
    """The positions of each word's tokens, by counting the pieces of one word after another."""
    result, at = [], 1
    for word in TEXT.split():
        count = len(tokenizer(word, add_special_tokens=False)["input_ids"])
        result.append(list(range(at, at + count)))
        at += count
    return result


def weighted(attention):
    """Attention times the positive part of its own gradient, the mean over heads."""
    return (attention * attention.grad.clamp(min=0))[0].mean(dim=0).detach().numpy()


def watched(module, kept):
    """A hook that keeps the attention of every call of a module, with its gradient."""

    def watch(module, args, output):
        output[1].retain_grad()
        kept.append(output[1])

    return module.register_forward_hook(watch)


def eager(kind, folder):
    return getattr(transformers, kind).from_pretrained(folder, attn_implementation="eager").eval()


def inputs_of(folder):
    """Pixels and words as the library's own processors make them."""
    image = transformers.AutoImageProcessor.from_pretrained(folder)(picture().decode(), return_tensors="pt")
    return image, transformers.AutoTokenizer.from_pretrained(folder)(TEXT, return_tensors="pt")


def test_vilt(matchers):
    scorer = loaded(matchers / "vilt")
    assert methods_of(scorer) == ("rollout", "occlusion")
    (result,) = explain(scorer, [asked()])
    by_name = {heat.method: heat for heat in result.heats}
    assert list(by_name) == ["rollout"]

    model = eager("ViltForImageAndTextRetrieval", matchers / "vilt")
    inputs, words = inputs_of(matchers / "vilt")
    # Patches in their own order: their embedding and place by hand, row by row.
    embeddings = model.vilt.embeddings
    with torch.no_grad():
        grid = embeddings.patch_embeddings(inputs["pixel_values"])
        places = embeddings.position_embeddings[:, 1:].transpose(1, 2).view(1, -1, 4, 4)
        resize = {"size": grid.shape[2:], "mode": "bilinear", "align_corners": True}
        places = torch.nn.functional.interpolate(places, **resize)
        patches = (grid + places).flatten(2).transpose(1, 2)
        first = embeddings.cls_token + embeddings.position_embeddings[:, :1]
        output = model.vilt(
            input_ids=words["input_ids"], attention_mask=words["attention_mask"],
            image_embeds=torch.cat([first, patches], dim=1), pixel_mask=torch.ones(1, 1 + patches.shape[1]),
            output_attentions=True,
        )  # fmt: skip
    rows, columns = grid.shape[2:]
    assert (rows, columns) == (4, 6)
    length = words["input_ids"].shape[1]
    rolled = rollout([layer[0].numpy() for layer in output.attentions])
    own = rolled[0, length + 1 :].reshape(rows, columns)
    np.testing.assert_allclose(by_name["rollout"].whole, own, atol=1e-6)
    groups = tokens_of(scorer.tokens.tokenizer)
    assert max(map(len, groups)) > 1
    for part, own in zip(by_name["rollout"].parts, groups, strict=True):
        np.testing.assert_allclose(part.ravel(), rolled[own, length + 1 :].mean(axis=0), atol=1e-6)


@pytest.mark.parametrize("protocol", ["itm", "retrieval"])
def test_blip(matchers, protocol):
    scorer = loaded(matchers / "blip", protocol)
    assert methods_of(scorer) == ("grad-cam", "occlusion")
    (result,) = explain(scorer, [asked()])
    (heat,) = result.heats

    model = transformers.BlipForImageTextRetrieval.from_pretrained(matchers / "blip").eval()
    inputs, words = inputs_of(matchers / "blip")
    ids = words["input_ids"].clone()
    if protocol == "retrieval":
        ids[:, 0] = model.config.text_config.vocab_size - 1
    # The whole model with all of its gradients.
    layer, seen = model.text_encoder.encoder.layer[0].crossattention.self, []
    handle = watched(layer, seen)
    states = model.vision_model(inputs["pixel_values"]).last_hidden_state
    seen_by = {"encoder_hidden_states": states}
    seen_by["encoder_attention_mask"] = torch.ones(states.shape[:2], dtype=torch.long)
    last = model.text_encoder(input_ids=ids, attention_mask=words["attention_mask"], **seen_by)
    last = last.last_hidden_state
    model.itm_head(last[:, 0])[0, 1].backward()
    handle.remove()
    cam = weighted(seen[0])[:, 1:]
    np.testing.assert_allclose(heat.whole.ravel(), cam[1:-1].mean(axis=0), atol=1e-6)
    assert heat.whole.shape == (4, 4)
    assert heat.whole.any()
    for part, own in zip(heat.parts, tokens_of(scorer.tokens.tokenizer), strict=True):
        np.testing.assert_allclose(part.ravel(), cam[own].mean(axis=0), atol=1e-6)
    # Nothing is left behind: scores are as before, and no hook stays.
    assert not scorer.matcher.model.text_encoder.encoder.layer[0].crossattention.self._forward_hooks
    pair = (picture(), Caption("c", TEXT))
    assert next(scorer.score_pairs([[pair]]))[0] == pytest.approx(result.score, rel=1e-4)


def test_flava(matchers):
    scorer = loaded(matchers / "flava")
    assert methods_of(scorer) == ("rollout", "occlusion")
    assert methods_of(loaded(matchers / "flava", "contrastive")) == ("occlusion",)
    (result,) = explain(scorer, [asked()])
    (rolled,) = result.heats
    image, words = inputs_of(matchers / "flava")
    model = transformers.FlavaForPreTraining.from_pretrained(matchers / "flava").eval().flava
    with torch.no_grad():
        output = model(**image, **words)
        patches = model.image_to_mm_projection(output.image_output.hidden_states[-1])
        tokens = model.text_to_mm_projection(output.text_output.hidden_states[-1])
        together = model.multimodal_model(torch.cat([patches, tokens], dim=1), output_attentions=True)
    # A class token of the pair, one of the picture, sixteen patches, then the words.
    every = rollout([layer[0].numpy() for layer in together.attentions])
    np.testing.assert_allclose(rolled.whole, every[0, 2:18].reshape(4, 4), atol=1e-6)
    for row, own in zip(rolled.parts, tokens_of(scorer.tokens.tokenizer), strict=True):
        np.testing.assert_allclose(row.ravel(), every[[18 + i for i in own], 2:18].mean(axis=0), atol=1e-6)


class TestRegions:
    #: Two boxes that overlap, and one that lies apart.
    BOXES = np.array([[0, 0, 0.5, 0.5], [0.25, 0.25, 0.75, 0.75], [0.75, 0, 1, 1]], np.float32)

    def model(self, matchers, tmp_path, name, *, boxes=True):
        features = np.random.default_rng(3).normal(size=(3, 12)).astype(np.float32)
        (tmp_path / "regions").mkdir()
        boxes = {"boxes": self.BOXES} if boxes else {}
        np.savez(tmp_path / "regions" / "i.npz", features=features, **boxes)
        return itm.load_regions(
            str(matchers / name), Options(device="cpu", settings={"features": str(tmp_path / "regions")})
        ), torch.from_numpy(features)[None]

    def painted(self, numbers):
        """The largest of the regions over each cell, cell by cell."""
        grid = np.zeros((24, 24))
        middles = (np.arange(24) + 0.5) / 24
        for number, (left, top, right, bottom) in zip(numbers, self.BOXES, strict=True):
            inside = np.outer((top <= middles) & (middles < bottom), (left <= middles) & (middles < right))
            grid[inside] = np.maximum(grid[inside], number)
        return grid

    def test_lxmert(self, matchers, tmp_path):
        scorer, features = self.model(matchers, tmp_path, "lxmert")
        (result,) = explain(scorer, [asked()])
        (heat,) = result.heats
        assert heat.method == "grad-cam"
        model = transformers.LxmertForPreTraining.from_pretrained(matchers / "lxmert").eval()
        words = scorer.tokens.tokenizer(TEXT, return_tensors="pt")
        given = {"visual_feats": features, "visual_pos": torch.tensor(self.BOXES)[None]}
        output = model(**words, **given, output_attentions=True)
        attention = output.cross_encoder_attentions[0]
        (gradient,) = torch.autograd.grad(output.cross_relationship_score[0, 1], attention)
        cam = (attention * gradient.clamp(min=0))[0].mean(dim=0).detach().numpy()
        expected = np.mean([self.painted(row) for row in cam[1:-1]], axis=0)
        np.testing.assert_allclose(heat.whole, expected, atol=1e-7)
        assert heat.whole.any()

    def test_visual_bert(self, matchers, tmp_path):
        scorer, features = self.model(matchers, tmp_path, "visual_bert")
        (result,) = explain(scorer, [asked()])
        (rolled,) = result.heats
        model = transformers.VisualBertForPreTraining.from_pretrained(matchers / "visual_bert").eval()
        words = scorer.tokens.tokenizer(TEXT, return_tensors="pt")
        with torch.no_grad():
            output = model.visual_bert(**words, visual_embeds=features, output_attentions=True)
        length = words["input_ids"].shape[1]
        every = rollout([layer[0].numpy() for layer in output.attentions])
        np.testing.assert_allclose(rolled.whole, self.painted(every[0, length:]), atol=1e-6)
        for part, own in zip(rolled.parts, tokens_of(scorer.tokens.tokenizer), strict=True):
            np.testing.assert_allclose(part, self.painted(every[own, length:].mean(axis=0)), atol=1e-6)

    def test_regions_without_boxes(self, matchers, tmp_path):
        model, _ = self.model(matchers, tmp_path, "visual_bert", boxes=False)
        refuses("have no boxes, so nothing says where", explain, model, [asked()])


def test_a_model_that_is_remembered_has_its_heatmaps(matchers, tmp_path):
    def found(name, protocol=""):
        options = Options(device="cpu", settings={"protocol": protocol} if protocol else {})
        return lazy("itm", str(matchers / name), options, itm.load, tmp_path / "memory")

    first, second = found("vilt"), found("vilt")
    assert isinstance(second, LazyPairModel)
    assert methods_of(second) == methods_of(first)
    ours, theirs = (explain(item, [asked()])[0].heats[0] for item in (second, first))
    np.testing.assert_array_equal(ours.whole, theirs.whole)
    np.testing.assert_array_equal(ours.parts, theirs.parts)
    # One that has none says so, remembered or not.
    assert found("blip", "itc").heats is found("blip", "itc").heats is None
    assert methods_of(found("blip", "itc")) == ("occlusion",)
    with pytest.raises(InputError, match="grad-cam needs the cross-attention of BLIP"):
        check_methods(found("blip", "itc"), ["grad-cam"])


def test_prompts_move_words_and_cut_captions_have_none(matchers):
    model = loaded(matchers / "vilt", prompt="a photo of {}")
    whole, parts = model.heats.maps("rollout", picture(), Caption("c", "red cat"), [(0, 3), (4, 7)])
    plain = loaded(matchers / "vilt")
    text = "a photo of red cat"
    again, inner = plain.heats.maps("rollout", picture(), Caption("c", text), [(11, 14), (15, 18)])
    np.testing.assert_allclose(whole, again)
    np.testing.assert_allclose(parts, inner)
    _, far = plain.heats.maps("rollout", picture(), Caption("c", "cat " * 60 + "dog"), [(0, 3), (240, 243)])
    assert far[0].any()
    assert not far[1].any()


CPU = Options(device="cpu")


def pictures():
    return noise((32, 32), (40, 64), seed=5)


def unit_rows(rows):
    return torch.nn.functional.normalize(rows.detach().float(), dim=-1).numpy()


def patches_of(model):
    images = pictures()
    result = list(model.patches.embed_patches([images[:1], images[1:]]))
    return [item for batch in result for item in batch]


def test_transformers_clip(clip_folder):
    model, processor = (of.from_pretrained(clip_folder) for of in (CLIPModel, AutoImageProcessor))
    result = patches_of(hf.load(str(clip_folder), CPU))
    for image, one in zip(pictures(), result, strict=True):
        assert one.vectors.shape == (4, 4, 24)
        pixels = processor(images=image.decode(), return_tensors="pt")["pixel_values"]
        states = model.vision_model(pixels, output_hidden_states=True).hidden_states[-2][0, 1:]
        layer = model.vision_model.encoder.layers[-1]
        for place in range(16):
            # An attention over one place gives that place's value whatever is asked.
            normed = layer.layer_norm1(states[place])[None, None]
            alone = layer.self_attn(normed, attention_mask=None)[0][0, 0]
            expected = unit_rows(model.visual_projection(model.vision_model.post_layernorm(alone)))
            np.testing.assert_allclose(one.vectors[place // 4, place % 4], expected, atol=1e-5)
    assert result[0].box == (0, 0, 1, 1)
    # Of 64 x 40 pixels the model sees the middle 40 x 40.
    np.testing.assert_allclose(result[1].box, (12 / 64, 0, 52 / 64, 1))


def test_siglip(siglip_folder):
    model, processor = (of.from_pretrained(siglip_folder) for of in (SiglipModel, AutoImageProcessor))
    for image, one in zip(pictures(), patches_of(hf.load(str(siglip_folder), CPU)), strict=True):
        pixels = processor(images=image.decode(), return_tensors="pt")["pixel_values"]
        states = model.vision_model(pixels).last_hidden_state[0]
        head = model.vision_model.head
        for place in (0, 5, 15):
            expected = unit_rows(head(states[place][None, None])[0])
            np.testing.assert_allclose(one.vectors[place // 4, place % 4], expected, atol=1e-5)
        assert one.box == (0, 0, 1, 1)


def test_open_clip(tiny_model, checkpoint):
    model, visual = models.load(f"tiny/{checkpoint('tiny')}", CPU), tiny_model("tiny").visual
    transform = open_clip.transform.image_transform(visual.image_size, is_train=False)
    rows, columns = visual.grid_size
    for image, one in zip(pictures(), patches_of(model), strict=True):
        assert one.vectors.shape[:2] == (rows, columns)
        with torch.inference_mode():
            states = visual._embeds(transform(image.decode())[None])
            for block in visual.transformer.resblocks[:-1]:
                states = block(states)
            block = visual.transformer.resblocks[-1]
            for place in range(0, rows * columns, 5):
                normed = block.ln_1(states[:, 1 + place : 2 + place])
                alone = block.attn(normed, normed, normed, need_weights=False)[0][0, 0]
                expected = unit_rows(visual.ln_post(alone) @ visual.proj)
                np.testing.assert_allclose(one.vectors[divmod(place, columns)], expected, atol=1e-5)
    # A tower that pools otherwise has no such patches.
    assert models.load(f"tiny-average/{checkpoint('tiny-average')}", CPU).patches is None

    # Heatmaps are cosines of patches with each word by itself and with the caption, remembered models too.
    lazily = catalog.model(f"open-clip:tiny/{checkpoint('tiny')}", CPU, memory=checkpoint("tiny").parent)
    lazily = catalog.model(f"open-clip:tiny/{checkpoint('tiny')}", CPU, memory=checkpoint("tiny").parent)
    image, caption = pictures()[1], Caption("c", "a red cat")
    pair = PairToExplain(image, caption, words_of("a red cat"))
    for item in (model, lazily):
        assert methods_of(item) == ("patches", "occlusion")
        (result,) = explain(item, [pair], methods=["patches"])
        texts = [Caption(str(k), text) for k, text in enumerate(("a red cat", "a", "red", "cat"))]
        expected = patches_of(model)[1].vectors @ np.concatenate(list(model.embed_captions([texts]))).T
        (heat,) = result.heats
        np.testing.assert_allclose(heat.whole, expected[..., 0], atol=1e-5)
        np.testing.assert_allclose(heat.parts, expected[..., 1:].transpose(2, 0, 1), atol=1e-5)
        np.testing.assert_allclose(heat.box, (12 / 64, 0, 52 / 64, 1))


def test_a_small_network():
    small = backbone(["a red star"], sizes=Sizes(picture=32, channels=(8, 16)))
    trained = network_model(small, CPU, where="small")
    even = [Image("even", PixelSource(np.full((32, 32, 3), 90, np.uint8)))]
    (one,) = next(trained.patches.embed_patches([even]))
    assert one.vectors.shape == (4, 4, 128)
    np.testing.assert_allclose(np.linalg.norm(one.vectors, axis=-1), 1, atol=1e-5)
    cells = small.network.visual(small.pixels([np.full((32, 32, 3), 90, np.uint8)])).tokens
    expected = unit_rows(small.network.visual.projection(torch.cat([cells, cells], dim=-1)))[0]
    np.testing.assert_allclose(one.vectors.reshape(16, -1), expected, atol=1e-5)


def test_what_has_no_patches_says_so(tmp_path):
    assert hf.load(str(save_family("align", tmp_path)), CPU).patches is None
    assert box_of(Resized(10), (30, 20)) == pytest.approx((1 / 6, 0, 5 / 6, 1))
