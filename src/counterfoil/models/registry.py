"""Kinds of scorer, named before the colon of a scorer's name: their loaders, and those that can be trained.

To be trained, a dual encoder is loaded and checked as for measuring; an architecture of open_clip without
weights is allowed in addition.

Kinds that a scorer's name without one may mean: by a folder's files, open_clip's list, a configuration.

    ./my-clip                       a folder with config.json, of `counterfoil train`, or of open_clip
    ViT-B-32-quickgelu/openai       an architecture and a tag of open_clip
    openai/clip-vit-base-patch32    a model of the hub, by its configuration

Nothing is loaded. Of the hub's models the configuration alone is fetched, where it is not in the cache.
"""

import re
from dataclasses import dataclass, fields, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any

from counterfoil.errors import InputError, UnknownNameError
from counterfoil.models.base import DEFAULT, Options, reject_unused_options
from counterfoil.registry import Registry, resolve

if TYPE_CHECKING:
    from counterfoil.models.networks import Backbone


@dataclass(frozen=True)
class ScorerEntry:
    """A kind of scorer: `PREFIX:ARGUMENT` is loaded by `target`, a "module:function"."""

    prefix: str
    argument: str
    summary: str
    example: str
    target: str
    #: The extra it needs, empty where the core is enough.
    extra: str = ""
    #: The dataclass of its settings (`Options.settings`, on the command line --set): "module:class".
    settings: str = ""
    #: Whether it embeds items one by one, so that a caption metric can look with it; None is found out by
    #: loading it.
    embeds: bool | None = None

    @property
    def settings_class(self) -> type[Any] | None:
        """The dataclass of its settings; None where it takes none."""
        return resolve(self.settings) if self.settings else None

    @property
    def named_models(self) -> tuple[str, ...]:
        """The settings that name a further model."""
        kind = self.settings_class
        return tuple(row.name for row in fields(kind) if row.metadata.get("model")) if kind else ()


_DECLARED = "counterfoil.models.settings:{}Settings".format
_IMAGE_ROUTE = "counterfoil.models.images:ImageRoute"


