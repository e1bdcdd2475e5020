"""Dual encoders of the package open_clip: `open-clip:ARCH/PRETRAINED`.

PRETRAINED is a tag that open_clip knows, or a checkpoint file. Two models of one architecture may differ only
in an activation that no tensor tells: OpenAI's weights, and all that was fine-tuned from them, need
QuickGELU, and open_clip builds GELU for the plain names. Such pairs are refused with the name to use.
"""

import logging
import re
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from counterfoil.errors import CounterfoilError, MissingExtraError, ModelError
from counterfoil.scorers.base import DEFAULT, Identity, Options, only
from counterfoil.scorers.checkpoints import fit, looks_like, metadata_of, nearest, read_checkpoint
from counterfoil.scorers.dual import (
    NO_NETWORK,
    DualEncoder,
    causes,
    device_of,
    digest_tensors,
    import_torch,
    placed,
    precision_of,
    prompt_of,
)
from counterfoil.scorers.open_clip_towers import Pixels, Tokens, Towers, trusted
from counterfoil.store import canonical_json

#: File names of the released fine-tunes of OpenAI's weights, and of those weights themselves. PAC-S's
#: openClip_ViT-L-14.pth is one of LAION's, and so GELU's.
OPENAI_FAMILY = re.compile(r"best_CLIP_|CLIP_(COCO|TROHN)|neg-?clip|(?<!open)clip_ViT-|openai", re.IGNORECASE)
#: How far unit vectors of the fast towers may lie from the library's on a sample, by precision.
TOLERANCE = {"fp32": 1e-4, "bf16": 0.05, "fp16": 0.01}


def load(argument: str, options: Options = DEFAULT) -> DualEncoder:
    """The model `ARCH/TAG`, `ARCH/path/to/checkpoint` (`ARCH//absolute/path`) or `local-dir:FOLDER`.

    Raises `ModelError` for unknown architectures, tags and files, weights of another architecture, files that
    only running code could restore, weights that cannot be downloaded, and activations that do not fit
    (`options.allow_gelu` loads those all the same, and the identity says so).
    """
    where = f"open-clip:{argument}"
    only(where, options, "precision", "prompt", "allow_gelu")
    library = library_of()
    device = device_of(options, where=where)
    dtype = precision_of(options, device, where=where)
    prompt = prompt_of(options, where=where)
    with quiet():
        model, architecture, overridden = built(library, argument, options, where)
        tokenizer = tokenizer_of(library, architecture, where)
    torch = import_torch()
    weights = digest_tensors(model.state_dict())
    model, computed = placed(model, device, dtype)
    settings = dict(library.get_model_preprocess_cfg(model))
    pixels = Pixels.of(settings, device, computed)
    towers = trusted(Towers(model, pixels, Tokens(tokenizer), device), TOLERANCE[options.precision])
    return DualEncoder(
        identity=Identity(
            name=where,
            weights=weights,
            preprocessing=canonical_json(settings),
            precision=options.precision,
            prompt=prompt,
            options={
                "activation": activation_of(library, architecture),
                "device": device.type,
                **({"allow_gelu": True} if overridden else {}),
                **({} if computed is dtype else {"activations": "fp32"}),
            },
        ),
        preparation=pixels.preparation,
        encode_images=towers.images,
        encode_texts=towers.texts,
        count_tokens=towers.count,
        count_left_out=towers.tokens.left_out,
        tokens=towers.causal,
        provenance={
            "open_clip": library.__version__,
            "torch": torch.__version__,
            "device": str(device),
            "image tower": "fast" if towers.images_fast else "library",
            "text tower": "fast, cut to the longest caption" if towers.texts_fast else "library",
        },
    )


# -- building ---------------------------------------------------------------------------------------------


def library_of() -> Any:
    """The package open_clip; raises `MissingExtraError` where it is not installed."""
    try:
        import open_clip
    except ModuleNotFoundError:
        raise MissingExtraError("open_clip_torch", "models") from None
    return open_clip


