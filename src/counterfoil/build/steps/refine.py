"""Adversarial refinement: rows are dropped until blind scores do not tell right captions from wrong ones.

As many rows of each cell of a grid of gaps are kept as of its mirror image, which promises nothing of a
model that took no part. Source: Hsieh et al., SugarCrepe, 2023, section 4, and its `adversarial_refine.py`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from jaxtyping import Bool, Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.benchmarks.tables import EXTENSIONS, floats, names, read_table
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.rating import (
    NEGATIVE,
    BlindGaps,
    accuracy_facts,
    blind_accuracy,
    clusters_of,
    numbers_of,
    scores_in,
)
from counterfoil.build.step import BuiltStep, Output, StepContext, codes_of, filled, ranks, split_rows
from counterfoil.errors import DataError, InputError, ScoreError
from counterfoil.inputs.fields import setting

#: Bins of a gap between 0 and the scale, and those where some other gap of the row is 0.
BINS, EDGE_BINS = 50, 10


def cells(
    gaps: Float[ndarray, "n d"],
    *,
    scales: Sequence[float] | None = None,
    bins: int = BINS,
    edge_bins: int = EDGE_BINS,
    groups: Int[ndarray, "n"] | None = None,
) -> tuple[Int[ndarray, "n"], NDArray[np.int8]]:
    """The cell of every row and its side: rows of one cell with sides 1 and -1 are mirror images."""
    gaps = np.asarray(gaps, dtype=np.float64)
    n, d = gaps.shape
    scales = [1.0] * d if scales is None else list(scales)
    odd = np.flatnonzero(~np.isfinite(gaps).all(axis=1))
    if len(odd):
        raise ScoreError("a gap is not finite", where=f"row {odd[0] + 1}", given=gaps[odd[0]].tolist())
    signs = np.sign(gaps).astype(np.int8)
    # The first gap that is not 0 decides which of two mirror images a row is.
    side: NDArray[np.int8] = signs[np.arange(n), (signs != 0).argmax(axis=1)]
    many = np.where((signs == 0).any(axis=1), edge_bins, bins)[:, None]
    height = np.minimum(np.abs(gaps) / scales * many, many - 1)
    wide = 2 * max(bins, edge_bins) + 1
    # Mirror images have the same digits.
    digits = (height.astype(np.int64) + 1) * (signs * side[:, None]) + wide // 2
    place, size = np.unique(np.zeros(n) if groups is None else groups, return_inverse=True)[1], n + 1
    for digit in digits.T:
        place, size = place * wide + digit, size * wide
        if size > 2**62 // wide:
            place, size = np.unique(place, return_inverse=True)[1], n + 1
    # Of the rows of which a gap is 0 bins are wider, and the digit 0 tells them from all others.
    return np.unique(place, return_inverse=True)[1], side


def refine(
    gaps: Float[ndarray, "n d"],
    order: Int[ndarray, "n"],
    *,
    scales: Sequence[float] | None = None,
    bins: int = BINS,
    edge_bins: int = EDGE_BINS,
    groups: Int[ndarray, "n"] | None = None,
) -> Bool[ndarray, "n"]:
    """Which rows are kept so that mirrored cells hold equally many; rows first in `order` are preferred.

    With two scores, 50 and 10 bins and scales of 1 this is the rule of SugarCrepe's code; that code fails
    where a gap is 1 or -1.
    """
    cell, side = cells(gaps, scales=scales, bins=bins, edge_bins=edge_bins, groups=groups)
    # Cell and side as one number: 2 * cell of the one side, 2 * cell + 1 of the other.
    number = 2 * cell + (side < 0)
    least = np.bincount(number, minlength=2 * (int(cell.max(initial=-1)) + 1)).reshape(-1, 2).min(axis=1)
    return (ranks(number, order) < least[cell]) | (side == 0)


def largest_gaps(gaps: Float[ndarray, "n d"]) -> tuple[float, ...]:
    """A scale for each score: 1 where all its gaps are within [-1, 1], else the largest without its sign."""
    return tuple(max(1.0, float(np.abs(column).max(initial=0))) for column in np.asarray(gaps).T)


#: What scores by models that know the rows alone are called.
_OF_ROWS = ("length", "unigram", "bag_of_words", "learned")
NO_SCORE, SURPLUS = "no score", "surplus of its cell"


@dataclass(frozen=True)
class Refine(BuiltStep):
    """Balance blind scores as SugarCrepe does, with any number of them."""

    name: ClassVar[str] = "refine"

    scores: tuple[str, ...] = setting(
        (),
        "Scores to balance: NAME for columns NAME and negative_NAME, or files with those; default: all.",
        file=True,
    )
    balance: tuple[str, ...] = setting(
        (), "Blind models to run and balance: lm:MODEL, plausibility:MODEL.", model=()
    )
    within: str | None = setting(
        None, "Column of labels; balance the rows of each label separately.", column=True
    )
    bins: int = setting(
        BINS,
        "Bins of a score gap between 0 and 1; where gaps exceed 1, up to the largest.",
        low=1,
        high=10_000,
    )
    edge_bins: int = setting(EDGE_BINS, "Bins in rows where another gap is 0.", low=1, high=10_000)
    held_out: tuple[str, ...] = setting(
        ("blind:length", "blind:bag-of-words"),
        "Blind models measured before and after that refinement does not use.",
        model=(),
    )
    set: tuple[str, ...] = setting(
        (), "Settings of the models: KEY=VALUE of all, KIND.KEY=VALUE of one kind (lm).", model=()
    )
    sample: int = setting(20_000, "Rows on which blind models other than 'scores' are measured.", low=1)

    @property
    def requires(self) -> Sequence[str]:
        named = [score for score in self.scores if not _is_file(score)]
        columns = [column for name in named for column in (name, NEGATIVE + name)]
        if self.balance or self.held_out:
            columns += ["caption", "negative_caption"]
        return (*columns, *super().requires)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """The rows that are kept; facts hold each model's accuracy before and after, with intervals."""
        gaps = self._gaps(rows)
        if not gaps and not self.balance:
            hint = "rate the rows first, or name files with --scores, or models with --balance"
            given = ", ".join(rows.column_names)
            raise DataError("no scores to balance", where="refine", given=given, hint=hint)
        n = len(rows)
        clusters = clusters_of(rows) if n else np.zeros(0, dtype=np.int64)
        every = self._others(rows, clusters, context)
        for name in self.balance:
            if name in gaps:
                raise InputError("two scores of one name", where="--balance", given=name)
            gaps[name] = every.pop(name).of(np.arange(n)) if n else np.zeros(0)
        table = np.column_stack([*gaps.values()])
        lacking = np.isnan(table).any(axis=1)
        scored = np.flatnonzero(~lacking)
        facts: dict[str, Any] = {"scores": {}, "held_out": {}}
        left, facts["grid"] = self._balanced(tuple(gaps), table, scored, rows, context)
        if len(left):
            for i, name in enumerate(gaps):
                estimates = [blind_accuracy(table[of, i], clusters[of]) for of in (scored, left)]
                facts["scores"][name] = accuracy_facts(*estimates)
            facts["held_out"] = dict(self._measured(every, scored, left, clusters, context))
        if self.within is not None:
            before, after = (Counter(rows[self.within].take(i).to_pylist()) for i in (scored, left))
            facts["within"] = {str(name): [count, after[name]] for name, count in before.items()}
            for name, count in before.items():
                if not after[name]:
                    context.note(f"{self.within} '{name}': none of its {count:,} rows is left")
        if len(left) < len(scored):
            goal = "wrong captions now score higher as often as right ones, and by the same amounts"
            context.note(f"{SURPLUS}: dropped for balance; {goal}")
        facts["not_ruled_out"] = statement = _not_ruled_out([*gaps], facts["held_out"])
        context.note(statement)
        why = np.where(lacking, NO_SCORE, SURPLUS).tolist()
        return Output(*split_rows(rows, np.isin(np.arange(n), left), why), facts)

    def _gaps(self, rows: pa.Table) -> dict[str, NDArray[np.float64]]:
        gaps: dict[str, NDArray[np.float64]] = {}
        for score in self.scores or scores_in(rows):
            if _is_file(score):
                read = _of_file(Path(score), rows)
            else:
                pair = score, NEGATIVE + score
                right, wrong = (numbers_of(rows, column, where="refine") for column in pair)
                read = {score: right - wrong}
            double = [name for name in read if name in gaps]
            if double:
                raise InputError("two scores of one name", where="--scores", given=double[0])
            gaps |= read
        return gaps

    def _measured(
        self,
        others: Mapping[str, BlindGaps],
        scored: NDArray[np.int64],
        left: NDArray[np.int64],
        clusters: NDArray[np.int64],
        context: StepContext,
    ) -> Iterator[tuple[str, dict[str, Any]]]:
        for name, gap in others.items():
            estimates = []
            for when, of in (("before", scored), ("after", left)):
                if len(of) > self.sample:
                    of = np.sort(context.rng("sample", when).choice(of, self.sample, replace=False))
                estimates.append(blind_accuracy(gap.of(of), clusters[of]))
            measured = accuracy_facts(*estimates)
            if not measured["chance_after"]:
                value, low, high = (100 * measured["after"][key] for key in ("value", "low", "high"))
                context.note(
                    f"{name} still prefers the right caption in {value:.1f} % of rows "
                    f"[{low:.1f}, {high:.1f}], and chance is 50 %"
                )
            yield name, measured

    def _balanced(
        self,
        names: Sequence[str],
        table: NDArray[np.float64],
        left: NDArray[np.int64],
        rows: pa.Table,
        context: StepContext,
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        """The rows of `left` that balance mirrored cells, and what the grid was."""
        scales = dict(zip(names, largest_gaps(table[left]), strict=True))
        groups = None if self.within is None else codes_of(rows[self.within])[0][left]
        how: dict[str, Any] = {"scales": tuple(scales.values()), "groups": groups}
        how |= {"bins": self.bins, "edge_bins": self.edge_bins}
        gaps = table[left]
        mask = refine(gaps, context.rng("refine").permutation(len(left)), **how)
        cell, side = cells(gaps, **how)
        several = int(cell.max(initial=-1)) + 1
        sides = np.stack([np.bincount(cell[side == sign], minlength=several) for sign in (1, -1)])
        both = sides.sum(axis=0)
        facts: dict[str, Any] = {"scales": scales, "cells": int((both > 0).sum())}
        facts["rows_without_mirror"] = int(both[(sides == 0).any(axis=0)].sum())
        return left[mask], {**facts, "rows_without_gaps": int((side == 0).sum())}

    def _others(
        self, rows: pa.Table, clusters: NDArray[np.int64], context: StepContext
    ) -> dict[str, BlindGaps]:
        named = [*self.balance, *self.held_out]
        if double := next((name for name in named if named.count(name) > 1), None):
            raise InputError("a model that takes part is not held out", where="--held-out", given=double)
        if not named or not len(rows):
            return {}
        right, wrong = filled(rows, ("caption", "negative_caption"), where=f"step {context.step}")
        return {
            name: BlindGaps(context.model(name, settings), name, right, wrong, clusters, context)
            for name, settings in self.model_settings().items()
        }


def _not_ruled_out(part: Sequence[str], held_out: Mapping[str, Mapping[str, Any]]) -> str:
    """What refinement by models that took part, and the accuracy of others after it, says nothing of."""
    parts = "value", "low", "high"
    numbers = {name: [100 * its["after"][key] for key in parts] for name, its in held_out.items()}
    held = [f"{name} {value:.1f} % [{low:.1f}, {high:.1f}]" for name, (value, low, high) in numbers.items()]
    statement = f"refined against {', '.join(part)}; tested on models held out: {', '.join(held) or 'none'}"
    if any(map(_reads_more, held_out)):
        return f"{statement}; other models may still tell right captions from wrong ones"
    which = "another language model" if any(map(_reads_more, part)) else "a language model"
    return f"{statement}; {which} may still tell right captions from wrong ones (test: --held-out lm:MODEL)"


def _reads_more(name: str) -> bool:
    """Whether a model has read more than the rows, as far as its name says."""
    return not name.startswith("blind:") and name not in _OF_ROWS


def _is_file(name: str) -> bool:
    return Path(name).suffix.lower() in EXTENSIONS


def _of_file(path: Path, rows: pa.Table) -> dict[str, NDArray[np.float64]]:
    """The gaps that a file of scores gives each row, by its column `id` or in the rows' order."""
    table = read_table(path)
    named = [name for name in table.columns if name not in {*CAPTION_ROLES, *IMAGE_ROLES, "id"}]
    scored = [name for name in named if name == "gap" or NEGATIVE + name in table.columns]
    if not scored:
        allowed = "columns 'score' and 'negative_score', NAME and negative_NAME, or 'gap'"
        given = ", ".join(table.columns)
        raise DataError("no scores of right and wrong captions", where=path, given=given, allowed=allowed)
    ids = rows["id"].to_pylist()
    if "id" not in table and len(table) != len(rows):
        given, hint = f"{len(table):,} scores of {len(rows):,} rows", "give the scores a column 'id'"
        raise DataError("not as many scores as rows", where=path, given=given, hint=hint)
    place = {name: i for i, name in enumerate(names(table, "id") if "id" in table else ids)}
    missing = [name for name in ids if name not in place]
    if missing:
        given = f"{len(missing):,} of {len(ids):,}, first: {missing[0]}"
        raise DataError("rows without a score", where=path, given=given)
    positions = np.array([place[name] for name in ids], dtype=np.int64)
    gaps = {}
    for name in scored:
        gap = floats(table, name) - (floats(table, NEGATIVE + name) if name != "gap" else 0.0)
        gaps[path.stem if name in ("gap", "score") else name] = gap[positions]
    return gaps
