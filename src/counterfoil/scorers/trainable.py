"""Dual encoders of the model libraries, open for training.

Specs, loading and checks are those of measuring (`counterfoil.scorers.open_clip`, `counterfoil.scorers.hf`);
an architecture of open_clip without weights is allowed in addition.
"""

from typing import TYPE_CHECKING

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.scorers.base import DEFAULT, Options, reject_unused_options
from counterfoil.scorers.runtime import import_torch

if TYPE_CHECKING:
    from counterfoil.scorers.networks import Backbone

#: The libraries whose models can be trained, by the prefix of their specs.
KINDS = ("open-clip", "hf")


def backbone(spec: str, options: Options = DEFAULT) -> "Backbone":
    """The model that `spec` names, all of its parameters in fp32 and trainable, on the CPU.

    * `open-clip:ARCH/TAG`, `open-clip:ARCH/FILE`, `open-clip:local-dir:FOLDER`; `open-clip:ARCH` starts from
      random weights (torch's random state decides which).
    * `hf:FOLDER_OR_NAME`: CLIP, SigLIP and others of their kind in transformers.

    Pictures go through the model's own evaluation transform, as BiVLC trains; captions are cut to the longest
    of their batch where the tower is causal. Raises `UnknownNameError` for other kinds, and what loading the
    same model for measuring raises: activations that do not fit or that nothing tells, weights of
    another architecture, files that cannot be read.
    """
    kind, colon, argument = spec.partition(":")
    if kind not in KINDS:
        raise UnknownNameError("kind of trainable model", kind, KINDS, where=spec)
    if not colon or not argument:
        raise InputError(
            "the model lacks its name",
            given=spec,
            allowed=("open-clip:ARCH", "open-clip:ARCH/TAG", "open-clip:ARCH/FILE", "hf:FOLDER_OR_NAME"),
        )
    # What a scorer can be asked for beyond this (a precision, a prompt) means nothing in training.
    reject_unused_options(spec, options)
    import_torch()
    if kind == "open-clip":
        from counterfoil.scorers import open_clip

        return open_clip.backbone(argument)
    from counterfoil.scorers import hf

    return hf.backbone(argument)
