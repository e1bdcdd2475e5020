"""Right answers against judgements, by hand; those of a benchmark by ids, listed or of a rule."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from counterfoil.benchmarks import Benchmark, Caption, Card, Image
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.benchmarks.judgements import Judgements
from counterfoil.errors import DataError
from counterfoil.evaluation.judged_pairs import (
    are_right,
    asked_about,
    count,
    coverage,
    how_many,
    places,
    proposals,
    right_pairs,
)
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels
from counterfoil.stats.dependence import Sharing
from evaluation.test_annotators import worlds
from refusals import refuses


def alone(n):
    """Queries that share nothing."""
    return Sharing(np.arange(n)[:, None], np.full((n, 1), -1))


def test_coverage_by_hand():
    # Query 0: judged a b c, right a b, accepted a c: precision 1/2, recall 1 - 1/2.
    # Query 1: judged d, right nothing: left out. Query 2: judged e f, right e, accepted nothing: 0 and none.
    query = np.array([0, 0, 0, 1, 2, 2])
    right, accepted = np.array([[1, 1, 0, 0, 1, 0], [1, 0, 1, 1, 0, 0]], dtype=bool)
    found = coverage("mine", "t2i", query=query, right=right, accepted=accepted, sharing=alone(3))
    assert found.precision[0] == pytest.approx(1 / 4)
    assert found.recall[0] == pytest.approx(1 / 2)
    assert (found.queries, found.left_out) == (2, 1)
    assert found.precision[1] < 1 / 4 < found.precision[2]
    none, one = np.array([False]), np.array([True])
    nothing = coverage("none", "t2i", query=query[:1], right=none, accepted=one, sharing=alone(1))
    assert nothing.to_json()["precision"] == {"value": None, "low": None, "high": None}


def test_multiplicity():
    found = count("mine", "t2i", np.array([1, 3, 3, 0]))
    assert found.histogram == {0: 1, 1: 1, 3: 2}
    assert (found.total, found.mean, found.median) == (7, 1.75, 2.0)


@settings(deadline=None)
@given(worlds())
def test_places_are_those_in_the_lists(world):
    tops, gains, _ = world
    short = [np.where(np.arange(top.shape[1]) < top.shape[1] - m, top, -1) for m, top in enumerate(tops)]
    pairs = [(q, i) for q in range(len(gains)) for i in range(gains.shape[1])]
    query, item = np.array(pairs).T
    found = places(query, item, short)
    for row, (q, i) in zip(found.tolist(), pairs, strict=True):
        assert row == [list(top[q]).index(i) + 1 if i in top[q] else 0 for top in short]


def test_a_table_says_of_all_models_what_they_proposed_or_of_none():
    place = {"b": np.array([2, 0]), "a": np.array([1, 3])}
    pairs = (np.array([0, 0]), np.array([0, 1]), np.ones(2))
    judged = Judgements("t2i", ("7",), ("5", "6"), *pairs, place)
    found = proposals(judged, ("a", "b"))
    assert found is not None
    assert found.tolist() == [[1, 2], [3, 0]]
    assert proposals(judged, ("c", "d")) is None
    with pytest.raises(DataError, match="of some models only what they proposed; given: c; allowed: place:b"):
        proposals(judged, ("a", "c"))


# Three images with classes (cat), (cat, dog), (car); captions k and l of a, m of b, n of c.
CODES = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
OWNERS = np.array([0, 0, 1, 2])


def benchmark(*, rule=None):
    # Image c is no query, nor is caption k; one right answer of caption n lies outside.
    t2i = RetrievalDirection(np.array([1, 2, 3]), Qrels.of([[0], [1, 0], [2, -1]]))
    i2t = RetrievalDirection(np.array([1, 0]), Qrels.of([[2], [0, 1, 2]]))
    if rule is not None:
        of_captions = CODES[OWNERS]
        t2i = RetrievalDirection(t2i.queries, Plausible(of_captions[t2i.queries], CODES, rule))
        i2t = RetrievalDirection(i2t.queries, Plausible(CODES[i2t.queries], of_captions, rule))
    return Benchmark(
        Card(name="toy", title="Toy", form="gallery"),
        tuple(Image(name) for name in "abc"),
        tuple(Caption(name, name) for name in "klmn"),
        Gallery(("i2t/b", "i2t/a", "t2i/l", "t2i/m", "t2i/n"), i2t=i2t, t2i=t2i, owners=OWNERS, n_images=3),
    )


def test_listed_pairs_by_id():
    found = right_pairs(benchmark(), "t2i", ("n", "z", "m"), ("c", "b", "a", "y"))
    assert sorted(map(tuple, found.tolist())) == [(0, 0), (2, 1), (2, 2)]
    found = right_pairs(benchmark(), "i2t", ("a",), ("l", "m"))
    assert sorted(map(tuple, found.tolist())) == [(0, 0), (0, 1)]


def test_which_pairs_are_right():
    query, item = np.array([0, 0, 1, 2]), np.array([0, 2, 1, 1])
    # n with c, n with a, z with b, m with b.
    found = are_right(benchmark(), "t2i", ("n", "z", "m"), ("c", "b", "a"), query, item)
    assert {name: right.tolist() for name, right in found.items()} == {"toy": [True, False, False, True]}


def test_which_pairs_a_rule_calls_right():
    queries, items = ("n", "z", "m", "l"), ("c", "b", "a", "y")
    query, item = np.array([0, 1, 2, 2, 3, 3]), np.array([0, 1, 1, 2, 1, 3])
    # n with c: the same. z is nobody. m (cat, dog) with b: the same, with a (cat): one apart. l (cat) with b:
    # one apart. y is nobody.
    near = are_right(benchmark(rule=(0, 1)), "t2i", queries, items, query, item)
    assert {name: right.astype(int).tolist() for name, right in near.items()} == {
        "toy (0)": [1, 0, 1, 0, 0, 0],
        "toy (1)": [1, 0, 1, 1, 1, 0],
    }
    assert list(are_right(benchmark(rule=(0,)), "t2i", queries, items, query, item)) == ["toy"]


def test_a_rule_lists_nothing():
    for listed, names in ((right_pairs, (("a",), ("k",))), (how_many, (("a",),))):
        refuses("toy: right is what a rule says, not a list", listed, benchmark(rule=(0,)), "i2t", *names)


def test_how_many_count_those_outside():
    assert how_many(benchmark(), "t2i", ("n", "k", "m", "z")).tolist() == [2, 0, 2, 0]
    assert how_many(benchmark(), "i2t", ("a", "b", "c")).tolist() == [3, 1, 0]


def test_captions_of_one_image_are_together():
    found = asked_about(benchmark(), "t2i", ("k", "z", "l", "m")).components
    assert found[0] == found[2]
    assert len(set(found.tolist())) == 3
    assert asked_about(benchmark(), "i2t", ("a", "b")).components.tolist() == [0, 1]
    assert asked_about(None, "t2i", ("k", "l")).components.tolist() == [0, 1]


def test_captions_of_one_text_are_shared():
    known = benchmark()
    same = tuple(
        replace(c, text="a cat") if c.id in ("k", "m") else replace(c, text=c.id) for c in known.captions
    )
    found = asked_about(replace(known, captions=same), "t2i", ("k", "l", "m", "z"))
    assert found.captions[0] == found.captions[2] != found.captions[1]
    assert found.captions[3] == -1
