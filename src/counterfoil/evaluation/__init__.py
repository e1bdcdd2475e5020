"""From answers to numbers with intervals, from runs to comparisons. Nothing here loads a model."""

from counterfoil.evaluation.compare import Comparison, Difference, compare
from counterfoil.evaluation.evaluate import evaluate, per_item
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.evaluation.run import Run, load_run, save_run

__all__ = [
    "Comparison",
    "Difference",
    "Estimate",
    "Result",
    "Run",
    "compare",
    "evaluate",
    "load_run",
    "per_item",
    "save_run",
]
