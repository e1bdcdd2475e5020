"""Given rankings against the scores they were made from, and those of FORMATS 4.4 against every number."""

import numpy as np
import pytest
from hypothesis import given, strategies as st

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.engine.rank import rank_precomputed
from counterfoil.errors import InputError, ScoreError
from counterfoil.metrics import ranking
from counterfoil.metrics.class_rules import Plausible, precision_at_r
from counterfoil.metrics.ranks import Qrels, from_places
from counterfoil.models.base import Identity
from counterfoil.models.precomputed_galleries import PrecomputedRankings, to_lists
from refusals import refuses

IMAGES, CAPTIONS = 4, 7


def gallery(i2t, t2i, *, parts=False, queries=(list(range(IMAGES)), list(range(CAPTIONS)))):
    """Images 100, 101, ... and captions 0, 1, ...; in parts: even and odd ones."""
    questions = Gallery(
        tuple([f"i2t/{100 + i}" for i in queries[0]] + [f"t2i/{c}" for c in queries[1]]),
        i2t=RetrievalDirection(np.array(queries[0]), i2t),
        t2i=RetrievalDirection(np.array(queries[1]), t2i),
        owners=np.full(CAPTIONS, -1),
        n_images=IMAGES,
        image_parts=np.arange(IMAGES) % 2 if parts else None,
        caption_parts=np.arange(CAPTIONS) % 2 if parts else None,
    )
    images = tuple(Image(str(100 + i), None) for i in range(IMAGES))
    captions = tuple(Caption(str(c), None) for c in range(CAPTIONS))
    return Benchmark(Card(name="small", title="A small gallery", form="gallery"), images, captions, questions)


def ranked(scores, lengths=None):
    """The rankings of (images, captions) scores, each cut to a length of its own."""
    i2t, t2i = lengths or ([CAPTIONS] * IMAGES, [IMAGES] * CAPTIONS)
    of_images = {str(100 + i): np.argsort(-scores[i])[:n].tolist() for i, n in enumerate(i2t)}
    of_captions = {str(c): (100 + np.argsort(-scores[:, c]))[:n].tolist() for c, n in enumerate(t2i)}
    return PrecomputedRankings(Identity("given:lists"), to_lists(of_images), to_lists(of_captions))


def sides(rankings, benchmark, scores):
    asked = benchmark.gallery
    i2t, t2i = scores[asked.i2t.queries], scores.T[asked.t2i.queries]
    return [(rankings.i2t, asked.i2t, i2t), (rankings.t2i, asked.t2i, t2i)]


@st.composite
def searches(draw, parts):
    """Random positives, absent ones among them, and the queries: a random part of the items."""
    made, chosen = [], []
    for n, items in ((IMAGES, CAPTIONS), (CAPTIONS, IMAGES)):
        queries = sorted(draw(st.sets(st.integers(0, n - 1), min_size=1)))
        allowed = [[i for i in range(items) if not parts or i % 2 == q % 2] for q in queries]
        made.append([draw(st.lists(st.sampled_from([*own, -1]), unique=True)) for own in allowed])
        chosen.append(queries)
    return made, (chosen[0], chosen[1])


SHUFFLED = st.permutations(range(IMAGES * CAPTIONS)).map(lambda p: np.array(p).reshape(IMAGES, CAPTIONS))
LENGTHS = st.tuples(
    st.lists(st.integers(0, CAPTIONS), min_size=IMAGES, max_size=IMAGES),
    st.lists(st.integers(0, IMAGES), min_size=CAPTIONS, max_size=CAPTIONS),
)


@given(searches(parts=False), SHUFFLED, LENGTHS, st.integers(0, 9))
def test_places_are_those_of_the_scores(drawn, scores, lengths, top):
    (i2t, t2i), queries = drawn
    benchmark = gallery(Qrels.of(i2t), Qrels.of(t2i), queries=queries)
    result = rank_precomputed(benchmark, ranked(scores, lengths), top=top)
    for (placed, search, rows), cut in zip(sides(result, benchmark, scores), lengths, strict=True):
        depth = np.array(cut)[search.queries]
        assert placed.depth.tolist() == depth.tolist()
        positives = search.positives
        assert isinstance(positives, Qrels)
        for pair, (query, item) in enumerate(zip(positives.queries, positives.items, strict=True)):
            above = int((rows[query] > rows[query, item]).sum())
            reached = item >= 0 and above < depth[query]
            assert (placed.above[pair], placed.level[pair]) == (above if reached else -1, reached)
        width = min(top, rows.shape[1])
        assert placed.top.shape == placed.top_scores.shape == (len(rows), width)
        assert np.isnan(placed.top_scores).all()
        for line, first, n in zip(rows, placed.top, depth, strict=True):
            best = np.argsort(-line)[: min(n, width)]
            assert first.tolist() == [*best.tolist(), *[-1] * (width - len(best))]


