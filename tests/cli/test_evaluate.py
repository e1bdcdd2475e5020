"""`counterfoil evaluate` on the released files, and on everything that can be wrong with a user's own."""

import json
from pathlib import Path

import numpy as np
import pytest

FOLDERS = {"openai": "ViT-B-32", "coco": "CLIP_COCO", "trohn-text": "CLIP_TROHN-Text"}


def _result(counterfoil, *arguments: object) -> dict:
    said = counterfoil("evaluate", *arguments, "--json", "-", "--draws", 200)
    assert said.code == 0, said.err
    return json.loads(said.out)


@pytest.mark.parametrize(
    ("file", "counts"),
    [  # I2T, T2I, group, Ipos2T, Ineg2T, Tpos2I, Tneg2I of 2,933: the released outcomes, summed
        ("ViT-B-32", (2224, 1537, 1439, 2473, 2625, 2030, 2429)),
        ("CLIP_COCO", (2427, 1874, 1788, 2612, 2691, 2135, 2665)),
        ("CLIP_TROHN-Text", (2293, 1824, 1686, 2735, 2460, 2084, 2657)),
    ],
)
def test_bivlc_counts(counterfoil, shared_data: Path, file: str, counts: tuple[int, ...]) -> None:
    result = _result(counterfoil, f"given:{shared_data}/bivlc/{file}.csv", "bivlc")
    names = ("i2t", "t2i", "group", "ipos2t", "ineg2t", "tpos2i", "tneg2i")
    for name, count in zip(names, counts, strict=True):
        estimate = result["measures"][name]
        assert round(estimate["value"] * 2933) == count
        assert estimate["value"] == pytest.approx(count / 2933, abs=1e-12)
        assert estimate["low"] < estimate["value"] < estimate["high"]
        assert estimate["n"] == 2933
    if file == "ViT-B-32":
        swap = result["groups"]["swap"]
        assert [round(100 * swap[name]["value"], 4) for name in names[:3]] == [46.5181, 16.1560, 13.6490]


@pytest.mark.parametrize(
    ("file", "of_7512", "of_7511"),
    [("ViT-B-32", 5751, 5750), ("CLIP_COCO", 6360, 6360), ("CLIP_TROHN-Text", 7016, 7015)],
)
def test_sugarcrepe_counts(counterfoil, shared_data: Path, file: str, of_7512: int, of_7511: int) -> None:
    given = f"given:{shared_data}/bivlc/SUGARCREPE_{file}.csv"
    for extra, n, count in (((), 7512, of_7512), (("--data", shared_data / "sugarcrepe"), 7511, of_7511)):
        accuracy = _result(counterfoil, given, "sugarcrepe", *extra)["measures"]["accuracy"]
        assert (accuracy["n"], round(accuracy["value"] * n)) == (n, count)


def test_winoground_scores_with_tags(counterfoil, shared_data: Path) -> None:
    folder = shared_data / "winoground"
    # The path may be relative to the data folder, as in the README.
    result = _result(counterfoil, "given:scores/clip.jsonl", "winoground", "--data", folder)
    names = ("i2t", "t2i", "group")
    assert [round(100 * result["measures"][name]["value"], 2) for name in names] == [30.75, 10.50, 8.00]
    assert [round(100 * result["groups"]["Both"][name]["value"], 2) for name in names] == [
        80.77,
        42.31,
        38.46,
    ]
    assert [round(100 * result["groups"]["2 Main Preds"][name]["value"], 2) for name in names] == [
        18.52,
        3.70,
        1.85,
    ]
    assert [round(100 * result["groups"]["Series"][name]["value"], 2) for name in names] == [8.70, 0, 0]
    human = _result(counterfoil, "given:scores/human.jsonl", "winoground", "--data", folder)
    assert human["ties"]["questions"] >= 35 * 0.5
    assert [round(100 * human["ties"]["measures"]["optimistic"][name], 2) for name in names] == [
        93.0,
        91.75,
        88.25,
    ]


def test_winoground_embeddings(counterfoil, shared_data: Path) -> None:
    file = "embeddings:clip_vit_b32_laion2b_embeddings.npz"
    result = _result(counterfoil, file, "winoground", "--data", shared_data / "winoground")
    names = ("i2t", "t2i", "group", "group_match")
    assert [round(100 * result["measures"][name]["value"], 2) for name in names] == [
        34.75,
        11.00,
        7.50,
        67.50,
    ]


def test_several_benchmarks_are_a_list_and_runs_are_kept(counterfoil, tmp_path: Path, table: Path) -> None:
    out = tmp_path / "runs" / "length"
    two = ("evaluate", "blind:length", "pairs", "pairs", "--data", table, "--json", tmp_path / "r.json")
    said = counterfoil(*two)
    assert said.code == 0, said.err
    assert [result["benchmark"] for result in json.loads((tmp_path / "r.json").read_text())] == [
        "pairs",
        "pairs",
    ]
    said = counterfoil(*two, "--overwrite", "--out", out)
    _one_line(said, "two benchmarks would be written to one run folder")
    assert counterfoil("evaluate", "blind:length", "pairs", "--data", table, "--out", out).code == 0
    assert sorted(path.name for path in (out / "pairs").iterdir()) == [
        "answers.parquet", "captions.parquet", "card.json", "images.parquet", "items.parquet",
        "manifest.json", "questions.parquet", "result.json",
    ]  # fmt: skip


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A user's own table: three questions on images that are not at hand."""
    path = tmp_path / "mine.csv"
    path.write_text(
        "image,caption,negative_caption,type\n"
        "a.jpg,a cat on a mat,a mat on a cat,swap\n"
        "b.jpg,two dogs,three dogs,replace\n"
        "c.jpg,a red bus that is very long,a red bus,add\n"
    )
    return path


