"""Recomputation of printed numbers: one recipe per kind of number."""

from collections.abc import Callable, Mapping

from counterfoil.report.ledger.recipes import captions, gallery, printed, questions
from counterfoil.report.ledger.recipes.case import Case, Recomputed
from counterfoil.report.ledger.recipes.questions import chance

__all__ = ["RECIPES", "Case", "Recomputed", "chance"]

#: Every recipe by the name that the papers' files use.
RECIPES: Mapping[str, Callable[[Case], Recomputed]] = {
    recipe.__name__: recipe
    for recipe in (
        questions.mean,
        questions.count,
        questions.length_correlation,
        questions.fold_interval,
        questions.detector,
        questions.both_orders,
        captions.judged,
        captions.judgements,
        captions.example,
        gallery.positives,
        gallery.left_out,
        gallery.shown,
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
