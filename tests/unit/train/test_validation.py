"""What validation measures, against loops over the items."""

from dataclasses import replace
from itertools import product
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from lightning_fabric import Fabric

import thumbnails
from contracts import forms
from counterfoil.engine.plan import silent
from counterfoil.engine.session import run
from counterfoil.errors import InputError, ModelError
from counterfoil.models import small
from counterfoil.models.networks import Encoded
from counterfoil.train.dataloaders import Feed
from counterfoil.train.images import ImageStore
from counterfoil.train.loop import fit
from counterfoil.train.objectives import objective
from counterfoil.train.recipes import Coco, NegativePairs, NegativeTexts
from counterfoil.train.saving import Monitors
from counterfoil.train.validation import (
    ForgettingGuard,
    Validation,
    better,
    embedder,
    interpolate,
    rsum,
    within_batch,
)
from counterfoil.world.sample import statements
from refusals import refuses

pytestmark = pytest.mark.models


def slow_accuracy(images, texts):
    """Each image among all captions, each caption that has an image among all images, one by one.

    Of several vectors the best pair counts.
    """

    def cosine(one, two):
        pairs = product(np.atleast_2d(one), np.atleast_2d(two))
        return max(float(a @ b / np.sqrt((a @ a) * (b @ b))) for a, b in pairs)

    def nearest(item, others):
        return int(np.argmax([cosine(item, other) for other in others]))

    with_image = range(min(len(images), len(texts)))
    right_texts = [nearest(images[i], texts) == i for i in with_image]
    right_images = [nearest(texts[i], images) == i for i in with_image]
    return float((np.mean(right_texts) + np.mean(right_images)) / 2)


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize(
    ("image_roles", "text_roles"),
    [
        (("image",), ("caption",)),
        (("image",), ("caption", "negative_caption")),
        (("image", "negative_image"), ("caption", "negative_caption")),
    ],
)
def test_accuracy_within_a_batch_is_that_of_a_loop(size, heads, image_roles, text_roles):
    rng = np.random.default_rng(size)
    for _ in range(6):
        images = rng.normal(size=(size * len(image_roles), heads, 3))
        texts = rng.normal(size=(size * len(text_roles), heads, 3))
        pairs = min(len(images), len(texts))
        texts[:pairs] += 0.7 * images[:pairs]
        sides = (Encoded(torch.from_numpy(side)) for side in (images, texts))
        result = within_batch(*sides, image_roles=image_roles, text_roles=text_roles)
        assert float(result) == pytest.approx(slow_accuracy(images, texts), abs=1e-12)


def test_further_positives_are_left_out():
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 4)))
    with_more = Encoded(torch.cat([rows, torch.ones_like(rows)]))
    roles = {"image_roles": ("image", "generated_image"), "text_roles": ("caption", "generated_caption")}
    assert float(within_batch(with_more, with_more, **roles)) == 1.0


def test_rsum_is_that_of_sorted_lists():
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(30, 70))
    pairs = np.stack([rng.integers(0, 30, 90), rng.integers(0, 70, 90)], axis=1)
    total = 0.0
    for side, own, other in ((scores, 0, 1), (scores.T, 1, 0)):
        for k in (1, 5, 10):
            hits = []
            for query in range(len(side)):
                right = {int(pair[other]) for pair in pairs if pair[own] == query}
                if right:
                    hits.append(bool(right & set(np.argsort(-side[query])[:k].tolist())))
            total += float(np.mean(hits))
    assert rsum(scores, pairs) == pytest.approx(total)
    # A model that cannot tell anything apart gets nothing.
    assert rsum(np.zeros((30, 70)), pairs) == 0


def cosines(backbone, data):
    backbone.network.eval()
    with torch.no_grad():
        pictures = thumbnails.pixels([thumbnails.Shrunk()(image.decode()) for image in data.images])
        left = backbone.network.encode_images(pictures).points
        texts = [caption.text or "" for caption in data.captions]
        right = backbone.network.encode_texts(thumbnails.tokens(texts)).points
    unit = torch.nn.functional.normalize
    return (unit(left, dim=1) @ unit(right, dim=1).T).numpy()


def ready(data, recipe, *, retrieval=False):
    backbone, aim = thumbnails.thumb(), objective(recipe)
    used = np.unique(np.concatenate([data.need(role) for role in aim.images]))
    feed = Feed(data, backbone, ImageStore(data.images, used, backbone.preparation), aim.images, aim.texts)
    return Validation(feed, aim, replace(recipe, select="rsum") if retrieval else recipe)


