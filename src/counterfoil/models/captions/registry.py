"""The caption metrics by name: what each reads, where it is from, and what may be set of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from counterfoil.errors import InputError
from counterfoil.inputs.fields import check_key, setting, values_of
from counterfoil.metrics.captions.clip_score import CLIP_WEIGHT, PAC_WEIGHT, Arithmetic, Negative
from counterfoil.metrics.captions.token_match import Best, Padding
from counterfoil.models.base import Options
from counterfoil.models.captions.base import CaptionMetric
from counterfoil.registry import Registry, resolve

PREFIX = "A photo depicts "


@dataclass(frozen=True)
class Settings:
    """How a metric is computed; each takes what concerns it."""

    prefix: str = setting("", "Text before candidates and references; a blank is added at its end.")
    weight: float = setting(1.0, "Factor of the cosine.", above=0)
    negative: Negative = setting("released", "Negative cosines with references as they are, or (paper) 0.")
    arithmetic: Arithmetic = setting("exact", "Exact, or half as CLIPScore's code on a GPU.")
    max: Best = setting("component", "Of several references: component, or (PAC-S equation 8) whole.")
    idf: str = setting(
        "none", "Captions that tokens are counted in: benchmark, references, candidates, none or a JSON file."
    )
    padding: Padding = setting("none", "Count padding as EMScore's released code does.")
    part: Literal["f1", "precision", "recall"] = setting("f1", "What token-match gives.")
    model: Literal["any", "pac-s"] = setting("any", "Whether the model is one that PAC-S released.")
    tokens: Literal["ptb", "blanks"] = setting(
        "ptb", "Words: the COCO tool kit's (lower case, no punctuation), or what stands between blanks."
    )
    length: Literal["closest", "shortest", "average"] = setting(
        "closest", "Length of references that a candidate is held against."
    )
    df: str = setting("references", "Where document frequencies come from: references, or a JSON file.")
    variant: Literal["d", "plain"] = setting("d", "CIDEr-D, or the formula that tables do not mean.")
    models: str = setting("", "Folder of SPICE's parser.")


@dataclass(frozen=True)
class Kind:
    official: Settings
    takes: tuple[str, ...]
    #: The same where it is asked about videos; none where it cannot be.
    of_videos: "Kind | None" = None


_COSINE = ("prefix", "weight", "arithmetic")
_FRAMES = ("prefix", "idf", "padding")
_EM = Kind(Settings(idf="benchmark"), _FRAMES)
_REF_EM = Kind(Settings(idf="benchmark"), (*_FRAMES, "max"))
_CLIP, _PAC = Settings(PREFIX, CLIP_WEIGHT), Settings(PREFIX, PAC_WEIGHT)

KINDS: Mapping[str, Kind] = {
    "clip-s": Kind(_CLIP, _COSINE),
    "ref-clip-s": Kind(_CLIP, (*_COSINE, "negative")),
    # PAC-S section 3.2: with its own model, a video is scored as EMScore scores it.
    "pac-s": Kind(_PAC, (*_COSINE, "model"), replace(_EM, takes=(*_EM.takes, "model"))),
    "ref-pac-s": Kind(
        _PAC, (*_COSINE, "negative", "model"), replace(_REF_EM, takes=(*_REF_EM.takes, "model"))
    ),
    "em-score": _EM,
    "ref-em-score": _REF_EM,
    "token-match": Kind(Settings(), ("prefix", "idf", "part")),
    **{f"bleu-{order}": Kind(Settings(), ("length", "tokens")) for order in (1, 2, 3, 4)},
    "cider": Kind(Settings(), ("df", "tokens", "variant")),
    "cider-d": Kind(Settings(), ("df", "tokens")),
    "spice": Kind(Settings(), ("models", "tokens")),
    **dict.fromkeys(("rouge-l", "meteor", "length"), Kind(Settings(), ("tokens",))),
}


def read(given: Mapping[str, str], name: str, *, videos: bool = False) -> Settings:
    """The official values of the metric called `name`, of pictures or of videos, but for what is given.

    One command may ask about both, so what concerns the other alone is passed over.

    >>> read({"weight": "1"}, "clip-s")  # doctest: +ELLIPSIS
    Settings(prefix='A photo depicts ', weight=1.0, negative='released', ...)
    >>> read({"negative": "papr"}, "ref-clip-s")
    Traceback (most recent call last):
    counterfoil.errors.InputError: metric:ref-clip-s, key 'negative': not a choice; given: papr; ...
    """
    where, picture = f"metric:{name}", KINDS[name]
    moving = picture.of_videos
    parts = dict.fromkeys([*picture.takes, *(moving.takes if moving else ())])
    kind = moving if videos and moving else picture
    for key in given:
        check_key(key, parts, where=where)
    values = values_of(Settings, given, where=where)
    if prefix := values.get("prefix"):
        if "{}" in prefix:
            problem, hint = "a prefix stands before captions", "leave {} out"
            raise InputError(problem, where=where, given=prefix, hint=hint)
        values["prefix"] = prefix if prefix.endswith(" ") else f"{prefix} "
    return replace(kind.official, **{key: value for key, value in values.items() if key in kind.takes})


Backbone = Callable[[Options], Any]


@dataclass(frozen=True)
class MetricEntry:
    name: str
    needs: tuple[str, ...]
    summary: str
    source: str
    #: The "module:function" that makes it: of (name, options), and of the backbone where it has a model.
    target: str = ""

    @property
    def has_model(self) -> bool:
        return "model" in self.needs

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(name for name in self.needs if name not in ("model", "java"))


_READS = ("captions", "references")
_LOOKS = ("images", "captions", "model")
_BOTH = ("images", "captions", "references", "model")

_ROWS: tuple[tuple[str, tuple[str, ...], str, str], ...] = (
    *((f"bleu-{n}", _READS,
       f"precision of n-grams up to {n}, with a penalty for brevity; of a corpus, not a mean",
       "Papineni et al. 2002, as in the COCO tool kit") for n in (1, 2, 3, 4)),
    ("rouge-l", _READS, "F of the longest common subsequence, beta 1.2", "Lin 2004, as in the COCO tool kit"),
    ("cider", _READS,
     "tf-idf of n-grams up to 4 against references, times 10; what the COCO tool kit calls CIDEr",
     "Vedantam et al. 2015"),
    ("cider-d", _READS, "the same number under its right name", "Vedantam et al. 2015"),
    ("meteor", (*_READS, "java"), "words aligned exactly, by stem, synonym and paraphrase",
     "Denkowski and Lavie 2014"),
    ("spice", (*_READS, "java"), "F of the propositions of scene graphs", "Anderson et al. 2016"),
    ("clip-s", _LOOKS, "2.5 times the cosine with the image, 0 where negative", "Hessel et al. 2021"),
    ("ref-clip-s", _BOTH, "harmonic mean of clip-s and the best cosine with a reference",
     "Hessel et al. 2021"),
    ("pac-s", _LOOKS, "2 times the cosine, of a model tuned on positive augmentation", "PAC-S, section 3.1"),
    ("ref-pac-s", _BOTH, "harmonic mean of pac-s and the best cosine with a reference", "PAC-S, equation 6"),
    ("em-score", _LOOKS, "tokens matched to frames, and the whole to the whole; images and videos",
     "Shi et al. 2022"),
    ("ref-em-score", _BOTH, "em-score and the same with references, averaged", "Shi et al. 2022"),
    ("token-match", (*_READS, "model"),
     "tokens matched to those of references, as BERTScore does, by a model that reads",
     "Zhang et al. 2020"),
    ("length", ("captions",), "number of tokens: what a metric must beat", "PAC-S, Table 4"),
)  # fmt: skip
METRICS: Registry[MetricEntry] = Registry(
    "caption metric", MetricEntry, "counterfoil.caption_metrics", [MetricEntry(*row) for row in _ROWS]
)

SEVERAL: Mapping[str, tuple[str, ...]] = {"bleu": ("bleu-1", "bleu-2", "bleu-3", "bleu-4")}


def entry(name: str) -> MetricEntry:
    return METRICS.find(name)


def several(names: Sequence[str]) -> tuple[str, ...]:
    """The metrics that names stand for, each once; a name may be a list with commas.

    >>> several(["bleu,clip-s", "bleu-1"])
    ('bleu-1', 'bleu-2', 'bleu-3', 'bleu-4', 'clip-s')
    >>> several(["clipp"])
    Traceback (most recent call last):
    counterfoil.errors.UnknownNameError: unknown caption metric; given: clipp; ... did you mean 'clip-s'? ...
    """
    parts = [part.strip().removeprefix("metric:") for name in names for part in name.split(",")]
    metrics = [metric for part in parts if part for metric in SEVERAL.get(part) or (entry(part).name,)]
    if not metrics:
        raise InputError("no metric is named", allowed=[*METRICS, *SEVERAL])
    return tuple(dict.fromkeys(metrics))


def check(name: str, backbone: str) -> None:
    """Raise what `load` does where a metric lacks the model behind it, or has one too many."""
    where, has_model = f"metric:{name}", entry(name).has_model
    if not has_model and backbone:
        given, hint = f"--backbone {backbone}", "leave --backbone out, or take clip-s, pac-s or em-score"
        raise InputError("has no model behind it", where=where, given=given, hint=hint)
    if has_model and not backbone:
        hint = "name one with --backbone, such as --backbone open-clip:ViT-B-32-quickgelu/openai"
        raise InputError("needs a model to look with", where=where, hint=hint)


def load(name: str, options: Options, backbone: Backbone) -> CaptionMetric:
    check(name, options.backbone)
    metric = entry(name)
    kind = "embedding" if metric.has_model else "text"
    make = resolve(metric.target or f"counterfoil.models.captions.{kind}:load")
    return make(metric.name, options, *([backbone] if metric.has_model else []))
