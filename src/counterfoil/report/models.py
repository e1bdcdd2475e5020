"""Each scorer by itself: its groups, and the questions it does worst on."""

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Gallery, Rated
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.forms import of
from counterfoil.evaluation.result import Estimate
from counterfoil.evaluation.run import Run
from counterfoil.report import labels, tables
from counterfoil.report.browser_data import richest
from counterfoil.report.galleries.browser_data import first_right
from counterfoil.report.judged.browser_data import distance
from counterfoil.report.markup import Cell, Column, Row, Table

#: So many questions are listed for a scorer.
WORST = 10


@dataclass(frozen=True)
class Failure:
    """A question that a scorer does badly on, in words; `captions` are empty where the page holds none."""

    id: str
    how: str
    captions: tuple[str, ...]
    address: str


@dataclass(frozen=True)
class ScorerSection:
    """What the page says of one scorer on one benchmark."""

    anchor: str
    name: str
    groups: Table
    worst: tuple[Failure, ...]
    address: str


def models(comparison: Comparison, anchor: str, place: str, *, captions: bool) -> tuple[ScorerSection, ...]:
    """The scorers of `comparison`, in its order. `place` is the section in which its questions are browsed.

    Captions are written out where `captions` allows it.
    """
    benchmark = richest(comparison)
    found = []
    for number, run in enumerate(comparison.runs):
        order, how = _failures(run)
        asked = {"b": anchor, "model": run.name}
        found.append(
            ScorerSection(
                anchor=f"{anchor}-model-{number}",
                name=run.name,
                groups=group_table(run),
                worst=tuple(
                    Failure(
                        benchmark.questions.ids[q],
                        how[q],
                        _captions(benchmark, q) if captions else (),
                        f"#{place}?{urlencode({**asked, 'text': benchmark.questions.ids[q]})}",
                    )
                    for q in order[:WORST]
                ),
                address=f"#{place}?{urlencode(asked)}",
            )
        )
    return tuple(found)


def group_table(run: Run) -> Table:
    """A row per group of every grouping, all questions first; a column per main measure, with intervals."""
    comparison = Comparison(run.benchmark.name, (run,), None, ())
    main = tables.main_measures(comparison)
    columns = tuple(
        Column(
            labels.measure_label(name),
            style=tables.style_of(name),
            measure=name,
            signature=tables.signature_of([run], name),
        )
        for name in main
    )
    asked = run.benchmark.questions.units
    rows = [_row(f"all {asked}", run.result.measures, main)]
    keys = dict.fromkeys(key for of in tables.groupings(run.benchmark.questions).values() for key in of)
    rows += [
        _row(labels.group(key), run.result.groups[key], main) for key in keys if key in run.result.groups
    ]
    caption = f"{run.name} by group on {run.benchmark.card.title}."
    return Table(caption, (Column(asked, style="text"), *columns), tuple(rows), "Group")


def _row(name: str, measures: Mapping[str, Estimate], main: tuple[str, ...]) -> Row:
    found = [measures.get(measure) for measure in main]
    n = max((estimate.n for estimate in found if estimate is not None), default=0)
    cells = (Cell(e.value, e.low, e.high, e.n) if e is not None else Cell() for e in found)
    return Row(name, (Cell(f"{n:,}"), *cells))


def _failures(run: Run) -> tuple[list[int], dict[int, str]]:
    """Positions of the questions that a scorer fails, worst first, and how badly it fails each."""
    questions = run.benchmark.questions
    if isinstance(questions, Gallery):
        return _late(run, questions)
    if isinstance(questions, Rated):
        if not run.answers.has_scores:
            return [], {}
        away = distance(run)
        order = [q for q in np.argsort(-np.abs(away), kind="stable").tolist() if away[q]]
        words = {
            q: f"stands {100 * abs(away[q]):.0f} % of all captions {'higher' if away[q] > 0 else 'lower'} "
            "than people put it"
            for q in order[:WORST]
        }
        return order, words
    margin = _margin(run)
    if margin is not None:
        order = [q for q in np.argsort(margin, kind="stable").tolist() if margin[q] <= 0]
        return order, {q: f"the wrong one is ahead by {-margin[q]:.4g}" for q in order[:WORST]}
    names = ("ipos2t", "ineg2t", "tpos2i", "tneg2i", "accuracy")
    wrong = np.stack([run.items[name] < 1 for name in names if name in run.items])
    order = [q for q in np.argsort(-wrong.sum(axis=0), kind="stable").tolist() if wrong[:, q].any()]
    words = {q: f"wrong in {wrong[:, q].sum()} of {len(wrong)} choices" for q in order[:WORST]}
    return order, words


def _margin(run: Run) -> Float[ndarray, "questions"] | None:
    """The smallest gap between a right and a wrong score per question; None where there are no scores."""
    if not run.answers.has_scores:
        return None
    margins = of(run.benchmark).margins(run.benchmark, run.answers.scores)
    return np.min([margins[name] for name in ("i2t", "t2i", "accuracy") if name in margins], axis=0)


def _late(run: Run, questions: Gallery) -> tuple[list[int], dict[int, str]]:
    """Queries whose first right answer comes latest; those of unknown rank come first."""
    if not run.answers.has_rankings:
        return [], {}
    found = run.answers.rankings
    sides = ((questions.i2t, found.i2t), (questions.t2i, found.t2i))
    place = np.concatenate([first_right(search, placed) for search, placed in sides])[:, 0]
    late = np.where(questions.defined, np.where(place > 0, place, np.iinfo(np.int64).max), 0)
    order = [q for q in np.argsort(-late, kind="stable").tolist() if late[q] > 1]
    known = {q: f"the first right answer is number {place[q]:,}" for q in order[:WORST]}
    return order, {q: said if place[q] else "no right answer in the ranking" for q, said in known.items()}


def _captions(benchmark: Benchmark, q: int) -> tuple[str, ...]:
    rows = benchmark.questions.captions_of(q)
    return tuple(text for row in rows[:4] if (text := benchmark.captions[row].text))
