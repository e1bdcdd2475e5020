"""Models are loaded when something is left to compute, and only then."""

import os
import re
from pathlib import Path

import numpy as np
import pytest

from counterfoil.benchmarks import Caption
from counterfoil.benchmarks.videos import FrameFeatures, Video
from counterfoil.errors import ModelError
from counterfoil.models.base import Embedder, Identity, Options
from counterfoil.models.captions.base import LocalEmbedder
from counterfoil.models.lazy import LazyEmbedder, lazy
from processes import python
from refusals import refuses


class Counted:
    """An embedder that counts how often it is made, with the bytes of its file as its weights."""

    made = 0

    def __init__(self, argument, options):
        type(self).made += 1
        self.identity = Identity(f"counted:{argument}", weights=Path(argument).read_text())
        self.provenance = {"device": "cpu"}

    def embed_images(self, batches, *, workers=0):
        return (np.ones((len(batch), 2), dtype=np.float32) for batch in batches)

    def embed_captions(self, batches):
        return (np.ones((len(batch), 2), dtype=np.float32) for batch in batches)

    def lengths(self, captions):
        return [3] * len(captions)

    def compare(self, captions, images):
        return np.ones(len(captions))


@pytest.fixture
def weights(tmp_path):
    Counted.made = 0
    path = tmp_path / "weights.bin"
    path.write_text("one")
    return path


def _asked(weights, folder, **options):
    return lazy("counted", str(weights), Options(**options), Counted, folder)


def test_the_second_time_loads_when_a_batch_asks(weights, tmp_path):
    first = _asked(weights, tmp_path)
    assert isinstance(first, Counted)
    second = _asked(weights, tmp_path)
    assert isinstance(second, LazyEmbedder)
    assert isinstance(second, Embedder)
    assert (second.identity, second.provenance) == (first.identity, {"device": "cpu"})
    # What a run from the cache asks for needs no model.
    assert list(second.embed_images([])) == list(second.embed_captions([])) == second.lengths([]) == []
    side = np.array([[0.6, 0.8]], dtype=np.float32)
    assert second.compare(side, side) == pytest.approx([1.0])
    assert Counted.made == 1
    # A batch does, once.
    assert next(iter(second.embed_captions([[Caption("0", "a cat")]]))).shape == (1, 2)
    assert second.lengths([Caption("0", "a cat")]) == [3]
    assert Counted.made == 2


def test_other_options_and_changed_files_are_looked_at_anew(weights, tmp_path):
    _asked(weights, tmp_path)
    assert isinstance(_asked(weights, tmp_path, precision="bf16"), Counted)
    weights.write_text("another")
    anew = _asked(weights, tmp_path)
    assert isinstance(anew, Counted)
    assert anew.identity.weights == "another"


def test_a_model_that_is_not_the_one_remembered_is_refused(weights, tmp_path):
    _asked(weights, tmp_path)
    before = weights.stat()
    weights.write_text("two")  # as long as "one", and made to look as old
    os.utime(weights, ns=(before.st_atime_ns, before.st_mtime_ns))
    second = _asked(weights, tmp_path)
    refuses("not the one remembered", second.lengths, [Caption("0", "a cat")], error=ModelError)
    assert isinstance(_asked(weights, tmp_path), Counted)  # forgotten, so looked at anew


def test_a_broken_note_is_passed_over(weights, tmp_path):
    _asked(weights, tmp_path)
    (note,) = (tmp_path / "identities").iterdir()
    for text in ("{", "[]", '{"identity": {"colour": "red"}, "provenance": {}}'):
        note.write_text(text)
        assert isinstance(_asked(weights, tmp_path), Counted)


@pytest.mark.usefixtures("tiny_architectures")
def test_parts_are_remembered_too(checkpoint, tmp_path):
    from counterfoil.models import open_clip

    loads = []

    def load(argument, options):
        loads.append(argument)
        return open_clip.load(argument, options)

    def asked(name):
        return lazy("open-clip", f"{name}/{checkpoint(name)}", Options(device="cpu"), load, tmp_path)

    first, second = asked("tiny"), asked("tiny")
    assert isinstance(second, LazyEmbedder)
    assert isinstance(second.local, LocalEmbedder)
    assert second.local.identity == first.local.identity != first.identity
    # Frames that are embedded already need no model.
    short, long = Caption("0", "a cat"), Caption("1", " ".join(["cat"] * 80))
    np.save(tmp_path / "film.npy", np.array([[3.0, 4.0]]))
    ((frames,),) = second.local.embed_frames([[Video("film", FrameFeatures(tmp_path / "film.npy"))]])
    np.testing.assert_allclose(frames, [[0.6, 0.8]], rtol=1e-6)
    assert list(second.local.embed_tokens([])) == list(second.local.embed_frames([])) == []
    assert second.local.token_ids([]) == []
    assert len(loads) == 1
    # The rest is the model's own.
    assert second.over_limit([short, long]) == second.local.over_limit([long]) == 1
    assert len(loads) == 2
    ours, theirs = (next(iter(item.local.embed_tokens([[short]])))[0] for item in (second, first))
    np.testing.assert_array_equal(ours.vectors, theirs.vectors)
    np.testing.assert_array_equal(second.local.token_ids(["a cat"])[0], ours.ids)
    assert len(loads) == 2
    # A model without parts has none the second time either.
    assert asked("tiny-last").local is asked("tiny-last").local is None


def test_names_on_a_hub_are_not_remembered(weights, tmp_path):
    for _ in range(2):
        lazy("hf", "openai/clip-b32", Options(), lambda _, options: Counted(weights, options), tmp_path)
    assert Counted.made == 2
    # Nor is a setting that names a model there.
    other = tmp_path / "other.bin"
    other.write_text("two")

    def asked(model):
        options = Options(settings={"lm": model, "alpha": "1"})
        return lazy("counted", str(weights), options, Counted, tmp_path, models=("lm",))

    asked("gpt2")
    assert isinstance(asked("gpt2"), Counted)
    assert not (tmp_path / "identities").exists()
    asked(str(other))
    assert isinstance(asked(str(other)), LazyEmbedder)
    other.write_text("three, which is longer")
    assert isinstance(asked(str(other)), Counted)


def test_a_second_run_of_the_command_does_not_import_torch(tmp_path):
    pytest.importorskip("open_clip")
    from counterfoil.benchmarks.folder import save
    from counterfoil.world.sample import quads
    from faults.command import run
    from tiny_families import write_random_checkpoint

    save(quads(7, seed=0, size=32), tmp_path / "world")
    spec = write_random_checkpoint(tmp_path / "model", seed=0)
    out = tmp_path / "runs"
    command = ["evaluate", spec, str(tmp_path / "world"), "--cache", str(tmp_path / "cache")]
    command += ["--draws", "100", "--device", "cpu", "--workers", "0", "-q", "--out"]
    first = run([*command, str(out / "first")], tmp_path)
    assert first.code == 0, first.err
    second = python("-X", "importtime", "-m", "counterfoil", *command, out / "second")
    assert second.returncode == 0, second.stderr
    assert re.search(r"\bnumpy$", second.stderr, re.MULTILINE)
    assert not re.search(r"\btorch$", second.stderr, re.MULTILINE)
    scores = [(out / name / "world" / "answers.parquet").read_bytes() for name in ("first", "second")]
    assert scores[0] == scores[1]
