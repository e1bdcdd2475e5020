"""Data of the browser of judged captions: human ratings, scores and pictures.

As in `island`, who agrees with people is decided here and the page only shows it. Large benchmarks have tens
of thousands of questions and up to fifty references each, so a page carries a sample of the questions, and
of the references the first.
"""

from typing import Any

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray

from counterfoil.data.forms import Preference, Rated
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.forms import of
from counterfoil.evaluation.run import Run
from counterfoil.report import browser_data
from counterfoil.report.pictures import Album
from counterfoil.report.tables import ranking

#: How far from its place among all questions by rating one may stand by score, as a share of all, to agree.
NEAR = 0.2
#: What a scorer makes of a question, by the digit that stands for it.
KINDS = {
    "rated": ("as rated", "higher than rated", "lower than rated"),
    "preference": ("right", "wrong"),
}
#: At most so many questions are shown, at most so many answers of all scorers together, and of every
#: question at most so many references.
MOST_QUESTIONS, MOST_ANSWERS, MOST_REFERENCES = 2_000, 16_000, 8


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


def kinds(run: Run) -> Int[ndarray, "questions"]:
    """Positions in `KINDS`; a preference is wrong where its value is below 1, such as the half of a tie."""
    if of(run.benchmark).values_per_item:
        return (run.items["accuracy"] < 1).astype(np.int64)
    away = distance(run)
    return np.where(away > NEAR, 1, np.where(away < -NEAR, 2, 0)).astype(np.int64)


def judged_data(comparison: Comparison, album: Album, *, pictures: bool, captions: bool) -> dict[str, Any]:
    """The judged captions of one benchmark with every scorer's answers, and pictures as far as there is room.

    Of more than `MOST_QUESTIONS` a part is carried, in which every group and every kind of disagreement has
    its turn; ranks and kinds are those among all.
    """
    benchmark = browser_data.richest(comparison)
    questions = benchmark.judged
    room = max(1, min(MOST_QUESTIONS, MOST_ANSWERS // len(comparison.runs)))
    order = browser_data.spread(comparison, kinds)[:room]
    rows = np.sort(np.asarray(order, dtype=np.int64))
    chosen = benchmark.select(rows)
    shown = chosen.judged
    place = {row: i for i, row in enumerate(rows.tolist())}
    turns = [place[row] for row in order]
    sides = _sides(shown)
    image_at = [list(dict.fromkeys(image for side in of for _, image in side)) for of in sides]
    numbers = album.add(chosen.images, [image_at[i] for i in turns]) if pictures else {}
    return {
        "name": comparison.benchmark,
        "title": benchmark.card.title,
        "form": shown.form,
        "shows": benchmark.card.shows,
        "ties": str(comparison.runs[0].result.ties.get("policy", "")),
        "of": len(questions),
        "ids": list(shown.ids),
        "kinds": list(KINDS[shown.form]),
        "captions": [[c.text if captions else None, c.id] for c in chosen.captions],
        "images": [[image.id, numbers.get(p, -1)] for p, image in enumerate(chosen.images)],
        "candidates": [[[caption for caption, _ in side] for side in of] for of in sides],
        "imageAt": image_at,
        "references": _references(shown),
        **_said(shown),
        "pictured": sum(all(p in numbers for p in of) for of in image_at),
        "groupings": [browser_data.grouping(name, of) for name, of in shown.groupings.items() if any(of)],
        "models": [_model(run, rows) for run in comparison.runs],
        "best": [run.name for run in comparison.runs].index(ranking(comparison)[0]),
    }


def _sides(questions: Rated | Preference) -> list[list[list[tuple[int, int]]]]:
    """Per question and candidate its rows, as (caption, image)."""
    pairs = list(zip(questions.captions.tolist(), questions.images.tolist(), strict=True))
    if isinstance(questions, Rated):
        return [[[pair]] for pair in pairs]
    found: list[list[list[tuple[int, int]]]] = [[[], []] for _ in questions.ids]
    for owner, side, pair in zip(questions.owners.tolist(), questions.sides.tolist(), pairs, strict=True):
        found[owner][side].append(pair)
    return found


def _references(questions: Rated | Preference) -> list[list[Any]] | None:
    """Per question how many captions it is held against, and the first of them."""
    if questions.references is None:
        return None
    owners = questions.rows_of
    found: list[dict[int, None]] = [{} for _ in questions.ids]
    for row, owner in enumerate(owners.tolist()):
        found[owner].update(dict.fromkeys(questions.references.row(row).tolist()))
    return [[len(of), list(of)[:MOST_REFERENCES]] for of in found]


def _said(questions: Rated | Preference) -> dict[str, Any]:
    """Human judgements: ratings (None where missing), or votes and the preferred candidate."""
    if isinstance(questions, Rated):
        ratings = questions.ratings.tolist()
        return {"ratings": [[None if np.isnan(r) else float(f"{r:.4g}") for r in of] for of in ratings]}
    votes = [[float(f"{vote:.4g}") for vote in of] for of in questions.votes.tolist()]
    return {"votes": votes, "label": questions.label.tolist()}


def _model(run: Run, rows: Int[ndarray, "chosen"]) -> dict[str, Any]:
    """What a scorer makes of the chosen questions; `standing` and `away` are in per cent of all questions."""
    data: dict[str, Any] = {"name": run.name, "kinds": "".join(map(str, kinds(run)[rows].tolist()))}
    if not run.answers.has_scores:
        return {**data, "scores": None}
    values = run.answers.scores
    rated = not of(run.benchmark).values_per_item
    flat = values[:, None] if rated else values.reshape(len(values), 2, -1).mean(axis=2)
    # Six digits are for showing; who agrees was decided on the full ones.
    data["scores"] = [[float(f"{value:.6g}") for value in row] for row in flat[rows].tolist()]
    if rated:
        data["standing"] = np.round(100 * standing(values)[rows], 1).tolist()
        data["away"] = np.round(100 * distance(run)[rows], 1).tolist()
    return data
