"""Log-probabilities of tokens after pictures; each picture is read once, its keys and values are repeated."""

import inspect
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int64
from numpy import ndarray
from torch import Tensor

from counterfoil.benchmarks.records import Caption
from counterfoil.models.base import BatchNumbers, Identity, PairBatches, text_of
from counterfoil.models.cross_encoder import new_images
from counterfoil.models.hf_loading import padded_ids
from counterfoil.models.images import UNTOUCHED, prepared

#: Positions that go through a model at a time, by kind of device, and logits that are held at a time.
POSITIONS = {"cpu": 512, "cuda": 65536}
LOGITS = 1 << 26


@dataclass(frozen=True, eq=False)
class TextRow:
    """Ids after a picture, and those whose log-probability is wanted at the last `len(wanted)` places."""

    ids: tuple[int, ...]
    wanted: Int64[ndarray, "positions choices"]

    @property
    def prompt(self) -> int:
        return len(self.ids) - len(self.wanted) + 1


@dataclass(eq=False)
class Seen:
    """A picture as its model's processor gives it: its inputs, and how many positions it takes."""

    size: int
    inputs: Mapping[str, Any]
    head: tuple[int, ...] = ()
    kinds: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    #: What the vision tower gave, and the prefix, once they are computed.
    features: Any = None
    prefix: "Prefix | None" = None


@dataclass(frozen=True, eq=False)
class Prefix:
    """What a model keeps of a picture and the prompt after it; the same whatever else is asked."""

    cache: Any
    length: int
    #: (vocabulary,): logits of the first id after the prefix; None where the decoder reads no id.
    last: Tensor | None = None
    more: Any = None


def cache_argument(model: Any, cache: Any) -> dict[str, Any]:
    """Keys and values before a text, under the name that the model takes: since transformers 5.24 `cache`."""
    takes_cache = "cache" in inspect.signature(model.forward).parameters
    return {"cache" if takes_cache else "past_key_values": cache}


def cache_of(output: Any) -> Any:
    cache = getattr(output, "cache", None)
    return output.past_key_values if cache is None else cache


@dataclass(frozen=True, eq=False, kw_only=True)
class Decoder(ABC):
    """A model that gives logits of the next id after a picture and some ids."""

    model: Any
    device: Any
    dtype: Any
    vocabulary: int
    #: The ids that `begin` reads; rows that do not start with them are read whole.
    read: tuple[int, ...] = ()
    #: Whether `whole` takes several pictures, and whether `begin` and `go_on` can be asked at all.
    together: bool = True
    shares: bool = True
    #: Whether `whole` can be asked; else even a single text is read after its prefix.
    wholes: bool = True

    @abstractmethod
    def see(self, picture: ndarray) -> Seen:
        """A picture made ready; no tower runs."""

    @abstractmethod
    def begin(self, seen: Seen) -> Prefix:
        """The prefix of a picture."""

    @abstractmethod
    def go_on(self, prefixes: Sequence[Prefix], ids: Tensor, lengths: Tensor, keep: Tensor) -> Tensor:
        """(rows, kept, vocabulary) logits after `ids` (rows, longest), each after its prefix."""

    def whole(self, seen: Sequence[Seen], rows: Sequence[TextRow], keep: Tensor) -> Tensor:
        """The same of one row per picture, each read from its beginning; `keep` counts from there."""
        raise NotImplementedError(f"{type(self).__name__} reads texts after their prefix alone")


@dataclass(frozen=True, eq=False)
class GenerativeModel:
    """A model of pairs by the log-probabilities of the row that is made of a caption's text."""

    does = ("scores_pairs",)

    identity: Identity
    decoder: Decoder
    row: Callable[[str], TextRow]
    #: The scores of captions, from their texts and the log-probabilities of their rows.
    values: Callable[[Sequence[str], Sequence[ndarray]], Sequence[float]]
    too_long: Callable[[str], bool]
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def score_pairs(self, batches: PairBatches, *, workers: int = 0) -> BatchNumbers:
        fresh, seen = new_images(batches), dict[int, Seen]()
        with closing(prepared(fresh, UNTOUCHED, workers=workers)) as pictures:
            for batch, new, arrays in zip(batches, fresh, pictures, strict=True):
                seen |= dict(zip(map(id, new), map(self.decoder.see, arrays), strict=True))
                # The next batch may go on with a picture of this one; the others are done.
                seen = {id(image): seen[id(image)] for image, _ in batch}
                texts = [text_of(caption) for _, caption in batch]
                rows, owners = [self.row(text) for text in texts], [seen[id(image)] for image, _ in batch]
                # What is shared depends on the batch alone: a run that goes on from a cache does the same.
                counts = Counter(id(image) for image, _ in batch)
                shared = [counts[id(image)] > 1 for image, _ in batch]
                parts = log_probabilities(self.decoder, owners, rows, shared)
                yield np.array(self.values(texts, parts), dtype=np.float64)

    def over_limit(self, captions: Sequence[Caption]) -> int:
        return sum(self.too_long(text_of(caption)) for caption in captions)


