"""BLEU and ROUGE-L of captions as the COCO tool kit computes them, and the n-grams that they and CIDEr count.

Texts come tokenised (`metrics.captions.ptb`). What belongs to a text alone is computed once for distinct
texts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float, Int
from numpy import ndarray
from scipy import sparse

from counterfoil.errors import InputError

#: The longest n-grams, in tokens, as BLEU and CIDEr have it.
ORDERS = 4
#: Candidates whose n-grams are compared in one go; bounds the memory, changes no value.
BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Grams:
    """How often each n-gram (n = 1 to 4) stands in each text.

    `counts` is a sparse (texts, n-grams) matrix with one empty row at the end, `orders` is n - 1, `lengths`
    the number of tokens. `words` are the distinct tokens; n-gram g is n-gram `stems[g]` (-1 for none)
    followed by token `last[g]`.
    """

    counts: sparse.csr_matrix
    orders: Int[ndarray, "grams"]
    lengths: Int[ndarray, "rows"]
    words: tuple[str, ...]
    stems: Int[ndarray, "grams"]
    last: Int[ndarray, "grams"]

    def names(self) -> list[tuple[str, ...]]:
        """The tokens of each n-gram.

        >>> count(["a dog"]).names()
        [('a',), ('dog',), ('a', 'dog')]
        """
        named: list[tuple[str, ...]] = []
        for stem, last in zip(self.stems.tolist(), self.last.tolist(), strict=True):
            named.append((*(named[stem] if stem >= 0 else ()), self.words[last]))
        return named

    def by_order(self, matrix: sparse.csr_matrix, weights: ndarray | None = None) -> ndarray:
        """(rows, 4) sums of a matrix's entries over the n-grams of each n, each n-gram with its weight."""
        rows = np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))
        values = matrix.data if weights is None else matrix.data * weights[matrix.indices]
        positions = rows * ORDERS + self.orders[matrix.indices]
        return np.bincount(positions, values, minlength=matrix.shape[0] * ORDERS).reshape(-1, ORDERS)


