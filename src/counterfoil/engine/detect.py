"""Questions answered by a classifier of natural and synthetic items, by a rule of two steps."""

import numpy as np
from jaxtyping import Bool, Float
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
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
    captions, images = benchmark.paired.slots()
    candidates = {
        kind: slots for kind, slots in (("images", images), ("captions", captions)) if slots.shape[1] > 1
    }
    work, kept = session.prepare(benchmark, scorer, reads=tuple(candidates))
    found = session.classify(scorer, work, kept, kinds=tuple(candidates))
    of = {"images": work.image_of, "captions": work.caption_of}
    synthetic = {kind: found[kind][of[kind]][slots] for kind, slots in candidates.items()}
    if len(synthetic) == 2:
        right = detection.two_steps(synthetic["captions"], synthetic["images"])
    else:
        (of_candidates,) = synthetic.values()
        right = {"accuracy": _least(of_candidates, benchmark.paired.correct)}
    return signed(Outcomes(right, _TIES), scorer, session=session)


def _least(probability: Float[ndarray, "n k"], correct: int) -> Bool[ndarray, "n"]:
    """Whether the first `correct` of each row are all less likely synthetic than all others."""
    pair = np.stack([probability[:, :correct].max(axis=1), probability[:, correct:].min(axis=1)], axis=1)
    return detection.likelier(pair) == 1