def log_probabilities(
    decoder: Decoder, seen: Sequence[Seen], rows: Sequence[TextRow], shared: Sequence[bool]
) -> list[Float[ndarray, "positions choices"]]:
    """Log-probabilities of what each row wants after its picture; pictures not `shared` are read whole."""
    values: list[ndarray] = [np.empty(0)] * len(rows)
    read = len(decoder.read)
    after: list[int] = []
    whole: list[int] = []
    for i, (row, many) in enumerate(zip(rows, shared, strict=True)):
        fits = row.ids[:read] == decoder.read and row.prompt >= read
        (after if decoder.shares and fits and (many or not decoder.wholes) else whole).append(i)
    with torch.inference_mode():
        for i in after:
            if seen[i].prefix is None:
                seen[i].prefix = decoder.begin(seen[i])
        prefixes = {i: prefix for i in after if (prefix := seen[i].prefix) is not None}
        for length in sorted({prefix.length for prefix in prefixes.values()}):
            alike = {i: prefix for i, prefix in prefixes.items() if prefix.length == length}
            _follow(decoder, alike, rows, values)
        lengths = [picture.size + len(row.ids) for picture, row in zip(seen, rows, strict=True)]
        for chunk in _chunks(decoder, whole, rows, lengths.__getitem__, alone=not decoder.together):
            keep = torch.tensor(_wanted([lengths[i] for i in chunk], chunk, rows), device=decoder.device)
            logits = decoder.whole([seen[i] for i in chunk], [rows[i] for i in chunk], keep)
            _gather(logits, chunk, rows, values)
    return values


def _follow(
    decoder: Decoder, prefixes: Mapping[int, Prefix], rows: Sequence[TextRow], values: list[ndarray]
) -> None:
    read = len(decoder.read)
    rest: dict[int, TextRow] = {}
    for i, prefix in prefixes.items():
        row = rows[i]
        wanted = row.wanted
        if row.prompt == read and prefix.last is not None:
            # The prefix ends with the prompt: it has the first position's logits already.
            values[i] = _chosen(prefix.last[None, None], wanted[None, :1])[0]
            wanted = wanted[1:]
        if len(wanted):
            rest[i] = TextRow(row.ids[read:], wanted)
    longest_prefix = max(prefix.length for prefix in prefixes.values())
    parts = [np.empty(0)] * len(rows)
    for chunk in _chunks(decoder, list(rest), rest, lambda i: len(rest[i].ids), extra=longest_prefix):
        lengths = [len(rest[i].ids) for i in chunk]
        ids, mask = padded_ids([rest[i].ids for i in chunk], 0, decoder.device)
        keep = torch.tensor(_wanted(lengths, chunk, rest), device=decoder.device)
        _gather(decoder.go_on([prefixes[i] for i in chunk], ids, mask.sum(dim=1), keep), chunk, rest, parts)
    for i in rest:
        values[i] = np.concatenate([part for part in (values[i], parts[i]) if part.size])


def _chunks(
    decoder: Decoder,
    which: Sequence[int],
    rows: Any,
    length: Callable[[int], int],
    *,
    extra: int = 0,
    alone: bool = False,
) -> Iterator[list[int]]:
    """Rows to go through the model together, those of like length first; `beside` positions are repeated."""
    chunk: list[int] = []
    together = POSITIONS.get(decoder.device.type, POSITIONS["cpu"])
    for i in sorted(which, key=lambda i: (length(i), len(rows[i].wanted))):
        longest, positions = length(i), max([len(rows[row].wanted) for row in (*chunk, i)])
        full = (
            (len(chunk) + 1) * longest > together
            or (len(chunk) + 1) * (longest + extra) > 8 * together
            or (len(chunk) + 1) * positions * decoder.vocabulary > LOGITS
        )
        if chunk and (full or alone):
            yield chunk
            chunk = []
        chunk.append(i)
    if chunk:
        yield chunk


def _wanted(lengths: Sequence[int], chunk: Sequence[int], rows: Any) -> ndarray:
    """(rows, kept) positions whose logits are wanted; rows that want fewer repeat their last."""
    most = max(len(rows[i].wanted) for i in chunk)
    first = [length - len(rows[i].wanted) for length, i in zip(lengths, chunk, strict=True)]
    return np.minimum(np.add.outer(first, np.arange(most)), np.subtract(lengths, 1)[:, None])


def _gather(logits: Tensor, chunk: Sequence[int], rows: Any, results: list[ndarray]) -> None:
    most, widest = logits.shape[1], max(rows[i].wanted.shape[1] for i in chunk)
    wanted = np.zeros((len(chunk), most, widest), dtype=np.int64)
    for line, i in enumerate(chunk):
        row_ids = rows[i].wanted
        wanted[line, : len(row_ids), : row_ids.shape[1]] = row_ids
    values = _chosen(logits, wanted)
    for line, i in enumerate(chunk):
        positions, choices = rows[i].wanted.shape
        results[i] = values[line, :positions, :choices]


def _chosen(
    logits: Tensor, wanted: Int64[ndarray, "rows kept choices"]
) -> Float[ndarray, "rows kept choices"]:
    """Log-probabilities of `wanted` in float32, whatever the precision of the model."""
    full = logits.float()
    chosen = full.gather(-1, torch.from_numpy(wanted).to(full.device)) - full.logsumexp(-1, keepdim=True)
    return chosen.cpu().numpy().astype(np.float64)
