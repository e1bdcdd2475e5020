"""The forms of galleries and of judged captions: what they hold, what they refuse, and how they are cut."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks import BytesSource, Caption, Card, Image, Preference, Rated, References, Scores
from counterfoil.benchmarks.benchmark import Benchmark, card
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.errors import DataError, ScoreError
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels
from refusals import refuses


def _search(queries, positives):
    return RetrievalDirection(np.array(queries, dtype=np.int64), Qrels.of(positives))


def _gallery(**changes):
    """Three images, five captions: two of image 0, two of image 1, one of nobody. Image 1 is no query.

    Image 0 has a right answer that the gallery does not hold, caption 4 has none at all.
    """
    facts = {
        "ids": ("i2t/a", "i2t/c", "t2i/0", "t2i/1", "t2i/3", "t2i/4"),
        "i2t": _search([0, 2], [[0, 1, -1], [4]]),
        "t2i": _search([0, 1, 3, 4], [[0], [0, 1], [1], []]),
        "owners": np.array([0, 0, 1, 1, -1]),
        "n_images": 3,
        **changes,
    }
    return Gallery(facts.pop("ids"), **facts)


def _benchmark(questions):
    return Benchmark(
        card=card("gallery"),
        images=tuple(Image(name, BytesSource(name.encode())) for name in "abc"),
        captions=tuple(Caption(str(i), f"text {i}") for i in range(5)),
        questions=questions,
    )


def test_what_it_says_of_itself():
    questions = _gallery()
    assert (len(questions), questions.n_captions) == (6, 5)
    assert questions.directions.tolist() == [0, 0, 1, 1, 1, 1]
    assert questions.query_parts.tolist() == [0] * 6
    assert questions.defined.tolist() == [True, True, True, True, True, False]
    captions, images = questions.used()
    assert (captions.tolist(), images.tolist()) == ([0, 1, 2, 3, 4], [0, 1, 2])
    # An image and what was written for it are one cluster: image 0, image 2, captions 0 and 1 (of image 0),
    # 3 (of image 1), 4 (of nobody).
    assert _benchmark(_gallery()).clusters.tolist() == [0, 1, 0, 0, 2, 3]


def test_some_queries_of_the_same_gallery_also_by_rule():
    result = _benchmark(_gallery(groupings={"kind": tuple("uvwxyz")})).select(np.array([4, 1]))
    questions = result.gallery
    assert (questions.ids, questions.groupings) == (("i2t/c", "t2i/3"), {"kind": ("v", "y")})
    assert (questions.i2t.queries.tolist(), questions.t2i.queries.tolist()) == ([2], [3])
    assert (questions.i2t.positives.items.tolist(), questions.t2i.positives.items.tolist()) == ([4], [1])
    assert (len(result.images), len(result.captions)) == (3, 5)
    mask = _benchmark(_gallery()).select(np.array([True, False, False, False, False, False]))
    assert (len(mask.gallery.i2t), len(mask.gallery.t2i)) == (1, 0)
    assert mask.gallery.defined.tolist() == [True]
    refuses("no question is left", _benchmark(_gallery()).select, np.zeros(6, dtype=bool))
    questions = _gallery(i2t=BY_RULE)
    assert questions.defined.tolist() == [True, True, True, True, True, False]
    kept = questions.select(np.array([1, 2])).i2t.positives
    assert kept.distances(slice(None)).tolist() == [[2, 2, 2, 2, 0]]


def test_parts():
    questions = _gallery(
        i2t=_search([0, 2], [[0, 1, -1], [4]]),
        t2i=_search([0, 1, 3, 4], [[0], [0], [1], []]),
        image_parts=np.array([0, 1, 1]),
        caption_parts=np.array([0, 0, 1, 1, 1]),
    )
    assert questions.query_parts.tolist() == [0, 1, 0, 0, 1, 1]
    assert questions.select(np.array([1, 4])).query_parts.tolist() == [1, 1]


CODES = np.eye(3, dtype=bool)
BY_RULE = RetrievalDirection(np.array([0, 2]), Plausible(CODES[[0, 2]], CODES[[0, 0, 1, 1, 2]]))


def _parts(images, captions):
    return {"image_parts": np.array(images), "caption_parts": np.array(captions)}


def _ruled(queries, items):
    return {"i2t": RetrievalDirection(np.array([0, 2]), Plausible(queries, items))}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"ids": ("a",)}, "not one id per query; given: 1 ids; allowed: 2 images and 4 captions"),
        ({"ids": ("a", "a", "b", "c", "d", "e")}, "question id occurs twice; given: a"),
        ({"i2t": _search([0, 3], [[0], [1]])}, "a query is no image; given: 3; allowed: 0 to 2"),
        ({"i2t": _search([-1, 2], [[0], [1]])}, "a query is no image; given: -1"),
        ({"i2t": _search([2, 2], [[0], [1]])}, "an image is a query twice"),
        ({"t2i": _search([0, 1, 3, 3], [[0], [0], [1], []])}, "a caption is a query twice"),
        ({"i2t": _search([0, 2], [[0]])}, "not a row of right answers per query; given: 1; allowed: 2"),
        ({"i2t": _search([0, 2], [[0], [5]])}, "a right answer is outside the gallery; given: 5"),
        ({"owners": np.array([0, 0, 1, 1, 3])}, "a caption's image is no image of the gallery; given: 3"),
        ({"owners": np.array([0, 0, 1, 1, -2])}, "a caption's image is no image of the gallery; given: -2"),
        ({"image_parts": np.array([0, 0, 0])}, "only one kind of item is in parts"),
        (_parts([0, 0], [0] * 5), r"parts of images have the wrong shape; given: \(2,\); allowed: \(3,\)"),
        (_parts([0, 0, -1], [0] * 5), "an item is in no part"),
        (_parts([0, 1, 1], [0, 0, 1, 1, 1]), "a right answer of t2i lies in another part of the gallery"),
        (_ruled(CODES[[0, 2]], CODES), r"codes of items have the wrong shape; given: \(3, 3\)"),
        (_ruled(CODES, CODES[[0, 0, 1, 1, 2]]), r"codes of image queries have the wrong shape"),
    ],
)
def test_what_is_no_gallery(changes, message):
    refuses(message, _gallery, **changes)


def test_the_digest_knows_all_that_decides_a_number():
    parts = {"image_parts": np.zeros(3, dtype=np.int64), "caption_parts": np.zeros(5, dtype=np.int64)}
    graded = RetrievalDirection(np.array([0, 2]), Qrels.of([[0, 1, -1], [4]], [[1.0, 0.5, 1.0], [1.0]]))
    variants = [
        _gallery(),
        _gallery(i2t=_search([0, 2], [[0, 1], [4]])),
        _gallery(i2t=_search([0, 1], [[0, 1, -1], [4]])),
        _gallery(i2t=graded),
        _gallery(i2t=BY_RULE),
        _gallery(i2t=replace(BY_RULE, positives=replace(BY_RULE.positives, cap=50))),
        _gallery(owners=np.array([0, 0, 1, 1, 2])),
        _gallery(groupings={"kind": tuple("uvwxyz")}),
        _gallery(**parts),
        _gallery(**{**parts, "caption_parts": np.array([0, 0, 1, 0, 0])}),
    ]
    digests = [_benchmark(item).digest for item in variants]
    assert len(set(digests)) == len(digests)
    assert _benchmark(_gallery()).digest == digests[0]


def test_a_gallery_is_measured_whole():
    whole = _benchmark(_gallery())
    assert whole.available() is whole
    assert whole.gallery is whole.questions
    with pytest.raises(DataError, match="neither quads nor choices"):
        _ = whole.paired
    without = replace(whole, images=(*whole.images[:2], Image("c")))
    refuses(r"some of its items are not at hand; given: 1 images missing; give", without.available)


def rated(**changes):
    """Three candidates about two images; the second has no references."""
    fields = {
        "captions": np.array([0, 1, 2]),
        "images": np.array([0, 0, 1]),
        "ratings": np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 3.0]]),
        "references": References.of([[3, 4], [], [4]]),
    }
    return Rated(("a", "b", "c"), **(fields | changes))


def paragraphs(**changes):
    """Two questions; the first one's second candidate has two sentences, each of its own segment."""
    fields = {
        "captions": np.array([0, 1, 2, 0, 2]),
        "images": np.array([0, 0, 1, 2, 2]),
        "owners": np.array([0, 0, 0, 1, 1]),
        "sides": np.array([0, 1, 1, 0, 1]),
        "votes": np.array([[3.0, 1.0], [2.0, 2.0]]),
        "label": np.array([0, 1]),
    }
    return Preference(("p", "q"), **(fields | changes))


