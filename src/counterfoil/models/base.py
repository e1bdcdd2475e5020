"""The protocols of models and their identities: a number for an image and a caption.

A model never sees a benchmark. Two networks under one name must never share what a cache keeps, so an
identity says which weights it is of, or which version of the code; of a model that says neither, its
attributes are searched for weights (`identity_of`).
"""

import hashlib
import re
import sys
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, fields, replace
from functools import partial
from importlib import metadata
from itertools import starmap
from pathlib import Path
from types import FunctionType, MethodType, ModuleType
from typing import Any, Literal, Protocol, runtime_checkable

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import digest, digest_value


@dataclass(frozen=True)
class Identity:
    """Everything that a model's answers depend on. Equal identities give equal scores.

    Batch size, number of workers and number of devices are not part of it. Scores are kept in a cache only
    where `weights` or `revision` is given, or the weights can be found (`identity_of`).
    """

    name: str
    #: The version of the model on a hub; without weights, that of its code.
    revision: str = ""
    #: Digest of the weights, or of the file of numbers.
    weights: str = ""
    #: Digest or description of what is done to pixels before the model sees them.
    preprocessing: str = ""
    precision: str = "fp32"
    prompt: str = "{}"
    #: Anything else that changes answers: overrides, the kind of device, seeds.
    options: Mapping[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """A short name for this identity in caches."""
        return digest_value(self.to_json())

    def to_json(self) -> dict[str, Any]:
        """The identity as plain values, for manifests."""
        return asdict(self)


#: Items that are cut into batches by the engine, and what a model gives for each of the batches, in order.
ImageBatches = Sequence[Sequence[Image]]
CaptionBatches = Sequence[Sequence[Caption]]
PairBatches = Sequence[Sequence[tuple[Image, Caption]]]
BatchVectors = Iterator[Float[np.ndarray, "batch width"]]
BatchNumbers = Iterator[Float[np.ndarray, "batch"]]
PairVectors = Float[ndarray, "pairs width"]


#: How deep attributes of attributes are looked into, and where the `repr` of an object names its place.
_DEPTH = 6
ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def stated_identity(model: Any) -> Identity:
    """The identity that a model says; raises `InputError` for what has none, and for a class."""
    identity = getattr(model, "identity", None)
    if not isinstance(identity, Identity) or isinstance(model, type):
        given = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise InputError("no model", given=given, allowed="an object whose 'identity' is an Identity")
    return identity


def identity_of(model: Any) -> Identity:
    """The model's identity; without `weights` in it, with the digest of the weights that the model holds.

    Those are all torch modules (every parameter and buffer, and the structure that prints), tensors and NumPy
    arrays among its attributes: also in lists, dictionaries and objects, behind bound methods, partial
    functions and closures. They are read at every call, so a network that is trained on between two runs has
    two identities. A model that holds none keeps its identity as it is.
    """
    identity = stated_identity(model)
    if identity.weights:
        return identity
    held = dict(_digests(model, "", set(), _DEPTH))
    return replace(identity, weights=digest_value(held)) if held else identity


def check_kept(identity: Identity) -> None:
    """Raise `InputError` where an identity says nothing that would change with the weights or the code."""
    if not (identity.weights or identity.revision):
        problem = "what this model computes cannot be kept: its identity has neither weights nor a revision"
        hint = 'Identity(NAME, revision="1") with a number that you raise when the code changes, or no cache'
        raise InputError(problem, where=identity.name, hint=hint)


def _digests(value: Any, name: str, seen: set[int], depth: int) -> Iterator[tuple[str, str]]:
    """The digests of modules, tensors and arrays reached from `value`, each once, by the way to them."""
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    # Where torch was never imported, nothing of it can be held.
    torch = sys.modules.get("torch")
    if isinstance(value, np.ndarray) and value.dtype != object:
        yield name, digest(f"{value.dtype} {value.shape};".encode() + value.tobytes())
    elif torch is not None and isinstance(value, torch.nn.Module):
        state = {**dict(value.named_parameters()), **dict(value.named_buffers())}
        # What no tensor tells, an activation say, is in what the module prints.
        yield name, digest_value([ADDRESS.sub("", repr(value)), digest_tensors(state)])
    elif torch is not None and isinstance(value, torch.Tensor):
        yield name, digest_tensors({"": value})
    else:
        for part, inner in _inside(value):
            yield from _digests(inner, f"{name}.{part}", seen, depth - 1)


#: What holds nothing.
_LEAVES = (str, bytes, int, float, complex, type, ModuleType, Identity, type(None))


def _inside(value: Any) -> list[tuple[str, Any]]:
    """What `value` holds, with a name for each that is the same in every process."""
    if isinstance(value, _LEAVES):
        return []
    # A tokenizer holds 150,000 numbers: what is a leaf is left out at once.
    if isinstance(value, Mapping):
        return [(str(key), inner) for key, inner in value.items() if not isinstance(inner, _LEAVES)]
    if isinstance(value, list | tuple):
        return [(str(i), inner) for i, inner in enumerate(value) if not isinstance(inner, _LEAVES)]
    if isinstance(value, partial):
        return [("func", value.func), ("args", value.args), ("keywords", value.keywords)]
    if isinstance(value, MethodType):
        return [("self", value.__self__)]
    if isinstance(value, FunctionType):
        held: list[tuple[str, Any]] = []
        for name, cell in zip(value.__code__.co_freevars, value.__closure__ or (), strict=True):
            with suppress(ValueError):  # not yet assigned
                held.append((name, cell.cell_contents))
        return [*held, ("wrapped", getattr(value, "__wrapped__", None))]
    named: dict[str, Any] = {}
    for kind in type(value).__mro__:
        slots = kind.__dict__.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            if not name.startswith("__") and hasattr(value, name):
                named[name] = getattr(value, name)
    return list({**named, **getattr(value, "__dict__", {})}.items())


def digest_tensors(state: Mapping[str, Any]) -> str:
    """32 hex digits that name the tensors (names, types, shapes and bytes), whatever file they came from."""
    torch = sys.modules["torch"]
    digest = hashlib.blake2b(digest_size=16)
    for name in sorted(state):
        tensor = state[name].detach().cpu().contiguous()
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)};".encode())
        # NumPy knows no bfloat16, but it knows bytes.
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().data)
    return digest.hexdigest()


