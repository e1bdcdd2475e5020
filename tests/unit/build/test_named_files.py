"""What a step's key holds of the files and folders that its settings name."""

import os
import re
from dataclasses import fields

import pyarrow as pa
import pytest

from counterfoil.build.step import Output
from counterfoil.build.step_folder import StepFolder, digests_of_files
from counterfoil.build.steps.imagine import Imagine
from counterfoil.build.steps.negate import Negate
from counterfoil.build.steps.rate import Rate
from counterfoil.build.steps.read import ReadRows
from counterfoil.build.steps.registry import STEPS

ROWS = pa.table({"id": ["a"], "caption": ["A cat."]})
#: Steps whose settings name the folder MODEL, or the file in it.
NAMING = {
    "negate": {"by": "lm:MODEL"},
    "caption": {"by": "captioner:MODEL"},
    "imagine": {"by": "diffusers:MODEL"},
    "rate": {"model": "plausibility:MODEL"},
    "choose": {"model": "open-clip:ViT-B-32/MODEL/unet/weights.safetensors"},
    "filter": {"models": ["hf:somebody/clip", "MODEL"]},
    "positives": {"models": ["likelihood:MODEL"]},
    "refine": {"balance": ["hf-text:MODEL@17"]},
}


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my models" / "one"
    (folder / "unet").mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    (folder / "unet" / "weights.safetensors").write_bytes(bytes(5_000))
    return folder


def named(step, settings, folder):
    def filled(value):
        if isinstance(value, list):
            return [filled(item) for item in value]
        return value.replace("MODEL", str(folder))

    return STEPS[step].step({key: filled(value) for key, value in settings.items()}, where="here")


@pytest.mark.parametrize(
    ("step", "place"), [*((step, "absolute") for step in NAMING), ("negate", "relative")]
)
def test_a_step_is_run_again_where_one_byte_of_a_model_changed(step, place, model, tmp_path):
    made = named(step, NAMING[step], model if place == "absolute" else "my models/one")
    folder = StepFolder(tmp_path / "build" / "steps" / f"2-{step}")
    folder.save(made, ROWS, Output(ROWS), seed=0, rows_from="rows")
    before = digests_of_files(made)
    assert len(before) == 1
    assert folder.finished(made, seed=0, rows_from="rows") is not None
    # That files are written anew with the same bytes is no change.
    path = model / "unet" / "weights.safetensors"
    path.write_bytes(path.read_bytes())
    os.utime(path, (1, 1))
    assert folder.finished(made, seed=0, rows_from="rows") is not None
    # One byte of the weights changes, neither their size nor the time at which they were written.
    about = path.stat()
    with path.open("r+b") as file:
        file.seek(4_321)
        file.write(b"\x01")
    # Coarse clocks would give the same time to both.
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns + 1_000_000))
    assert digests_of_files(made) != before
    assert folder.finished(made, seed=0, rows_from="rows") is None


def test_a_file_more_and_another_name_are_changes(model):
    step = Rate(model=f"lm:{model}")
    before = digests_of_files(step)
    (model / "config.json").rename(model / "config2.json")
    renamed = digests_of_files(step)
    (model / "more.txt").write_text("")
    assert len({str(item) for item in (before, renamed, digests_of_files(step))}) == 3


def test_words_and_names_of_the_hub_are_no_folders(model, tmp_path):
    for word in ("world", "rules", "hanta"):
        (tmp_path / word).mkdir()
        (tmp_path / word / "file").write_text("something else")
    steps = (Imagine(), Negate(by="rules"), Negate(by="world"), Rate(model="lm:gpt2"))
    assert [digests_of_files(step) for step in steps] == [{}] * 4


def test_of_a_folder_of_images_names_and_sizes_count(tmp_path):
    (tmp_path / "photos").mkdir()
    photo = tmp_path / "photos" / "1.jpg"
    photo.write_bytes(b"one")
    step = ReadRows(images=str(tmp_path / "photos"))
    before = digests_of_files(step)
    photo.write_bytes(b"two")
    assert digests_of_files(step) == before
    photo.write_bytes(b"three")
    assert digests_of_files(step) != before


@pytest.mark.parametrize("name", list(STEPS))
def test_every_setting_that_takes_a_model_says_so(name):
    takes = re.compile(r"\b[Ss]corers?\b|[a-z]:MODEL|diffusers:|spacy:|lm:|captioner:|[Mm]odels that|UNet")
    for item in fields(STEPS[name].kind):
        texts = "str" in str(item.type) and "Literal" not in str(item.type)
        if texts and takes.search(item.metadata["help"]) and (name, item.name) != ("rate", "score"):
            assert "model" in item.metadata or item.metadata.get("file"), item.name
