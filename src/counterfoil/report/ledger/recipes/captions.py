"""Numbers about caption metrics: how well they go with what people gave, and what they give to an example."""

import numpy as np

from counterfoil.data.forms import Rated
from counterfoil.errors import DataError
from counterfoil.evaluation.forms.rated import points
from counterfoil.metrics.correlation import MEASURES
from counterfoil.report.ledger.recipes.case import Case, Recomputed


def judged(case: Case) -> Recomputed:
    """How well a caption metric goes with what people gave, times 100.

    Source: PAC-S, section 4.2.
    """
    benchmark, metric, measure = case.need("benchmark"), case.need("metric"), case.need("measure")
    if measure not in MEASURES:
        raise DataError("no such correlation", where=case.row, given=measure, allowed=MEASURES)
    scores = case.evidence.judged(benchmark, metric)
    found = points(_rated(case), scores)
    value = float(np.mean([MEASURES[measure](part.scores, part.ratings) for part in found]))
    return Recomputed(100 * value, f"{case.evidence.source(benchmark)}, {metric}")


def judgements(case: Case) -> Recomputed:
    """How many ratings (points), pairs of an image and a caption, or images there are, or which is the
    lowest or highest rating; `per` divides it.
    """
    questions = _rated(case)
    given = questions.ratings[~np.isnan(questions.ratings)]
    found = {
        "points": len(given),
        "pairs": len(questions),
        "images": len(np.unique(questions.images)),
        "lowest": float(given.min()),
        "highest": float(given.max()),
    }
    value = found[case.need("measure")]
    if case.spec.per is not None:
        value /= int(case.spec.per)
    return Recomputed(value, case.evidence.source(case.need("benchmark")))


def example(case: Case) -> Recomputed:
    """What a metric gives to all candidates of a file together, with the references of another.

    Source: the README of clipscore.
    """
    files = case.need("candidates"), case.need("references")
    value = case.evidence.example(*files, case.need("metric"))
    return Recomputed(value, ", ".join(files))


def _rated(case: Case) -> Rated:
    benchmark, _ = case.evidence.questions(case.need("benchmark"))
    return benchmark.rated
