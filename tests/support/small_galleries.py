"""Small galleries of random right answers, and a twin of the engine that holds all scores."""

from dataclasses import replace

import numpy as np

from contracts import forms
from counterfoil.benchmarks.answers import Rankings
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels


def benchmark(rng, n, m, *, parts=0, rule=False, some=False):
    """A gallery of random right answers, some of them graded or absent; `some` of the items are queries."""
    of_image = np.arange(n) % parts if parts else None
    of_caption = rng.integers(0, parts, m) if parts else None
    queries = [np.arange(n), np.arange(m)]
    if some:
        queries = [rng.permutation(size)[: max(1, size * 2 // 3)] for size in (n, m)]
    right = []
    for side, (asked, items) in enumerate(zip(queries, (m, n), strict=True)):
        if rule:
            codes = rng.random((max(n, m), 4)) < 0.4
            right.append(Plausible(codes[asked], codes[:items], (0, 1), cap=3 if some else None))
        else:
            rows, gains = [], []
            for query in asked:
                seen = np.ones(items, dtype=bool)
                if of_image is not None and of_caption is not None:
                    mine, theirs = (of_image, of_caption) if side == 0 else (of_caption, of_image)
                    seen = theirs == mine[query]
                result = np.flatnonzero(seen & (rng.random(items) < 0.2)).tolist()
                rng.shuffle(result)
                rows.append([-1, *result] if rng.random() < 0.2 else result)
                gains.append(rng.choice([1.0, 0.5], len(rows[-1])).tolist())
            right.append(Qrels.of(rows, gains))
    return forms.gallery_of(
        [Image(str(i)) for i in range(n)],
        [Caption(str(c)) for c in range(m)],
        right,
        queries=queries,
        owners=np.full(m, -1),
        parts=(of_image, of_caption),
        name="small",
        title="A small gallery",
    )


def twin(asked, scores, top):
    """The same from all scores at once, query by query and pair by pair."""
    # As floats, since unsigned numbers have no negative.
    result = forms.rankings(asked, scores.astype(np.float64), top=top)
    return [result.i2t, result.t2i]


def same(rankings, expected):
    for placed, twins in zip((rankings.i2t, rankings.t2i), expected, strict=True):
        for name in ("above", "level", "depth", "top", "top_scores"):
            np.testing.assert_array_equal(getattr(placed, name), getattr(twins, name), err_msg=name)
        assert (placed.shares is None) == (twins.shares is None)
        if placed.shares is not None:
            np.testing.assert_array_equal(placed.shares, twins.shares)


def cut_after(rankings, depth):
    """The rankings of a model without ties, known to `depth` items only."""
    sides = []
    for placed in (rankings.i2t, rankings.t2i):
        known = (placed.above >= 0) & (placed.above < depth)
        above, level = np.where(known, placed.above, -1), np.where(known, placed.level, 0)
        sides.append(replace(placed, above=above, level=level, depth=np.minimum(placed.depth, depth)))
    return Rankings(*sides)


def several(rng, n, m):
    """Galleries of the same items: whole and in parts, listed and by rule, all queries and some."""
    return [
        benchmark(rng, n, m),
        benchmark(rng, n, m, parts=2),
        benchmark(rng, n, m, some=True),
        benchmark(rng, n, m, rule=True),
        benchmark(rng, n, m, rule=True, some=True, parts=2),
        benchmark(rng, n, m, some=True, parts=3),
    ]
