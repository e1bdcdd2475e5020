"""Kinds of model by prefix with their loaders, those that can be trained, and names without a kind."""

import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, fields
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from counterfoil.errors import DataError, InputError, ModelError, UnknownNameError
from counterfoil.inputs.files import read_json
from counterfoil.models.base import DEFAULT, Options, reject_unused_options
from counterfoil.registry import Registry, resolve

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone


@dataclass(frozen=True)
class ModelEntry:
    """A kind of model: `PREFIX:ARGUMENT` is loaded by `target`, a "module:function"."""

    prefix: str
    argument: str
    summary: str
    example: str
    target: str
    extra: str = ""
    #: The dataclass of its settings (`Options.settings`, on the command line --set): "module:class".
    settings: str = ""
    #: Whether it embeds items one by one, so that a caption metric can look with it; None is found out by
    #: loading it.
    embeds: bool | None = None

    @property
    def settings_class(self) -> type[Any] | None:
        return resolve(self.settings) if self.settings else None

    @property
    def named_models(self) -> tuple[str, ...]:
        kind = self.settings_class
        return tuple(row.name for row in fields(kind) if row.metadata.get("model")) if kind else ()


_ROWS = (
    ("given", "PATH", "counterfoil.models.precomputed:load", "", "", "given:scores/clip.jsonl",
     "scores or outcomes from a CSV, JSON, JSONL or Parquet file, or a folder of them; of a gallery a "
     "similarity (npy) or rankings (json)"),
    ("embeddings", "PATH", "counterfoil.models.precomputed_galleries:load_embeddings", "", "",
     "embeddings:clip_vit_b32.npz",
     "an npz file with the embeddings of images and captions, compared by cosine"),
    ("open-clip", "ARCH/PRETRAINED", "counterfoil.models.open_clip:load", "models", "images:ImageRoute",
     "open-clip:ViT-B-32-quickgelu/openai",
     "a dual encoder of open_clip; PRETRAINED is a tag or a local checkpoint"),
    ("hf", "NAME_OR_FOLDER", "counterfoil.models.hf:load", "models", "images:ImageRoute",
     "hf:google/siglip-base-patch16-224",
     "a dual encoder of transformers (CLIP, SigLIP, SigLIP2, ALIGN, AltCLIP, ...)"),
    ("itm", "NAME_OR_FOLDER", "counterfoil.models.itm:load", "models", "settings:PairSettings",
     "itm:Salesforce/blip-itm-base-coco",
     "a cross-encoder of transformers (BLIP, BLIP-2, ViLT, FLAVA)"),
    ("regions", "NAME_OR_FOLDER", "counterfoil.models.itm:load_regions", "models", "settings:RegionSettings",
     "regions:unc-nlp/lxmert-base-uncased",
     "a cross-encoder of transformers that reads region features from files (LXMERT, VisualBERT)"),
    ("hf-text", "NAME_OR_FOLDER[@LAYER]", "counterfoil.models.text_models:load_tokens", "models", "",
     "hf-text:roberta-large@17",
     "an encoder of texts of transformers (BERT, RoBERTa, ...), behind metric:token-match alone"),
    ("ckpt", "FOLDER", "counterfoil.models.checkpoint:load", "models", "settings:CheckpointSettings",
     "ckpt:runs/trohn-img",
     "a model that 'counterfoil train' wrote, detectors included; the folder alone will do"),
    ("vqa", "NAME_OR_FOLDER", "counterfoil.models.generative.vqa:load", "models", "settings:VqaSettings",
     "vqa:Qwen/Qwen3-VL-4B-Instruct",
     "the probability of yes to a question about the caption, from an image-text-to-text model of "
     "transformers (Qwen-VL, LLaVA, PaliGemma, ...)"),
    ("chat", "URL#MODEL", "counterfoil.models.chat.model:load", "chat", "settings:ChatModelSettings",
     "chat:http://localhost:8000/v1#MODEL",
     "a model behind an OpenAI-compatible chat endpoint, asked by a protocol (yes-no, choose, two-images, "
     "answer)"),
    ("likelihood", "NAME_OR_FOLDER", "counterfoil.models.generative.likelihood:load", "models",
     "settings:LikelihoodSettings", "likelihood:google/paligemma-3b-mix-224",
     "the likelihood of the caption by a model of transformers that writes captions: BLIP, GIT, or an "
     "image-text-to-text model"),
    ("blind", "constant|random|length|unigram|bag-of-words|learned|constant-image",
     "counterfoil.models.baselines:load_blind", "", "settings:BlindSettings", "blind:length",
     "baselines that never look at the image; those that learn do so from a benchmark's other questions, "
     "and constant-image is a model (--backbone) that sees the mean image"),
    ("lm", "NAME_OR_FOLDER", "counterfoil.models.text_models:load_lm", "models",
     "settings:LanguageModelSettings", "lm:gpt2",
     "the likelihood of captions by a causal or masked language model of transformers; sees no image"),
    ("text-encoder", "NAME_OR_FOLDER", "counterfoil.models.text_models:load_encoder", "models",
     "settings:SentenceSettings", "text-encoder:sentence-transformers/all-mpnet-base-v2",
     "an encoder of sentences of transformers, where captions are compared with captions; sees no image"),
    ("text-classifier", "NAME_OR_FOLDER", "counterfoil.models.text_models:load_classifier", "models",
     "settings:ClassifierSettings", "text-classifier:textattack/distilbert-base-uncased-CoLA",
     "the probability of a class by a classifier of texts, such as one of grammar; sees no image"),
    ("plausibility", "NAME_OR_FOLDER", "counterfoil.models.text_models:load_plausibility", "models",
     "settings:PlausibilitySettings", "plausibility:liujch1998/vera",
     "the plausibility of captions by a T5 encoder laid out as Vera is; sees no image"),
    ("metric", "NAME", "counterfoil.models.captions.registry:load", "", "", "metric:cider",
     "a caption metric (see 'counterfoil list metrics'); one that looks at images has a model behind it, "
     "named with --backbone"),
    ("pixels", "colours", "counterfoil.models.baselines:load_pixels", "", "", "pixels:colours",
     "for the drawn world: its colours against the colour words of captions, and nothing else"),
)  # fmt: skip
_EMBEDDERS = ("embeddings", "open-clip", "hf", "hf-text", "ckpt")


