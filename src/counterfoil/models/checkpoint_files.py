"""Checkpoint files: read without running code in them, and fitted to a model."""

import argparse
import json
import pickle
import re
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from numpy import ndarray

from counterfoil.errors import DataError, ModelError
from counterfoil.inputs import pickled
from counterfoil.inputs.files import parse_json
from counterfoil.inputs.limits import check_room, size
from counterfoil.models.runtime import import_torch

#: Where training code keeps the weights in its checkpoints, first the likeliest.
WEIGHTS = ("state_dict", "model_state_dict", "model", "module", "weights")
#: Entries of other programs' files that are no weights.
_NOT_WEIGHTS = re.compile(
    r"(.*\.)?(attn_mask|position_ids|input_resolution|context_length|vocab_size)|logit_(scale|bias)"
)
#: What training scripts put beside the weights: their command line and NumPy's numbers. They run no code.
_PLAIN_TYPES: list[Any] = [
    argparse.Namespace,
    # Never NumPy's own: it would take the bytes of an object for a pointer.
    (pickled.Type, "numpy.dtype"),
    # NumPy 2 moved its parts, and files name them by where they were.
    *((pickled.number, f"numpy.{part}.multiarray.scalar") for part in ("core", "_core")),
]


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """Tensors by name, without the prefixes that wrappers add, and what the file says about itself."""

    tensors: Mapping[str, Any]
    notes: Mapping[str, Any] = field(default_factory=dict)


def read_checkpoint(path: Path) -> Checkpoint:
    """Weights of a safetensors file or PyTorch archive, whose code is never run; `notes` lie beside them."""
    if path.is_dir():
        hint = "name the file in it, or use hf:FOLDER"
        raise ModelError("is a folder, not a checkpoint", where=path, hint=hint)
    if not path.is_file():
        raise ModelError("no such checkpoint file", where=path, hint="check the path after the architecture")
    notes: dict[str, Any] = {}
    if path.suffix == ".safetensors":
        with opened(path) as file:
            content = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
            notes = dict(file.metadata() or {})
    else:
        content = _torch_archive(path)
    key = next((key for key in WEIGHTS if isinstance(content.get(key), Mapping)), None)
    if key is not None:
        plain = {k: v for k, v in content.items() if v is None or isinstance(v, bool | int | float | str)}
        metadata = {"counterfoil": content["counterfoil"]} if "counterfoil" in content else {}
        content, notes = dict(content[key]), {**plain, **metadata, **notes}
    torch = import_torch()
    tensors = {str(name): value for name, value in content.items() if isinstance(value, torch.Tensor)}
    if not tensors:
        given = ", ".join(map(str, content)) or "nothing"
        raise ModelError("holds no weights", where=path, given=given, allowed=WEIGHTS)
    _check_tensors(tensors, path)
    for prefix in ("module.", "_orig_mod.", "module."):
        if all(name.startswith(prefix) for name in tensors):
            tensors = {name.removeprefix(prefix): value for name, value in tensors.items()}
    return Checkpoint(tensors, notes)


def packed(tensors: Mapping[str, Any], metadata: Mapping[str, str]) -> tuple[bytes, memoryview]:
    """Header and tensors of a safetensors file; sorted metadata make equal weights equal bytes."""
    from safetensors.torch import save

    data = save(dict(tensors), metadata=dict(metadata))
    start = 8 + int.from_bytes(data[:8], "little")
    header = json.loads(data[8:start])
    notes = header.pop("__metadata__")
    ordered = {"__metadata__": dict(sorted(notes.items())), **header}
    text = json.dumps(ordered, separators=(",", ":"), ensure_ascii=False).encode("utf-8")
    # The format aligns the tensors to eight bytes with blanks.
    text += b" " * (-len(text) % 8)
    return len(text).to_bytes(8, "little") + text, memoryview(data)[start:]


def read_tensor(path: Path) -> ndarray:
    """The one tensor that a PyTorch file holds, as numbers of its type (half precision as float32)."""
    if not path.is_file():
        raise ModelError("no such file", where=path, hint="check the path")
    content = _unpickled(path)
    torch = import_torch()
    if not isinstance(content, torch.Tensor):
        raise ModelError("holds no tensor", where=path, given=type(content).__name__, allowed="one tensor")
    _check_tensors({"": content}, path)
    tensor = content.detach().cpu()
    return (tensor.float() if tensor.dtype in (torch.bfloat16, torch.float16) else tensor).numpy()


def _check_tensors(tensors: Mapping[str, Any], path: Path) -> None:
    """Raise `ModelError` for tensors larger than their file: one may repeat a number, and claim terabytes."""
    torch = import_torch()
    for name, tensor in tensors.items():
        if tensor.layout != torch.strided or tensor.is_quantized or tensor.device.type != "cpu":
            raise ModelError("not a plain tensor", where=f"{path}, '{name}'", given=str(tensor.layout))
        claimed = tensor.numel() * tensor.element_size()
        if claimed > path.stat().st_size:
            where, given = f"{path}, '{name}'" if name else path, f"{_shape(tensor)}, {size(claimed)}"
            allowed = size(path.stat().st_size)
            raise ModelError("a tensor is larger than the file", where=where, given=given, allowed=allowed)


