"""Pools in numbers, by model and by k, and pooling in rounds."""

import json

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, strategies as st

from counterfoil.engine.gallery import rank
from counterfoil.engine.similarity import Matrix
from counterfoil.errors import CounterfoilError, InputError
from counterfoil.evaluation.evaluate import evaluate
from counterfoil.evaluation.pooling import found_by, summary, unjudged, without
from counterfoil.evaluation.run import save_run
from counterfoil.jobs.bias import bias
from counterfoil.jobs.pool_rounds import pool_rounds
from counterfoil.metrics.annotators import Pool, pool
from counterfoil.stats.capture_recapture import chao
from counterfoil.store import write_csv
from counterfoil.world.benchmarks import gallery
from refusals import refuses


def test_two_directions_by_hand():
    # Images 0, 1 and captions 0, 1, 2. i2t: image 0 gets captions 1, 2 from a and 1, 0 from b.
    # t2i: caption 1 gets image 0 from both (known already as a pair), then 1.
    pools = {"i2t": pool([np.array([[1, 2]]), np.array([[1, 0]])]), "t2i": pool([np.array([[0, 1]])] * 2)}
    numbers = {"i2t": pools["i2t"].item, "t2i": pools["t2i"].item * 3 + 1}
    result = summary(pools, 2, ("a", "b"), {"i2t": 1, "t2i": 1}, numbers)  # type: ignore[arg-type]
    assert (result.rows, result.pairs) == (5, 4)
    assert (result.proposed, result.alone, result.new) == ((4, 4), (1, 1), (4, 1))
    assert result.curve.tolist() == [[2, 4], [2, 5]]
    assert "8 proposals are 5 different ones (37.5 % were doubled), 4 pairs" in result.lines()[0]
    assert result.to_json()["yield"] == {"1": [2, 4], "2": [2, 5]}


@given(st.integers(0, 2**32 - 1))
def test_pairs_are_taken_out(seed):
    rng = np.random.default_rng(seed)
    pooled = pool([np.stack([rng.permutation(6)[:3] for _ in range(4)]) for _ in range(2)])
    known = rng.integers(0, [4, 9], size=(7, 2))
    left = without(pooled, known)
    gone = set(map(tuple, known.tolist()))
    pairs = list(zip(pooled.query.tolist(), pooled.item.tolist(), strict=True))
    left_pairs = list(zip(left.query.tolist(), left.item.tolist(), strict=True))
    assert left_pairs == [pair for pair in pairs if pair not in gone]
    kept = [row for row, pair in zip(pooled.place.tolist(), pairs, strict=True) if pair not in gone]
    assert left.place.tolist() == kept
    assert without(pooled, np.empty((0, 2), np.int64)) is pooled


def test_a_pool_may_be_empty():
    empty = Pool(np.empty(0, np.int64), np.empty(0, np.int64), np.empty((0, 2), np.int64))
    nothing = {"t2i": np.empty(0, np.int64)}
    result = summary({"t2i": empty}, 1, ("a", "b"), {"t2i": 3}, nothing, excluded=4)
    assert result.rows == 0
    assert result.lines() == ["0 proposals are 0 different ones", "4 more were left out, known to be right"]


NAMES = ("one", "two", "three")


@pytest.fixture(scope="module")
def drawn():
    return gallery(60, seed=1, captions_each=2, size=48, lazy=True)


def truth_of(benchmark):
    """(images, captions) which pairs are right."""
    right = np.zeros((len(benchmark.images), len(benchmark.captions)), dtype=bool)
    positives = benchmark.gallery.i2t.positives
    right[benchmark.gallery.i2t.queries[positives.queries], positives.items] = True
    return right


def seen(right, rng, *, shared, own=1.0):
    """Similarities of three models: the truth with noise of their own, and noise that all share."""
    hard = shared * rng.normal(size=right.shape)
    return [2.5 * right + hard + own * rng.normal(size=right.shape) for _ in NAMES]


