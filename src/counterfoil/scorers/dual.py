"""What all dual encoders share: batches in, unit vectors out.

A model library contributes four callables (pixels and texts to features, the preparation of pictures, the
count of tokens); this module adds workers, the prompt, device, precision, normalisation and comparison.
"""

import hashlib
import platform
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.records import Caption, Image
from counterfoil.errors import InputError, MissingExtraError, ModelError
from counterfoil.scorers.base import Identity, Options, cosines, text_of
from counterfoil.scorers.comparisons import Comparison
from counterfoil.scorers.local import LocalEncoder, TokenTower
from counterfoil.scorers.pictures import Preparation, prepared

PRECISIONS = ("fp32", "bf16", "fp16")
#: What libraries say, each in its own way, where there is no network.
NO_NETWORK = re.compile(
    r"offline|LocalEntryNotFound|Connection ?Error|ConnectError|URLError|resolve host|name resolution|"
    r"Max retries|SocketBlocked|timed? ?out|client has been closed",
    re.IGNORECASE,
)


@dataclass(frozen=True, eq=False)
class DualEncoder:
    """An `Embedder` around the two towers of a model.

    Embeddings are normalised in float32 whatever the precision of the towers, and compared in float64. Where
    a `comparison` says how rows are compared (several points per item, Gaussians), the towers give finished
    rows and nothing is normalised here.
    """

    identity: Identity
    preparation: Preparation
    #: What `preparation` made of each picture of a batch, to a (batch, width) tensor.
    encode_images: Callable[[Sequence[ndarray]], Any]
    #: Texts to a (batch, width) tensor.
    encode_texts: Callable[[Sequence[str]], Any]
    #: Texts to the number of tokens the model reads of each, marks of begin and end included.
    count_tokens: Callable[[Sequence[str]], Sequence[int]]
    #: What does not change answers beyond rounding and belongs in a manifest: versions, device, towers used.
    provenance: Mapping[str, Any] = field(default_factory=dict)
    comparison: Comparison | None = None
    #: Texts to how many of the tokens of each are left out because the model reads no more; None where
    #: nobody can tell.
    count_left_out: Callable[[Sequence[str]], Sequence[int]] | None = None
    #: The text tower token by token, where it has one point per token in the space of the images.
    tokens: TokenTower | None = None

    def embed_images(
        self, batches: Sequence[Sequence[Image]], *, workers: int = 0
    ) -> Iterator[Float[np.ndarray, "batch width"]]:
        """One (batch, width) float32 array of unit vectors per batch, decoded in `workers` processes.

        Raises `DataError` naming the file where an image cannot be read.
        """
        with closing(prepared(batches, self.preparation, workers=workers)) as stream:
            for arrays in stream:
                yield self._rows(self.encode_images, arrays)

    def embed_captions(
        self, batches: Sequence[Sequence[Caption]]
    ) -> Iterator[Float[np.ndarray, "batch width"]]:
        """One (batch, width) float32 array of unit vectors per batch.

        Captions longer than the model reads are cut off as its tokenizer does. Raises `DataError` where a
        caption's text is not at hand.
        """
        for batch in batches:
            yield self._rows(self.encode_texts, self._texts(batch))

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        """Tokens of each caption within its prompt, at most as many as the model reads."""
        return self.count_tokens(self._texts(captions)) if len(captions) else []

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions, within the prompt, are longer than the model reads, so that it cuts them off."""
        if self.count_left_out is None or not len(captions):
            return 0
        return sum(left > 0 for left in self.count_left_out(self._texts(captions)))

    def with_prompt(self, prompt: str) -> "DualEncoder":
        """The same towers, captions put into another prompt, and no second copy in memory."""
        return replace(self, identity=replace(self.identity, prompt=prompt))

    @property
    def local(self) -> LocalEncoder | None:
        """The same model part by part; None where its tokens do not lie in the space of its images."""
        if self.tokens is None or self.comparison is not None:
            return None
        options = {**self.identity.options, "parts": "tokens, frames"}
        return LocalEncoder(
            identity=replace(self.identity, options=options),
            preparation=self.preparation,
            tower=self.tokens,
            unit_images=lambda arrays: self._rows(self.encode_images, arrays),
            unit_states=self._states,
            over_limit=self.over_limit,
        )

    def compare(
        self, captions: Float[ndarray, "pairs width"], images: Float[ndarray, "pairs width"]
    ) -> Float[ndarray, "pairs"]:
        """The cosine of captions[i] with images[i], in [-1, 1] up to rounding; or what `comparison` says."""
        if self.comparison is not None:
            return self.comparison.pairs(captions, images)
        return cosines(captions, images)

    def _rows(self, encode: Callable[[Any], Any], batch: Any) -> Float[np.ndarray, "batch width"]:
        torch = import_torch()
        with torch.inference_mode():
            rows = encode(batch).float()
            if self.comparison is None:
                rows = torch.nn.functional.normalize(rows, dim=-1)
        array: ndarray = rows.cpu().numpy()
        return array

    def _states(self, texts: Sequence[str]) -> Float[np.ndarray, "texts longest width"]:
        torch = import_torch()
        assert self.tokens is not None
        with torch.inference_mode():
            states = torch.nn.functional.normalize(self.tokens.states(texts).float(), dim=-1)
        array: ndarray = states.cpu().numpy()
        return array

    def _texts(self, captions: Sequence[Caption]) -> list[str]:
        before, _, after = self.identity.prompt.partition("{}")
        return [before + text_of(caption) + after for caption in captions]


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


def placed(model: Any, device: Any, dtype: Any) -> tuple[Any, Any]:
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


def prompt_of(options: Options, *, where: str) -> str:
    """The prompt template; raises `InputError` where it has no place, or several, for the caption."""
    if options.prompt.count("{}") != 1:
        raise InputError(
            "the prompt needs one {} for the caption",
            where=where,
            given=options.prompt,
            allowed="a photo of {}",
        )
    return options.prompt


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
