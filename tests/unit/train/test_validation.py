"""What validation measures, against loops over the items."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("lightning_fabric")

from lightning_fabric import Fabric  # noqa: E402

import thumbnails  # noqa: E402
from counterfoil.benchmarks.training_rows import TrainingSet  # noqa: E402
from counterfoil.engine.deduplicate import silent  # noqa: E402
from counterfoil.errors import InputError  # noqa: E402
from counterfoil.models.networks import Encoded  # noqa: E402
from counterfoil.train.dataloaders import (  # noqa: E402
    Feed,
)
from counterfoil.train.images import ImageStore  # noqa: E402
from counterfoil.train.objectives import objective  # noqa: E402
from counterfoil.train.recipes import Coco, NegativePairs, NegativeTexts  # noqa: E402
from counterfoil.train.validation import Validation, better, rsum, within_batch  # noqa: E402

pytestmark = pytest.mark.models


def slow_accuracy(images: np.ndarray, texts: np.ndarray) -> float:
    """Each image among all captions, each caption that has an image among all images, one by one."""

    def cosine(a: np.ndarray, b: np.ndarray) -> float:
        return float(a @ b / np.sqrt((a @ a) * (b @ b)))

    def nearest(item: np.ndarray, others: np.ndarray) -> int:
        return int(np.argmax([cosine(item, other) for other in others]))

    with_image = range(min(len(images), len(texts)))
    right_texts = [nearest(images[i], texts) == i for i in with_image]
    right_images = [nearest(texts[i], images) == i for i in with_image]
    return float((np.mean(right_texts) + np.mean(right_images)) / 2)


@pytest.mark.parametrize("size", [1, 7])
@pytest.mark.parametrize(
    ("image_roles", "text_roles"),
    [
        (("image",), ("caption",)),
        (("image",), ("caption", "negative_caption")),
        (("image", "negative_image"), ("caption", "negative_caption")),
    ],
)
def test_accuracy_within_a_batch_is_that_of_a_loop(size: int, image_roles, text_roles) -> None:
    rng = np.random.default_rng(size)
    for _ in range(20):
        images = rng.normal(size=(size * len(image_roles), 3))
        texts = rng.normal(size=(size * len(text_roles), 3))
        pairs = min(len(images), len(texts))
        texts[:pairs] += 0.7 * images[:pairs]
        found = within_batch(
            Encoded(torch.from_numpy(images)),
            Encoded(torch.from_numpy(texts)),
            image_roles=image_roles,
            text_roles=text_roles,
        )
        assert float(found) == pytest.approx(slow_accuracy(images, texts), abs=1e-12)


def test_further_positives_are_left_out() -> None:
    rows = torch.from_numpy(np.random.default_rng(0).normal(size=(5, 4)))
    with_more = Encoded(torch.cat([rows, torch.ones_like(rows)]))
    roles = {"image_roles": ("image", "generated_image"), "text_roles": ("caption", "generated_caption")}
    assert float(within_batch(with_more, with_more, **roles)) == 1.0


def test_several_vectors_are_compared_by_the_best_pair() -> None:
    rng = np.random.default_rng(0)
    images, texts = rng.normal(size=(6, 2, 3)), rng.normal(size=(6, 2, 3))
    unit = [side / np.linalg.norm(side, axis=-1, keepdims=True) for side in (images, texts)]
    scores = np.array([[(a @ b.T).max() for b in unit[1]] for a in unit[0]])
    own = np.arange(6)
    expected = ((scores.argmax(1) == own).mean() + (scores.argmax(0) == own).mean()) / 2
    found = within_batch(
        Encoded(torch.from_numpy(images)),
        Encoded(torch.from_numpy(texts)),
        image_roles=("image",),
        text_roles=("caption",),
    )
    assert float(found) == pytest.approx(expected)


def test_rsum_is_that_of_sorted_lists() -> None:
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
    # A scorer that cannot tell anything apart gets nothing.
    assert rsum(np.zeros((30, 70)), pairs) == 0


def ready(data: TrainingSet, recipe: Coco, *, retrieval: bool = False) -> Validation:
    backbone, aim = thumbnails.thumb(), objective(recipe)
    used = np.unique(np.concatenate([data.need(role) for role in aim.images]))
    pictures = ImageStore(data.images, used, backbone.preparation)
    feed = Feed(data, backbone, pictures, aim.images, aim.texts)
    return Validation(feed, aim, replace(recipe, select="rsum") if retrieval else recipe)


@pytest.mark.parametrize("kind", [Coco, NegativeTexts, NegativePairs])
def test_it_is_the_mean_over_batches_with_a_smaller_last_one(kind) -> None:
    data = thumbnails.rows(19, negatives=True)
    recipe = kind(batch_size=8)
    validation = ready(data, recipe)
    backbone = validation.feed.backbone
    backbone.network.train()
    found = validation.measure(Fabric(accelerator="cpu", devices=1), progress=silent)
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
    assert found == {
        "accuracy": pytest.approx(np.mean(accuracies)),
        "loss": pytest.approx(np.mean(losses), rel=1e-5),
    }


def test_retrieval_is_over_distinct_images_and_captions() -> None:
    # Three captions an image: 8 images, 24 captions, each row a right pair.
    data = thumbnails.rows(24, captions_each=3)
    validation = ready(data, Coco(batch_size=5), retrieval=True)
    found = validation.measure(Fabric(accelerator="cpu", devices=1), progress=silent)
    backbone = validation.feed.backbone
    backbone.network.eval()
    with torch.no_grad():
        pictures = thumbnails.pixels([thumbnails.Shrunk()(image.decode()) for image in data.images])
        left = backbone.network.encode_images(pictures).points
        right = backbone.network.encode_texts(
            thumbnails.tokens([caption.text or "" for caption in data.captions])
        ).points
    unit = torch.nn.functional.normalize
    scores = (unit(left, dim=1) @ unit(right, dim=1).T).numpy()
    pairs = np.stack([data.rows["image"], data.rows["caption"]], axis=1)
    assert scores.shape == (8, 24)
    assert found["rsum"] == pytest.approx(rsum(scores, pairs))


def test_only_more_is_better_and_of_loss_less() -> None:
    values = 0.4, 0.5, 0.6, float("nan")
    assert better({"a": 0.1}, "a", None)
    assert [better({"a": value}, "a", 0.5) for value in values] == [False, False, True, False]
    assert [better({"loss": value}, "loss", 0.5) for value in (0.4, 0.5, 0.6)] == [True, False, False]
    with pytest.raises(InputError, match="given: rsum; allowed: a, last"):
        better({"a": 1.0}, "rsum", None)


def test_processes_share_the_batches() -> None:
    """What each of two processes adds up is, summed, what one finds."""
    data, recipe = thumbnails.rows(19), Coco(batch_size=4)
    whole = ready(data, recipe).measure(Fabric(accelerator="cpu", devices=1), progress=silent)
    sums = []

    def half(rank: int) -> object:
        fabric = Fabric(accelerator="cpu", devices=1)
        return SimpleNamespace(
            global_rank=rank,
            world_size=2,
            autocast=fabric.autocast,
            all_reduce=lambda values, reduce_op: sums.append(values) or values,
        )

    measure = getattr(Validation.measure, "__wrapped__", Validation.measure)
    for rank in range(2):
        measure(ready(data, recipe), half(rank), progress=silent)
    assert (sum(sums) / 5).tolist() == pytest.approx([whole["accuracy"], whole["loss"]])


def test_batches_that_count_as_one_are_validated_as_one() -> None:
    data = thumbnails.rows(19, negatives=True)
    fabric = Fabric(accelerator="cpu", devices=1)
    large, split = (
        ready(data, NegativeTexts(batch_size=size, accumulate=times)).measure(fabric, progress=silent)
        for size, times in ((9, 1), (3, 3))
    )
    assert split == pytest.approx(large, abs=1e-6)
    assert ready(data, NegativeTexts(batch_size=3)).measure(fabric, progress=silent)["loss"] < split["loss"]


def test_a_last_batch_of_one_row_says_nothing() -> None:
    # Its only caption is always the nearest, and its loss 0: with it the mean would be another.
    fabric, data = Fabric(accelerator="cpu", devices=1), thumbnails.rows(17)
    recipe = Coco(batch_size=8)
    with_one, without = (
        ready(each, recipe).measure(fabric, progress=silent) for each in (data, data.select(np.arange(16)))
    )
    assert with_one == without
    # Two rows are few, and count.
    assert ready(thumbnails.rows(18), recipe).measure(fabric, progress=silent) != without
    with pytest.raises(InputError, match="too few rows to validate on; given: 1; allowed: 2 or more"):
        ready(data.select(np.arange(1)), recipe)
    # A pair and its negative pair are two to choose among.
    ready(thumbnails.rows(1, negatives=True), NegativePairs(batch_size=1))
