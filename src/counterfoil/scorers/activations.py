"""The activation of open_clip's models, GELU or QuickGELU, which no tensor tells.

OpenAI's weights, and all that was fine-tuned from them, were trained with QuickGELU, and open_clip builds
GELU for the plain names. Under the wrong one every score is off and nothing fails. So the activation is
decided by evidence: what open_clip knows of a tag, what a checkpoint says of itself, the configuration that
open_clip saved beside it. Where there is none, the name must say it: `ARCH-quickgelu/FILE`, `ARCH-gelu/FILE`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from counterfoil.errors import DataError, ModelError
from counterfoil.inputs.parsed import read_json
from counterfoil.scorers.checkpoint_files import metadata_of

#: What asks for each by name; open_clip has architectures with the first and none with the second.
_QUICK, _PLAIN = "-quickgelu", "-gelu"
#: The configuration that open_clip saves beside its own checkpoint files, and how those begin.
_CONFIG, _SAVED = "open_clip_config.json", "open_clip_"


@dataclass(frozen=True)
class Activation:
    """Which activation a model is built with, and how that is known.

    `trained_with` is what the weights were trained with where that is another one and the user asked for it.
    """

    name: str
    evidence: str
    trained_with: str = ""

    def options(self) -> dict[str, str]:
        """What an identity says of it."""
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


def said_by(path: Path, notes: Mapping[str, Any]) -> tuple[bool | None, str]:
    """Whether a checkpoint needs QuickGELU by what it says, and where it says so; None where it does not.

    counterfoil's checkpoints say it in their card. open_clip's are `open_clip_model.safetensors` or
    `open_clip_pytorch_model.bin` beside `open_clip_config.json`, where QuickGELU is `quick_gelu`.
    """
    own = metadata_of(notes).get("quick_gelu")
    if isinstance(own, bool):
        return own, "the checkpoint says so"
    beside = path.parent / _CONFIG
    if path.name.startswith(_SAVED) and beside.is_file():
        try:
            config = read_json(beside)["model_cfg"]
            return bool(config.get("quick_gelu", False)), f"{_CONFIG} beside it says so"
        except (DataError, KeyError, TypeError, AttributeError):
            raise ModelError(
                "is no configuration of open_clip", where=beside, hint="mend it, or remove it"
            ) from None
    return None, ""


def decided(
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
