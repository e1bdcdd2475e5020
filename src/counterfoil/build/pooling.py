"""Pairs that models propose and people judge, round after round (`counterfoil.evaluation.pooling`)."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.judgements import Direction, pool_table, read_judgements
from counterfoil.engine.topk import ModelLists, topk_lists
from counterfoil.errors import InputError
from counterfoil.evaluation.pooling import PoolRound, found_by, unjudged
from counterfoil.metrics.annotators import Pool
from counterfoil.stats.capture_recapture import chao

#: The gain of each row of a table of pairs (image, caption, ...), NaN where there is no answer.
Judge = Callable[[pa.Table], NDArray[np.float64]]


def table_judge(path: Path, captions: Mapping[str, str] | None = None) -> Judge:
    """The answers of a table of judgements of either direction; `captions` are ids by text."""
    gains: dict[tuple[str, str], float] = {}
    # An answer is about a pair, so that a table may leave open which of the two asked for the other.
    for one in read_judgements(path, direction="i2t").directions:
        for query, item, gain in zip(one.query, one.item, one.gain, strict=True):
            pair = one.queries[query], one.items[item]
            image, caption = pair if one.direction == "i2t" else pair[::-1]
            gains[image, (captions or {}).get(caption, caption)] = float(gain)

    def answers(table: pa.Table) -> NDArray[np.float64]:
        pairs = zip(table["image"].to_pylist(), table["caption"].to_pylist(), strict=True)
        return np.array([gains.get(pair, np.nan) for pair in pairs])

    return answers


class PoolingState:
    """What was judged so far, by pair; `models` propose their first `k` unjudged items of each query."""

    def __init__(
        self,
        models: Sequence[ModelLists],
        chosen: Mapping[Direction, Sequence[str]],
        k: int,
        total: int | None,
    ) -> None:
        self.models, self.chosen, self.k, self.total = list(models), chosen, k, total
        self.tables: list[pa.Table] = []
        #: Pairs as image * captions + caption, their gains, and which models found them.
        self.pairs = np.empty(0, np.int64)
        self.gains = np.empty(0)
        self.finds = np.empty((0, len(models)), dtype=bool)
        self.answered = 0

    def round(self, number: int, judge: Judge) -> PoolRound | None:
        """Propose, judge and merge once; None where no list holds an unjudged item."""
        pools: dict[Direction, Pool] = {}
        lists: dict[Direction, tuple[list[NDArray[np.int64]], list[NDArray[np.int64]]]] = {}
        for way, names in self.chosen.items():
            width = len(self.models[0].ids(way)[1])
            _, query, item = self._rows(way)
            # What was judged of a query may all stand before the next items of a list.
            most = int(np.bincount(query, minlength=1).max(initial=0))
            tops = [
                topk_lists(model, way, names, min(model.depth[way], len(model.ids(way)[1]), self.k + most))
                for model in self.models
            ]
            pools[way], depths = unjudged(tops, query * width + item, self.k, width)
            lists[way] = tops, depths
        if not any(len(pool.query) for pool in pools.values()):
            return None
        codes, gains = self._judged(number, pools, judge)
        new, first = np.unique(codes, return_index=True)
        answered = ~np.isnan(gains[first])
        proposed = np.concatenate([pools[way].place for way in pools]) > 0
        self.pairs = np.concatenate([self.pairs, new])
        self.gains = np.concatenate([self.gains, gains[first]])
        self.finds = np.concatenate([self.finds, np.zeros((len(new), proposed.shape[1]), dtype=bool)])
        for way, (tops, depths) in lists.items():
            some, query, item = self._rows(way)
            self.finds[some] |= found_by(tops, depths, query, item)
        self.answered += int(answered.sum())
        right = self.gains > 0
        # Of each model its different pairs proposed, judged and right.
        by_model: dict[str, tuple[int, int, int]] = {}
        for i, model in enumerate(self.models):
            of_model = gains[proposed[:, i]][np.unique(codes[proposed[:, i]], return_index=True)[1]]
            counts = len(of_model), int((~np.isnan(of_model)).sum()), int((of_model > 0).sum())
            by_model[model.name] = counts
        return PoolRound(
            number,
            proposed=len(new),
            judged=int(answered.sum()),
            right=int((gains[first] > 0).sum()),
            by_model=by_model,
            all_judged=self.answered,
            all_right=int(right.sum()),
            at_least=chao(self.finds[right]) if len(self.models) > 1 and right.any() else None,
            total=self.total,
        )

    def _judged(
        self, number: int, pools: Mapping[Direction, Pool], judge: Judge
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """The pairs of the pools as image * captions + caption, and their gains, which go into the table."""
        reference = self.models[0]
        table = pool_table(
            pools,
            models=[model.name for model in self.models],
            queries=self.chosen,
            images=reference.image_ids,
            captions=reference.caption_ids,
            texts=next((model.texts for model in self.models if model.texts is not None), None),
        )
        parts = []
        for way, pool in pools.items():
            place = {name: positions for positions, name in enumerate(reference.ids(way)[0])}
            positions = np.array([place[name] for name in self.chosen[way]], dtype=np.int64)[pool.query]
            image, caption = (positions, pool.item) if way == "i2t" else (pool.item, positions)
            parts.append(image * len(reference.caption_ids) + caption)
        codes = np.concatenate(parts)
        gains = np.asarray(judge(table), dtype=np.float64)
        if gains.shape != codes.shape:
            given = f"{gains.shape} gains"
            raise InputError("the judge gave other pairs", given=given, allowed=f"{codes.shape}")
        table = table.set_column(0, "pair", pa.array(codes))
        table = table.append_column("gain", pa.array(gains, from_pandas=True))
        self.tables.append(table.append_column("round", pa.array(np.full(len(codes), number))))
        return codes, gains

    def table(self) -> pa.Table:
        return pa.concat_tables(self.tables, promote_options="default")

    def _rows(self, way: Direction) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
        """Of the pairs so far those whose query was chosen: which, query and item."""
        image, caption = np.divmod(self.pairs, len(self.models[0].caption_ids))
        asking, item = (image, caption) if way == "i2t" else (caption, image)
        ids = self.models[0].ids(way)[0]
        number = {name: i for i, name in enumerate(self.chosen[way])}
        query = np.array([number.get(name, -1) for name in ids], dtype=np.int64)[asking]
        some = np.flatnonzero(query >= 0)
        return some, query[some], item[some]
