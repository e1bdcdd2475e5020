"""Heatmaps from the inside of tiny ViLT and BLIP against a plain use of the library's models."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tiny_matchers
from counterfoil.data import Caption, Image, PixelSource
from counterfoil.engine.explain import PairToExplain, check_methods, explain, methods_of
from counterfoil.engine.perturbations import words_of
from counterfoil.errors import InputError
from counterfoil.metrics.attention import rollout
from counterfoil.scorers import itm
from counterfoil.scorers.base import Options

pytestmark = pytest.mark.models

torch = pytest.importorskip("torch")
#: As many tokens as words in part, and words of several tokens.
TEXT = "a red cat on mats"


def loaded(folder: Path, name: str, protocol: str = "", prompt: str = "{}") -> Any:
    if not folder.exists():
        tiny_matchers.save(name, folder)
    settings = {"protocol": protocol} if protocol else {}
    return itm.load(str(folder), Options(device="cpu", settings=settings, prompt=prompt))


def picture(height: int = 32, width: int = 48) -> Image:
    rng = np.random.default_rng(7)
    return Image("i", PixelSource(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)))


def asked() -> PairToExplain:
    return PairToExplain(picture(), Caption("c", TEXT), words_of(TEXT))


def tokens_of(tokenizer: Any) -> list[list[int]]:
    """The positions of each word's tokens, by counting the pieces of one word after another."""
    found, at = [], 1
    for word in TEXT.split():
        count = len(tokenizer(word, add_special_tokens=False)["input_ids"])
        found.append(list(range(at, at + count)))
        at += count
    return found


def test_vilt(tmp_path: Path) -> None:
    from transformers import AutoImageProcessor, AutoTokenizer, ViltForImageAndTextRetrieval

    scorer = loaded(tmp_path / "vilt", "vilt")
    assert methods_of(scorer) == ("rollout", "transport", "occlusion")
    (found,) = explain(scorer, [asked()])
    by_name = {heat.method: heat for heat in found.heats}
    assert list(by_name) == ["rollout", "transport"]

    model = ViltForImageAndTextRetrieval.from_pretrained(
        tmp_path / "vilt", attn_implementation="eager"
    ).eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "vilt")
    inputs = AutoImageProcessor.from_pretrained(tmp_path / "vilt")(picture().decode(), return_tensors="pt")
    words = tokenizer(TEXT, return_tensors="pt")
    # Patches in their own order: their embedding and place by hand, row by row.
    embeddings = model.vilt.embeddings
    with torch.no_grad():
        grid = embeddings.patch_embeddings(inputs["pixel_values"])
        places = embeddings.position_embeddings[:, 1:].transpose(1, 2).view(1, -1, 4, 4)
        places = torch.nn.functional.interpolate(
            places, size=grid.shape[2:], mode="bilinear", align_corners=True
        )
        patches = (grid + places).flatten(2).transpose(1, 2)
        first = embeddings.cls_token + embeddings.position_embeddings[:, :1]
        output = model.vilt(
            input_ids=words["input_ids"],
            attention_mask=words["attention_mask"],
            image_embeds=torch.cat([first, patches], dim=1),
            pixel_mask=torch.ones(1, 1 + patches.shape[1]),
            output_attentions=True,
        )
    rows, columns = grid.shape[2:]
    assert (rows, columns) == (4, 6)
    length = words["input_ids"].shape[1]
    rolled = rollout([layer[0].numpy() for layer in output.attentions])
    np.testing.assert_allclose(
        by_name["rollout"].whole, rolled[0, length + 1 :].reshape(rows, columns), atol=1e-6
    )
    groups = tokens_of(tokenizer)
    assert max(map(len, groups)) > 1
    for part, own in zip(by_name["rollout"].parts, groups, strict=True):
        np.testing.assert_allclose(part.ravel(), rolled[own, length + 1 :].mean(axis=0), atol=1e-6)

    # The transport on the last states: fifty steps of the algorithm written out on lists.
    states = torch.nn.functional.normalize(output.last_hidden_state[0].double(), dim=-1).numpy()
    cost = 1 - states[1 : length - 1] @ states[length + 1 :].T
    n, m = cost.shape
    plan, sigma = np.ones((n, m)), np.ones(m) / m
    for _ in range(50):
        scaled = np.exp(-cost / 0.5) * plan
        delta = np.array([1 / (n * sum(scaled[i] * sigma)) for i in range(n)])
        sigma = np.array([1 / (m * sum(scaled[:, j] * delta)) for j in range(m)])
        plan = delta[:, None] * scaled * sigma[None]
    for part, own in zip(by_name["transport"].parts, groups, strict=True):
        expected = n * plan[[at - 1 for at in own]].mean(axis=0)
        np.testing.assert_allclose(part.ravel(), expected, atol=1e-5)
        assert part.sum() == pytest.approx(1, abs=0.02)