@pytest.fixture(scope="module")
def made(drawn, tmp_path_factory):
    """Runs of three models over the drawn gallery, in folders."""
    folder = tmp_path_factory.mktemp("runs")
    scores = seen(truth_of(drawn), np.random.default_rng(0), shared=0.7)
    runs = []
    for name, values in zip(NAMES, scores, strict=True):
        answers = rank([drawn], Matrix(values.astype(np.float32)), top=60)[0]
        save_run(folder / name, drawn, answers, evaluate(drawn, answers, model=name, draws=20), {})
        runs.append(folder / name)
    return runs, scores


def slow_rounds(scores, right, k, rounds):
    """Judged pairs and finds of each model, round by round, over sets and sorted lists."""
    judged = set()
    finds = [set() for _ in scores]
    counts = []
    for _ in range(rounds):
        new, reached = set(), []
        for m, values in enumerate(scores):
            for turned, table in ((False, values), (True, values.T)):
                for query, row in enumerate(table):
                    order = np.argsort(-row, kind="stable").tolist()
                    pairs = [(item, query) if turned else (query, item) for item in order]
                    taken = [i for i, pair in enumerate(pairs) if pair not in judged][:k]
                    new |= {pairs[i] for i in taken}
                    reached.append((m, pairs[: max(taken, default=-1) + 1]))
        judged |= new
        for m, upto in reached:
            finds[m] |= {pair for pair in upto if right[pair]}
        counts.append((len(new), sum(bool(right[pair]) for pair in new), [len(item) for item in finds]))
    return counts, judged, finds


def test_rounds_are_those_of_a_loop(drawn, made):
    runs, scores = made
    right = truth_of(drawn)
    result = pool_rounds(runs, "world", rounds=2, k=2, draws=0)
    counts, judged, finds = slow_rounds(scores, right, 2, 2)
    for item, (new, hits, _) in zip(result.rounds, counts, strict=True):
        assert (item.judged, item.right) == (new, hits)
    last = result.rounds[-1]
    assert (last.all_judged, last.total) == (len(judged), right.sum())
    assert last.recall == pytest.approx(sum(bool(right[pair]) for pair in judged) / right.sum())
    union = sorted(set().union(*finds))
    assert last.at_least == chao(np.array([[pair in item for item in finds] for pair in union]))
    images = {image.id: i for i, image in enumerate(drawn.images)}
    captions = {caption.id: i for i, caption in enumerate(drawn.captions)}
    positives = result.positives.to_pylist()
    assert all(right[images[item["image"]], captions[item["caption"]]] for item in positives)
    assert len(positives) == last.all_right


def test_unjudged_items_by_a_loop():
    rng = np.random.default_rng(3)
    tops = [np.argsort(rng.random((4, 9)), axis=1)[:, :7] for _ in range(2)]
    tops[1][0, 4:] = -1
    judged = rng.permutation(36)[:12]
    pool, depths = unjudged(tops, judged, 2, 9)
    expected = {}
    for m, top in enumerate(tops):
        for query, row in enumerate(top.tolist()):
            taken = [(i, item) for i, item in enumerate(row) if item >= 0]
            taken = [(i, item) for i, item in taken if 9 * query + item not in judged][:2]
            assert depths[m][query] == max([at + 1 for at, _ in taken], default=0)
            for at, item in taken:
                expected.setdefault((query, item), [0, 0])[m] = at + 1
    pairs = list(zip(pool.query.tolist(), pool.item.tolist(), strict=True))
    assert dict(zip(pairs, pool.place.tolist(), strict=True)) == expected
    result = found_by(tops, depths, np.array([0, 1]), np.array([tops[0][0, 0], tops[1][1, 6]]))
    assert (result[0, 0], result[1, 1]) == (depths[0][0] >= 1, depths[1][1] >= 7)


