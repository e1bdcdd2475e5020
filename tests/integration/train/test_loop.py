"""The loop against a plain one written here, and what it does when something is wrong."""

import math
from dataclasses import replace
from itertools import count

import numpy as np
import pytest
import torch

import thumbnails
from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.errors import InputError
from counterfoil.models import checkpoint
from counterfoil.train import loop
from counterfoil.train.dataloaders import order
from counterfoil.train.gradients import Computing
from counterfoil.train.loop import fit
from counterfoil.train.objectives import objective
from counterfoil.train.recipes import Coco, NegativePairs, Triplet
from counterfoil.train.saving import Monitors, Saving
from refusals import refuses

pytestmark = pytest.mark.usefixtures("thumbs")


def plain(data, recipe, *, accumulate=1, dropout=0.1):
    """The same training with nothing around it: rows, loss, step."""
    backbone = thumbnails.thumb(dropout=dropout)
    network = backbone.network
    matrices = [p for name, p in network.named_parameters() if p.ndim > 1]
    rest = [p for name, p in network.named_parameters() if p.ndim <= 1]
    groups = [{"params": matrices, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}]
    optimiser = torch.optim.AdamW(groups, lr=1.0, betas=recipe.betas, eps=recipe.eps)
    per_epoch = len(data) // recipe.batch_size // accumulate
    total, losses, step = recipe.epochs * per_epoch, [], 0
    torch.manual_seed(recipe.seed)
    network.train()
    for epoch in range(recipe.epochs):
        rows = order(len(data), epoch, recipe.seed)
        for j in range(per_epoch):
            lr = recipe.lr * min(1.0, (step + 1) / recipe.warmup)
            if step >= recipe.warmup:
                lr *= 0.5 * (1 + math.cos(math.pi * (step - recipe.warmup) / (total - recipe.warmup)))
            optimiser.zero_grad()
            sides = []
            for turn in range(accumulate):
                first = (j * accumulate + turn) * recipe.batch_size
                batch = rows[first : first + recipe.batch_size]
                images = [data.images[i].decode() for i in data.rows["image"][batch]]
                pixels = thumbnails.pixels([thumbnails.Shrunk()(image) for image in images])
                texts = [data.captions[i].text or "" for i in data.rows["caption"][batch]]
                answer = network(pixels, thumbnails.tokens(texts))
                sides.append((answer.images.points, answer.texts.points))
            # The loss is that of all batches of the step together.
            sides = [torch.cat(side) for side in zip(*sides, strict=True)]
            left, right = (torch.nn.functional.normalize(side, dim=-1) for side in sides)
            logits = network.logit_scale.exp() * left @ right.T
            own = torch.arange(len(left))
            cross = torch.nn.functional.cross_entropy
            loss = (cross(logits, own) + cross(logits.T, own)) / 2
            loss.backward()
            losses.append(loss.item())
            if recipe.clip_norm:
                torch.nn.utils.clip_grad_norm_(network.parameters(), recipe.clip_norm)
            for group in optimiser.param_groups:
                group["lr"] = lr
            optimiser.step()
            if recipe.max_logit_scale:
                with torch.no_grad():
                    network.logit_scale.clamp_(max=math.log(recipe.max_logit_scale))
            step += 1
    return backbone, losses


def trained(recipe, data, **more):
    """What the loop makes of a small network, on the CPU."""
    return fit(thumbnails.thumb(), recipe, data, **{"device": "cpu"} | more)


def close(left, right, *, within=1e-5):
    states = left.network.state_dict(), right.network.state_dict()
    return all(torch.allclose(states[0][name], states[1][name], atol=within, rtol=0) for name in states[0])


@pytest.mark.parametrize(
    "options",
    [{}, {"accumulate": 2}, {"clip_norm": 0.05}, {"max_logit_scale": 7.0}],
    ids=["plain", "accumulated", "clipped", "clamped"],
)
def test_it_trains_as_a_plain_loop_does(options):
    data = thumbnails.rows(50)
    recipe = Coco(batch_size=8, epochs=3, lr=3e-3, warmup=4, select="last", **options)
    expected, losses = plain(data, recipe, accumulate=recipe.accumulate)
    result = trained(recipe, data, saving=Saving(journal_every=1))
    assert close(result.backbone, expected)
    assert [entry["loss"] for entry in result.history] == pytest.approx(losses, abs=1e-4)
    assert result.step == len(losses) == result.history[-1]["step"]
    # The option did something.
    if options:
        without, _ = plain(data, Coco(batch_size=8, epochs=3, lr=3e-3, warmup=4))
        assert not close(result.backbone, without, within=1e-3)


