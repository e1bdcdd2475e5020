"""`counterfoil train` as a user meets it: plans, checkpoints, errors of one line, data behind a URL."""

import json
import signal
import subprocess
import sys
import time

import fsspec
import numpy as np
import PIL.Image
import pytest

from bucket_servers import copied, new_bucket, s3_at, s3_server
from tar_shards import pair, write_tar

from .conftest import Run

pytest.importorskip("torch")

COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 70, 220), "yellow": (230, 220, 50)}


@pytest.fixture
def rows(tmp_path):
    """Thirty rows with every column: coloured squares, and what they are not."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "squares"
    (folder / "images").mkdir(parents=True)

    def picture(name, colour):
        pixels = np.full((24, 24, 3), COLOURS[colour], np.uint8) + rng.integers(0, 20, (24, 24, 3))
        PIL.Image.fromarray(pixels.astype(np.uint8)).save(folder / "images" / name)
        return name

    names = list(COLOURS)
    lines = ["image,caption,negative_caption,negative_image,generated_image,generated_caption"]
    for i in range(30):
        colour, other = names[i % 4], names[(i + 1 + i % 3) % 4]
        kinds = (("p", colour), ("n", other), ("g", colour))
        own, negative, generated = (picture(f"{kind}{i}.png", shown) for kind, shown in kinds)
        lines.append(f"{own},a {colour} square,a {other} square,{negative},{generated},something {colour}")
    (folder / "rows.csv").write_text("\n".join(lines) + "\n")
    return folder / "rows.csv"


@pytest.fixture
def train(counterfoil, rows, tmp_path):
    """Train on the squares into `ckpt`; more options may follow, and the last of two counts."""

    def run(recipe, *more):
        common = ("--model", "small", "--data", rows, "--out", tmp_path / "ckpt", "--workers", 0)
        return counterfoil("train", recipe, *common, "--batch-size", 8, "--device", "cpu", *more)

    return Run(run)


def facts(folder):
    return json.loads((folder / "card.json").read_text())["facts"]


def test_training_shows_its_plan_and_leaves_a_checkpoint_that_evaluate_takes(train, counterfoil, tmp_path):
    said = train.succeeds("trohn-img", "--epochs", 2, "--lr", "1e-3")
    assert "batch_size 8 (200), epochs 2 (10), lr 0.001 (1e-06)" in said.err
    # 30 rows, 6 of them held back; 24 are three batches of 8.
    assert "24 of rows: image, negative_image" in said.err
    assert "6 rows: 20% of the rows, drawn with seed 42" in said.err
    assert "6 of 8 rows, 2 epochs" in said.err
    assert "first (step 0)" in said.err
    assert "the learning rate only gets to 0.00012" in said.err  # 6 of 50 steps of warm-up
    assert said.err.rstrip().endswith(f"counterfoil evaluate {tmp_path / 'ckpt'} world-quads")
    assert facts(tmp_path / "ckpt")["recipe"]["batch_size"] == 8
    quads = tmp_path / "quads"
    assert counterfoil("world", "build", "quads", "--n", 7, "--size", 48, "--out", quads).code == 0
    done = counterfoil.succeeds(f"evaluate {tmp_path}/ckpt {quads} --draws 100 --json - --quiet")
    assert f"ckpt:{tmp_path}/ckpt" in done.out
    assert json.loads(done.out)["measures"]["i2t"]["n"] == 7


@pytest.mark.parametrize("model", ["vse", "vsrn"])
def test_recurrent_encoders_train_and_are_measured(counterfoil, train, tmp_path, model):
    said = train.succeeds("vse++", "--model", model, "--steps", 2)
    assert said.err.rstrip().endswith(f"counterfoil evaluate {tmp_path / 'ckpt'} world-quads")
    assert json.loads((tmp_path / "ckpt" / "card.json").read_text())["card"]["kind"] == model


def test_a_detector_learns_from_the_two_sides(train, counterfoil, tmp_path):
    assert train("coco", "--steps", 1, "--quiet").code == 0
    encoder = tmp_path / "ckpt"
    said = train.succeeds("detector", "--model", encoder, "--out", tmp_path / "detector", "--lr", "1e-2")
    assert "1 of images, 10 of captions; adam at 0.01" in said.err
    assert "accuracy of images" in said.out
    assert "10 epochs in" in said.err
    # What answers with probabilities is no dual encoder to train on.
    other = ("--model", tmp_path / "detector", "--out", tmp_path / "no")
    train.fails("coco", *other, says="the recipe is for another kind of model")
    assert not (tmp_path / "no").exists()


def test_a_checkpoint_is_a_start_and_an_ended_training_is_not_repeated(train, tmp_path):
    assert train("coco", "--steps", 3, "--quiet").code == 0
    before = (tmp_path / "ckpt" / "model.safetensors").read_bytes()
    assert "had ended before, and nothing was repeated" in train.succeeds("coco", "--steps", 3).err
    assert (tmp_path / "ckpt" / "model.safetensors").read_bytes() == before
    train.fails("coco", "--steps", 4, "--quiet", says="steps 3, now 4")
    assert train("coco", "--steps", 4, "--no-resume", "--quiet").code == 0
    train.succeeds("trohn-text", "--model", tmp_path / "ckpt", "--out", tmp_path / "tuned", "--steps", 2)
    assert facts(tmp_path / "tuned")["recipe"]["name"] == "trohn-text"


def test_a_file_may_say_everything(counterfoil, rows, tmp_path):
    (tmp_path / "mine.toml").write_text(
        'recipe = "coco"\nbatch_size = 8\nsteps = 2\nlr = 1e-3\nselect = "last"\n'
        f'[run]\nmodel = "small"\ndata = "{rows}"\nout = "{tmp_path / "from_file"}"\n'
        "validation_share = 0\nworkers = 0\n"
    )
    said = counterfoil.succeeds("train", tmp_path / "mine.toml", "--steps", 3)
    assert "30 of rows" in said.err
    assert "the last weights" in said.err
    made = facts(tmp_path / "from_file")
    assert (made["recipe"]["name"], made["recipe"]["steps"], made["step"]) == ("mine", 3, 3)


def test_a_guard_is_measured_on_the_way(train, counterfoil, tmp_path):
    counterfoil("world", "build", "choices", "--n", 6, "--size", 32, "--out", tmp_path / "guard")
    said = train.succeeds("coco", "--steps", 2, "--guard", tmp_path / "guard", "--json", "-", "--quiet")
    moments = json.loads(said.out)["points"]
    assert next(iter(moments)).startswith("first (step 0)")
    assert all(0 <= point["world-choices"] <= 1 for point in moments.values())
    for guard, says in (("pairs=nowhere.csv", "nowhere.csv: no such file"), ("pairs", "give it with --data")):
        train.fails("coco", "--guard", guard, "--no-resume", says=says)


def test_a_dry_run_trains_nothing(train, counterfoil, tmp_path):
    said = train.succeeds("pcme", "--dry-run", "--lr", "0.5")
    assert "lr               0.5  (0.0002)" in said.out
    assert "left open there" in said.err
    assert "parameters of stage 2" in said.err
    assert not (tmp_path / "ckpt").exists()
    alone = counterfoil("train", "trohn-img", "--dry-run")
    assert (alone.code, "batch_size       200" in alone.out) == (0, True)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--lr", "1e30"), "training stops"),
        (("--lr", "1e13", "--set", "validate_every=1"), "in validation is nan; training stops"),
    ],
)
def test_a_loss_that_is_no_number_is_one_line(train, tmp_path, options, said):
    (line,) = train.fails("coco", *options, "--quiet").err.splitlines()
    assert line.startswith("counterfoil: ")
    assert said in line
    assert not (tmp_path / "ckpt" / "model.safetensors").exists()


#: What torchrun says to a process, of one machine with two.
LAUNCHED = {"TORCHELASTIC_RUN_ID": "one", "LOCAL_WORLD_SIZE": "2", "WORLD_SIZE": "2"}


@pytest.mark.parametrize(
    ("launched", "asked", "said"),
    [
        (LAUNCHED, ["--chunk-size", 5], "given: 5 rows, of 4 on each process (8 on 2); allowed: 1 to 4"),
        (LAUNCHED, ["--batch-size", 7], "divided among the processes; given: 7 rows, 2 processes"),
        (LAUNCHED, ["--devices", 3], "--devices and torchrun disagree; given: 3, and 2 processes"),
        (LAUNCHED | {"WORLD_SIZE": "3"}, [], "divided among the processes; given: 8 rows, 3 processes"),
    ],
)
def test_processes_and_chunks_that_do_not_fit_are_a_line(train, tmp_path, monkeypatch, launched, asked, said):
    for name, value in launched.items():
        monkeypatch.setenv(name, value)
    train.refused("trohn-img", "--steps", 3, *asked, "--quiet", says=said)
    assert not (tmp_path / "ckpt").exists()


def torchrun(processes, rows, out, *more):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", processes, "--standalone"]
    common = ["--model", "small", "--data", rows, "--workers", 0, "--batch-size", 8, "--device", "cpu"]
    given = [*launcher, "-m", "counterfoil", "train", "trohn-img", *common, "--lr", "1e-3", "--out", out]
    return list(map(str, [*given, *more]))


@pytest.mark.slow
def test_two_processes_print_once(rows, tmp_path):
    command = torchrun(2, rows, tmp_path / "two", "--steps", 3, "--chunk-size", 3)
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("kept, last") == 1
    assert done.stderr.count("of the time waiting for data") == 1


@pytest.mark.slow
def test_a_torchrun_that_was_killed_goes_on_to_the_same_bytes(rows, tmp_path):
    asked = ["--steps", 90, "--set", "validate_every=5"]
    killed = tmp_path / "killed"
    running = subprocess.Popen(torchrun(2, rows, killed, *asked), stdout=subprocess.DEVNULL)
    try:
        while running.poll() is None and not (killed / "resume.pt").exists():
            time.sleep(0.05)
    finally:
        running.kill()
    assert running.wait() == -signal.SIGKILL
    # Its processes end by themselves, within a second.
    time.sleep(3)
    after = (killed / "journal.csv").read_bytes()
    time.sleep(2)
    assert (killed / "journal.csv").read_bytes() == after
    done = subprocess.run(torchrun(2, rows, killed, *asked), capture_output=True, text=True, timeout=300)
    assert "it went on after step" in done.stderr, done.stderr
    alone = torchrun(2, rows, tmp_path / "alone", *asked, "--devices", 2)
    alone = [sys.executable, *alone[alone.index("--standalone") + 1 :]]
    done = subprocess.run(alone, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert done.stderr.count("counterfoil evaluate") == 1
    files = [folder / "model.safetensors" for folder in (killed, tmp_path / "alone")]
    assert files[0].read_bytes() == files[1].read_bytes()


@pytest.mark.slow
def test_what_all_processes_find_is_one_line(rows, tmp_path):
    bad = torchrun(2, rows, tmp_path / "bad", "--steps", 3, "--batch-size", 7)
    done = subprocess.run(bad, capture_output=True, text=True, timeout=600)
    assert done.stderr.count("counterfoil: ") == 1
    assert "given: 7 rows, 2 processes" in done.stderr
    assert "exitcode  : 2" in done.stderr


def test_a_training_that_made_the_model_worse_says_so(train, tmp_path):
    assert train("trohn-text", "--steps", 40, "--lr", "3e-3", "--set", "warmup=0").code == 0
    more = ("--model", tmp_path / "ckpt", "--out", tmp_path / "worse", "--set", "warmup=0")
    said = train.succeeds("trohn-text", "--steps", 3, "--lr", "1", *more)
    words = " ".join((said.out + said.err).split())
    assert "the training made the model worse: accuracy was" in words
    assert "at step 3, whose weights are kept" in words


@pytest.fixture
def shards(tmp_path):
    for shard in range(3):
        members = [member for row in range(8) for member in pair(f"k{row}", 8 * shard + row)]
        write_tar(tmp_path / "shards" / f"{shard:05d}.tar", members)
    return tmp_path / "shards"


@pytest.fixture
def bucket(shards):
    with s3_server() as server, s3_at(server):
        yield copied(shards, f"s3://{new_bucket()}/shards")


def _weights(folder):
    """Every array of a checkpoint, to the last bit; the file's header also names the data."""
    from safetensors.numpy import load_file

    return {name: values.tobytes() for name, values in load_file(folder / "model.safetensors").items()}


