"""The step `positives`: pairs that models propose are judged, right ones become rows."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks.folder import load
from counterfoil.build.pipeline import BuildRecipe, read_recipe, run_recipe, run_step
from counterfoil.build.steps.positives import MissingPositives
from counterfoil.build.steps.read import ReadRows
from counterfoil.errors import CounterfoilError
from counterfoil.world.scenes import Scene
from counterfoil.world.truth import matches

N = 24


@pytest.fixture
def rows(work):
    read = ReadRows(n=N, size=32, negatives=False, captions="loose")
    return run_recipe(BuildRecipe("r", "R", "", 0, (read,)), work).folders[0].rows()


def _truth(rows):
    scene_of = dict(zip(rows["image"].to_pylist(), rows["scene"].to_pylist(), strict=True))
    texts = set(rows["caption"].to_pylist())
    return {
        (i, text) for i, cell in scene_of.items() for text in texts if matches(text, Scene.from_json(cell))
    }


def _pairs(table):
    return set(zip(table["image"].to_pylist(), table["caption"].to_pylist(), strict=True))


def test_with_everything_judged_all_right_pairs_are_rows(work, rows):
    output = run_step(MissingPositives(k=N, rounds=1), rows, replace(work, step="positives"))
    assert _pairs(output.kept) == _truth(rows)
    assert len(output.kept) == len(_truth(rows)) > N
    assert output.kept.slice(0, N).equals(rows)
    assert not _pairs(output.dropped) & _truth(rows)
    assert set(output.dropped["reason"].to_pylist()) == {"judged wrong"}
    assert len(output.kept) + len(output.dropped) == N * len(set(rows["caption"].to_pylist()))
    # New rows hold what is known of their image.
    scene_of = dict(zip(rows["image"].to_pylist(), rows["scene"].to_pylist(), strict=True))
    assert all(row["scene"] == scene_of[row["image"]] for row in output.kept.to_pylist())


def test_rounds_cost_and_find_what_their_facts_say(work, rows):
    output = run_step(MissingPositives(k=2, rounds=3), rows, replace(work, step="positives"))
    rounds, curve = output.facts["rounds"], output.facts["cost curve"]
    assert [item["total"] for item in rounds] == [len(_truth(rows))] * 3
    assert curve["x"] == [0, *np.cumsum([item["judged"] for item in rounds]).tolist()]
    assert curve["y"] == [0, *np.cumsum([item["right"] for item in rounds]).tolist()]
    # Every judged pair is right or dropped, and right ones are new rows or were rows before.
    assert curve["x"][-1] == len(output.dropped) + curve["y"][-1]
    assert 0 <= curve["y"][-1] - output.facts["found"] <= len(_pairs(rows))
    again = run_step(MissingPositives(k=2, rounds=3), rows, replace(work, step="positives"))
    assert again.kept.equals(output.kept)


def test_people_of_a_table_judge_by_texts_and_pairs_without_a_judge_are_refused(work, rows, tmp_path):
    truth = _truth(rows)
    images, texts = rows["image"].to_pylist(), rows["caption"].to_pylist()
    lines = [
        f'i2t,{image},"{text}",{"100% YES" if (image, text) in truth else "100% NO"}'
        for image in images
        for text in dict.fromkeys(texts)
    ]
    table = tmp_path / "judged.csv"
    table.write_text("direction,image,caption,answer\n" + "\n".join(lines) + "\n")
    step = MissingPositives(k=N, rounds=1, people=str(table))
    assert _pairs(run_step(step, rows.drop_columns(["scene"]), replace(work, step="positives")).kept) == truth
    with pytest.raises(CounterfoilError, match="the pairs that models propose have no judge"):
        run_step(MissingPositives(), rows.drop_columns(["scene"]), replace(work, step="positives"))


def test_the_recipe_assembles_a_gallery_of_many_right_answers(work):
    settings = {"read.n": str(N), "read.size": "32", "positives.k": str(N), "positives.simulate": "0"}
    build = run_recipe(read_recipe("eccv", settings=settings), work)
    gallery = load(work.folder)
    assert gallery.card.form == "gallery"
    assert build.records[-1].facts["questions"] == len(gallery.images) + len(gallery.captions)
    assert len(_pairs(build.folders[-1].rows())) == len(_truth(build.folders[1].rows()))
