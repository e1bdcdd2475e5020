"""Recipes and their runs: what is read, in which order, what is kept, and what is run again."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from counterfoil import catalog
from counterfoil.build.pipeline import BuildRecipe, check_images, read_recipe, run_recipe, shipped
from counterfoil.build.step import Output, split_rows, with_column
from counterfoil.build.steps.assemble import Assemble
from counterfoil.build.steps.caption import WriteCaptions
from counterfoil.build.steps.filter import Choose
from counterfoil.build.steps.imagine import Imagine
from counterfoil.build.steps.read import ReadRows
from counterfoil.build.steps.registry import STEPS, StepEntry
from counterfoil.errors import CounterfoilError, DataError, InputError
from refusals import refuses


@dataclass(frozen=True)
class KeepShort:
    """Rows whose caption has at most `words` words."""

    name: ClassVar[str] = "keep-short"
    summary: ClassVar[str] = "short captions"
    version: ClassVar[int] = 1
    words: int = field(default=8, metadata={"help": "Words."})
    ran: ClassVar[list[str]] = []
    requires = ("caption",)
    produces = ("words",)

    def run(self, rows, work):
        self.ran.append(work.step)
        lengths = np.array([len(text.split()) for text in rows["caption"].to_pylist()])
        rows = with_column(rows, "words", pa.array(lengths))
        kept, dropped = split_rows(rows, lengths <= self.words, [f"{n} words" for n in lengths])
        return Output(kept, dropped, {"drawn": work.rng("a").random()})


def _recipe(*steps, seed=0):
    return BuildRecipe("mine", "Mine", "", seed, (ReadRows(n=21, size=32), *steps))


@pytest.fixture(autouse=True)
def _fresh():
    KeepShort.ran.clear()


def test_every_row_goes_on_or_is_dropped_with_a_reason(work):
    build = run_recipe(_recipe(KeepShort()), work)
    first, second = build.folders
    rows, kept, dropped = first.rows(), second.rows(), second.dropped()
    assert sorted(kept["id"].to_pylist() + dropped["id"].to_pylist()) == sorted(rows["id"].to_pylist())
    assert all(len(text.split()) <= 8 for text in kept["caption"].to_pylist())
    lengths = [len(text.split()) for text in dropped["caption"].to_pylist()]
    assert dropped["reason"].to_pylist() == [f"{n} words" for n in lengths]
    assert build.records[1].dropped == {f"{n} words": lengths.count(n) for n in set(lengths)}
    assert list(build.records[1].dropped.values()) == sorted(build.records[1].dropped.values(), reverse=True)
    assert build.records[1].made == ["words"]
    assert (build.records[1].rows_in, build.records[1].rows_out) == (21, len(kept))


def test_images_that_a_later_step_opens_are_looked_for_before_the_first(work, tmp_path):
    (tmp_path / "photos").mkdir()
    (tmp_path / "rows.csv").write_text("image,caption\na.jpg,a cat\nb.jpg,a dog\n")
    (tmp_path / "photos" / "a.jpg").write_bytes(b"never opened")
    read = ReadRows(source=str(tmp_path / "rows.csv"), images=str(tmp_path / "photos"))
    opening = Choose(image="image", caption="caption", model="blind:length")
    recipe = BuildRecipe("mine", "Mine", "", 0, (read, KeepShort(), opening))
    refuses(r"images that step choose opens .*given: 1 of 2, such as b\.jpg", run_recipe, recipe, work)
    assert KeepShort.ran == []
    # Without a step that opens them nobody misses them.
    (named,) = (replace(read, images=None),)
    run_recipe(replace(recipe, steps=(named, KeepShort())), replace(work, folder=tmp_path / "other"))
    assert KeepShort.ran == ["2-keep-short"]


def test_rows_that_name_no_image_are_found_before_the_first_step(work, tmp_path):
    (tmp_path / "rows.csv").write_text("id,image,caption,negative_caption\na,a.jpg,x y,y x\nb,,x z,z x\n")
    recipe = _recipe(KeepShort(), Assemble())
    read = ReadRows(source=str(tmp_path / "rows.csv"))
    with pytest.raises(DataError, match=r"rows without image, which step assemble .* such as row 'b'"):
        run_recipe(replace(recipe, steps=(read, *recipe.steps[1:])), work)
    assert KeepShort.ran == []
    # Without a step that reads them nobody misses them.
    run_recipe(replace(recipe, steps=(read, KeepShort())), replace(work, folder=tmp_path / "other"))
    assert KeepShort.ran == ["2-keep-short"]
    # One that drops such rows, with the reason, leaves none to those after it.
    check_images(pa.table({"id": ["a"], "image": [None]}), (WriteCaptions(by="chat:u#m"), Assemble()), work)


def test_finished_steps_are_not_run_again_and_changed_ones_are(work, digests):
    recipe = _recipe(KeepShort(), replace(KeepShort(), words=7))
    run_recipe(recipe, work)
    assert KeepShort.ran == ["2-keep-short", "3-keep-short"]
    before = digests(work.folder)
    run_recipe(recipe, work)
    assert KeepShort.ran == ["2-keep-short", "3-keep-short"]
    assert digests(work.folder) == before
    run_recipe(_recipe(KeepShort(), replace(KeepShort(), words=6)), work)
    assert KeepShort.ran[2:] == ["3-keep-short"]
    run_recipe(replace(recipe, seed=1), work)
    assert KeepShort.ran[3:] == ["2-keep-short", "3-keep-short"]
    run_recipe(recipe, work)
    assert digests(work.folder) == before


def test_a_step_with_damaged_or_missing_files_is_run_again(work, digests):
    run_recipe(_recipe(KeepShort()), work)
    before = digests(work.folder)
    for name in ("rows.parquet", "manifest.json"):
        file = work.folder / "steps" / "2-keep-short" / name
        for damage in (lambda file: file.write_bytes(file.read_bytes()[:-20]), Path.unlink):
            damage(file)
            KeepShort.ran.clear()
            run_recipe(_recipe(KeepShort()), work)
            assert KeepShort.ran == ["2-keep-short"]
            assert digests(work.folder) == before


def test_a_step_whose_image_is_gone_makes_it_again_and_no_other_step_is_run(work, digests):
    recipe = _recipe(KeepShort(), Imagine(size=32), replace(KeepShort(), words=9))
    ran = []
    note = lambda label, rows: ran.append(label)  # noqa: E731
    build = run_recipe(recipe, work, begun=note)
    before = digests(work.folder)
    for label, column in (("1-read", "image"), ("3-imagine", "negative_image")):
        ran.clear()
        rows = next(item for item in build.folders if item.label == label).rows()
        (work.images / rows[column][0].as_py()).unlink()
        run_recipe(recipe, work, begun=note)
        assert ran == [label]
        assert digests(work.folder) == before


def test_a_shorter_recipe_leaves_nothing_of_a_longer_one(work, digests, tmp_path):
    run_recipe(_recipe(KeepShort()), work)
    (work.folder / "images" / f"{0:032x}.png").write_bytes(b"x")
    mine = [work.folder / "images" / "mine.png", work.folder / "steps" / "9-mine" / "thesis.tex"]
    for path in mine:
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"x")
    short = _recipe()
    run_recipe(short, work)
    # Files that no step wrote stay.
    assert [path.read_bytes() for path in mine] == [b"x", b"x"]
    for path in mine:
        path.unlink()
    other = replace(work, folder=tmp_path / "other")
    run_recipe(short, other)
    assert digests(work.folder) == digests(other.folder)


RECIPE = """
title = "Mine"
[[steps]]
do = "read"
n = 14
[[steps]]
do = "assemble"
form = "choice"
"""


@pytest.mark.parametrize(
    ("text", "error"),
    [
        (RECIPE.replace('"assemble"', '"asemble"'), "step 2: unknown step; given: asemble; .*did you mean"),
        (RECIPE.replace("n = 14", "number = 14"), r"step 1 \(read\): unknown key; given: number"),
        (RECIPE.replace("n = 14", 'n = "many"'), "key 'n': not a whole number; given: many"),
        (RECIPE.replace("n = 14", "n = 0"), r"step 1 \(read\): the number of rows must be positive"),
        (RECIPE.replace("[[steps]]", "[[stages]]"), "unknown key; given: stages; allowed: title, summary"),
        (RECIPE.replace('do = "read"\n', ""), "step 1: a step without a name"),
        (RECIPE.replace('do = "read"', 'do = "assemble"').replace("n = 14", ""), "first step.*allowed: read"),
        ('title = "x"', "no steps"),
        ("steps = [", "mine.toml"),
        (RECIPE + "[[steps]]\n" + 'do = "read"', "the first step, and no other, reads rows"),
        ('seed = "one"\n' + RECIPE, "the seed is no whole number"),
    ],
)
def test_what_is_wrong_in_a_recipe_is_said_in_one_line(tmp_path, text, error):
    path = tmp_path / "mine.toml"
    path.write_text(text)
    refuses(error, read_recipe, path, error=CounterfoilError)


def test_settings_override_a_recipe_by_step_and_key_and_some_hold_for_drawn_rows_alone(tmp_path):
    path = tmp_path / "mine.toml"
    path.write_text(RECIPE)
    recipe = read_recipe(path, settings={"read.n": "7", "assemble.validation": "0.5"}, seed=9)
    assert (recipe.steps[0].n, recipe.steps[1].validation, recipe.seed) == (7, 0.5, 9)
    with pytest.raises(InputError, match=r"no step of this recipe; given: imagine.k"):
        read_recipe(path, settings={"imagine.k": "7"})
    refuses("unknown key; given: m;", read_recipe, path, settings={"read.m": "7"}, error=InputError)
    path, table = tmp_path / "mine.toml", tmp_path / "rows.csv"
    table.write_text("image,caption,negative_caption\na.png,a cat,a dog\n")
    path.write_text(RECIPE + '[steps.world]\nform = "quad"\n')
    assert read_recipe(path).steps[1].form == "quad"
    assert read_recipe(path, settings={"read.source": str(table)}).steps[1].form == "choice"


def test_shipped_recipes_begin_in_the_world_and_leave_its_steps_out_elsewhere(tmp_path):
    named = {"read.source": str(tmp_path / "rows.csv"), "read.layout": "none"}
    assert "filter" in [step.name for step in read_recipe("bivlc").steps]
    assert "filter" not in [step.name for step in read_recipe("bivlc", settings=named).steps]
    asked = read_recipe("bivlc", settings={**named, "filter.people": "answers.csv"})
    assert "filter" in [step.name for step in asked.steps]
    recipes = [read_recipe(name) for name in shipped()]
    assert all(recipe.title and recipe.summary for recipe in recipes)
    assert {recipe.steps[0].source for recipe in recipes} == {"world"}


def test_an_impossible_order_is_found_before_any_step_but_the_first_runs(work, tmp_path):
    table = tmp_path / "rows.csv"
    table.write_text("image,caption\na.png,a cat\n")
    steps = (ReadRows(source=str(table)), KeepShort(), Assemble(form="choice"))
    with pytest.raises(InputError, match=r"3-assemble reads 'negative_caption', which no step before"):
        run_recipe(BuildRecipe("mine", "Mine", "", 0, steps), work)
    assert not KeepShort.ran


@pytest.mark.parametrize("kind", ["csv", "tsv", "json", "jsonl", "parquet", "coco", "listed"])
def test_rows_are_read_from_every_layout(work, tmp_path, kind):
    rows = [
        {"filename": "a.png", "caption": "a cat", "negative_caption": "a dog", "vera": 0.25},
        {"filename": "b.png", "caption": "two cats", "negative_caption": "two dogs", "vera": 0.5},
    ]
    path = tmp_path / f"rows.{'json' if kind in ('coco', 'listed') else kind}"
    if kind in ("csv", "tsv"):
        sign = "," if kind == "csv" else "\t"
        path.write_text("\n".join([sign.join(rows[0]), *(sign.join(map(str, r.values())) for r in rows)]))
    elif kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "jsonl":
        path.write_text("\n".join(map(json.dumps, rows)))
    elif kind == "parquet":
        pq.write_table(pa.Table.from_pylist(rows), path)
    elif kind == "coco":
        images = [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}]
        said = [{"id": i, "image_id": i, "caption": row["caption"]} for i, row in enumerate(rows, start=1)]
        path.write_text(json.dumps({"images": images, "annotations": said}))
    else:
        path.write_text(json.dumps({row["filename"]: [row["caption"]] for row in rows}))
    result = run_recipe(BuildRecipe("m", "M", "", 0, (ReadRows(source=str(path)),)), work).folders[0].rows()
    assert result["image"].to_pylist() == ["a.png", "b.png"]
    assert (result["caption"].to_pylist(), len(set(result["id"].to_pylist()))) == (["a cat", "two cats"], 2)
    if kind not in ("coco", "listed"):
        assert result["negative_caption"].to_pylist() == ["a dog", "two dogs"]
        assert result["vera"].to_pylist() == [0.25, 0.5]


@pytest.mark.parametrize(
    ("text", "error"),
    [
        ("image,text_\na.png,a cat\n", "no column of captions"),
        ("image,caption\na.png,\n", "row 1: empty caption"),
        ("id,image,caption\nx,a.png,a cat\nx,b.png,a dog\n", "ids are not unique"),
    ],
)
def test_tables_that_are_no_rows_are_refused(work, tmp_path, text, error):
    path = tmp_path / "rows.csv"
    path.write_text(text)
    with pytest.raises(CounterfoilError, match=error):
        run_recipe(BuildRecipe("m", "M", "", 0, (ReadRows(source=str(path)),)), work)


def test_a_limit_is_spread_over_the_source(work):
    whole = run_recipe(_recipe(), work).folders[0].rows()
    cut = run_recipe(replace(_recipe(), steps=(ReadRows(n=21, size=32, limit=3),)), work).folders[0].rows()
    assert cut["id"].to_pylist() == whole.take([0, 10, 20])["id"].to_pylist()
    assert pc.all(pc.is_in(cut["image"], whole["image"])).as_py()


def test_a_step_that_is_registered_is_one_of_a_recipe(tmp_path):
    catalog.register(StepEntry("keep-short", "short captions", "an example", f"{__name__}:KeepShort"))
    try:
        path = tmp_path / "mine.toml"
        path.write_text(RECIPE + '[[steps]]\ndo = "keep-short"\nwords = 3\n')
        assert read_recipe(path).steps[-1].words == 3
    finally:
        STEPS._by_name.pop("keep-short")


@dataclass(frozen=True)
class OldStep:
    """A step of another package that calls its columns as they were called before."""

    name, version, reads, makes = "old", 1, (), ()
    run: ClassVar = staticmethod(Output)


def test_a_class_that_is_no_step_and_a_setting_outside_its_range_are_named():
    entry = StepEntry("old", "old", "an example", f"{__name__}:OldStep")
    refuses(r"is no step: .*once called reads and makes", entry.step, {}, where="recipe", error=InputError)
    with pytest.raises(InputError, match="recipe, key 'k': out of range; given: 0; allowed: 1 or more"):
        STEPS["imagine"].step({"k": 0}, where="recipe")


def test_in_the_world_captions_are_exchanged_and_images_drawn_in_place_of_people(work):
    settings = {"read.n": "14", "read.size": "32", "imagine.size": "32"}
    build = run_recipe(read_recipe("winoground", settings=settings), work)
    assert build.records[-1].facts["form"] == "quad"
    assert build.records[-1].facts["questions"] == build.records[3].rows_out > 7
