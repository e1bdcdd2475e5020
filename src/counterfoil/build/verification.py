"""Verified rows: the truth of drawn rows, people's answers, and filters `score >= threshold` on them.

A row is sound where each of its captions is true of its own image and of no other image of the row. Label
noise, the share of unsound rows that people let in, follows from how three or more contradict each other
(`stats.dawid_skene`). A threshold that was chosen on a sample looks better on it than it is, so `certified`
tests thresholds in an order that was fixed before any truth was seen, and intervals are reported on rows that
the choice did not see. Sources: Wilson, Probable inference, 1927; Kish, Survey sampling, 1965 (effective
size); DeLong et al., Comparing areas under correlated ROC curves, 1988; Angelopoulos et al., Learn then test,
2021.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import compress
from math import ceil, log
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float
from numpy import ndarray
from numpy.typing import NDArray
from scipy.special import ndtr
from scipy.stats import binom

from counterfoil.benchmarks.judgements import gain_of
from counterfoil.benchmarks.tables import DataTable, booleans, floats, labels, names, read_table
from counterfoil.build.step import SCENE_OF
from counterfoil.errors import DataError, InputError, ScoreError
from counterfoil.metrics.statements import placements
from counterfoil.stats.dawid_skene import FEWEST, drawn_so, patterns
from counterfoil.stats.intervals import wilson
from counterfoil.world.scenes import Scene
from counterfoil.world.truth import matches

#: How several answers about a row become one verdict.
Rule = Literal["majority", "any", "all"]
#: Columns that say who answered; the first there is counts.
_PEOPLE = ("annotator", "worker", "judge", "person")


def fits(
    rows: pa.Table, image: str, caption: str, other: str | None = None, *, where: object = None
) -> NDArray[np.bool_] | None:
    """Whether `caption` is true of the scene of `image`, and `other` is not; None: no scenes."""
    column = SCENE_OF.get(image)
    wanted = [name for name in (caption, other) if name is not None]
    if column is None or not {column, *wanted} <= set(rows.column_names):
        return None
    scenes: dict[str, Scene] = {}
    right = np.zeros(len(rows), dtype=bool)
    texts_of = [rows[name].to_pylist() for name in wanted]
    for i, cell in enumerate(rows[column].to_pylist()):
        if cell is None or any(texts[i] is None for texts in texts_of):
            continue
        if cell not in scenes:
            scenes[cell] = Scene.from_json(cell, where=where)
        true = [matches(texts[i], scenes[cell]) for texts in texts_of]
        right[i] = true[0] and not any(true[1:])
    return right


def sound(rows: pa.Table, *, where: object = None) -> NDArray[np.bool_] | None:
    """Whether each caption of a drawn row is true of its own image only; None where scenes are not known."""
    own_fits = fits(rows, "image", "caption", "negative_caption", where=where)
    if own_fits is None or "negative_image" not in rows.column_names:
        return own_fits
    other = fits(rows, "negative_image", "negative_caption", "caption", where=where)
    return None if other is None else np.logical_and(own_fits, other)


@dataclass(frozen=True, eq=False)
class Answers:
    """Who said yes and who said no about which row: (people, rows); neither where a person was not asked."""

    people: tuple[str, ...]
    yes: NDArray[np.bool_]
    no: NDArray[np.bool_]

    @property
    def answered(self) -> NDArray[np.bool_]:
        return np.asarray((self.yes | self.no).any(axis=0), dtype=bool)

    def accepted(self, rule: Rule = "majority") -> NDArray[np.bool_]:
        """Which rows people let in: more yes than no, any yes, or no no; never one without an answer."""
        yes, no = self.yes.sum(axis=0), self.no.sum(axis=0)
        by_rule: dict[str, NDArray[np.bool_]] = {"majority": yes > no, "any": yes > 0, "all": no == 0}
        return np.logical_and(by_rule[rule], self.answered)


def answer_gains(table: DataTable) -> NDArray[np.float64]:
    """The gain of each row by its column `answer`, NaN where that is empty; raises `DataError` for others."""
    words = labels(table, "answer")
    gains = [gain_of(word) if word else np.nan for word in words]
    if None in gains:
        row = gains.index(None)
        where, allowed = table.where(row, "answer"), "yes, no, 100% YES, Partially YES, Mostly NO, 100% NO"
        raise DataError("an answer that cannot be read", where=where, given=words[row], allowed=allowed)
    return np.array(gains, dtype=np.float64)


def read_answers(path: Path, ids: Sequence[str]) -> tuple[Answers, int]:
    """People's answers about rows, and how many are about rows that are not among `ids`.

    A table with `id`, `answer` (yes or no, or ECCV Caption's four) or `gain` (above 0.25 is a yes), and who
    answered (`_PEOPLE`); without that, a row's first answer counts as one person's, the second as another's.
    """
    table = read_table(path)
    row_ids = labels(table, "id")
    if "gain" in table and "answer" not in table:
        given = [gain not in (None, "") for gain in table["gain"]]
        gains = np.full(len(table), np.nan)
        gains[given] = floats(DataTable({"gain": list(compress(table["gain"], given))}, table.source), "gain")
    else:
        gains = answer_gains(table)
    who = next((name for name in _PEOPLE if name in table), None)
    number = {name: position for position, name in enumerate(ids)}
    times: Counter[str] = Counter()
    cells: dict[tuple[str, int], bool] = {}
    named = labels(table, who) if who is not None else ()
    stray = 0
    for row, (name, gain) in enumerate(zip(row_ids, gains, strict=True)):
        if np.isnan(gain):
            continue
        if name not in number:
            stray += 1
            continue
        times[name] += 1
        person = named[row] if named else f"answer {times[name]}"
        if (person, number[name]) in cells:
            where, why = table.where(row, "id"), "a person answered twice about one row"
            raise DataError(why, where=where, given=f"{person}, {name}")
        cells[person, number[name]] = gain > 0.25
    if not cells:
        given_ids = f"{len(table)} rows, such as about '{row_ids[0]}'"
        allowed = f"ids such as '{ids[0]}'" if len(ids) else "rows to ask about"
        raise DataError("no row has an answer", where=table.source, given=given_ids, allowed=allowed)
    people = {person: i for i, person in enumerate(dict.fromkeys(person for person, _ in cells))}
    votes = np.zeros((2, len(people), len(ids)), dtype=bool)
    for (person, position), answer in cells.items():
        votes[int(answer), people[person], position] = True
    return Answers(tuple(people), votes[1], votes[0]), stray


def read_verified(
    path: Path, ids: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64] | None]:
    """Positions in `ids` of verified rows (`id`, `right`, `weight`), their truth, and their weights."""
    table = read_table(path)
    ids_verified, right = names(table, "id"), booleans(table, "right")
    weights = floats(table, "weight") if "weight" in table else None
    number = {name: positions for positions, name in enumerate(ids)}
    positions = np.array([number.get(name, -1) for name in ids_verified], dtype=np.int64)
    matched = positions >= 0
    if not matched.any():
        given = f"{len(table)} rows, such as '{ids_verified[0]}'"
        allowed = f"ids such as '{ids[0]}'" if len(ids) else "rows to verify"
        raise DataError("none of the verified rows is here", where=table.source, given=given, allowed=allowed)
    return positions[matched], right[matched], None if weights is None else weights[matched]


def label_noise(
    answers: Answers, rule: Rule, rng: np.random.Generator, *, draws: int = 2000
) -> dict[str, Any] | None:
    """How much of what people let in is not sound, by their answers alone; None for fewer than three."""
    answered = answers.answered
    if len(answers.people) < FEWEST or not answered.any():
        return None
    counted = patterns(answers.yes[:, answered], answers.no[:, answered])
    verdict = Answers(answers.people, counted.yes.T, counted.no.T).accepted(rule)
    so = drawn_so(counted, rng, draws=draws)
    rows_kept = int(counted.counts[verdict].sum())

    def drawn_share(drawn: NDArray[np.int64], total: int) -> list[float | None]:
        """The share and its 95 % interval."""
        if not total:
            return [None, 0.0, 1.0]
        low, high = np.quantile(drawn, ((1 - 0.95) / 2, (1 + 0.95) / 2), method="inverted_cdf")
        return [float(drawn.mean() / total), float(low / total), float(high / total)]

    middle = so.mean(axis=0)
    wrong = counted.counts - middle
    hits = (middle @ counted.yes) / np.maximum(middle @ (counted.yes | counted.no), 1e-12)
    rejections = (wrong @ counted.no) / np.maximum(wrong @ (counted.yes | counted.no), 1e-12)
    return {
        "label_noise": drawn_share(rows_kept - so[:, verdict].sum(axis=1), rows_kept),
        "rows_kept": rows_kept,
        "sound_before": drawn_share(so.sum(axis=1), int(counted.counts.sum())),
        "hits": dict(zip(answers.people, hits.tolist(), strict=True)),
        "rejections": dict(zip(answers.people, rejections.tolist(), strict=True)),
        "assumes": "people err independently of each other, at rates that are the same for all rows",
    }


def read_choices(
    path: Path, ids: Sequence[str], of: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]] | None:
    """The votes of each candidate, NaN if not chosen, and whose row has a vote; None without choices."""
    table = read_table(path)
    if "chosen" not in table:
        return None
    number = {name: i for i, name in enumerate(ids)}
    votes, none = np.zeros(len(ids)), dict.fromkeys(of, 0)
    voted: set[str] = set()
    for row, (name, chosen) in enumerate(zip(labels(table, "of"), labels(table, "chosen"), strict=True)):
        if name not in none:
            continue
        voted.add(name)
        if not chosen:
            none[name] += 1
        elif chosen not in number or of[number[chosen]] != name:
            what, where = "the choice is no candidate of its row", table.where(row, "chosen")
            allowed = [candidate for candidate, its in zip(ids, of, strict=True) if its == name]
            raise DataError(what, where=where, given=chosen, allowed=allowed)
        else:
            votes[number[chosen]] += 1
    if not voted:
        raise DataError("no row has a choice", where=table.source, allowed=f"rows such as '{of[0]}'")
    least = np.array([none[name] for name in of])
    return np.where(votes > least, votes, np.nan), np.array([name in voted for name in of])


#: Starts of `certified`, each with its part of the error that is allowed.
STARTS = 4


@dataclass(frozen=True)
class Share:
    """A share with its interval: NaN in [0, 1] where nothing counts, which is no knowledge at all."""

    value: float
    low: float
    high: float

    def to_json(self) -> list[float | None]:
        return [None if np.isnan(self.value) else self.value, self.low, self.high]


@dataclass(frozen=True, eq=False)
class Verified:
    """Rows of known truth; `weights` are one over the chance of each to be in the sample (None: equal)."""

    scores: NDArray[np.float64]
    right: NDArray[np.bool_]
    weights: NDArray[np.float64] | None = None

    def __post_init__(self) -> None:
        if not np.isfinite(self.scores).all():
            raise ScoreError("a score of the verified sample is not finite")
        if self.weights is not None and not (np.isfinite(self.weights) & (self.weights > 0)).all():
            raise InputError("a weight of the verified sample is not above 0")

    def __len__(self) -> int:
        return len(self.scores)

    @cached_property
    def weight(self) -> NDArray[np.float64]:
        return np.ones(len(self)) if self.weights is None else self.weights.astype(np.float64)

    def take(self, rows: NDArray[Any]) -> "Verified":
        weights = None if self.weights is None else self.weights[rows]
        return Verified(self.scores[rows], self.right[rows], weights)


@dataclass(frozen=True, eq=False)
class Quality:
    """A filter at a threshold: the share of the kept that is right, of the right that is kept, and of all."""

    threshold: float
    precision: Share
    recall: Share
    kept: Share

    def to_json(self) -> dict[str, Any]:
        shares = {name: getattr(self, name).to_json() for name in ("precision", "recall", "kept")}
        return {"threshold": self.threshold if np.isfinite(self.threshold) else None, **shares}


def share(chosen: Bool[ndarray, "n"], among: Bool[ndarray, "n"], weights: Float[ndarray, "n"]) -> Share:
    """The weighted share of `chosen` rows in those `among`, with Wilson's 95 % interval at effective size."""
    weights = weights[among]
    if not len(weights):
        return Share(float("nan"), 0.0, 1.0)
    inside = chosen[among]
    total, square = weights.sum(), weights**2
    value = min(1.0, float(weights[inside].sum() / total))
    kish = total**2 / square.sum()
    spread = ((1 - value) ** 2 * square[inside].sum() + value**2 * square[~inside].sum()) / total**2
    size = min(kish, value * (1 - value) / spread) if spread > 0 else kish
    return Share(value, *wilson(value * size, size))


def quality(sample: Verified, threshold: float) -> Quality:
    """Precision, recall and share kept of `score >= threshold`; precision is NaN where nothing is kept."""
    mask, every = sample.scores >= threshold, np.ones(len(sample), dtype=bool)
    shares = (sample.right, mask), (mask, sample.right), (mask, every)
    return Quality(float(threshold), *(share(chosen, among, sample.weight) for chosen, among in shares))


def curve(sample: Verified, *, points: int = 25) -> tuple[Quality, ...]:
    """The precision-recall curve: the quality at up to `points` scores, evenly spaced by rank."""
    levels = np.unique(sample.scores)
    positions = np.unique(np.linspace(0, len(levels) - 1, min(points, len(levels))).round().astype(np.int64))
    return tuple(quality(sample, float(threshold)) for threshold in levels[positions])


def auroc(sample: Verified) -> Share:
    """The area under the ROC curve, ties one half, its interval by DeLong's variance; NaN for one class."""
    if sample.right.all() or not sample.right.any():
        return Share(float("nan"), 0.0, 1.0)
    positions, variance = placements(sample.scores, sample.right, sample.weight), 0.0
    area = float(np.average(positions[sample.right], weights=sample.weight[sample.right]))
    for side in (sample.right, ~sample.right):
        weights = sample.weight[side]
        n = len(weights)
        spread = (weights**2 * (positions[side] - area) ** 2).sum() / weights.sum() ** 2
        variance += spread * n / max(n - 1, 1)
    fewest = float(min(sample.right.sum(), (~sample.right).sum()))
    size = area * (1 - area) / variance if variance > 0 else fewest
    return Share(area, *wilson(area * size, size))


def certified(sample: Verified, precision: float, *, confidence: float = 0.95) -> float | None:
    """The lowest threshold whose precision reaches the target with this confidence; None where none does."""
    order = np.argsort(-sample.scores, kind="stable")
    scores = sample.scores[order]
    # Rows of one score are kept together: only the last of them is a threshold.
    last = np.flatnonzero(np.append(scores[1:] != scores[:-1], True))
    error = (1 - confidence) / STARTS
    # At each threshold the chance of that many right rows, or more, were the precision just the target.
    ranked = sample.take(order)
    if ranked.weights is None:
        chances = binom.sf(np.cumsum(ranked.right)[last] - 1, last + 1, precision)
    else:
        mass = np.cumsum(ranked.weight)[last]
        inside = np.cumsum(ranked.weight * ranked.right)[last] / mass
        size = mass**2 / np.cumsum(ranked.weight**2)[last]
        chances = ndtr((precision - inside) * np.sqrt(size / (precision * (1 - precision))))
    # Fewer rows than these reach no significance even where all are right.
    fewest = ceil(log(error) / log(precision))
    lowest: int | None = None
    for start in np.geomspace(min(fewest, len(scores)), len(scores), STARTS + 1)[:-1].tolist():
        begin = int(np.searchsorted(last, ceil(start) - 1))
        failed = np.flatnonzero(chances[begin:] > error)
        passed = begin + (int(failed[0]) if len(failed) else len(last) - begin) - 1
        if passed >= begin and (lowest is None or passed > lowest):
            lowest = passed
    return None if lowest is None else float(scores[last[lowest]])


def calibrate(
    sample: Verified,
    rng: np.random.Generator,
    *,
    threshold: float | None = None,
    precision: float | None = None,
    confidence: float = 0.95,
) -> tuple[float | None, dict[str, Any]]:
    """A threshold, given or the lowest that reaches `precision` (None: none does), and its quality and curve.

    A given threshold is reported on the whole sample. One to be chosen is chosen on half of it (`certified`)
    and reported on the other half, so that its intervals are not flattered by the choice.
    """
    chosen_on, here = 0, sample
    if precision is not None:
        if len(sample) < 4:
            what = "too few verified rows to choose a threshold"
            raise InputError(what, given=len(sample), allowed="4 or more")
        order, chosen_on = rng.permutation(len(sample)), len(sample) // 2
        threshold = certified(sample.take(np.sort(order[:chosen_on])), precision, confidence=confidence)
        here = sample.take(np.sort(order[chosen_on:]))
    measured = None if threshold is None else quality(here, threshold).to_json()
    return threshold, {
        "threshold": None if measured is None else measured["threshold"],
        "target_precision": precision,
        "confidence": confidence,
        "rows_chosen_on": chosen_on,
        "rows_reported_on": len(here),
        "wrong_before": share(~here.right, np.ones(len(here), dtype=bool), here.weight).to_json(),
        "area": auroc(here).to_json(),
        "quality": measured,
        "curve": [point.to_json() for point in curve(here)],
    }