def test_workers_change_nothing():
    data = thumbnails.rows(24, negatives=True)
    recipe = NegativePairs(batch_size=8, steps=4, lr=3e-3, warmup=2, select="last", augment="crop-flip")
    recipe = replace(recipe, erasing=0.5, word_drop=0.3)
    first = trained(recipe, data)
    assert close(first.backbone, trained(recipe, data, workers=2).backbone, within=0)


def test_a_first_look_decides_nothing_and_changes_nothing():
    data, held = thumbnails.rows(24), thumbnails.rows(16)
    recipe = Coco(batch_size=8, epochs=2, lr=3e-3, warmup=2)
    plain_one = trained(recipe, data, validation=held)
    looked = trained(recipe, data, validation=held, monitors=Monitors(at_start=True))
    assert close(looked.backbone, plain_one.backbone, within=0)
    assert (looked.step, looked.best) == (plain_one.step, plain_one.best)
    assert [entry["step"] for entry in looked.history] == [0, *(e["step"] for e in plain_one.history)]
    # What it says is what the untouched network says: with a learning rate of next to nothing, for ever.
    unmoved = trained(Coco(batch_size=8, epochs=1, lr=1e-12, warmup=0), data, validation=held).history[-1]
    for name in ("validation_accuracy", "validation_loss"):
        assert looked.history[0][name] == pytest.approx(unmoved[name], abs=1e-5)


def test_the_best_weights_are_kept_and_not_the_last(tmp_path):
    data = thumbnails.rows(32)
    values = iter([0.2, 0.5, 0.5, 0.1])
    seen = []

    def validate(backbone):
        assert not backbone.network.training
        seen.append({name: tensor.clone() for name, tensor in backbone.network.state_dict().items()})
        return {"mine": next(values), "undefined": float("nan")}

    recipe = Coco(batch_size=8, epochs=4, lr=1e-2, warmup=1, select="mine")
    result = trained(recipe, data, monitors=Monitors(validate), out=tmp_path)
    # Equal is not better: the second validation counts, not the third.
    assert (result.step, result.best) == (8, 0.5)
    for backbone in (result.backbone, checkpoint.read(tmp_path)):
        state = backbone.network.state_dict()
        assert all(torch.equal(state[name], seen[1][name]) for name in state)
    assert checkpoint.facts(tmp_path)["step"] == 8
    # A measure that is undefined is no number, and none that JSON could hold.
    assert checkpoint.facts(tmp_path)["validation"] == {"mine": 0.5, "undefined": None}
    assert [e["validation_mine"] for e in result.history if "validation_mine" in e] == [0.2, 0.5, 0.5, 0.1]


def test_patience_ends_a_training_that_gets_no_better():
    values = iter([0.1, 0.3, 0.2, 0.2, 0.2, 0.2, 0.9])
    recipe = Coco(batch_size=8, epochs=50, lr=1e-2, warmup=1, select="mine", validate_every=3, patience=6)
    result = trained(recipe, thumbnails.rows(32), monitors=Monitors(lambda _: {"mine": next(values)}))
    # Best at step 6; six steps later, at 12, nothing was better.
    assert (result.step, result.best, result.history[-1]["step"]) == (6, 0.3, 12)


def test_a_loss_that_is_no_number_stops_before_it_harms(tmp_path, monkeypatch):
    data = thumbnails.rows(32)
    recipe = Coco(batch_size=8, epochs=4, lr=1e-2, warmup=1, select="last")
    whole, calls = objective(recipe), count(1)

    def breaks(sides):
        loss, parts = whole.loss(sides)
        return (loss * float("nan") if next(calls) == 7 else loss), parts

    rows = order(32, 1, 0)[16:21].tolist()
    first = ", ".join(map(str, rows))
    named = f"step 6: loss is nan; given: rows {first}, ... \\(8 in all\\), learning rate "
    backbone = thumbnails.thumb()
    monkeypatch.setattr(loop, "objective", lambda _: replace(whole, loss=breaks))
    with pytest.raises(InputError, match=named):
        fit(backbone, recipe, data, out=tmp_path, saving=Saving(every=5), device="cpu")
    assert checkpoint.facts(tmp_path)["step"] == 5
    for state in (backbone.network.state_dict(), checkpoint.read(tmp_path).network.state_dict()):
        assert all(bool(tensor.isfinite().all()) for tensor in state.values())


