"""Recomputation of printed numbers: one recipe per kind of number."""

from collections.abc import Callable, Mapping

from counterfoil.report.ledger.recipes import printed, released
from counterfoil.report.ledger.recipes.case import Case, Recomputed
from counterfoil.report.ledger.recipes.released import chance

__all__ = ["RECIPES", "Case", "Recomputed", "chance"]

#: Every recipe by the name that the papers' files use.
RECIPES: Mapping[str, Callable[[Case], Recomputed]] = {
    recipe.__name__: recipe
    for recipe in (
        released.mean,
        released.count,
        released.length_correlation,
        released.fold_interval,
        released.detector,
        released.both_orders,
        released.judged,
        released.judgements,
        released.example,
        released.positives,
        released.left_out,
        released.shown,
        printed.printed_mean,
        printed.printed_correlation,
        printed.printed_tau,
        printed.printed_best,
        printed.in_row,
        printed.in_sum,
        printed.preference,
        printed.annotator_bias,
    )
}
