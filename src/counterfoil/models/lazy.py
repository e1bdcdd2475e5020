"""Models that are loaded only when something is left to compute.

Identities are kept beside the cache under all that made them; of local files alone: a hub's names can change.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.records import Caption
from counterfoil.errors import CounterfoilError, ModelError
from counterfoil.inputs.files import digest_value, read_json
from counterfoil.models import base
from counterfoil.models.captions.base import BatchFrames
from counterfoil.models.dual import given_frames, is_given
from counterfoil.models.matching_probability import RowSimilarity
from counterfoil.store import write_json

#: Libraries whose versions an identity may depend on.
_LIBRARIES = ("counterfoil", "torch", "torchvision", "open_clip_torch", "timm", "transformers", "tokenizers")

Load = Callable[[str, base.Options], Any]


def lazy(
    prefix: str, argument: str, options: base.Options, load: Load, folder: Path, models: Sequence[str] = ()
) -> Any:
    """What `load(argument, options)` gives, loaded later where `folder` remembers its identity."""
    files = _files(argument)
    further = [options.settings[name] for name in models if options.settings.get(name)]
    if not files or not all(map(_files, further)):
        return load(argument, options)
    # What a setting names decides answers as well: region features, a tokenizer.
    files += [file for value in options.settings.values() for file in _files(value)]
    states = [[str(file.resolve()), file.stat().st_size, file.stat().st_mtime_ns] for file in files]
    libraries = {name: base.version_of(name) for name in _LIBRARIES}
    spec, given = f"{prefix}:{argument}", asdict(options)
    made_by = {"spec": spec, "options": given, "files": states, "libraries": libraries}
    memo = folder / "identities" / f"{digest_value(made_by)}.json"
    kinds = {kind.does: kind for kind in (LazyPairModel, LazyEmbedder)}
    if memo.is_file():
        try:
            stored = read_json(memo)
            identity, later = base.Identity(**stored["identity"]), partial(load, argument, options)
            parts = stored["parts"] and base.Identity(**stored["parts"])
            how = tuple(stored["needs"]), bool(stored["limited"]), bool(stored["cosine"]), parts
            return kinds[tuple(stored["does"])](identity, stored["provenance"], later, memo, *how)
        except (CounterfoilError, KeyError, TypeError):
            memo.unlink(missing_ok=True)
    loaded = load(argument, options)
    does = base.abilities(loaded)
    # A detector is not remembered: its answers are few, and it is loaded for them at once.
    if does in kinds:
        needs, provenance = getattr(loaded, "needs", _Lazy.needs), getattr(loaded, "provenance", {})
        stored = {"does": list(does), "identity": loaded.identity.to_json(), "provenance": dict(provenance)}
        local, cosine = getattr(loaded, "local", None), getattr(loaded, "comparison", None) is None
        stored |= {"needs": list(needs), "limited": hasattr(loaded, "over_limit"), "cosine": cosine}
        write_json(memo, {**stored, "parts": None if local is None else local.identity.to_json()})
    return loaded


def _delegated(method: str, nothing: Callable[[], Any] = lambda: iter(())) -> Any:
    """The method of that name of the model; nothing is loaded for no items."""

    def ask(self: Any, items: Sequence[Any], **options: Any) -> Any:
        return getattr(self.model(), method)(items, **options) if len(items) else nothing()

    return ask


def _held(name: str) -> Any:
    """What the model has under that name, which is loaded now; None where it has nothing."""
    return property(lambda self: getattr(self.model(), name, None))


@dataclass(eq=False)
class _Lazy:
    """A model whose identity is known and that is loaded when a batch asks for it."""

    identity: base.Identity
    #: Versions, device and towers with which the remembered model was loaded.
    provenance: Mapping[str, Any]
    _load: Callable[[], Any]
    _memo: Path
    needs: tuple[str, ...] = ("images", "captions")
    limited: bool = True
    #: Whether embeddings are compared by cosine; else the model is asked how.
    cosine: bool = True
    #: Of the same model token by token and frame by frame, where it can be asked so.
    parts: base.Identity | None = None
    _loaded: Any = field(default=None, init=False)

    def __getstate__(self) -> dict[str, Any]:
        """What travels to another process: not the model, which is loaded there."""
        return {**self.__dict__, "_loaded": None}

    def model(self) -> Any:
        if self._loaded is None:
            loaded = self._load()
            if loaded.identity != self.identity:
                self._memo.unlink(missing_ok=True)
                problem = "the model is not the one remembered: its files or this machine have changed"
                hint = "run again; it will be looked at anew"
                raise ModelError(problem, where=self.identity.name, hint=hint)
            self._loaded = loaded
        return self._loaded

    def over_limit(self, captions: Sequence[Caption]) -> int:
        return base.truncated(self.model(), captions) if self.limited else 0


class LazyPairModel(_Lazy):
    does = ("scores_pairs",)

    def score_pairs(self, batches: base.PairBatches, *, workers: int = 0) -> base.BatchNumbers:
        return base.stream_pairs(self.model(), batches, workers=workers) if batches else iter(())

    heats = _held("heats")


class LazyEmbedder(_Lazy):
    does = ("embeds",)

    embed_images = _delegated("embed_images")
    embed_captions = _delegated("embed_captions")
    lengths = _delegated("lengths", list)
    patches = _held("patches")

    def compare(self, captions: base.PairVectors, images: base.PairVectors) -> Float[ndarray, "pairs"]:
        return base.cosines(captions, images) if self.cosine else self.model().compare(captions, images)

    @property
    def comparison(self) -> RowSimilarity | None:
        return None if self.cosine else getattr(self.model(), "comparison", None)

    @property
    def local(self) -> "LazyTokenEncoder | None":
        if self.parts is None:
            return None
        return LazyTokenEncoder(self.parts, {}, partial(_local_of, self), self._memo, limited=self.limited)


def _local_of(whole: LazyEmbedder) -> Any:
    return whole.model().local


class LazyTokenEncoder(_Lazy):
    embed_tokens = _delegated("embed_tokens")
    token_ids = _delegated("token_ids", list)

    def embed_frames(self, batches: base.ImageBatches, *, workers: int = 0) -> BatchFrames:
        """As the model's; nothing is loaded for no batches, nor where all frames are embedded already."""
        if all(is_given(item) for batch in batches for item in batch):
            return ([given_frames(item) for item in batch] for batch in batches)
        return self.model().embed_frames(batches, workers=workers)


def _files(argument: str) -> list[Path]:
    """The files that a spec's argument names on this machine, none where it names something on a hub."""
    for text in (argument, argument.removeprefix("local-dir:"), argument.partition("/")[2]):
        path = Path(text)
        if text and path.is_file():
            return [path]
        if text and path.is_dir():
            return sorted(file for file in path.rglob("*") if file.is_file())
    return []
