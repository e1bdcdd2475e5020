from itertools import combinations
from math import exp, log, sqrt

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.data.judgements import pool_table, read_judgements, read_votes
from counterfoil.errors import DataError, InputError
from counterfoil.metrics.agreement import cohen_kappa
from counterfoil.metrics.annotators import pool
from counterfoil.metrics.bradley_terry import bradley_terry
from counterfoil.store import write_parquet
from counterfoil.world.people import Annotator, annotate, judge, kappa, rates, rates_unseen, vote

CROWD = (
    Annotator("careful", accuracy=0.95, bias=0.0, seconds=8.0),
    Annotator("eager", accuracy=0.8, bias=0.15, seconds=3.0),
    Annotator("stern", accuracy=0.85, bias=-0.1, seconds=5.0),
    Annotator("tired", accuracy=0.6, bias=0.05, seconds=1.5),
)


def truth(n: int, share: float = 0.4) -> np.ndarray:
    return np.arange(n) < share * n


def test_rates_come_out_as_they_were_chosen():
    n = 40_000
    so = truth(n)
    found = rates(so, annotate(so, CROWD, np.random.default_rng(0)))
    assert [a.name for a in found] == [a.name for a in CROWD]
    for seen, chosen in zip(found, CROWD, strict=True):
        # Four standard errors of two shares, of 0.4 n and 0.6 n answers.
        off = 4 * sqrt(
            chosen.hits * (1 - chosen.hits) / (0.4 * n)
            + chosen.rejections * (1 - chosen.rejections) / (0.6 * n)
        )
        assert abs(seen.hits - chosen.hits) < off
        assert abs(seen.rejections - chosen.rejections) < off
        assert abs(seen.accuracy - chosen.accuracy) < off
        assert abs(seen.bias - chosen.bias) < off
        # Times have a standard deviation of half their mean.
        assert abs(seen.seconds - chosen.seconds) < 4 * chosen.seconds / 2 / sqrt(n)


def test_who_never_errs_tells_the_truth_and_who_always_errs_its_reverse():
    so = truth(50)
    sure, contrary, yes = Annotator("a"), Annotator("b", accuracy=0.0), Annotator("c", 0.5, 0.5)
    said = annotate(so, [sure, contrary, yes], np.random.default_rng(1)).yes
    assert (said[0] == so).all()
    assert (said[1] == ~so).all()
    assert said[2].all()


def test_same_seed_same_answers():
    one, again, other = (annotate(truth(99), CROWD, np.random.default_rng(seed)) for seed in (4, 4, 5))
    assert (one.yes == again.yes).all()
    assert (one.seconds == again.seconds).all()
    assert (one.yes != other.yes).any()


def test_agreement_tends_to_the_kappa_of_the_rates():
    answers = annotate(truth(60_000), CROWD, np.random.default_rng(7)).yes
    for (i, first), (j, second) in combinations(enumerate(CROWD), 2):
        assert cohen_kappa(answers[i], answers[j]) == pytest.approx(kappa(first, second, 0.4), abs=0.02)
    always = Annotator("yes", accuracy=0.5, bias=0.5)
    assert np.isnan(kappa(always, always, 0.3))


def test_rates_are_estimated_without_the_truth():
    n = 30_000
    so = truth(n)
    answers = annotate(so, CROWD, np.random.default_rng(2))
    guess = rates_unseen(answers)
    assert guess.share == pytest.approx(0.4, abs=0.02)
    for seen, chosen in zip(guess.annotators, CROWD, strict=True):
        assert seen.accuracy == pytest.approx(chosen.accuracy, abs=0.02)
        assert seen.bias == pytest.approx(chosen.bias, abs=0.02)
    # Weighing people by how good they are beats counting heads.
    heads = answers.yes.mean(axis=0) > 0.5
    assert ((guess.so > 0.5) == so).mean() > (heads == so).mean()


def slow_unseen(said: list[list[bool]], rounds: int) -> tuple[list[tuple[float, float]], list[float]]:
    people, items = len(said), len(said[0])
    so = [sum(said[a][i] for a in range(people)) / people for i in range(items)]
    found = []
    for _ in range(rounds):
        found = []
        for a in range(people):
            yes = 0.5 + sum(so[i] for i in range(items) if said[a][i])
            no = 0.5 + sum(1 - so[i] for i in range(items) if not said[a][i])
            found.append((yes / (1 + sum(so)), no / (1 + sum(1 - s for s in so))))
        share = (0.5 + sum(so)) / (1 + items)
        for i in range(items):
            if_so, if_not = log(share), log(1 - share)
            for a, (hit, rejection) in enumerate(found):
                if_so += log(hit if said[a][i] else 1 - hit)
                if_not += log(1 - rejection if said[a][i] else rejection)
            so[i] = exp(if_so) / (exp(if_so) + exp(if_not))
    return found, so


