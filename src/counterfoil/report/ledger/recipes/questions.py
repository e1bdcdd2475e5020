"""Numbers about questions of a fixed size: measures over groups, counts, what chance and detectors get."""

from itertools import permutations, product

import numpy as np

from counterfoil.data.cards import card
from counterfoil.errors import DataError
from counterfoil.metrics import contrast, detection
from counterfoil.report.ledger.entry import Basis
from counterfoil.report.ledger.evidence import mask
from counterfoil.report.ledger.recipes.case import Case, Recomputed
from counterfoil.stats.estimates import t_over_folds

#: The shape of a question's scores by form, and the measures of them.
_SCORES = {"quad": ((2, 2), contrast.QUAD), "choice": ((2,), contrast.CHOICE)}


def mean(case: Case) -> Recomputed:
    """A measure over a benchmark or over some of its groups, in per cent."""
    benchmark, measure = case.need("benchmark"), case.need("measure")
    if case.model is not None and case.model.chance:
        return chance(card(benchmark).form, measure)
    file = case.file()
    weight = mask(case.evidence.asked(benchmark, file), case.spec.groups)
    return Recomputed(100 * float(case.values(measure) @ weight / weight.sum()), file)


def chance(form: str, measure: str) -> Recomputed:
    """What random scores that are never equal get, in per cent, by going through every order they can have.

    A quad's four scores have 24 orders, a pair's two have 2, and all are equally likely.

    >>> chance("quad", "group")
    Recomputed(value=16.666..., source='all 24 orders of 4 scores', basis=<Basis.DERIVED: 'derived'>)
    """
    shape, measures = _SCORES[form]
    size = int(np.prod(shape))
    orders = np.array(list(permutations(range(size))), dtype=np.float64)
    values = measures[measure](orders.reshape(-1, *shape))
    return Recomputed(100 * float(values.mean()), f"all {len(orders)} orders of {size} scores", Basis.DERIVED)


def count(case: Case) -> Recomputed:
    """How many questions a benchmark or some of its groups have, or how many labels a grouping has."""
    benchmark = case.need("benchmark")
    if case.model is not None and benchmark in case.model.files:
        source = case.file()
        asked = case.evidence.asked(benchmark, source)
    else:
        asked, source = case.evidence.questions(benchmark)
    if case.spec.labels is not None:
        return Recomputed(len(set(asked.questions.groupings[case.spec.labels]) - {""}), source)
    return Recomputed(int(mask(asked, case.spec.groups).sum()) * (case.spec.examples or 1), source)


def length_correlation(case: Case) -> Recomputed:
    """Pearson's r between a measure and the mean length of the two captions in words, or its p-value.

    Source: Winoground, Table 6 (right).
    """
    asked, place = case.evidence.questions(case.need("benchmark"))
    words = case.evidence.lengths(place)
    if len(words) != len(asked):
        raise DataError(
            "not a length for every question", where=place, given=len(words), allowed=str(len(asked))
        )
    return Recomputed(case.pearson(words, case.values(case.need("measure"))), f"{case.file()}, {place}")


def fold_interval(case: Case) -> Recomputed:
    """One end of Student's t interval over four folds, in per cent.

    The paper does not say which examples make a group; see `t_over_folds`.

    Source: Winoground, appendix A.
    """
    values = case.values(case.need("measure"))
    low, high = t_over_folds(values, folds=4, seed=0)
    return Recomputed(100 * (low if case.need("statistic") == "low" else high), case.file())


def both_orders(case: Case) -> Recomputed:
    """The share of questions a chat model answers correctly, in per cent, averaged over candidate orders.

    A question that it left open counts as wrong, as in the published totals.

    Source: BiVLC, section 5.3 (GPT-4V on SugarCrepe).
    """
    folders = case.spec.answers or ()
    shares = []
    for folder in folders:
        right, count, _ = case.evidence.chosen(folder)
        shares.append(100 * right / count)
    return Recomputed(float(np.mean(shares)), " and ".join(folders))


def detector(case: Case) -> Recomputed:
    """What detectors of synthetic captions and images get, in per cent.

    On BiVLC: how often each is right about single items (`text`, `image`), and the measures of a quad by the
    two-step rule. On SugarCrepe: how often the caption of the photograph looks the more natural.

    Source: BiVLC, Table 5 and section 5.3.
    """
    benchmark, measure = case.need("benchmark"), case.need("measure")
    if case.model is not None and case.model.chance:
        return _coin() if measure in ("text", "image") else chance(card(benchmark).form, measure)
    file = case.file()
    captions = case.evidence.detected(file, "text_pred")
    if measure == "text":
        return Recomputed(100 * float(detection.accuracy(captions).mean()), file)
    if measure == "accuracy":
        return Recomputed(100 * float(detection.likelier(captions).mean()), file)
    images = case.evidence.detected(file, "img_pred")
    if measure == "image":
        return Recomputed(100 * float(detection.accuracy(images).mean()), file)
    values = contrast.from_directions(detection.two_steps(captions, images))[measure]
    return Recomputed(100 * float(values.mean()), file)


def _coin() -> Recomputed:
    """How often a detector is right that answers without looking: over all answers to a pair, in per cent."""
    answers = np.array(list(product((0.0, 1.0), repeat=2)))
    value = 100 * float(detection.accuracy(answers).mean())
    return Recomputed(value, f"all {len(answers)} answers to a pair", Basis.DERIVED)
