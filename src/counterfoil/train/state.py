"""The state of a training at one step, in one file, from which it resumes to the same weights."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from lightning_fabric import Fabric

from counterfoil.benchmarks.training_rows import TrainingSet
from counterfoil.engine.plan import Note
from counterfoil.errors import CounterfoilError, InputError, StorageError
from counterfoil.inputs.files import canonical_json, digest, digest_value, regular
from counterfoil.models import checkpoint
from counterfoil.models.base import digest_tensors
from counterfoil.models.checkpoint_files import check_archive
from counterfoil.models.networks import Backbone
from counterfoil.store import check_writable, writing
from counterfoil.train.recipes import Recipe

#: The file in the folder of a training.
FILE = "resume.pt"
_VERSION = 1
_ANEW = "start anew with --no-resume"


@dataclass
class TrainState:
    """How far a training has come, as plain values: `step` over all stages, `at` within the one it is in."""

    step: int = 0
    stage: int = 0
    at: int = 0
    #: The value of the best validation so far and its step, 0 where there is none.
    best: float | None = None
    best_step: int = 0
    #: The step since which no validation was better.
    stale_since: int = 0
    #: Seconds of training, seconds of them spent waiting for data, rows of all devices.
    seconds: float = 0.0
    waited: float = 0.0
    rows: int = 0
    #: The same two of the epoch that is being gone through.
    epoch_seconds: float = 0.0
    epoch_waited: float = 0.0
    #: What the guarded task was at the start.
    held_out: float | None = None
    #: Rows whose pictures could not be read.
    left_out: list[int] = field(default_factory=list)
    ended: bool = False

    @classmethod
    def restored(cls, saved: Mapping[str, Any]) -> "TrainState":
        """The state that a file holds; raises `KeyError` where it lacks a field."""
        # Earlier versions did not count the time of an epoch.
        later = {"epoch_seconds": 0.0, "epoch_waited": 0.0}
        return cls(**{field.name: {**later, **saved}[field.name] for field in fields(cls)})

    def took(self, rows: int, seconds: float, waited: float) -> None:
        """Take in a step: its rows, the time it took and how much of that it waited for them."""
        self.step, self.at, self.rows = self.step + 1, self.at + 1, self.rows + rows
        self.seconds, self.waited = self.seconds + seconds, self.waited + waited
        self.epoch_seconds, self.epoch_waited = self.epoch_seconds + seconds, self.epoch_waited + waited

    def end_epoch(self, largest: Callable[[float], float]) -> float:
        """The share of the epoch spent waiting for data, by the process that waited longest; starts anew."""
        share = largest(self.epoch_waited / self.epoch_seconds if self.epoch_seconds else 0.0)
        self.epoch_seconds = self.epoch_waited = 0.0
        return share


def identity(
    backbone: Backbone, recipe: Recipe, data: TrainingSet, validation: TrainingSet | None
) -> dict[str, Any]:
    """The identity of a training as plain values: recipe, data, and the model with its first weights."""
    regions = "" if "images" in backbone.needs else f" {backbone.preparation!r}"
    return {
        "recipe": json.loads(canonical_json(asdict(recipe))),
        "model": [backbone.name, digest_value(backbone.card), digest_tensors(backbone.network.state_dict())],
        "data": content(data) + regions,
        "validation": None if validation is None else content(validation),
    }


def content(data: TrainingSet) -> str:
    """A digest of rows, captions and the names of images; where the files lie does not matter."""
    state = hashlib.blake2b(digest_size=16)

    def add(text: str) -> None:
        state.update(text.encode("utf-8", "surrogatepass"))

    add(f"{data.name}\0")
    # Line by line: all of them as one text would be gigabytes of millions of rows.
    for i, image in enumerate(data.images):
        add(f"{chr(10) if i else ''}{image.id} {image.crop}")
    add("\0")
    for i, caption in enumerate(data.captions):
        add(f"{chr(10) if i else ''}{caption.id} {caption.text}")
    for role in sorted(data.rows):
        add(f"\0{role}\0{digest(np.ascontiguousarray(data.rows[role], dtype='<i8').tobytes())}")
    return state.hexdigest()


#: The parts of an identity, and what one that differs is called.
_ANOTHER = {
    "recipe": "another recipe",
    "model": "another model, or another start",
    "data": "other training data",
    "validation": "other validation data",
}


def check_same(saved: Mapping[str, Any], now: Mapping[str, Any], *, where: Path) -> None:
    """Raise `InputError` where a saved training is not the one that is asked for now."""
    part = next((part for part in _ANOTHER if saved.get(part) != now[part]), None)
    if part is None:
        return
    what = _ANOTHER[part]
    if part == "recipe":
        old, new = saved.get("recipe", {}), now["recipe"]
        names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
        what += f" ({', '.join(f'{name} {old.get(name)}, now {new.get(name)}' for name in names[:3])})"
    hint = "choose another folder, or start anew over it with --no-resume"
    raise InputError(f"a training with {what} was begun here", where=where, hint=hint)


def opened(
    out: Path | None,
    backbone: Backbone,
    recipe: Recipe,
    data: TrainingSet,
    validation: TrainingSet | None,
    *,
    resume: bool,
    fabric: Fabric,
) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """A training's identity, and its state in the folder `out`, None where it begins."""
    if out is None:
        return {}, None
    same = identity(backbone, recipe, data, validation)
    check_writable(out, folder=True)
    checkpoint.check_target(out)
    if (state := load(out) if resume else None) is not None:
        with fitting(out):
            check_same(state["identity"], same, where=out)
    # No process looks after the first one has tidied up.
    fabric.barrier()
    if fabric.is_global_zero and state is None:
        try:
            (out / FILE).unlink(missing_ok=True)
        except OSError as error:
            raise StorageError(f"cannot be removed: {error.strerror or error}", where=out / FILE) from None
    return same, state


