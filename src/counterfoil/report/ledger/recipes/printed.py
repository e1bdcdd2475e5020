"""Numbers that follow from other printed ones, so that no data is needed."""

from string import ascii_lowercase

import numpy as np
from numpy import ndarray

from counterfoil.errors import DataError
from counterfoil.metrics.annotators import bias
from counterfoil.metrics.bradley_terry import bradley_terry
from counterfoil.metrics.correlation import kendall_tau_b
from counterfoil.report.ledger.entry import Basis, evaluate
from counterfoil.report.ledger.recipes.case import Case, Recomputed

# Means of printed numbers are rounded to so many decimals, so that equal ones are equal in floating point.
_EXACT = 9


def printed_mean(case: Case) -> Recomputed:
    """The mean of printed numbers."""
    (column,) = case.columns(case.spec.of, 1)
    return _derived(float(np.mean(list(column.values()))), _as_printed(case))


def printed_correlation(case: Case) -> Recomputed:
    """Pearson's r between two printed columns, over the rows that both have, or its p-value."""
    x, y = case.columns(case.spec.of, 2)
    rows = [row for row in x if row in y and row not in (case.spec.without or ())]
    value = case.pearson(np.array([x[row] for row in rows]), np.array([y[row] for row in rows]))
    return _derived(value, f"{_as_printed(case)} ({len(rows)} models)")


def printed_tau(case: Case) -> Recomputed:
    """Kendall's tau-b between two measures over the rows of a table.

    A measure is a printed column, or the mean of several ("image to text" and "text to image").

    Source: ECCV Caption, Table 5.
    """
    x, y = (_means(case, references) for references in (case.spec.of, case.spec.against))
    rows = [row for row in x if row in y]
    value = kendall_tau_b(np.array([x[row] for row in rows]), np.array([y[row] for row in rows]))
    return _derived(value, f"{_as_printed(case)} ({len(rows)} models)")


def printed_best(case: Case) -> Recomputed:
    """The largest number of a printed column, and whose it is."""
    (column,) = case.columns(case.spec.of, 1)
    best = max(column.values())
    whose = " and ".join(row for row, value in column.items() if value == best)
    return _derived(best, f"{_as_printed(case)}: {whose}")


def in_row(case: Case) -> Recomputed:
    """A formula of the numbers that some columns have in the row of this name, or of numbers alone."""
    columns = case.columns(case.spec.of) if case.spec.of else []
    for reference, column in zip(case.spec.of or (), columns, strict=True):
        if case.row not in column:
            raise DataError("no such row in the paper", where=reference, given=case.row, allowed=column)
    return _arithmetic(case, [column[case.row] for column in columns])


def in_sum(case: Case) -> Recomputed:
    """A formula of the sums of printed columns, blanks left out."""
    return _arithmetic(case, [sum(column.values()) for column in case.columns(case.spec.of)])


def preference(case: Case) -> Recomputed:
    """The strength of one of several things by the Bradley-Terry model, of 100 in all.

    The columns of `of` hold how often each row was preferred to the column's thing, rows and columns in the
    same order. The row's name tells which thing.

    Source: ECCV Caption, appendix D.1.
    """
    columns = case.columns(case.spec.of)
    rows = list(columns[0])
    wins = np.array([[column[row] for column in columns] for row in rows])
    if case.row not in rows or wins.shape[0] != wins.shape[1]:
        raise DataError(
            "not a table of preferences with this row",
            where=f"papers/{case.paper.name}.toml",
            given=case.row,
            allowed=rows,
        )
    return _derived(float(bradley_terry(wins)[rows.index(case.row)]), _as_printed(case))


def annotator_bias(case: Case) -> Recomputed:
    """What verifying the proposals of one model alone does to the models' results (total, own or others).

    `of` is the column of results on the benchmark made with that model's proposals, and has its name;
    `against` the column of results on the benchmark made with those of all.

    Source: ECCV Caption, equation E.5.
    """
    (verified,), (reference,) = case.columns(case.spec.of, 1), case.columns(case.spec.against, 1)
    models = list(verified)
    _, _, annotator = (case.spec.of or ("",))[0].partition(", ")
    if annotator not in models:
        raise DataError("the annotator is none of the models", given=annotator, allowed=models)
    found = bias(
        np.array([list(verified.values())]),
        np.array([[model == annotator for model in models]]),
        np.array([reference[model] for model in models]),
    )
    value: ndarray = getattr(found, case.need("statistic"))
    return _derived(float(value[0]), _as_printed(case))


def _means(case: Case, references: tuple[str, ...] | None) -> dict[str, float]:
    """The mean of some columns by row, over the rows that all have."""
    columns = case.columns(references)
    return {
        row: round(float(np.mean([column[row] for column in columns])), _EXACT)
        for row in columns[0]
        if all(row in column for column in columns)
    }


def _arithmetic(case: Case, numbers: list[float]) -> Recomputed:
    formula = case.need("formula")
    value = evaluate(formula, dict(zip(ascii_lowercase, numbers, strict=False)))
    if not case.spec.of:
        return _derived(value, f"as printed: {formula}")
    names = (f"{letter} {name}" for letter, name in zip(ascii_lowercase, case.spec.of, strict=False))
    return _derived(value, f"as printed: {formula} with {'; '.join(names)}")


def _as_printed(case: Case) -> str:
    return "as printed: " + "; ".join((*(case.spec.of or ()), *(case.spec.against or ())))


def _derived(value: float, source: str) -> Recomputed:
    return Recomputed(value, source, Basis.DERIVED)
