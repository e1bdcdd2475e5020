"""Numbers about galleries: how many right answers there are, and what a ranking of them is worth."""

import numpy as np

from counterfoil.data.forms import Gallery, Search
from counterfoil.errors import DataError
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranking import map_at_r, recall_at_k
from counterfoil.metrics.ranks import Positives, list_ranks
from counterfoil.report.ledger.recipes.case import Case, Recomputed


def positives(case: Case) -> Recomputed:
    """How many right answers (or queries) a benchmark has in one direction.

    `measure` is "pairs", "queries", or the "fewest" or "most" right answers of a query. With `over` only the
    queries count that another benchmark over the same items has: COCO's right answers for the queries of ECCV
    Caption. With `per` the number is divided by that of the queries, or by another benchmark's.

    Source: ECCV Caption, Table 3 and section 1.
    """
    counts, place = _counts(case, case.need("benchmark"))
    if not len(counts):
        raise DataError("no query of both benchmarks", where=place, given=case.row)
    found = {
        "pairs": int(counts.sum()),
        "queries": len(counts),
        "fewest": int(counts.min()),
        "most": int(counts.max()),
    }
    value = found[case.need("measure")]
    if case.spec.per is None:
        return Recomputed(value, place)
    whole = len(counts) if case.spec.per == "queries" else int(_counts(case, case.spec.per)[0].sum())
    return Recomputed(value / whole, place)


def left_out(case: Case) -> Recomputed:
    """How many of the ids that the paper lists are neither a query nor a right answer of the benchmark."""
    benchmark, _ = case.evidence.questions(case.need("benchmark"))
    gallery, place, used = benchmark.gallery, case.evidence.source(benchmark.name), set()
    images = [image.id for image in benchmark.images]
    captions = [caption.id for caption in benchmark.captions]
    for search, own, others in ((gallery.i2t, images, captions), (gallery.t2i, captions, images)):
        used |= {own[at] for at in search.queries[search.defined].tolist()}
        used |= {others[at] for at in _positives(search, place).items.tolist() if at >= 0}
    return Recomputed(len(set(case.spec.listed or ()) - used), place)


def shown(case: Case) -> Recomputed:
    """What a ranking is worth whose first R items are known, R being that of right answers, in per cent.

    Source: ECCV Caption, section 4.1.
    """
    marks = case.need("shown")
    right = iter(range(len(marks)))
    wrong = iter(range(len(marks), 2 * len(marks)))
    items = np.array([next(right if mark == "1" else wrong) for mark in marks])
    ranks = list_ranks([items], Positives.of([list(range(len(marks)))]), gallery=2 * len(marks))
    name, _, k = case.need("measure").rpartition("_at_")
    value = map_at_r(ranks) if k == "r" else recall_at_k(ranks, int(k))
    return Recomputed(100 * float(value[0]), f"{name} of {marks}")


def _counts(case: Case, benchmark: str) -> tuple[np.ndarray, str]:
    """How many right answers each query has, and where they lie."""
    gallery, place = _gallery(case, benchmark)
    search = _search(case, gallery)
    keep = search.defined
    if case.spec.over is not None:
        over = _search(case, _gallery(case, case.spec.over)[0])
        keep = np.isin(search.queries, over.queries[over.defined])
    return _positives(search, place).counts[keep], place


def _gallery(case: Case, benchmark: str) -> tuple[Gallery, str]:
    found, _ = case.evidence.questions(benchmark)
    return found.gallery, case.evidence.source(benchmark)


def _search(case: Case, gallery: Gallery) -> Search:
    return gallery.i2t if case.need("direction") == "i2t" else gallery.t2i


def _positives(search: Search, place: str) -> Positives:
    if isinstance(search.positives, Plausible):
        raise DataError("right answers by rule cannot be counted here", where=place)
    return search.positives
