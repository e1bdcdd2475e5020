"""Models of open_clip with their weights, and the activation that those weights were trained with.

GELU and QuickGELU have no tensors that tell them apart. OpenAI's weights, and all that was fine-tuned from
them, were trained with QuickGELU, and open_clip builds GELU for the plain names; under the wrong one every
score is off and no error is raised. So the activation is decided by evidence: what open_clip knows of a tag,
what a checkpoint records of itself, the configuration that open_clip saved beside it. Where there is none,
the name must state it: `ARCH-quickgelu/FILE`, `ARCH-gelu/FILE`.
"""

import logging
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.errors import CounterfoilError, DataError, MissingExtraError, ModelError
from counterfoil.inputs.files import read_json
from counterfoil.models.checkpoint_files import fit, metadata_of, nearest, read_checkpoint
from counterfoil.models.runtime import CANNOT_BE_HAD, NO_NETWORK, causes

#: Suffixes that name each activation; open_clip has architectures with the first and none with the second.
_QUICK, _PLAIN = "-quickgelu", "-gelu"
#: The configuration that open_clip saves beside its own checkpoint files, and the prefix of their names.
CONFIG, _SAVED = "open_clip_config.json", "open_clip_"


@dataclass(frozen=True)
class Activation:
    """The activation that a model is built with, and the evidence for it.

    `trained_with` is the activation of the weights' training where that is another one and the user chose
    this.
    """

    name: str
    evidence: str
    trained_with: str = ""

    def options(self) -> dict[str, str]:
        """Its entries in an identity's options."""
        return {
            "activation": self.name,
            **({"trained_with": self.trained_with} if self.trained_with else {}),
        }


def without_suffix(architecture: str, known: Collection[str]) -> tuple[str, bool]:
    """The architecture as open_clip calls it, and whether its name asks for GELU.

    >>> without_suffix("ViT-B-32-gelu", ["ViT-B-32", "ViT-B-32-quickgelu"])
    ('ViT-B-32', True)
    >>> without_suffix("ViT-B-32-quickgelu", ["ViT-B-32", "ViT-B-32-quickgelu"])
    ('ViT-B-32-quickgelu', False)
    """
    plain = architecture.removesuffix(_PLAIN)
    asks = plain != architecture and architecture not in known and f"{plain}{_QUICK}" in known
    return (plain, True) if asks else (architecture, False)


def recorded_in(path: Path, notes: Mapping[str, Any]) -> tuple[bool | None, str]:
    """Whether a checkpoint needs QuickGELU by its own record, and where that stands; None without a record.

    counterfoil's checkpoints have it in their card. open_clip's are `open_clip_model.safetensors` or
    `open_clip_pytorch_model.bin` beside `open_clip_config.json`, where QuickGELU is `quick_gelu`.
    """
    own = metadata_of(notes).get("quick_gelu")
    if isinstance(own, bool):
        return own, "the checkpoint says so"
    beside = path.parent / CONFIG
    if path.name.startswith(_SAVED) and beside.is_file():
        try:
            config = read_json(beside)["model_cfg"]
            return bool(config.get("quick_gelu", False)), f"{CONFIG} beside it says so"
        except (DataError, KeyError, TypeError, AttributeError):
            raise ModelError(
                "is no configuration of open_clip", where=beside, hint="mend it, or remove it"
            ) from None
    return None, ""


