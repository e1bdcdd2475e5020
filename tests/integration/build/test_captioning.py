"""Captions for images: by the drawn world, tiny models with random weights, and an endpoint."""

import base64
from dataclasses import replace

import numpy as np
import PIL.Image
import pyarrow as pa
import pytest

import chat_server
from build_fixtures import step_work
from counterfoil.build.pipeline import read_recipe, run_recipe, run_step
from counterfoil.build.steps.caption import EMPTY, NO_IMAGE, NOTHING_ELSE, REFUSED, WriteCaptions
from counterfoil.build.steps.read import ReadRows
from counterfoil.errors import CounterfoilError, InputError, ModelError
from counterfoil.world.captions import matches
from counterfoil.world.scenes import Scene, Thing
from counterfoil.world.truth import read
from refusals import refuses

NOTHING = pa.table({"id": pa.array([], pa.string())})


@pytest.fixture
def pictures(tmp_path, work):
    """Six rows of four pictures of noise, and one without a picture."""
    folder = tmp_path / "photos"
    folder.mkdir()
    rng = np.random.default_rng(0)
    for number in range(4):
        noise = rng.integers(0, 255, (40 + 8 * number, 56, 3), dtype=np.uint8)
        PIL.Image.fromarray(noise).save(folder / f"{number}.png")
    cells = ["0.png", "1.png", "1.png", None, "2.png", "0.png", "3.png"]
    rows = pa.table({"id": list("abcdefg"), "image": cells, "caption": ["a thing"] * 7})
    return rows, replace(work, photos=folder, step="2-caption")


def test_the_world_says_something_else_that_is_true(work):
    drawn = ReadRows(n=140, size=32, negatives=False).run(NOTHING, work).kept
    result = run_step(WriteCaptions(), drawn, replace(work, step="2-caption"))
    rows = result.kept.to_pylist()
    assert result.facts["right"] == result.facts["captions"] == len(rows) == 140
    for row in rows:
        said = read(row["generated_caption"])
        assert matches(said, Scene.from_json(row["scene"]))
        assert said != read(row["caption"])
        assert (row["generated_caption_by"], row["generated_caption_from"]) == ("world", row["id"])
    assert len({row["generated_caption_seed"] for row in rows}) == 140
    # A row's caption does not depend on the rows beside it.
    part = run_step(WriteCaptions(), drawn.slice(70, 7), replace(work, step="2-caption"))
    assert part.kept == result.kept.slice(70, 7)


def test_scenes_that_are_missing_or_say_nothing_else_are_dropped(work):
    ring = Scene((Thing("ring", "large", "plain", "red", 0.5, 0.5),))
    texts, drawn = ["A ring.", "A cat.", "A ring."], [None, ring.to_json(), ring.to_json()]
    rows = pa.table({"id": ["a", "b", "c"], "caption": texts, "scene": drawn})
    result = run_step(WriteCaptions(), rows, work)
    assert result.reasons == {NO_IMAGE: 1}
    assert read(result.kept["generated_caption"].to_pylist()[1]) != read("A ring.")
    assert NOTHING_ELSE not in result.reasons
    with pytest.raises(CounterfoilError, match="no scene of the drawn world"):
        run_step(WriteCaptions(), rows.set_column(2, "scene", [["?", "?", "?"]]), work)


@pytest.mark.parametrize("name", ["blip", "idefics3"])
def test_a_model_writes_one_caption_for_each_image(name, captioner, pictures):
    from counterfoil.models.generative.writing import load_writer

    rows, work = pictures
    folder = captioner(name)
    result = run_step(WriteCaptions(by=f"captioner:{folder}", batch=3, max_tokens=6, beams=2), rows, work)
    writer = load_writer(str(folder))
    cells = [f"{number}.png" for number in range(4)]
    alone = {cell: writer.write([work.image(cell)], most=6, beams=2)[0] for cell in cells}
    assert len(set(alone.values())) > 1 or name != "idefics3"
    kept = [row for row in result.kept.to_pylist() if row["generated_caption"]]
    assert all(row["generated_caption"] == " ".join(alone[row["image"]].split()) for row in kept)
    assert result.reasons[NO_IMAGE] == 1
    assert len(result.kept) + result.reasons.get(EMPTY, 0) == 6
    first = {row["image"]: row["generated_caption_from"] for row in kept}
    assert all(first[row["image"]] == row["generated_caption_from"] <= row["id"] for row in kept)
    weights = str(writer.identity.weights)[:12]
    assert {row["generated_caption_by"] for row in kept} == {f"captioner:{folder} {weights}"}
    assert {row["generated_caption_seed"] for row in kept} == {None}


def test_beams_and_the_beginning_of_a_caption_are_those_of_the_library(captioner, pictures):
    import torch
    import transformers

    from counterfoil.models.generative.writing import load_writer

    folder, (_, work) = captioner("blip"), pictures
    model = transformers.BlipForConditionalGeneration.from_pretrained(folder).eval()
    processor = transformers.BlipProcessor.from_pretrained(folder)
    images = [work.image("0.png"), work.image("3.png")]
    for prompt, beams in (("", 1), ("", 3), ("a photo of", 3)):
        expected = []
        for image in images:
            given = processor(images=image.decode(), text=prompt or None, return_tensors="pt")
            with torch.inference_mode():
                ids = model.generate(**given, num_beams=beams, do_sample=False, max_new_tokens=7)
            expected.append(processor.decode(ids[0], skip_special_tokens=True).strip())
        result = load_writer(str(folder), prompt=prompt).write(images, most=7, beams=beams)
        assert result == expected
        assert all(text.startswith(prompt) for text in result)


