"""The caption metrics by name: what each reads, where it comes from, and which module makes it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from counterfoil.errors import InputError
from counterfoil.registry import Registry, resolve
from counterfoil.scorers.base import Options
from counterfoil.scorers.captions.base import CaptionMetric

#: Loads the model behind a metric, with the metric's prompt in its options.
Backbone = Callable[[Options], Any]


@dataclass(frozen=True)
class MetricEntry:
    """A caption metric as `counterfoil list metrics` shows it."""

    name: str
    #: What it reads: captions, references, images; and model or java where it needs one.
    needs: tuple[str, ...]
    summary: str
    source: str
    #: The "module:function" that makes it: of (name, options), and of the backbone where it has a model.
    target: str = ""

    @property
    def has_model(self) -> bool:
        """Whether a model stands behind it, which `--scorer` names."""
        return "model" in self.needs


_READS = ("captions", "references")
_LOOKS = ("images", "captions", "model")
_BOTH = ("images", "captions", "references", "model")

_ENTRIES = (
    *(
        MetricEntry(
            f"bleu-{n}",
            _READS,
            f"precision of n-grams up to {n}, with a penalty for brevity; of a corpus, not a mean",
            "Papineni et al. 2002, as in the COCO tool kit",
        )
        for n in (1, 2, 3, 4)
    ),
    MetricEntry(
        "rouge-l",
        _READS,
        "F of the longest common subsequence, beta 1.2",
        "Lin 2004, as in the COCO tool kit",
    ),
    MetricEntry(
        "cider",
        _READS,
        "tf-idf of n-grams up to 4 against references, times 10; what the COCO tool kit calls CIDEr",
        "Vedantam et al. 2015",
    ),
    MetricEntry("cider-d", _READS, "the same number under its right name", "Vedantam et al. 2015"),
    MetricEntry(
        "meteor",
        (*_READS, "java"),
        "words aligned exactly, by stem, synonym and paraphrase",
        "Denkowski and Lavie 2014",
    ),
    MetricEntry("spice", (*_READS, "java"), "F of the propositions of scene graphs", "Anderson et al. 2016"),
    MetricEntry(
        "clip-s", _LOOKS, "2.5 times the cosine with the image, 0 where negative", "Hessel et al. 2021"
    ),
    MetricEntry(
        "ref-clip-s",
        _BOTH,
        "harmonic mean of clip-s and the best cosine with a reference",
        "Hessel et al. 2021",
    ),
    MetricEntry(
        "pac-s", _LOOKS, "2 times the cosine, of a model tuned on positive augmentation", "PAC-S, section 3.1"
    ),
    MetricEntry(
        "ref-pac-s", _BOTH, "harmonic mean of pac-s and the best cosine with a reference", "PAC-S, equation 6"
    ),
    MetricEntry(
        "em-score",
        _LOOKS,
        "tokens matched to frames, and the whole to the whole; images and videos",
        "Shi et al. 2022",
    ),
    MetricEntry("ref-em-score", _BOTH, "em-score and the same with references, averaged", "Shi et al. 2022"),
    MetricEntry(
        "token-match",
        (*_READS, "model"),
        "tokens matched to those of references, as BERTScore does, by a model that reads",
        "Zhang et al. 2020",
    ),
    MetricEntry("length", ("captions",), "number of tokens: what a metric must beat", "PAC-S, Table 4"),
)

METRICS: Registry[MetricEntry] = Registry(
    "caption metric", MetricEntry, "counterfoil.caption_metrics", _ENTRIES
)

#: Names that stand for several.
SEVERAL: Mapping[str, tuple[str, ...]] = {"bleu": ("bleu-1", "bleu-2", "bleu-3", "bleu-4")}


def entry(name: str) -> MetricEntry:
    """The metric called `name`; raises `UnknownNameError`."""
    return METRICS.find(name)


def several(names: Sequence[str]) -> tuple[str, ...]:
    """The metrics that names stand for, each once; a name may be a list with commas.

    >>> several(["bleu,clip-s", "bleu-1"])
    ('bleu-1', 'bleu-2', 'bleu-3', 'bleu-4', 'clip-s')
    >>> several(["clips"])
    Traceback (most recent call last):
    counterfoil.errors.UnknownNameError: unknown caption metric; given: clips; ... did you mean 'clip-s'?
    """
    parts = [part.strip().removeprefix("metric:") for name in names for part in name.split(",")]
    found = [each for part in parts if part for each in SEVERAL.get(part) or (entry(part).name,)]
    if not found:
        raise InputError("no metric is named", allowed=[*METRICS, *SEVERAL])
    return tuple(dict.fromkeys(found))


def check(name: str, backbone: str) -> None:
    """Raise what `load` does where a metric lacks the model behind it, or has one too many."""
    if not entry(name).has_model and backbone:
        raise InputError(
            "has no model behind it",
            where=f"metric:{name}",
            given=f"--scorer {backbone}",
            hint="leave --scorer out, or take clip-s, pac-s or em-score",
        )
    if entry(name).has_model and not backbone:
        raise InputError(
            "needs a model to look with",
            where=f"metric:{name}",
            hint="name one with --scorer, such as --scorer open-clip:ViT-B-32-quickgelu/openai",
        )


def load(name: str, options: Options, backbone: Backbone) -> CaptionMetric:
    """The metric called `name`, with `options.settings`; `backbone` loads the model behind it.

    Raises `UnknownNameError` for an unknown name, and `InputError` where a metric has a model behind
    it and none is named, or one is named and it has none.
    """
    check(name, options.backbone)
    found = entry(name)
    kind = "embedding" if found.has_model else "text"
    make = resolve(found.target or f"counterfoil.scorers.captions.{kind}:load")
    return make(name, options, backbone) if found.has_model else make(name, options)
