"""The step `positives`: pairs that models propose are judged, right ones become rows."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from counterfoil import catalog
from counterfoil.benchmarks.folder import load
from counterfoil.build.pipeline import BuildRecipe, read_recipe, run_recipe, run_step
from counterfoil.build.step import StepContext
from counterfoil.build.steps.positives import OUTVOTED, WRONG, Merge, MissingPositives
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
    assert [each["total"] for each in rounds] == [len(_truth(rows))] * 3
    assert curve["x"] == [0, *np.cumsum([each["judged"] for each in rounds]).tolist()]
    assert curve["y"] == [0, *np.cumsum([each["right"] for each in rounds]).tolist()]
    # Every judged pair is right or dropped, and right ones are new rows or were rows before.
    assert curve["x"][-1] == len(output.dropped) + curve["y"][-1]
    assert 0 <= curve["y"][-1] - output.facts["found"] <= len(_pairs(rows))
    again = run_step(MissingPositives(k=2, rounds=3), rows, replace(work, step="positives"))
    assert again.kept.equals(output.kept)


def test_people_of_a_table_judge_by_the_captions_texts(work, rows, tmp_path):
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
    output = run_step(step, rows.drop_columns(["scene"]), replace(work, step="positives"))
    assert _pairs(output.kept) == truth


def test_pairs_without_a_judge_are_refused(work, rows):
    with pytest.raises(CounterfoilError, match="the pairs that models propose have no judge"):
        run_step(MissingPositives(), rows.drop_columns(["scene"]), replace(work, step="positives"))


def test_the_recipe_assembles_a_gallery_of_many_right_answers(work):
    settings = {"read.n": str(N), "read.size": "32", "positives.k": str(N), "positives.simulate": "0"}
    build = run_recipe(read_recipe("eccv", settings=settings), work)
    gallery = load(work.folder)
    assert gallery.card.form == "gallery"
    assert build.records[-1].facts["questions"] == len(gallery.images) + len(gallery.captions)
    rows = build.folders[-1].rows()
    assert len(_pairs(rows)) == len(_truth(build.folders[1].rows()))


ECCV = Path(__file__).parents[3] / "../shared/data/eccv"


def merging(folder):
    return StepContext(
        folder,
        step="merge",
        benchmark=lambda name, data, images: catalog.benchmark(name, data=data, images=images, counts=False),
    )


@pytest.fixture
def tables(tmp_path):
    rows = pa.table({"id": ["1", "2", "3"], "image": ["a", "a", "b"], "caption": ["x", "y", "x"]})
    (tmp_path / "rated.csv").write_text("image,caption,rating\na,x,4.2\na,y,1.0\nb,z,3.0\n")
    (tmp_path / "said.csv").write_text(
        "image,caption,answer\na,x,100% YES\na,y,no\nb,x,Partially YES\nc,x,no\n"
    )
    return rows, tmp_path


def test_sources_are_joined_by_each_rule(tables):
    rows, folder = tables
    files = (str(folder / "rated.csv"), str(folder / "said.csv"))
    expected = {"any": {"a/x", "a/y", "b/x", "b/z"}, "majority": {"a/x", "b/x", "b/z"}, "all": {"a/x"}}
    for rule, kept in expected.items():
        made = Merge(tables=files, rule=rule).run(rows, merging(folder))
        assert set(made.kept["id"].to_pylist()) == kept
        assert made.reasons == {OUTVOTED: 5 - len(kept)}
    made = Merge(tables=files).run(rows, merging(folder))
    assert made.facts["sources"]["rated"]["right"] == 2
    assert made.facts["sources"]["rated"]["alone"] == 1
    assert made.facts["sources"]["rated"]["also_in"]["said"][0] == 0.5
    by_id = {row["id"]: row for row in made.kept.to_pylist()}
    assert by_id["a/x"]["sources"] == "rows+rated+said"
    assert by_id["b/x"]["gain"] == pytest.approx(0.75)


def test_verified_pairs_decide_and_say_what_sources_are_worth(tables):
    rows, folder = tables
    (folder / "verified.csv").write_text("image,caption,right\na,x,true\na,y,false\nb,z,true\nd,w,true\n")
    made = Merge(tables=(str(folder / "rated.csv"),), verified=str(folder / "verified.csv")).run(
        rows, merging(folder)
    )
    assert set(made.kept["id"].to_pylist()) == {"a/x", "b/x", "b/z", "d/w"}
    assert made.reasons == {WRONG: 1}
    of = made.facts["sources"]
    assert of["rows"]["precision"][0] == 0.5
    assert of["rows"]["recall"][0] == pytest.approx(1 / 3)
    assert of["rated"]["precision"][0] == 1.0
    assert of["rated"]["recall"][0] == pytest.approx(2 / 3)
    assert json.dumps(made.facts)


@pytest.mark.skipif(not ECCV.is_dir(), reason="ECCV Caption's files are not here")
def test_eccv_and_cxc(tmp_path):
    nothing = pa.table({"id": pa.array([], pa.string()), "image": [], "caption": []})
    made = Merge(benchmarks=("eccv", "cxc"), data=str(ECCV)).run(nothing, merging(tmp_path))

    def pairs(name):
        i2t = json.loads((ECCV / f"{name}_image_to_caption.json").read_text())
        t2i = json.loads((ECCV / f"{name}_caption_to_image.json").read_text())
        found = {(int(image), int(each)) for image, captions in i2t.items() for each in captions}
        return found | {(int(each), int(caption)) for caption, images in t2i.items() for each in images}

    test = catalog.benchmark("eccv", data=ECCV)
    images, captions = ({int(each.id) for each in items} for items in (test.images, test.captions))
    # Two right pairs of ECCV Caption are of items outside of COCO's test half.
    eccv, cxc = (
        {pair for pair in pairs(name) if pair[0] in images and pair[1] in captions}
        for name in ("eccv", "cxc")
    )
    assert len(pairs("eccv")) - len(eccv) == 2
    of = made.facts["sources"]
    assert of["eccv"]["right"] == len(eccv)
    assert of["cxc"]["right"] == len(cxc)
    assert of["eccv"]["also_in"]["cxc"][0] == pytest.approx(len(eccv & cxc) / len(eccv))
    assert len(made.kept) == len(eccv | cxc)
    assert not np.isnan(made.kept["gain"].to_numpy()).any()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("image,caption,answer\na,x,perhaps\n", "cannot be read"),
        ("image,caption\na,\n", "without an image or a caption"),
        ("image,text\na,x\n", "no column 'caption'"),
        ("image,caption,rating\na,x,high\n", "rating"),
    ],
)
def test_tables_that_hold_no_pairs(content, message, tables):
    rows, folder = tables
    (folder / "odd.csv").write_text(content)
    with pytest.raises(CounterfoilError, match=message):
        Merge(tables=(str(folder / "odd.csv"),)).run(rows, merging(folder))
    with pytest.raises(CounterfoilError, match="two sources have one name"):
        Merge(tables=(str(folder / "rated.csv"), str(folder / "rated.csv"))).run(rows, merging(folder))