def benchmark(questions):
    card = Card(name="mine", title="Mine", form=questions.form)
    captions = tuple(Caption(str(i), text) for i, text in enumerate(["dog", "cat", "cow", "a dog", "animal"]))
    return Benchmark(card, tuple(Image(name) for name in "xyz"), captions, questions)


def test_both_candidates_of_a_question_see_the_same_draw():
    asked = Preference.between(
        ("a", "b"),
        np.array([[0, 1], [2, 3]]),
        np.array([0, 1]),
        votes=np.array([[2.0, 0.0], [0.0, 1.0]]),
        label=np.array([0, 1]),
        references=References.of([list(range(5, 15)), list(range(20, 30))]),
        sample=3,
        draws=4,
        seed=7,
    )
    draws = asked.drawn()
    assert len(draws) == 4
    for draw in draws:
        assert (draw.counts.tolist(), draw.row(0).tolist()) == ([3] * 4, draw.row(1).tolist())
        assert draw.row(2).tolist() == draw.row(3).tolist()
    assert len({tuple(draw.captions) for draw in draws}) > 1
    assert [d.captions.tolist() for d in asked.drawn()] == [d.captions.tolist() for d in draws]


def test_chosen_questions_keep_what_belongs_to_them():
    part = benchmark(rated()).select(np.array([2, 0]))
    texts = [caption.text for caption in part.captions]
    assert [texts[i] for i in part.questions.captions] == ["cow", "dog"]
    assert [part.images[i].id for i in part.questions.images] == ["y", "x"]
    references = [[texts[i] for i in part.questions.references.row(r)] for r in (0, 1)]
    assert references == [["animal"], ["a dog", "animal"]]
    assert "cat" not in texts
    assert part.questions.ratings.tolist() == [[3.0, 3.0], [1.0, 2.0]]

    second = benchmark(paragraphs()).select(np.array([1]))
    assert [second.captions[i].text for i in second.questions.captions] == ["dog", "cow"]
    assert second.questions.owners.tolist() == [0, 0]
    assert [image.id for image in second.images] == ["z"]


