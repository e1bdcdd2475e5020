"""Right answers of a benchmark by ids: listed ones, those of a rule, and whose caption is whose."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks import Benchmark, Caption, Card, Image
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.errors import DataError
from counterfoil.evaluation.judged_pairs import are_right, asked_about, how_many, right_pairs
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels

# Three images with classes (cat), (cat, dog), (car); captions k and l of a, m of b, n of c.
CODES = np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]], dtype=bool)
OWNERS = np.array([0, 0, 1, 2])


def benchmark(*, rule: tuple[int, ...] | None = None) -> Benchmark:
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


def test_listed_pairs_by_id() -> None:
    found = right_pairs(benchmark(), "t2i", ("n", "z", "m"), ("c", "b", "a", "y"))
    assert sorted(map(tuple, found.tolist())) == [(0, 0), (2, 1), (2, 2)]
    found = right_pairs(benchmark(), "i2t", ("a",), ("l", "m"))
    assert sorted(map(tuple, found.tolist())) == [(0, 0), (0, 1)]


def test_which_pairs_are_right() -> None:
    query, item = np.array([0, 0, 1, 2]), np.array([0, 2, 1, 1])
    # n with c, n with a, z with b, m with b.
    found = are_right(benchmark(), "t2i", ("n", "z", "m"), ("c", "b", "a"), query, item)
    assert {name: right.tolist() for name, right in found.items()} == {"toy": [True, False, False, True]}


def test_which_pairs_a_rule_calls_right() -> None:
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


def test_a_rule_lists_nothing() -> None:
    with pytest.raises(DataError, match="toy: right is what a rule says, not a list"):
        right_pairs(benchmark(rule=(0,)), "i2t", ("a",), ("k",))
    with pytest.raises(DataError, match="toy: right is what a rule says, not a list"):
        how_many(benchmark(rule=(0,)), "i2t", ("a",))


def test_how_many_count_those_outside() -> None:
    assert how_many(benchmark(), "t2i", ("n", "k", "m", "z")).tolist() == [2, 0, 2, 0]
    assert how_many(benchmark(), "i2t", ("a", "b", "c")).tolist() == [3, 1, 0]


def test_captions_of_one_image_are_together() -> None:
    found = asked_about(benchmark(), "t2i", ("k", "z", "l", "m")).components
    assert found[0] == found[2]
    assert len(set(found.tolist())) == 3
    assert asked_about(benchmark(), "i2t", ("a", "b")).components.tolist() == [0, 1]
    assert asked_about(None, "t2i", ("k", "l")).components.tolist() == [0, 1]


def test_captions_of_one_text_are_shared() -> None:
    known = benchmark()
    same = tuple(
        replace(c, text="a cat") if c.id in ("k", "m") else replace(c, text=c.id) for c in known.captions
    )
    found = asked_about(replace(known, captions=same), "t2i", ("k", "l", "m", "z"))
    assert found.captions[0] == found.captions[2] != found.captions[1]
    assert found.captions[3] == -1
