"""Cola's single-object setting: its layout, and its measure against a loop over the released rows."""

import json

import numpy as np
import PIL.Image
import pytest

from contracts import forms
from counterfoil.benchmarks.benchmark import card
from counterfoil.benchmarks.readers import cola
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.evaluation.evaluate import chance, evaluate
from counterfoil.models.baselines import load_blind

LABELS = ["square white plate", "round red ball", "small brown dog", "tall green tree"]


def rows(n=30, *, seed=0):
    """Rows of the layout. The last class is nowhere on a hard image; an image that shows a class is hard."""
    rng = np.random.default_rng(seed)
    found = []
    for at in range(n):
        present = (rng.random(4) < 0.3).astype(int)
        hard = np.maximum(present, rng.random(4) < 0.4).astype(int)
        hard[3] = 0 if present[3] else hard[3]
        found.append([f"vg/{at % 28}.jpg", {"1": "white"}, present.tolist(), hard.tolist()])
    return found


def written(path, whole):
    path.mkdir(exist_ok=True)
    (path / "COLA_singleobjects_benchmark_GQA.json").write_text(json.dumps(whole))
    return path


def official(rows, scores):
    """The mean over classes of the average precision over its hard images, threshold by threshold."""
    of_class = []
    for label in range(len(LABELS)):
        chosen = [at for at, row in enumerate(rows) if row[3][label]]
        right = np.array([rows[at][2][label] for at in chosen])
        if not right.sum():
            continue
        line, value, before = scores[chosen, label], 0.0, 0
        for threshold in sorted(set(line.tolist()), reverse=True):
            taken = line >= threshold
            found = right[taken].sum()
            value += (found - before) / right.sum() * found / taken.sum()
            before = found
        of_class.append(value)
    return float(np.mean(of_class))


def of_items(benchmark, rows, scores):
    """The scores of a matrix of rows and classes, for the items of the benchmark: image with every class."""
    at = [(row, label) for label in range(3) for row in range(len(rows)) if rows[row][3][label]]
    found = np.full((len(benchmark.images), len(benchmark.captions)), 9.0)
    for item, (row, label) in enumerate(at):
        found[item, label] = scores[row, label]
    return found


def test_the_measure_is_the_mean_average_precision_over_hard_images(tmp_path):
    made = rows()
    benchmark = cola.read_single(card("cola-single-gqa"), written(tmp_path, [LABELS, made]), None)
    assert [caption.text for caption in benchmark.captions] == LABELS[:3]
    assert "1 of 4 classes left out" in benchmark.source
    assert len(benchmark.images) == sum(row[3][label] for row in made for label in range(3))
    assert benchmark.images[0].id.startswith("square white plate/vg/")
    assert {image.photo for image in benchmark.images} <= {row[0] for row in made}
    rng = np.random.default_rng(1)
    for _ in range(5):
        scores = rng.permutation(len(made) * 4).reshape(len(made), 4).astype(float)
        answers = forms.answers_of(benchmark, of_items(benchmark, made, scores))
        result = evaluate(benchmark, answers, scorer="drawn", draws=50)
        assert result["t2i_average_precision"].value == pytest.approx(official(made, scores), abs=1e-12)
    # A constant scorer: chance under half, between the worst order and the best.
    constant = forms.answers_of(benchmark, of_items(benchmark, made, np.zeros((len(made), 4))))
    of = {ties: evaluate(benchmark, constant, scorer="c", ties=ties, draws=50) for ties in ("strict", "half")}
    assert of["half"]["t2i_average_precision"].value == pytest.approx(
        chance(benchmark)["t2i_average_precision"], abs=1e-12
    )
    assert of["strict"]["t2i_average_precision"].value < of["half"]["t2i_average_precision"].value
    expected = []
    for label in range(3):
        marks = np.array([row[2][label] for row in made if row[3][label]])
        expected.append(np.mean([_precision(rng.permutation(marks)) for _ in range(1000)]))
    assert of["half"]["t2i_average_precision"].value == pytest.approx(np.mean(expected), abs=0.02)


def _precision(right):
    places = np.flatnonzero(right) + 1
    return float(np.mean(np.arange(1, len(places) + 1) / places))


def test_images_are_embedded_once_and_other_layouts_are_read(tmp_path):
    made = rows(12)
    (tmp_path / "vg").mkdir()
    for at, row in enumerate(made):
        PIL.Image.new("RGB", (8, 8), (at * 20, 9, 9)).save(tmp_path / row[0])
    whole = {"labels": LABELS, "data": [[row[0], *row[2:]] for row in made]}
    named = cola.read_single(card("cola-single-gqa"), written(tmp_path, whole), tmp_path)
    assert named.digest == cola.read_single(
        card("cola-single-paco"), written(tmp_path, [LABELS, made]) / "COLA_singleobjects_benchmark_GQA.json",
        tmp_path,
    ).digest  # fmt: skip
    assert len(named.images) > 12
    found = run(named, load_blind("random"), session=Session(None))
    result = evaluate(named, found, scorer="random", draws=50)
    assert [name for name in result.measures if name.startswith("i2t")] == []
    assert 0 < result["t2i_average_precision"].value < 1
