"""Recurrent dual encoders: equal to the papers' steps one by one, trainable, and scorers as checkpoints."""

from pathlib import Path

import numpy as np
import pytest

pytestmark = pytest.mark.models

torch = pytest.importorskip("torch")

from counterfoil.data.records import Caption, Image, PixelSource  # noqa: E402
from counterfoil.errors import ModelError, UnknownNameError  # noqa: E402
from counterfoil.scorers import checkpoint, recurrent, small  # noqa: E402
from counterfoil.scorers.base import Options  # noqa: E402

CAPTIONS = ["A red star is above a moon.", "Two blue boxes, and nothing else."]
TINY = small.Sizes(picture=32, channels=(4, 8), words=8, width=12)


def pictures(n: int) -> list[np.ndarray]:
    return list(np.random.default_rng(0).integers(0, 256, (n, 32, 32, 3), dtype=np.uint8))


def made(kind: str):
    backbone = recurrent.backbone(CAPTIONS, kind=kind, sizes=TINY, seed=3)
    backbone.network.eval()
    for parameter in backbone.network.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=torch.Generator().manual_seed(1))
    return backbone


def test_a_caption_is_the_state_at_its_last_word() -> None:
    backbone = made("vse")
    tower = backbone.network.text
    with torch.no_grad():
        found = backbone.network.encode_texts(backbone.tokens(["a red star", CAPTIONS[0] * 3])).points[0]
        state = torch.zeros(1, 12)
        cell = torch.nn.GRUCell(8, 12)
        cell.load_state_dict(
            {name.removesuffix("_l0"): tensor for name, tensor in tower.gru.state_dict().items()}
        )
        # One word after the other, without any padding.
        for word in backbone.tokens(["a red star"])[0]:
            state = cell(tower.embedding(word)[None], state)
        state = tower.projection(state)
    assert torch.allclose(found, state[0], atol=1e-6)


def test_regions_are_related_pair_by_pair_and_read_in_order() -> None:
    tower, pixels = made("vsrn").network.visual, made("vsrn").pixels(pictures(1))
    with torch.no_grad():
        cells = tower.body(pixels)[0].flatten(1).T
        regions = [torch.nn.functional.normalize(tower.projection(cell), dim=0) for cell in cells]
        for layer in tower.relations:
            before = list(regions)
            for i, region in enumerate(before):
                weights = [layer.queries(region) @ layer.keys(other) / len(before) for other in before]
                seen = sum(w * layer.values(other) for w, other in zip(weights, before, strict=True))
                regions[i] = region + layer.norm(layer.out(seen))
        state = torch.zeros(1, 1, 12)
        for region in regions:
            _, state = tower.gru(torch.nn.functional.normalize(region, dim=0)[None, None], state)
        found = tower(pixels)
    assert torch.allclose(found.whole, tower.norm(state[0]), atol=1e-5)
    assert tuple(found.places.shape) == (1, 16, 12)


def test_a_training_that_fails_stays_finite() -> None:
    """Hardest negatives at a high rate: without a norm, what relations add grows until it is no number."""
    words = [f"a w{i} on b{i % 7}" for i in range(32)]
    backbone = recurrent.backbone(words, kind="vsrn", sizes=small.Sizes(picture=32, channels=(8, 16, 32)))
    pixels, tokens = backbone.pixels(pictures(32)), backbone.tokens(words)
    optimiser = torch.optim.AdamW(backbone.network.parameters(), lr=2e-2)
    own = torch.eye(32, dtype=torch.bool)
    for _ in range(40):
        answer = backbone.network(pixels, tokens)
        image, text = (torch.nn.functional.normalize(each.points, dim=-1) for each in answer[:2])
        scores = image @ text.T
        over = (0.2 + scores - scores.diag()[:, None]).masked_fill(own, -9).amax(1).relu()
        optimiser.zero_grad()
        over.mean().backward()
        optimiser.step()
    assert torch.isfinite(scores).all()


def test_the_mean_of_the_cells_is_the_picture_of_vse() -> None:
    backbone = made("vse")
    tower, pixels = backbone.network.visual, backbone.pixels(pictures(2))
    with torch.no_grad():
        mean = tower.body(pixels).mean(dim=(2, 3))
        assert torch.allclose(tower(pixels).whole, tower.projection(mean), atol=1e-6)


@pytest.mark.parametrize("kind", recurrent.KINDS)
def test_it_learns_which_caption_is_whose(kind: str) -> None:
    words = [f"a w{i}" for i in range(8)]
    backbone = recurrent.backbone(words, kind=kind, sizes=TINY)
    pixels, tokens = backbone.pixels(pictures(8)), backbone.tokens(words)
    optimiser = torch.optim.Adam(backbone.network.parameters(), lr=1e-2)
    for _ in range(100):
        answer = backbone.network(pixels, tokens)
        image, text = (torch.nn.functional.normalize(each.points, dim=-1) for each in answer[:2])
        logits = answer.logit_scale.exp() * image @ text.T
        loss = torch.nn.functional.cross_entropy(logits, torch.arange(8))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert (logits.argmax(1) == torch.arange(8)).all()
    # Every parameter takes part.
    still = [
        name for name, each in backbone.network.named_parameters() if each.grad is None or not each.grad.any()
    ]
    assert not still


@pytest.mark.parametrize("kind", recurrent.KINDS)
def test_a_checkpoint_is_a_scorer(kind: str, tmp_path: Path) -> None:
    backbone = made(kind)
    checkpoint.save(tmp_path / "ckpt", backbone, {})
    scorer = checkpoint.load(str(tmp_path / "ckpt"), Options(device="cpu"))
    assert scorer.provenance["network"] == kind
    images = [Image(str(i), PixelSource(picture)) for i, picture in enumerate(pictures(2))]
    captions = [Caption(text, text) for text in CAPTIONS]
    found = scorer.compare(next(scorer.embed_captions([captions])), next(scorer.embed_images([images])))
    with torch.no_grad():
        answer = backbone.network(backbone.pixels(pictures(2)), backbone.tokens(CAPTIONS))
        expected = torch.nn.functional.cosine_similarity(answer.images.points, answer.texts.points)
    np.testing.assert_allclose(found, expected.numpy(), rtol=0, atol=1e-5)


def test_kinds_and_cards() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'vsrn'"):
        recurrent.backbone(CAPTIONS, kind="vsnr")
    card = made("vse").card
    with pytest.raises(ModelError, match="lacks 'width'"):
        checkpoint.build({key: value for key, value in card.items() if key != "width"})
