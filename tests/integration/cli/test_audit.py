"""`counterfoil audit`: tables, page and JSON of the same numbers; SugarCrepe's files; bad input."""

import json

import numpy as np
import pytest

import counterfoil as cf


@pytest.fixture
def table(tmp_path):
    """Pairs whose wrong captions have "indeed" in half of the rows; every fourth has the same words twice."""
    rng = np.random.default_rng(0)
    lines = ["image,caption,negative_caption,type"]
    for i in range(60):
        a, b = rng.choice(["cat", "dog", "cow", "owl"], 2, replace=False)
        eats = "indeed" if i % 4 > 1 else "hay"
        wrong = f"a {b} bites a {a} {i}" if i % 4 == 0 else f"a {a} eats {eats} {i}"
        lines.append(f"i{i}.jpg,a {a} bites a {b} {i},{wrong},{'swap' if i % 4 == 0 else 'other'}")
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def test_tables_page_and_json_of_ones_own_table(counterfoil, table, tmp_path):
    train, scores = tmp_path / "train.txt", tmp_path / "mine-scores.csv"
    scores.write_text("\n".join(["id,s0,s1", *(f"{i},{i % 3},1" for i in range(60))]) + "\n")
    seventh = table.read_text().splitlines()[8].split(",")[1]
    train.write_text(f"{seventh.upper()}.\na hat\n")
    page, result = tmp_path / "audit.html", tmp_path / "audit.json"
    more = f"--against {train} --html {page} --json {result} --draws 200"
    said = counterfoil.succeeds(f"audit pairs --data {table} --model given:{scores} {more}")
    for text in ("blind:learned", "indeed", "same words (15)", "train.txt", "near-duplicates"):
        assert text in said.out, text
    (actual,) = json.loads(result.read_text())["benchmarks"]
    words = {item["word"]: item for item in actual["words"]["artefacts"]}
    assert (words["indeed"]["wrong"], words["indeed"]["right"]) == (30, 0)
    assert (actual["same_words"], actual["leakage"][0]["with"]) == (15, "train.txt")
    assert actual["leakage"][0]["questions"] == 1
    bag = next(item for item in actual["blind"] if item["model"] == "blind:bag-of-words")
    assert bag["groups"]["same words"]["accuracy"]["value"] == 0.5
    text = page.read_text()
    assert "indeed" in text
    assert str(tmp_path) not in text
    assert actual["blind"][-1]["model"] == f"given:{scores}"
    mine = cf.audit("pairs", data=table, draws=200, cache=None, quiet=True)
    assert mine.to_json()["benchmarks"][0]["blind"] == actual["blind"][:-1]
    kinds = mine.to_arrow(by="duplicate")["kind"].to_pylist()
    assert kinds == ["questions twice", "contradictions", "no difference", "near-duplicates"]
    assert mine.to_arrow(by="word")["word"].to_pylist()[0] == mine["pairs"].named[0].word
    assert "same words" in mine.to_arrow()["group"].to_pylist()


def test_forms_without_captions_to_choose_and_with_captions_of_both_sides(counterfoil):
    said = counterfoil.succeeds("audit", "world-gallery", "--draws", 100, "--no-pictures")
    assert "its questions choose among no captions" in said.err
    said = counterfoil.succeeds("audit", "world-quads", "--draws", 100, "--limit", 40, "--no-pictures")
    assert "caption 0 told from caption 1" in said.out


def test_splits_that_share_captions_and_images_are_counted(counterfoil, tmp_path):
    rows = [f"i{i}.jpg,a cat number {i},a dog number {i},{'train' if i < 12 else 'test'}" for i in range(20)]
    # Of the test split two questions have a caption of the training split, one an image.
    rows[13] = "i13.jpg,a cat number 3,a hat number 13,test"
    rows[14] = "i14.jpg,A cat number 4.,a hat number 14,test"
    rows[15] = "i2.jpg,a cow number 15,a hat number 15,test"
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(["image,caption,negative_caption,split", *rows]) + "\n")
    said = counterfoil.succeeds(f"audit pairs --data {path} --draws 100 --json {tmp_path}/a.json")
    (result,) = json.loads((tmp_path / "a.json").read_text())["benchmarks"]
    (shared,) = result["leakage"]
    assert shared["with"] == "train in test"
    assert (shared["questions"], shared["images"]) == (2, 1)
    assert "train in test" in said.out


def test_sugarcrepe_gives_answers_away(shared_data):
    data = shared_data / "sugarcrepe"
    result = cf.audit("sugarcrepe", data=data, draws=100, cache=None, quiet=True)["sugarcrepe"]
    assert (result.same_words, len(result.artefacts)) == (572, 2784)
    assert [item.word for item in result.named[:3]] == ["and", "(more words)", "are"]
    assert (result.named[0].right, result.named[0].wrong) == (30, 1176)
    learned = result.blind[-1]
    assert learned["accuracy"].value > 0.8
    assert learned.groups["add"]["accuracy"].value > 0.99
    for item in result.blind[1:3]:
        assert item.groups["same words"]["accuracy"].value == 0.5
