"""Reports on quads and choices: a right set against a wrong set, a value per question."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.forms import of
from counterfoil.evaluation.result import Run
from counterfoil.metrics.measures import averaged
from counterfoil.report import comparison_tables
from counterfoil.report.forms.base import READING, WORST, BrowserSource, FormReport, dots, margins, versus
from counterfoil.report.html import Drawing, Panels, Section
from counterfoil.report.labels import measure_label, measure_meaning
from counterfoil.report.notes import Note, below_chance, intervals, outcomes, tied
from counterfoil.report.thumbnails import Thumbnails, grouping, pairs, shown_scores, spread

_DIRECTIONS = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")


class ContrastReport(FormReport):
    """All contrasts but preferences."""

    KINDS: ClassVar[tuple[str, ...]] = ("right", "wrong")
    key = "benchmarks"
    place = "questions"
    script = "pairs.js"
    policies: ClassVar[Mapping[str, str]] = {
        "strict": "A question is right only where what belongs together scores above what does not; "
        "a tie is wrong.",
        "half": "A question is right where what belongs together scores above what does not; "
        "a tie is worth what a random order of the tied would give.",
        "optimistic": "A question is right unless what does not belong together scores higher; "
        "a tie is right.",
    }

    def remarks(self, comparison: Comparison) -> list[Note]:
        parts = (tied, below_chance, outcomes, intervals)
        return [note for part in parts for note in part(comparison)]

    def kinds(self, run: Run) -> Int[ndarray, "questions"]:
        return below_one(run)

    def failures(self, run: Run) -> tuple[list[int], dict[int, str]]:
        return failures(run)

    def measures(self, comparison: Comparison, anchor: str) -> list[Drawing]:
        main = comparison_tables.main_measures(comparison)
        return [dots(comparison, f"{anchor}-measures", "Main measures", READING, main)]

    def margins(self, comparison: Comparison, anchor: str) -> Section | None:
        from counterfoil.report import figures

        form = comparison.runs[0].benchmark.questions.form
        # Margins are those of questions, whatever these weigh.
        of_items = dict.fromkeys(averaged(name, form) for name in comparison_tables.main_measures(comparison))
        main = [
            name
            for name in of_items
            if any(figures.margin_values(run, name) is not None for run in comparison.runs)
        ]
        if not main:
            return None
        panels = tuple(
            Panels(
                f"Margins of {measure_label(name)}",
                measure_meaning(name, form),
                margins(comparison, f"{anchor}-margins-{name}", name),
            )
            for name in main
            if name != "group"
        )
        about = (
            "How far each question is from flipping: the smallest gap between a right and a wrong score, in "
            "each scorer's own unit. Orange is wrong, grey is tied, blue is right; the outermost bars hold "
            "what lies beyond them."
        )
        return Section("margins", "Margins", about, panels=panels)

    def questions_data(self, source: BrowserSource) -> dict[str, Any]:
        """All questions, as columns, so that some thousand of them stay within a megabyte or two."""
        comparison, benchmark, questions = source.comparison, source.benchmark, source.benchmark.listed
        caption_at, image_at = questions.slots()
        captions_of, images_of = (
            [[at for at in row if at >= 0] for row in slots.tolist()] for slots in (caption_at, image_at)
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

    def examples(self, comparison: Comparison, thumbnails: Thumbnails) -> list[dict[str, Any]]:
        return pairs(comparison, thumbnails)

    def kinds(self, run: Run) -> Int[ndarray, "questions"]:
        """A value below 1, such as the half of a tie, is a failure; a direction not measured has none."""
        right = np.ones(len(run.benchmark))
        failed = [run.items.get(name, right) < 1 for name in ("i2t", "t2i")]
        return failed[0] + 2 * failed[1].astype(np.int64)

    def measures(self, comparison: Comparison, anchor: str) -> list[Drawing]:
        main = comparison_tables.main_measures(comparison)
        finer = [name for name in comparison.measures if name not in main]
        drawn = super().measures(comparison, anchor)
        if finer:
            drawn.append(dots(comparison, f"{anchor}-finer", "Finer measures", "", finer, columns=len(finer)))
        return drawn

    def directions(self, comparison: Comparison, anchor: str) -> Drawing | None:
        caption = (
            "Below the dotted line, images find their captions more often than captions find their images."
        )
        return versus(comparison, f"{anchor}-directions", ("i2t", "t2i"), "I2T against T2I", caption)

    def _model(self, run: Run) -> dict[str, Any]:
        data = super()._model(run)
        if all(name in run.items for name in _DIRECTIONS):
            bits = sum((run.items[name] >= 1).astype(np.int64) << i for i, name in enumerate(_DIRECTIONS))
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

    policies: ClassVar[Mapping[str, str]] = {
        "strict": "A question is right only where the two captions of one meaning are more alike than "
        "either is to the third; a tie is wrong.",
        "half": "A question is right where the two captions of one meaning are more alike than either is "
        "to the third; a tie is worth what a random order of the tied would give.",
        "optimistic": "A question is right unless the third caption is nearer to one of the two of one "
        "meaning than they are to each other; a tie is right.",
    }

    def about(self, benchmark: Benchmark) -> str:
        return (
            f"{len(benchmark):,} questions. Each holds two captions of one meaning and a third of another, "
            "which are compared with each other; no image is looked at."
        )

    def questions_data(self, source: BrowserSource) -> dict[str, Any]:
        """With pairs of captions in place of captions."""
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


def below_one(run: Run) -> Int[ndarray, "questions"]:
    """1 where a run's accuracy is below 1, which the half of a tie is too, else 0."""
    return (run.items["accuracy"] < 1).astype(np.int64)


def failures(run: Run) -> tuple[list[int], dict[int, str]]:
    """Questions by how far the wrong one is ahead; without scores, by how many choices are wrong."""
    if run.answers.has_scores:
        # The smallest gap between a right and a wrong score per question.
        margins_of = of(run.benchmark).margins(run.benchmark, run.answers.scores)
        margin = np.min(
            [margins_of[name] for name in ("i2t", "t2i", "accuracy") if name in margins_of], axis=0
        )
        order = [q for q in np.argsort(margin, kind="stable").tolist() if margin[q] <= 0]
        return order, {q: f"the wrong one is ahead by {-margin[q]:.4g}" for q in order[:WORST]}
    wrong = np.stack([run.items[name] < 1 for name in (*_DIRECTIONS, "accuracy") if name in run.items])
    order = [q for q in np.argsort(-wrong.sum(axis=0), kind="stable").tolist() if wrong[:, q].any()]
    return order, {q: f"wrong in {wrong[:, q].sum()} of {len(wrong)} choices" for q in order[:WORST]}
