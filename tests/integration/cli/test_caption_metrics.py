"""Caption metrics in `evaluate`, and their list, as a user meets them."""

import json
from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks import Benchmark, Caption, Card, Image
from counterfoil.benchmarks.folder import load as load_folder
from counterfoil.benchmarks.folder import save
from counterfoil.benchmarks.forms import Rated
from counterfoil.benchmarks.references import References


@pytest.fixture
def rated(tmp_path):
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


def test_a_metric_is_a_scorer(counterfoil, rated, tmp_path):
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


def test_the_model_behind_a_metric_is_in_its_name(counterfoil, rated, tmp_path):
    rng = np.random.default_rng(0)
    images, captions = rng.standard_normal((10, 4)), rng.standard_normal((40, 4))
    np.savez(tmp_path / "e.npz", images=images, captions=captions)
    spec = f"embeddings:{tmp_path}/e.npz"
    said = counterfoil.succeeds("evaluate", "metric:clip-s", rated, "--backbone", spec, "--json", "-")
    result = json.loads(said.out)
    assert result["scorer"] == f"metric:clip-s {spec}"
    assert result["provenance"]["scorer"]["name"].startswith("metric:clip-s")


def test_what_one_benchmark_lacks_is_said_first(counterfoil, rated, tmp_path):
    benchmark = load_folder(rated)
    without = replace(benchmark, questions=replace(benchmark.questions, references=None))
    save(without, tmp_path / "without")
    said = counterfoil.fails(
        f"evaluate metric:cider {rated} {tmp_path}/without --out {tmp_path}/runs",
        says="mine has no references, which metric:cider compares with",
    )
    assert said.out == ""
    assert not (tmp_path / "runs").exists()
