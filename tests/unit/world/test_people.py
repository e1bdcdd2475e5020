from math import sqrt

import numpy as np
import pytest

from counterfoil.errors import InputError
from counterfoil.world.people import Annotator, annotate
from refusals import refuses

CROWD = (
    Annotator("careful", accuracy=0.95, bias=0.0, seconds=8.0),
    Annotator("eager", accuracy=0.8, bias=0.15, seconds=3.0),
    Annotator("stern", accuracy=0.85, bias=-0.1, seconds=5.0),
    Annotator("tired", accuracy=0.6, bias=0.05, seconds=1.5),
)


def truth(n, share=0.4):
    return np.arange(n) < share * n


def test_people_err_as_often_as_was_chosen():
    n = 40_000
    so = truth(n)
    answers = annotate(so, CROWD, np.random.default_rng(0))
    for chosen, said, seconds in zip(CROWD, answers.votes, answers.seconds, strict=True):
        # Four standard errors of two shares, of 0.4 n and 0.6 n answers.
        assert said[so].mean() == pytest.approx(chosen.hits, abs=4 * sqrt(0.25 / (0.4 * n)))
        assert 1 - said[~so].mean() == pytest.approx(chosen.rejections, abs=4 * sqrt(0.25 / (0.6 * n)))
        # Times have a standard deviation of half their mean.
        assert seconds.mean() == pytest.approx(chosen.seconds, abs=4 * chosen.seconds / 2 / sqrt(n))


def test_who_never_errs_tells_the_truth_and_who_always_errs_its_reverse():
    so = truth(50)
    sure, contrary, yes = Annotator("a"), Annotator("b", accuracy=0.0), Annotator("c", 0.5, 0.5)
    said = annotate(so, [sure, contrary, yes], np.random.default_rng(1)).votes
    assert (said[0] == so).all()
    assert (said[1] == ~so).all()
    assert said[2].all()


def test_same_seed_same_answers():
    one, again, other = (annotate(truth(99), CROWD, np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert (one.votes == again.votes).all()
    assert (one.seconds == again.seconds).all()
    assert (one.votes != other.votes).any()


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (
            lambda rng: Annotator("hasty", 0.9, 0.2),
            r"hasty: an annotator's chances .* 0.9, bias 0.2",
        ),
        (lambda rng: Annotator("hasty", seconds=0.0), "an answer takes time"),
        (lambda rng: annotate(truth(3), [Annotator("a")] * 2, rng), "'a' twice"),
        (lambda rng: annotate(truth(3), [], rng), "none"),
    ],
)
def test_what_cannot_be(ask, message):
    refuses(message, ask, np.random.default_rng(0), error=InputError)
