"""Cross-encoders: a `Matcher` says what is computed once per image, and what per pair."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Int64
from numpy import ndarray
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.errors import ModelError
from counterfoil.models.base import BatchNumbers, Identity, PairBatches, cut_off, prompted
from counterfoil.models.hf_loading import SAMPLE, HfTokens, padded_ids
from counterfoil.models.runtime import model_errors

State = tuple[Tensor, ...]


@dataclass(frozen=True, eq=False)
class TokenizedPairs:
    """Pair k is of the image `image_of[k]` and of the caption `caption_of[k]`, a row of `ids` and `mask`."""

    ids: Tensor
    mask: Tensor
    caption_of: Tensor
    image_of: Tensor


@dataclass(frozen=True, eq=False)
class Matcher(ABC):
    """A model of image-text matching on its device, and how it is asked."""

    kind: ClassVar[str]
    unused: ClassVar[str] = ""

    model: Any
    device: Any
    dtype: torch.dtype
    where: str

    @abstractmethod
    def images(self, inputs: Sequence[Any]) -> Sequence[State]:
        """What is computed once per image, of images as they were read."""

    @abstractmethod
    def score(self, images: Sequence[State], pairs: TokenizedPairs) -> Tensor:
        """(pairs,) numbers; higher means a better match."""


def probability(logits: Tensor, match: int = 1) -> Tensor:
    """The probability in float32 of the class that means "the caption is of the image", of two."""
    return logits.float().softmax(dim=-1)[:, match]


def padded(images: Sequence[State], pairs: TokenizedPairs) -> tuple[Tensor, Tensor]:
    """The states and the mask of each pair's image, padded to the most patches or regions."""
    states, masks = (pad_sequence(list(parts), batch_first=True) for parts in zip(*images, strict=True))
    return states[pairs.image_of], masks[pairs.image_of]


def attention_bias(mask: Tensor, dtype: torch.dtype) -> Tensor:
    """(rows, 1, 1, length): 0 for what is there and the lowest number for padding."""
    return (1 - mask[:, None, None, :].to(dtype)) * torch.finfo(dtype).min


#: Batches of images to the inputs of each batch, read ahead in `workers` processes.
Read = Callable[..., Generator[list[Any], None, None]]


@dataclass(frozen=True, eq=False)
class CrossEncoder:
    """A `PairModel` around a `Matcher`; the image tower runs once for each run of captions of one image."""

    does = ("scores_pairs",)

    identity: Identity
    matcher: Matcher
    tokens: HfTokens
    read: Read
    needs: tuple[str, ...] = ("images", "captions")
    #: Facts for a run's manifest that change scores by rounding at most: versions and device.
    provenance: Mapping[str, Any] = field(default_factory=dict)
    #: The heatmaps that the model has in it (`counterfoil.models.saliency`); None where it has none.
    heats: Any = None

    def score_pairs(self, batches: PairBatches, *, workers: int = 0) -> BatchNumbers:
        new = new_images(batches)
        states: dict[int, State] = {}
        with closing(self.read(new, workers=workers)) as stream:
            for batch, images, inputs in zip(batches, new, stream, strict=True):
                # The mode must not outlast a step: the caller may compute gradients in between.
                with torch.inference_mode():
                    fresh = self.matcher.images(inputs) if images else ()
                    by_image = {**states, **dict(zip(map(id, images), fresh, strict=True))}
                    states = {id(image): by_image[id(image)] for image, _ in batch}
                    slots, all_states = {key: slot for slot, key in enumerate(states)}, list(states.values())
                    rows = self.tokens.ids(prompted(self.identity, [caption for _, caption in batch]))
                    scores = np.empty(len(batch), dtype=np.float32)
                    for group in length_groups([len(row) for row in rows]):
                        images_of = [slots[id(batch[pair][0])] for pair in group]
                        used, image_of = np.unique(images_of, return_inverse=True)
                        pairs = self._tokenized([rows[pair] for pair in group], image_of)
                        group_scores = self.matcher.score([all_states[slot] for slot in used], pairs)
                        scores[group] = group_scores.float().cpu().numpy()
                yield scores

    def over_limit(self, captions: Sequence[Caption]) -> int:
        return cut_off(self.identity, captions, self.tokens.left_out)

    def _tokenized(self, rows: Sequence[Sequence[int]], image_of: Int64[ndarray, "pairs"]) -> TokenizedPairs:
        sides = padded_ids(rows, self.tokens.tokenizer.pad_token_id, "cpu")
        both, caption_of = np.unique(torch.stack(sides, dim=1).numpy(), axis=0, return_inverse=True)
        arrays = both[:, 0], both[:, 1], caption_of.reshape(-1), image_of
        return TokenizedPairs(*(torch.from_numpy(array).to(self.matcher.device) for array in arrays))

    def try_out(self, inputs: Any) -> None:
        """Score one image, read already, with a sample caption; raises `ModelError` where that fails."""
        what, where = "the model cannot score an image and a caption", self.identity.name
        with model_errors(what, where=where), torch.inference_mode():
            states = self.matcher.images([inputs])
            pairs = self._tokenized(self.tokens.ids([SAMPLE]), np.zeros(1, dtype=np.int64))
            scores = self.matcher.score(states, pairs)
        if scores.shape != (1,):
            given = tuple(scores.shape)
            raise ModelError("the model gives no single number for a pair", where=where, given=given)


def new_images(batches: PairBatches) -> list[list[Image]]:
    """For each batch its images that the batch before it does not hold, each once.

    >>> one, two, caption = Image("1"), Image("2"), Caption("0", "a cat")
    >>> found = new_images([[(one, caption), (one, caption)], [(one, caption), (two, caption)]])
    >>> [[image.id for image in batch] for batch in found]
    [['1'], ['2']]
    """
    fresh: list[list[Image]] = []
    before: dict[int, Image] = {}
    for batch in batches:
        here = {id(image): image for image, _ in batch}
        fresh.append([image for key, image in here.items() if key not in before])
        before = here
    return fresh


def length_groups(lengths: Sequence[int]) -> list[Int64[ndarray, "some"]]:
    """Positions of captions in groups, shortest first; the longest is at most twice the shortest and 8.

    >>> [group.tolist() for group in length_groups([9, 40, 12, 8])]
    [[3, 0, 2], [1]]
    """
    order = np.argsort(lengths, kind="stable")
    groups, begin = [], 0
    for i in range(1, len(order) + 1):
        if i == len(order) or lengths[order[i]] > 2 * lengths[order[begin]] + 8:
            groups.append(order[begin:i])
            begin = i
    return groups


def match_logit(matcher: Any, head: nn.Module, inputs: Any, ids: Sequence[int]) -> Tensor:
    """The logit of a match that `head` gives of a pair, the mean where it gives several."""
    with torch.no_grad():
        (computed,) = matcher.images([inputs])
    state = tuple(part.requires_grad_() if part.is_floating_point() else part for part in computed)
    logits: list[Tensor] = []
    with head.register_forward_hook(lambda _, args, output: logits.append(output)):
        matcher.score([state], one_pair(matcher, ids))
    return logits[0][..., getattr(matcher, "match", 1)].mean()


def one_pair(matcher: Any, ids: Sequence[int]) -> TokenizedPairs:
    text = torch.tensor([list(ids)], device=matcher.device)
    first = torch.zeros(1, dtype=torch.long, device=matcher.device)
    return TokenizedPairs(text, torch.ones_like(text), first, first)