def save(folder: Path, state: Mapping[str, Any]) -> None:
    """Write the state in one piece; a full disk leaves the old one."""
    with writing(folder / FILE) as file:
        catching = _Catching(file)
        try:
            torch.save({"version": _VERSION, **state}, catching)
        except (RuntimeError, OSError):
            # torch hides what the system said behind an error of its own.
            if catching.error is not None:
                raise catching.error from None
            raise


def load(folder: Path) -> dict[str, Any] | None:
    """The state saved in a folder, on the CPU, None where there is none; no code in it is run."""
    path = folder / FILE
    if not path.exists():
        return None
    try:
        regular(path)
        check_archive(path)
        state = torch.load(path, map_location="cpu", weights_only=True)
    # On a damaged file the unpickler raises anything from EOFError to KeyError.
    except Exception as error:
        why = str(error) if isinstance(error, CounterfoilError) else type(error).__name__
        raise _no_state(path, why) from None
    if not isinstance(state, dict) or state.get("version") != _VERSION:
        why = f"version {state.get('version')}" if isinstance(state, dict) else type(state).__name__
        raise _no_state(path, why)
    with fitting(folder):
        sizes = {name: of.numel() * of.element_size() for name, of in state["network"].items()}
    if odd := [name for name, size in sizes.items() if size > path.stat().st_size]:
        raise _no_state(path, f"'{odd[0]}' is no tensor of this file")
    return state


def _no_state(path: Path, why: str) -> InputError:
    return InputError("not a training that can go on from here", where=path, given=why, hint=_ANEW)


@contextmanager
def fitting(folder: Path | None) -> Iterator[None]:
    """Say so where what a file holds does not fit the network, the optimiser or the generators."""
    try:
        yield
    except (RuntimeError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        words = " ".join(str(error).split())[:120]
        raise _no_state((folder or Path()) / FILE, words) from None


def random_state() -> dict[str, Any]:
    """The state of torch's generators in this process."""
    return {
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None,
        "mps": torch.mps.get_rng_state() if torch.backends.mps.is_available() else None,
    }


def set_random_state(state: Mapping[str, Any]) -> None:
    """Put the generators back to a state from `random_state`."""
    torch.set_rng_state(state["torch"])
    if state["cuda"] is not None and torch.cuda.is_available():
        torch.cuda.set_rng_state(state["cuda"])
    if state.get("mps") is not None and torch.backends.mps.is_available():
        torch.mps.set_rng_state(state["mps"])


def put_back_random(states: Sequence[Mapping[str, Any]], fabric: Fabric, note: Note) -> None:
    """Put this process's generators back to its own of the `states`; `note` where their number differs."""
    if len(states) != fabric.world_size:
        note(
            f"this training ran on {len(states)} processes and goes on with {fabric.world_size}: "
            "what it draws at random (dropout, samples) is no longer what it would have been"
        )
    set_random_state(states[fabric.global_rank % len(states)])


class _Catching:
    """A file that remembers the error of the system that writing to it raised."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.error: OSError | None = None

    def write(self, data: bytes | memoryview) -> int:
        try:
            return self._file.write(data)
        except OSError as error:
            self.error = error
            raise

    def flush(self) -> None:
        self._file.flush()
