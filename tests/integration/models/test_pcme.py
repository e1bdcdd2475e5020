"""Heads on top of a small network: attention against a slow loop, padding, weights, training."""

import math

import numpy as np
import pytest
import torch
from torch import nn

from counterfoil.errors import InputError
from counterfoil.models import pcme
from counterfoil.models.images import Resized
from counterfoil.models.matching_probability import MostSimilarHeads, Sampled
from counterfoil.models.networks import Backbone, Encoded, Local, Network
from counterfoil.train import losses
from counterfoil.train.losses import soft_contrastive
from refusals import refuses

WIDTH, CELL, WORD, WORDS = 6, 5, 4, 30


class Small(Network):
    """Patches of 4 x 4 pixels and words, a mean of each and a linear map; padding is token 0."""

    def __init__(self, places):
        super().__init__()
        generator = torch.Generator().manual_seed(0)

        def made(*shape):
            return nn.Parameter(torch.randn(shape, generator=generator) / shape[0] ** 0.5)

        self.patch, self.word = made(48, CELL), made(WORDS, WORD)
        self.image_map, self.text_map = made(CELL, WIDTH), made(WORD, WIDTH)
        self.logit_scale = nn.Parameter(torch.tensor(2.0))
        self.knows_places = places

    def patches(self, pixels):
        cells = pixels.unfold(2, 4, 4).unfold(3, 4, 4).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)
        return torch.tanh(cells @ self.patch)

    def encode_images(self, pixels):
        return Encoded(self.patches(pixels).mean(1) @ self.image_map)

    def encode_texts(self, tokens):
        there = (tokens > 0).float()[:, :, None]
        return Encoded((self.word[tokens] * there).sum(1) / there.sum(1).clamp(min=1) @ self.text_map)

    def local_images(self, pixels):
        if not self.knows_places:
            return super().local_images(pixels)
        return Local(self.encode_images(pixels).points, self.patches(pixels))

    def local_texts(self, tokens):
        if not self.knows_places:
            return super().local_texts(tokens)
        return Local(self.encode_texts(tokens).points, self.word[tokens], tokens == 0)

    def projections(self):
        return self.image_map, self.text_map


def tokens_of(texts):
    rows = [[1 + sum(map(ord, word)) % (WORDS - 1) for word in text.split()] for text in texts]
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


def pixels_of(pictures):
    return torch.from_numpy(np.stack(pictures)).permute(0, 3, 1, 2).float() / 128 - 1


def small(places=True):
    return Backbone("small", Small(places), Resized(8), pixels_of, tokens_of, {"kind": "small"})


def batch(n=5):
    generator = torch.Generator().manual_seed(3)
    pixels = torch.randn((n, 3, 8, 8), generator=generator)
    tokens = torch.randint(1, WORDS, (n, 4), generator=generator)
    tokens[0, 2:] = 0
    return pixels, tokens


def slow_head(head, whole, places, k):
    """One head of one item, number by number, over the places that are there."""
    w1, w2 = head.attention.w1.weight.tolist(), head.attention.w2.weight.tolist()
    maps = head.maps[k if len(head.maps) > 1 else 0]
    energies = []
    for place in places:
        hidden = [math.tanh(sum(w * x for w, x in zip(row, place, strict=True))) for row in w1]
        energies.append(math.exp(sum(w * h for w, h in zip(w2[k], hidden, strict=True))))
    attention = [energy / sum(energies) for energy in energies]
    across = zip(*places, strict=True)
    result = [sum(a * x for a, x in zip(attention, column, strict=True)) for column in across]
    weights = zip(maps.weight.tolist(), maps.bias.tolist(), strict=True)
    energies = [bias + sum(w * x for w, x in zip(row, result, strict=True)) for row, bias in weights]
    residual = [1 / (1 + math.exp(-energy)) for energy in energies]
    sums = [w + r for w, r in zip(whole, residual, strict=True)]
    mean = sum(sums) / len(sums)
    deviation = math.sqrt(sum((x - mean) ** 2 for x in sums) / len(sums) + 1e-5)
    return attention, residual, [(x - mean) / deviation for x in sums]