@given(searches(parts=True), SHUFFLED)
def test_in_parts_the_rest_is_as_if_it_were_not_there(drawn, scores):
    (i2t, t2i), queries = drawn
    benchmark = gallery(Qrels.of(i2t), Qrels.of(t2i), parts=True, queries=queries)
    for placed, search, rows in sides(rank_precomputed(benchmark, ranked(scores), top=9), benchmark, scores):
        positives = search.positives
        assert isinstance(positives, Qrels)
        for j, query in enumerate(search.queries.tolist()):
            own = np.flatnonzero(np.arange(rows.shape[1]) % 2 == query % 2)
            assert placed.depth[j] == len(own)
            best = own[np.argsort(-rows[j, own])]
            assert placed.top[j, : len(own)].tolist() == best.tolist()
            assert (placed.top[j, len(own) :] == -1).all()
            pairs = slice(positives.starts[j], positives.starts[j + 1])
            places = [best.tolist().index(i) if i >= 0 else -1 for i in positives.items[pairs].tolist()]
            assert placed.above[pairs].tolist() == places


@given(SHUFFLED, LENGTHS, st.booleans(), st.sampled_from([None, 1, 3]), st.data())
def test_a_rule_looks_at_the_first_r(scores, lengths, parts, cap, data):
    numbers = {n: st.lists(st.integers(0, 3), min_size=n, max_size=n) for n in (IMAGES, CAPTIONS)}
    codes = [np.array(data.draw(drawn))[:, None] >> np.arange(2) & 1 for drawn in numbers.values()]
    images, captions = (c.astype(bool) for c in codes)
    thresholds = (0, 1)
    right = Plausible(images, captions, thresholds, cap), Plausible(captions, images, thresholds, cap)
    benchmark = gallery(*right, parts=parts)
    # By scores, other parts being right for no query and behind everything.
    apart = parts & (np.arange(IMAGES)[:, None] % 2 != np.arange(CAPTIONS) % 2)
    within = np.where(apart, -1.0 - scores, scores)
    distance = (images[:, None] != captions).sum(axis=2)
    sides = ((within, distance, apart), (within.T, distance.T, apart.T))
    whole = [np.stack([precision_at_r(s, (d <= t) & ~a, cap=cap) for t in thresholds]) for s, d, a in sides]
    full = rank_precomputed(benchmark, ranked(scores))
    for placed, expected in zip((full.i2t, full.t2i), whole, strict=True):
        np.testing.assert_array_equal(placed.shares, expected)
        assert len(placed.above) == len(placed.level) == 0

    cut = ranked(scores, lengths)
    counts = [((distance <= 1) & ~apart).sum(axis=1), ((distance <= 1) & ~apart).sum(axis=0)]
    wanted = [np.minimum(c, cap or 99) for c in counts]
    if not parts and any((np.array(n) < w).any() for n, w in zip(lengths, wanted, strict=True)):
        refuses("too short for R-Precision on small", rank_precomputed, benchmark, cut, error=InputError)
    elif not parts:
        result = rank_precomputed(benchmark, cut)
        for placed, expected in zip((result.i2t, result.t2i), whole, strict=True):
            np.testing.assert_array_equal(placed.shares, expected)
    # What is not listed is worse than nothing: a wrong answer.
    notes = []
    loose = rank_precomputed(benchmark, cut, truncated_as_miss=True, note=notes.append)
    for placed, rows, right, r in zip(
        (loose.i2t, loose.t2i),
        ([row[:n] for row, n in zip(np.argsort(-scores, axis=1), lengths[0], strict=True)],
         [row[:n] for row, n in zip(np.argsort(-scores.T, axis=1), lengths[1], strict=True)]),
        ((distance <= 1) & ~apart, ((distance <= 1) & ~apart).T),
        wanted,
        strict=True,
    ):  # fmt: skip
        for j, row in enumerate(rows):
            seen = [i for i in row.tolist() if not parts or i % 2 == j % 2][: r[j]]
            if r[j]:
                assert placed.shares is not None
                assert placed.shares[1, :, j].tolist() == [right[j, seen].sum() / r[j]] * 3


