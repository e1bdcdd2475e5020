"""Questions that compare captions with captions: SugarCrepe++'s text-only task on the command line."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from counterfoil import catalog
from counterfoil.benchmarks.folder import save
from counterfoil.engine.run import run
from counterfoil.engine.session import Session
from counterfoil.errors import DataError
from counterfoil.models.base import Options

MINE = [
    ("a dog bites a man", "a man is bitten by a dog", "a man bites a dog"),
    ("a red cat on the mat", "on the mat lies a red cat", "a cat on the red mat"),
    ("two cats", "a pair of cats", "two dogs"),
    ("a man bites a dog", "a dog is bitten by a man", "a dog bites a man"),
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """One of SugarCrepe++'s files, and no images."""
    items = [
        {"id": at, "filename": f"{at % 3}.jpg", "caption": a, "caption2": b, "negative_caption": c}
        for at, (a, b, c) in enumerate(MINE)
    ]
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "swap_obj.json").write_text(json.dumps(items))
    return tmp_path


def asked(folder: Path, *more: object) -> list[object]:
    data = folder / "data" / "swap_obj.json"
    return ["sugarcrepe-pp-tot", "--data", data, "--no-counts", "--draws", 100, *more]


def _noted(stages: list[tuple[str, int, int]], stage: str, done: int, total: int) -> None:
    stages.append((stage, done, total))


def accuracy(path: Path) -> float:
    found = json.loads(path.read_text())
    return float((found[0] if isinstance(found, list) else found)["measures"]["accuracy"]["value"])


def test_similarities_and_embeddings_are_given_and_compared(counterfoil, folder: Path) -> None:
    given = folder / "similarities.csv"
    given.write_text(
        "caption,caption2,negative_caption,s0,s1,s2\n"
        + "".join(
            f"{a},{b},{c},{s}\n"
            for (a, b, c), s in zip(MINE[::-1], ("1,2,0", "3,2,2", "3,3,1", "1,0,0.5"), strict=True)
        )
    )
    vectors = np.random.default_rng(0).normal(size=(12, 6))
    np.savez(folder / "vectors.npz", captions=vectors)
    for scorer, name in ((f"given:{given}", "given"), (f"embeddings:{folder / 'vectors.npz'}", "vectors")):
        files = ("--out", folder / name, "--json", folder / "x", "--overwrite")
        said = counterfoil.succeeds("evaluate", scorer, *asked(folder, *files))
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


@pytest.mark.parametrize("scorer", ["blind:length", "pixels:colours", "metric:length", "blind:bag-of-words"])
def test_scorers_that_compare_no_captions_are_refused_in_a_line(
    counterfoil, folder: Path, scorer: str
) -> None:
    said = counterfoil.fails("evaluate", scorer, *asked(folder))
    (line,) = said.err.strip().splitlines()
    assert "cannot answer questions of form 'paraphrase'; given: sugarcrepe-pp-tot" in line
    assert "answered by a dual encoder, a text encoder, a table of answers" in line


def test_nothing_is_explained_or_learned_where_no_image_is(counterfoil, folder: Path) -> None:
    benchmark = catalog.benchmark("sugarcrepe-pp-tot", data=folder / "data" / "swap_obj.json", counts=False)
    save(benchmark, folder / "saved")
    counterfoil.refused("explain", "blind:random", folder / "saved", says="these questions compare captions")
    said = counterfoil.succeeds("audit", folder / "saved", "--draws", 100)
    assert "choose among no captions" in said.out + said.err
    with pytest.raises(DataError, match="captions that are compared with each other are no training set"):
        benchmark.questions.training_rows(where="x")


@pytest.mark.models
def test_text_encoders_answer_with_their_vectors_and_keep_them(counterfoil, folder: Path) -> None:
    pytest.importorskip("transformers")
    pytest.importorskip("open_clip")
    from tiny_families import save_clip, save_text_models

    save_text_models(folder)
    save_clip(folder / "clip")
    benchmark = catalog.benchmark("sugarcrepe-pp-tot", data=folder / "data" / "swap_obj.json", counts=False)
    for spec in (f"text-encoder:{folder / 'bert'}", f"hf:{folder / 'clip'}"):
        scorer = catalog.scorer(spec, Options(device="cpu"))
        (rows,) = scorer.embed_captions([list(benchmark.captions)])
        rows = rows.astype(np.float64).reshape(4, 3, -1)
        expected = [[a @ b, a @ c, b @ c] for a, b, c in rows]
        found = run(benchmark, scorer, session=Session(folder / "kept", batch_size=2))
        np.testing.assert_allclose(found.values, expected, atol=2e-6)
        # Captions alone are embedded, and not again.
        stages: list[tuple[str, int, int]] = []
        again = Session(folder / "kept", progress=partial(_noted, stages))
        assert run(benchmark, scorer, session=again).values.tobytes() == found.values.tobytes()
        assert stages == [("embedding captions", 10, 10)]
    counterfoil.succeeds("evaluate", spec, *asked(folder, "--device", "cpu"))
    counterfoil.fails("evaluate", f"text-encoder:{folder / 'bert'}", "pairs", "--data", folder / "none.csv")
    (folder / "none.csv").write_text("image,caption,negative_caption\nx.jpg,a cat,a dog\n")
    counterfoil.fails(
        f"evaluate text-encoder:{folder / 'bert'} pairs --data {folder}/none.csv",
        says="a text encoder cannot answer questions of form 'choice'",
    )
