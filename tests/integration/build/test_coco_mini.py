"""Every shipped recipe on real captions and photographs, with pipelines of tiny random weights."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from counterfoil.build.pipeline import read_recipe, run_recipe


@pytest.fixture
def quiet(work):
    return replace(work, session=replace(work.session, note=lambda text: None))


def _built(name, work, settings):
    return run_recipe(read_recipe(name, settings={key: str(its) for key, its in settings.items()}), work)


def _photographs(shared_data):
    folder = shared_data / "coco_mini"
    source = folder / "annotations" / "captions_val2017.json"
    return {"read.source": source, "read.images": folder / "images" / "val2017"}


def _imagined(pipelines):
    drawn = {"steps": 1, "size": 32, "suffix": ", high resolution", "dtype": "fp32"}
    drawn["by"] = f"diffusers:{pipelines / 'sdxl'}"
    return {f"imagine.{k}": its for k, its in drawn.items()}


def test_bivlc_on_the_sugarcrepe_questions_whose_photographs_are_at_hand(quiet, shared_data, pipelines):
    settings = _photographs(shared_data) | _imagined(pipelines)
    settings |= {"read.source": shared_data / "sugarcrepe", "imagine.unet": pipelines / "dpo", "imagine.k": 2}
    build = _built("bivlc", quiet, {**settings, "read.available": "yes", "read.limit": 6})
    first, *_, last = build.records
    assert first.dropped == {"image not at hand": 7511 - 211}
    assert (first.rows_out, last.rows_out, last.facts["form"]) == (6, 6, "quad")
    rows = build.folders[-1].rows().to_pylist()
    assert all(quiet.image_file(row["negative_image"]).is_file() for row in rows)
    assert all("sdxl" in row["negative_image_by"] for row in rows)


@pytest.mark.parametrize("name", ["sugarcrepe", pytest.param("trohn-text", marks=pytest.mark.slow)])
def test_captions_of_photographs_get_negatives_by_rules(name, quiet, shared_data):
    settings = _photographs(shared_data) | {"read.limit": 60}
    build = _built(name, quiet, settings)
    rows = build.folders[-1].rows().to_pylist()
    assert len(rows) > 40
    assert len({row["subset"] for row in rows}) == 7
    captions = json.loads((Path(str(settings["read.source"]))).read_text())["annotations"]
    known = {" ".join(item["caption"].lower().rstrip(" .").split()) for item in captions}
    assert all(" ".join(row["caption"].lower().rstrip(" .").split()) in known for row in rows)
    assert all(row["caption"] != row["negative_caption"] for row in rows)
    # Where a step dropped a row, the row is there with its reason.
    for record, folder in zip(build.records, build.folders, strict=True):
        assert len(folder.dropped()) == sum(record.dropped.values())


@pytest.mark.slow
@pytest.mark.parametrize("name", ["trohn-img", "pac"])
def test_photographs_get_made_images_beside_them(name, quiet, shared_data, pipelines, captioner):
    settings = _photographs(shared_data) | _imagined(pipelines)
    if name == "pac":
        settings |= {"caption.by": f"captioner:{captioner('blip')}", "caption.max_tokens": 6}
    if name == "trohn-img":
        settings |= {"read.source": shared_data / "sugarcrepe", "read.layout": "sugarcrepe"}
        settings |= {"imagine.unet": pipelines / "dpo"}
    build = _built(name, quiet, {**settings, "read.available": "yes", "read.limit": 8})
    assert build.records[-1].facts["form"] == "training"
    made = "negative_image" if name == "trohn-img" else "generated_image"
    rows = build.folders[-1].rows()
    assert len(set(rows[made].to_pylist())) == 8
    if name == "pac":
        assert all(rows["generated_caption"].to_pylist())