def _entry(
    kind: str, argument: str, target: str, extra: str, settings: str, example: str, summary: str
) -> ModelEntry:
    settings = settings and f"counterfoil.models.{settings}"
    return ModelEntry(kind, argument, summary, example, target, extra, settings, kind in _EMBEDDERS)


#: The kinds of model by prefix; `counterfoil.catalog` adds the oracle of the world.
MODELS: Registry[ModelEntry] = Registry(
    "kind of model", ModelEntry, "counterfoil.models", [_entry(*row) for row in _ROWS], name="prefix"
)

#: Kinds that look at no images, so that they stand behind a metric and cannot be evaluated by themselves.
TEXT_MODELS = ("hf-text",)


KINDS = ("open-clip", "hf")


def backbone(spec: str, options: Options = DEFAULT) -> "Backbone":
    """The trainable model of `spec` in fp32 on the CPU; `open-clip:ARCH` alone has random weights."""
    kind, colon, argument = spec.partition(":")
    if kind not in KINDS:
        raise UnknownNameError("kind of trainable model", kind, KINDS, where=spec)
    if not colon or not argument:
        allowed = ("open-clip:ARCH", "open-clip:ARCH/TAG", "open-clip:ARCH/FILE", "hf:FOLDER_OR_NAME")
        raise InputError("the model lacks its name", given=spec, allowed=allowed)
    # What a model can be asked for beyond this (a precision, a prompt) means nothing in training.
    reject_unused_options(spec, options)
    from counterfoil.models.runtime import import_torch

    import_torch()
    model: Backbone = import_module(f"counterfoil.models.{kind.replace('-', '_')}").backbone(argument)
    return model


HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
_DUAL = ("clip", "siglip", "siglip2", "align", "altclip", "chinese_clip", "metaclip_2")
#: Without a chat template, and with prompts and marks of their own kind: loading refuses these.
REFUSED = ("blip-2", "instructblip", "instructblipvideo", "florence2")


def kinds_of(config: Mapping[str, Any]) -> tuple[str, ...]:
    """The kinds of model that load a checkpoint of transformers with this configuration; empty for others.

    >>> kinds_of({"model_type": "clip"}), kinds_of({"architectures": ["GPT2LMHeadModel"]})
    (('hf',), ('lm',))
    """
    kind, classes = str(config.get("model_type", "")), " ".join(map(str, config.get("architectures") or ()))
    if kind in _DUAL:
        return ("hf",)
    if kind in ("vilt", "flava") or "ForImageTextRetrieval" in classes:
        return ("itm",)
    if kind in ("lxmert", "visual_bert"):
        return ("regions",)
    if kind in ("git", "blip", *REFUSED):
        return ("likelihood",)
    if "vision_config" in config:
        return ("vqa", "likelihood")
    if "SequenceClassification" in classes:
        return ("text-classifier",)
    if re.search(r"For(CausalLM|MaskedLM)|LMHeadModel", classes):
        return ("lm",)
    return ("text-encoder",) if classes.endswith("Model") else ()


@lru_cache(maxsize=64)
def models_called(name: str) -> tuple[str, ...]:
    """Each KIND:WHAT that `name` may mean; `ModelError` where the hub must be asked and does not answer."""
    folder = Path(name)
    specs = []
    if folder.is_dir():
        from counterfoil.models.checkpoint import is_checkpoint

        if is_checkpoint(folder):
            specs.append(f"ckpt:{name}")
        if (folder / "open_clip_config.json").is_file():
            specs.append(f"open-clip:local-dir:{name}")
        if (folder / "config.json").is_file():
            specs += [f"{kind}:{name}" for kind in kinds_of(_configuration(folder / "config.json"))]
    architecture, _, rest = name.partition("/")
    with suppress(ImportError):
        import open_clip

        hub_name = HUB_NAME.fullmatch(name) and architecture in open_clip.list_models()
        if hub_name and (
            rest in open_clip.list_pretrained_tags_by_model(architecture) or Path(rest).is_file()
        ):
            specs.append(f"open-clip:{name}")
    if not specs and not folder.exists() and HUB_NAME.fullmatch(name):
        specs = [f"{kind}:{name}" for kind in kinds_of(_of_hub(name))]
    return tuple(specs)


def _configuration(path: Path) -> Mapping[str, Any]:
    config = read_json(path)
    if not isinstance(config, dict):
        raise DataError("not a configuration", where=path)
    return config


def _of_hub(name: str) -> Mapping[str, Any]:
    """The configuration of a model of the hub; empty where the hub has none of this name."""
    try:
        import huggingface_hub
    except ImportError:
        return {}
    from counterfoil.models.hub_reach import cache_alone_where_unreachable

    with cache_alone_where_unreachable() as message:
        try:
            return _configuration(Path(huggingface_hub.hf_hub_download(name, "config.json")))
        # Each version of the library has errors of its own; those of the network were asked for.
        except Exception:
            if not message and not huggingface_hub.constants.HF_HUB_OFFLINE:
                return {}
    problem = "what kind of model it is cannot be asked"
    hint = f"name its kind ('counterfoil list models'), such as hf:{name}, or give a local folder"
    raise ModelError(problem, where=name, given=message or "offline mode (HF_HUB_OFFLINE)", hint=hint)
