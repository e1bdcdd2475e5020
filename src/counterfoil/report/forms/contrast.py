"""Reports on quads, choices, paraphrases and statements: what is right against what is wrong."""

from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Run
from counterfoil.metrics.ties import Ties
from counterfoil.report.forms import SINGLE, WORST, BrowserSource, FormReport, NoteWriters, margin
from counterfoil.report.results import Note, below_chance, outcomes, threshold_range, tied, undefined
from counterfoil.report.tables import amount, listed
from counterfoil.report.thumbnails import grouping, shown_scores, spread


class ContrastReport(FormReport):
    """All contrasts but preferences."""

    key = "benchmarks"
    place = "questions"
    script = "pairs.js"

    noting: ClassVar[NoteWriters] = (tied, below_chance, outcomes)

    def questions_data(self, source: BrowserSource) -> dict[str, Any]:
        """All questions, as columns, so that some thousand of them stay within a megabyte or two."""
        comparison, benchmark, questions = source.comparison, source.benchmark, source.benchmark.listed
        caption_at, image_at = questions.slots()
        captions_of, images_of = (
            [[i for i in row if i >= 0] for row in slots.tolist()] for slots in (caption_at, image_at)
        )
        order = spread(comparison, self.kinds) if source.pictures else []
        shown = source.thumbnails.add(benchmark.images, [images_of[i] for i in order])
        return {
            "asks": getattr(questions, "asks", None),
            "correct": getattr(questions, "correct", None),
            "ids": list(questions.ids),
            "captions": source.named_captions(benchmark.captions),
            "images": [[image.id, shown.get(p, -1)] for p, image in enumerate(benchmark.images)],
            "captionAt": captions_of,
            "imageAt": images_of,
            "pictured": sum(all(p in shown for p in positions) for positions in images_of),
            "groupings": [
                grouping(name, labels) for name, labels in questions.groupings.items() if any(labels)
            ],
            "models": [self._model(run) for run in comparison.runs],
        }

    def _model(self, run: Run) -> dict[str, Any]:
        scores = shown_scores(run.answers.scores) if run.answers.has_scores else None
        return {"name": run.name, "kinds": "".join(map(str, self.kinds(run).tolist())), "scores": scores}


class QuadReport(ContrastReport):
    """Quads."""

    KINDS: ClassVar[tuple[str, ...]] = ("all right", "only I2T fails", "only T2I fails", "both fail")

    def about(self, benchmark: Benchmark) -> str:
        return (
            f"{len(benchmark):,} questions. Each holds two captions and two images; the first caption "
            "belongs to the first image, the second to the second."
        )

    def kinds(self, run: Run) -> Int[ndarray, "questions"]:
        """A value below 1, such as the half of a tie, is a failure; a direction not measured has none."""
        right = np.ones(len(run.benchmark))
        failed = [run.items.get(name, right) < 1 for name in ("i2t", "t2i")]
        return failed[0] + 2 * failed[1].astype(np.int64)

    def _model(self, run: Run) -> dict[str, Any]:
        data = super()._model(run)
        if all(name in run.items for name in SINGLE):
            bits = sum((run.items[name] >= 1).astype(np.int64) << i for i, name in enumerate(SINGLE))
            data["directions"] = "".join(f"{value:x}" for value in np.asarray(bits).tolist())
        return data


class ChoiceReport(ContrastReport):
    """Choices."""

    def about(self, benchmark: Benchmark) -> str:
        questions = benchmark.choices
        held, others = ("an image", "captions") if questions.asks == "image" else ("a caption", "images")
        least, most = int(questions.counts.min()), int(questions.counts.max())
        number = f"{least}" if least == most else f"{least} to {most}"
        return f"{len(benchmark):,} questions. Each holds {held} and {number} {others} to choose from."


class ParaphraseReport(ContrastReport):
    """Paraphrases; in the browser a candidate is a pair of captions."""

    def about(self, benchmark: Benchmark) -> str:
        return (
            f"{len(benchmark):,} questions. Each holds two captions of one meaning and a third of another, "
            "which are compared with each other; no image is looked at."
        )

    def questions_data(self, source: BrowserSource) -> dict[str, Any]:
        data = super().questions_data(source)
        first, second = source.benchmark.questions.text_pairs() or ((), ())
        sides = list(zip(np.ravel(first).tolist(), np.ravel(second).tolist(), strict=True))
        named = data["captions"]
        return {
            **data,
            "asks": "image",
            "captions": [
                [
                    f"{named[a][0]} ~ {named[b][0]}" if source.captions else None,
                    f"{named[a][1]} ~ {named[b][1]}",
                ]
                for a, b in sides
            ],
            "captionAt": np.arange(len(sides)).reshape(-1, 3).tolist(),
        }


def thresholds(comparison: Comparison) -> list[Note]:
    """The thresholds that were fitted, and on which questions."""
    by_questions: dict[str, list[str]] = {}
    for run in comparison.runs:
        if threshold := run.result.provenance.get("threshold"):
            of = by_questions.setdefault(str(threshold["chosen_on"]), [])
            of.append(f"{run.name} {threshold_range(threshold)}")
    return [
        Note(f"Fitted thresholds have the highest balanced accuracy over {on}: {listed(of)}.")
        for on, of in by_questions.items()
    ]


class StatementReport(ContrastReport):
    """Statements."""

    noting: ClassVar[NoteWriters] = (tied, undefined, below_chance, outcomes, thresholds)

    def about(self, benchmark: Benchmark) -> str:
        from counterfoil.metrics.agreement import fleiss_kappa

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

    def kinds(self, run: Run) -> Int[ndarray, "questions"]:
        """At the fitted threshold; of given outcomes as given."""
        from counterfoil.evaluation.forms.statement import decisions

        right = decisions(run.benchmark, run.answers, Ties(run.result.ties["policy"])).right
        column = right[:, 0] if np.isnan(right[:, 1]).all() else right[:, 1]
        return (np.nan_to_num(column) < 1).astype(np.int64)

    def failures(self, run: Run) -> tuple[list[int], dict[int, str]]:
        questions, away = run.benchmark.statements, margin(run)
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

    def questions_data(self, source: BrowserSource) -> dict[str, Any]:
        return {**super().questions_data(source), "truth": source.benchmark.statements.truth.tolist()}

    def _model(self, run: Run) -> dict[str, Any]:
        away = margin(run)
        margins = None if away is None else [float(f"{value:.6g}") for value in away.tolist()]
        return {**super()._model(run), "margins": margins}