@pytest.mark.parametrize("projection", ["shared", "own"])
def test_heads_agree_with_a_slow_loop(projection):
    network = pcme.pvse(small(), heads=3, projection=projection).network
    pixels, tokens = batch()
    answer = network(pixels, tokens)
    below = network.below
    images = answer.images, below.local_images(pixels), network.image_heads
    texts = answer.texts, below.local_texts(tokens), network.text_heads
    for encoded, local, head in (images, texts):
        assert encoded.points.shape == (5, 3, WIDTH)
        for i in range(5):
            count = local.tokens.shape[1] if local.nothing is None else int((~local.nothing[i]).sum())
            for k in range(3):
                known = local.tokens[i, :count].tolist()
                attention, residual, point = slow_head(head, local.whole[i].tolist(), known, k)
                assert encoded.attention[i, k, :count].tolist() == pytest.approx(attention, abs=1e-5)
                assert not encoded.attention[i, k, count:].any()
                assert encoded.residuals[i, k].tolist() == pytest.approx(residual, abs=1e-5)
                assert encoded.points[i, k].tolist() == pytest.approx(point, abs=1e-4)


@pytest.mark.parametrize("make", [pcme.pvse, pcme.pcme])
def test_padding_changes_nothing_and_an_empty_text_gives_numbers(make):
    network = make(small()).network
    _, tokens = batch()
    padded = torch.nn.functional.pad(tokens, (0, 6))
    plain, longer = network.encode_texts(tokens), network.encode_texts(padded)
    torch.testing.assert_close(plain.points, longer.points)
    if plain.log_variance is not None:
        torch.testing.assert_close(plain.log_variance, longer.log_variance)
    empty = network.encode_texts(torch.zeros((2, 3), dtype=torch.long))
    empty.points.sum().backward()
    assert torch.isfinite(empty.points).all()
    assert all(torch.isfinite(p.grad).all() for p in network.parameters() if p.grad is not None)


def test_the_mean_of_pcme_is_a_head_and_its_variance_begins_at_log_sigma():
    network = pcme.pcme(small(), log_sigma=-3.0).network
    pixels, tokens = batch()
    answer = network(pixels, tokens)
    assert answer.match.tolist() == [15, 15]
    images = answer.images, network.image_heads, network.below.local_images(pixels)
    texts = answer.texts, network.text_heads, network.below.local_texts(tokens)
    for encoded, head, local in (images, texts):
        torch.testing.assert_close(encoded.points, head(local).points)
        assert encoded.points.shape == encoded.log_variance.shape == (5, WIDTH)
        assert abs(encoded.log_variance.mean().item() + 6) < 1.5
    # The maps give the logarithm of the standard deviation, of which the variance has twice.
    plain = pcme.pcme(small(), log_sigma=0.0).network(pixels, tokens)
    torch.testing.assert_close(plain.texts.log_variance - 6, answer.texts.log_variance)


@pytest.mark.parametrize("make", [pcme.pvse, pcme.pcme])
def test_all_that_is_new_is_heads_and_the_rest_is_below(make):
    backbone = small()
    before = {name: p.clone() for name, p in backbone.network.named_parameters()}
    network = make(backbone).network
    assert network.logit_scale is backbone.network.logit_scale
    assert list(map(id, network.projections())) == list(map(id, backbone.network.projections()))
    own, below = set(map(id, network.heads())), set(map(id, backbone.network.parameters()))
    assert own
    assert not own & below
    assert own | below == set(map(id, network.parameters()))
    assert backbone.network.heads() == ()
    # Each weight has one name: what is saved holds nothing twice.
    state = network.state_dict()
    assert len(state) == len(list(network.parameters()))
    assert len({tensor.data_ptr() for tensor in state.values()}) == len(state)
    for name, parameter in backbone.network.named_parameters():
        assert torch.equal(parameter, before[name])


def test_heads_that_see_one_place_have_maps_of_their_own():
    pixels, tokens = batch()
    for projection, differ in (("auto", True), ("own", True), ("shared", False)):
        network = pcme.pvse(small(places=False), heads=2, projection=projection).network
        for encoded in (network.encode_images(pixels), network.encode_texts(tokens)):
            assert torch.equal(encoded.attention, torch.ones(5, 2, 1))
            assert torch.allclose(encoded.points[:, 0], encoded.points[:, 1]) != differ
    # Where there are places heads look differently, and share their map as in the paper.
    assert len(pcme.pvse(small(), heads=2).network.text_heads.maps) == 1