def fit(
    checkpoint: Mapping[str, Any], model: Mapping[str, Any], *, where: Path, architecture: str
) -> dict[str, Any]:
    """The tensors of `checkpoint` that fill `model`; temperatures may be missing and buffers left over."""
    # A temperature is one number, as a scalar or a list of one.
    both = {name: (checkpoint[name], model[name]) for name in model if name in checkpoint}
    wrong = [
        f"{name} is {_shape(given)} instead of {_shape(expected)}"
        for name, (given, expected) in both.items()
        if given.shape != expected.shape and not given.numel() == expected.numel() == 1
    ]
    missing = [name for name in model if name not in checkpoint and not _NOT_WEIGHTS.fullmatch(name)]
    extra = [name for name in checkpoint if name not in model and not _NOT_WEIGHTS.fullmatch(name)]
    if wrong or missing or extra:
        parts = wrong[:2]
        parts += [f"{missing[0]} is missing ({len(missing)} are)"] if missing else []
        parts += [f"{extra[0]} is not in the model ({len(extra)} are not)"] if extra else []
        raise ModelError(f"not a checkpoint of {architecture}", where=where, given="; ".join(parts))
    return {**model, **{name: given.reshape(expected.shape) for name, (given, expected) in both.items()}}


@contextmanager
def opened(path: Path) -> Iterator[Any]:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            yield file
    except (SafetensorError, OSError) as error:
        problem = f"not a readable safetensors file: {error}"
        raise ModelError(problem, where=path, hint="is the file cut off?") from None


def _torch_archive(path: Path) -> dict[str, Any]:
    with suppress(zipfile.BadZipFile, OSError), zipfile.ZipFile(path) as archive:
        # Of TorchScript, which PyTorch's own data archives do not have.
        if any(name.endswith("/constants.pkl") or "/code/" in name for name in archive.namelist()):
            hint = "OpenAI's load by tag (open-clip:ViT-B-32-quickgelu/openai); save others in safetensors"
            raise ModelError("a TorchScript archive, which holds code; it is not run", where=path, hint=hint)
    content = _unpickled(path)
    if not isinstance(content, Mapping):
        given = type(content).__name__
        raise ModelError("holds no weights by name", where=path, given=given, allowed="a state dict")
    return dict(content)


def _unpickled(path: Path) -> Any:
    torch = import_torch()
    check_archive(path)
    try:
        with torch.serialization.safe_globals(_PLAIN_TYPES):
            return torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        match = re.search(r"(?:GLOBAL|class|global) `?'?([\w.]+)", str(error))
        problem = "restoring this file means running code from it, and that is not done"
        given, hint = match.group(1) if match else None, "save the state dict alone"
        allowed = "safetensors, or a PyTorch file of tensors and plain values"
        raise ModelError(problem, where=path, given=given, allowed=allowed, hint=hint) from None
    # On a damaged file the unpickler raises anything from EOFError to KeyError.
    except Exception as error:
        problem = f"not a readable PyTorch file ({type(error).__name__})"
        raise ModelError(problem, where=path, hint="is the file cut off?") from None


def check_archive(path: Path) -> None:
    """Raise `ModelError` where a zip archive unpacks to more than it is or than fits into memory."""
    try:
        with zipfile.ZipFile(path) as archive:
            unpacked = sum(info.file_size for info in archive.infolist())
            odd = [info.filename for info in archive.infolist() if info.flag_bits & 0x1]
    except (zipfile.BadZipFile, OSError, ValueError, NotImplementedError):
        # An older kind of file, or none: what reads it says so.
        return
    if odd:
        raise ModelError("is encrypted", where=path, given=odd[0][:60])
    try:
        check_room(unpacked, where=path, what="what the file unpacks to")
    except DataError as error:
        raise ModelError(str(error)) from None


def _shape(tensor: Any) -> str:
    return "x".join(map(str, tensor.shape)) or "a number"


def nearest(name: str, names: list[str]) -> str:
    near = get_close_matches(name, names, n=3, cutoff=0.6)
    return f"did you mean {' or '.join(near)}?" if near else ""


def metadata_of(notes: Mapping[str, Any]) -> Mapping[str, Any]:
    """What counterfoil's own training wrote into a checkpoint under the key "counterfoil", or {}."""
    value = notes.get("counterfoil")
    if isinstance(value, str):
        try:
            value = parse_json(value, where="metadata", finite=True)
        except DataError:
            return {}
    return value if isinstance(value, Mapping) else {}
