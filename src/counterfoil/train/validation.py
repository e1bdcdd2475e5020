"""Validation on held-out rows, the choice of the best step, and forgetting on a task held out of training."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from lightning_fabric import Fabric
from numpy import ndarray
from torch import Tensor

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.engine.plan import Progress
from counterfoil.engine.session import Session, run
from counterfoil.errors import InputError, ModelError
from counterfoil.evaluation.evaluate import evaluate, leading as leading_measure, main_measures, of
from counterfoil.evaluation.result import Estimate
from counterfoil.metrics.ranking import recall_at_k
from counterfoil.metrics.ranks import Qrels, join, positive_ranks
from counterfoil.metrics.ties import Ties
from counterfoil.models.base import Identity
from counterfoil.models.dual import DualEncoder
from counterfoil.models.networks import Backbone, Encoded
from counterfoil.train.dataloaders import BatchPart, Feed, in_order
from counterfoil.train.gradients import answer_of, joined
from counterfoil.train.images import BatchImages
from counterfoil.train.losses import similarity
from counterfoil.train.objectives import Objective
from counterfoil.train.recipes import Recipe


@contextmanager
def evaluation_mode(backbone: Backbone) -> Iterator[None]:
    """The network as it is when it answers: no gradients, no dropout; afterwards as it was before."""
    training = backbone.network.training
    backbone.network.eval()
    try:
        with torch.no_grad():
            yield
    finally:
        backbone.network.train(training)


def embedder(backbone: Backbone) -> Any:
    """The network as an `Embedder`, with its weights at each call, neither frozen nor rounded."""
    towers = backbone.network.plain_towers(backbone, backbone.device(), torch.float32)
    towers = replace(towers, count=lambda texts: [len(text) for text in texts])
    identity, comparison = Identity(backbone.name, weights="in training"), backbone.network.comparison()
    return DualEncoder(identity, backbone.preparation, towers, comparison=comparison, needs=backbone.needs)


def estimate(
    backbone: Backbone, benchmark: Benchmark, *, batch_size: int = 128, draws: int = 10_000
) -> Estimate:
    """The number of `accuracy` with its interval, as `evaluate` gives it."""
    name = leading(benchmark)
    with evaluation_mode(backbone):
        answers = run(benchmark, embedder(backbone), session=Session(batch_size=batch_size))
    return evaluate(benchmark, answers, model=backbone.name, draws=draws, measures=(name,)).measures[name]


def leading(benchmark: Benchmark) -> str:
    """The measure by which a network in training is selected; of statements AUROC."""
    return leading_measure(benchmark) if of(benchmark).values_per_item else main_measures(benchmark)[-1]


def accuracy(backbone: Backbone, benchmark: Benchmark, *, batch_size: int = 128) -> float:
    """A benchmark's number in [0, 1]: of quads group, of choices accuracy, of galleries the mean R@1."""
    return estimate(backbone, benchmark, batch_size=batch_size, draws=1).value


#: Queries that are ranked at a time.
_BLOCK = 512


def within_batch(
    images: Encoded, texts: Encoded, *, image_roles: Sequence[str], text_roles: Sequence[str]
) -> Float[Tensor, ""]:
    """How often an item's own partner is the nearest of its batch: mean of both directions, in [0, 1].

    Images look through all captions, captions that have an image through all images; generated positives are
    left out, and of ties the first counts. Source: the validation of BiVLC's fine-tuning.
    """
    pictures, words = _real_points(images.points, image_roles), _real_points(texts.points, text_roles)
    scores = similarity(pictures, words)
    pairs = min(scores.shape)
    diagonal = torch.arange(pairs, device=scores.device)
    right_texts = (scores[:pairs].argmax(dim=1) == diagonal).double().mean()
    right_images = (scores[:, :pairs].argmax(dim=0) == diagonal).double().mean()
    return (right_texts + right_images) / 2


def _real_points(points: Tensor, roles: Sequence[str]) -> Tensor:
    parts = zip(roles, points.unflatten(0, (len(roles), -1)), strict=True)
    return torch.cat([part for role, part in parts if not role.startswith("generated_")])


