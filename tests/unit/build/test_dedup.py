"""Selection, duplicates and leakage against plain loops, and near-duplicates against all pairs."""

import json
from math import ceil

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.benchmarks.caption_files import read_texts
from counterfoil.build.pipeline import run_step
from counterfoil.build.step import StepContext
from counterfoil.build.steps.dedup import (
    Clean,
    Dedup,
    bands_of,
    first_of_alike,
    near_duplicates,
    shingle_hashes,
)
from counterfoil.build.steps.rate import Select
from counterfoil.build.steps.registry import STEPS
from counterfoil.errors import InputError
from counterfoil.evaluation.duplicates import near_pairs, normal, shingles
from refusals import refuses


@pytest.fixture
def work(tmp_path):
    return StepContext(tmp_path, step="1-step")


def ids(table):
    return table["id"].to_pylist()


def test_the_best_share_of_every_category_is_kept(work):
    rng = np.random.default_rng(0)
    n = 700
    numbers = {name: np.round(rng.normal(size=n), 1) for name in ("vera", "cola")}
    labels = rng.choice(["swap", "add", "replace"], n, p=[0.1, 0.3, 0.6]).tolist()
    labels[3] = None
    names = [f"row {i}" for i in rng.permutation(n)]
    rows = pa.table({"id": names, "subset": labels, **numbers})
    rows = rows.set_column(
        2, "vera", pa.array([None if i % 50 == 0 else v for i, v in enumerate(numbers["vera"])])
    )
    output = run_step(Select(by=("vera", "cola"), share=0.35), rows, work)
    expected = set()
    for label in dict.fromkeys(labels):
        own = [
            (-(r["vera"] + r["cola"]), r["id"])
            for r in rows.to_pylist()
            if r["subset"] == label and r["vera"] is not None
        ]
        expected |= {name for _, name in sorted(own)[: ceil(0.35 * len(own))]}
    assert set(ids(output.kept)) == expected
    assert output.reasons["no score"] == n // 50
    assert sum(item["kept"] for item in output.facts["categories"].values()) == len(expected)
    assert ids(run_step(Select(by=("cola",), share=1.0, category=None), rows, work).kept) == names
    refuses("holds no numbers", run_step, Select(by=("subset",)), rows, work)
    refuses("by: number of values", Select, by=(), error=InputError)
    assert len({step.summary for step in STEPS.values()}) == len(STEPS)


def test_near_duplicates_are_those_of_all_pairs(shared_data):
    held = json.loads((shared_data / "sugarcrepe" / "replace_att.json").read_text())
    texts = list(
        dict.fromkeys(normal(row[role]) for row in held.values() for role in ("caption", "negative_caption"))
    )
    for threshold in (0.8, 0.5):
        pairs, alike = near_duplicates(texts, threshold=threshold, seed=1)
        exact = near_pairs(texts, threshold=threshold)
        result = list(map(tuple, pairs.tolist()))
        # None that is not alike; of those that are, the share that banding promises.
        assert set(result) <= set(exact)
        assert len(result) >= 0.99 * len(exact) > 50
        assert result == sorted(result, key=lambda pair: pair[::-1])
        for (i, j), value in list(zip(result, alike, strict=True))[:50]:
            one, other = shingles(texts[i]), shingles(texts[j])
            assert value == pytest.approx(len(one & other) / len(one | other))
        again = near_duplicates(texts, threshold=threshold, seed=1)
        assert all((a == b).all() for a, b in zip((pairs, alike), again, strict=True))


