"""A trained network as a scorer: an embedder, or a classifier where it is a detector."""

from collections.abc import Mapping
from typing import Any

import torch

from counterfoil.scorers import pcme
from counterfoil.scorers.base import Identity, Options, prompt_of, reject_unused_options
from counterfoil.scorers.detector import Detector, DetectorNetwork
from counterfoil.scorers.dual import DualEncoder
from counterfoil.scorers.networks import Backbone
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
    """The scorer of a backbone on a device and in a precision; its network is frozen, moved and rounded.

    `weights` is the digest of its weights, `files` are those of its tokenizer's files and `recipe` is the
    name of its training's recipe. Raises `InputError` for options that do not apply to it, `ModelError` for a
    device that is not available.
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
    shared: dict[str, Any] = {
        "identity": identity,
        "preparation": backbone.preparation,
        "towers": network.towers(backbone, device, computed, options.precision),
        "provenance": provenance,
    }
    return Detector(**shared) if detects else DualEncoder(comparison=comparison, **shared)
