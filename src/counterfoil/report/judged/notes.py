"""Notes for readers of agreement with people: sentences derived from the results alone."""

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Preference, Rated
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.forms import of
from counterfoil.evaluation.result import Result
from counterfoil.report.labels import measure_label
from counterfoil.report.notes import NOTABLE, Note, below_chance, intervals, listed, percent, tied

_INTERVALS = {
    "bootstrap": "a bootstrap over images, each drawn with all that was said about it",
    "crossed": "a bootstrap over images, widened for captions that were judged with several of them",
    "wilson": "Wilson's, for independent questions",
    "folds": "Student's t over four folds",
}
_POLICIES = {
    "strict": "A question is right only where the preferred caption scores higher; a tie is wrong.",
    "half": "A question is right where the preferred caption scores higher; a tie is worth a half.",
    "optimistic": "A question is right unless the other caption scores higher; a tie is right.",
}


def about(benchmark: Benchmark) -> str:
    """What people were asked: how many captions of how many images, and what they were read with.

    >>> from counterfoil.data.benchmark import Card
    >>> from counterfoil.data.records import Caption, Image
    >>> questions = Rated(("a", "b"), captions=np.array([0, 1]), images=np.array([0, 0]),
    ...                   ratings=np.array([[1.0, 2.0], [4.0, np.nan]]))
    >>> card = Card(name="own", title="Own", form="rated")
    >>> about(Benchmark(card, (Image("i"),), (Caption("c"), Caption("d")), questions))
    '2 captions of 1 image, rated from 1 to 4 by up to 2 people: every rating is a point of its own.'
    """
    questions = benchmark.judged
    shown = _many(len(np.unique(questions.images)), benchmark.card.shows)
    if isinstance(questions, Rated):
        given = questions.ratings[~np.isnan(questions.ratings)]
        raters = questions.ratings.shape[1]
        some = "up to " if np.isnan(questions.ratings).any() else ""
        who = "" if raters == 1 else f" by {some}{raters} people"
        scale = f"from {given.min():.3g} to {given.max():.3g}"
        text = f"{_many(len(questions), 'caption')} of {shown}, rated {scale}{who}"
        if raters > 1 and questions.raters == "points":
            text += ": every rating is a point of its own"
        elif raters > 1:
            text += ": correlations are taken with each person apart, and averaged"
        if questions.decimals is not None:
            text += f"; scores are rounded to {questions.decimals} decimals before they are ranked"
    else:
        votes = questions.votes.sum(axis=1)
        even = int((questions.votes[:, 0] == questions.votes[:, 1]).sum())
        text = f"{_many(len(questions), 'pair')} of captions of {shown}"
        if votes.max() > 1:
            least, most = votes.min(), votes.max()
            people = f"{least:.4g}" if least == most else f"{least:.4g} to {most:.4g}"
            text += f", each put before {people} people"
        if even:
            text += f"; in {even:,} both got as many votes, and the label was drawn"
    text += f". {_references(questions)}"
    return text.strip()


def ties(comparison: Comparison) -> str:
    """What equal scores are worth."""
    if of(comparison.runs[0].benchmark).values_per_item:
        return _POLICIES.get(str(comparison.runs[0].result.ties.get("policy")), "")
    return ""


def notes(comparison: Comparison) -> list[Note]:
    """Undefined values, ties, chance and intervals; warnings first."""
    found = [*undefined(comparison), *below_chance(comparison), *intervals(comparison, _INTERVALS)]
    preferred = of(comparison.runs[0].benchmark).values_per_item
    found += tied(comparison) if preferred else level(comparison)
    return sorted(found, key=lambda note: note.kind != "warning")


def level(comparison: Comparison) -> list[Note]:
    """Which scorers of rated captions give many the same score."""
    rates = {run.name: float(run.result.ties.get("rate") or 0.0) for run in comparison.runs}
    many = [f"{name} {percent(rate)}" for name, rate in rates.items() if rate >= NOTABLE]
    if not many:
        return []
    return [
        Note(
            f"Pairs of captions with one score: {listed(many)}. τ-b leaves them out of what could agree, τ-c "
            "does not, and for Spearman they share a rank."
        )
    ]


def undefined(comparison: Comparison) -> list[Note]:
    """Which measures have no value for whom, and why; those with one reason share a sentence."""
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for run in comparison.runs:
        by_reason: dict[str, list[str]] = {}
        for measure, reason in reasons(run.result).items():
            by_reason.setdefault(reason, []).append(measure_label(measure))
        for reason, measures in by_reason.items():
            together.setdefault((reason, tuple(measures)), []).append(run.name)
    return [
        Note(f"{listed(measures)} of {listed(who)} has no value: {reason}.", "warning")
        for (reason, measures), who in together.items()
    ]


def reasons(result: Result) -> dict[str, str]:
    """Measures without a value, and why, as a result says it."""
    said = result.provenance.get("undefined") or {}
    return {str(measure): str(reason) for measure, reason in said.items()}


def _references(questions: Rated | Preference) -> str:
    if questions.references is None:
        return ""
    counts = questions.references.counts
    many = f"{counts.min():,}" if counts.min() == counts.max() else f"{counts.min():,} to {counts.max():,}"
    text = f"{many} reference{'' if many == '1' else 's'} each"
    if isinstance(questions, Preference) and questions.sample is not None:
        drawn = "once" if questions.draws == 1 else f"{questions.draws} times"
        text += f", of which metrics read {questions.sample}, drawn {drawn}"
    return f"{text}."


def _many(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
