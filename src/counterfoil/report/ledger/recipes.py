"""How each kind of printed number is recomputed: a recipe takes what is said of a cell, and computes it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import permutations, product
from typing import NamedTuple

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.cards import card
from counterfoil.errors import DataError
from counterfoil.metrics import choice, detection, quad
from counterfoil.metrics.correlation import pearson
from counterfoil.report.ledger.evidence import Evidence, NoDataError, mask
from counterfoil.report.ledger.paper import Model, Paper, Spec
from counterfoil.stats.estimates import t_over_folds


class Finding(NamedTuple):
    """A recomputed number, in the unit of the paper, and what it was computed from."""

    value: float | int
    source: str


@dataclass(frozen=True)
class Case:
    """One cell: what is said of it, the row it stands in, and where its data may be."""

    paper: Paper
    row: str
    spec: Spec
    evidence: Evidence

    def need(self, field: str) -> str:
        """What the spec says under `field`; raises `DataError` where the paper's file forgot it."""
        value = getattr(self.spec, field)
        if not value:
            raise DataError(
                f"the row has no '{field}'", where=f"papers/{self.paper.name}.toml", given=self.row
            )
        return str(value)

    @property
    def model(self) -> Model | None:
        """Whose answers the row is about; None where it is about no model."""
        return self.paper.models.get(self.spec.model or self.row)

    def file(self) -> str:
        """The file of the model's answers to the benchmark; raises `NoDataError` where there is none."""
        model, benchmark = self.model, self.need("benchmark")
        if model is None:
            raise DataError("nobody of this name", where=f"papers/{self.paper.name}.toml", given=self.row)
        if model.missing or benchmark not in model.files:
            raise NoDataError(model.missing or f"no answers to {benchmark} are known")
        return model.files[benchmark]

    def values(self, measure: str) -> Float[ndarray, "n"]:
        """The measure's value per question of the cell's benchmark, in [0, 1]."""
        return self.evidence.values(self.need("benchmark"), self.file())[measure]


def mean(case: Case) -> Finding:
    """A measure over a benchmark or over some of its groups, in per cent."""
    benchmark, measure = case.need("benchmark"), case.need("measure")
    if case.model is not None and case.model.chance:
        return chance(card(benchmark).form, measure)
    file = case.file()
    weight = mask(case.evidence.asked(benchmark, file), case.spec.groups)
    return Finding(100 * float(case.values(measure) @ weight / weight.sum()), file)


def chance(form: str, measure: str) -> Finding:
    """What random scores that are never equal get, in per cent, by going through every order they can have.

    A quad's four scores have 24 orders, a pair's two have 2, and all are equally likely.

    >>> chance("quad", "group")
    Finding(value=16.666..., source='all 24 orders of 4 scores')
    """
    size = 4 if form == "quad" else 2
    orders = np.array(list(permutations(range(size))), dtype=np.float64)
    values = quad.MEASURES[measure](orders.reshape(-1, 2, 2)) if form == "quad" else choice.accuracy(orders)
    return Finding(100 * float(values.mean()), f"all {len(orders)} orders of {size} scores")


def count(case: Case) -> Finding:
    """How many questions a benchmark or some of its groups have, or how many labels a grouping has."""
    benchmark = case.need("benchmark")
    if case.model is not None and benchmark in case.model.files:
        source = case.file()
        asked = case.evidence.asked(benchmark, source)
    else:
        asked, source = case.evidence.questions(benchmark)
    if case.spec.labels is not None:
        return Finding(len(set(asked.questions.groupings[case.spec.labels]) - {""}), source)
    return Finding(int(mask(asked, case.spec.groups).sum()) * (case.spec.examples or 1), source)


def length_correlation(case: Case) -> Finding:
    """Pearson's r between a measure and the mean length of the two captions in words, or its p-value.

    Source: P003, Table 6 (right).
    """
    asked, place = case.evidence.questions(case.need("benchmark"))
    words = case.evidence.lengths(place)
    if len(words) != len(asked):
        raise DataError(
            "not a length for every question", where=place, given=len(words), allowed=str(len(asked))
        )
    return Finding(_pearson(words, case.values(case.need("measure")), case), f"{case.file()}, {place}")


def fold_interval(case: Case) -> Finding:
    """One end of Student's t interval over four folds, in per cent.

    The paper does not say which examples make a group; see `t_over_folds`.

    Source: P003, appendix A.
    """
    values = case.values(case.need("measure"))
    low, high = t_over_folds(values, folds=4, seed=0)
    return Finding(100 * (low if case.need("statistic") == "low" else high), case.file())


def detector(case: Case) -> Finding:
    """What detectors of synthetic captions and images get, in per cent.

    On BiVLC: how often each is right about single items (`text`, `image`), and the measures of a quad by the
    two-step rule. On SugarCrepe: how often the caption of the photograph looks the more natural.

    Source: P000, Table 5 and section 5.3.
    """
    benchmark, measure = case.need("benchmark"), case.need("measure")
    if case.model is not None and case.model.chance:
        return _coin() if measure in ("text", "image") else chance(card(benchmark).form, measure)
    file = case.file()
    captions = case.evidence.detected(file, "text_pred")
    if measure == "text":
        return Finding(100 * float(detection.accuracy(captions).mean()), file)
    if measure == "accuracy":
        return Finding(100 * float(detection.likelier(captions).mean()), file)
    images = case.evidence.detected(file, "img_pred")
    if measure == "image":
        return Finding(100 * float(detection.accuracy(images).mean()), file)
    values = quad.from_directions(detection.two_steps(captions, images))[measure]
    return Finding(100 * float(values.mean()), file)


def _coin() -> Finding:
    """How often a detector is right that answers without looking: over all answers to a pair, in per cent."""
    answers = np.array(list(product((0.0, 1.0), repeat=2)))
    return Finding(100 * float(detection.accuracy(answers).mean()), f"all {len(answers)} answers to a pair")


def printed_mean(case: Case) -> Finding:
    """The mean of printed numbers."""
    (column,) = _printed(case, 1)
    return Finding(float(np.mean(list(column.values()))), "as printed: " + "; ".join(case.spec.of or ()))


def printed_correlation(case: Case) -> Finding:
    """Pearson's r between two printed columns, over the rows that both have, or its p-value."""
    x, y = _printed(case, 2)
    rows = [row for row in x if row in y and row not in (case.spec.without or ())]
    value = _pearson(np.array([x[row] for row in rows]), np.array([y[row] for row in rows]), case)
    return Finding(value, f"as printed: {'; '.join(case.spec.of or ())} ({len(rows)} models)")


def _printed(case: Case, columns: int) -> list[dict[str, float]]:
    of = case.spec.of or ()
    if len(of) != columns:
        raise DataError(
            "wrong number of printed columns",
            where=f"papers/{case.paper.name}.toml, {case.row}",
            given=len(of),
            allowed=str(columns),
        )
    return [case.paper.printed(reference) for reference in of]


def _pearson(x: Float[ndarray, "n"], y: Float[ndarray, "n"], case: Case) -> float:
    r, p = pearson(x, y)
    if np.isnan(r):
        raise NoDataError("no correlation is defined: a column has the same number everywhere")
    return p if case.need("statistic") == "p" else r


#: Every recipe by the name that the papers' files use.
RECIPES: Mapping[str, Callable[[Case], Finding]] = {
    "mean": mean,
    "count": count,
    "length_correlation": length_correlation,
    "fold_interval": fold_interval,
    "detector": detector,
    "printed_mean": printed_mean,
    "printed_correlation": printed_correlation,
}