@pytest.mark.parametrize("threshold", [0.05, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_bands_find_a_pair_at_the_threshold_and_hashes_are_those_of_sets(threshold):
    bands, width = bands_of(threshold)
    assert bands * width <= 128
    assert width == 1 or 1 - (1 - threshold**width) ** bands >= 0.99
    texts = ["", "ab", "abcd", "abcdabcd", "ünïcode 🐈 text", "a red cat"]
    tokens, offsets = shingle_hashes(texts)
    for i, text in enumerate(texts):
        assert len(set(tokens[int(offsets[i]) : int(offsets[i + 1])].tolist())) == len(shingles(text))


def test_dropped_rows_are_alike_to_a_row_that_stays():
    rng = np.random.default_rng(0)
    pairs = sorted(
        {tuple(sorted(pair)) for pair in rng.integers(0, 60, (150, 2)).tolist() if pair[0] != pair[1]}
    )
    pairs.sort(key=lambda pair: pair[::-1])
    stands = first_of_alike(60, np.array(pairs))
    kept = {i for i in range(60) if stands[i] == i}
    assert not any({i, j} <= kept for i, j in pairs)
    assert all((stands[i], i) in pairs and stands[i] in kept for i in range(60) if i not in kept)


def rows_of(texts, **more):
    table = {"id": [str(i) for i in range(len(texts))], "caption": ["a cat"] * len(texts)}
    return pa.table({**table, "negative_caption": texts, **more})


def test_of_equal_and_similar_captions_one_is_kept(work):
    texts = [
        "A red cat sits on the mat near the old door.",
        "a red cat  sits on the mat near the old door",
        "A red cat sits on the mat near the old doors.",
        "Two dogs.",
        "two dogs",
        "A boat.",
    ]
    rows = rows_of(texts, score=[1.0, 5.0, 2.0, 1.0, 1.0, None], subset=list("aababa"))
    plain = run_step(Dedup(), rows, work)
    assert ids(plain.kept) == ["0", "2", "3", "5"]
    assert plain.dropped.select(["id", "reason", "same_as"]).to_pylist() == [
        {"id": "1", "reason": "exact duplicate", "same_as": "0"},
        {"id": "4", "reason": "exact duplicate", "same_as": "3"},
    ]
    groups = {"groups": 2, "rows": 2, "largest": 2, "examples": [["0", "1"], ["3", "4"]]}
    assert plain.facts["exact"] == groups
    near = run_step(Dedup(near=0.8, best="score"), rows, work)
    assert ids(near.kept) == ["1", "3", "5"]
    assert near.reasons == {"exact duplicate": 2, "near-duplicate": 1}
    assert {row["id"]: row["same_as"] for row in near.dropped.to_pylist()} == {"0": "1", "2": "1", "4": "3"}
    assert ids(run_step(Dedup(near=0.8, within="subset"), rows, work).kept) == ["0", "2", "3", "4", "5"]
    assert ids(run_step(Dedup(fields=("caption", "negative_caption")), rows, work).kept) == ids(plain.kept)
    refuses("holds no texts", run_step, Dedup(fields=("score",)), rows, work)


def test_near_duplicates_of_many_captions_leave_no_pair(work, shared_data):
    held = json.loads((shared_data / "sugarcrepe" / "swap_att.json").read_text())
    output = run_step(Dedup(near=0.6), rows_of([row["negative_caption"] for row in held.values()] * 2), work)
    left = [normal(text) for text in output.kept["negative_caption"].to_pylist()]
    assert len(set(left)) == len(left)
    assert len(near_pairs(left, threshold=0.6)) <= 1
    assert output.reasons["near-duplicate"] > 5
    stands = dict(zip(ids(output.dropped), output.dropped["same_as"].to_pylist(), strict=True))
    assert set(stands.values()) <= set(ids(output.kept))


def test_rows_shared_with_other_sets_are_dropped(work, tmp_path):
    texts = ["Is it a dog?", "a dog runs", "a blue bus waits at the long station", "one", "two.", "three"]
    images = ["x/1.jpg", "2.jpg", "3.jpg", "COCO_val2014_000000000042.jpg", "5.jpg", "6.jpg"]
    rows = rows_of(texts, image=images, caption=["c0", "c1", "c2", "c3", "c4", "c5"])
    other, bus = tmp_path / "other.csv", "A blue bus waits at the long stations."
    other.write_text(f"caption,image_id\nA dog runs!,77\n{bus},000000000042\n")
    assert len(read_texts(other)) == 2
    output = run_step(Clean(against=(str(other),), near=0.8), rows, work)
    assert {row["id"]: row["reason"] for row in output.dropped.to_pylist()} == {
        "0": "a question",
        "1": "caption in another set",
        "2": "caption alike to one in another set",
        "3": "image in another set",
    }
    assert output.facts["sets"][str(other)] == {"captions": 1, "alike": 1, "images": 1}
    assert ids(run_step(Clean(questions=False), rows, work).kept) == list("012345")
    assert ids(run_step(Clean(full_stop=True, questions=False), rows, work).kept) == ["0", "4"]
    refuses("no such file", run_step, Clean(against=("gone.csv",)), rows, work)