def test_questions_about_one_image_are_one_cluster():
    assert benchmark(rated()).clusters.tolist() == [0, 0, 1]
    # "dog" and "cow" are candidates of both.
    assert benchmark(paragraphs()).clusters.tolist() == [0, 0]
    assert benchmark(paragraphs()).dependence.images.tolist() == [[0, 0, 1], [2, 2, -1]]
    assert benchmark(paragraphs()).dependence.captions.tolist() == [[0, 1, 2], [0, 2, -1]]


def test_everything_that_is_asked_is_in_the_digest():
    base = benchmark(rated()).digest
    assert benchmark(rated()).digest == base
    others = [
        rated(ratings=np.array([[1.0, 2.0], [np.nan, 4.0], [3.0, 4.0]])),
        rated(references=None),
        rated(references=References.of([[3, 4], [4], []])),
        rated(raters="apart"),
        rated(images=np.array([0, 1, 1])),
    ]
    assert len({base, *(benchmark(item).digest for item in others)}) == 1 + len(others)
    votes = paragraphs(votes=np.array([[3.0, 2.0], [2.0, 2.0]]))
    assert benchmark(paragraphs()).digest != benchmark(votes).digest


@pytest.mark.parametrize(
    ("make", "change", "message"),
    [
        (rated, {"ratings": np.array([[1.0], [np.nan], [2.0]])}, "question 'b': a question has no rating"),
        (rated, {"ratings": np.array([[1.0], [np.inf], [2.0]])}, "a rating is infinite"),
        (rated, {"ratings": np.array([1.0, 2.0, 3.0])}, "ratings have the wrong shape"),
        (rated, {"references": References.of([[1]])}, "not one entry of references per row"),
        (rated, {"images": np.array([0, 1])}, "images have the wrong shape"),
        (paragraphs, {"label": np.array([1, 1])}, "question 'p': the label is not that of more votes"),
        (paragraphs, {"votes": np.array([[3.0, -1.0], [2.0, 2.0]])}, "votes are not counts"),
        (paragraphs, {"sides": np.array([0, 1, 0, 0, 1])}, "not in order"),
        (paragraphs, {"owners": np.array([0, 0, 0, 0, 1])}, "not in order, or a candidate has none"),
        (paragraphs, {"references": References.of([[1]] * 2)}, "not one entry of references per row"),
    ],
)
def test_what_no_judged_questions_are(make, change, message):
    refuses(message, make, **change)


def test_references_and_items_must_be_those_of_the_benchmark():
    refuses("a question points to caption 9", benchmark, rated(references=References.of([[9], [], []])))
    refuses("given: 3 images and 5 captions; allowed: 4 and 5", _benchmark, _gallery(n_images=4))


def test_scores_have_the_shape_of_their_form():
    three, two = benchmark(rated()), benchmark(paragraphs())
    Scores(np.zeros(3)).check(three, where="s")
    Scores(np.zeros((2, 2))).check(two, where="s")
    Scores(np.zeros((2, 2, 5))).check(two, where="s")
    for shape, asked in (((3, 1), three), ((4,), three), ((2,), two), ((3, 2, 5), two)):
        refuses("wrong shape", Scores(np.zeros(shape)).check, asked, where="s", error=ScoreError)
    broken = np.zeros((2, 2, 5))
    broken[1, 0, 3] = np.nan
    refuses("question 'q', position \\(0, 3\\)", Scores(broken).check, two, where="s", error=ScoreError)