@pytest.mark.parametrize(
    "name",
    [
        "git",
        "qwen2-vl",
        "idefics3",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("paligemma", "llava-onevision", "gemma3")),
    ],
)
def test_images_together_get_the_captions_that_they_get_alone(name, captioner, pictures):
    from counterfoil.models.generative.writing import load_writer

    writer, (_, work) = load_writer(str(captioner(name)), prompt="a dog?"), pictures
    # Of different sizes, so that prompts with their pictures differ in length.
    images = [work.image(f"{number}.png") for number in range(4)]
    for beams in (1, 3):
        together = writer.write(images, most=6, beams=beams)
        assert together == [writer.write([image], most=6, beams=beams)[0] for image in images]
        assert not any("a dog?" in text for text in together) or name == "git"


def test_words_are_drawn_with_the_seed_that_is_written_down(captioner, pictures):
    from counterfoil.models.generative.writing import load_writer

    rows, work = pictures
    step = WriteCaptions(by=f"captioner:{captioner('blip')}", temperature=1.5, batch=2, max_tokens=8)
    result = run_step(step, rows, work).kept.to_pylist()
    seeds = [row["generated_caption_seed"] for row in result]
    assert len(set(seeds)) == 2
    writer = load_writer(str(captioner("blip")))
    batch = [work.image("0.png"), work.image("1.png")]
    again = writer.write(batch, most=8, temperature=1.5, seed=seeds[0])
    drawn = {row["image"]: row["generated_caption"] for row in result}
    assert [drawn.get("0.png", ""), drawn.get("1.png", "")] == again
    assert again != writer.write(batch, most=8, temperature=1.5, seed=seeds[0] + 1)
    other = run_step(step, rows, replace(work, folder=work.folder / "other", seed=1)).kept
    assert other["generated_caption"].to_pylist() != [row["generated_caption"] for row in result]


def test_an_endpoint_sees_each_image_once(pictures):
    pytest.importorskip("httpx2")
    rows, work = pictures
    work = replace(work, model=step_work(work.folder, wait="0.002").model)
    with chat_server.running() as server:
        url = "data:image/png;base64,"
        shown = chat_server._digest(url + base64.b64encode((work.photos / "1.png").read_bytes()).decode())
        server.set(shows={shown: ["Describe this image in one sentence."]})
        step = WriteCaptions(by=f"chat:{server.url}#looker", max_tokens=30)
        result = run_step(step, rows, work)
        assert result.reasons == {NO_IMAGE: 1}
        captions = {row["image"]: row["generated_caption"] for row in result.kept.to_pylist()}
        assert captions.pop("1.png") == "A, I think."
        assert set(captions.values()) == {"I would say B, or no."}
        assert len(server.log()) == 4
        # What was answered is kept while the step is unfinished, and another prompt is another question.
        assert run_step(step, rows, work).kept == result.kept
        assert len(server.log()) == 4
        server.set(refuse=["A word"])
        asked = replace(step, prompt="A word for this?")
        refuses(f"no row is left.*{REFUSED}", run_step, asked, rows, work, error=CounterfoilError)
        drawn = run_step(replace(step, temperature=0.7), rows, work).kept
        seeds = drawn["generated_caption_seed"].unique().to_pylist()
        assert len(seeds) == 4
        assert all(0 <= seed < 2**31 for seed in seeds)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"by": "blip"}, "no writer of captions; given: blip; allowed: world"),
        ({"by": "captioner:"}, "no writer of captions"),
        ({"beams": 2, "temperature": 0.5}, "draws nothing; given: 2 beams at temperature 0.5"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    refuses(message.replace("(", r"\("), WriteCaptions, error=InputError, **settings)


def test_a_model_that_sees_nothing_and_an_image_that_is_missing_are_named(tmp_path, captioner, pictures):
    import transformers

    rows, work = pictures
    blind = tmp_path / "gpt2"
    transformers.GPT2Config(n_embd=8, n_layer=1, n_head=1).save_pretrained(blind)
    with pytest.raises(ModelError, match=r"takes no images.*given: model type gpt2"):
        run_step(WriteCaptions(by=f"captioner:{blind}"), rows, work)
    gone = rows.set_column(1, "image", [["gone.png"] * 7])
    with pytest.raises(CounterfoilError, match=r"no such image; .*given: gone\.png"):
        run_step(WriteCaptions(by=f"captioner:{captioner('blip')}"), gone, work)


def test_a_training_set_of_the_recipe_is_what_pac_learns_from(work):
    from counterfoil.benchmarks.training_files import read as read_training

    recipe = read_recipe("pac", settings={"read.n": "20", "read.size": "32", "imagine.size": "32"})
    built = run_recipe(recipe, work)
    assert [record.step for record in built.records] == ["read", "caption", "imagine", "assemble"]
    made = read_training(built.benchmark)
    assert {"image", "caption", "generated_image", "generated_caption"} <= set(made.rows)
    rows = built.folders[-1].rows().to_pylist()
    assert all(matches(read(row["generated_caption"]), Scene.from_json(row["scene"])) for row in rows)
    assert all(matches(read(row["caption"]), Scene.from_json(row["generated_scene"])) for row in rows)