def _asked(data, out, *more):
    common = ("--model", "small", "--data", data, "--out", out, "--batch-size", 4, "--device", "cpu")
    return list(map(str, ("train", "coco", *common, *more)))


def test_weights_are_those_of_a_disk(counterfoil, shards, bucket, tmp_path):
    asked = ("--steps", 4, "--workers", 0, "--quiet")
    assert counterfoil(*_asked(shards / "{00000..00002}.tar", tmp_path / "near", *asked)).code == 0
    said = counterfoil(*_asked(f"{bucket}/{{00000..00002}}.tar", tmp_path / "far", *asked))
    assert (said.code, said.err) == (0, "")
    assert _weights(tmp_path / "far") == _weights(tmp_path / "near")
    # Rows to validate on from one shard, and to train on from the others.
    held = f"{bucket}/00002.tar"
    some = f"{bucket}/{{00000..00001}}.tar"
    said = counterfoil.succeeds(*_asked(some, tmp_path / "held", *asked, "--validation", held))
    assert "s3:/tests" not in said.out
    dry = counterfoil(*_asked(bucket, tmp_path / "dry", "--dry-run", "--validation", held))
    assert (dry.code, held in dry.err) == (0, True), dry.err


@pytest.fixture
def pairs(tmp_path):
    """A table of captions, right and wrong, of pictures in the folder `photos` beside it."""
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    rows = ["image,caption,negative_caption"]
    for number in range(6):
        pixels = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
        rows.append(f"{number}.png,a red {number},a blue {number}")
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    return tmp_path / "pairs.csv"


def test_numbers_are_those_of_a_disk(counterfoil, pairs, tmp_path):
    far = f"memory://{tmp_path.name}-cli/far"
    for photo in (tmp_path / "photos").iterdir():
        with fsspec.open(f"{far}/{photo.name}", "wb", auto_mkdir=True) as file:
            file.write(photo.read_bytes())

    def values(images, out):
        asked = ("--data", pairs, "--images", images, "--out", tmp_path / out, "--draws", 100)
        said = counterfoil.succeeds("evaluate", "pixels:colours", "pairs", *asked)
        assert "memory:/" not in (said.out + said.err).replace("memory://", "")
        result = json.loads((tmp_path / out / "pairs" / "result.json").read_text())
        return {name: facts["value"] for name, facts in result["measures"].items()}

    assert values(far, "far-run") == values(tmp_path / "photos", "near-run")
    for file in (tmp_path / "far-run").rglob("*.json"):
        assert "memory:/" not in file.read_text().replace("memory://", "")
