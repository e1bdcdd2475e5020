"""Cross-encoders of the package transformers for scoring: `itm:NAME_OR_FOLDER`.

BLIP, BLIP-2, ViLT, FLAVA and BridgeTower (`counterfoil.scorers.itm_families`). Where a family has several
ways to score a pair, the setting `protocol` names one; the setting `length` cuts captions to fewer tokens
than the model reads.
"""

import json
from functools import partial
from typing import Any

import numpy as np
import torch

from counterfoil.errors import ModelError, UnknownNameError
from counterfoil.scorers import hf_loading as loading
from counterfoil.scorers.base import DEFAULT, Options, digest_tensors
from counterfoil.scorers.cross_encoder import CrossEncoder
from counterfoil.scorers.heat import PairHeats
from counterfoil.scorers.hf_text import HfTokens
from counterfoil.scorers.images import Untouched, prepared
from counterfoil.scorers.itm_families import FAMILIES
from counterfoil.scorers.runtime import LoadContext, to_device
from counterfoil.store import canonical_json


def load(argument: str, options: Options = DEFAULT) -> CrossEncoder:
    """The scorer in a local folder, or of that name on the hub (from the local cache where it is there).

    Raises `ModelError` as `hf:` does, and for models without a head for image-text matching;
    `UnknownNameError` for a protocol that the family lacks; `InputError` for a length above what it reads.
    """
    where = f"itm:{argument}"
    context = LoadContext.of(where, options, "prompt", "settings")
    library, config = loading.configuration_of(argument, where)
    family = FAMILIES.get(config.model_type)
    if family is None:
        raise ModelError(
            "not a model of image-text matching",
            where=where,
            given=f"model type {config.model_type}",
            allowed="BLIP, BLIP-2, ViLT, FLAVA, BridgeTower",
            hint="a dual encoder of transformers is hf:...",
        )
    protocol = context.settings.get("protocol", family.protocols[0])
    if protocol not in family.protocols:
        raise UnknownNameError("protocol", protocol, family.protocols, where=where)
    with loading.quiet(library):
        model, revision = loading.weights_of(
            library, argument, where, kind=getattr(library, family.kind), unused=family.unused
        )
        processor = loading.fetched(library.AutoImageProcessor, argument, where, "image processor")
        tokenizer = loading.fetched(library.AutoTokenizer, argument, where, "tokenizer")
    loading.check_words(tokenizer, where)
    # Half-precision checkpoints become float32 first, which is exact; the digest is of the stored values.
    weights = digest_tensors(model.state_dict())
    model, computed = _placed(model, context.device, context.dtype)
    # The most tokens of a caption: as set, else of the protocol, else as many as the model reads.
    text = model.config if family.text == "text_config" else getattr(model.config, family.text, model.config)
    most = loading.length_of(text, tokenizer)
    length = loading.length_within(context.settings, most, family.lengths.get(protocol, most))
    matcher = family(model, processor, tokenizer, context.device, computed, protocol, where)
    identity = context.identity(
        revision=revision,
        weights=weights,
        tokenizer=loading.tokenizer_digest(tokenizer),
        length=length,
        preprocessing=canonical_json(json.loads(processor.to_json_string())),
        protocol=protocol,
    )
    tokens = HfTokens(tokenizer, length)
    heats = PairHeats(identity, matcher, tokens)
    scorer = CrossEncoder(
        identity=identity,
        matcher=matcher,
        tokens=tokens,
        read=partial(prepared, preparation=Untouched()),
        device=context.device,
        provenance=context.provenance(library, model=family.kind),
        heats=heats if heats.methods else None,
    )
    scorer.try_out(np.full((48, 64, 3), 128, dtype=np.uint8))
    return scorer


def _placed(model: Any, device: Any, dtype: torch.dtype) -> tuple[Any, torch.dtype]:
    """The model ready to answer, but for parts that transformers keeps in float32 (BLIP-2's Q-Former)."""
    names = getattr(model, "_keep_in_fp32_modules", None) or ()
    in_fp32 = {
        name: parameter.detach().clone()
        for name, parameter in model.named_parameters()
        if any(part in names for part in name.split("."))
    }
    model, computed = to_device(model, device, dtype)
    for name, parameter in model.named_parameters():
        if name in in_fp32:
            parameter.data = in_fp32[name].to(device)
    return model, computed
