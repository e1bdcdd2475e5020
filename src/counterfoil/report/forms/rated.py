"""Reports on captions that people rated, or preferred one to another."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Preference, Rated
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Run
from counterfoil.report import figure_style
from counterfoil.report.comparison_tables import ranking
from counterfoil.report.figure_style import MUTED, RIGHT, panels, plain
from counterfoil.report.forms import WORST, BrowserSource, FormReport, NoteWriters
from counterfoil.report.html import Drawing, Section
from counterfoil.report.results import NOTABLE, Note, below_chance, fitted_ties, percent, tied, undefined
from counterfoil.report.tables import amount, listed, short
from counterfoil.report.thumbnails import grouping, shown_scores, spread

#: How far from its place among all questions by rating one may stand by score, as a share of all, to agree.
NEAR = 0.2
#: The most questions that are shown, the most answers of all models together, and of every
#: question the most references.
MOST_QUESTIONS, MOST_ANSWERS, MOST_REFERENCES = 2_000, 16_000, 8
#: The most different ratings that have a column each; more are put into as many columns of equal width.
MOST_LEVELS = 9


def level(comparison: Comparison) -> list[Note]:
    """Which models of rated captions give many the same score."""
    rates = {run.name: float(run.result.ties.get("rate") or 0.0) for run in comparison.runs}
    many = [f"{name} {percent(rate)}" for name, rate in rates.items() if rate >= NOTABLE]
    text = (
        f"Pairs of captions with one score: {listed(many)}. τ-b leaves them out of what could agree, τ-c "
        "does not, and for Spearman they share a rank."
    )
    return [Note(text)] if many else []


class JudgedReport(FormReport):
    """Both forms."""

    key = "judged"
    place = "judgements"
    script = "judged.js"
    style = "judged.css"

    @abstractmethod
    def question_text(self, benchmark: Benchmark, shown: str) -> str:
        """The question that people answered about `shown`, without a full stop."""

    @abstractmethod
    def candidates(self, benchmark: Benchmark) -> list[list[list[tuple[int, int]]]]:
        """Per question and candidate its rows, as (caption, image)."""

    @abstractmethod
    def judgements(self, benchmark: Benchmark) -> dict[str, Any]:
        """People's judgements of each question."""

    def about(self, benchmark: Benchmark) -> str:
        questions = benchmark.judged
        shown = amount(len(np.unique(questions.images)), benchmark.card.shows)
        return f"{self.question_text(benchmark, shown)}. {references(questions)}".strip()

    def sections(self, comparison: Comparison, anchor: str) -> list[Section]:
        measured = any(run.result.measures for run in comparison.runs)
        return super().sections(comparison, anchor) if measured else []

    def questions_data(self, source: BrowserSource) -> dict[str, Any]:
        """Of more than `MOST_QUESTIONS` a part, every group and kind of disagreement in turn."""
        comparison, benchmark = source.comparison, source.benchmark
        room = max(1, min(MOST_QUESTIONS, MOST_ANSWERS // len(comparison.runs)))
        order = spread(comparison, self.kinds)[:room]
        rows = np.sort(np.asarray(order, dtype=np.int64))
        chosen = benchmark.select(rows)
        shown = chosen.judged
        place = {row: i for i, row in enumerate(rows.tolist())}
        sides = self.candidates(chosen)
        image_at = [list(dict.fromkeys(image for side in of for _, image in side)) for of in sides]
        needed = [image_at[place[row]] for row in order]
        numbers = source.thumbnails.add(chosen.images, needed) if source.pictures else {}
        references = None
        if shown.references is not None:
            of_owners: list[list[int]] = [[] for _ in shown.ids]
            for row, owner in enumerate(shown.rows_of.tolist()):
                of_owners[owner] += shown.references.row(row).tolist()
            # Of each question how many captions it is held against, and the first of them.
            references = [[len(set(of)), list(dict.fromkeys(of))[:MOST_REFERENCES]] for of in of_owners]
        return {
            "shows": benchmark.card.shows,
            "of": len(benchmark),
            "ids": list(shown.ids),
            "captions": source.named_captions(chosen.captions),
            "images": [[image.id, numbers.get(p, -1)] for p, image in enumerate(chosen.images)],
            "candidates": [[[caption for caption, _ in side] for side in of] for of in sides],
            "imageAt": image_at,
            "references": references,
            **self.judgements(chosen),
            "pictured": sum(all(p in numbers for p in of) for of in image_at),
            "groupings": [grouping(name, of) for name, of in shown.groupings.items() if any(of)],
            "models": [self.model(run, rows) for run in comparison.runs],
        }

    def model(self, run: Run, rows: Int[ndarray, "chosen"]) -> dict[str, Any]:
        scores = None
        if run.answers.has_scores:
            values = run.answers.scores
            per_candidate = values if values.ndim == 1 else values.reshape(len(values), 2, -1).mean(axis=2)
            scores = shown_scores(per_candidate[rows])
        kinds = "".join(map(str, self.kinds(run)[rows].tolist()))
        return {"name": run.name, "kinds": kinds, "scores": scores}


class RatedReport(JudgedReport):
    """Ratings."""

    policies: ClassVar[Mapping[str, str]] = {}
    KINDS: ClassVar[tuple[str, ...]] = ("as rated", "higher than rated", "lower than rated")
    noting: ClassVar[NoteWriters] = (
        undefined,
        lambda comparison: fitted_ties([run.result for run in comparison.runs]),
        below_chance,
        level,
    )

    def question_text(self, benchmark: Benchmark, shown: str) -> str:
        questions = benchmark.rated
        given = questions.ratings[~np.isnan(questions.ratings)]
        raters = questions.ratings.shape[1]
        some = "up to " if np.isnan(questions.ratings).any() else ""
        who = "" if raters == 1 else f" by {some}{raters} people"
        scale = f"from {given.min():.3g} to {given.max():.3g}"
        text = f"{amount(len(questions), 'caption')} of {shown}, rated {scale}{who}"
        if raters > 1 and questions.raters == "points":
            text += ": every rating is a point of its own"
        elif raters > 1:
            text += ": correlations are taken with each person apart, and averaged"
        if questions.decimals is not None:
            text += f"; scores are rounded to {questions.decimals} decimals before they are ranked"
        return text

    def kinds(self, run: Run) -> Int[ndarray, "questions"]:
        away = distance(run)
        return np.where(away > NEAR, 1, np.where(away < -NEAR, 2, 0)).astype(np.int64)

    def failures(self, run: Run) -> tuple[list[int], dict[int, str]]:
        away = distance(run)
        order = [q for q in np.argsort(-np.abs(away), kind="stable").tolist() if away[q]]
        return order, {
            q: f"stands {100 * abs(away[q]):.0f} % of all captions {'higher' if away[q] > 0 else 'lower'} "
            "than people put it"
            for q in order[:WORST]
        }

    def sections(self, comparison: Comparison, anchor: str) -> list[Section]:
        all_sections = super().sections(comparison, anchor)
        if any(run.answers.has_scores for run in comparison.runs):
            about = (
                "The scores at each rating, on each model's own scale: the mean (dot), the middle half "
                "(bar) and all but the outer tenths (line). A model that knew the ratings would climb from "
                "left to right, and its bars would share no height."
            )
            # A small figure per model, best first.
            runs = {run.name: run for run in comparison.runs if run.answers.has_scores}
            spreads = []
            for i, name in enumerate(name for name in ranking(comparison) if name in runs):
                names = {"name": f"{anchor}-spread-{i}", "title": f"Scores of {name} at each rating"}
                spreads.append(figure_style.svg(score_spread(runs[name]), **names))
            all_sections.append(
                Section("spread", "Scores and ratings", about, (Drawing("", "", tuple(spreads)),))
            )
        return all_sections

    def candidates(self, benchmark: Benchmark) -> list[list[list[tuple[int, int]]]]:
        questions = benchmark.judged
        return [[[pair]] for pair in zip(questions.captions.tolist(), questions.images.tolist(), strict=True)]

    def judgements(self, benchmark: Benchmark) -> dict[str, Any]:
        ratings = benchmark.rated.ratings.tolist()
        return {"ratings": [[None if np.isnan(r) else float(f"{r:.4g}") for r in of] for of in ratings]}

    def model(self, run: Run, rows: Int[ndarray, "chosen"]) -> dict[str, Any]:
        data = super().model(run, rows)
        if run.answers.has_scores:
            data["standing"] = np.round(100 * mid_ranks(run.answers.scores)[rows], 1).tolist()
            data["away"] = np.round(100 * distance(run)[rows], 1).tolist()
        return data


class PreferenceReport(JudgedReport):
    """Preferences."""

    noting: ClassVar[NoteWriters] = (undefined, below_chance, tied)

    def question_text(self, benchmark: Benchmark, shown: str) -> str:
        questions = benchmark.preferences
        votes = questions.votes.sum(axis=1)
        even = int((questions.votes[:, 0] == questions.votes[:, 1]).sum())
        text = f"{amount(len(questions), 'pair')} of captions of {shown}"
        if votes.max() > 1:
            least, most = votes.min(), votes.max()
            people = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
            text += f", each put before {people} people"
        if even:
            text += f"; in {even:,} both got as many votes, and the label was drawn"
        return text

    def candidates(self, benchmark: Benchmark) -> list[list[list[tuple[int, int]]]]:
        questions = benchmark.preferences
        pairs = zip(questions.captions.tolist(), questions.images.tolist(), strict=True)
        rows: list[list[list[tuple[int, int]]]] = [[[], []] for _ in questions.ids]
        owners, sides = questions.owners.tolist(), questions.sides.tolist()
        for owner, side, pair in zip(owners, sides, pairs, strict=True):
            rows[owner][side].append(pair)
        return rows

    def judgements(self, benchmark: Benchmark) -> dict[str, Any]:
        questions = benchmark.preferences
        votes = [[float(f"{vote:.4g}") for vote in of] for of in questions.votes.tolist()]
        return {"votes": votes, "label": questions.label.tolist()}


def references(questions: Rated | Preference) -> str:
    """How many references questions have, in a sentence; nothing where they have none."""
    if questions.references is None:
        return ""
    counts = questions.references.counts
    many = f"{counts.min():,}" if counts.min() == counts.max() else f"{counts.min():,} to {counts.max():,}"
    text = f"{many} reference{'' if many == '1' else 's'} each"
    if isinstance(questions, Preference) and questions.sample is not None:
        drawn = "once" if questions.draws == 1 else f"{questions.draws} times"
        text += f", of which metrics read {questions.sample}, drawn {drawn}"
    return f"{text}."


def distance(run: Run) -> Float[ndarray, "questions"]:
    """How far each caption stands by score from its place by rating, in [-1, 1]; 0 without scores."""
    questions = run.benchmark.rated
    if not run.answers.has_scores:
        return np.zeros(len(questions))
    return rank_gaps(run.answers.scores, np.nanmean(questions.ratings, axis=1))


def rank_gaps(
    scores: Float[ndarray, "questions"], ratings: Float[ndarray, "questions"]
) -> Float[ndarray, "questions"]:
    """`distance` of scores and mean ratings: 0 on the stretch of places that equal ratings share."""
    low, high = _stretch(ratings)
    ranks = mid_ranks(scores)
    return np.where(ranks < low, ranks - low, np.where(ranks > high, ranks - high, 0.0))


def mid_ranks(scores: Float[ndarray, "questions"]) -> Float[ndarray, "questions"]:
    """Where each score stands among all, as the share of scores below it; equal ones share their middle."""
    low, high = _stretch(scores)
    return (low + high) / 2


def _stretch(
    values: Float[ndarray, "questions"],
) -> tuple[Float[ndarray, "questions"], Float[ndarray, "questions"]]:
    """The share of values below each, and the share not above it."""
    from scipy.stats import rankdata

    return (rankdata(values, "min") - 1) / len(values), rankdata(values, "max") / len(values)


def levels(ratings: Float[ndarray, "points"]) -> tuple[list[str], Int[ndarray, "points"]]:
    """Labels of columns for ratings, one each or `MOST_LEVELS` of equal width, and the column of each."""
    distinct, codes = np.unique(ratings, return_inverse=True)
    if len(distinct) <= MOST_LEVELS:
        return [f"{value:.3g}" for value in distinct.tolist()], codes
    edges = np.linspace(distinct[0], distinct[-1], MOST_LEVELS + 1)
    bins = np.clip(np.searchsorted(edges, ratings, side="right") - 1, 0, MOST_LEVELS - 1)
    used, codes = np.unique(bins, return_inverse=True)
    return [f"{edges[i]:.2g}–{edges[i + 1]:.2g}" for i in used.tolist()], codes


def points(run: Run) -> tuple[Float[ndarray, "points"], Float[ndarray, "points"]]:
    """The ratings and the scores of a run on rated captions, a point per question and rater."""
    ratings = run.benchmark.rated.ratings
    given = ~np.isnan(ratings)
    return ratings[given], np.broadcast_to(run.answers.scores[:, None], given.shape)[given]


def score_spread(run: Run) -> Any:
    """The scores of a run at each rating: mean (dot), middle half (bar), middle eight tenths (line)."""
    ratings, scores = points(run)
    labels, codes = levels(ratings)
    crowded = max(map(len, labels)) * len(labels) > 36
    bottom = 0.52 if crowded else 0.4
    with panels((2.65, 1.3), left=0.5, bottom=bottom, top=0.26) as (figure, (axes,)):
        means = []
        for column in range(len(labels)):
            column_scores = scores[codes == column]
            tenth, quarter, most, nine = np.quantile(column_scores, (0.1, 0.25, 0.75, 0.9))
            axes.vlines(column, tenth, nine, color=RIGHT, lw=1, alpha=0.6)
            axes.vlines(column, quarter, most, color=RIGHT, lw=5, alpha=0.35)
            means.append(float(column_scores.mean()))
        axes.plot(range(len(means)), means, "o-", ms=4.4, lw=0.9, color=RIGHT, mec="none")
        axes.set_xlim(-0.6, len(means) - 0.4)
        lean = {"rotation": 38, "rotation_mode": "anchor", "ha": "right"} if crowded else {}
        axes.set_xticks(range(len(means)), labels, **lean)
        axes.set_xlabel("rating", fontsize=7.5, color=MUTED, labelpad=2)
        plain(axes, short(run.name, 30), grid="y", size=7.5, pad=4)
        axes.locator_params(axis="y", nbins=4)
    return figure