#: What a model can do; a model declares its abilities in a class attribute `does`.
Ability = Literal[
    "embeds", "embeds_texts", "scores_pairs", "picks", "classifies", "reads_references", "learns",
    "given_scores", "given_embeddings", "given_similarity", "given_rankings",
]  # fmt: skip

#: The methods that show an ability of a model without `does`.
_METHODS: Mapping[str, Ability] = {
    "of_texts": "reads_references", "of_embeddings": "reads_references", "of_parts": "reads_references",
    "image_probabilities": "classifies", "embed_images": "embeds", "embed_captions": "embeds_texts",
    "pick": "picks", "score_pairs": "scores_pairs", "score": "scores_pairs",
}  # fmt: skip


def abilities(model: Any) -> tuple[Ability, ...]:
    """The abilities that a model declares in `does`; where it has none, those that its methods show."""
    declared: Sequence[Ability] | None = getattr(model, "does", None)
    if declared is not None:
        return tuple(declared)
    shown = tuple(dict.fromkeys(able for method, able in _METHODS.items() if hasattr(model, method)))
    # An embedder of images and captions answers what one of captions does.
    return tuple(able for able in shown if able != "embeds_texts" or "embeds" not in shown)


class Identified(Protocol):
    """What has an identity."""

    @property
    def identity(self) -> Identity:
        """Everything that its answers depend on."""


@runtime_checkable
class Model(Identified, Protocol):
    """Once per pair: a cross-encoder, a captioner's likelihood, a text-only baseline.

    One that can do with less than both says so with a class attribute `needs`, such as `("captions",)`, and
    is asked even where the rest is not at hand.
    """

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        """One number per (images[i], captions[i]); higher means a better match."""


@runtime_checkable
class PairModel(Identified, Protocol):
    """Once per pair, as a stream of batches: a cross-encoder that decodes images while it computes.

    The engine cuts the pairs into batches, those of an image one after another; a model yields one array per
    batch, in order. `needs` is as that of `Model`.
    """

    def score_pairs(self, batches: PairBatches, *, workers: int = 0) -> BatchNumbers:
        """One number per pair of each batch, higher is better; images are decoded in `workers` processes.

        Captions longer than a model reads are cut off as its tokenizer does. Raises `DataError` naming the
        file where an image cannot be read, and where a caption's text is not at hand.
        """


