"""Pooling in rounds: propose, judge, merge, and again, with what each round cost, found and left behind."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from counterfoil.build.pooling import Judge, PoolingState
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.judgements import Direction
from counterfoil.data.tables import DataTable
from counterfoil.engine.session import Session
from counterfoil.errors import InputError
from counterfoil.evaluation.pooling import PoolRound
from counterfoil.evaluation.result import Run
from counterfoil.report.tables import Column, Table, text_table
from counterfoil.stats.capture_recapture import Population
from counterfoil.store import write_csv, write_json
from counterfoil.tasks.bias import AnnotatorStudy, bias
from counterfoil.tasks.feedback import SILENT, Feedback
from counterfoil.tasks.model_lists import chosen_queries, load
from counterfoil.tasks.pool_judges import RoundOptions, judge_of
from counterfoil.tasks.results import Tabular

#: What a folder of rounds holds.
FILES = ("positives.csv", "judgements.csv", "rounds.json")


@dataclass(frozen=True, eq=False, repr=False)
class PoolRounds(Tabular):
    """Rounds of pooling with what each cost and found, how much is still missing, and whom the models favour.

    Rows by "round" are one per round, by "model" one per round and model: `proposed`, `judged`, `right`. Rows
    by "judgement" are the judged pairs with their gain and the round; by "positive" those that are right.
    """

    models: tuple[str, ...]
    k: int
    rounds: tuple[PoolRound, ...]
    judgements: pa.Table
    #: The bias of the models' proposals after each round; None where it cannot be told.
    biases: tuple[AnnotatorStudy | None, ...]
    remarks: tuple[str, ...] = ()

    rows_by = ("round", "model", "judgement", "positive")

    @property
    def positives(self) -> pa.Table:
        """The pairs that were judged right, each once: image, caption, gain, round."""
        gains = self.judgements["gain"].to_numpy()
        rows = np.flatnonzero(gains > 0)
        pairs = self.judgements["pair"].to_numpy()[rows]
        _, first = np.unique(pairs, return_index=True)
        return self.judgements.take(pa.array(rows[np.sort(first)])).select(
            ["image", "caption", "gain", "round"]
        )

    def _rows(self, by: str) -> pa.Table:
        if by == "judgement":
            return self.judgements
        if by == "positive":
            return self.positives
        rows = []
        for one in self.rounds:
            facts = one.to_json()
            of_models, missing = facts.pop("by_model"), facts.pop("missing")
            if by == "model":
                rows += [{"round": one.number, "model": name, **row} for name, row in of_models.items()]
            else:
                ends = {
                    f"{name}_{end}": None if of is None else of[end]
                    for name, of in missing.items()
                    for end in (("total",) if name == "graded" else ("total", "low", "high"))
                }
                rows.append({**facts, **ends})
        return pa.Table.from_pylist(rows)

    @property
    def tables(self) -> list[Table]:
        """The rounds, what each model added, and the bias after the last round."""
        known = any(one.total is not None for one in self.rounds)
        names = ["judged", "right", "right of judged", "all right", "cost", "independent", "at least"]
        names += ["graded"] if any(one.missing.graded is not None for one in self.rounds) else []
        names += ["all there are"] if known else []
        rows = []
        for one in self.rounds:
            of = one.missing
            cells = [
                f"{one.judged:,}",
                f"{one.right:,}",
                "–" if not one.judged else f"{100 * one.yielded:.1f} %",
                f"{one.all_right:,}",
                f"{one.cost:,.2f}",
                _written(of.independent),
                _written(of.chao),
            ]
            if "graded" in names:
                cells.append("–" if of.graded is None else _count(of.graded))
            cells += ["–" if one.total is None else f"{one.total:,}"] if known else []
            rows.append((str(one.number), *cells))
        caption = f"Rounds of pooling: the next {self.k} of {len(self.models)} models for each query."
        all_tables = [text_table(caption, "round", [Column(name) for name in names], rows)]
        by_model = [
            (
                name,
                *(
                    f"{right:,} of {judged:,}"
                    for one in self.rounds
                    for _, judged, right in [one.by_model[name]]
                ),
            )
            for name in self.models
        ]
        all_tables.append(
            text_table(
                "Right of judged pairs, by who proposed them.",
                "model",
                [Column(f"round {one.number}") for one in self.rounds],
                by_model,
            )
        )
        last = next((one for one in reversed(self.biases) if one is not None), None)
        return [*all_tables, *([] if last is None else [one for one in last.tables if "Bias" in one.caption])]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided, and what the estimates rest on."""
        rests = (
            "estimates of all right pairs are from how the models' finds overlap: 'independent' is too low "
            "where models find the same easy pairs, 'at least' is a lower bound, and 'graded' holds if no "
            "pair is out of every model's reach and no models are near copies, which the finds cannot show",
        )
        if len(self.models) < 2:
            return self.remarks
        return (*self.remarks, *rests)

    def __repr__(self) -> str:
        last = self.rounds[-1] if self.rounds else None
        return f"<PoolRounds: {len(self.rounds)}, {0 if last is None else last.all_right:,} right pairs>"

    def to_json(self) -> dict[str, Any]:
        """All rounds as plain values, with the bias after each."""
        return {
            "models": list(self.models),
            "k": self.k,
            "rounds": [
                {**one.to_json(), "bias": None if of is None else of.to_json()}
                for one, of in zip(self.rounds, self.biases, strict=True)
            ],
            "notes": list(self.notes),
        }

    def save(self, folder: str | Path) -> None:
        """Write positives.csv, judgements.csv (which `bias` reads) and rounds.json into a folder."""
        folder = Path(folder)
        write_csv(folder / FILES[0], self.positives)
        write_csv(folder / FILES[1], self.judgements)
        write_json(folder / FILES[2], self.to_json())