def rsum(scores: Float[ndarray, "images captions"], pairs: ndarray) -> float:
    """R@1 + R@5 + R@10 of both directions, in [0, 6], of all images with all captions (VSE++).

    `pairs` is (n, 2), the image and the caption of each right pair. Ties count as wrong.

    >>> rsum(np.eye(3), np.array([[0, 0], [1, 1], [2, 2]]))
    6.0
    """
    total = 0.0
    for side, axis, other in ((scores, 0, 1), (scores.T, 1, 0)):
        right: list[list[int]] = [[] for _ in range(len(side))]
        for pair in np.unique(pairs, axis=0):
            right[pair[axis]].append(int(pair[other]))
        blocks = [slice(i, i + _BLOCK) for i in range(0, len(side), _BLOCK)]
        ranks = join([positive_ranks(np.ascontiguousarray(side[b]), Qrels.of(right[b])) for b in blocks])
        total += sum(float(np.nanmean(recall_at_k(ranks, k, ties=Ties.STRICT))) for k in (1, 5, 10))
    return total


@dataclass(frozen=True, eq=False)
class Validation:
    """Held-out rows, prepared for the validation of what a recipe trains, within batches as it trains on."""

    feed: Feed
    objective: Objective
    recipe: Recipe

    def __post_init__(self) -> None:
        data, least = self.feed.data, self.recipe.smallest_batch
        if len(data) < least:
            where, allowed = data.source or data.name, f"{least} or more"
            raise InputError("too few rows to validate on", where=where, given=len(data), allowed=allowed)

    def measure(self, fabric: Fabric, *, progress: Progress) -> dict[str, float]:
        """Means over batches (not of a last one too small to choose among) of `accuracy`, `loss`; `rsum`."""
        size, least = self.recipe.batch_size, self.recipe.smallest_batch
        parts = in_order(len(self.feed.data), size * self.recipe.accumulate)
        parts = parts[:-1] if len(parts) > 1 and len(parts[-1].rows) < least else parts
        mine = parts[fabric.global_rank :: fabric.world_size]
        cut = [
            BatchPart(part.epoch, part.rows[start : start + size])
            for part in mine
            for start in range(0, len(part.rows), size)
        ]
        roles = {"image_roles": self.objective.images, "text_roles": self.objective.texts}
        many = {name: len(of) for name, of in roles.items()}
        sums = torch.zeros(2, dtype=torch.float64)
        backbone = self.feed.backbone
        device = backbone.device()
        with evaluation_mode(backbone), closing(self.feed.batches(cut)) as batches:
            for done, part in enumerate(mine, start=1):
                some = islice(batches, -(-len(part.rows) // size))
                with fabric.autocast():
                    answer = joined([answer_of(backbone.network, batch, device) for batch in some], **many)
                sides = (answer.images, answer.texts)
                images, texts = (
                    Encoded(*(of if of is None else of.float() for of in side)) for side in sides
                )
                loss, _ = self.objective(answer._replace(images=images, texts=texts))
                right = within_batch(answer.images, answer.texts, **roles)
                sums += torch.stack([right.double().cpu(), loss.detach().double().cpu()])
                progress("validating", done, len(mine))
            more = {"rsum": self._rsum(fabric)} if self.recipe.select == "rsum" else {}
        sums = fabric.all_reduce(sums.to(device), reduce_op="sum").cpu()
        return {"accuracy": float(sums[0] / len(parts)), "loss": float(sums[1] / len(parts)), **more}

    def _rsum(self, fabric: Fabric) -> float:
        """Retrieval among the distinct images and captions of the rows, each encoded once."""
        data, backbone, size = self.feed.data, self.feed.backbone, self.recipe.batch_size
        images, image = np.unique(data.need("image"), return_inverse=True)
        captions, caption = np.unique(data.need("caption"), return_inverse=True)
        device, network = backbone.device(), backbone.network
        requests = [BatchImages(images[start : start + size]) for start in range(0, len(images), size)]
        with fabric.autocast(), closing(self.feed.pictures.batches(requests)) as stream:
            pixels = (backbone.pixels(arrays).to(device) for arrays in stream)
            left = torch.cat([network.encode_images(batch).points.float() for batch in pixels])
            cuts = [captions[start : start + size] for start in range(0, len(captions), size)]
            tokens = (self.feed.tokens(cut).to(device) for cut in cuts)
            right = torch.cat([network.encode_texts(batch).points.float() for batch in tokens])
        scores = torch.cat([similarity(block, right).cpu() for block in left.split(_BLOCK)])
        return rsum(scores.numpy(), np.stack([image, caption], axis=1))


def better(measured: Mapping[str, float], measure: str, best: float | None) -> bool:
    """Whether a validation is strictly better by `measure`; of "loss" less is better, NaN never.

    >>> better({"loss": 0.5}, "loss", 0.6), better({"accuracy": 0.5}, "accuracy", 0.5)
    (True, False)
    """
    if measure not in measured:
        problem = "the measure that decides which weights are kept is not measured"
        raise InputError(problem, given=measure, allowed=[*measured, "last"], hint="set select in the recipe")
    sign = -1.0 if measure == "loss" else 1.0
    value = measured[measure]
    return bool(np.isfinite(value)) and (best is None or sign * value > sign * best)


#: What a model does on a task: a number, higher is better.
Task = Callable[[Backbone], float]


@dataclass(frozen=True)
class ForgettingGuard:
    """A task that training is not about, and how much may be lost on it.

    `task` is a function of the backbone, or a benchmark, of which the accuracy is taken. A warning is given
    when it has fallen by more than `margin` since the start. It is looked at whenever the training is
    validated.
    """

    task: Task | Benchmark
    margin: float = 0.02
    name: str = "held_out"

    def measure(self, backbone: Backbone) -> float:
        """The value of the task now."""
        if isinstance(self.task, Benchmark):
            return accuracy(backbone, self.task)
        return float(self.task(backbone))

    def exceeded(self, start: float, value: float) -> bool:
        """Whether more than the margin was lost since the start; a NaN is a loss, too."""
        # A tenth of a millionth for the rounding of a difference.
        return not value >= start - self.margin - 1e-7


def interpolate(start: Mapping[str, Tensor], tuned: Mapping[str, Tensor], alpha: float) -> dict[str, Tensor]:
    """Weights between two states of one network: (1 - alpha) start + alpha tuned, name by name.

    0 and 1 give the ends to the last bit; whole numbers are those of the nearer end, of `tuned` in the
    middle. Source: Wortsman et al., Robust fine-tuning of zero-shot models (WiSE-FT), 2022. Raises
    `InputError` for another `alpha` and `ModelError` where the states are not of one network.

    >>> interpolate({"w": torch.zeros(2)}, {"w": torch.ones(2)}, 0.25)
    {'w': tensor([0.2500, 0.2500])}
    """
    if not 0 <= alpha <= 1:
        raise InputError("a mixture of weights", given=f"alpha {alpha}", allowed="0 (start) to 1 (tuned)")
    shapes = [{name: tuple(tensor.shape) for name, tensor in state.items()} for state in (start, tuned)]
    if shapes[0] != shapes[1]:
        name, *_ = (name for name in shapes[0] | shapes[1] if shapes[0].get(name) != shapes[1].get(name))
        one, other = (
            "x".join(map(str, of[name])) or "a number" if name in of else "not there" for of in shapes
        )
        given = f"{name} is {one} in the one, {other} in the other"
        raise ModelError("weights of two different networks do not mix", given=given)
    mixed = {}
    for name, end in tuned.items():
        begin, end = start[name].detach().to(end.device), end.detach()
        if alpha in (0, 1) or not end.is_floating_point():
            mixed[name] = (end if alpha >= 0.5 else begin).clone()
        else:
            mixed[name] = torch.lerp(begin, end, alpha)
    return mixed
