"""Evaluation of a network in training: as a scorer, with the engine and the measures of evaluation."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from counterfoil.data.benchmark import Benchmark
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.evaluation.evaluate import evaluate, main_measures, per_item
from counterfoil.evaluation.result import Estimate
from counterfoil.scorers import pcme
from counterfoil.scorers.base import Identity
from counterfoil.scorers.dual import DualEncoder
from counterfoil.scorers.networks import Backbone


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
    """The network as an `Embedder`, with the weights of the moment of each call.

    The network stays as it is, unlike that of a finished checkpoint
    (`counterfoil.scorers.checkpoint_scorer`), which is frozen and may be rounded.
    """
    towers = backbone.network.plain_towers(backbone, backbone.device(), torch.float32)
    return DualEncoder(
        identity=Identity(backbone.name, weights="in training"),
        preparation=backbone.preparation,
        towers=replace(towers, count=lambda texts: [len(text) for text in texts]),
        comparison=pcme.comparison(backbone.network),
    )


def estimate(backbone: Backbone, benchmark: Benchmark, *, batch_size: int = 128) -> Estimate:
    """The number of `accuracy` with its interval, as `evaluate` gives it: of a gallery the mean measure.

    Raises what answering the benchmark raises.
    """
    name = leading(benchmark)
    with evaluation_mode(backbone):
        answers = run(benchmark, embedder(backbone), session=Session(batch_size=batch_size))
    return evaluate(benchmark, answers, scorer=backbone.name, measures=(name,)).measures[name]


def leading(benchmark: Benchmark) -> str:
    """The measure that a network in training is judged by: the last main one, which sums the others up."""
    return main_measures(benchmark)[-1]


def accuracy(backbone: Backbone, benchmark: Benchmark, *, batch_size: int = 128) -> float:
    """One number for a benchmark, in [0, 1]: of quads group, of choices accuracy, of galleries the mean R@1.

    Galleries whose card puts another measure first give that. Ties count as wrong. Raises what answering the
    benchmark raises.
    """
    name = leading(benchmark)
    with evaluation_mode(backbone):
        answers = run(benchmark, embedder(backbone), session=Session(batch_size=batch_size))
    values, direction = per_item(benchmark, answers, measures=(name,))[name], benchmark.questions.directions
    return float(np.mean([np.nanmean(values[direction == each]) for each in np.unique(direction)]))