@pytest.mark.parametrize("kind", [Coco, NegativeTexts, NegativePairs])
def test_it_is_the_mean_over_batches_with_a_smaller_last_one(kind):
    data = thumbnails.rows(19, negatives=True)
    recipe = kind(batch_size=8)
    validation = ready(data, recipe)
    backbone = validation.feed.backbone
    backbone.network.train()
    result = validation.measure(Fabric(accelerator="cpu", devices=1), progress=silent)
    assert backbone.network.training
    backbone.network.eval()
    aim = objective(recipe)
    accuracies, losses = [], []
    for rows in (range(8), range(8, 16), range(16, 19)):
        images = [data.images[data.rows[role][row]].decode() for role in aim.images for row in rows]
        texts = [data.captions[data.rows[role][row]].text or "" for role in aim.texts for row in rows]
        with torch.no_grad():
            answer = backbone.network(
                thumbnails.pixels([thumbnails.Shrunk()(image) for image in images]), thumbnails.tokens(texts)
            )
        accuracies.append(
            slow_accuracy(answer.images.points.double().numpy(), answer.texts.points.double().numpy())
        )
        losses.append(float(aim(answer)[0].detach()))
    assert result == {
        "accuracy": pytest.approx(np.mean(accuracies)),
        "loss": pytest.approx(np.mean(losses), rel=1e-5),
    }


def test_retrieval_is_over_distinct_images_and_captions():
    # Three captions an image: 8 images, 24 captions, each row a right pair.
    data = thumbnails.rows(24, captions_each=3)
    validation = ready(data, Coco(batch_size=5), retrieval=True)
    result = validation.measure(Fabric(accelerator="cpu", devices=1), progress=silent)
    scores = cosines(validation.feed.backbone, data)
    pairs = np.stack([data.rows["image"], data.rows["caption"]], axis=1)
    assert scores.shape == (8, 24)
    assert result["rsum"] == pytest.approx(rsum(scores, pairs))


def test_only_more_is_better_and_of_loss_less():
    values = 0.4, 0.5, 0.6, float("nan")
    assert better({"a": 0.1}, "a", None)
    assert [better({"a": value}, "a", 0.5) for value in values] == [False, False, True, False]
    assert [better({"loss": value}, "loss", 0.5) for value in (0.4, 0.5, 0.6)] == [True, False, False]
    refuses("given: rsum; allowed: a, last", better, {"a": 1.0}, "rsum", None, error=InputError)


def test_processes_share_the_batches():
    """What each of two processes adds up is, summed, what one finds."""
    data, recipe = thumbnails.rows(19), Coco(batch_size=4)
    whole = ready(data, recipe).measure(Fabric(accelerator="cpu", devices=1), progress=silent)
    sums = []

    def half(rank):
        return SimpleNamespace(
            global_rank=rank,
            world_size=2,
            autocast=Fabric(accelerator="cpu", devices=1).autocast,
            all_reduce=lambda values, reduce_op: sums.append(values) or values,
        )

    measure = getattr(Validation.measure, "__wrapped__", Validation.measure)
    for rank in range(2):
        measure(ready(data, recipe), half(rank), progress=silent)
    assert (sum(sums) / 5).tolist() == pytest.approx([whole["accuracy"], whole["loss"]])


def test_batches_that_count_as_one_are_validated_as_one():
    data = thumbnails.rows(19, negatives=True)
    fabric = Fabric(accelerator="cpu", devices=1)
    large, split = (
        ready(data, NegativeTexts(batch_size=size, accumulate=times)).measure(fabric, progress=silent)
        for size, times in ((9, 1), (3, 3))
    )
    assert split == pytest.approx(large, abs=1e-6)
    assert ready(data, NegativeTexts(batch_size=3)).measure(fabric, progress=silent)["loss"] < split["loss"]


def test_a_last_batch_of_one_row_says_nothing():
    # Its only caption is always the nearest, and its loss 0: with it the mean would be another.
    fabric, data = Fabric(accelerator="cpu", devices=1), thumbnails.rows(17)
    recipe = Coco(batch_size=8)
    with_one, without = (
        ready(item, recipe).measure(fabric, progress=silent) for item in (data, data.select(np.arange(16)))
    )
    assert with_one == without
    # Two rows are few, and count.
    assert ready(thumbnails.rows(18), recipe).measure(fabric, progress=silent) != without
    with pytest.raises(InputError, match="too few rows to validate on; given: 1; allowed: 2 or more"):
        ready(data.select(np.arange(1)), recipe)
    # A pair and its negative pair are two to choose among.
    ready(thumbnails.rows(1, negatives=True), NegativePairs(batch_size=1))


