"""EMScore weighs tokens by the captions that a benchmark came with, and says where it cannot."""

import json
import pickle

import numpy as np
import pyarrow.parquet as pq
import pytest

from counterfoil.inputs.files import digest_file

WORDS = ["a", "the", "dog", "cat", "cow", "runs", "sleeps", "on", "grass", "bed", "green", "brown"]
COMMON = ("--no-counts", "--draws", 100, "--device", "cpu", "--workers", 0)


def sentences(rng, n):
    return [" ".join(rng.choice(WORDS, rng.integers(3, 8))) for _ in range(n)]


def features(folder, names, rng, width):
    folder.mkdir()
    for name in names:
        np.save(folder / f"{name}.npy", rng.normal(size=(20, width)).astype(np.float32))


@pytest.fixture
def width(spec):
    from counterfoil import catalog
    from counterfoil.benchmarks import Caption

    return catalog.model(spec).local.embed_tokens([[Caption("a", "a dog")]]).__next__()[0].vectors.shape[1]


@pytest.fixture
def vatex(tmp_path, width):
    """VATEX-EVAL's layout, with 12 captions of 4 videos; its training captions beside it."""
    rng = np.random.default_rng(0)
    folder, n = tmp_path / "vatex", 12
    folder.mkdir()
    values = {"candidates_list": np.array(sentences(rng, n))}
    values["gts_list"] = np.array([sentences(rng, 10) for _ in range(n)])
    values["human_scores"] = rng.integers(1, 6, 3 * n).astype(float)
    values["video_ids"] = np.array([f"v{i // 3}" for i in range(n)], dtype=object)
    for name, value in values.items():
        (folder / f"{name}.pkl").write_bytes(pickle.dumps(value))
    features(folder / "VATEX-EVAL_video_feats", [f"v{k}" for k in range(4)], rng, width)
    corpus = {f"t{k}": sentences(rng, 10) for k in range(5)}
    (folder / "vatex_train_en_annotations.json").write_text(json.dumps(corpus))
    return folder


@pytest.fixture
def activitynet(tmp_path, width):
    """ActivityNet-FOIL's layout, with 6 videos; its training captions beside it."""
    rng = np.random.default_rng(1)
    folder, names = tmp_path / "anet", [f"v_{k}" for k in range(6)]
    folder.mkdir()
    times = {name: {"duration": 20.0, "timestamps": [[0.0, 9.0], [8.0, 20.0]]} for name in names}
    right = {name: [{"sentence": text} for text in sentences(rng, 2)] for name in names}
    foil = {name: [{"sentence": text} for text in sentences(rng, 2)] for name in names}
    for file, value in {
        "final_right_video_sentences": {"results": right},
        "final_foil_video_sentences": {"results": foil},
        **{
            f"anet_entities_test_{k}": {
                name: {**facts, "sentences": sentences(rng, 2)} for name, facts in times.items()
            }
            for k in (1, 2)
        },
        "train": {f"t{k}": {"sentences": [*sentences(rng, 3), "long " * 67]} for k in range(5)},
    }.items():
        (folder / f"{file}.json").write_text(json.dumps(value))
    features(folder / "ActivityNet-FOIL_video_feats", names, rng, width)
    return folder


CORPORA = {"vatex-eval": "vatex_train_en_annotations.json", "activitynet-foil": "train.json"}


@pytest.mark.parametrize(
    ("metric", "benchmark"),
    [("em-score", "activitynet-foil"), ("ref-em-score", "vatex-eval"), ("pac-s", "vatex-eval")],
)
def test_the_corpus_beside_the_questions_is_counted(counterfoil, request, benchmark, metric, spec, tmp_path):
    folder = request.getfixturevalue({"vatex-eval": "vatex", "activitynet-foil": "activitynet"}[benchmark])
    corpus = folder / CORPORA[benchmark]
    runs = 0

    def measured(name, *options):
        nonlocal runs
        runs += 1
        out = tmp_path / f"runs{runs}"
        command = ("evaluate", f"metric:{metric}", name, "--backbone", spec, *COMMON, *options, "--out", out)
        said = counterfoil.succeeds(*command, "--json", "-")
        (scores,) = out.rglob("answers.parquet")
        table = pq.read_table(scores).drop_columns(["question"])
        values = np.array([column.to_pylist() for column in table.columns], dtype=float).T.reshape(-1)
        return values.tolist(), json.loads(said.out)["provenance"]["model"], said.err

    result, model, said = measured(benchmark, "--data", folder)
    assert "idf" not in said
    assert "is not in" not in said
    named, by_name, _ = measured(benchmark, "--data", folder, "--set", f"idf={corpus}")
    assert result == named
    assert model["options"]["metric"]["idf"] == f"corpus {digest_file(corpus)}"
    assert model["key"] == by_name["key"]
    captions = {"vatex-eval": 50, "activitynet-foil": 15}[benchmark]
    assert model["made_with"]["idf"] == f"{captions} captions of {corpus.name}"

    other = {"em-score": "candidates", "ref-em-score": "references", "pac-s": "candidates"}[metric]
    rows, of_rows, _ = measured(benchmark, "--data", folder, "--set", f"idf={other}")
    assert not np.allclose(rows, result, atol=1e-6)
    corpus.unlink()
    without, of_none, said = measured(benchmark, "--data", folder)
    assert without == rows
    why = f"metric:{metric} weighs tokens by the {other} that are measured"
    assert f"{benchmark}: {corpus.name} is not in {folder}; {why}" in said
    assert of_none["key"] == of_rows["key"]
    assert of_none["options"]["metric"]["idf"] == other
    assert of_none["made_with"]["idf"] == f"the {other} that are measured"
    # Who asks for the rows knows.
    assert "is not in" not in measured(benchmark, "--data", folder, "--set", f"idf={other}")[2]


def test_a_saved_benchmark_keeps_its_corpus(counterfoil, vatex, tmp_path):
    from counterfoil.benchmarks.benchmark import card
    from counterfoil.benchmarks.folder import load, save
    from counterfoil.benchmarks.readers.specs import read

    facts = card("vatex-eval").model_copy(update={"size": None})
    save(read(facts, vatex, None), tmp_path / "saved")
    saved = load(tmp_path / "saved")
    assert saved.corpus is not None
    assert saved.corpus.read_bytes() == (vatex / CORPORA["vatex-eval"]).read_bytes()
    save(saved, tmp_path / "again")
    manifests = [(tmp_path / name / "manifest.json").read_bytes() for name in ("again", "saved")]
    assert manifests[0] == manifests[1]
    # Without it the folder says that there should be one, and what was there before goes.
    (vatex / CORPORA["vatex-eval"]).unlink()
    save(read(facts, vatex, None), tmp_path / "saved")
    bare = load(tmp_path / "saved").corpus
    assert bare is not None
    assert not bare.exists()
    # One that was changed is no longer what was saved.
    (tmp_path / "again" / "corpus.json").write_text("[]")
    counterfoil.fails("evaluate", "metric:length", tmp_path / "again", says="corpus.json")
