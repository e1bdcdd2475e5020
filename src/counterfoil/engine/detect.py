"""Questions answered by a classifier of natural and synthetic items, by a rule of two steps."""

from typing import Any

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Choice, Quad
from counterfoil.data.scores import Outcomes
from counterfoil.engine.abilities import ability_for
from counterfoil.engine.provenance import signed
from counterfoil.engine.session import Session
from counterfoil.metrics import detection
from counterfoil.scorers.base import Classifier

_TIES = "equal probabilities are wrong, and one half is natural"


def detect(benchmark: Benchmark, scorer: Classifier, *, session: Session = Session()) -> Outcomes:
    """What a detector of synthetic items gets right of quads or choices, item 0 of each being natural.

    * Quads by the rule of two steps: the query is classified, and the likelier candidate of the same kind is
      chosen (`detection.two_steps`).
    * Choices by the candidates alone: all correct ones less likely synthetic than all others, ties being
      wrong (`detection.likelier`). The query is not looked at, and need not be at hand.

    Each distinct item is classified once. Raises `InputError` for other forms, and what
    `counterfoil.engine.run` raises.

    Source: BiVLC, section 5.3.
    """
    ability_for(scorer, benchmark)
    questions: Any = benchmark.questions
    both = isinstance(questions, Quad)
    side = "captions" if isinstance(questions, Choice) and questions.asks == "image" else "images"
    kinds = ("images", "captions") if both else (side,)
    work, kept = session.prepare(benchmark, scorer, reads=kinds)
    found = session.classify(scorer, work, kept, kinds=kinds)
    of = {"images": work.image_of, "captions": work.caption_of}
    found = {kind: values[of[kind]] for kind, values in found.items()}
    if isinstance(questions, Quad):
        captions, images = found["captions"][questions.captions], found["images"][questions.images]
        right = detection.two_steps(captions, images)
    else:
        right = {"accuracy": _least(found[side][questions.candidates], questions.correct)}
    return signed(Outcomes(right, _TIES), scorer, session=session)


def _least(probability: Float[ndarray, "n k"], correct: int) -> Bool[ndarray, "n"]:
    """Whether the first `correct` of each row are all less likely synthetic than all others."""
    pair = np.stack([probability[:, :correct].max(axis=1), probability[:, correct:].min(axis=1)], axis=1)
    return detection.likelier(pair) == 1