@pytest.mark.parametrize("protocol", ["itm", "retrieval"])
def test_blip(tmp_path: Path, protocol: str) -> None:
    from transformers import AutoImageProcessor, AutoTokenizer, BlipForImageTextRetrieval

    scorer = loaded(tmp_path / "blip", "blip", protocol)
    assert methods_of(scorer) == ("grad-cam", "occlusion")
    (found,) = explain(scorer, [asked()])
    (heat,) = found.heats

    model = BlipForImageTextRetrieval.from_pretrained(tmp_path / "blip").eval()
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "blip")
    inputs = AutoImageProcessor.from_pretrained(tmp_path / "blip")(picture().decode(), return_tensors="pt")
    words = tokenizer(TEXT, return_tensors="pt")
    ids = words["input_ids"].clone()
    if protocol == "retrieval":
        ids[:, 0] = model.config.text_config.vocab_size - 1
    # The whole model with all of its gradients.
    kept: dict[str, Any] = {}
    layer = model.text_encoder.encoder.layer[0].crossattention.self

    def watch(module: Any, args: Any, output: Any) -> None:
        kept["attention"] = output[1]
        output[1].retain_grad()

    handle = layer.register_forward_hook(watch)
    states = model.vision_model(inputs["pixel_values"]).last_hidden_state
    last = model.text_encoder(
        input_ids=ids,
        attention_mask=words["attention_mask"],
        encoder_hidden_states=states,
        encoder_attention_mask=torch.ones(states.shape[:2], dtype=torch.long),
    ).last_hidden_state
    logit = model.itm_head(last[:, 0])[0, 1]
    logit.backward()
    handle.remove()
    attention = kept["attention"]
    cam = (attention * attention.grad.clamp(min=0))[0].mean(dim=0).detach().numpy()[:, 1:]
    np.testing.assert_allclose(heat.whole.ravel(), cam[1:-1].mean(axis=0), atol=1e-6)
    assert heat.whole.shape == (4, 4)
    assert heat.whole.any()
    for part, own in zip(heat.parts, tokens_of(tokenizer), strict=True):
        np.testing.assert_allclose(part.ravel(), cam[own].mean(axis=0), atol=1e-6)
    # Nothing is left behind: scores are as before, and no hook stays.
    assert not layer._forward_hooks
    pair = (picture(), Caption("c", TEXT))
    assert next(scorer.score_pairs([[pair]]))[0] == pytest.approx(found.score, rel=1e-4)


def test_prompts_move_words_and_cut_captions_have_none(tmp_path: Path) -> None:
    scorer = loaded(tmp_path / "vilt", "vilt", prompt="a photo of {}")
    whole, parts = scorer.heats.maps("rollout", picture(), Caption("c", "red cat"), [(0, 3), (4, 7)])
    plain = loaded(tmp_path / "vilt", "vilt")
    text = "a photo of red cat"
    again, inner = plain.heats.maps("rollout", picture(), Caption("c", text), [(11, 14), (15, 18)])
    np.testing.assert_allclose(whole, again)
    np.testing.assert_allclose(parts, inner)
    long = "cat " * 60 + "dog"
    _, far = plain.heats.maps("rollout", picture(), Caption("c", long), [(0, 3), (240, 243)])
    assert far[0].any()
    assert not far[1].any()


def test_what_a_family_lacks_is_refused(tmp_path: Path) -> None:
    scorer = loaded(tmp_path / "blip", "blip", "itc")
    assert methods_of(scorer) == ("occlusion",)
    with pytest.raises(InputError, match="grad-cam needs the cross-attention of BLIP"):
        check_methods(scorer, ["grad-cam"])