def test_rates_without_the_truth_against_a_slow_loop():
    answers = annotate(truth(60), CROWD, np.random.default_rng(11))
    guess = rates_unseen(answers, rounds=25, tolerance=0.0)
    found, so = slow_unseen(answers.yes.tolist(), 25)
    assert guess.so == pytest.approx(so, abs=1e-9)
    for annotator, (hit, rejection) in zip(guess.annotators, found, strict=True):
        assert annotator.hits == pytest.approx(hit)
        assert annotator.rejections == pytest.approx(rejection)


@pytest.fixture
def pooled() -> pa.Table:
    """Ten images and thirty captions, of which two models propose the first four for each image."""
    rng = np.random.default_rng(0)
    tops = [np.argsort(rng.random((10, 30)), axis=1)[:, :4] for _ in range(2)]
    return pool_table(
        {"i2t": pool(tops)},
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
    assert said[:half] == said[half:]
    assert len(set(said)) == 2
    assert min(table["seconds"].to_pylist()) > 0


def test_votes_give_strengths_back(tmp_path):
    strengths = {"map_at_r": 55.0, "recall_at_1": 30.0, "r_precision": 15.0}
    people = [Annotator(name) for name in "abcd"]
    write_parquet(tmp_path / "votes.parquet", vote(strengths, people, np.random.default_rng(3), rounds=1500))
    votes = read_votes(tmp_path / "votes.parquet")
    assert votes.total == 4 * 1500 * 3
    assert votes.judges is not None
    assert votes.judges.shape == (4, 3, 3)
    found = dict(zip(votes.names, bradley_terry(votes.wins), strict=True))
    assert found == pytest.approx(strengths, abs=2.5)


def test_votes_of_those_who_guess_say_nothing_and_a_side_is_no_thing(tmp_path):
    strengths = {"good": 90.0, "bad": 10.0}
    # A voter who always says left votes by the coin that chose the sides.
    for person in (Annotator("coin", accuracy=0.5), Annotator("left", accuracy=0.5, bias=0.5)):
        write_parquet(
            tmp_path / "v.parquet", vote(strengths, [person], np.random.default_rng(0), rounds=4000)
        )
        wins = read_votes(tmp_path / "v.parquet").wins
        assert wins.max() / wins.sum() == pytest.approx(0.5, abs=4 * 0.5 / sqrt(4000))


def test_a_poor_voter_errs_as_often_as_chosen(tmp_path):
    # Of a thing that is always better, a voter who is right four times in five votes for it that often.
    write_parquet(
        tmp_path / "v.parquet",
        vote({"a": 1.0, "b": 1e-12}, [Annotator("x", 0.8)], np.random.default_rng(0), rounds=4000),
    )
    votes = read_votes(tmp_path / "v.parquet")
    assert votes.wins[0, 1] / votes.total == pytest.approx(0.8, abs=4 * 0.4 / sqrt(4000))


def test_what_cannot_be():
    with pytest.raises(InputError, match=r"hasty: an annotator's chances .* accuracy 0.9, bias 0.2"):
        Annotator("hasty", accuracy=0.9, bias=0.2)
    with pytest.raises(InputError, match="an answer takes time"):
        Annotator("hasty", seconds=0.0)
    rng = np.random.default_rng(0)
    with pytest.raises(InputError, match="'a' twice"):
        annotate(truth(3), [Annotator("a"), Annotator("a")], rng)
    with pytest.raises(InputError, match="none"):
        annotate(truth(3), [], rng)
    with pytest.raises(InputError, match="bias shows only"):
        rates(np.ones(3, dtype=bool), annotate(np.ones(3, dtype=bool), CROWD, rng))
    with pytest.raises(InputError, match="too few annotators"):
        rates_unseen(annotate(truth(9), CROWD[:2], rng))
    with pytest.raises(InputError, match="given: b: 0"):
        vote({"a": 1.0, "b": 0.0}, CROWD, rng)
    with pytest.raises(DataError, match="no column 'caption'"):
        judge(pa.table({"image": ["a"]}), {}, CROWD, rng)