def count(texts: Sequence[str]) -> Grams:
    """All n-grams of the texts, with tokens parted at white space of any kind.

    >>> grams = count(["a dog", "a dog a dog"])
    >>> grams.counts.toarray().tolist()
    [[1, 1, 1, 0, 0, 0, 0], [2, 2, 2, 1, 1, 1, 1], [0, 0, 0, 0, 0, 0, 0]]
    """
    split = [text.split() for text in texts]
    lengths = np.array([*map(len, split), 0])
    numbers = {word: number for number, word in enumerate(dict.fromkeys(chain.from_iterable(split)))}
    tokens = np.fromiter(map(numbers.__getitem__, chain.from_iterable(split)), np.int64, int(lengths.sum()))
    owners = np.repeat(np.arange(len(lengths), dtype=np.int32), lengths)

    stems, last = [np.full(len(numbers), -1)], [np.arange(len(numbers))]
    positions, here, offset = np.arange(len(tokens)), tokens, 0
    entries = [(owners, tokens)]
    for order in range(1, ORDERS):
        # An n-gram is one of n - 1 tokens and the token after it, where the text goes on so far.
        long = positions + order < len(tokens)
        long[long] = owners[positions[long]] == owners[positions[long] + order]
        positions, here = positions[long], here[long]
        keys, which = np.unique(here * len(numbers) + tokens[positions + order], return_inverse=True)
        width = offset + len(stems[-1])
        stems.append(keys // max(len(numbers), 1))
        last.append(keys % max(len(numbers), 1))
        here, offset = which.reshape(-1) + width, width
        entries.append((owners[positions], here))
    rows, columns = (np.concatenate(part) for part in zip(*entries, strict=True))
    shape = (len(lengths), sum(map(len, stems)))
    counts = sparse.coo_matrix((np.ones(len(rows), np.int32), (rows, columns)), shape).tocsr()
    counts.sort_indices()
    orders = np.repeat(np.arange(ORDERS), [len(part) for part in stems])
    return Grams(counts, orders, lengths, tuple(numbers), np.concatenate(stems), np.concatenate(last))


@dataclass(frozen=True, eq=False)
class Load:
    """Candidates and their references as positions in `texts`, where no text stands twice.

    The references of item i are `references[starts[i]:starts[i + 1]]`, one or more.
    """

    texts: tuple[str, ...]
    candidates: Int[ndarray, "items"]
    references: Int[ndarray, "pairs"]
    starts: Int[ndarray, "items_and_1"]

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def grams(self) -> Grams:
        return count(self.texts)

    @cached_property
    def against(self) -> Int[ndarray, "pairs"]:
        """The candidate of each reference."""
        return np.repeat(self.candidates, np.diff(self.starts))

    def best(self, values: ndarray) -> ndarray:
        """(items,) the highest of the values of an item's pairs."""
        return np.asarray(np.maximum.reduceat(values, self.starts[:-1]))

    def blocks(self) -> Iterator[slice]:
        return (slice(i, min(i + BLOCK, len(self))) for i in range(0, len(self), BLOCK))


def load(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Load:
    """Tokenised candidates and the tokenised references of each.

    Raises `InputError` for no candidates, other numbers of lists of references, and a candidate without one.

    >>> pairs = load(["a dog", "a cat"], [["a dog", "dogs"], ["a dog"]])
    >>> pairs.texts, pairs.candidates.tolist(), pairs.references.tolist(), pairs.starts.tolist()
    (('a dog', 'a cat', 'dogs'), [0, 1], [0, 2, 0], [0, 2, 3])
    """
    if not len(candidates) or len(candidates) != len(references):
        given = f"{len(candidates)} candidates, {len(references)} lists of references"
        allowed = "a list of references for each of at least 1 candidate"
        raise InputError("candidates and references do not fit together", given=given, allowed=allowed)
    for row, listed in enumerate(references):
        if isinstance(listed, str):
            problem = "references are a list, also where there is one"
            raise InputError(problem, where=f"row {row}", given=repr(listed))
        if not len(listed):
            raise InputError("a candidate has no reference", where=f"row {row}", given=repr(candidates[row]))
    texts = dict.fromkeys(chain(candidates, chain.from_iterable(references)))
    place = {text: number for number, text in enumerate(texts)}
    return Load(
        texts=tuple(texts),
        candidates=np.array([place[text] for text in candidates]),
        references=np.array([place[text] for listed in references for text in listed]),
        starts=np.concatenate([[0], np.cumsum([len(listed) for listed in references])]),
    )


#: The length a candidate is held against: the nearest (of two the shorter), the shortest, or the mean of all.
Length = Literal["closest", "shortest", "average"]

# The tool kit's guards against division by zero; with them a precision of 0 does not make BLEU exactly 0.
_SMALL, _TINY = 1e-9, 1e-15


@dataclass(frozen=True, eq=False)
class Bleu:
    """BLEU-1 to BLEU-4 of each item, (items, 4), and of all items as one corpus, (4,)."""

    items: Float[ndarray, "items 4"]
    corpus: Float[ndarray, "4"]


def bleu(load: Load, *, length: Length = "closest") -> Bleu:
    """BLEU-1 to BLEU-4 of tokenised candidates, each against its references, from 0 to 1.

        BLEU-N = BP * (p_1 * ... * p_N)^(1/N),  BP = min(1, exp(1 - r/c))

    p_n is the share of the candidate's n-grams that a reference has too, counted at most as often as in the
    reference that has it most; c and r are the lengths of the candidate and of its references (`Length`). Of
    a corpus, n-grams and lengths are summed over items first.

    As in the tool kit p_n is (matches + 1e-15) / (n-grams + 1e-9): a caption that equals its reference falls
    short of 1 by about 1e-9, and fewer than N tokens get next to nothing. A candidate without tokens gets 0.
    Raises `InputError` as `load` does. Source: K. Papineni et al., BLEU, 2002, section 2; the tool kit's
    `bleu_scorer.py`.

    >>> result = bleu(load(["a dog runs on grass"], [["a dog runs on the grass", "dogs run"]]))
    >>> result.items.round(4).tolist()
    [[0.8187, 0.709, 0.6498, 0.5789]]
    """
    sums = bleu_counts(load, length=length)
    return Bleu(items=bleu_of_sums(sums), corpus=bleu_of_sums(sums.sum(axis=0)))


def bleu_counts(load: Load, *, length: Length = "closest") -> Float[ndarray, "items 10"]:
    """What adds up to BLEU: of each item its matches and n-grams by order, and both lengths."""
    if length not in get_args(Length):
        raise InputError("unknown length of references", given=length, allowed=get_args(Length))
    candidate_lengths, lengths = load.grams.lengths[load.candidates], load.grams.lengths[load.references]
    if length == "shortest":
        held = np.minimum.reduceat(lengths, load.starts[:-1])
    elif length == "average":
        held = np.add.reduceat(lengths, load.starts[:-1]) / np.diff(load.starts)
    else:
        # Nearest first, then shortest, as one number whose remainder is the length.
        scale = int(lengths.max()) + 1
        distance = np.abs(lengths - load.grams.lengths[load.against])
        held = np.minimum.reduceat(distance * scale + lengths, load.starts[:-1]) % scale
    # How many of each candidate's n-grams are in a reference, none more often than there.
    counts, empty = load.grams.counts, len(load.texts)
    matches = np.empty((len(load), ORDERS))
    for block in load.blocks():
        starts, ends = load.starts[:-1][block], load.starts[1:][block]
        most = counts[load.references[starts]]
        for nth in range(1, int((ends - starts).max())):
            positions = load.references[np.minimum(starts + nth, ends - 1)]
            most = most.maximum(counts[np.where(starts + nth < ends, positions, empty)])
        matches[block] = load.grams.by_order(counts[load.candidates[block]].minimum(most))
    guesses = np.maximum(candidate_lengths[:, None] - np.arange(ORDERS), 0)
    both = np.stack([candidate_lengths, held], axis=1)
    return np.concatenate([matches, guesses, both], axis=1).astype(np.float64)


def bleu_of_sums(sums: Float[ndarray, "... 10"]) -> Float[ndarray, "... 4"]:
    """BLEU-1 to BLEU-4 of sums of what `counted` counts."""
    matches, guesses = sums[..., :ORDERS], sums[..., ORDERS : 2 * ORDERS]
    candidate_length, held = sums[..., 2 * ORDERS], sums[..., 2 * ORDERS + 1]
    precisions = (matches + _TINY) / (guesses + _SMALL)
    means = np.cumprod(precisions, axis=-1) ** (1 / np.arange(1, ORDERS + 1))
    ratio = (candidate_length + _TINY) / (held + _SMALL)
    penalty = np.exp(np.minimum(1 - 1 / ratio, 0))
    return np.asarray(means * penalty[..., None])


#: How much more recall counts than precision, as the tool kit has it.
BETA = 1.2


def rouge_l(load: Load, *, beta: float = BETA) -> Float[ndarray, "items"]:
    """(items,) ROUGE-L of tokenised candidates, each against its references, from 0 to 1.

        P = max_j lcs(c, s_j) / |c|,  R = max_j lcs(c, s_j) / |s_j|,  F = (1 + b^2) P R / (R + b^2 P)

    with lcs the length of the longest common subsequence of tokens; best precision and recall may come from
    different references. 0 where no token is shared; a candidate and a reference without tokens give 1, as in
    the tool kit. Raises `InputError` as `load` does. Source: C.-Y. Lin, ROUGE, 2004, section 3.1; the tool
    kit's `rouge.py`.

    >>> rouge_l(load(["a dog runs"], [["a big dog", "the dog runs fast"]])).round(4).tolist()
    [0.6667]
    """
    numbers: dict[str, int] = {}
    # One blank parts tokens here, where BLEU and CIDEr take any white space: so does the tool kit.
    texts = [[numbers.setdefault(token, len(numbers)) for token in text.split(" ")] for text in load.texts]
    lengths = np.array([len(text) for text in texts])
    common = _common(texts, load.against, load.references)
    precision = load.best(common / lengths[load.against])
    recall = load.best(common / lengths[load.references])
    with np.errstate(invalid="ignore"):
        score = (1 + beta**2) * precision * recall / (recall + beta**2 * precision)
    return np.where((precision > 0) & (recall > 0), score, 0.0)


def _common(
    texts: Sequence[Sequence[int]], left: Int[ndarray, "pairs"], right: Int[ndarray, "pairs"]
) -> Int[ndarray, "pairs"]:
    """The length of the longest common subsequence of each pair of texts; each two texts are compared once.

    A row of the table changes from column to column by 0 or 1: with these steps as bits of one number a row
    follows from the one above (M. Crochemore et al., A fast and practical bit-vector algorithm for the
    longest common subsequence problem, 2001).
    """
    low, high = np.minimum(left, right), np.maximum(left, right)
    keys, which = np.unique(low * len(texts) + high, return_inverse=True)
    lengths = np.empty(len(keys), dtype=np.int64)
    current, size, full = -1, 0, 0
    positions: dict[int, int] = {}
    for row, (one, other) in enumerate(
        zip((keys // len(texts)).tolist(), (keys % len(texts)).tolist(), strict=True)
    ):
        if one != current:
            current, size, positions = one, len(texts[one]), {}
            for place, token in enumerate(texts[one]):
                positions[token] = positions.get(token, 0) | 1 << place
            full = (1 << size) - 1
        steps = full
        for token in texts[other]:
            position = positions.get(token)
            if position is not None:
                carried = steps & position
                steps = (steps + carried) | (steps - carried)
        lengths[row] = size - (steps & full).bit_count()
    return np.asarray(lengths[which.reshape(-1)])
