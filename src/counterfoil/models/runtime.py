"""Torch at run time: devices, precisions, the errors of model libraries, and digests of tensors."""

import platform
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from counterfoil.errors import InputError, MissingExtraError, ModelError
from counterfoil.models.base import Identity, Options, ScorerSettings, prompt_of, reject_unused_options

PRECISIONS = ("fp32", "bf16", "fp16")
#: Of a network with fewer numbers a step takes less time than its threads wait for each other: with two of
#: them 0.2 million take 2 to 13 times as long as with one, the more the busier the machine is.
SMALL = 1_000_000
#: What is said of what is neither here nor to be had.
CANNOT_BE_HAD = "is not here and cannot be downloaded"
#: Phrases in the libraries' messages where there is no network.
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
    # A torch.device is as good as its name.
    name = there[0] if options.device == "auto" else str(options.device)
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


@dataclass(frozen=True)
class LoadContext:
    """What loading a model starts from, whatever its library: its name, its options, where it computes."""

    #: The scorer's name, which errors begin with.
    where: str
    options: Options
    settings: ScorerSettings
    device: Any
    dtype: Any
    prompt: str

    @classmethod
    def of(cls, where: str, options: Options, *takes: str) -> "LoadContext":
        """The context of a model that takes a precision and the options `takes`.

        Raises `InputError` for other options, and for a prompt or a precision that cannot be; `ModelError`
        for a device that is not there.
        """
        reject_unused_options(where, options, "precision", *takes)
        device = device_of(options, where=where)
        return cls(
            where=where,
            options=options,
            settings=ScorerSettings(where, options.settings),
            device=device,
            dtype=precision_of(options, device, where=where),
            prompt=prompt_of(options, where=where),
        )

    def identity(
        self, *, weights: str, revision: str = "", preprocessing: str = "", **facts: Any
    ) -> Identity:
        """The identity of the model: its weights, and `facts` besides its device."""
        return Identity(
            name=self.where,
            revision=revision,
            weights=weights,
            preprocessing=preprocessing,
            precision=self.options.precision,
            prompt=self.prompt,
            options={"device": self.device.type, **facts},
        )

    def provenance(self, library: Any, **facts: Any) -> dict[str, Any]:
        """What a run's manifest has of the model: the versions of its library and of torch, the device."""
        versions = {library.__name__: library.__version__, "torch": import_torch().__version__}
        return {**versions, "device": str(self.device), **facts}


def _has_bf16(torch: Any) -> bool:
    """Whether this processor multiplies bf16; assumed where torch cannot tell."""
    checks = [getattr(torch.cpu, f"_is_{unit}_supported", None) for unit in ("avx512_bf16", "amx_tile")]
    return platform.machine().lower() not in ("x86_64", "amd64") or any(
        check is None or check() for check in checks
    )


@contextmanager
def fewest_threads(network: Any, device: Any) -> Iterator[None]:
    """A block in which torch has one thread where `network` is small and on the processor.

    What it learns then does not depend on the number of threads either.
    """
    torch = import_torch()
    before = torch.get_num_threads()
    if device.type == "cpu" and sum(parameter.numel() for parameter in network.parameters()) < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


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
