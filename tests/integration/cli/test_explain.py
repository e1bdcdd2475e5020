"""`counterfoil explain`, from questions to tables, JSON and a page."""

import json
import re
from dataclasses import replace

import numpy as np
import PIL.Image

import counterfoil as cf
from counterfoil.world import benchmarks
from counterfoil.world.sample import choices


def test_questions_are_explained_in_table_json_and_page(counterfoil, tmp_path):
    page, result = tmp_path / "heat.html", tmp_path / "heat.json"
    ids = "swap_obj-00166,add_obj-00499"
    more = f"--questions {ids} --grid 5 --workers 0 --html {page} --json {result}"
    said = counterfoil.succeeds(f"explain pixels:colours world-quads {more}")
    assert re.search(r"scene-00262 with caption-00332\s+2\.7100\s+blue \+1\.53", said.out)
    assert "words are left out by deletion" in said.err
    actual = json.loads(result.read_text())
    pairs = [pair for question in actual["questions"] for pair in question["pairs"]]
    # Each with every cell covered and every word left out.
    scores = sum(26 * (1 + len(pair["words"])) for pair in pairs)
    assert f"at most {scores:,} scores are asked for" in said.err
    assert [question["id"] for question in actual["questions"]] == ids.split(",")
    pair = actual["questions"][0]["pairs"][0]
    assert pair["text"] == "Here is a blue triangle to the right of a small orange diamond."
    dropped = [word for word, drop in zip(pair["words"], pair["drops"], strict=True) if drop]
    assert dropped == ["blue", "orange"]
    heat = pair["heatmaps"]["occlusion"]
    assert np.shape(heat["caption"]) == (5, 5)
    assert np.shape(heat["words"]) == (len(pair["words"]), 5, 5)

    # From Python the same, and nothing is computed again; rows are tables.
    again = cf.explain("pixels:colours", "world-quads", questions=ids.split(","), grid=5, quiet=True)
    assert again.to_json()["questions"] == actual["questions"]
    words = again.to_arrow().to_pylist()
    assert (words[3]["word"], words[3]["drop"]) == ("blue", pair["drops"][3])
    cells = again.to_arrow(by="cell")
    assert len(cells) == 25 * sum(len(p["words"]) + 1 for q in actual["questions"] for p in q["pairs"])
    assert page.read_text().count("<article") == 8

    # A mask token in place of deletion is named.
    said = counterfoil("explain blind:length world-quads --limit 1 --mask", "[MASK]", "--json - -q")
    assert json.loads(said.out)["left_out"] == "by the mask token '[MASK]'"


def test_videos_and_unknown_questions_are_refused(counterfoil, monkeypatch):
    drawn = choices(7, size=32)
    videos = replace(drawn, card=drawn.card.model_copy(update={"shows": "video"}))
    monkeypatch.setitem(benchmarks._DRAWN, "world-choices", lambda _: videos)
    for arguments, line in (
        ("world-choices", "world-choices: explains pictures, not videos"),
        ("world-quads --questions swap_obj-166", "… (500 in all); did you mean 'swap_obj-00166'?"),
    ):
        counterfoil.refused(f"explain blind:length {arguments} -q", says=line)


def test_photographs_of_one_s_own_and_another_file_in_the_way(counterfoil, tmp_path):
    (tmp_path / "photos").mkdir()
    for number, name in enumerate(("one", "two")):
        pixels = np.full((30, 40, 3), 90 * number + 40, np.uint8)
        PIL.Image.fromarray(pixels).save(tmp_path / "photos" / f"{name}.png")
    data = tmp_path / "own.csv"
    rows = ["id,image,caption,negative_image,negative_caption", "17,one.png,a grey cat,two.png,a black dog"]
    data.write_text("\n".join(rows))
    own = ["pairs", "--data", data, "--images", tmp_path / "photos", "--questions", "17", "-q"]
    page = tmp_path / "heat.html"
    assert counterfoil("explain", "pixels:colours", *own, "--html", page).code == 0
    assert page.read_text().count("data:image/webp") == 2
    never = ("--html", page, "--pictures", "never")
    assert counterfoil("explain", "pixels:colours", *own, *never).code == 2
    assert counterfoil("explain", "pixels:colours", *own, *never, "--overwrite").code == 0
    assert "data:image/webp" not in page.read_text()
    counterfoil.fails("explain", "pixels:colours", *own, "--html", data)
    assert data.read_text().startswith("id,")
