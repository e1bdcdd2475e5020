"""Caption metrics in `evaluate`, and their list, as a user meets them."""

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from scipy.stats import kendalltau

from counterfoil.benchmarks import Benchmark, Caption, Card, Image
from counterfoil.benchmarks.folder import load as load_folder
from counterfoil.benchmarks.folder import save
from counterfoil.benchmarks.forms import Preference, Rated
from counterfoil.benchmarks.references import References


@pytest.fixture
def rated(tmp_path: Path) -> Path:
    rng = np.random.default_rng(3)
    words = ["a", "the", "dog", "cat", "cow", "runs", "sleeps", "on", "grass", "bed", "green", "brown"]
    texts = [" ".join(rng.choice(words, 6)) for _ in range(40)]
    n = 30
    benchmark = Benchmark(
        Card(name="mine", title="Mine", form="rated"),
        tuple(Image(f"i{i}") for i in range(10)),
        tuple(Caption(f"c{i}", text) for i, text in enumerate(texts)),
        Rated(
            tuple(f"q{i}" for i in range(n)),
            captions=np.arange(n),
            images=np.arange(n) % 10,
            ratings=rng.integers(1, 5, (n, 2)).astype(float),
            references=References.of([[30 + i % 10, 30 + (i + 3) % 10] for i in range(n)]),
        ),
    )
    save(benchmark, tmp_path / "mine")
    return tmp_path / "mine"


def test_a_metric_is_a_scorer(counterfoil, rated, tmp_path) -> None:
    said = counterfoil.succeeds(f"evaluate metric:rouge-l {rated} --out {tmp_path}/runs/rouge --json -")
    result = json.loads(said.out)
    assert result["scorer"] == "metric:rouge-l"
    # The run can be given again, and compared with another metric.
    again = counterfoil.succeeds(
        f"evaluate given:{tmp_path}/runs/rouge/mine {rated} --out {tmp_path}/runs/again --json -"
    )
    assert json.loads(again.out)["measures"] == result["measures"]
    counterfoil("evaluate", "metric:length", rated, "--out", tmp_path / "runs/length")
    compared = counterfoil.succeeds("compare", *sorted((tmp_path / "runs").glob("*/mine")), "--json", "-")
    found = json.loads(compared.out)
    assert "rouge" in json.dumps(found)


def test_ratings_that_are_none_are_counted_and_said(counterfoil, shared_data: Path, tmp_path: Path) -> None:
    for name in ("Flickr8k.token.txt", "ExpertAnnotations.txt"):
        (tmp_path / "f8").mkdir(exist_ok=True)
        text = (shared_data / "flickr8k" / name).read_text("utf-8")
        if name.startswith("Expert"):
            lines = text.splitlines()
            lines[3] = lines[3].rsplit("\t", 1)[0] + "\tnan"
            text = "\n".join(lines) + "\n"
        (tmp_path / "f8" / name).write_text(text, "utf-8")
    command = ("evaluate", "metric:length", "flickr8k-expert", "--data", tmp_path / "f8", "--draws", 100)
    said = counterfoil.succeeds(*command)
    found = re.search(r"on Flickr8k-Expert, ([\d,]+) captions, ([\d,]+) ratings", said.out)
    assert found is not None
    captions, ratings = (int(each.replace(",", "")) for each in found.groups())
    assert ratings == 3 * captions - 1
    assert re.search(r"flickr8k-expert: .*1 rating.* NaN left out", said.err)
    assert counterfoil(*command, "-q").err == ""


def test_ids_that_look_like_pairs_are_those_of_questions(counterfoil, rated, tmp_path) -> None:
    benchmark = load_folder(rated)
    names = tuple(f"{k // 3}_c{2 * (k % 3)}" for k in range(len(benchmark)))
    save(replace(benchmark, questions=replace(benchmark.questions, ids=names)), tmp_path / "named")
    scores = np.random.default_rng(1).random(len(names))
    lines = [f"{name},{score!r}" for name, score in zip(names, scores.tolist(), strict=True)]
    (tmp_path / "s.csv").write_text("\n".join(["id,score", *lines[::-1]]))
    said = counterfoil.succeeds("evaluate", f"given:{tmp_path}/s.csv", tmp_path / "named", "--json", "-")
    ratings = benchmark.questions.ratings.T.reshape(-1)
    expected = kendalltau(np.tile(scores, 2), ratings).statistic
    assert json.loads(said.out)["measures"]["kendall_tau_b"]["value"] == pytest.approx(expected)
    assert "30 captions, 60 ratings" in said.err


