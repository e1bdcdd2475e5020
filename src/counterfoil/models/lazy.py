"""Models that are loaded only when something is left to compute.

Importing a model library and building a model takes seconds; a second run finds all its embeddings in the
cache and needs neither. What it does need is the model's identity, so that is kept beside the cache, under
everything that made it: the spec, the options, size and time of every file of the checkpoint, and the
versions of the libraries. Only local files and folders are remembered: what a name on a hub stands for can
change behind it.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import CounterfoilError, ModelError
from counterfoil.inputs.files import read_json
from counterfoil.models.base import (
    Ability,
    BatchNumbers,
    BatchVectors,
    CaptionBatches,
    Identity,
    ImageBatches,
    Options,
    PairBatches,
    PairVectors,
    abilities,
    cosines,
    stream_pairs,
    truncated,
    version_of,
)
from counterfoil.models.captions.base import BatchFrames, BatchTokens
from counterfoil.models.dual import PatchEncoder, given_frames, is_given
from counterfoil.models.matching_probability import RowSimilarity
from counterfoil.store import digest_value, write_json

#: Libraries whose versions an identity may depend on.
_LIBRARIES = ("counterfoil", "torch", "torchvision", "open_clip_torch", "timm", "transformers", "tokenizers")

Load = Callable[[str, Options], Any]


def lazy(
    prefix: str,
    argument: str,
    options: Options,
    load: Load,
    folder: Path,
    *,
    named_models: Sequence[str] = (),
) -> Any:
    """The scorer that `load(argument, options)` gives, loaded later if `folder` remembers its identity.

    The first call loads, and writes what it found to `folder`; calls with the same files, options and
    libraries then load when the first batch asks for it. Settings called `named_models` name a further model,
    and one on a hub is not remembered either. Raises what `load` raises.
    """
    files = _files(argument)
    further = [options.settings[name] for name in named_models if options.settings.get(name)]
    if not files or not all(map(_files, further)):
        return load(argument, options)
    # What a setting names decides answers as well: region features, a tokenizer.
    files += [file for value in options.settings.values() for file in _files(value)]
    key = digest_value(
        {
            "spec": f"{prefix}:{argument}",
            "options": asdict(options),
            "files": [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files],
            "libraries": {name: version_of(name) for name in _LIBRARIES},
        }
    )
    memo = folder / "identities" / f"{key}.json"
    if memo.is_file():
        try:
            known = read_json(memo)
            facts = Identity(**known["identity"]), known["provenance"], partial(load, argument, options), memo
            needs = tuple(known["needs"])
            if tuple(known["does"]) == LazyPairScorer.does:
                return LazyPairScorer(*facts, needs, bool(known["limited"]))
            parts = known["parts"] and Identity(**known["parts"])
            return LazyEmbedder(*facts, needs, bool(known["cosine"]), parts)
        except (CounterfoilError, KeyError, TypeError):
            memo.unlink(missing_ok=True)
    loaded = load(argument, options)
    does = abilities(loaded)
    # A detector is not remembered: its answers are few, and it is loaded for them at once.
    if does in (LazyEmbedder.does, LazyPairScorer.does):
        known = {
            "does": list(does),
            "identity": loaded.identity.to_json(),
            "provenance": dict(getattr(loaded, "provenance", {})),
            "needs": list(getattr(loaded, "needs", _Lazy.needs)),
        }
        if does == LazyPairScorer.does:
            known["limited"] = hasattr(loaded, "over_limit")
        else:
            local = getattr(loaded, "local", None)
            known["cosine"] = getattr(loaded, "comparison", None) is None
            known["parts"] = None if local is None else local.identity.to_json()
        write_json(memo, known)
    return loaded


@dataclass(eq=False)
class _Lazy:
    """A scorer whose identity is known and whose model is loaded when a batch asks for it."""

    identity: Identity
    #: Versions, device and towers with which the remembered model was loaded.
    provenance: Mapping[str, Any]
    _load: Callable[[], Any]
    _memo: Path
    needs: tuple[str, ...] = ("images", "captions")
    _loaded: Any = field(default=None, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """What travels to another process: not the model, which is loaded there."""
        return {**self.__dict__, "_loaded": None}

    def model(self) -> Any:
        """The model itself, loaded now; raises `ModelError` where it is not the one remembered."""
        if self._loaded is None:
            loaded = self._load()
            if loaded.identity != self.identity:
                self._memo.unlink(missing_ok=True)
                problem = "the model is not the one remembered: its files or this machine have changed"
                hint = "run again; it will be looked at anew"
                raise ModelError(problem, where=self.identity.name, hint=hint)
            self._loaded = loaded
        return self._loaded


@dataclass(eq=False)
class LazyPairScorer(_Lazy):
    """A scorer of pairs whose model is loaded when a batch asks for it."""

    does: ClassVar[tuple[Ability, ...]] = ("scores_pairs",)

    #: Whether the model counts the captions that it cuts off.
    limited: bool = False

    def score_pairs(self, batches: PairBatches, *, workers: int = 0) -> BatchNumbers:
        """As the model's; nothing is loaded for no batches."""
        return stream_pairs(self.model(), batches, workers=workers) if batches else iter(())

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions the model cuts off; 0 where it cannot tell."""
        return truncated(self.model(), captions) if self.limited else 0

    @property
    def heats(self) -> Any:
        """The heatmaps that the model has in it, which is loaded now; None where it has none."""
        return getattr(self.model(), "heats", None)


@dataclass(eq=False)
class LazyEmbedder(_Lazy):
    """An embedder whose model is loaded when a batch asks for it."""

    does: ClassVar[tuple[Ability, ...]] = ("embeds",)

    #: Whether embeddings are compared by cosine; else the model is asked how.
    _cosine: bool = True
    #: Of the same model token by token and frame by frame, where it can be asked so.
    _parts: Identity | None = None

    def embed_images(self, batches: ImageBatches, *, workers: int = 0) -> BatchVectors:
        """As the model's; nothing is loaded for no batches."""
        return self.model().embed_images(batches, workers=workers) if batches else iter(())

    def embed_captions(self, batches: CaptionBatches) -> BatchVectors:
        """As the model's; nothing is loaded for no batches."""
        return self.model().embed_captions(batches) if batches else iter(())

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        """As the model's; nothing is loaded for no captions."""
        return self.model().lengths(captions) if len(captions) else []

    def compare(self, captions: PairVectors, images: PairVectors) -> Float[ndarray, "pairs"]:
        """The cosine of captions[i] with images[i]; as the model's, where it compares in another way."""
        return cosines(captions, images) if self._cosine else self.model().compare(captions, images)

    @property
    def comparison(self) -> RowSimilarity | None:
        """How a gallery's rows are compared where that is not the cosine."""
        return None if self._cosine else getattr(self.model(), "comparison", None)

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions the model cuts off; 0 where it cannot tell."""
        return truncated(self.model(), captions)

    @property
    def patches(self) -> PatchEncoder | None:
        """The same model patch by patch, where it can be asked so; it is loaded now."""
        return getattr(self.model(), "patches", None)

    @property
    def local(self) -> "LazyTokenEncoder | None":
        """The same model part by part, loaded when a batch asks for it; None where it cannot be asked so."""
        return None if self._parts is None else LazyTokenEncoder(self._parts, self)


@dataclass(frozen=True, eq=False)
class LazyTokenEncoder:
    """The tokens and frames of a model that is loaded when a batch asks for it."""

    identity: Identity
    _whole: LazyEmbedder

    def embed_tokens(self, batches: CaptionBatches) -> BatchTokens:
        """As the model's; nothing is loaded for no batches."""
        return self._whole.model().local.embed_tokens(batches) if batches else iter(())

    def embed_frames(self, batches: ImageBatches, *, workers: int = 0) -> BatchFrames:
        """As the model's; nothing is loaded for no batches, nor where all frames are embedded already."""
        if all(is_given(item) for batch in batches for item in batch):
            return ([given_frames(item) for item in batch] for batch in batches)
        return self._whole.model().local.embed_frames(batches, workers=workers)

    def token_ids(self, texts: Sequence[str]) -> list[ndarray]:
        """The ids of each text, as the model's tokenizer gives them; nothing is loaded for no texts."""
        return self._whole.model().local.token_ids(texts) if len(texts) else []

    def over_limit(self, captions: Sequence[Caption]) -> int:
        """How many captions the model cuts off."""
        return self._whole.over_limit(captions)


def _files(argument: str) -> list[Path]:
    """The files that a spec's argument names on this machine, none where it names something on a hub."""
    argument = argument.removeprefix("open-clip:")
    for text in (argument, argument.removeprefix("local-dir:"), argument.partition("/")[2]):
        path = Path(text)
        if text and path.is_file():
            return [path]
        if text and path.is_dir():
            return sorted(file for file in path.rglob("*") if file.is_file())
    return []
