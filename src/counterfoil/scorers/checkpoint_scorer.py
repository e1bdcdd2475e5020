"""A network that was trained, as a scorer: an embedder, or a classifier where it is a detector."""

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import torch
from numpy import ndarray
from torch import Tensor

from counterfoil.scorers import pcme
from counterfoil.scorers.base import Identity, Options, prompt_of, reject_unused_options
from counterfoil.scorers.detector import Detector, DetectorNetwork
from counterfoil.scorers.dual import DualEncoder
from counterfoil.scorers.hf import Cased, ClipTokens
from counterfoil.scorers.hf_network import HfNetwork, HfTokens
from counterfoil.scorers.networks import Backbone, Encoded
from counterfoil.scorers.open_clip_network import OpenClipNetwork, OpenClipTokens, towers
from counterfoil.scorers.open_clip_towers import Pixels
from counterfoil.scorers.runtime import device_of, precision_of, to_device
from counterfoil.store import digest_value


def scorer(
    backbone: Backbone,
    options: Options,
    *,
    where: str,
    weights: str = "",
    files: Mapping[str, str] | None = None,
    recipe: str = "",
) -> DualEncoder | Detector:
    """What a backbone answers on a device and in a precision.

    `weights` names its weights, `files` the files of its tokenizer and `recipe` how it was trained. Raises
    `InputError` for options that mean nothing to it, `ModelError` for a device that is not there.
    """
    detects = isinstance(backbone.network, DetectorNetwork)
    reject_unused_options(where, options, "precision", *(() if detects else ("prompt",)))
    device = device_of(options, where=where)
    dtype = precision_of(options, device, where=where)
    prompt = prompt_of(options, where=where)
    network, computed = to_device(backbone.network, device, dtype)
    comparison = pcme.comparison(network, seed=options.seed)
    sampled = hasattr(comparison, "seed")
    identity = Identity(
        name=where,
        weights=weights,
        preprocessing=repr(backbone.preparation),
        precision=options.precision,
        prompt=prompt,
        options={
            "card": digest_value(backbone.card),
            "device": device.type,
            **({"files": digest_value(dict(files))} if files else {}),
            **({"seed": options.seed} if sampled else {}),
            **({} if computed is dtype else {"activations": "fp32"}),
        },
    )
    provenance = {"torch": torch.__version__, "device": str(device), "network": backbone.name}
    provenance |= {"recipe": recipe} if recipe else {}
    asked: dict[str, Any] = {
        "identity": identity,
        "preparation": backbone.preparation,
        "provenance": provenance,
    }
    if isinstance(network, OpenClipNetwork) and isinstance(backbone.pixels, Pixels):
        assert isinstance(backbone.tokens, OpenClipTokens)
        pixels = Pixels.of(backbone.card["preprocess"], device, computed)
        quick = towers(network, pixels, backbone.tokens.tokenizer, options.precision)
        return DualEncoder(
            encode_images=quick.images,
            encode_texts=quick.texts,
            count_tokens=quick.count,
            count_left_out=quick.tokens.left_out,
            tokens=quick.causal,
            **asked,
        )

    def said(encoded: Encoded) -> Tensor:
        return encoded.points if comparison is None else pcme.rows(encoded)

    def images(pictures: Sequence[ndarray]) -> Tensor:
        return said(network.encode_images(backbone.pixels(pictures).to(device=device, dtype=computed)))

    def texts(texts: Sequence[str]) -> Tensor:
        return said(network.encode_texts(backbone.tokens(texts).to(device)))

    count = _counter(backbone.tokens)
    reads: dict[str, Any] = {}
    if isinstance(network, HfNetwork) and isinstance(backbone.tokens, HfTokens):
        ids = Cased(backbone.tokens.tokenizer, backbone.tokens.length, backbone.tokens.lower)
        reads["count_left_out"] = ids.left_out
        if backbone.tokens.cut:
            reads["tokens"] = ClipTokens(network.model, ids, device)
    if detects:
        return Detector(encode_images=images, encode_texts=texts, count_tokens=count, **asked)
    return DualEncoder(
        encode_images=images, encode_texts=texts, count_tokens=count, comparison=comparison, **asked, **reads
    )


def _counter(tokens: Callable[[Sequence[str]], Tensor]) -> Callable[[Sequence[str]], list[int]]:
    """How many tokens are computed of each text where it stands alone."""

    @lru_cache(maxsize=1 << 16)
    def count(text: str) -> int:
        return int(tokens([text]).shape[1])

    return lambda texts: [count(text) for text in texts]
