"""Right pairs of several sources in one set, against counting over sets."""

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from counterfoil import catalog
from counterfoil.build.step import StepContext
from counterfoil.build.steps.positives import OUTVOTED, WRONG, Merge
from counterfoil.errors import CounterfoilError

ECCV = Path(__file__).parents[3] / "../shared/data/eccv"


def work(folder: Path) -> StepContext:
    return StepContext(
        folder,
        step="merge",
        benchmark=lambda name, data, images: catalog.benchmark(name, data=data, images=images, counts=False),
    )


@pytest.fixture
def tables(tmp_path: Path) -> tuple[pa.Table, Path]:
    rows = pa.table({"id": ["1", "2", "3"], "image": ["a", "a", "b"], "caption": ["x", "y", "x"]})
    (tmp_path / "rated.csv").write_text("image,caption,rating\na,x,4.2\na,y,1.0\nb,z,3.0\n")
    (tmp_path / "said.csv").write_text(
        "image,caption,answer\na,x,100% YES\na,y,no\nb,x,Partially YES\nc,x,no\n"
    )
    return rows, tmp_path


def test_sources_are_joined_by_each_rule(tables) -> None:
    rows, folder = tables
    files = (str(folder / "rated.csv"), str(folder / "said.csv"))
    expected = {"any": {"a/x", "a/y", "b/x", "b/z"}, "majority": {"a/x", "b/x", "b/z"}, "all": {"a/x"}}
    for rule, kept in expected.items():
        made = Merge(tables=files, rule=rule).run(rows, work(folder))
        assert set(made.kept["id"].to_pylist()) == kept
        assert made.reasons == {OUTVOTED: 5 - len(kept)}
    made = Merge(tables=files).run(rows, work(folder))
    assert made.facts["sources"]["rated"]["right"] == 2
    assert made.facts["sources"]["rated"]["alone"] == 1
    assert made.facts["sources"]["rated"]["also_in"]["said"][0] == 0.5
    by_id = {row["id"]: row for row in made.kept.to_pylist()}
    assert by_id["a/x"]["sources"] == "rows+rated+said"
    assert by_id["b/x"]["gain"] == pytest.approx(0.75)


def test_verified_pairs_decide_and_say_what_sources_are_worth(tables) -> None:
    rows, folder = tables
    (folder / "verified.csv").write_text("image,caption,right\na,x,true\na,y,false\nb,z,true\nd,w,true\n")
    made = Merge(tables=(str(folder / "rated.csv"),), verified=str(folder / "verified.csv")).run(
        rows, work(folder)
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
def test_eccv_and_cxc(tmp_path: Path) -> None:
    nothing = pa.table({"id": pa.array([], pa.string()), "image": [], "caption": []})
    made = Merge(benchmarks=("eccv", "cxc"), data=str(ECCV)).run(nothing, work(tmp_path))

    def pairs(name: str) -> set[tuple[int, int]]:
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
def test_tables_that_hold_no_pairs(content: str, message: str, tables) -> None:
    rows, folder = tables
    (folder / "odd.csv").write_text(content)
    with pytest.raises(CounterfoilError, match=message):
        Merge(tables=(str(folder / "odd.csv"),)).run(rows, work(folder))
    with pytest.raises(CounterfoilError, match="two sources have one name"):
        Merge(tables=(str(folder / "rated.csv"), str(folder / "rated.csv"))).run(rows, work(folder))