def test_bias_after_a_round_is_that_of_its_judgements(made, tmp_path):
    runs, _ = made
    result = pool_rounds(runs, "world", rounds=2, k=2, draws=100)
    result.save(tmp_path)
    same = bias(runs, tmp_path / "judgements.csv", measures=("recall_at_1",), draws=100)
    assert result.biases[-1].to_json() == same.to_json()
    facts = json.loads((tmp_path / "rounds.json").read_text())
    assert (len(facts["rounds"]), facts["rounds"][0]["bias"]["models"]) == (2, list(NAMES))
    assert "Rounds of pooling" in str(result)
    assert result.to_arrow(by="model").num_rows == 6
    assert result.to_arrow().column("round").to_pylist() == [1, 2]


def test_people_who_did_not_judge_all(made, tmp_path):
    runs, _ = made
    some = pool_rounds(runs, "world", rounds=1, k=2, draws=0).judgements.slice(0, 100)
    answers = pa.array(["yes" if gain else "no" for gain in some["gain"].to_pylist()])
    write_csv(tmp_path / "people.csv", some.drop_columns(["gain"]).append_column("answer", answers))
    result = pool_rounds(runs, tmp_path / "people.csv", rounds=2, k=2, draws=0)
    pairs = some.group_by("pair").aggregate([("gain", "max")])
    assert result.rounds[0].judged == len(pairs)
    assert result.rounds[0].right == sum(pairs["gain_max"].to_pylist())
    assert result.rounds[0].proposed > result.rounds[0].judged
    assert result.rounds[0].total is None


def test_simulated_people_err(made):
    runs, _ = made
    result = pool_rounds(runs, "world", rounds=1, k=3, people=3, accuracy=0.9, draws=0)
    sure = pool_rounds(runs, "world", rounds=1, k=3, draws=0)
    assert (result.judgements["pair"].to_numpy() == sure.judgements["pair"].to_numpy()).all()
    wrong = (result.judgements["gain"].to_numpy() != sure.judgements["gain"].to_numpy()).mean()
    # Three of 90 % are wrong together in 2.8 % of pairs.
    assert 0.005 < wrong < 0.06


@pytest.mark.parametrize(
    ("judge", "options", "message"),
    [
        ("lm:gpt2", {}, "unknown benchmark"),
        ("nothing", {}, "nothing"),
        ("world", {"queries": ["nobody"]}, "unknown queries"),
    ],
)
def test_judges_that_cannot(judge, options, message, made):
    runs, _ = made
    refuses(message, pool_rounds, runs, judge, draws=0, **options, error=CounterfoilError)


def test_the_world_judges_its_own_alone(tmp_path):
    files = [tmp_path / f"{name}.npz" for name in NAMES[:2]]
    columns = dict.fromkeys(("images", "captions"), np.eye(4))
    columns |= dict.fromkeys(("image_ids", "caption_ids"), np.arange(4))
    for file in files:
        np.savez(file, **columns)
    refuses("its own gallery only", pool_rounds, files, "world", error=InputError)

    def judge(pairs):
        return (np.array(pairs["image"]) == np.array(pairs["caption"])).astype(float)

    result = pool_rounds(files, judge, rounds=9, k=1, draws=0)
    # Nothing is left to propose when all 16 pairs are judged.
    assert result.rounds[-1].all_judged == 16
    assert "nothing was left" in result.notes[0]
    for name, value in (("rounds", 0), ("k", 0), ("people", -1)):
        refuses(name, pool_rounds, files, "world", **{name: value}, error=InputError)


def test_what_is_missing_against_the_truth(drawn):
    """Models that share what is hard for them: the bound is below the truth, else it is the truth."""
    right = truth_of(drawn)
    query, item = np.nonzero(right)
    for shared, low, high in ((1.5, 0.5, 0.99), (0.0, 0.92, 1.08)):
        bounds = []
        for seed in range(12):
            scores = seen(right, np.random.default_rng(seed), shared=shared)
            tops = [np.argsort(-values, axis=1, kind="stable")[:, :20] for values in scores]
            bounds.append(chao(found_by(tops, [np.full(len(right), 20)] * len(tops), query, item)))
        assert all(bound.low <= right.sum() + 1 for bound in bounds)
        assert low < np.median([bound.total for bound in bounds]) / right.sum() < high