def built(
    library: Any, argument: str, options: Options, where: str, *, random: bool = False
) -> tuple[Any, str, bool]:
    """The model with its weights, the name its tokenizer goes by, and whether `allow_gelu` was needed.

    With `random` an architecture alone is a model whose weights are random. Raises what `load` raises.
    """
    if argument.startswith(("local-dir:", "hf-hub:")):
        return _created(library, where, argument), argument, False
    architecture, _, pretrained = argument.partition("/")
    known = library.list_models()
    if architecture not in known:
        raise ModelError(
            "open_clip knows no such architecture",
            where=where,
            given=architecture or "(empty)",
            allowed="open-clip:ARCH/TAG or open-clip:ARCH/FILE",
            hint=nearest(architecture, known) or "open_clip.list_models() names all",
        )
    if random and not pretrained:
        return _empty(library, architecture, where), architecture, False
    tags = library.list_pretrained_tags_by_model(architecture)
    tag = library.get_pretrained_cfg(architecture, pretrained) if pretrained else {}
    if not tag and not (pretrained and Path(pretrained).exists()):
        path_like = "/" in pretrained or "\\" in pretrained or "." in pretrained
        raise ModelError(
            "no such checkpoint file" if path_like else "no such weights of this architecture",
            where=where,
            given=pretrained or "(nothing after the architecture)",
            allowed=None if path_like else [*tags, "a checkpoint file"],
            hint="check the path" if path_like else nearest(pretrained, tags) or None,
        )
    quick = bool(library.get_model_config(architecture).get("quick_gelu", False))
    if tag:
        overridden = _check_activation(
            where, architecture, quick, bool(tag.get("quick_gelu")), options, known, pretrained
        )
        return _created(library, where, architecture, pretrained), architecture, overridden
    path = Path(pretrained)
    checkpoint = read_checkpoint(path)
    said = metadata_of(checkpoint.notes).get("quick_gelu")
    needs_quick = bool(said) if said is not None else quick or bool(OPENAI_FAMILY.search(path.name))
    overridden = _check_activation(where, architecture, quick, needs_quick, options, known, pretrained)
    model = _empty(library, architecture, where)
    tensors = checkpoint.tensors
    if "positional_embedding" in tensors and not hasattr(model, "positional_embedding"):
        tensors = library.model.convert_to_custom_text_state_dict(tensors)
    configs = {name: library.get_model_config(name) for name in known}
    state = fit(
        tensors,
        model.state_dict(),
        where=path,
        architecture=architecture,
        looks_like=looks_like(checkpoint.tensors, configs),
    )
    model.load_state_dict(state)
    return model, architecture, overridden


def _check_activation(
    where: str,
    architecture: str,
    quick: bool,
    needs_quick: bool,
    options: Options,
    known: Sequence[str],
    weights: str,
) -> bool:
    """Whether weights and architecture disagree and the user allows it; raises `ModelError` where not."""
    if quick == needs_quick:
        return False
    twin = f"{architecture}-quickgelu" if needs_quick else architecture.removesuffix("-quickgelu")
    if options.allow_gelu:
        return True
    trained, builds = ("QuickGELU", "GELU") if needs_quick else ("GELU", "QuickGELU")
    raise ModelError(
        f"these weights were trained with {trained}, {architecture} builds {builds}: scores would be off",
        where=where,
        hint=(f"use open-clip:{twin}/{weights}, or " if twin in known else "")
        + "--allow-gelu to load them all the same",
    )


def _empty(library: Any, architecture: str, where: str) -> Any:
    """A model with random weights; some text towers still need their configuration from the hub."""
    try:
        return library.create_model(architecture, pretrained_hf=False, device="cpu")
    except Exception as error:
        _explain(error, where, "architecture")


def _created(library: Any, where: str, name: str, pretrained: str | None = None) -> Any:
    """A model made by open_clip from one of its tags, a hub repository or a local folder."""
    try:
        return library.create_model(
            name, pretrained=pretrained, device="cpu", weights_only=True, require_pretrained=True
        )
    except Exception as error:
        _explain(error, where, "checkpoint")


def tokenizer_of(library: Any, architecture: str, where: str) -> Any:
    """The tokenizer that open_clip has for an architecture; raises `ModelError` where it is not here."""
    try:
        return library.get_tokenizer(architecture)
    except Exception as error:
        _explain(error, where, "tokenizer")


def _explain(error: Exception, where: str, what: str) -> NoReturn:
    """One line for what a library raised while it fetched or read `what`."""
    if isinstance(error, CounterfoilError):
        raise error
    if NO_NETWORK.search(causes(error)):
        raise ModelError(
            f"its {what} is not here and cannot be downloaded",
            where=where,
            hint="load it once with a network, or give a local checkpoint",
        ) from None
    raise ModelError(f"its {what} cannot be loaded: {str(error)[:300]}", where=where) from None


@contextmanager
def quiet() -> Iterator[None]:
    """open_clip logs and warns of what is checked here."""
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


def activation_of(library: Any, architecture: str) -> str:
    """ "gelu" or "quickgelu", whichever open_clip builds."""
    config = library.get_model_config(architecture) or {}
    return "quickgelu" if config.get("quick_gelu") else "gelu"
