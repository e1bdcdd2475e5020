"""Kept token ids are what the tokenizer says of each batch, whatever its way of padding."""

from collections.abc import Sequence

import numpy as np
import pytest

torch = pytest.importorskip("torch")

from counterfoil.benchmarks.records import Caption  # noqa: E402
from counterfoil.errors import DataError  # noqa: E402
from counterfoil.train.dataloaders import TokenTable  # noqa: E402

pytestmark = pytest.mark.models


def longest(texts: Sequence[str]):
    """Cut to the longest of the batch, padded with zeros."""
    rows = [[ord(letter) for letter in text] for text in texts]
    width = max(map(len, rows))
    return torch.tensor([row + [0] * (width - len(row)) for row in rows])


def ended(texts: Sequence[str]):
    """Padded with the id that also ends a text, as CLIP's tokenizer in transformers does."""
    rows = [[1, *(ord(letter) for letter in text), 2] for text in texts]
    width = max(map(len, rows))
    return torch.tensor([row + [2] * (width - len(row)) for row in rows])


def fixed(texts: Sequence[str]):
    """Twelve ids, always."""
    rows = [([ord(letter) for letter in text] + [0] * 12)[:12] for text in texts]
    return torch.tensor(rows, dtype=torch.int64)


def left(texts: Sequence[str]):
    """Padded on the left: nothing that can be put together from rows."""
    return longest([text[::-1] for text in texts]).flip(1)


def odd(texts: Sequence[str]):
    """A width in twos: right for most batches, and not cut to the longest."""
    rows = longest(texts)
    return torch.nn.functional.pad(rows, (0, rows.shape[1] % 2))


@pytest.mark.parametrize("tokens", [longest, ended, fixed, left, odd])
def test_every_batch_is_as_the_tokenizer_would_make_it(tokens) -> None:
    rng = np.random.default_rng(0)
    texts = ["".join(rng.choice(list("abcdef"), rng.integers(1, 10))) for _ in range(40)]
    known = TokenTable([Caption(str(i), text) for i, text in enumerate(texts)], tokens)
    for _ in range(30):
        positions = rng.integers(0, 40, rng.integers(1, 9))
        expected = tokens([texts[i] for i in positions])
        found = known.of(positions)
        assert found.dtype == expected.dtype
        assert torch.equal(found, expected)


@pytest.mark.parametrize("tokens", [longest, ended, fixed])
def test_each_caption_is_worked_out_once(tokens) -> None:
    texts = [c * (1 + i % 5) for i, c in enumerate("abcdefghijklmnopqrst")]
    asked: list[str] = []

    def counting(batch: Sequence[str]):
        asked.extend(batch)
        return tokens(batch)

    known = TokenTable([Caption(str(i), text) for i, text in enumerate(texts)], counting)
    # Once to get to know the captions, and once for every width to see that they are right.
    for length in range(1, 6):
        known.of(np.array([i for i in range(20) if 1 + i % 5 <= length]))
    asked.clear()
    for seed in range(20):
        known.of(np.random.default_rng(seed).permutation(20)[:7])
    assert not asked


def test_a_caption_without_text_is_named() -> None:
    known = TokenTable([Caption("a", "b"), Caption("lost")], longest)
    with pytest.raises(DataError, match="caption 'lost' is not at hand"):
        known.of(np.array([0, 1]))