def stream_pairs(model: PairModel | Model, batches: PairBatches, *, workers: int = 0) -> BatchNumbers:
    """The scores of each batch of pairs; of a model with `score` alone by one call per batch."""
    if isinstance(model, PairModel):
        return model.score_pairs(batches, workers=workers)
    return starmap(model.score, (map(list, zip(*batch, strict=True)) for batch in batches))


@runtime_checkable
class TextEmbedder(Identified, Protocol):
    """Once per caption, compared in blocks with other captions: an encoder of sentences."""

    def embed_captions(self, batches: CaptionBatches) -> BatchVectors:
        """One float32 array per batch of captions, cut off and refused as `PairModel.score_pairs` does."""

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        """How long the model finds each caption; the engine batches captions of like length."""

    def compare(self, captions: PairVectors, images: PairVectors) -> Float[ndarray, "pairs"]:
        """One float64 score per row: captions[i] with images[i], or with other captions in their place."""


@runtime_checkable
class Embedder(TextEmbedder, Protocol):
    """Once per item, compared in blocks: a dual encoder, a file of embeddings.

    The engine cuts the items into batches; an embedder yields one array per batch, in order. An embedder
    may prepare later batches while an earlier one is computed.
    """

    def embed_images(self, batches: ImageBatches, *, workers: int = 0) -> BatchVectors:
        """One float32 array per batch of images, decoded in `workers` processes.

        Raises `DataError` naming the file where an image cannot be read.
        """


@runtime_checkable
class Classifier(Identified, Protocol):
    """Once per item, and never about two items: is it natural, or was it made by a machine?

    The engine answers questions with it by the rule of two steps (`counterfoil.metrics.detection`).
    """

    def image_probabilities(self, batches: ImageBatches, *, workers: int = 0) -> BatchNumbers:
        """For each batch of images, decoded in `workers` processes, the probabilities of being synthetic."""

    def caption_probabilities(self, batches: CaptionBatches) -> BatchNumbers:
        """For each batch of captions the probabilities of being synthetic."""

    def lengths(self, captions: Sequence[Caption]) -> Sequence[int]:
        """How long the model finds each caption; the engine batches captions of like length."""


Unanswered = Literal["refuse", "wrong", "leave-out"]


@dataclass(frozen=True)
class QuestionItems:
    """The images and captions of one question: two of each of a quad; of a choice one and its candidates."""

    images: tuple[Image, ...]
    captions: tuple[Caption, ...]


@dataclass(frozen=True)
class Picks:
    """What was picked in one question: places among its items, -1 where the answer is refused or unread.

    `captions[i]` is the caption picked for image i, `images[c]` the image picked for caption c; either is
    empty where there is one.
    """

    captions: tuple[int, ...]
    images: tuple[int, ...]

    @property
    def answered(self) -> bool:
        """Whether everything that was asked has an answer."""
        return min((*self.captions, *self.images)) >= 0


@runtime_checkable
class QuestionModel(Identified, Protocol):
    """Once per question, with its items together. A model declares the ability "picks" in `does`."""

    unanswered: Unanswered

    def pick(self, questions: Sequence[QuestionItems]) -> Iterator[Picks]:
        """What is picked in each question, in order; a position says nothing of which option is right."""


@dataclass(frozen=True)
class Options:
    """Options of a model. Each loader takes those that apply to it and refuses the others."""

    #: "auto" is a GPU where there is one.
    device: str = "auto"
    precision: str = "fp32"
    prompt: str = "{}"
    #: Column of a given table; None guesses from the header.
    column: str | None = None
    #: Each row of a given table answers a question of its own, whatever ids look like, as of rated captions.
    whole_rows: bool = False
    #: What becomes of questions without an answer: "refuse", "wrong" or "leave-out".
    unanswered: str = "refuse"
    seed: int = 0
    #: An npz file with the ids of the images and captions that a given similarity is of.
    ids: Path | None = None
    #: Of a caption metric: the model behind it, named as any model (`metric:clip-s` needs one).
    backbone: str = ""
    #: Settings that differ from the default, {"protocol": "retrieval"}.
    settings: Mapping[str, str] = field(default_factory=dict)
    #: The key of an endpoint. It is sent to that endpoint alone, and never shown or written.
    api_key: str = field(default="", repr=False)