_ENTRIES = (
    ScorerEntry(
        "given",
        "PATH",
        "scores or outcomes from a CSV, JSON, JSONL or Parquet file, or a folder of them; "
        "of a gallery a similarity (npy) or rankings (json)",
        "given:scores/clip.jsonl",
        "counterfoil.models.precomputed:load",
    ),
    ScorerEntry(
        "embeddings",
        "PATH",
        "an npz file with the embeddings of images and captions, compared by cosine",
        "embeddings:clip_vit_b32.npz",
        "counterfoil.models.precomputed_galleries:load_embeddings",
    ),
    ScorerEntry(
        "open-clip",
        "ARCH/PRETRAINED",
        "a dual encoder of open_clip; PRETRAINED is a tag or a local checkpoint",
        "open-clip:ViT-B-32-quickgelu/openai",
        "counterfoil.models.open_clip:load",
        "models",
        _IMAGE_ROUTE,
    ),
    ScorerEntry(
        "hf",
        "NAME_OR_FOLDER",
        "a dual encoder of transformers (CLIP, SigLIP, SigLIP2, ALIGN, AltCLIP, ...)",
        "hf:google/siglip-base-patch16-224",
        "counterfoil.models.hf:load",
        "models",
        _IMAGE_ROUTE,
    ),
    ScorerEntry(
        "itm",
        "NAME_OR_FOLDER",
        "a cross-encoder of transformers (BLIP, BLIP-2, ViLT, FLAVA)",
        "itm:Salesforce/blip-itm-base-coco",
        "counterfoil.models.itm:load",
        "models",
        _DECLARED("Pair"),
    ),
    ScorerEntry(
        "regions",
        "NAME_OR_FOLDER",
        "a cross-encoder of transformers that reads region features from files (LXMERT, VisualBERT)",
        "regions:unc-nlp/lxmert-base-uncased",
        "counterfoil.models.itm:load_regions",
        "models",
        _DECLARED("Region"),
    ),
    ScorerEntry(
        "hf-text",
        "NAME_OR_FOLDER[@LAYER]",
        "an encoder of texts of transformers (BERT, RoBERTa, ...), behind metric:token-match alone",
        "hf-text:roberta-large@17",
        "counterfoil.models.text_models:load_tokens",
        "models",
    ),
    ScorerEntry(
        "ckpt",
        "FOLDER",
        "a model that 'counterfoil train' wrote, detectors included; the folder alone will do",
        "ckpt:runs/trohn-img",
        "counterfoil.models.checkpoint:load",
        "models",
        _DECLARED("Checkpoint"),
    ),
    ScorerEntry(
        "vqa",
        "NAME_OR_FOLDER",
        "the probability of yes to a question about the caption, from an image-text-to-text model of "
        "transformers (Qwen-VL, LLaVA, PaliGemma, ...)",
        "vqa:Qwen/Qwen3-VL-4B-Instruct",
        "counterfoil.models.generative.vqa:load",
        "models",
        _DECLARED("Vqa"),
    ),
    ScorerEntry(
        "chat",
        "URL#MODEL",
        "a model behind an OpenAI-compatible chat endpoint, asked by a protocol (yes-no, choose, two-images, "
        "answer)",
        "chat:http://localhost:8000/v1#MODEL",
        "counterfoil.models.chat.scorer:load",
        "chat",
        _DECLARED("ChatModel"),
    ),
    ScorerEntry(
        "likelihood",
        "NAME_OR_FOLDER",
        "the likelihood of the caption by a model of transformers that writes captions: BLIP, GIT, or an "
        "image-text-to-text model",
        "likelihood:google/paligemma-3b-mix-224",
        "counterfoil.models.generative.likelihood:load",
        "models",
        _DECLARED("Likelihood"),
    ),
    ScorerEntry(
        "blind",
        "constant|random|length|unigram|bag-of-words|learned|constant-image",
        "baselines that never look at the image; those that learn do so from a benchmark's other questions, "
        "and constant-image is a model (--backbone) that sees the mean image",
        "blind:length",
        "counterfoil.models.baselines:load_blind",
        settings=_DECLARED("Blind"),
    ),
    ScorerEntry(
        "lm",
        "NAME_OR_FOLDER",
        "the likelihood of captions by a causal or masked language model of transformers; sees no image",
        "lm:gpt2",
        "counterfoil.models.text_models:load_lm",
        "models",
        _DECLARED("LanguageModel"),
    ),
    ScorerEntry(
        "text-encoder",
        "NAME_OR_FOLDER",
        "an encoder of sentences of transformers, where captions are compared with captions; sees no image",
        "text-encoder:sentence-transformers/all-mpnet-base-v2",
        "counterfoil.models.text_models:load_encoder",
        "models",
        _DECLARED("Sentence"),
    ),
    ScorerEntry(
        "text-classifier",
        "NAME_OR_FOLDER",
        "the probability of a class by a classifier of texts, such as one of grammar; sees no image",
        "text-classifier:textattack/distilbert-base-uncased-CoLA",
        "counterfoil.models.text_models:load_classifier",
        "models",
        _DECLARED("Classifier"),
    ),
    ScorerEntry(
        "plausibility",
        "NAME_OR_FOLDER",
        "the plausibility of captions by a T5 encoder laid out as Vera is; sees no image",
        "plausibility:liujch1998/vera",
        "counterfoil.models.text_models:load_plausibility",
        "models",
        _DECLARED("Plausibility"),
    ),
    ScorerEntry(
        "metric",
        "NAME",
        "a caption metric (see 'counterfoil list metrics'); one that looks at images has a model behind it, "
        "named with --backbone",
        "metric:cider",
        "counterfoil.models.captions.registry:load",
    ),
    ScorerEntry(
        "pixels",
        "colours",
        "for the drawn world: its colours against the colour words of captions, and nothing else",
        "pixels:colours",
        "counterfoil.models.baselines:load_pixels",
    ),
)
#: Those of them that embed items one by one.
_EMBEDDERS = ("embeddings", "open-clip", "hf", "hf-text", "ckpt")

#: The kinds of scorer by prefix; `counterfoil.catalog` adds the oracle of the world.
SCORERS: Registry[ScorerEntry] = Registry(
    "kind of scorer",
    ScorerEntry,
    "counterfoil.scorers",
    [replace(entry, embeds=entry.prefix in _EMBEDDERS) for entry in _ENTRIES],
    name="prefix",
)

#: Kinds that look at no images, so that they stand behind a metric and are no scorers by themselves.
TEXT_MODELS = ("hf-text",)


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
        allowed = ("open-clip:ARCH", "open-clip:ARCH/TAG", "open-clip:ARCH/FILE", "hf:FOLDER_OR_NAME")
        raise InputError("the model lacks its name", given=spec, allowed=allowed)
    # What a scorer can be asked for beyond this (a precision, a prompt) means nothing in training.
    reject_unused_options(spec, options)
    from counterfoil.models.runtime import import_torch

    import_torch()
    model: Backbone = import_module(f"counterfoil.models.{kind.replace('-', '_')}").backbone(argument)
    return model


#: A name of the hub.
HUB_NAME = re.compile(r"[A-Za-z0-9][\w.-]*/[\w.-]+")