def decide_activation(
    where: str,
    architecture: str,
    weights: str,
    *,
    quick: bool,
    asks_gelu: bool,
    needs_quick: bool | None,
    evidence: str,
    known: Collection[str],
) -> Activation:
    """The activation that `architecture` is built with; `quick` says that open_clip builds QuickGELU for it.

    Raises `ModelError` where the weights need the other one (`needs_quick`, by `evidence`) and the name does
    not ask for GELU all the same, and where nothing says which they need and open_clip has both.
    """
    name, other = ("quickgelu", "gelu") if quick else ("gelu", "quickgelu")
    twin = architecture.removesuffix(_QUICK) if quick else architecture + _QUICK
    if asks_gelu:
        return Activation(name, "asked for by name", other if needs_quick else "")
    if needs_quick is None:
        if quick or twin not in known:
            return Activation(name, "asked for by name" if quick else "open_clip has no other")
        raise ModelError(
            "nothing in this file says whether its weights were trained with QuickGELU or GELU, and with the "
            "wrong one scores would be off",
            where=where,
            hint=f"use open-clip:{twin}/{weights} for OpenAI's weights and what was fine-tuned from them "
            f"(CLIP_COCO, NegCLIP, PAC-S), open-clip:{architecture}{_PLAIN}/{weights} for LAION's and others",
        )
    if needs_quick == quick:
        return Activation(name, evidence)
    spelled = {"gelu": "GELU", "quickgelu": "QuickGELU"}
    usable = f"use open-clip:{twin}/{weights}" if twin in known else ""
    anyway = f", or open-clip:{architecture}{_PLAIN}/{weights} to score with GELU all the same"
    raise ModelError(
        f"these weights were trained with {spelled[other]} ({evidence}), {architecture} builds "
        f"{spelled[name]}: scores would be off",
        where=where,
        hint=(usable + ("" if quick else anyway)) or "name another architecture",
    )


# -- loading ----------------------------------------------------------------------------------------------


def library_of() -> Any:
    """The package open_clip; raises `MissingExtraError` where it is not installed."""
    try:
        import open_clip
    except ModuleNotFoundError:
        raise MissingExtraError("open_clip_torch", "models") from None
    return open_clip


def built(library: Any, argument: str, where: str, *, random: bool = False) -> tuple[Any, str, Activation]:
    """The model with its weights, the name of its tokenizer, and its activation.

    `argument` is `ARCH/TAG`, `ARCH/path/to/checkpoint` or `local-dir:FOLDER`; with `random` an architecture
    alone is a model of random weights. Raises `ModelError` for unknown architectures, tags and files, weights
    of another architecture, files that cannot be restored without running code, weights that cannot be
    downloaded, and activations that do not fit or are unknown.
    """
    if argument.startswith(("local-dir:", "hf-hub:")):
        model = _created(library, where, argument)
        return model, argument, Activation(_builds(library, argument), "its configuration says so")
    named, _, pretrained = argument.partition("/")
    known = library.list_models()
    architecture, asks_gelu = without_suffix(named, known)
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
    recorded: tuple[bool | None, str] = bool(tag.get("quick_gelu")), "open_clip knows this tag"
    if checkpoint is not None:
        recorded = recorded_in(path, checkpoint.notes)
    activation = decide_activation(
        where,
        architecture,
        pretrained,
        quick=_builds(library, architecture) == "quickgelu",
        asks_gelu=asks_gelu,
        needs_quick=recorded[0],
        evidence=recorded[1],
        known=known,
    )
    if checkpoint is None:
        return _created(library, where, architecture, pretrained), architecture, activation
    model = _empty(library, architecture, where)
    tensors = checkpoint.tensors
    if "positional_embedding" in tensors and not hasattr(model, "positional_embedding"):
        tensors = library.model.convert_to_custom_text_state_dict(tensors)
    model.load_state_dict(fit(tensors, model.state_dict(), where=path, architecture=architecture))
    return model, architecture, activation


def _empty(library: Any, architecture: str, where: str) -> Any:
    """A model with random weights; some text towers still need their configuration from the hub."""
    return by_library(
        lambda: library.create_model(architecture, pretrained_hf=False, device="cpu"), where, "architecture"
    )


def _created(library: Any, where: str, name: str, pretrained: str | None = None) -> Any:
    """A model made by open_clip from one of its tags, a hub repository or a local folder."""
    options = {"pretrained": pretrained, "weights_only": True, "require_pretrained": True}
    return by_library(lambda: library.create_model(name, device="cpu", **options), where, "checkpoint")


def by_library(call: Callable[[], Any], where: str, what: str) -> Any:
    """The library's answer; raises one line for an error in fetching or reading `what`."""
    try:
        return call()
    except CounterfoilError:
        raise
    except Exception as error:
        if NO_NETWORK.search(causes(error)):
            raise ModelError(
                f"its {what} {CANNOT_BE_HAD}",
                where=where,
                hint="load it once with a network, or give a local checkpoint",
            ) from None
        raise ModelError(f"its {what} cannot be loaded: {str(error)[:300]}", where=where) from None


@contextmanager
def quiet() -> Iterator[None]:
    """Without open_clip's log and warnings, whose causes are checked here."""
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
