"""`counterfoil captions systems`, as a user meets it."""

import csv
import json
from pathlib import Path

import pytest
from scipy.stats import kendalltau

from .caption_samples import CANDIDATES, written


@pytest.fixture
def predictions(caption_inputs, tmp_path: Path) -> list[Path]:
    worse = {name: f"{text} somewhere else" for name, text in CANDIDATES.items()}
    worst = dict.fromkeys(CANDIDATES, "nothing at all")
    return [
        written(tmp_path / f"{name}.json", value)
        for name, value in (("good", CANDIDATES), ("fair", worse), ("bad", worst))
    ]


def test_a_table_and_how_metrics_agree_with_people(
    counterfoil, caption_inputs, predictions, tmp_path
) -> None:
    people = tmp_path / "m.csv"
    people.write_text("system,M1,M2\nbad,0.1,0.2\ngood,0.9,0.3\nfair,0.5,0.9\nother,1,1\n")
    said = counterfoil(
        "captions", "systems", "--predictions", *predictions, "--references", caption_inputs["references"],
        "--metrics", "bleu-1,rouge-l", "--humans", people, "--out", tmp_path / "t.csv",
        "--json", tmp_path / "t.json",
    )  # fmt: skip
    assert said.code == 0, said.err
    assert said.out.startswith("3 systems on 3 images")
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["system"] for row in rows] == ["good", "fair", "bad"]
    assert [row["M1"] for row in rows] == ["0.9", "0.5", "0.1"]
    result = json.loads((tmp_path / "t.json").read_text())
    for each in result["agreement"]["correlations"]:
        mine = [float(row[each["metric"]]) for row in rows]
        theirs = [float(row[each["human"]]) for row in rows]
        if each["measure"] == "kendall_tau_b":
            assert each["value"] == pytest.approx(kendalltau(mine, theirs).statistic)
    # One system alone says the same of itself.
    alone = counterfoil(
        "captions", "score", "--metrics", "bleu-1", "--candidates", predictions[1],
        "--references", caption_inputs["references"], "--json", "-", "-q",
    )  # fmt: skip
    assert json.loads(alone.out)["metrics"]["bleu-1"] == result["systems"]["fair"]["bleu-1"]


def test_what_is_refused(counterfoil, caption_inputs, predictions, tmp_path) -> None:
    common = (
        "captions",
        "systems",
        "--references",
        caption_inputs["references"],
        "--predictions",
        *predictions,
    )
    fewer = written(tmp_path / "fewer.json", {"dog": "a dog"})
    assert "systems wrote captions of different images" in counterfoil(*common, fewer).err
    assert "two systems of one name; given: bad" in counterfoil(*common, predictions[-1]).err
    people = tmp_path / "m.csv"
    for text, said in (
        ("system,M1\ngood,1\n", "systems that people gave nothing; given: fair, bad"),
        ("who,M1\ngood,1\n", "no column names the systems; given: who, M1"),
        ("system\ngood\n", "no scores of people"),
        ("system,M1\ngood,1\nfair,x\nbad,1\n", "row 2, column 'M1': not a number; given: x"),
        ("system,M1\ngood,1\ngood,2\nbad,1\n", "a system occurs twice; given: good"),
    ):
        people.write_text(text)
        found = counterfoil(*common, "--humans", people)
        assert found.code == 2
        assert said in found.err
        assert found.err.count("\n") == 1
    two = counterfoil(*common[:-1], "--humans", people)
    assert two.code == 2
    assert "too few systems to correlate" in two.err