DEFAULT = Options()


def reject_unused_options(model: str, options: Options, *concerning: str) -> None:
    """Raise `InputError` where `options` asks for what `model` has no use for; seed and device may stand."""
    for option in fields(options):
        value = getattr(options, option.name)
        if value != getattr(DEFAULT, option.name) and option.name not in (*concerning, "seed", "device"):
            raise InputError(f"has no use for the option '{option.name}'", where=model, given=value)


#: Loads a model; it travels to other processes by pickle.
Source = Callable[[], Any]

_SOURCES: dict[int, Source] = {}


def remember_source(model: Any, source: Source) -> None:
    """Note that `source` gives a model like this one, of the same identity."""
    with suppress(TypeError):  # no weak reference to it: it travels as it is
        weakref.finalize(model, _SOURCES.pop, id(model), None)
        _SOURCES[id(model)] = source


def source_of(model: Any) -> Source | None:
    """What loads a model like this one; None where it was not loaded by its name."""
    return _SOURCES.get(id(model))


def check_template(template: str, what: str, *, where: str, allowed: str) -> str:
    """The template; raises `InputError` where it has no place, or several, for the caption."""
    if template.count("{}") != 1:
        what = f"{what} needs one {{}} for the caption"
        raise InputError(what, where=where, given=template or "(empty)", allowed=allowed)
    return template


def prompt_of(options: Options, *, where: str) -> str:
    """The prompt template; raises as `check_template`."""
    return check_template(options.prompt, "the prompt", where=where, allowed="a photo of {}")


def text_of(caption: Caption) -> str:
    """The caption's text; raises `DataError` where it is not at hand."""
    if caption.text is None:
        hint = "give the captions with --data, or measure from given scores"
        raise DataError(f"caption '{caption.id}' is not at hand", hint=hint)
    return caption.text


def version_of(library: str) -> str:
    """The version of a library as installed; "" where it is not."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return ""


def filled(template: str, text: str) -> str:
    """The template with a text in its place, whatever the text holds."""
    before, _, after = template.partition("{}")
    return before + text + after


def prompted(identity: Identity, captions: Sequence[Caption]) -> list[str]:
    """The captions within the prompt; raises as `text_of`."""
    return [filled(identity.prompt, text_of(caption)) for caption in captions]


def cut_off(
    identity: Identity, captions: Sequence[Caption], left_out: Callable[[Sequence[str]], Sequence[int]]
) -> int:
    """How many captions, within the prompt, are longer than the model reads; no model runs for none."""
    return sum(left > 0 for left in left_out(prompted(identity, captions))) if len(captions) else 0


def truncated(model: Any, captions: Sequence[Caption]) -> int:
    """How many captions a model cuts off; 0 where it cannot tell."""
    count = getattr(model, "over_limit", None)
    return 0 if count is None else int(count(captions))


def cosines(captions: PairVectors, images: PairVectors) -> Float[ndarray, "pairs"]:
    """The cosine of captions[i] with images[i], unit vectors both, summed in float64; in [-1, 1]."""
    return np.einsum("ij,ij->i", captions.astype(np.float64), images.astype(np.float64))


class ComparedByCosine:
    """What embedders of unit vectors share."""

    def compare(self, captions: PairVectors, images: PairVectors) -> Float[ndarray, "pairs"]:
        """The cosine of captions[i] with images[i] (or other captions in their place), in [-1, 1]."""
        return cosines(captions, images)


@dataclass(frozen=True, eq=False)
class OfText:
    """A pair scores a number of its caption alone: how many words it has, as in PAC-S's length baseline."""

    does = ("scores_pairs",)
    needs = ("captions",)

    identity: Identity

    def score(self, images: Sequence[Image], captions: Sequence[Caption]) -> Float[ndarray, "pairs"]:
        return np.fromiter(map(self.number, map(text_of, captions)), dtype=np.float64, count=len(captions))

    def number(self, text: str) -> float:
        return len(text.split())
