"""Questions answered by a classifier of natural and synthetic items, by a rule of two steps."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Choice, Quad
from counterfoil.data.scores import Outcomes
from counterfoil.engine.compute import Work, prepared
from counterfoil.engine.plan import plan
from counterfoil.engine.progress import Note, Progress
from counterfoil.engine.provenance import signed
from counterfoil.errors import InputError, ScoreError
from counterfoil.metrics import detection
from counterfoil.scorers.base import Classifier

_TIES = "equal probabilities are wrong, and one half is natural"


def detect(
    benchmark: Benchmark,
    scorer: Classifier,
    *,
    cache: Path | None,
    batch_size: int,
    workers: int,
    progress: Progress,
    note: Note,
) -> Outcomes:
    """What a detector of synthetic items gets right of quads or choices, item 0 of each being natural.

    * Quads by the rule of two steps: the query is classified, and the likelier candidate of the same kind is
      chosen (`detection.two_steps`).
    * Choices by the candidates alone: all correct ones less likely synthetic than all others, ties being
      wrong (`detection.likelier`). The query is not looked at, and need not be at hand.

    Each distinct item is classified once. Raises `InputError` for galleries, which ask for an order, and
    what `counterfoil.engine.run` raises.

    Source: BiVLC, section 5.3.
    """
    questions = benchmark.questions
    if not isinstance(questions, Quad | Choice):
        raise InputError(
            "a detector cannot rank a gallery",
            where=scorer.identity.name,
            given=benchmark.name,
            allowed="quads and choices",
        )
    both = isinstance(questions, Quad)
    side = "captions" if isinstance(questions, Choice) and questions.asks == "image" else "images"
    asked = ("images", "captions") if both else (side,)
    keys, shelf = prepared(benchmark, scorer, cache=cache, progress=progress, asked=asked)
    of = plan(benchmark, keys)
    work = Work(of, shelf, batch_size, workers, progress, note)
    found = {}
    if "images" in asked:
        values = work.images(lambda batches: _columns(scorer.image_probabilities(batches, workers=workers)))
        found["images"] = _checked(values[:, 0], scorer)[of.image_of]
    if "captions" in asked:
        values = work.captions(
            lambda batches: _columns(scorer.caption_probabilities(batches)), scorer.lengths
        )
        found["captions"] = _checked(values[:, 0], scorer)[of.caption_of]
    if isinstance(questions, Quad):
        captions, images = found["captions"][questions.captions], found["images"][questions.images]
        right = detection.two_steps(captions, images)
    else:
        right = {"accuracy": _least(found[side][questions.candidates], questions.correct)}
    return signed(Outcomes(right, _TIES), scorer, batch_size=batch_size, workers=workers)


def _least(probability: Float[ndarray, "n k"], correct: int) -> Bool[ndarray, "n"]:
    """Whether the first `correct` of each row are all less likely synthetic than all others."""
    pair = np.stack([probability[:, :correct].max(axis=1), probability[:, correct:].min(axis=1)], axis=1)
    return detection.likelier(pair) == 1


def _columns(stream: Iterator[ndarray]) -> Iterator[ndarray]:
    """Probabilities as the columns that the cache keeps."""
    for part in stream:
        yield np.asarray(part)[:, None]


def _checked(values: Float[ndarray, "items"], scorer: Classifier) -> Float[ndarray, "items"]:
    """The values, if they are probabilities."""
    if len(values) and not 0 <= values.min() <= values.max() <= 1:
        raise ScoreError(
            "the detector gave numbers that are no probabilities",
            where=scorer.identity.name,
            given=f"{values.min()} to {values.max()}",
            allowed="0 to 1",
        )
    return values
