"""The forms of judged captions: what they hold, what they refuse, and how they are cut."""

import numpy as np
import pytest

from counterfoil.benchmarks import Benchmark, Caption, Card, Image, Preference, Rated, References, Scores
from counterfoil.errors import ScoreError
from refusals import refuses


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
    references = References.of([list(range(5, 15)), list(range(20, 30))])
    asked = Preference.between(
        ("a", "b"),
        np.array([[0, 1], [2, 3]]),
        np.array([0, 1]),
        votes=np.array([[2.0, 0.0], [0.0, 1.0]]),
        label=np.array([0, 1]),
        references=references,
        sample=3,
        draws=4,
        seed=7,
    )
    draws = asked.drawn()
    assert len(draws) == 4
    for draw in draws:
        assert draw.counts.tolist() == [3] * 4
        assert draw.row(0).tolist() == draw.row(1).tolist()
        assert draw.row(2).tolist() == draw.row(3).tolist()
    assert len({tuple(draw.captions) for draw in draws}) > 1
    assert [d.captions.tolist() for d in asked.drawn()] == [d.captions.tolist() for d in draws]


def test_chosen_questions_keep_what_belongs_to_them():
    whole = benchmark(rated())
    part = whole.select(np.array([2, 0]))
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
    assert benchmark(paragraphs()).sharing.images.tolist() == [[0, 0, 1], [2, 2, -1]]
    assert benchmark(paragraphs()).sharing.captions.tolist() == [[0, 1, 2], [0, 2, -1]]


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
    assert len({base, *(benchmark(each).digest for each in others)}) == 1 + len(others)
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


def test_a_reference_that_is_no_caption_is_refused():
    refuses("a question points to caption 9", benchmark, rated(references=References.of([[9], [], []])))


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
