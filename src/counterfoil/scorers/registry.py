"""The kinds of scorer: what stands before the colon of a scorer's name, and which function loads it."""

from dataclasses import dataclass

from counterfoil.registry import Registry


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


_ENTRIES = (
    ScorerEntry(
        "given",
        "PATH",
        "scores or outcomes from a CSV, JSON, JSONL or Parquet file, or a folder of them; "
        "of a gallery a similarity (npy) or rankings (json, npz)",
        "given:scores/clip.jsonl",
        "counterfoil.scorers.given:load",
    ),
    ScorerEntry(
        "embeddings",
        "PATH",
        "an npz file with the embeddings of images and captions, compared by cosine",
        "embeddings:clip_vit_b32.npz",
        "counterfoil.scorers.given:load_embeddings",
    ),
    ScorerEntry(
        "open-clip",
        "ARCH/PRETRAINED",
        "a dual encoder of open_clip; PRETRAINED is a tag or a local checkpoint",
        "open-clip:ViT-B-32-quickgelu/openai",
        "counterfoil.scorers.open_clip:load",
        "models",
    ),
    ScorerEntry(
        "hf",
        "NAME_OR_FOLDER",
        "a dual encoder of transformers (CLIP, SigLIP, SigLIP2, ALIGN, AltCLIP, ...)",
        "hf:google/siglip-base-patch16-224",
        "counterfoil.scorers.hf:load",
        "models",
    ),
    ScorerEntry(
        "hf-text",
        "NAME_OR_FOLDER[@LAYER]",
        "an encoder of texts of transformers (BERT, RoBERTa, ...), behind metric:token-match alone",
        "hf-text:roberta-large@17",
        "counterfoil.scorers.hf_text:load",
        "models",
    ),
    ScorerEntry(
        "ckpt",
        "FOLDER",
        "a model that 'counterfoil train' wrote, detectors included; the folder alone will do",
        "ckpt:runs/trohn-img",
        "counterfoil.scorers.checkpoint:load",
        "models",
    ),
    ScorerEntry(
        "blind",
        "constant|random|length",
        "baselines that never look at the image",
        "blind:length",
        "counterfoil.scorers.blind:load",
    ),
    ScorerEntry(
        "metric",
        "NAME",
        "a caption metric (see 'counterfoil list metrics'); one that looks at images has a model behind it, "
        "named with --scorer",
        "metric:cider",
        "counterfoil.scorers.captions.registry:load",
    ),
    ScorerEntry(
        "world",
        "oracle",
        "knows the scenes behind the world's pictures, and gets everything right",
        "world:oracle",
        "counterfoil.studies.oracle:load",
    ),
    ScorerEntry(
        "pixels",
        "colours",
        "reads colours from pixels and colour words from captions, and nothing else",
        "pixels:colours",
        "counterfoil.scorers.pixels:load",
    ),
)

SCORERS: Registry[ScorerEntry] = Registry(
    "kind of scorer", ScorerEntry, "counterfoil.scorers", lambda: _ENTRIES, name="prefix"
)

#: Kinds of scorer that embed nothing, so that no caption metric can look with them.
NO_MODELS = ("given", "blind", "metric", "world")

#: Kinds that look at no images, so that they stand behind a metric and are no scorers by themselves.
TEXT_MODELS = ("hf-text",)