def test_a_guard_warns_once_each_time_that_too_much_is_lost():
    values = iter([0.80, 0.79, 0.70, 0.69, 0.81, 0.5])
    said = []
    result = fit(
        thumbnails.thumb(),
        Coco(batch_size=8, epochs=5, lr=1e-3, warmup=1, select="last"),
        thumbnails.rows(16),
        monitors=Monitors(guard=ForgettingGuard(lambda backbone: next(values), margin=0.05, name="old")),
        device="cpu",
        note=said.append,
    )
    assert {entry["step"]: entry["old"] for entry in result.history if "old" in entry} == {
        0: 0.80, 2: 0.79, 4: 0.70, 6: 0.69, 8: 0.81, 10: 0.5
    }  # fmt: skip
    assert [line.partition(",")[0] for line in said] == [
        "step 4: old fell from 0.800 to 0.700",
        "step 10: old fell from 0.800 to 0.500",
    ]


@pytest.mark.parametrize(
    ("value", "lost"), [(0.75, False), (0.7499, True), (0.9, False), (float("nan"), True)]
)
def test_the_margin_itself_may_be_lost(value, lost):
    assert ForgettingGuard(lambda backbone: 0.0, margin=0.05).exceeded(0.8, value) == lost


def test_a_benchmark_is_answered_by_the_network():
    data = thumbnails.rows(40)
    benchmark = forms.quads_of(data.images, data.captions)
    backbone = thumbnails.thumb()
    backbone.network.train()
    result = ForgettingGuard(benchmark).measure(backbone)
    assert backbone.network.training
    scores = cosines(backbone, data).T
    right_ones = 0
    for a, b in benchmark.questions.images:
        i2t = scores[a, a] > scores[b, a] and scores[b, b] > scores[a, b]
        right_ones += int(i2t and (scores[a, a] > scores[a, b] and scores[b, b] > scores[b, a]))
    assert result == right_ones / 20


def test_statements_are_told_apart_by_the_scores_of_the_network():
    benchmark = statements(30, size=32)
    backbone = small.backbone([caption.text for caption in benchmark.captions], seed=0)
    result = ForgettingGuard(benchmark).measure(backbone)
    backbone.network.eval()
    scores, true = run(benchmark, embedder(backbone)).scores.ravel(), benchmark.questions.truth
    pairs = [(a > b) + (a == b) / 2 for a in scores[true] for b in scores[~true]]
    assert result == pytest.approx(np.mean(pairs))


def states(seed=0):
    return tuple(dict(thumbnails.thumb(seed=seed + i).network.state_dict()) for i in range(2))


def test_mixtures_are_element_by_element_and_exact_at_the_ends_and_what_does_not_mix_is_said():
    start, tuned = states()
    for alpha in (0.0, 0.3, 0.5, 1.0):
        mixed = interpolate(start, tuned, alpha)
        for name in start:
            expected = (1 - alpha) * start[name].double() + alpha * tuned[name].double()
            assert torch.allclose(mixed[name].double(), expected, atol=1e-7)
    assert all(torch.equal(interpolate(start, tuned, 0)[name], start[name]) for name in start)
    assert all(torch.equal(interpolate(start, tuned, 1)[name], tuned[name]) for name in start)
    with pytest.raises(InputError, match=r"alpha 1\.5; allowed: 0 \(start\) to 1 \(tuned\)"):
        interpolate(start, tuned, 1.5)
    other = dict(thumbnails.thumb(width=8).network.state_dict())
    refuses("two different networks do not mix", interpolate, start, other, 0.5, error=ModelError)


def test_a_mixture_shares_no_memory_and_keeps_counters_whole():
    start, tuned = {"n": torch.tensor(3), "w": torch.zeros(2)}, {"n": torch.tensor(8), "w": torch.ones(2)}
    assert [int(interpolate(start, tuned, alpha)["n"]) for alpha in (0, 0.4, 0.5, 1)] == [3, 3, 8, 8]
    for alpha in (0, 0.5, 1):
        interpolate(start, tuned, alpha)["w"].fill_(7)
    assert start["w"].tolist() == [0, 0]
    assert tuned["w"].tolist() == [1, 1]
