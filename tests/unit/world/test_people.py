from math import sqrt

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.benchmarks.judgements import pool_table, read_judgements
from counterfoil.errors import InputError
from counterfoil.metrics.annotators import pool
from counterfoil.store import write_parquet
from counterfoil.world.people import Annotator, annotate, judge
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


def test_who_never_errs_tells_the_truth_who_always_errs_its_reverse_and_seeds_decide():
    so = truth(50)
    sure, contrary, yes = Annotator("a"), Annotator("b", accuracy=0.0), Annotator("c", 0.5, 0.5)
    said = annotate(so, [sure, contrary, yes], np.random.default_rng(1)).votes
    assert (said[0] == so).all()
    assert (said[1] == ~so).all()
    assert said[2].all()
    one, again, other = (annotate(truth(99), CROWD, np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert (one.votes == again.votes).all()
    assert (one.seconds == again.seconds).all()
    assert (one.votes != other.votes).any()


@pytest.fixture
def pooled():
    """Ten images and thirty captions, of which two models propose the first four for each image."""
    rng = np.random.default_rng(0)
    return pool_table(
        {"i2t": pool([np.argsort(rng.random((10, 30)), axis=1)[:, :4] for _ in range(2)])},
        models=["one", "two"],
        queries={"i2t": [f"image-{i}" for i in range(10)]},
        images=[f"image-{i}" for i in range(10)],
        captions=[f"caption-{i}" for i in range(30)],
    )


def test_judgements_are_read_back(pooled, tmp_path):
    pairs = list(zip(pooled["image"].to_pylist(), pooled["caption"].to_pylist(), strict=True))
    right = {pair: i % 3 == 0 for i, pair in enumerate(pairs)}
    sure = [Annotator("a"), Annotator("b"), Annotator("wrong", accuracy=0.0)]
    write_parquet(tmp_path / "judged.parquet", judge(pooled, right, sure, np.random.default_rng(1)))
    for several, of_right, of_wrong in (("majority", 1.0, 0.0), ("mean", 2 / 3, 1 / 3)):
        judged = read_judgements(tmp_path / "judged.parquet", aggregate=several)
        assert (judged.pairs, judged.several, judged.unanswered) == (len(pairs), len(pairs), 0)
        (side,) = judged.directions
        gains = {
            (side.queries[q], side.items[i]): gain
            for q, i, gain in zip(side.query, side.item, side.gain, strict=True)
        }
        assert gains == pytest.approx({pair: of_right if right[pair] else of_wrong for pair in pairs})
        assert set(side.place) == {"one", "two"}


def test_a_person_judges_a_pair_once_whichever_way_it_was_proposed(pooled):
    twice = pa.concat_tables([pooled, pooled])
    table = judge(twice, {}, [Annotator("coin", accuracy=0.5)], np.random.default_rng(5))
    half = pooled.num_rows
    said = table["answer"].to_pylist()
    assert (said[:half], len(set(said))) == (said[half:], 2)
    assert min(table["seconds"].to_pylist()) > 0


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda rng: Annotator("hasty", 0.9, 0.2), r"hasty: an annotator's chances .* 0.9, bias 0.2"),
        (lambda rng: Annotator("hasty", seconds=0.0), "an answer takes time"),
        (lambda rng: annotate(truth(3), [Annotator("a")] * 2, rng), "'a' twice"),
        (lambda rng: annotate(truth(3), [], rng), "none"),
        (lambda rng: judge(pa.table({"image": ["a"]}), {}, CROWD, rng), "no column 'caption'"),
    ],
)
def test_what_cannot_be(ask, message):
    refuses(message, ask, np.random.default_rng(0), error=InputError)
