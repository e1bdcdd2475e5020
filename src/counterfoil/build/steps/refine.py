"""A step of adversarial refinement: rows are dropped until blind scores give nothing away."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
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
    score_pairs_of,
    settings_by_scorer,
    texts_of,
)
from counterfoil.build.refinement import BINS, EDGE_BINS, cells, filter_predictable, largest_gaps, refine
from counterfoil.build.step import BuiltStep, Output, StepContext, codes_of, split_rows
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import setting

#: What scores by scorers that know the rows alone are called.
_OF_ROWS = ("length", "unigram", "bag_of_words", "learned")
#: Reasons for which rows are dropped.
NO_SCORE, SURPLUS, PREDICTABLE = "no score", "surplus of its cell", "predictable"


@dataclass(frozen=True)
class Refine(BuiltStep):
    """Balance blind scores as SugarCrepe does, with any number of them, and filter against a blind scorer."""

    name: ClassVar[str] = "refine"

    scores: tuple[str, ...] = setting(
        (),
        "Scores to balance: NAME for columns NAME and negative_NAME, or files with those; default: all.",
        file=True,
    )
    balance: tuple[str, ...] = setting(
        (), "Blind scorers to run and balance: lm:MODEL, plausibility:MODEL.", model=()
    )
    within: str | None = setting(None, "Column of labels; balance the rows of each label separately.")
    bins: int = setting(
        BINS,
        "Bins of a score gap between 0 and 1; where gaps exceed 1, up to the largest.",
        low=1,
        high=10_000,
    )
    edge_bins: int = setting(EDGE_BINS, "Bins in rows where another gap is 0.", low=1, high=10_000)
    against: str | None = setting(
        None, "Blind scorer whose most certain right answers are dropped first: blind:learned.", model=()
    )
    share: float = setting(0.05, "With 'against': most rows dropped per round, as a share.", above=0, below=1)
    least: int = setting(50, "With 'against': least rows to leave.", low=0)
    held_out: tuple[str, ...] = setting(
        ("blind:length", "blind:bag-of-words"),
        "Blind scorers measured before and after that refinement does not use.",
        model=(),
    )
    set: tuple[str, ...] = setting(
        (), "Settings of the scorers: KEY=VALUE of all, KIND.KEY=VALUE of one kind (lm).", model=()
    )
    sample: int = setting(20_000, "Rows on which blind scorers other than 'scores' are measured.", low=1)

    def __post_init__(self) -> None:
        super().__post_init__()
        settings_by_scorer(self._blind, self.set)

    @property
    def _blind(self) -> list[str]:
        """The blind scorers that read captions: balanced ones, the one filtered against, those held out."""
        return [*self.balance, *([self.against] if self.against else []), *self.held_out]

    @property
    def requires(self) -> Sequence[str]:
        named = [score for score in self.scores if not _is_file(score)]
        columns = [column for name in named for column in (name, NEGATIVE + name)]
        if self._blind:
            columns += ["caption", "negative_caption"]
        return (*columns, *([self.within] if self.within else []))

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """The rows that are kept; facts hold each scorer's accuracy before and after, with intervals."""
        gaps = self._gaps(rows)
        if not gaps and not self.balance and self.against is None:
            raise DataError(
                "no scores to balance",
                where="refine",
                given=", ".join(rows.column_names),
                hint="rate the rows first, name files with --scores, or scorers with --balance or --against",
            )
        n = len(rows)
        clusters = clusters_of(rows) if n else np.zeros(0, dtype=np.int64)
        every = self._others(rows, clusters, context)
        for name in self.balance:
            if name in gaps:
                raise InputError("two scores of one name", where="--balance", given=name)
            gaps[name] = every.pop(name).of(np.arange(n)) if n else np.zeros(0)
        reasons = np.full(n, "", dtype=object)
        table = np.column_stack([*gaps.values()]) if gaps else np.zeros((n, 0))
        reasons[np.isnan(table).any(axis=1)] = NO_SCORE
        scored = np.flatnonzero(reasons == "")
        others = every if len(scored) else {}
        facts: dict[str, Any] = {"scores": {}, "held_out": {}}
        left = scored
        if self.against is not None:
            left, facts["against"] = self._filtered(others[self.against], scored, clusters, context)
            reasons[np.setdiff1d(scored, left)] = PREDICTABLE
        if gaps:
            left, facts["grid"] = self._balanced(tuple(gaps), table, left, rows, context)
            reasons[(reasons == "") & ~np.isin(np.arange(n), left)] = SURPLUS
        if len(left):
            for at, name in enumerate(gaps):
                estimates = [blind_accuracy(table[of, at], clusters[of]) for of in (scored, left)]
                facts["scores"][name] = accuracy_facts(*estimates)
            for name, measured in self._measured(others, scored, left, clusters, context):
                if name == self.against:
                    facts["against"].update(measured)
                else:
                    facts["held_out"][name] = measured
        if self.within is not None:
            before, after = (Counter(rows[self.within].take(at).to_pylist()) for at in (scored, left))
            facts["within"] = {str(name): [count, after[name]] for name, count in before.items()}
            for name, count in before.items():
                if not after[name]:
                    context.note(f"{self.within} '{name}': none of its {count:,} rows is left")
        part = [*gaps, *([self.against] if self.against else [])]
        facts["not_ruled_out"] = statement = _not_ruled_out(part, facts["held_out"])
        context.note(statement)
        refined, dropped = split_rows(rows, reasons == "", reasons.tolist())
        return Output(refined, dropped, facts)

    def _gaps(self, rows: pa.Table) -> dict[str, NDArray[np.float64]]:
        gaps: dict[str, NDArray[np.float64]] = {}
        scores_of = score_pairs_of(rows)
        for score in self.scores or tuple(scores_of):
            if _is_file(score):
                read = _of_file(Path(score), rows)
            else:
                pair = scores_of.get(score, (score, NEGATIVE + score))
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
        sides = np.stack(
            [np.bincount(cell[side == sign], minlength=int(cell.max(initial=-1)) + 1) for sign in (1, -1)]
        )
        facts = {
            "scales": scales,
            "cells": int((sides.sum(axis=0) > 0).sum()),
            "rows_without_mirror": int(sides.sum(axis=0)[(sides == 0).any(axis=0)].sum()),
            "rows_without_gaps": int((side == 0).sum()),
        }
        return left[mask], facts

    def _others(
        self, rows: pa.Table, clusters: NDArray[np.int64], context: StepContext
    ) -> dict[str, BlindGaps]:
        named = self._blind
        if len(set(named)) < len(named):
            double = next(name for name in named if named.count(name) > 1)
            raise InputError("a scorer that takes part is not held out", where="--held-out", given=double)
        if not named or not len(rows):
            return {}
        right, wrong = (texts_of(rows, column) for column in ("caption", "negative_caption"))
        return {
            name: BlindGaps(context.scorer(name, settings), name, right, wrong, clusters, context)
            for name, settings in settings_by_scorer(named, self.set).items()
        }

    def _filtered(
        self, gap: BlindGaps, scored: NDArray[np.int64], clusters: NDArray[np.int64], context: StepContext
    ) -> tuple[NDArray[np.int64], dict[str, Any]]:
        done = 0

        def answer(rows: NDArray[np.int64]) -> NDArray[np.float64]:
            nonlocal done
            context.progress("filtering predictable rows", done, len(scored))
            done = len(scored) - len(rows)
            return gap.of(scored[rows])

        def interval(rows: NDArray[np.int64], gaps: NDArray[np.float64]) -> tuple[float, float]:
            accuracy = blind_accuracy(gaps, clusters[scored[rows]])
            return accuracy.low, accuracy.high

        mask, rounds = filter_predictable(
            len(scored),
            answer,
            interval,
            context.rng("filter").permutation(len(scored)),
            share=self.share,
            least=self.least,
        )
        return scored[mask], {"scorer": gap.name, "rounds": [asdict(one) for one in rounds]}


