"""Torch at run time: devices, precisions, the errors of model libraries, and digests of weights.

Two networks under one name must never share what a cache keeps. So an identity says which weights it is of,
or which version of the code where there are none; of a scorer that says neither, its torch modules, tensors
and NumPy arrays are looked for among its attributes.
"""

import hashlib
import platform
import re
import sys
from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from types import FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from counterfoil.errors import InputError, MissingExtraError, ModelError
from counterfoil.scorers.base import Identity, Options
from counterfoil.store import digest, digest_value

PRECISIONS = ("fp32", "bf16", "fp16")
#: What libraries say, each in its own way, where there is no network.
NO_NETWORK = re.compile(
    r"offline|LocalEntryNotFound|Connection ?Error|ConnectError|URLError|resolve host|name resolution|"
    r"Max retries|SocketBlocked|timed? ?out|client has been closed",
    re.IGNORECASE,
)


def device_of(options: Options, *, where: str) -> Any:
    """The torch device asked for; "auto" is a GPU (CUDA, then Apple's) where there is one.

    Raises `ModelError` for devices that are not there, `MissingExtraError` where torch is not installed.
    """
    torch = import_torch()
    there = ["cpu"]
    if torch.cuda.is_available():
        there = ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count())), *there]
    if torch.backends.mps.is_available():
        there = ["mps", *there]
    name = there[0] if options.device == "auto" else options.device
    if name not in there:
        raise ModelError("no such device here", where=where, given=name, allowed=["auto", *there])
    return torch.device(name)


def precision_of(options: Options, device: Any, *, where: str) -> Any:
    """The torch type of weights and activations; raises `InputError` for one that the device cannot do."""
    torch = import_torch()
    if options.precision not in PRECISIONS:
        raise InputError("unknown precision", where=where, given=options.precision, allowed=PRECISIONS)
    if options.precision == "fp16" and device.type == "cpu":
        raise InputError(
            "fp16 needs a GPU",
            where=where,
            given=f"precision fp16 on {device}",
            hint="use bf16 or fp32 on a CPU",
        )
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[options.precision]


def to_device(model: Any, device: Any, dtype: Any) -> tuple[Any, Any]:
    """The model ready to answer on `device`, and the type its activations have.

    Weights are rounded to `dtype`, and activations too, except for bf16 on a processor that has no arithmetic
    for it: emulated, that takes four times as long as fp32, so there the rounded weights are computed with in
    fp32.
    """
    torch = import_torch()
    model = model.eval().requires_grad_(False).to(device=device, dtype=dtype)
    if dtype is torch.bfloat16 and device.type == "cpu" and not _has_bf16(torch):
        return model.float(), torch.float32
    return model, dtype


def _has_bf16(torch: Any) -> bool:
    """Whether this processor multiplies bf16; assumed where torch cannot tell."""
    checks = [getattr(torch.cpu, f"_is_{unit}_supported", None) for unit in ("avx512_bf16", "amx_tile")]
    return platform.machine().lower() not in ("x86_64", "amd64") or any(
        check is None or check() for check in checks
    )


def import_torch() -> Any:
    """The package torch; raises `MissingExtraError` where it is not installed."""
    try:
        import torch
    except ModuleNotFoundError:
        raise MissingExtraError("torch", "models") from None
    return torch


def causes(error: BaseException) -> str:
    """An error and all that led to it, with the names of their types, as one text."""
    chain: list[str] = []
    cause: BaseException | None = error
    while cause is not None:
        chain.append(f"{type(cause).__name__} {cause}")
        cause = cause.__cause__ or cause.__context__
    return " ".join(chain)


def digest_tensors(state: Mapping[str, Any]) -> str:
    """32 hex digits that name the tensors (names, types, shapes and bytes), whatever file they came from."""
    torch = import_torch()
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        # NumPy knows no bfloat16, but it knows bytes.
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


#: How deep attributes of attributes are looked into, and where the `repr` of an object names its place.
_DEPTH = 6
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def identity_of(scorer: Any) -> Identity:
    """The scorer's identity; without `weights` in it, with the digest of the weights that the scorer holds.

    Those are all torch modules (every parameter and buffer, and the structure that prints), tensors and NumPy
    arrays among its attributes: also in lists, dictionaries and objects, behind bound methods, partial
    functions and closures. They are read at every call, so a network that is trained on between two runs has
    two identities. A scorer that holds none keeps its identity as it is.

    >>> from dataclasses import dataclass
    >>> @dataclass
    ... class Bilinear:
    ...     matrix: np.ndarray
    ...     identity: Identity = Identity("bilinear")
    >>> one, other = (identity_of(Bilinear(np.full((2, 2), value))) for value in (0.0, 1.0))
    >>> one.name == other.name, one.key == other.key
    (True, False)
    """
    identity: Identity = scorer.identity
    if identity.weights:
        return identity
    held = {name: _digest(value) for name, value in _found(scorer, "", set(), _DEPTH)}
    return replace(identity, weights=digest_value(held)) if held else identity


def check_kept(identity: Identity) -> None:
    """Raise `InputError` where an identity says nothing that would change with the weights or the code."""
    if not (identity.weights or identity.revision):
        raise InputError(
            "what this scorer computes cannot be kept: its identity has neither weights nor a revision, so "
            "another model of this name would get its scores",
            where=identity.name,
            hint='Identity(NAME, revision="1") with a number that you raise when the code changes, '
            "Identity(NAME, weights=DIGEST), or no cache",
        )


def _found(value: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, Any]]:
    """The modules, tensors and arrays reached from `value`, each once, by the way that leads there."""
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    if _is_torch(value) or (isinstance(value, np.ndarray) and value.dtype != object):
        yield name, value
        return
    for part, inner in _inside(value):
        yield from _found(inner, f"{name}.{part}", seen, depth - 1)


def _inside(value: Any) -> list[tuple[str, Any]]:
    """What `value` holds, with a name for each that is the same in every process."""
    if isinstance(value, str | bytes | int | float | complex | type | ModuleType | None):
        return []
    if isinstance(value, Mapping):
        return [(str(key), inner) for key, inner in value.items()]
    if isinstance(value, list | tuple):
        return [(str(i), inner) for i, inner in enumerate(value)]
    if isinstance(value, partial):
        return [("func", value.func), ("args", value.args), ("keywords", value.keywords)]
    if isinstance(value, MethodType):
        return [("self", value.__self__)]
    if isinstance(value, FunctionType):
        cells = zip(value.__code__.co_freevars, value.__closure__ or (), strict=True)
        return [(name, cell.cell_contents) for name, cell in cells if _filled(cell)]
    slots = [name for kind in type(value).__mro__ for name in _slots(kind)]
    named = {name: getattr(value, name) for name in slots if hasattr(value, name)}
    return list({**named, **getattr(value, "__dict__", {})}.items())


def _slots(kind: type) -> tuple[str, ...]:
    slots = kind.__dict__.get("__slots__", ())
    return tuple(
        name for name in ((slots,) if isinstance(slots, str) else slots) if not name.startswith("__")
    )


def _filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:  # not yet assigned
        return False


def _is_torch(value: Any) -> bool:
    # Where torch was never imported, nothing of it can be held.
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.nn.Module | torch.Tensor)


def _digest(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return digest(f"{value.dtype} {value.shape};".encode() + value.tobytes())

    if not hasattr(value, "named_parameters"):
        return digest_tensors({"": value})
    state = {**dict(value.named_parameters()), **dict(value.named_buffers())}
    # What no tensor tells, an activation say, is in what the module prints.
    return digest_value([_ADDRESS.sub("", repr(value)), digest_tensors(state)])
