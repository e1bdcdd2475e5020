"""Questions that compare captions with captions: SugarCrepe++'s text-only task on the command line."""

import json

import numpy as np
import pytest

from counterfoil import catalog
from counterfoil.benchmarks.folder import save
from counterfoil.errors import DataError

MINE = [
    ("a dog bites a man", "a man is bitten by a dog", "a man bites a dog"),
    ("a red cat on the mat", "on the mat lies a red cat", "a cat on the red mat"),
    ("two cats", "a pair of cats", "two dogs"),
    ("a man bites a dog", "a dog is bitten by a man", "a dog bites a man"),
]


@pytest.fixture
def folder(tmp_path):
    """One of SugarCrepe++'s files, and no images."""
    items = [
        {"id": i, "filename": f"{i % 3}.jpg", "caption": a, "caption2": b, "negative_caption": c}
        for i, (a, b, c) in enumerate(MINE)
    ]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "swap_obj.json").write_text(json.dumps(items))
    return tmp_path


def asked(folder, *more):
    data = folder / "data" / "swap_obj.json"
    return ["sugarcrepe-pp-tot", "--data", data, "--no-counts", "--draws", 100, *more]


def accuracy(path):
    result = json.loads(path.read_text())
    return float((result[0] if isinstance(result, list) else result)["measures"]["accuracy"]["value"])


def test_similarities_and_embeddings_are_given_and_compared(counterfoil, folder):
    given = folder / "similarities.csv"
    similar = zip(MINE[::-1], ("1,2,0", "3,2,2", "3,3,1", "1,0,0.5"), strict=True)
    rows = [",".join((*texts, scores)) for texts, scores in similar]
    given.write_text("\n".join(["caption,caption2,negative_caption,s0,s1,s2", *rows]))
    vectors = np.random.default_rng(0).normal(size=(12, 6))
    np.savez(folder / "vectors.npz", captions=vectors)
    for model, name in ((f"given:{given}", "given"), (f"embeddings:{folder / 'vectors.npz'}", "vectors")):
        files = ("--out", folder / name, "--json", folder / "x", "--overwrite")
        said = counterfoil.succeeds("evaluate", model, *asked(folder, *files))
        if name == "given":
            assert accuracy(folder / "x") == 0.5
            assert "ties in 1 question" in said.out
    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    alike = [(a @ b > a @ c) and (a @ b > b @ c) for a, b, c in unit.reshape(4, 3, 6)]
    assert accuracy(folder / "x") == np.mean(alike)
    counterfoil.succeeds("compare", folder / "given", folder / "vectors", "--html", folder / "page.html")
    page = (folder / "page.html").read_text()
    assert "a dog bites a man ~ a man is bitten by a dog" in page
    assert "no image is looked at" in page


@pytest.mark.parametrize("model", ["blind:length", "pixels:colours", "metric:length", "blind:bag-of-words"])
def test_models_that_compare_no_captions_are_refused_in_a_line(counterfoil, folder, model):
    (line,) = counterfoil.fails("evaluate", model, *asked(folder)).err.strip().splitlines()
    assert "cannot answer questions of form 'paraphrase'; given: sugarcrepe-pp-tot" in line
    assert "answered by a dual encoder, a text encoder, a table of answers" in line


def test_nothing_is_explained_or_learned_where_no_image_is(counterfoil, folder):
    benchmark = catalog.benchmark("sugarcrepe-pp-tot", data=folder / "data" / "swap_obj.json", counts=False)
    save(benchmark, folder / "saved")
    counterfoil.refused("explain", "blind:random", folder / "saved", says="these questions compare captions")
    said = counterfoil.succeeds("audit", folder / "saved", "--draws", 100)
    assert "choose among no captions" in said.out + said.err
    with pytest.raises(DataError, match="captions that are compared with each other are no training set"):
        benchmark.questions.training_rows(where="x")