def test_two_stages_follow_each_other(tmp_path):
    stages = ({"trains": "all", "lr": 1e-3, "select": "last"}, {"lr": 1e-2, "epochs": 3})
    recipe = Triplet(batch_size=8, epochs=2, augment="none", stages=stages, reduction="mean")
    held, saving = thumbnails.rows(20, seed=1), Saving(journal_every=1)
    result = trained(recipe, thumbnails.rows(32), validation=held, out=tmp_path, saving=saving)
    assert [entry["step"] for entry in result.history] == list(range(1, 21))
    assert [entry["epoch"] for entry in result.history] == sorted([*range(5)] * 4)
    assert result.history[7]["lr"] < 1e-3 < result.history[8]["lr"] == 1e-2
    assert 0 < result.best <= 6


def test_an_unreadable_image_stops_or_is_skipped(tmp_path):
    (tmp_path / "broken.jpg").write_bytes(b"no picture")
    data = thumbnails.rows(20)
    images = list(data.images)
    images[3] = Image("broken", FileSource(tmp_path / "broken.jpg"))
    broken = TrainingSet("some", tuple(images), data.captions, data.rows)
    recipe = Coco(batch_size=4, epochs=2, lr=1e-2, warmup=1, select="last")
    refuses(r"broken\.jpg: not an image file", trained, recipe, broken)
    said = []
    skipping = Coco(batch_size=4, epochs=2, lr=1e-2, warmup=1, select="last", unreadable="skip")
    result = trained(skipping, broken, note=said.append)
    assert len(said) == 1
    assert said[0].startswith("1 image cannot be read, 1 row is left out: ")
    assert said[0].count("broken.jpg") == 1
    # As if the row had never been there.
    without = data.select(np.delete(np.arange(20), 3))
    assert close(result.backbone, trained(skipping, without).backbone, within=0)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"device": "tpu"}, "no such device to train on; given: tpu"),
        ({"computing": Computing(devices=0)}, "number of devices; given: 0"),
    ],
)
def test_what_cannot_be_asked_for_is_said_in_a_line(options, said):
    refuses(said, trained, Coco(batch_size=4, select="last"), thumbnails.rows(8), **options, error=InputError)


def test_columns_that_a_recipe_needs_must_be_there():
    with pytest.raises(InputError, match="the training data have no column 'negative_image'"):
        trained(NegativePairs(batch_size=4), thumbnails.rows(8))


def test_without_validation_the_last_weights_are_kept_and_that_is_said():
    said = []
    recipe = Coco(batch_size=4, epochs=1, warmup=1)
    assert trained(recipe, thumbnails.rows(8), note=said.append).best is None
    assert "the last weights are kept" in said[0]


def test_bf16_trains_and_leaves_weights_in_fp32():
    recipe = Coco(batch_size=8, epochs=4, lr=1e-2, warmup=1, select="last", precision="bf16")
    result = trained(recipe, thumbnails.rows(32), saving=Saving(journal_every=1))
    assert all(p.dtype == torch.float32 for p in result.backbone.network.parameters())
    assert result.history[-1]["loss"] < result.history[0]["loss"]


@pytest.mark.parametrize(("small", "threads"), [(10**9, 1), (0, 3)])
def test_a_small_network_is_trained_by_one_thread(monkeypatch, small, threads):
    # Several threads of a small network wait for each other longer than they compute.
    monkeypatch.setattr("counterfoil.models.runtime.SMALL", small)
    before = torch.get_num_threads()
    result = set()

    def seen(stage, done, total):
        if stage == "training":
            result.add(torch.get_num_threads())

    try:
        torch.set_num_threads(3)
        trained(Coco(batch_size=4, steps=2, warmup=1, select="last"), thumbnails.rows(8), progress=seen)
        assert result == {threads}
        assert torch.get_num_threads() == 3
    finally:
        torch.set_num_threads(before)