def _written(of: Population | None) -> str:
    if of is None:
        return "–"
    return f"{_count(of.total)} [{_count(of.low)}, {_count(of.high)}]"


def _count(number: float) -> str:
    return "∞" if number == np.inf else f"{number:,.0f}"


def pool_rounds(
    scores: Sequence[Run | str | Path],
    judge: str | Path | Benchmark | Judge,
    options: RoundOptions | None = None,
    *,
    gallery: Benchmark | None = None,
    session: Session | None = None,
    feedback: Feedback = SILENT,
) -> PoolRounds:
    """Pool the models' proposals in rounds, judge them, and say what is still missing.

    `scores` are runs, run folders, embeddings (.npz) and similarities (.npy) of the same items. `judge` is
    "world" (runs over the drawn world's gallery, whose truth is known), a table of judgements, a benchmark
    whose right answers count, a scorer as KIND:WHAT with a threshold, or a function from a table of pairs to
    gains. Lists are read further down in every round, and rounds end early where nothing is left to propose.
    `gallery` has the items where a scorer judges.

    Raises `InputError` for a judge that cannot judge these pairs, `DataError` where galleries differ or files
    cannot be used.
    """
    options = options or RoundOptions()
    with feedback.busy("reading lists"):
        models = load(scores, ids=None if options.ids is None else Path(options.ids), widest=True)
    ways: tuple[Direction, ...] = ("i2t", "t2i") if options.direction is None else (options.direction,)
    chosen = chosen_queries(models, options.queries, ways)
    judging, total = judge_of(judge, models, chosen, options, gallery, session)
    tasks = options.tasks
    state = PoolingState(models, chosen, options.k, lambda judged: tasks.of(judged) * tasks.price, total)
    names = tuple(lists.name for lists in models)
    done: list[PoolRound] = []
    biases: list[AnnotatorStudy | None] = []
    for number in range(1, options.rounds + 1):
        with feedback.busy(f"round {number}: judging what {len(models)} models propose"):
            pooling_round = state.round(number, judging)
        if pooling_round is None:
            state.remarks.append(f"nothing was left to propose in round {number}")
            break
        done.append(pooling_round)
        biases.append(_bias(scores, state.table(), options))
    if not done:
        raise InputError("the models propose nothing", given=f"k {options.k}")
    return PoolRounds(names, options.k, tuple(done), state.table(), tuple(biases), tuple(state.remarks))


def _bias(
    scores: Sequence[Run | str | Path], judgements: pa.Table, options: RoundOptions
) -> AnnotatorStudy | None:
    """The bias of what the models proposed so far; None for one model, and where nothing was right."""
    gains = judgements["gain"].to_numpy()
    answered = judgements.filter(pa.array(~np.isnan(gains)))
    directions = set(answered.filter(pa.array(answered["gain"].to_numpy() > 0))["direction"].to_pylist())
    if len(scores) < 2 or not options.draws or directions != set(answered["direction"].to_pylist()):
        return None
    columns = {name: answered[name].to_pylist() for name in answered.column_names}
    return bias(
        scores,
        DataTable(columns, "the judgements of the rounds"),
        measures=("recall_at_1",),
        ids=options.ids,
        draws=options.draws,
        seed=options.seed,
    )
