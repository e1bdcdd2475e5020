"""A training that was stopped at any moment ends with the weights of one that never was, to the last bit."""

import os
import resource
import shutil
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

import thumbnails
from counterfoil.errors import InputError, StorageError
from counterfoil.models import checkpoint
from counterfoil.train import state as training_state
from counterfoil.train.journal import read
from counterfoil.train.loop import JOURNAL, fit
from counterfoil.train.recipes import NegativePairs
from counterfoil.train.saving import Saving
from refusals import refuses

pytestmark = pytest.mark.usefixtures("thumbs")

#: Dropout draws in every step; validation decides which weights are kept; the last step is no round number.
RECIPE = NegativePairs(
    batch_size=8, steps=23, lr=1e-2, warmup=3, accumulate=2, augment="crop-flip", erasing=0.3, word_drop=0.3,
    validate_every=4,
)  # fmt: skip
#: Columns of the journal that say how long something took.
CLOCK = {"rows_per_second", "waiting", "epoch_waiting", "seconds"}


class Stopped(Exception):  # noqa: N818
    """What ends a training in the middle."""


def train(folder, *, recipe=RECIPE, stop=None, resume=True, **changed):
    def progress(stage, done, total):
        if stage == "training" and done == stop:
            raise Stopped

    asked = {
        "backbone": thumbnails.thumb(),
        "data": thumbnails.rows(50, negatives=True),
        "validation": thumbnails.rows(20, seed=1, negatives=True),
        "progress": progress,
    } | changed
    saving = Saving(resume=resume, every=3, journal_every=5)
    return fit(recipe=recipe, out=folder, device="cpu", saving=saving, **asked)


def weights(fitted):
    return dict(fitted.backbone.network.state_dict())


def same(left, right):
    return left.keys() == right.keys() and all(torch.equal(left[name], right[name]) for name in left)


def untimed(entries):
    return [{name: value for name, value in entry.items() if name not in CLOCK} for entry in entries]


@pytest.fixture(scope="module")
def never_stopped():
    return train(None)


@pytest.fixture
def stopped(tmp_path, stopped_once):
    return Path(shutil.copytree(stopped_once, tmp_path / "stopped"))