def test_rows_are_compared_as_the_losses_compare():
    pixels, tokens = batch()
    network = pcme.pvse(small(), heads=3).network
    answer = network(pixels, tokens)
    images, texts = (pcme.rows(side).detach().numpy() for side in (answer.images, answer.texts))
    assert (images.dtype, images.shape) == (np.float32, (5, 3 * WIDTH))
    comparison = network.comparison()
    assert comparison == MostSimilarHeads(3)
    expected = losses.similarity(answer.images.points, answer.texts.points).detach().numpy()
    np.testing.assert_allclose(comparison.block(images, texts), expected, atol=1e-6)
    # One head gives one point.
    one = pcme.pvse(small(), heads=1).network
    result = one.encode_images(pixels)
    assert result.points.shape == pcme.rows(result).shape == (5, WIDTH)
    assert result.residuals.shape == (5, 1, WIDTH)
    assert one.comparison() is small().network.comparison() is None


def test_gaussian_rows_are_compared_as_the_loss_compares_them():
    pixels, tokens = batch()
    network = pcme.pcme(small(), samples=4, scale=3.0, shift=2.0, log_sigma=-1.0).network
    answer = network(pixels, tokens)
    images, texts = (pcme.rows(side).detach().numpy() for side in (answer.images, answer.texts))
    assert images.shape == (5, 2 * WIDTH)
    assert network.comparison(seed=5) == Sampled(3.0, 2.0, samples=4, seed=5)
    # The likelihood of right and wrong pairs that the loss adds up, from the rows' probabilities: both are
    # means over their own draws, so over many seeds they are the same number.
    result = np.mean(
        [
            soft_contrastive(
                answer.images.points, answer.images.log_variance,
                answer.texts.points, answer.texts.log_variance, answer.match,
                generator=torch.Generator().manual_seed(seed), samples=200,
            ).matching.item()
            for seed in range(10)
        ]
    )  # fmt: skip
    chances = np.exp(Sampled(3.0, 2.0, samples=400).block(images.astype(float), texts.astype(float)))
    likelihood = np.where(np.eye(5) > 0, np.log(chances), np.log(1 - chances))
    assert result == pytest.approx(-2 * likelihood.sum(), rel=0.03)


def test_what_cannot_be_is_refused():
    refuses(r"heads of PVSE.*given: 0", pcme.pvse, small(), heads=0, error=InputError)
    refuses(r"samples of PCME.*given: 0", pcme.pcme, small(), samples=0, error=InputError)
    for make in (pcme.pvse, pcme.pcme):
        with pytest.raises(InputError, match="heads stand on a network that has none; given: pvse"):
            make(pcme.pvse(small()))


@pytest.mark.parametrize("places", [True, False])
@pytest.mark.parametrize("make", [pcme.pvse, pcme.pcme])
def test_training_reaches_every_weight(make, places):
    network = make(small(places), **({"log_sigma": -2.0} if make is pcme.pcme else {})).network
    answer = network.train()(batch(8)[0], torch.arange(1, 25).reshape(8, 3))
    if make is pcme.pvse:
        scores = losses.similarity(answer.images.points, answer.texts.points)
        loss = losses.triplet(scores, margin=0.3, mining="sum")
        loss = loss + 0.1 * losses.diversity(answer.texts.residuals)
    else:
        loss = soft_contrastive(
            *answer.images[:2], *answer.texts[:2], answer.match,
            generator=torch.Generator().manual_seed(0), reduction="mean",
        ).loss  # fmt: skip
    loss.backward()
    untouched = {name for name, p in network.named_parameters() if p.grad is None or not p.grad.any()}
    # One place is looked at whatever the attention: its weights have nothing to learn. The temperature
    # belongs to other losses.
    idle = {name for name, _ in network.named_parameters() if ".attention." in name}
    assert untouched == {"below.logit_scale"} | (set() if places else idle)
