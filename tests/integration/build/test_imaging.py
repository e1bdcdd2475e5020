"""Real diffusion pipelines with tiny random weights, loaded from folders in their real layout."""

import json
import shutil
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import PIL.Image
import pyarrow as pa
import pytest
import torch

from counterfoil.build.imaging import ImagePipeline, ImageRequest
from counterfoil.build.pipeline import run_step
from counterfoil.build.step import StepContext
from counterfoil.build.steps.imagine import Imagine
from counterfoil.engine.session import Session
from counterfoil.errors import InputError, ModelError
from refusals import refuses

pytest.importorskip("open_clip")


TEXTS = ("a red cat on a mat", "two dogs", "a bowl of soup", "a tall tree", "a blue bus")


def wanted(n=5, k=1, source=None):
    asked = [(row, number) for row in range(n) for number in range(k)]
    return [ImageRequest(f"row-{row}", i, TEXTS[row], 1000 * row + i, source) for row, i in asked]


def settings(pipelines, name, **more):
    return replace(Imagine(by=f"diffusers:{pipelines / name}", steps=2, size=32), **more)


@cache
def loaded(asked, device):
    """A pipeline of diffusers, loaded once for all tests, which change none."""
    return ImagePipeline(asked, StepContext(Path(), device=device))._pipe


def pipeline(asked, work, device="cpu"):
    drawing = ImagePipeline(asked, replace(work, device=device))
    # Those that differ in how they are asked alone share what is loaded.
    names = ("by", "unet", "variant", "scheduler", "dtype", "source")
    vars(drawing)["_pipe"] = loaded(Imagine(**{name: getattr(asked, name) for name in names}), device)
    return drawing


def pixels(work, made):
    return [np.asarray(PIL.Image.open(work.images / item.cell)) for item in made]


def drawn(asked, work, device="cpu"):
    """An image that a pipeline draws, which is loaded for it."""
    return pipeline(asked, work, device).images(wanted(1))


def files(work):
    return {path.name: path.read_bytes() for path in work.images.iterdir()}


@pytest.mark.parametrize("name", ["sd", "sdxl", "sd3"])
def test_every_image_is_what_the_pipeline_draws_by_itself(pipelines, tmp_path, name):
    """One prompt, one generator, one call of the library: whatever is drawn beside it, up to rounding."""
    work = StepContext(tmp_path)
    made = pipeline(settings(pipelines, name, guidance=5.0, suffix=", 4k", batch=2), work).images(wanted())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import diffusers

        pipe = diffusers.DiffusionPipeline.from_pretrained(pipelines / name, local_files_only=True)
        pipe.set_progress_bar_config(disable=True)
        for item, result in zip(wanted(), pixels(work, made), strict=True):
            generator = torch.Generator("cpu").manual_seed(item.seed)
            size = {"num_inference_steps": 2, "guidance_scale": 5.0, "height": 32, "width": 32}
            alone = pipe(item.text + ", 4k", generator=generator, **size).images[0]
            assert np.abs(np.asarray(alone, dtype=int) - result).max() <= 2
    shown = pixels(work, made)
    assert all(np.abs(shown[0].astype(int) - other).max() > 20 for other in shown[1:])
    assert {item.facts["unsafe"] for item in made} == ({False} if name == "sd" else {None})


def test_images_carry_what_they_were_made_with(pipelines, tmp_path):
    # The revision of the hub is read off where files lie.
    work, revision = StepContext(tmp_path), "0123456789" * 4
    folder = tmp_path / "models--a--b" / "snapshots" / revision
    shutil.copytree(pipelines / "sdxl", folder)
    drawing = pipeline(settings(folder.parent, revision, scheduler="DDIMScheduler", saved=16), work)
    (made,) = drawing.images(wanted(1))
    with PIL.Image.open(work.images / made.cell) as picture:
        facts = json.loads(picture.text["counterfoil"])
        assert picture.size == (16, 16)
    assert (facts["pipeline"], facts["scheduler"]) == ("StableDiffusionXLPipeline", "DDIMScheduler")
    assert (facts["text"], facts["seed"], facts["steps"], facts["size"]) == (TEXTS[0], 0, 2, 32)
    assert (facts["watermark"], facts["filter"], facts["unsafe"]) == (None, None, None)
    assert (facts["device"], facts["precision"]) == ("cpu", "fp32")
    assert facts["scheduler_config"]["beta_schedule"] == "scaled_linear"
    assert set(facts["libraries"]) == {"diffusers", "torch"}
    assert made.by == f"StableDiffusionXLPipeline {folder} {facts['weights'][:12]}"
    assert facts["revision"] == revision
    assert pipeline(settings(pipelines, "sdxl", batch=2), work).facts["revision"] is None


