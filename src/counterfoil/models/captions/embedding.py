"""Caption metrics with a model behind them: CLIP-S, PAC-S, EMScore, their kin with references, token-match.

Differences from the released codes: scores are float64 (CLIPScore on a GPU computes in half precision:
`arithmetic=half` with precision fp16); no score depends on rows beside it, as EMScore's padding makes them
(`padding=released`); where all weights of a caption are 0 its tokens count alike (EMScore: NaN); captions
that are too long are cut off (EMScore: an error).
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from jaxtyping import Float, Int64
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.metrics.captions.clip_score import clip_s, ref_clip_s
from counterfoil.metrics.captions.token_match import mean_of, token_match, with_references, with_videos
from counterfoil.models.base import Identity, Options, reject_unused_options
from counterfoil.models.captions.base import Frames, LocalEmbedder
from counterfoil.models.captions.corpora import Corpus, Counting, Phrases
from counterfoil.models.captions.registry import KINDS, Backbone, Kind, Settings, entry, read
from counterfoil.models.dual import DualEncoder
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings
from counterfoil.models.text_models import TextEncoder


def load(name: str, options: Options, backbone: Backbone) -> "CosineMetric | FrameMetric | TokenMetric":
    where, given = f"metric:{name}", f"--backbone {options.backbone}"
    reject_unused_options(where, options, "precision", "prompt", "backbone", "settings")
    prompted = options.prompt != "{}"
    if "prefix" in options.settings and prompted:
        hint = "set one of the two"
        raise InputError("a prefix and a prompt", where=where, given=options.prompt, hint=hint)
    kind, settings = KINDS[name], read(options.settings, name)
    if name in ("em-score", "ref-em-score"):
        return _of_frames(name, kind, settings, options, backbone)
    model, needs = backbone(_with_prompt(settings, options)), entry(name).reads
    if name == "token-match":
        local, corpus = _local_of(model, name, options), Corpus.of(settings.idf, where)
        identity = _identity(name, local.identity, settings, kind, corpus)
        return TokenMetric(identity, needs, local, settings, corpus)
    if isinstance(model, PrecomputedEmbeddings) and ("prefix" in options.settings or prompted):
        problem = "captions that are embedded already cannot get a prefix"
        raise InputError(problem, where=where, given=given, hint="embed them with it")
    if getattr(model, "comparison", None) is not None:
        problem = "the model does not compare one vector with another by cosine"
        allowed = "a dual encoder with one point per item"
        raise InputError(problem, where=where, given=given, allowed=allowed)
    _check_looks(model, name, options)
    identity, title = _identity(name, model.identity, settings, kind), _title(name, model, settings)
    return CosineMetric(identity, needs, model, settings, title, options, backbone)


@dataclass(frozen=True, eq=False)
class CosineMetric:
    """An `EmbeddingMetric`: CLIP-S, PAC-S, and the same with references."""

    does = ("reads_references",)

    identity: Identity
    needs: tuple[str, ...]
    embedder: Any
    settings: Settings
    #: What results call it where its name would say too much: "PAC-S formula through MODEL"; else "".
    title: str
    _options: Options = field(repr=False)
    _backbone: Backbone = field(repr=False)

    def of_embeddings(
        self,
        candidates: Float[ndarray, "rows width"],
        images: Float[ndarray, "rows width"] | None,
        references: Float[ndarray, "references width"] | None,
        starts: Int64[ndarray, "rows_and_one"] | None,
    ) -> Float[ndarray, "rows"]:
        assert images is not None
        how: dict[str, Any] = {"weight": self.settings.weight, "arithmetic": self.settings.arithmetic}
        if "references" not in self.needs:
            return clip_s(candidates, images, **how)
        assert references is not None
        assert starts is not None
        negative = self.settings.negative
        return ref_clip_s(candidates, images, references, starts, negative=negative, **how)

    def for_videos(self) -> "FrameMetric":
        """The metric of videos: PAC-S is EMScore with PAC-S's model and no prefix there (section 3.2)."""
        name = self.identity.name.removeprefix("metric:")
        kind = KINDS[name].of_videos
        if kind is None:
            hint = "take em-score or pac-s" + (", with ref- before" if "references" in self.needs else "")
            raise InputError("is about pictures, and these are videos", where=self.identity.name, hint=hint)

        def model(options: Options) -> Any:
            if isinstance(self.embedder, DualEncoder):
                return self.embedder.with_prompt(options.prompt)
            return self._backbone(options)

        settings = read(self._options.settings, name, videos=True)
        return _of_frames(name, kind, settings, self._options, model)