def _not_ruled_out(part: Sequence[str], held_out: Mapping[str, Mapping[str, Any]]) -> str:
    """What refinement by scorers that took part, and the accuracy of others after it, says nothing of."""
    numbers = {
        name: [100 * its["after"][key] for key in ("value", "low", "high")] for name, its in held_out.items()
    }
    held = [f"{name} {value:.1f} % [{low:.1f}, {high:.1f}]" for name, (value, low, high) in numbers.items()]
    statement = f"took part: {', '.join(part)}; held out: {', '.join(held) or 'none'}"
    if any(map(_reads_more, held_out)):
        return f"{statement}; others are not ruled out"
    which = "another language model" if any(map(_reads_more, part)) else "a language model"
    return f"{statement}; {which} is not ruled out (--held-out lm:MODEL)"


def _reads_more(name: str) -> bool:
    """Whether a scorer has read more than the rows, as far as its name says."""
    return not name.startswith("blind:") and name not in _OF_ROWS


def _is_file(name: str) -> bool:
    return Path(name).suffix.lower() in EXTENSIONS


def _of_file(path: Path, rows: pa.Table) -> dict[str, NDArray[np.float64]]:
    """The gaps that a file of scores gives each row, by its column `id` or in the rows' order."""
    table = read_table(path)
    taken = {*CAPTION_ROLES, *IMAGE_ROLES, "id"}
    scored = [
        name
        for name in table.columns
        if name not in taken and (name == "gap" or NEGATIVE + name in table.columns)
    ]
    if not scored:
        raise DataError(
            "no scores of right and wrong captions",
            where=path,
            given=", ".join(table.columns),
            allowed="columns 'score' and 'negative_score', NAME and negative_NAME, or 'gap'",
        )
    ids = rows["id"].to_pylist()
    if "id" not in table and len(table) != len(rows):
        raise DataError(
            "not as many scores as rows",
            where=path,
            given=f"{len(table):,} scores of {len(rows):,} rows",
            hint="give the scores a column 'id'",
        )
    place = {name: at for at, name in enumerate(names(table, "id") if "id" in table else ids)}
    missing = [name for name in ids if name not in place]
    if missing:
        given = f"{len(missing):,} of {len(ids):,}, first: {missing[0]}"
        raise DataError("rows without a score", where=path, given=given)
    places = np.array([place[name] for name in ids], dtype=np.int64)
    gaps = {}
    for name in scored:
        gap = floats(table, name) - (floats(table, NEGATIVE + name) if name != "gap" else 0.0)
        gaps[path.stem if name in ("gap", "score") else name] = gap[places]
    return gaps
