"""`counterfoil captions systems`, as a user meets it."""

import csv
import json

import pytest

from .caption_samples import CANDIDATES, written


@pytest.fixture
def predictions(caption_inputs, tmp_path):
    worse = {name: f"{text} somewhere else" for name, text in CANDIDATES.items()}
    worst = dict.fromkeys(CANDIDATES, "nothing at all")
    return [
        written(tmp_path / f"{name}.json", value)
        for name, value in (("good", CANDIDATES), ("fair", worse), ("bad", worst))
    ]


def test_a_table_and_how_metrics_agree_with_people(counterfoil, caption_inputs, predictions, tmp_path):
    people = tmp_path / "m.csv"
    people.write_text("system,M1,M2\nbad,0.1,0.2\ngood,0.9,0.3\nfair,0.5,0.9\nother,1,1\n")
    said = counterfoil.succeeds(
        "captions systems --predictions",
        *predictions,
        f"--references {caption_inputs['references']} --metrics bleu-1,rouge-l --humans {people} "
        f"--out {tmp_path}/t.csv --json {tmp_path}/t.json",
    )
    assert said.out.startswith("3 systems on 3 images")
    rows = list(csv.DictReader((tmp_path / "t.csv").read_text().splitlines()))
    assert [row["system"] for row in rows] == ["good", "fair", "bad"]
    assert [row["M1"] for row in rows] == ["0.9", "0.5", "0.1"]
    result = json.loads((tmp_path / "t.json").read_text())
    correlations = result["agreement"]["correlations"]
    assert {(each["metric"], each["human"]) for each in correlations} == {
        (metric, human) for metric in ("bleu-1", "rouge-l") for human in ("M1", "M2")
    }
    # One system alone says the same of itself.
    alone = counterfoil(
        f"captions score --metrics bleu-1 --candidates {predictions[1]} "
        f"--references {caption_inputs['references']} --json - -q"
    )
    assert json.loads(alone.out)["metrics"]["bleu-1"] == result["systems"]["fair"]["bleu-1"]
    counterfoil.succeeds(
        "captions systems", f"--predictions {predictions[1]} --references {caption_inputs['references']}"
    )


@pytest.fixture
def judged(tmp_path):
    """What three people gave each system's caption of each image."""
    path = tmp_path / "judged.csv"
    lines = ["system,judge,image,quality"]
    for s, system in enumerate(("bad", "fair", "good")):
        for j, judge in enumerate("xyz"):
            lines += [f"{system},{judge},{image},{s + (i * j) % 2}" for i, image in enumerate(CANDIDATES)]
    path.write_text("\n".join([*lines, "other,x,owl,1"]) + "\n")
    return path


def test_judges_and_images_in_every_kind_of_file(counterfoil, caption_inputs, predictions, judged, tmp_path):
    files = {name: tmp_path / f"t.{name}" for name in ("csv", "markdown", "latex", "html", "json")}
    said = counterfoil.succeeds(
        "captions systems --predictions",
        *predictions,
        f"--references {caption_inputs['references']} --metrics bleu-1,rouge-l,cider --humans {judged} "
        "--draws 200",
        *(text for name, path in files.items() for text in (f"--{name}", path)),
    )
    agreed = json.loads(files["json"].read_text())["agreement"]
    assert agreed["interval"]["over"] == "images"
    assert agreed["interval"]["images"] == 3
    metrics = ["bleu-1", "rouge-l", "cider", "one person"]
    assert list(dict.fromkeys(each["metric"] for each in agreed["correlations"])) == metrics
    assert "one person, with the others" in said.out
    assert "rouge-l − cider" in said.out
    # Every number is in every file.
    rows = list(csv.DictReader(files["csv"].read_text().splitlines()))
    values = {(row["model"], row["measure"], row["column"]): float(row["value"]) for row in rows}
    texts = [files[name].read_text().replace("$-$", "-").replace("−", "-") for name in ("markdown", "latex")]
    for one in agreed["correlations"]:
        named = one["metric"].replace("one person", "one person, with the others")
        assert one["value"] in [v for key, v in values.items() if key[:2] == (named, one["measure"])]
        assert all(f"{100 * one['value']:.2f}" in text for text in texts)
    page = files["html"].read_text()
    assert page.count("<table") == 3
    for words in ("one person, with the others", "rouge-l − cider", "only 3 systems"):
        assert words in page
        assert all(words in files[name].read_text().replace("$-$", "−") for name in ("markdown", "latex"))