def test_blind_scorers_need_no_images(counterfoil, table: Path) -> None:
    result = _result(counterfoil, "blind:constant", "pairs", "--data", table)
    assert result["measures"]["accuracy"]["value"] == 0
    assert result["ties"]["rate"] == 1
    result = _result(counterfoil, "blind:constant", "pairs", "--data", table, "--ties", "half")
    assert result["measures"]["accuracy"]["value"] == result["measures"]["accuracy"]["chance"] == 0.5


def _one_line(said, *parts: str) -> None:
    assert said.code == 2, said
    assert said.err.count("\n") == 1, said.err
    assert said.out == ""
    for part in parts:
        assert part in said.err


def test_signatures(counterfoil, table: Path) -> None:
    said = counterfoil("evaluate", "blind:length", "pairs", "--data", table, "--signatures", "--json", "-")
    result = json.loads(said.out)
    assert result["signature"].startswith("ties:strict|ci:")
    lines = [line for line in said.err.splitlines() if line.endswith(result["signature"])]
    assert lines == [f"{name}|{result['signature']}" for name in result["measures"]]


def test_bad_names_suggest_good_ones(counterfoil) -> None:
    _one_line(
        counterfoil("evaluate", "blind:length", "winogrund"), "unknown benchmark", "did you mean 'winoground'"
    )
    _one_line(
        counterfoil("evaluate", "blnd:length", "bivlc"), "unknown kind of scorer", "did you mean 'blind'"
    )
    _one_line(counterfoil("evaluate", "blind:lenght", "bivlc"), "did you mean 'length'")
    _one_line(counterfoil("evaluate", "blind", "bivlc"), "a scorer is written KIND:WHAT")


def test_missing_files_are_named(counterfoil, tmp_path: Path, table: Path) -> None:
    _one_line(counterfoil("evaluate", "given:nowhere.csv", "bivlc"), "nowhere.csv", "no such file")
    _one_line(counterfoil("evaluate", "blind:length", "pairs", "--data", tmp_path / "no.csv"), "no such file")
    _one_line(counterfoil("evaluate", "pixels:colours", "pairs", "--data", table), "a.jpg", "--images")


def test_a_hub_benchmark_without_network_is_one_line(counterfoil) -> None:
    pytest.importorskip("datasets")
    _one_line(counterfoil("evaluate", "blind:length", "bivlc"), "--data")


def test_given_answers_that_do_not_fit(counterfoil, tmp_path: Path, table: Path) -> None:
    def given(text: str):
        (tmp_path / "scores.csv").write_text(text)
        return counterfoil("evaluate", f"given:{tmp_path}/scores.csv", "pairs", "--data", table, "-q")

    assert given("id,s0,s1\n0,.2,.1\n1,.2,.1\n2,.2,.1\n").code == 0
    _one_line(given("id,s0,s1\n0,.2,.1\n1,.2,.1\n"), "2")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,.2,.1\n7,.2,.1\n"), "7")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,.2,.1\n1,.2,.1\n"), "1", "twice")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,nan,.1\n2,.2,.1\n"), "scores.csv", "nan")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,inf,.1\n2,.2,.1\n"), "scores.csv", "inf")
    _one_line(given("id,s0,s1\n0,.2,.1\n1,,.1\n2,.2,.1\n"), "scores.csv")
    _one_line(given("foo,bar\nx,y\n"), "scores.csv")
    _one_line(given(""), "scores.csv")


def test_embeddings_that_do_not_fit(counterfoil, tmp_path: Path, table: Path) -> None:
    rng = np.random.default_rng(0)

    def given(**arrays: np.ndarray):
        np.savez(tmp_path / "e.npz", **arrays)
        return counterfoil("evaluate", f"embeddings:{tmp_path}/e.npz", "pairs", "--data", table)

    assert given(images=rng.normal(size=(3, 8)), captions=rng.normal(size=(6, 8))).code == 0
    _one_line(given(images=rng.normal(size=(3, 8)), captions=rng.normal(size=(6, 7))), "8", "7")
    _one_line(given(images=rng.normal(size=(2, 8)), captions=rng.normal(size=(6, 8))), "2", "3")
    _one_line(given(images=np.full((3, 8), np.nan), captions=rng.normal(size=(6, 8))), "e.npz")
    _one_line(given(pictures=rng.normal(size=(3, 8))), "e.npz")
    (tmp_path / "e.npz").write_bytes((tmp_path / "e.npz").read_bytes()[:100])
    _one_line(counterfoil("evaluate", f"embeddings:{tmp_path}/e.npz", "pairs", "--data", table), "e.npz")


def test_nothing_is_left_behind_by_a_failure(counterfoil, tmp_path: Path, table: Path) -> None:
    out = tmp_path / "runs"
    assert counterfoil("evaluate", "pixels:colours", "pairs", "--data", table, "--out", out).code == 2
    assert not out.exists()


def test_a_limit_says_what_the_whole_would_take(counterfoil, tmp_path):
    command = ("evaluate", "pixels:colours", "world-quads", "--draws", 100, "--cache", tmp_path, "--limit")
    new = counterfoil(*command, 10)
    assert "all 500 questions would take about " in new.err
    assert " at this speed\n" in new.err
    known = counterfoil(*command, 10)
    assert "part of this came from the cache; --no-cache shows what all would take\n" in known.err
    assert "would take" not in counterfoil(*command, 500).err