def test_a_unet_of_another_folder_takes_the_place_of_the_pipelines(pipelines, tmp_path):
    work = StepContext(tmp_path)
    unets = (None, str(pipelines / "dpo"), str(pipelines / "dpo" / "unet"))
    asked = (settings(pipelines, "sdxl", unet=unet, batch=2) for unet in unets)
    own, other, direct = (pipeline(item, work) for item in asked)
    result = [pixels(work, item.images(wanted(1)))[0] for item in (own, other, direct)]
    assert np.abs(result[0].astype(int) - result[1]).max() > 5
    np.testing.assert_array_equal(result[1], result[2])
    assert own.facts["weights"] != other.facts["weights"] == direct.facts["weights"]
    asked = settings(pipelines, "sd3", unet=str(pipelines / "dpo"))
    refuses("draws with no UNet; given: StableDiffusion3Pipeline", drawn, asked, work, error=ModelError)


@pytest.mark.parametrize("name", ["sd", "sdxl"])
def test_edits_start_from_their_source(pipelines, tmp_path, name):
    work = StepContext(tmp_path, photos=tmp_path)
    shade = np.linspace(0, 255, 40 * 56).reshape(40, 56).astype(np.uint8)
    PIL.Image.fromarray(np.dstack([shade, 255 - shade, shade])).save(tmp_path / "one.png")
    PIL.Image.fromarray(np.dstack([255 - shade.T, shade.T, shade.T])).save(tmp_path / "two.png")
    asked = settings(pipelines, name, source="image", size=None, strength=0.5, steps=4)
    editor = pipeline(asked, work)
    both = [*wanted(1, source="one.png"), *wanted(1, source="two.png")]
    first, second = pixels(work, editor.images(both))
    # Sizes are those of the sources; the same text and seed give another picture of another source.
    assert (first.shape, second.shape) == ((40, 56, 3), (56, 40, 3))
    assert np.abs(first.astype(int) - second.transpose(1, 0, 2)).max() > 5
    assert editor.facts["pipeline"].endswith("Img2ImgPipeline")
    (sized,) = pixels(work, pipeline(replace(asked, size=32), work).images(both[:1]))
    assert sized.shape == (32, 32, 3)


def test_a_stopped_build_draws_what_lacks_and_ends_in_the_same_bytes(pipelines, tmp_path):
    class StopError(Exception):
        pass

    def stop(stage, done, total):
        if done >= 4:
            raise StopError

    asked = settings(pipelines, "sdxl", batch=2)
    whole, broken = StepContext(tmp_path / "a"), StepContext(tmp_path / "b")
    made = pipeline(asked, whole).images(wanted())
    with pytest.raises(StopError):
        pipeline(asked, replace(broken, session=Session(progress=stop))).images(wanted())
    kept = files(broken)
    assert len(kept) == 4
    # One of a batch is gone, another is damaged: both batches are drawn again, the third for the first time.
    (broken.images / made[1].cell).unlink()
    (broken.images / made[2].cell).write_bytes(kept[made[2].cell][:200])
    assert pipeline(asked, broken).images(wanted()) == made
    assert files(broken) == files(whole)
    # What is there is not drawn again.
    before = {path: path.stat().st_mtime_ns for path in broken.images.iterdir()}
    idle = pipeline(asked, broken)
    vars(idle).update(_draw=None)
    assert idle.images(wanted()) == made
    assert {path: path.stat().st_mtime_ns for path in broken.images.iterdir()} == before


def test_the_filter_of_a_pipeline_is_heard(pipelines, tmp_path):
    """The thresholds of the checker in the folder are set so that every picture is flagged."""
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "sd"
    shutil.copytree(pipelines / "sd", folder)
    weights = load_file(folder / "safety_checker" / "model.safetensors")
    weights["concept_embeds_weights"] = torch.full_like(weights["concept_embeds_weights"], -1.0)
    save_file(weights, folder / "safety_checker" / "model.safetensors", metadata={"format": "pt"})
    rows = pa.table({"id": ["a", "b"], "negative_caption": list(TEXTS[:2])})
    step = Imagine(by=f"diffusers:{folder}", steps=1, size=32, k=2)
    output = run_step(step, rows, StepContext(tmp_path, step="2-imagine", device="cpu"))
    assert (output.kept["negative_image_unsafe"].to_pylist(), output.facts["unsafe"]) == ([True] * 4, 4)
    assert output.facts["pipeline"]["filter"] == "safety_checker"
    dropping = replace(step, unsafe="drop")
    with pytest.raises(InputError, match="no row is left; given: 4 flagged as unsafe"):
        run_step(dropping, rows, StepContext(tmp_path, step="2-imagine", device="cpu"))