def test_cut_lists_support_what_they_reach():
    scores = np.tile(np.arange(CAPTIONS)[::-1], (IMAGES, 1))
    benchmark = gallery(Qrels.of([[0], [1], [6], []]), Qrels.of([[0]] * CAPTIONS))
    notes = []
    result = rank_precomputed(benchmark, ranked(scores, ([2] * IMAGES, [4] * CAPTIONS)), note=notes.append)
    ranks = of(benchmark, result, "i2t")
    assert notes == []
    assert ranking.recall_at_k(ranks, 2)[:3].tolist() == [1, 1, 0]
    with pytest.raises(InputError, match="query 2: the ranking is too short for recall at 3; given: 2 items"):
        ranking.recall_at_k(ranks, 3)
    short = ranked(scores, ([2] * IMAGES, [4] * CAPTIONS))
    loose = rank_precomputed(benchmark, short, truncated_as_miss=True, note=notes.append)
    assert ranking.recall_at_k(of(benchmark, loose, "i2t"), 3)[:3].tolist() == [1, 1, 0]
    # The fourth image has no right answer: nothing is lost by its short list.
    assert notes == [
        "given:lists: 3 rankings of images and 0 of captions end before the gallery of small does; what is "
        "not listed counts as wrong, and the numbers change with the length of the lists"
    ]


def of(benchmark, found, side):
    search, placed = getattr(benchmark.gallery, side), getattr(found, side)
    size = len(benchmark.captions if side == "i2t" else benchmark.images)
    return from_places(search.positives, placed.above, placed.level, depth=placed.depth, gallery=size)


def with_i2t(lists, full):
    return PrecomputedRankings(full.identity, to_lists(lists), full.t2i)


EVERY = {str(100 + i): list(range(CAPTIONS)) for i in range(IMAGES)}
DIAGONAL = Qrels.of([[0], [1], [2], [3]])
WHOLE = gallery(DIAGONAL, Qrels.of([*[[0]] * 6, []]))
PARTED = gallery(DIAGONAL, Qrels.of([[q % 2] for q in range(CAPTIONS)]), parts=True)
FULL = ranked(np.arange(IMAGES * CAPTIONS).reshape(IMAGES, CAPTIONS))


@pytest.mark.parametrize(
    ("benchmark", "lists", "error", "pattern"),
    [
        (
            WHOLE,
            {"100": [0], "103": [0], "999": [0]},
            ScoreError,
            r"^given:lists, i2t: queries of small have no ranking; given: 2 of 4 missing: '101', '102'; "
            r"the first ranking is of '100'",
        ),
        (WHOLE, {}, ScoreError, r"given: 4 of 4 missing: '100', '101', '102', \.\.\.$"),
        (
            WHOLE,
            {**EVERY, "102": [3, 77, 4]},
            ScoreError,
            r"^given:lists, i2t, query '102': a ranking names an item that the gallery of small does not "
            r"hold; given: '77'; is it of another gallery\? this one has 7 items, the first is '0'",
        ),
        (
            PARTED,
            {**EVERY, "101": [0, 1, 2, 4, 5, 6]},
            InputError,
            r"^given:lists, i2t, query '101': small needs full rankings: each query is ranked within its own "
            r"part.*; given: 2 of the 3 items of its part; so for 1 of 4 queries; give full rankings, or",
        ),
    ],
)
def test_what_does_not_fit_is_named(benchmark, lists, error, pattern):
    refuses(pattern, rank_precomputed, benchmark, with_i2t(lists, FULL), error=error)


def test_rankings_that_nothing_asks_about_may_be_anything():
    # A ranking of a query outside the benchmark may name anything.
    assert rank_precomputed(WHOLE, with_i2t({**EVERY, "999": [77]}, FULL)).i2t.above.tolist() == [0, 1, 2, 3]
    # The last caption has no right answer, so that its ranking is not missed.
    short = {str(c): [100, 101, 102, 103] for c in range(6)}
    result = rank_precomputed(WHOLE, PrecomputedRankings(FULL.identity, FULL.i2t, to_lists(short)))
    assert (result.t2i.depth.tolist(), result.t2i.top[-1].tolist()) == ([4] * 6 + [0], [-1] * 4)


def test_the_whole_of_ones_part_is_enough():
    own = {str(100 + i): [c for c in range(CAPTIONS) if c % 2 == i % 2] for i in range(IMAGES)}
    other = {str(c): [100 + i for i in range(IMAGES) if i % 2 == c % 2] for c in range(CAPTIONS)}
    result = rank_precomputed(PARTED, PrecomputedRankings(Identity("x"), to_lists(own), to_lists(other)))
    assert (result.i2t.above.tolist(), result.i2t.depth.tolist()) == ([0, 0, 1, 1], [4, 3, 4, 3])
