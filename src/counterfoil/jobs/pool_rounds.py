"""Pooling in rounds: propose, judge, merge, and again, with what each round found and left behind.

The drawn world, a benchmark or a table of people's answers judges proposed pairs.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.judgements import Direction, gain_of
from counterfoil.benchmarks.tables import DataTable
from counterfoil.build.pooling import Judge, PoolingState, table_judge
from counterfoil.engine.topk import ModelLists
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.judged_pairs import right_pairs
from counterfoil.evaluation.pooling import PoolRound
from counterfoil.evaluation.result import Run
from counterfoil.inputs.limits import most
from counterfoil.jobs import shared_options as shared
from counterfoil.jobs.bias import AnnotatorStudy, bias
from counterfoil.jobs.job import SILENT, feedback_of, job, option
from counterfoil.jobs.pool import chosen_queries, load
from counterfoil.jobs.results import Tabular, declared
from counterfoil.outputs import Folder, guarded
from counterfoil.report.tables import Column, Table
from counterfoil.store import check_writable, write_csv, write_json
from counterfoil.world.people import Annotator, judge

#: What a folder of rounds holds.
FILES = ("positives.csv", "judgements.csv", "rounds.json")
#: The judge that knows the truth of the drawn world.
WORLD = "world"


def judge_of(
    judge: str | Path | Benchmark | Judge,
    models: Sequence[ModelLists],
    chosen: Mapping[Direction, Sequence[str]],
    crowd: Sequence[Annotator],
    seed: int,
) -> tuple[Judge, int | None]:
    """A function that judges pairs, and how many right pairs there are among those that could be asked."""
    if callable(judge):
        return judge, None
    if not isinstance(judge, Benchmark) and str(judge) != WORLD:
        if Path(judge).is_file():
            return table_judge(Path(judge)), None
        judge = catalog.benchmark(str(judge))
    if isinstance(judge, Benchmark):
        return _of_benchmark(judge, models, chosen, crowd, seed)
    benchmark = next((lists.benchmark for lists in models if lists.benchmark is not None), None)
    if benchmark is None or benchmark.card.name != "world-gallery":
        raise InputError(
            "the world judges runs over its own gallery only",
            given="no run" if benchmark is None else benchmark.name,
            allowed="runs over world-gallery",
            hint="or name a table of judgements or a benchmark with --judge",
        )
    return _of_benchmark(benchmark, models, chosen, crowd, seed)


def _of_benchmark(
    benchmark: Benchmark,
    models: Sequence[ModelLists],
    chosen: Mapping[Direction, Sequence[str]],
    crowd: Sequence[Annotator],
    seed: int,
) -> tuple[Judge, int]:
    """The right answers of a gallery as the judge, or simulated people who see them."""
    image_ids, caption_ids = models[0].image_ids, models[0].caption_ids
    codes = []
    for way, names in chosen.items():
        items = models[0].ids(way)[1]
        pairs = [(names[q], items[i]) for q, i in right_pairs(benchmark, way, names, items).tolist()]
        codes += pairs if way == "i2t" else [pair[::-1] for pair in pairs]
    right = dict.fromkeys(codes, True)
    if not right:
        raise DataError(
            "the benchmark knows no right pair of these items",
            where=benchmark.name,
            allowed=f"images such as {image_ids[0]}, captions such as {caption_ids[0]}",
        )
    rng = np.random.default_rng(seed)

    def truth(table: pa.Table) -> NDArray[np.float64]:
        pairs = list(zip(table["image"].to_pylist(), table["caption"].to_pylist(), strict=True))
        if not crowd:
            return np.array([float(pair in right) for pair in pairs])
        answers = judge(table.select(["image", "caption"]), right, crowd, rng)
        votes = np.array([gain_of(answer) for answer in answers["answer"].to_pylist()], dtype=np.float64)
        return (votes.reshape(len(crowd), len(pairs)).mean(axis=0) > 0.5).astype(np.float64)

    return truth, len(right)


class PoolRounds(Tabular):
    """Rounds of pooling with what each found, how much is still missing, whom the models favour."""

    models: tuple[str, ...]
    k: int
    rounds: tuple[PoolRound, ...]
    judgements: pa.Table
    #: The bias of the models' proposals after each round; None where it cannot be told.
    biases: tuple[AnnotatorStudy | None, ...]
    remarks: tuple[str, ...] = ()

    rows_by = declared(
        round="one per round",
        model="one per `round: int` and `model`: `proposed: int`, `judged: int`, `right: int`",
        judgement="the judged pairs with their gain and the round",
        positive="those of them that are right",
    )

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

    def _rows(self, by: str) -> pa.Table | list[dict[str, Any]]:
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
                bound = missing["chao"] or {}
                rows.append({**facts, **{f"chao_{end}": bound.get(end) for end in ("total", "low", "high")}})
        return rows

    @property
    def tables(self) -> list[Table]:
        """The rounds, what each model added, and the bias after the last round."""
        cells: dict[str, Callable[[PoolRound], str]] = {
            "judged": lambda one: f"{one.judged:,}",
            "right": lambda one: f"{one.right:,}",
            "right of judged": lambda one: f"{100 * one.yielded:.1f} %" if one.judged else "–",
            "all right": lambda one: f"{one.all_right:,}",
            "at least": lambda one: (
                "–" if (of := one.at_least) is None else f"{of.total:,.0f} [{of.low:,.0f}, {of.high:,.0f}]"
            ),
            "all there are": lambda one: "–" if one.total is None else f"{one.total:,}",
        }
        if all(one.total is None for one in self.rounds):
            del cells["all there are"]
        rows = [(str(one.number), *(cell(one) for cell in cells.values())) for one in self.rounds]
        caption = f"Rounds of pooling: the next {self.k} of {len(self.models)} models for each query."
        all_tables = [Table.of(caption, "round", [*map(Column, cells)], rows)]
        by_model = []
        for name in self.models:
            counts = [one.by_model[name] for one in self.rounds]
            by_model.append((name, *(f"{right:,} of {judged:,}" for _, judged, right in counts)))
        columns = [Column(f"round {one.number}") for one in self.rounds]
        caption = "Right of judged pairs, by who proposed them."
        all_tables.append(Table.of(caption, "model", columns, by_model))
        last = next((one for one in reversed(self.biases) if one is not None), None)
        return [*all_tables, *([] if last is None else [one for one in last.tables if "Bias" in one.caption])]

    @property
    def notes(self) -> tuple[str, ...]:
        """What was decided, and what the lower bound of all right pairs rests on."""
        rests = "'at least' is a lower bound of all right pairs, from how the models' finds overlap (Chao)"
        return (*self.remarks, rests) if len(self.models) > 1 else self.remarks

    def to_json(self) -> dict[str, Any]:
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
        """Write positives.csv, judgements.csv (which `pool bias` reads) and rounds.json into a folder."""
        folder = Path(folder)
        write_csv(folder / FILES[0], self.positives)
        write_csv(folder / FILES[1], self.judgements)
        write_json(folder / FILES[2], self.to_json())


@job(
    outputs="json",
    examples="""Examples:
  counterfoil pool rounds runs/*/world-gallery --rounds 3 --judge world --out pooled/
  counterfoil pool rounds runs/*/coco-5k --judge answers.csv --out pooled/
  counterfoil pool rounds pvse.npz vsrn.npz --ids ids.npz --judge eccv --k 10 --out pooled/""",
)
def pool_rounds(
    scores: Annotated[Sequence[Run | str | Path], shared.SCORES],
    judge: Annotated[Any, option(flag="--judge")] = WORLD,
    *,
    out: Path | None = None,
    rounds: Annotated[int, option(low=1, high=most("k"))] = 3,
    k: Annotated[int, option(low=1, high=most("k"))] = 5,
    queries: Annotated[str | Path | Collection[str] | None, shared.QUERIES] = None,
    direction: Annotated[Literal["t2i", "i2t", "both"], shared.DIRECTION] = "both",
    ids: Annotated[Path | None, shared.IDS] = None,
    overwrite: bool = False,
    people: Annotated[int, option(low=0, high=most("people"))] = 0,
    accuracy: float = 0.95,
    bias: Annotated[float, option(hidden=True)] = 0.0,
    seed: Annotated[int, shared.SEED] = 0,
    draws: Annotated[int, option(low=0, hidden=True)] = 500,
    **reporting: Unpack[shared.Reporting],
) -> PoolRounds:
    """Pool and judge in rounds: what each round finds and misses.

    Judged pairs are written to judgements.csv, which 'counterfoil pool bias --judgements' reads, right ones
    to positives.csv. Each round reads the lists further down; rounds end early if nothing is left.

    `judge` is "world" (runs over the drawn world's gallery, whose truth is known), a table of judgements, a
    benchmark whose right answers count, or a function from a table of pairs to gains. `queries` may be ids
    too. Raises `InputError` for a judge that cannot judge these pairs, `DataError` where galleries differ or
    files cannot be used.

    Arguments:
        judge: Judge: world, a table of answers, or a benchmark's name or folder.
        out: Folder of positives.csv, judgements.csv and rounds.json.
        rounds: Number of rounds.
        k: New items of each model per query and round.
        people: Simulated people who judge with errors.
        accuracy: Simulated people: accuracy.
        bias: Simulated people: bias towards yes.
        draws: Behind the intervals of bias, which is not measured at 0.
    """
    # Raises where the chances would not be chances, also without people.
    simulated = Annotator("simulated", accuracy, bias)
    crowd = [replace(simulated, name=f"person {i + 1}") for i in range(people)]
    feedback = feedback_of(reporting)
    with guarded("pool rounds", overwrite=overwrite) as outputs:
        if out is not None:
            check_writable(out, folder=True)
            outputs.folder(Folder(out, FILES))
        with feedback.busy("reading lists"):
            models = load(scores, ids=ids, widest=True)
        chosen = chosen_queries(models, queries, direction)
        judging, total = judge_of(judge, models, chosen, crowd, seed)
        state = PoolingState(models, chosen, k, total)
        remarks = []
        names = tuple(lists.name for lists in models)
        done: list[PoolRound] = []
        biases: list[AnnotatorStudy | None] = []
        for number in range(1, rounds + 1):
            with feedback.busy(f"round {number}: judging what {len(models)} models propose"):
                pooling_round = state.round(number, judging)
            if pooling_round is None:
                remarks.append(f"nothing was left to propose in round {number}")
                break
            done.append(pooling_round)
            biases.append(_bias(scores, state.table(), ids, draws, seed))
        if not done:
            raise InputError("the models propose nothing", given=f"k {k}")
        pooled = PoolRounds(names, k, tuple(done), state.table(), tuple(biases), tuple(remarks))
        if out is not None:
            pooled.save(out)
        return pooled


def _bias(
    scores: Sequence[Run | str | Path], judgements: pa.Table, ids: Path | None, draws: int, seed: int
) -> AnnotatorStudy | None:
    """The bias of what the models proposed so far; None for one model, and where nothing was right."""
    gains = judgements["gain"].to_numpy()
    answered = judgements.filter(pa.array(~np.isnan(gains)))
    directions = set(answered.filter(pa.array(answered["gain"].to_numpy() > 0))["direction"].to_pylist())
    if len(scores) < 2 or not draws or directions != set(answered["direction"].to_pylist()):
        return None
    columns = {name: answered[name].to_pylist() for name in answered.column_names}
    return bias(
        scores,
        DataTable(columns, "the judgements of the rounds"),
        measures=("recall_at_1",),
        ids=ids,
        draws=draws,
        seed=seed,
        feedback=SILENT,
    )