def test_the_step_makes_candidates(pipelines, tmp_path):
    rows = pa.table({"id": ["a", "b"], "caption": list(TEXTS[:2]), "image": ["x.png", "y.png"]})
    step = Imagine(by=f"diffusers:{pipelines / 'sdxl'}", column="caption", steps=1, size=32, k=2)
    works = (StepContext(tmp_path / i, seed=3, step="2-imagine", device="cpu") for i in "ab")
    first, again = (run_step(step, rows, work) for work in works)
    assert first.kept.equals(again.kept)
    assert first.facts == again.facts
    row = first.kept.to_pylist()[3]
    assert (row["id"], row["of"], row["generated_image_from"]) == ("b#1", "b", "b")
    assert row["generated_image_unsafe"] is None
    assert len({*first.kept["generated_image"].to_pylist()}) == 4
    other = run_step(step, rows, StepContext(tmp_path / "c", seed=4, step="2-imagine", device="cpu"))
    assert not {*other.kept["generated_image"].to_pylist()} & {*first.kept["generated_image"].to_pylist()}


def test_captions_that_are_cut_are_counted(pipelines, tmp_path):
    notes = []
    work = StepContext(tmp_path, session=Session(note=notes.append))
    long = replace(wanted(1)[0], text="a cat " * 60)
    pipeline(settings(pipelines, "sd", guidance=5.0, suffix=", 4k", batch=2), work).images([long, *wanted(1)])
    assert notes == [
        "1 of 2 captions are longer with the suffix than the 77 tokens that the pipeline reads; what is "
        "beyond is not drawn"
    ]


@pytest.mark.parametrize(
    ("name", "more", "message"),
    [
        ("clip", {}, r"the pipeline cannot be loaded: .*model_index.json"),
        ("nothing", {}, r"the pipeline cannot be loaded|is not here and cannot be downloaded"),
        ("sdxl", {"scheduler": "DDIM"}, r"unknown scheduler; given: DDIM; allowed: .*DDIMScheduler"),
        ("sdxl", {"unet": "clip"}, r"unet .*: the UNet cannot be loaded"),
        ("sdxl", {"strength": 0.5}, r"the pipeline takes no strength; given: StableDiffusionXLPipeline"),
        ("sdxl", {"size": 33}, r"row 'row-0': the pipeline failed; given: ValueError: .*divisible by 8"),
        ("sdxl", {"device": "cuda:9"}, r"no such device here; given: cuda:9"),
        ("sdxl", {"dtype": "fp16"}, r"fp16 needs a GPU"),
        ("sdxl", {"variant": "fp16"}, r"the pipeline cannot be loaded"),
    ],
)
def test_what_cannot_be_drawn_with_is_one_line(pipelines, tmp_path, name, more, message):
    more = {key: str(pipelines / value) if key == "unet" else value for key, value in more.items()}
    device = more.pop("device", "cpu")
    asked = settings(pipelines, name, **more)
    refuses(message, drawn, asked, StepContext(tmp_path), device, error=InputError)
    assert not (tmp_path / "images").exists()


def test_broken_weights_and_an_editing_pipeline_without_images_are_one_line(pipelines, tmp_path):
    folder = tmp_path / "sdxl"
    shutil.copytree(pipelines / "sdxl", folder)
    weights = folder / "vae" / "diffusion_pytorch_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    asked = settings(tmp_path, "sdxl")
    refuses("the pipeline cannot be loaded", drawn, asked, StepContext(tmp_path), error=ModelError)
    folder = tmp_path / "edit"
    shutil.copytree(pipelines / "sdxl", folder)
    index = json.loads((folder / "model_index.json").read_text())
    index["_class_name"] = "StableDiffusionXLImg2ImgPipeline"
    (folder / "model_index.json").write_text(json.dumps(index))
    asked = settings(tmp_path, "edit", size=None)
    refuses("the pipeline failed", drawn, asked, StepContext(tmp_path), error=ModelError)