@dataclass(frozen=True, eq=False)
class FrameMetric(Counting):
    """A `LocalMetric`: EMScore, and PAC-S of videos, with references or without."""

    marks = True

    beside_references: bool
    title: str = ""

    def matched(self, parts: Phrases, images: Frames | None, references: Sequence[Phrases]) -> ndarray:
        assert images is not None
        padding = self.settings.padding
        shown = with_videos(parts, images, padding=padding)
        if not self.beside_references:
            return shown.full
        return mean_of(
            shown, with_references(parts, references, best=self.settings.max, padding=padding)
        ).full


class TokenMetric(Counting):
    """A `LocalMetric` that looks at no images: candidates matched to references token by token."""

    marks = False

    def matched(self, parts: Phrases, images: Frames | None, references: Sequence[Phrases]) -> ndarray:
        """F1, or the part that is set."""
        return getattr(token_match(parts, references), self.settings.part)


def _of_frames(
    name: str, kind: Kind, settings: Settings, options: Options, backbone: Backbone
) -> FrameMetric:
    corpus = Corpus.of(settings.idf, f"metric:{name}")
    model = backbone(_with_prompt(settings, options))
    _check_looks(model, name, options)
    local = _local_of(model, name, options)
    needs = entry(name).reads
    references = "references" in needs
    needs = (*needs, "references") if settings.idf == "references" and not references else needs
    identity = _identity(name, local.identity, settings, kind, corpus)
    return FrameMetric(identity, needs, local, settings, corpus, references, _title(name, model, settings))


def _title(name: str, model: Any, settings: Settings) -> str:
    """What results call PAC-S whose model is neither of the recipe `pac` nor said to be a released one."""
    if not name.endswith("pac-s") or settings.model == "pac-s":
        return ""
    if (getattr(model, "provenance", None) or {}).get("recipe") == "pac":
        return ""
    return f"{'RefPAC-S' if name.startswith('ref-') else 'PAC-S'} formula through {model.identity.name}"


def _with_prompt(settings: Settings, options: Options) -> Options:
    prompt = options.prompt if options.prompt != "{}" else settings.prefix + "{}"
    return replace(options, prompt=prompt, backbone="", settings={})


def _check_looks(model: Any, name: str, options: Options) -> None:
    if isinstance(model, TextEncoder):
        problem = "the model reads captions and looks at no images"
        given = f"--backbone {options.backbone}"
        allowed = "a dual encoder; an encoder of texts stands behind token-match"
        raise InputError(problem, where=f"metric:{name}", given=given, allowed=allowed)


def _local_of(model: Any, name: str, options: Options) -> LocalEmbedder:
    local: LocalEmbedder | None = getattr(model, "local", None)
    if local is None:
        problem = "the model gives no embeddings of single tokens in the space of its images"
        where, given = f"metric:{name}", f"--backbone {options.backbone}"
        allowed = "CLIP of open_clip or transformers, whose text tower is causal and ends with a mark"
        read_alone = "or an encoder of texts, hf-text:..."
        hint = read_alone if name == "token-match" else "clip-s takes any dual encoder"
        raise InputError(problem, where=where, given=given, allowed=allowed, hint=hint)
    return local


def _identity(
    name: str, model: Identity, settings: Settings, kind: Kind, corpus: Corpus | None = None
) -> Identity:
    # What decides the numbers; the prefix is in the prompt.
    deciding = {*kind.takes} - {"prefix"}
    values = {name: value for name, value in vars(settings).items() if name in deciding}
    values |= {} if corpus is None else {"idf": corpus.identity}
    options = {**model.options, "model": model.name, "metric": values}
    return replace(model, name=f"metric:{name}", options=options)
