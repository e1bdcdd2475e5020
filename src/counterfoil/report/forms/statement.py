"""Reports on statements that are true or false of an image."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.forms import of
from counterfoil.evaluation.forms.statement import decisions
from counterfoil.evaluation.result import Result, Run
from counterfoil.metrics.agreement import fleiss_kappa
from counterfoil.metrics.ties import Ties
from counterfoil.report.drawing import INK, MUTED, RIGHT, WRONG, panels, plain, short
from counterfoil.report.forms.base import WORST, BrowserSource, small_figures
from counterfoil.report.forms.contrast import ContrastReport
from counterfoil.report.forms.rated import undefined
from counterfoil.report.html import Drawing, Panels, Section
from counterfoil.report.labels import amount, listed
from counterfoil.report.notes import Note, below_chance, intervals, outcomes, tied

_INTERVALS = {
    "influence": "Wilson's for the effective number of questions, from the influence of each (DeLong's "
    "variance for AUROC), summed over questions that share images or captions",
    "crossed": "the same, with images and captions as crossed factors",
}


class StatementReport(ContrastReport):
    """Statements."""

    policies: ClassVar[Mapping[str, str]] = {
        "strict": "A score that equals its threshold, or that of one of the other truth, is wrong.",
        "half": "A score that equals its threshold, or that of one of the other truth, counts a half.",
        "optimistic": "A score that equals its threshold, or that of one of the other truth, is right.",
    }

    def about(self, benchmark: Benchmark) -> str:
        questions = benchmark.statements
        measured = questions.measured
        true = int(questions.truth[measured].sum())
        text = (
            f"{amount(int(measured.sum()), 'statement')}, each of one {benchmark.card.shows}: "
            f"{true:,} are true, {int(measured.sum()) - true:,} false."
        )
        if not measured.all():
            text += f" {int((~measured).sum()):,} more, of another split, only choose a threshold."
        if questions.votes is not None:
            kappa = fleiss_kappa(questions.votes[measured])
            text += f" People who judged them agree with Fleiss' kappa {kappa:.3f}."
        return text

    def amount(self, benchmark: Benchmark) -> str:
        """With those that only choose a threshold."""
        measured = benchmark.statements.measured
        text = amount(int(measured.sum()), "statement")
        return text if measured.all() else f"{text}, {int((~measured).sum()):,} more for a threshold"

    def result_lines(self, result: Result) -> list[str]:
        """With the threshold that other questions chose, and how well people agree."""
        threshold, agreed = result.provenance.get("threshold"), result.provenance.get("agreement")
        lines = super().result_lines(result)
        if threshold:
            lines.append(
                f"fitted threshold: {_between(threshold)}, of highest balanced accuracy over "
                f"{threshold['chosen_on']}"
            )
        if agreed:
            lines.append(
                f"people who judged {amount(agreed['statements'], 'statement')} agree with Fleiss' kappa "
                f"{agreed['fleiss_kappa']:.3f}"
            )
        return lines

    def remarks(self, comparison: Comparison) -> list[Note]:
        parts = (tied, undefined, below_chance, outcomes, _thresholds)
        return [*(note for part in parts for note in part(comparison)), *intervals(comparison, _INTERVALS)]

    def kinds(self, run: Run) -> Int[ndarray, "questions"]:
        """At the fitted threshold; of given outcomes as given."""
        right = decisions(run.benchmark, run.answers, Ties(run.result.ties["policy"])).right
        column = right[:, 0] if np.isnan(right[:, 1]).all() else right[:, 1]
        return (np.nan_to_num(column) < 1).astype(np.int64)

    def failures(self, run: Run) -> tuple[list[int], dict[int, str]]:
        """Statements by how far their score is on the wrong side of the fitted threshold."""
        questions, away = run.benchmark.statements, _margins(run)
        truth = questions.truth.tolist()
        words = ("false", "true")
        if away is None:
            order = np.flatnonzero((self.kinds(run) > 0) & questions.measured).tolist()
            return order, {q: f"{words[truth[q]]}, and answered otherwise" for q in order[:WORST]}
        wrong = (away <= 0) & questions.measured
        order = [q for q in np.argsort(away, kind="stable").tolist() if wrong[q]]
        return order, {
            q: f"{words[truth[q]]}, and {-away[q]:.4g} on the wrong side of its threshold"
            for q in order[:WORST]
        }

    def measures(self, comparison: Comparison, anchor: str) -> list[Drawing]:
        return self.all_measures(comparison, anchor, columns=3)

    def margins(self, comparison: Comparison, anchor: str) -> Section | None:
        """Histograms of the scores of true and of false statements."""
        figures = small_figures(comparison, f"{anchor}-scores", histogram, "Scores of {} by truth")
        if not figures:
            return None
        about = (
            "The scores of true statements (blue, upwards) and of false ones (orange, downwards), on each "
            "scorer's own scale; dashed: the threshold that other questions chose, or the mean of several."
        )
        return Section("margins", "Scores of true and false", about, panels=(Panels("", "", figures),))

    def questions_data(self, source: BrowserSource) -> dict[str, Any]:
        """With the truth of each statement."""
        return {**super().questions_data(source), "truth": source.benchmark.statements.truth.tolist()}

    def _model(self, run: Run) -> dict[str, Any]:
        away = _margins(run)
        margins = None if away is None else [float(f"{value:.6g}") for value in away.tolist()]
        return {**super()._model(run), "margins": margins}


def histogram(run: Run) -> Any:
    """The scores of a run, of true statements upwards and of false ones downwards."""
    questions = run.benchmark.statements
    measured, scores = questions.measured, run.answers.scores
    thresholds = decisions(run.benchmark, run.answers, Ties.STRICT).thresholds
    low, high = float(scores[measured].min()), float(scores[measured].max())
    edges = np.linspace(low, high if high > low else low + 1, 25)
    with panels((2.65, 1.3), left=0.1, top=0.26) as (figure, (axes,)):
        for side, sign, colour in ((questions.truth, 1, RIGHT), (~questions.truth, -1, WRONG)):
            counts, _ = np.histogram(scores[measured & side], bins=edges)
            axes.bar(edges[:-1], sign * counts, width=0.9 * np.diff(edges), align="edge", color=colour, lw=0)
        axes.axhline(0, color=INK, lw=0.8)
        if thresholds is not None:
            axes.axvline(float(thresholds[measured].mean()), color=MUTED, lw=1, ls=(0, (4, 3)))
        axes.set_yticks([])
        plain(axes, short(run.name, 30), grid="x", left=False, size=7.5, pad=4)
        axes.locator_params(axis="x", nbins=5)
    return figure


def _margins(run: Run) -> ndarray | None:
    """How far each score is on the right side of the fitted threshold; None where there is none."""
    if not run.answers.has_scores:
        return None
    return of(run.benchmark).margins(run.benchmark, run.answers.scores).get("fitted_accuracy")


def _between(threshold: Mapping[str, Any]) -> str:
    """A threshold, or the lowest and the highest of several."""
    low, high = (f"{threshold[end]:.4g}" for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


def _thresholds(comparison: Comparison) -> list[Note]:
    """Which thresholds were chosen, and on which questions."""
    by_questions: dict[str, list[str]] = {}
    for run in comparison.runs:
        threshold = run.result.provenance.get("threshold")
        if threshold:
            of = by_questions.setdefault(str(threshold["chosen_on"]), [])
            of.append(f"{run.name} {_between(threshold)}")
    return [
        Note(f"Fitted thresholds have the highest balanced accuracy over {on}: {listed(of)}.")
        for on, of in by_questions.items()
    ]
