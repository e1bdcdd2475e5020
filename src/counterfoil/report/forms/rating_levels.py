"""Scores beside human ratings: where captions stand among all by either, and the scores at each rating."""

from typing import Any, NamedTuple

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.data.forms import Rated
from counterfoil.errors import InputError
from counterfoil.evaluation.result import Run
from counterfoil.report.drawing import INK, MUTED, RIGHT, RULE, canvas, short, style

#: So many different ratings have a column each; more are put into as many columns of equal width.
MOST_LEVELS = 9
#: So few points are drawn one by one, behind the summary of their column.
_FEW = 400


def distance(run: Run) -> Float[ndarray, "questions"]:
    """How far each rated caption stands by score from where it stands by rating, in [-1, 1].

    Places are shares of all questions, from the lowest (0) to the highest (1). Captions of one mean rating
    share a stretch of places and a caption anywhere on it is at distance 0; else it is the way to its nearer
    end, positive where the score puts it higher. Equal scores stand in the middle of their stretch.
    0 for all where the run has no scores.
    """
    questions = run.benchmark.questions
    if not isinstance(questions, Rated) or not run.answers.has_scores:
        return np.zeros(len(questions))
    return places(run.answers.scores, np.nanmean(questions.ratings, axis=1))


def places(
    scores: Float[ndarray, "questions"], ratings: Float[ndarray, "questions"]
) -> Float[ndarray, "questions"]:
    """What `distance` says, of scores and mean ratings.
    >>> ratings = np.array([1.0, 1.0, 4.0, 4.0])
    >>> places(np.array([0.2, 0.1, 0.3, 0.9]), ratings).tolist()
    [0.0, 0.0, 0.0, 0.0]
    >>> places(np.array([0.9, 0.1, 0.2, 0.3]), ratings).tolist()
    [0.375, 0.0, -0.125, 0.0]
    """
    low, high = _stretch(ratings)
    own = standing(scores)
    return np.where(own < low, own - low, np.where(own > high, own - high, 0.0))


def standing(scores: Float[ndarray, "questions"]) -> Float[ndarray, "questions"]:
    """Where each score stands among all, as the share of scores below it; equal ones share their middle.

    >>> standing(np.array([5.0, 1.0, 5.0, 9.0])).tolist()
    [0.5, 0.125, 0.5, 0.875]
    """
    low, high = _stretch(scores)
    return (low + high) / 2


def _stretch(
    values: Float[ndarray, "questions"],
) -> tuple[Float[ndarray, "questions"], Float[ndarray, "questions"]]:
    """The share of values below each, and the share not above it."""
    ordered = np.sort(values)
    low = np.searchsorted(ordered, values, side="left")
    high = np.searchsorted(ordered, values, side="right")
    return low / len(values), high / len(values)


class Levels(NamedTuple):
    """Ratings in columns: what stands under each, where it stands, and the column of every point."""

    labels: tuple[str, ...]
    places: Float[ndarray, "levels"]
    codes: Int[ndarray, "points"]


def levels(ratings: Float[ndarray, "points"]) -> Levels:
    """The columns of these ratings: one per rating, or `MOST_LEVELS` of equal width where there are more.

    Columns that nothing is in are left out.

    >>> levels(np.array([1.0, 3.0, 1.0, 4.0])).labels
    ('1', '3', '4')
    >>> found = levels(np.linspace(0, 1, 91))
    >>> len(found.labels), found.labels[0], np.bincount(found.codes)[:2].tolist()
    (9, '0–0.11', [10, 10])
    """
    distinct, codes = np.unique(ratings, return_inverse=True)
    if len(distinct) <= MOST_LEVELS:
        return Levels(tuple(f"{value:.3g}" for value in distinct.tolist()), distinct, codes.astype(np.int64))
    edges = np.linspace(distinct[0], distinct[-1], MOST_LEVELS + 1)
    bins = np.clip(np.searchsorted(edges, ratings, side="right") - 1, 0, MOST_LEVELS - 1)
    used, codes = np.unique(bins, return_inverse=True)
    labels = tuple(f"{edges[i]:.2g}–{edges[i + 1]:.2g}" for i in used.tolist())
    return Levels(labels, (edges[used] + edges[used + 1]) / 2, codes.astype(np.int64))


def points(run: Run) -> tuple[Float[ndarray, "points"], Float[ndarray, "points"]]:
    """The ratings and the scores of a run on rated captions, a point per question and rater.

    Raises `InputError` for runs that are no such thing.
    """
    questions = run.benchmark.questions
    if not isinstance(questions, Rated) or not run.answers.has_scores:
        raise InputError("no scores of rated captions", where=run.name, given=f"form '{questions.form}'")
    given = ~np.isnan(questions.ratings)
    scores = np.broadcast_to(run.answers.scores[:, None], given.shape)
    return questions.ratings[given], scores[given]


def spread(run: Run, *, given: str = "rating") -> Any:
    """The scores of a run at each rating: mean (dot), middle half (bar), from a tenth to nine (line).

    A metric that goes with people climbs from left to right with bars that share no height; the scale of the
    scores is the metric's own. The line between dots joins the means. `given` stands below the
    ratings. Raises what `points` raises.
    """
    ratings, scores = points(run)
    columns = levels(ratings)
    with style():
        crowded = max(map(len, columns.labels)) * len(columns.labels) > 36
        figure, (axes,) = canvas(
            1, 1, (2.65, 1.3), left=0.5, right=0.1, bottom=0.52 if crowded else 0.4, top=0.26
        )
        if len(scores) <= _FEW:
            aside = np.random.default_rng(0).uniform(-0.22, 0.22, len(scores))
            axes.plot(columns.codes + aside, scores, ".", ms=2.4, color=MUTED, alpha=0.55, mec="none")
        means = []
        for column in range(len(columns.labels)):
            own = scores[columns.codes == column]
            tenth, quarter, most, nine = np.quantile(own, (0.1, 0.25, 0.75, 0.9))
            axes.vlines(column, tenth, nine, color=RIGHT, lw=1, alpha=0.6)
            axes.vlines(column, quarter, most, color=RIGHT, lw=5, alpha=0.35)
            means.append(float(own.mean()))
        axes.plot(range(len(means)), means, "o-", ms=4.4, lw=0.9, color=RIGHT, mec="none")
        axes.set_xlim(-0.6, len(means) - 0.4)
        lean = {"rotation": 38, "rotation_mode": "anchor", "ha": "right"} if crowded else {}
        axes.set_xticks(range(len(means)), columns.labels, **lean)
        axes.set_xlabel(given, fontsize=7.5, color=MUTED, labelpad=2)
        axes.set_title(short(run.name, 30), loc="left", fontsize=9, fontweight="bold", color=INK, pad=4)
        axes.grid(True, axis="y", color=RULE, lw=0.5)
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=7.5)
        axes.locator_params(axis="y", nbins=4)
    return figure
