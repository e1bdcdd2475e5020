"""Judgements and the lists of models brought together: judged pairs with the place of each in every list."""

from collections.abc import Sequence

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.pools import Judgements
from counterfoil.engine.progress import Progress
from counterfoil.engine.top_lists import ModelLists, top_lists
from counterfoil.errors import DataError
from counterfoil.evaluation.ground_truth import asked_about
from counterfoil.evaluation.judged_pairs import JudgedPairs, places, proposals


def verified(
    models: Sequence[ModelLists],
    one: Judgements,
    k: int | None,
    clustering: Benchmark | None,
    report: Progress,
) -> tuple[JudgedPairs, int]:
    """The judged pairs of a direction with each model's places, and how many proposals were not judged.

    The models propose their first `k` items, or what the table says they proposed. What queries share
    is what the benchmark `clustering` knows of it. Raises `DataError` for judged items that no
    model ranks and judged queries that a model was not asked.
    """
    way = one.direction
    reference = models[0].ids(way)[1]
    number = {name: at for at, name in enumerate(reference)}
    item = np.array([number.get(name, -1) for name in one.items], dtype=np.int64)[one.item]
    if (item < 0).any():
        lost = np.unique(one.item[item < 0])
        raise DataError(
            "judged pairs of items that no model ranks",
            where=way,
            given=f"{int((item < 0).sum()):,} pairs, such as with {one.items[lost[0]]}",
            hint="are the judgements of this gallery?",
        )
    for m in models:
        answered = set(m.asked[way])
        lacking = [name for name in one.queries if name not in answered]
        if lacking:
            raise DataError(
                "judged queries that a model was not asked",
                where=f"{m.name}, {way}",
                given=f"{len(lacking):,} of {len(one.queries):,}, such as {lacking[0]}",
                hint="give a run over a benchmark that asks them, such as coco-5k, or embeddings",
            )
    most = int(np.bincount(one.query[one.gain > 0], minlength=1).max())
    named = proposals(one, [m.name for m in models])
    handed = k if k is not None else (int(named.max()) if named is not None else 5)
    tops = []
    for m in models:
        # As deep as R-Precision can ask for, where the lists are; never less than what is proposed.
        deep = min(max(handed if named is None else 1, most), m.depth[way])
        tops.append(
            top_lists(m, way, one.queries, max(deep, 1 if named is not None else handed), progress=report)
        )
    place = places(one.query, item, tops)
    unjudged = 0
    if named is not None:
        proposed = (named > 0) & (named <= handed)
    else:
        proposed = (place > 0) & (place <= handed)
        unjudged = len(models) * len(one.queries) * handed - int(proposed.sum())
    return JudgedPairs(
        way,
        tuple(m.name for m in models),
        one.query,
        one.gain,
        place,
        proposed,
        tuple(top.shape[1] for top in tops),
        asked_about(clustering, way, one.queries),
    ), unjudged