@pytest.fixture(scope="module")
def stopped_once(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stopped")
    refuses("", train, folder, error=Stopped, stop=8)
    return folder


@pytest.mark.parametrize("steps", [(1, 3, 4, 11), (2, 5, 13, 14, 22), (23,)])
def test_a_training_that_was_stopped_ends_as_if_it_was_not(tmp_path, never_stopped, steps):
    for stop in steps:
        refuses("", train, tmp_path, error=Stopped, stop=stop)
    # Whatever was drawn in between, elsewhere in the process.
    torch.manual_seed(99)
    np.random.default_rng()
    result = train(tmp_path)
    assert same(weights(result), weights(never_stopped))
    assert (result.step, result.best) == (never_stopped.step, never_stopped.best)
    # The last weights too, and the journal: no step twice, none missing.
    assert untimed(result.history) == untimed(never_stopped.history)
    assert untimed(read(tmp_path / JOURNAL)) == untimed(never_stopped.history)
    assert same(dict(checkpoint.read(tmp_path).network.state_dict()), weights(never_stopped))


STAGES = ({"steps": 6, "lr": 1e-2}, {"steps": 7, "lr": 1e-3, "select": "last"})


@pytest.mark.parametrize(
    ("change", "stops"), [({"clip_norm": 0.5, "patience": None}, [17]), ({"stages": STAGES}, [5, 6, 7, 11])]
)
def test_the_last_weights_are_the_same_as_well_in_every_stage(tmp_path, change, stops):
    recipe = replace(RECIPE, select="last", **change)
    whole = train(None, recipe=recipe)
    for stop in stops:
        refuses("", train, tmp_path, error=Stopped, recipe=recipe, stop=stop)
    assert same(weights(train(tmp_path, recipe=recipe)), weights(whole))


def test_one_that_ended_is_not_repeated(tmp_path, never_stopped):
    train(tmp_path)
    before = (tmp_path / JOURNAL).read_bytes()

    def never(stage, done, total):
        assert stage != "training"

    again = train(tmp_path, progress=never)
    assert same(weights(again), weights(never_stopped))
    assert (again.step, again.best) == (never_stopped.step, never_stopped.best)
    assert (tmp_path / JOURNAL).read_bytes() == before


def main(out):
    def progress(stage, done, total):
        if stage == "training":
            sys.stdout.write(f"{done}\n")
            sys.stdout.flush()

    train(Path(out), progress=progress)


def test_killed_at_any_step_it_goes_on_to_the_same_weights(tmp_path, never_stopped):
    out, environment = tmp_path / "out", {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    # At a random moment within a step.
    reached, stop = 0, int(np.random.default_rng().integers(1, 22))
    command = [sys.executable, __file__, str(out)]
    with subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            reached = int(line)
            if reached >= stop:
                process.send_signal(signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL, f"stopped at {stop}"
    assert same(weights(train(out)), weights(never_stopped)), f"killed at {stop}"
    assert untimed(read(out / JOURNAL)) == untimed(never_stopped.history)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"recipe": replace(RECIPE, lr=2e-2, warmup=4)}, "another recipe (lr 0.01, now 0.02, warmup 3, "),
        ({"data": thumbnails.rows(50, seed=7, negatives=True)}, "other training data"),
        ({"validation": thumbnails.rows(20, seed=7, negatives=True)}, "other validation data"),
        ({"validation": None}, "other validation data"),
        ({"backbone": thumbnails.thumb(width=8)}, "another model, or another start"),
        ({"backbone": thumbnails.thumb(seed=1)}, "another model, or another start"),
    ],
)
def test_another_training_is_refused_in_a_line(stopped, change, said):
    before = {path.name: path.read_bytes() for path in stopped.iterdir() if path.is_file()}
    message = refuses("", train, stopped, **change, error=InputError)
    assert said in message
    assert message.startswith(f"{stopped}: a training with ")
    assert message.endswith("--no-resume")
    assert {path.name: path.read_bytes() for path in stopped.iterdir() if path.is_file()} == before


def test_anew_forgets_what_was_there(tmp_path, never_stopped):
    refuses("", train, tmp_path, error=Stopped, stop=8, recipe=replace(RECIPE, lr=5e-2))
    assert same(weights(train(tmp_path, resume=False)), weights(never_stopped))
    assert untimed(read(tmp_path / JOURNAL)) == untimed(never_stopped.history)


@pytest.mark.parametrize("damage", ["cut", "text", "empty"])
def test_a_damaged_state_is_said_in_a_line(stopped, damage):
    path = stopped / training_state.FILE
    data = path.read_bytes()
    path.write_bytes({"cut": data[: len(data) // 2], "text": b"hello", "empty": b""}[damage])
    refuses("not a training that can go on from here", train, stopped, error=InputError)


@pytest.mark.parametrize(
    "place", ["identity.recipe", "identity.data", "standing.step", "random", "readings.sums"]
)
def test_a_state_without_one_of_its_fields_is_said_in_a_line(stopped, place):
    path = stopped / training_state.FILE
    state = torch.load(path, weights_only=True)
    *parts, last = place.split(".")
    holder = state
    for part in parts:
        holder = holder[part]
    del holder[last]
    torch.save(state, path)
    refuses(r"not a training that can go on from here|was begun here", train, stopped, error=InputError)


def test_a_full_disk_leaves_what_was_saved(stopped, never_stopped):
    before = (stopped / training_state.FILE).read_bytes()
    # No file may grow beyond half of what the state takes: the system refuses in the middle of writing.
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (len(before) // 2, limits[1]))
    try:
        refuses(r"the disk is full", train, stopped, error=StorageError)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert (stopped / training_state.FILE).read_bytes() == before
    assert not list(stopped.glob(".*.part"))
    assert same(weights(train(stopped)), weights(never_stopped))


if __name__ == "__main__":
    main(sys.argv[1])
