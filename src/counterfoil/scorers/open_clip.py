"""Dual encoders of the package open_clip: `open-clip:ARCH/PRETRAINED`.

PRETRAINED is a tag that open_clip knows, or a checkpoint file. Two models of one architecture may differ only
in an activation that no tensor tells; `counterfoil.scorers.activations` decides it, and refuses pairs of
architecture and weights that do not fit, with the name to use.
"""

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

from counterfoil.errors import CounterfoilError, MissingExtraError, ModelError
from counterfoil.scorers.activations import Activation, decided, said_by, without_suffix
from counterfoil.scorers.base import DEFAULT, Identity, Options, prompt_of, reject_unused_options
from counterfoil.scorers.checkpoint_files import fit, looks_like, nearest, read_checkpoint
from counterfoil.scorers.dual import DualEncoder
from counterfoil.scorers.open_clip_towers import Pixels, RememberedTokens, Towers, trusted
from counterfoil.scorers.runtime import (
    NO_NETWORK,
    causes,
    device_of,
    digest_tensors,
    import_torch,
    precision_of,
    to_device,
)
from counterfoil.store import canonical_json

#: How far unit vectors of the fast towers may lie from the library's on a sample, by precision.
TOLERANCE = {"fp32": 1e-4, "bf16": 0.05, "fp16": 0.01}


def load(argument: str, options: Options = DEFAULT) -> DualEncoder:
    """The model `ARCH/TAG`, `ARCH/path/to/checkpoint` (`ARCH//absolute/path`) or `local-dir:FOLDER`.

    Raises `ModelError` for unknown architectures, tags and files, weights of another architecture, files that
    only running code could restore, weights that cannot be downloaded, and activations that do not fit or
    that nothing tells (`ARCH-gelu/...` loads those with GELU all the same, and the identity says so).
    """
    where = f"open-clip:{argument}"
    reject_unused_options(where, options, "precision", "prompt")
    library = library_of()
    device = device_of(options, where=where)
    dtype = precision_of(options, device, where=where)
    prompt = prompt_of(options, where=where)
    with quiet():
        model, architecture, activation = built(library, argument, where)
        tokenizer = tokenizer_of(library, architecture, where)
    torch = import_torch()
    weights = digest_tensors(model.state_dict())
    model, computed = to_device(model, device, dtype)
    settings = dict(library.get_model_preprocess_cfg(model))
    pixels = Pixels.of(settings, device, computed)
    towers = trusted(Towers(model, pixels, RememberedTokens(tokenizer), device), TOLERANCE[options.precision])
    return DualEncoder(
        identity=Identity(
            name=where,
            weights=weights,
            preprocessing=canonical_json(settings),
            precision=options.precision,
            prompt=prompt,
            options={
                **activation.options(),
                "device": device.type,
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
            "activation": f"{activation.name}: {activation.evidence}",
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


def built(library: Any, argument: str, where: str, *, random: bool = False) -> tuple[Any, str, Activation]:
    """The model with its weights, the name its tokenizer goes by, and its activation.

    With `random` an architecture alone is a model whose weights are random. Raises what `load` raises.
    """
    if argument.startswith(("local-dir:", "hf-hub:")):
        model = _created(library, where, argument)
        return model, argument, Activation(_builds(library, argument), "its configuration says so")
    asked, _, pretrained = argument.partition("/")
    known = library.list_models()
    architecture, asks_gelu = without_suffix(asked, known)
    if architecture not in known:
        raise ModelError(
            "open_clip knows no such architecture",
            where=where,
            given=architecture or "(empty)",
            allowed="open-clip:ARCH/TAG or open-clip:ARCH/FILE",
            hint=nearest(architecture, known) or "open_clip.list_models() names all",
        )
    if random and not pretrained:
        model = _empty(library, architecture, where)
        return model, architecture, Activation(_builds(library, architecture), "asked for by name")
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
    path = Path(pretrained)
    checkpoint = None if tag else read_checkpoint(path)
    said: tuple[bool | None, str] = bool(tag.get("quick_gelu")), "open_clip knows this tag"
    if checkpoint is not None:
        said = said_by(path, checkpoint.notes)
    activation = decided(
        where,
        architecture,
        pretrained,
        quick=_builds(library, architecture) == "quickgelu",
        asks_gelu=asks_gelu,
        needs_quick=said[0],
        evidence=said[1],
        known=known,
    )
    if checkpoint is None:
        return _created(library, where, architecture, pretrained), architecture, activation
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
    return model, architecture, activation


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


def _builds(library: Any, architecture: str) -> str:
    """ "gelu" or "quickgelu", whichever open_clip builds."""
    config = library.get_model_config(architecture) or {}
    return "quickgelu" if config.get("quick_gelu") else "gelu"
