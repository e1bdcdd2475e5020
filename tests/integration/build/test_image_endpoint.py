"""Image endpoints, against a server of our own that speaks the protocol and has faults."""

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import PIL.Image
import pyarrow as pa
import pytest

import image_server
from build_fixtures import step_work
from chat_server import KEY
from counterfoil.benchmarks.records import PixelSource
from counterfoil.build.pipeline import run_step
from counterfoil.build.steps.imagine import Imagine
from counterfoil.errors import ModelError
from image_server import asked, colour, edited, fetched
from refusals import refuses

ROWS = pa.table({"id": list("abcdef"), "negative_caption": [f"thing {number}" for number in range(6)]})


@pytest.fixture(scope="module")
def server():
    with image_server.running() as result:
        yield result


#: What a step is given, with waits of milliseconds.
work = partial(step_work, step="2-imagine", key=KEY, wait="0.002", timeout="20")


def step(server, **more):
    return Imagine(by=f"images:{server.url}#painter", **{"concurrency": 3, **more})


def shown(output, folder, column="negative_image"):
    result = []
    for cell in output.kept[column].to_pylist():
        with PIL.Image.open(folder / "images" / cell) as picture:
            pixels = np.asarray(picture)
        assert (pixels == pixels[0, 0]).all()
        result.append(tuple(pixels[0, 0].tolist()))
    return result


COLOURS = [colour(text) for text in ROWS["negative_caption"].to_pylist()]


