"""Kinds that a scorer's name without one may mean: by a folder's files, open_clip's list, a configuration.

    ./my-clip                       a folder with config.json, of `counterfoil train`, or of open_clip
    ViT-B-32-quickgelu/openai       an architecture and a tag of open_clip
    openai/clip-vit-base-patch32    a model of the hub, by its configuration

Nothing is loaded. Of the hub's models the configuration alone is fetched, where it is not in the cache.
"""

import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from counterfoil.benchmarks.hub_reach import cache_alone_where_unreachable
from counterfoil.errors import DataError, ModelError
from counterfoil.inputs.files import read_json
from counterfoil.models.checkpoint import is_checkpoint

#: A name of the hub.
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_DUAL = ("clip", "siglip", "siglip2", "align", "altclip", "chinese_clip", "metaclip_2")
_PAIRS = ("vilt", "flava", "bridgetower")
_REGIONS = ("lxmert", "visual_bert")
_CAPTIONERS = ("git", "vision-encoder-decoder", "blip")
#: Loading says why these are refused.
_REFUSED = ("blip-2", "instructblip", "instructblipvideo", "florence2")


def kinds_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of scorer that load a model of transformers with this configuration; empty for other models.

    >>> kinds_of({"model_type": "clip"}), kinds_of({"architectures": ["GPT2LMHeadModel"]})
    (('hf',), ('lm',))
    """
    kind, classes = str(config.get("model_type", "")), " ".join(map(str, config.get("architectures") or ()))
    if kind in _DUAL:
        return ("hf",)
    if kind in _PAIRS or "ForImageTextRetrieval" in classes:
        return ("itm",)
    if kind in _REGIONS:
        return ("regions",)
    if kind in (*_CAPTIONERS, *_REFUSED):
        return ("likelihood",)
    if "vision_config" in config:
        return ("vqa", "likelihood")
    if "SequenceClassification" in classes:
        return ("text-classifier",)
    if re.search(r"For(CausalLM|MaskedLM)|LMHeadModel", classes):
        return ("lm",)
    return ("text-encoder",) if classes.endswith("Model") else ()


@lru_cache(maxsize=64)
def scorers_called(name: str) -> tuple[str, ...]:
    """Each KIND:WHAT that `name`, which has no kind, may mean; empty where it is none of these.

    Raises `ModelError` for a name of the hub that is not in the cache where the hub does not answer.
    """
    folder = Path(name)
    specs = []
    if folder.is_dir():
        if is_checkpoint(folder):
            specs.append(f"ckpt:{name}")
        if (folder / "open_clip_config.json").is_file():
            specs.append(f"open-clip:local-dir:{name}")
        if (folder / "config.json").is_file():
            specs += [f"{kind}:{name}" for kind in kinds_of(_object(folder / "config.json"))]
    if HUB_NAME.fullmatch(name) and _of_open_clip(name):
        specs.append(f"open-clip:{name}")
    if not specs and not folder.exists() and HUB_NAME.fullmatch(name):
        specs = [f"{kind}:{name}" for kind in kinds_of(_configuration(name))]
    return tuple(specs)


def _object(path: Path) -> Mapping[str, Any]:
    config = read_json(path)
    if not isinstance(config, dict):
        raise DataError("not a configuration", where=path)
    return config


def _of_open_clip(name: str) -> bool:
    """Whether it is ARCH/TAG of open_clip, or ARCH/FILE."""
    try:
        import open_clip
    except ImportError:
        return False
    architecture, _, rest = name.partition("/")
    if architecture not in open_clip.list_models():
        return False
    return rest in open_clip.list_pretrained_tags_by_model(architecture) or Path(rest).is_file()


def _configuration(name: str) -> Mapping[str, Any]:
    """The configuration of a model of the hub; empty where the hub has none of this name."""
    try:
        import huggingface_hub
    except ImportError:
        return {}
    with cache_alone_where_unreachable() as message:
        try:
            return _object(Path(huggingface_hub.hf_hub_download(name, "config.json")))
        # Each version of the library has errors of its own; those of the network were asked for.
        except Exception:
            if not message and not huggingface_hub.constants.HF_HUB_OFFLINE:
                return {}
    raise ModelError(
        "what kind of model it is cannot be asked",
        where=name,
        given=message or "offline mode (HF_HUB_OFFLINE)",
        hint=f"name its kind ('counterfoil list scorers'), such as hf:{name}, or give a local folder",
    )
