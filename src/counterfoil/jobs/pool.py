"""Pools of candidate pairs for people to verify, from what several models put first."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.judgements import Direction, pool_kind, pool_table, write_pool
from counterfoil.engine.topk import ModelLists, top_lists
from counterfoil.errors import InputError
from counterfoil.evaluation.judged_pairs import right_pairs
from counterfoil.evaluation.pooling import Summary, Tasks, summary, without
from counterfoil.evaluation.result import Run
from counterfoil.jobs.feedback import SILENT, Feedback
from counterfoil.jobs.model_lists import chosen_queries, load
from counterfoil.jobs.outputs import guarded_file
from counterfoil.jobs.results import Tabular
from counterfoil.metrics.annotators import Pool
from counterfoil.metrics.annotators import pool as pooled_items
from counterfoil.report.tables import Cell, Column, Row, Table


@dataclass(frozen=True, eq=False, repr=False)
class CandidatePool(Tabular):
    """Pairs to verify, each once, with who proposed it at which place, and their number by models and k.

    Rows by "pair" are those of the table that people fill in: `pair` (a number per image and caption),
    `direction`, `query`, `item`, `image`, `caption`, `text` where captions are known, and the place of the
    item in each model's list, 0 where it is not among its first (`place:MODEL`). Rows by "model" are one per
    model: the pairs that it `proposes`, that it `alone` proposes, and that are `new` after earlier models.
    """

    summary: Summary
    _pools: Mapping[Direction, Pool]
    _queries: Mapping[Direction, Sequence[str]]
    _models: Sequence[ModelLists]

    rows_by = ("pair", "model")

    @cached_property
    def pairs(self) -> pa.Table:
        """The table that people fill in."""
        reference = self._models[0]
        texts = next((m.texts for m in self._models if m.texts is not None and None not in m.texts), None)
        return pool_table(
            self._pools,
            models=[m.name for m in self._models],
            queries=self._queries,
            images=reference.image_ids,
            captions=reference.caption_ids,
            texts=texts,
        )

    def _by_model(self) -> list[dict[str, Any]]:
        summary = self.summary
        return [
            {"model": name, "proposes": proposed, "alone": alone, "new": new}
            for name, proposed, alone, new in zip(
                summary.models, summary.proposed, summary.alone, summary.new, strict=True
            )
        ]

    def _rows(self, by: str) -> pa.Table:
        return self.pairs if by == "pair" else pa.Table.from_pylist(self._by_model())

    @property
    def tables(self) -> tuple[Table]:
        """What each model proposes."""
        columns = [Column(name, style="text") for name in ("proposes", "alone", "new in this order")]
        rows = []
        for row in self._by_model():
            name, *numbers = row.values()
            rows.append(Row(name, tuple(Cell(f"{number:,}") for number in numbers)))
        return (Table(self.summary.heading, tuple(columns), tuple(rows)),)

    @property
    def notes(self) -> list[str]:
        """What was pooled and what it costs."""
        return self.summary.lines()

    def __repr__(self) -> str:
        return f"<CandidatePool: {self.summary.heading}>"

    def to_json(self) -> dict[str, Any]:
        """The numbers as plain values, as `pool --json` writes them."""
        return self.summary.to_json()

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the pairs to `path`, as CSV or Parquet by its suffix."""
        pool_kind(Path(path))
        with guarded_file(path, command="pool", overwrite=overwrite):
            write_pool(Path(path), self.pairs)

    def plot(self) -> Any:
        """A matplotlib figure: pairs to verify by the number of models and by k."""
        from counterfoil.report.annotators import yield_curves

        return yield_curves(self.summary.curve)


def pool(
    scores: Sequence[Run | str | Path],
    *,
    k: int = 5,
    queries: str | Path | Sequence[str] | None = None,
    direction: Literal["t2i", "i2t", "both"] = "both",
    ids: str | Path | None = None,
    exclude_known: bool = False,
    tasks: Tasks | None = None,
    feedback: Feedback = SILENT,
) -> CandidatePool:
    """The pairs that models propose with their first `k` items per query, for people to verify.

    `scores` are runs, run folders, embeddings (.npz) and similarities (.npy), of the same items; `ids` names
    an npz file with `image_ids` and `caption_ids` for files without. `queries` are those in a file or a list,
    by default all that every model answers. `exclude_known` leaves out pairs that are right in the runs'
    benchmark already. Raises `DataError` where galleries differ and `InputError` for models of one name.
    """
    with feedback.busy("reading lists"):
        models = load(
            scores,
            ids=None if ids is None else Path(ids),
            widest=queries is not None and not exclude_known,
        )
    chosen = chosen_queries(models, queries, ("i2t", "t2i") if direction == "both" else (direction,))
    pools: dict[Direction, Pool] = {}
    excluded = 0
    for way, names in chosen.items():
        with feedback.progress() as report:
            pooled = pooled_items([top_lists(m, way, names, k, progress=report) for m in models])
        if exclude_known:
            before = len(pooled.query)
            pooled = without(pooled, _known(models, way, names))
            excluded += before - len(pooled.query)
        pools[way] = pooled
    numbers = summary(
        pools,
        k=k,
        models=[m.name for m in models],
        queries={way: len(names) for way, names in chosen.items()},
        pair_of=_pair_numbers(pools, chosen, models[0]),
        tasks=tasks or Tasks(),
        excluded=excluded,
    )
    return CandidatePool(numbers, pools, chosen, models)


def _known(models: Sequence[ModelLists], way: Direction, names: Sequence[str]) -> NDArray[np.int64]:
    """(pairs, 2) rows of query (as in `names`) and item that are right in the benchmark of some run."""
    known = [m.benchmark for m in models if m.benchmark is not None]
    if not known:
        raise InputError("--exclude-known needs a run", hint="embeddings and similarities know no benchmark")
    _, items = models[0].ids(way)
    return np.concatenate([right_pairs(benchmark, way, names, items) for benchmark in known])


def _pair_numbers(
    pools: Mapping[Direction, Pool], chosen: Mapping[Direction, Sequence[str]], reference: ModelLists
) -> dict[Direction, NDArray[np.int64]]:
    """A number per pooled pair, the same in both directions where image and caption are."""
    numbers = {}
    for way, pooled in pools.items():
        place = {name: at for at, name in enumerate(reference.ids(way)[0])}
        queries = np.array([place[name] for name in chosen[way]], dtype=np.int64)[pooled.query]
        image, caption = (queries, pooled.item) if way == "i2t" else (pooled.item, queries)
        numbers[way] = image * len(reference.caption_ids) + caption
    return numbers
