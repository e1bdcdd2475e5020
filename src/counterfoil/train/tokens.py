"""Captions as token ids, each distinct one worked out once."""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from jaxtyping import Int
from numpy import ndarray
from torch import Tensor

from counterfoil.data.records import Caption
from counterfoil.scorers.base import text_of

#: Ids that are kept at most: a quarter of a gigabyte of them.
_KEPT = 1 << 26
#: Captions among which a short and a long one are looked for, to see how a tokenizer pads.
_SAMPLE = 4096
#: No id pads: all captions are as wide.
_FIXED = -1


class TokenTable:
    """The token ids of captions by their position, as `tokens` would give them for each batch.

    Tokenizers cut or pad a batch to its longest caption, or always to one width. Both can be put together
    from rows that were worked out before, once it is known what padding looks like; where a tokenizer does
    anything else, which the first batch of each width shows, batches are worked out anew.
    """

    def __init__(self, captions: Sequence[Caption], tokens: Callable[[Sequence[str]], Tensor]) -> None:
        self._captions = captions
        self._tokens = tokens
        self._known = np.zeros(len(captions), dtype=bool)
        self._ids: ndarray | None = None
        #: How many ids of a row are the caption's own, so that a batch must be that wide.
        self._own = np.zeros(len(captions), dtype=np.int32)
        self._padding: tuple[int, bool] | None = None
        self._keeping = True
        #: Widths of batches at which kept ids were found to be what the tokenizer says.
        self._checked: set[int] = set()

    def of(self, positions: Int[ndarray, "n"]) -> Tensor:
        """(n, length) ids of the captions at `positions`. Raises `DataError` where a text is not at hand."""
        if not self._keeping:
            return self._afresh(positions)
        new = np.unique(positions[~self._known[positions]])
        if len(new):
            self._learn(new)
        if not self._keeping or self._ids is None:
            return self._afresh(positions)
        width = int(self._own[positions].max())
        ids = torch.from_numpy(self._ids[positions, :width])
        if width not in self._checked:
            self._checked.add(width)
            afresh = self._afresh(positions)
            if not torch.equal(afresh.to(ids.dtype), ids):
                self._give_up()
                return afresh
        return ids.to(torch.int64)

    def _afresh(self, positions: ndarray) -> Tensor:
        return self._tokens([text_of(self._captions[i]) for i in positions])

    def _learn(self, new: ndarray) -> None:
        """Work out rows that were not asked for before, with one call of the tokenizer."""
        rows = self._afresh(new)
        if rows.ndim != 2 or rows.dtype not in (torch.int64, torch.int32):
            return self._give_up()
        width = rows.shape[1]
        if self._padding is None:
            self._padding = self._find_padding()
        if self._padding is None:
            return self._give_up()
        padding, ends = self._padding
        if len(self._captions) * width > _KEPT:
            return self._give_up()
        if self._ids is None:
            self._ids = np.full((len(self._captions), width), padding, dtype=np.int32)
        if width > self._ids.shape[1]:
            more = np.full((len(self._ids), width - self._ids.shape[1]), padding, dtype=np.int32)
            self._ids = np.concatenate([self._ids, more], axis=1)
        values = rows.numpy()
        self._ids[new, :width] = values
        if padding == _FIXED:
            # One width whatever the captions: all of it is theirs.
            if (self._own[self._known] != width).any():
                return self._give_up()
            self._own[new] = width
        else:
            trailing = (values[:, ::-1] != padding).argmax(axis=1)
            trailing[(values == padding).all(axis=1)] = width
            self._own[new] = width - trailing + (ends & (trailing > 0))
        self._known[new] = True
        return None

    def _find_padding(self) -> tuple[int, bool] | None:
        """The id that pads, and whether it also ends each caption (transformers' CLIP); None: unclear."""
        step = max(1, len(self._captions) // _SAMPLE)
        sample = (self._captions[i].text for i in range(0, len(self._captions), step))
        texts = [text for text in sample if text]
        if not texts:
            return None
        short, long = min(texts, key=len), max(texts, key=len)
        alone, both = self._tokens([short]), self._tokens([short, long])
        width = alone.shape[1]
        if width >= both.shape[1]:
            return _FIXED, False
        tail = both[0, width:]
        if not torch.equal(both[0, :width], alone[0]) or bool((tail != tail[0]).any()):
            return None
        return int(tail[0]), bool(alone[0, -1] == tail[0])

    def _give_up(self) -> None:
        self._keeping, self._ids = False, None