def test_given_preferences_are_evaluated_and_compared(counterfoil, tmp_path) -> None:
    n = 12
    benchmark = Benchmark(
        Card(name="two", title="Two", form="preference"),
        tuple(Image(f"i{i}") for i in range(n)),
        tuple(Caption(f"c{i}", f"caption number {i}") for i in range(2 * n)),
        Preference.between(
            tuple(f"q{i}" for i in range(n)),
            np.arange(2 * n).reshape(n, 2),
            np.arange(n),
            np.tile([[2.0, 1.0]], (n, 1)),
            np.zeros(n, np.int64),
        ),
    )
    save(benchmark, tmp_path / "two")
    rows = [(f"q{i}", side, float(side == i % 3)) for i in range(n) for side in (1, 0)]
    (tmp_path / "s.csv").write_text("id,side,score\n" + "\n".join(",".join(map(str, row)) for row in rows))
    said = counterfoil.succeeds(
        f"evaluate given:{tmp_path}/s.csv {tmp_path}/two --json - --out {tmp_path}/runs/a"
    )
    # Side 0 scores 1 where i % 3 is 0, side 1 where it is 1, and both 0 where it is 2: a tie, and wrong.
    assert json.loads(said.out)["measures"]["accuracy"]["value"] == pytest.approx(4 / 12)
    kept = counterfoil("evaluate", f"given:{tmp_path}/runs/a/two", tmp_path / "two", "--json", "-")
    assert json.loads(kept.out)["measures"] == json.loads(said.out)["measures"]
    counterfoil("evaluate", "metric:length", tmp_path / "two", "--out", tmp_path / "runs/b")
    counterfoil.succeeds("compare", tmp_path / "runs/a/two", tmp_path / "runs/b/two")


def test_the_model_behind_a_metric_is_in_its_name(counterfoil, rated, tmp_path) -> None:
    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((10, 4)), rng.standard_normal((40, 4))
    np.savez(tmp_path / "e.npz", images=images, captions=captions)
    spec = f"embeddings:{tmp_path}/e.npz"
    said = counterfoil.succeeds("evaluate", "metric:clip-s", rated, "--scorer", spec, "--json", "-")
    result = json.loads(said.out)
    assert result["scorer"] == f"metric:clip-s {spec}"
    assert result["provenance"]["scorer"]["name"].startswith("metric:clip-s")
    unit = [rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (images, captions)]
    cosines = np.clip((unit[1][:30] * unit[0][np.arange(30) % 10]).sum(axis=1), 0, None)
    ratings = load_folder(rated).questions.ratings.T.reshape(-1)
    expected = kendalltau(np.tile(cosines, 2), ratings).statistic
    assert result["measures"]["kendall_tau_b"]["value"] == pytest.approx(expected)


def test_what_one_benchmark_lacks_is_said_first(counterfoil, rated, tmp_path) -> None:
    benchmark = load_folder(rated)
    without = replace(benchmark, questions=replace(benchmark.questions, references=None))
    save(without, tmp_path / "without")
    said = counterfoil.fails(
        f"evaluate metric:cider {rated} {tmp_path}/without --out {tmp_path}/runs",
        says="mine has no references, which metric:cider compares with",
    )
    assert said.out == ""
    assert not (tmp_path / "runs").exists()


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ("metric:cidr {}", "unknown caption metric; given: cidr; .*did you mean 'cider'?"),
        ("metric:clip-s {}", "metric:clip-s: needs a model to look with; name one with --scorer"),
        ("blind:length {} --scorer hf:x", "--scorer is for caption metrics"),
        ("pixels:colours {} --set a=b", "takes no settings"),
    ],
)
def test_what_is_refused(counterfoil, rated, arguments, said) -> None:
    found = counterfoil.refused(f"evaluate {arguments.format(rated)}")
    assert re.search(said, found.err), found.err