@pytest.mark.parametrize("answers", ["b64_json", "url"])
def test_images_are_those_of_their_captions(server, tmp_path, answers):
    server.set(always=answers)
    notes = []
    output = run_step(step(server), ROWS, work(tmp_path, note=notes.append))
    assert shown(output, tmp_path) == COLOURS
    assert len(asked(server)) == 6
    # The key goes to the endpoint, and not to where the images lie.
    assert {entry["key"] for entry in asked(server)} == {f"Bearer {KEY}"}
    assert [entry["key"] for entry in fetched(server)] == [None] * (6 if answers == "url" else 0)
    with PIL.Image.open(tmp_path / "images" / output.kept["negative_image"][1].as_py()) as picture:
        facts = json.loads(picture.text["counterfoil"])
    assert (facts["text"], facts["revised_prompt"], facts["created"]) == ("thing 1", "thing 1, revised", 7)
    assert notes == ["6 requests (0 of them again), 0 answers from before; 0 refused"]
    assert not any(KEY.encode() in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_settings_are_sent(server, tmp_path):
    server.set()
    asking = step(server, k=2, size=32, saved=16, suffix=", 4k", seeded=True)
    output = run_step(asking, ROWS.slice(0, 2), work(tmp_path))
    seeds = [seed % 2**31 for seed in output.kept["negative_image_seed"].to_pylist()]
    texts = ["thing 0", "thing 0", "thing 1", "thing 1"]
    drawn = [colour(f"{text}, 4k {seed}") for text, seed in zip(texts, seeds, strict=True)]
    assert shown(output, tmp_path) == drawn
    with PIL.Image.open(tmp_path / "images" / output.kept["negative_image"][0].as_py()) as picture:
        assert picture.size == (16, 16)
    assert len(asked(server)) == 4
    # Images that are there are not asked for again; of another size they are.
    assert run_step(asking, ROWS.slice(0, 2), work(tmp_path)).kept.equals(output.kept)
    assert len(asked(server)) == 4
    run_step(replace(asking, size=24), ROWS.slice(0, 2), work(tmp_path))
    assert len(asked(server)) == 8


def test_faults_are_tried_again(server, tmp_path):
    faults = "429", "500", "cut", "half", "no json", "no data", "not an image", "no base64", "other scheme"
    server.set(faults=faults * 2)
    assert shown(run_step(step(server, retries=18), ROWS, work(tmp_path)), tmp_path) == COLOURS
    assert len(asked(server)) == 6 + 18


def test_an_endpoint_that_answers_nonsense_ends_in_one_line(server, tmp_path):
    server.set(faults=["", "", *["not an image"] * 90])
    words = "no answer after 3 tries; given: status 200 and no image"
    refuses(words, run_step, step(server, retries=2, concurrency=1), ROWS, work(tmp_path), error=ModelError)
    assert len(list((tmp_path / "images").iterdir())) == 2
    server.set()
    assert shown(run_step(step(server), ROWS, work(tmp_path)), tmp_path) == COLOURS
    assert len(asked(server)) == 4


def test_what_is_refused_goes_with_the_reason_and_is_asked_once(server, tmp_path):
    server.set(refuse=["thing 2", "thing 4"])
    output = run_step(step(server), ROWS, work(tmp_path))
    assert output.reasons == {"refused by the endpoint": 2}
    assert output.dropped["id"].to_pylist() == ["c", "e"]
    assert len(asked(server)) == 6
    again = run_step(step(server), ROWS, work(tmp_path))
    assert again.kept.equals(output.kept)
    assert again.dropped.equals(output.dropped)
    assert len(asked(server)) == 6


def test_an_address_that_was_noted_is_fetched_and_not_asked_for_again(server, tmp_path):
    server.set(always="url", babble=["500", "no image", "500", "500"])
    with pytest.raises(ModelError, match="the image that the endpoint made cannot be fetched; given: "):
        run_step(step(server, retries=1, concurrency=1), ROWS.slice(0, 3), work(tmp_path))
    paid = len(asked(server))
    assert shown(run_step(step(server), ROWS.slice(0, 3), work(tmp_path)), tmp_path) == COLOURS[:3]
    # What was asked for before is fetched now; what its address has no more is asked for again.
    assert len(asked(server)) == 3
    assert paid >= 1
    server.set(always="url", babble=["404"] * 3)
    with pytest.raises(ModelError, match="cannot be fetched; given: status 404"):
        run_step(step(server, concurrency=1), ROWS.slice(3, 1), work(tmp_path))
    server.set(always="url", babble=["404"])
    assert shown(run_step(step(server), ROWS.slice(3, 1), work(tmp_path)), tmp_path) == [COLOURS[3]]
    assert len(asked(server)) == 1


@pytest.mark.parametrize("answers", ["b64_json", "url"])
def test_an_edit_is_of_its_source_and_its_caption(server, tmp_path, answers):
    server.set(always=answers)
    photos, names = tmp_path / "photos", ["0.png", "1.jpg", "2.webp", "3.bmp", "0.png", "1.jpg"]
    photos.mkdir()
    for number, name in enumerate(dict.fromkeys(names)):
        PIL.Image.new("RGB", (20 + number, 16), (40 * number, 9, 9)).save(photos / name)
    rows = ROWS.append_column("image", [names])
    asking, folder = step(server, source="image", seeded=True), tmp_path / "build"
    made = replace(work(folder), photos=photos)
    output = run_step(asking, rows, made)
    sources = [(photos / name).read_bytes() for name in names]
    # Endpoints read no BMP.
    sources[3] = PixelSource(np.asarray(PIL.Image.open(photos / "3.bmp"))).read()
    kept = output.kept.to_pylist()
    texts = [f"{row['negative_caption']} {row['negative_image_seed'] % 2**31}" for row in kept]
    drawn = [colour(edited(text, source)) for text, source in zip(texts, sources, strict=True)]
    assert shown(output, folder) == drawn
    assert {entry["path"] for entry in asked(server)} == {"/v1/images/edits"}
    with PIL.Image.open(folder / "images" / kept[1]["negative_image"]) as picture:
        assert json.loads(picture.text["counterfoil"])["source"] == "1.jpg"
    # Equal sources and captions are not paid for twice; another source is another image.
    assert run_step(asking, rows, made).kept.equals(output.kept)
    assert len(asked(server)) == 6
    PIL.Image.new("RGB", (9, 9)).save(photos / "0.png")
    again = run_step(asking, rows, made)
    assert len(asked(server)) == 8
    assert again.kept["negative_image"][1:4] == output.kept["negative_image"][1:4]
    assert again.kept["negative_image"][0] != output.kept["negative_image"][0]


def test_an_edit_is_tried_again_and_needs_its_source(server, tmp_path):
    (tmp_path / "photos").mkdir()
    PIL.Image.new("RGB", (8, 8)).save(tmp_path / "photos" / "0.png")
    made = replace(work(tmp_path), photos=tmp_path / "photos")
    rows = ROWS.slice(0, 2).append_column("image", [["0.png", "0.png"]])
    server.set(faults=["500", "cut", "429"], refuse=["thing 1"])
    output = run_step(step(server, source="image"), rows, made)
    assert (len(output.kept), output.reasons) == (1, {"refused by the endpoint": 1})
    server.set()
    for names, message in (
        (["0.png", None], r"no image to edit; .*given: 1 of 2 rows without one"),
        (["0.png", "9.png"], r"no such image; .*given: 9.png"),
    ):
        lacking = rows.set_column(rows.column_names.index("image"), "image", [names])
        refuses(message, run_step, step(server, source="image"), lacking, made)
    (tmp_path / "photos" / "9.png").write_text("no picture")
    lacking = rows.set_column(rows.column_names.index("image"), "image", [["9.png", "0.png"]])
    refuses(r"9\.png", run_step, step(server, source="image"), lacking, made)


def test_killed_and_resumed_no_image_is_paid_for_twice(server, tmp_path):
    """The server answers some requests and lets the others hang; the process is killed there."""
    rows = tmp_path / "rows.csv"
    rows.write_text("id,caption,negative_caption\n" + "".join(f"{n},a,thing {n}\n" for n in range(8)))
    command = [
        sys.executable, "-m", "counterfoil", "build", "imagine", str(rows),
        "--by", f"images:{server.url}#painter", "--concurrency", "3",
        "--out", str(tmp_path / "built" / "rows.csv"),
    ]  # fmt: skip
    environment = {**os.environ, "COUNTERFOIL_API_KEY": KEY}
    server.set(most=5)
    with subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        until = time.monotonic() + 600
        while sum(entry["answered"] for entry in server.log()) < 5 and time.monotonic() < until:
            time.sleep(0.02)
        # The answers are written within moments of their arrival.
        while len(list(tmp_path.rglob("*.png"))) < 5 and time.monotonic() < until:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    first = [entry["body"] for entry in asked(server) if entry["answered"]]
    assert len(first) == 5
    server.set()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stderr
    second = [entry["body"] for entry in asked(server)]
    assert len(second) == 3
    assert max(Counter(first + second).values()) == 1
    assert "3 requests (0 of them again), 5 answers from before" in done.stderr


def test_what_another_try_cannot_help_ends_at_once(server, tmp_path):
    server.set(faults=["401"])
    with pytest.raises(ModelError, match=r"refuses the key; given: status 401: .* API key provided: \(key\)"):
        run_step(step(server), ROWS.slice(0, 1), work(tmp_path))
    assert len(asked(server)) == 1
