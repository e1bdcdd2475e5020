"""Torch at run time: devices, precisions, the errors of model libraries, and digests of tensors."""

import logging
import platform
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from counterfoil.errors import CounterfoilError, InputError, MissingExtraError, ModelError
from counterfoil.models.base import Identity, Options, prompt_of, reject_unused_options

PRECISIONS = ("fp32", "bf16", "fp16")
#: Of a network with fewer numbers a step takes less time than its threads wait for each other.
SMALL = 1_000_000
CANNOT_BE_HAD = "is not here and cannot be downloaded"
#: Phrases in the libraries' messages where there is no network.
NO_NETWORK = re.compile(
    r"offline|LocalEntryNotFound|Connection ?Error|ConnectError|URLError|resolve host|name resolution|"
    r"Max retries|SocketBlocked|timed? ?out|client has been closed",
    re.IGNORECASE,
)


def library(name: str, package: str = "") -> Any:
    try:
        return import_module(name)
    except ModuleNotFoundError:
        raise MissingExtraError(package or name, "models") from None


def import_torch() -> Any:
    return library("torch")


@contextmanager
def quiet(library: Any = None) -> Iterator[None]:
    """Without the log and warnings of model libraries; of `library`, transformers, without progress bars."""
    disabled = logging.root.manager.disable
    bars = library is not None and library.utils.logging.is_progress_bar_enabled()
    logging.disable(logging.ERROR)
    if bars:
        library.utils.logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(disabled)
        if bars:
            library.utils.logging.enable_progress_bar()


@contextmanager
def drawn_from(seed: int, device: Any = None) -> Iterator[None]:
    """A block whose random numbers, on a device, are drawn from a seed; torch's own state stays as it is."""
    torch = import_torch()
    with torch.random.fork_rng([device] if device is not None and device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def sampling(temperature: float, **more: Any) -> dict[str, Any]:
    """How a model's `generate` chooses tokens: the likeliest ones at temperature 0, else drawn ones."""
    if temperature <= 0:
        return {"do_sample": False, **more}
    return {"do_sample": True, "temperature": temperature, "top_k": 0, "top_p": 1.0, **more}


def one_line(error: BaseException, most: int = 240) -> str:
    return " ".join(str(error).split())[:most]


@contextmanager
def model_errors(what: str, *, where: str, **advice: Any) -> Iterator[None]:
    """Raise what a library raises in the block as one `ModelError` with `what` before the library's words."""
    try:
        yield
    except (CounterfoilError, MemoryError):
        raise
    except Exception as error:
        words = one_line(error) or type(error).__name__
        raise ModelError(f"{what}: {words}", where=where, **advice) from None


@contextmanager
def loading_errors(what: str, where: str, *, kind: str = "folder") -> Iterator[None]:
    """Raise what fails in fetching or reading `what` as one `ModelError`; `kind` can stand for a hub name."""
    with model_errors(f"its {what} cannot be loaded", where=where):
        try:
            yield
        except CounterfoilError:
            raise
        except Exception as error:
            text = causes(error)
            if NO_NETWORK.search(text) and not Path(where.partition(":")[2]).is_dir():
                hint = f"load it once with a network, or give a local {kind}"
                raise ModelError(f"its {what} {CANNOT_BE_HAD}", where=where, hint=hint) from None
            if "trust_remote_code" in text:
                problem = f"its {what} brings code of its own, which is not run"
                raise ModelError(problem, where=where) from None
            if "weights_only" in text or "Weights only" in text:
                problem = "restoring its weights means running code from them, and that is not done"
                raise ModelError(problem, where=where, hint="save them as safetensors") from None
            raise


def device_of(options: Options, *, where: str) -> Any:
    """The torch device asked for; "auto" is a GPU (CUDA, then Apple's) where there is one."""
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
    torch = import_torch()
    if options.precision not in PRECISIONS:
        raise InputError("unknown precision", where=where, given=options.precision, allowed=PRECISIONS)
    if options.precision == "fp16" and device.type == "cpu":
        given, hint = f"precision fp16 on {device}", "use bf16 or fp32 on a CPU"
        raise InputError("fp16 needs a GPU", where=where, given=given, hint=hint)
    return {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[options.precision]


def to_device(model: Any, device: Any, dtype: Any) -> tuple[Any, Any]:
    """The model ready to answer on `device`, and the type its activations have.

    A processor without bf16 arithmetic computes rounded weights in fp32, four times as fast.
    """
    torch = import_torch()
    model = model.eval().requires_grad_(False).to(device=device, dtype=dtype)
    if dtype is torch.bfloat16 and device.type == "cpu" and not _has_bf16(torch):
        return model.float(), torch.float32
    return model, dtype


@dataclass(frozen=True)
class LoadContext:
    """What loading a model starts from, whatever its library: its name, its options, where it computes."""

    where: str
    options: Options
    device: Any
    dtype: Any
    prompt: str

    @classmethod
    def of(cls, where: str, options: Options, *takes: str) -> "LoadContext":
        reject_unused_options(where, options, "precision", *takes)
        device = device_of(options, where=where)
        dtype = precision_of(options, device, where=where)
        return cls(where, options, device, dtype, prompt_of(options, where=where))

    def identity(
        self, *, weights: str, revision: str = "", preprocessing: str = "", **facts: Any
    ) -> Identity:
        options, precision = {"device": self.device.type, **facts}, self.options.precision
        return Identity(self.where, revision, weights, preprocessing, precision, self.prompt, options)

    def provenance(self, library: Any, **facts: Any) -> dict[str, Any]:
        """What a run's manifest has of the model: the versions of its library and of torch, the device."""
        versions = {library.__name__: library.__version__, "torch": import_torch().__version__}
        return {**versions, "device": str(self.device), **facts}


def _has_bf16(torch: Any) -> bool:
    """Whether this processor multiplies bf16; assumed where torch cannot tell."""
    checks = [getattr(torch.cpu, f"_is_{unit}_supported", None) for unit in ("avx512_bf16", "amx_tile")]
    other = platform.machine().lower() not in ("x86_64", "amd64")
    return other or any(check is None or check() for check in checks)


@contextmanager
def fewest_threads(network: Any, device: Any) -> Iterator[None]:
    """One thread of torch where `network` is small and on the processor; learning ignores their number."""
    torch = import_torch()
    before = torch.get_num_threads()
    if device.type == "cpu" and sum(parameter.numel() for parameter in network.parameters()) < SMALL:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def causes(error: BaseException) -> str:
    cause = error.__cause__ or error.__context__
    return f"{type(error).__name__} {error}" + (f" {causes(cause)}" if cause else "")
