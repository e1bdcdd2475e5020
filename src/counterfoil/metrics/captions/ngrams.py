"""Candidates with their references, and the n-grams of every distinct text counted once.

What BLEU, ROUGE-L and CIDEr share. Texts come tokenised (`metrics.ptb`): tokens parted by blanks. A load
of captions names few distinct texts many times, so everything that belongs to a text alone is computed for
distinct texts, and what belongs to a candidate and a reference for all pairs at once.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

import numpy as np
from jaxtyping import Int
from numpy import ndarray
from scipy import sparse

from counterfoil.errors import InputError

#: n-grams of one to so many tokens, as BLEU and CIDEr have it.
ORDERS = 4
#: Candidates whose n-grams are compared in one go; bounds the memory, changes no value.
BLOCK = 2048


@dataclass(frozen=True, eq=False)
class Grams:
    """How often each n-gram (n = 1 to 4) stands in each text.

    `counts` is a sparse (texts, n-grams) matrix of whole numbers with one empty row at the end, `orders`
    (n-grams,) is n - 1, `lengths` (texts + 1,) the number of tokens. `words` are the distinct tokens;
    n-gram g is n-gram `stems[g]` followed by token `last[g]`, single tokens having the stem -1.
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
        places = rows * ORDERS + self.orders[matrix.indices]
        return np.bincount(places, values, minlength=matrix.shape[0] * ORDERS).reshape(-1, ORDERS)


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
    places, here, offset = np.arange(len(tokens)), tokens, 0
    found = [(owners, tokens)]
    for order in range(1, ORDERS):
        # An n-gram is one of n - 1 tokens and the token after it, where the text goes on so far.
        long = places + order < len(tokens)
        long[long] = owners[places[long]] == owners[places[long] + order]
        places, here = places[long], here[long]
        keys, which = np.unique(here * len(numbers) + tokens[places + order], return_inverse=True)
        width = offset + len(stems[-1])
        stems.append(keys // max(len(numbers), 1))
        last.append(keys % max(len(numbers), 1))
        here, offset = which.reshape(-1) + width, width
        found.append((owners[places], here))
    rows, columns = (np.concatenate(part) for part in zip(*found, strict=True))
    shape = (len(lengths), sum(map(len, stems)))
    counts = sparse.coo_matrix((np.ones(len(rows), np.int32), (rows, columns)), shape).tocsr()
    counts.sort_indices()
    return Grams(
        counts=counts,
        orders=np.repeat(np.arange(ORDERS), [len(part) for part in stems]),
        lengths=lengths,
        words=tuple(numbers),
        stems=np.concatenate(stems),
        last=np.concatenate(last),
    )


@dataclass(frozen=True, eq=False)
class Load:
    """Candidates and their references as positions in `texts`, where no text stands twice.

    `candidates` is (items,); the references of item i are `references[starts[i]:starts[i + 1]]`, one or more.
    """

    texts: tuple[str, ...]
    candidates: Int[ndarray, "items"]
    references: Int[ndarray, "pairs"]
    starts: Int[ndarray, "items_and_1"]

    def __len__(self) -> int:
        return len(self.candidates)

    @cached_property
    def grams(self) -> Grams:
        """The n-grams of the texts."""
        return count(self.texts)

    @cached_property
    def against(self) -> Int[ndarray, "pairs"]:
        """The candidate of each reference."""
        return np.repeat(self.candidates, np.diff(self.starts))

    def best(self, values: ndarray) -> ndarray:
        """(items,) the highest of the values of an item's pairs."""
        return np.asarray(np.maximum.reduceat(values, self.starts[:-1]))

    def blocks(self) -> Iterator[slice]:
        """Some items at a time."""
        return (slice(i, min(i + BLOCK, len(self))) for i in range(0, len(self), BLOCK))


def load(candidates: Sequence[str], references: Sequence[Sequence[str]]) -> Load:
    """Tokenised candidates and the tokenised references of each.

    Raises `InputError` for no candidates, for a different number of candidates and lists of references, and
    naming the first candidate without a reference.

    >>> pairs = load(["a dog", "a cat"], [["a dog", "dogs"], ["a dog"]])
    >>> pairs.texts, pairs.candidates.tolist(), pairs.references.tolist(), pairs.starts.tolist()
    (('a dog', 'a cat', 'dogs'), [0, 1], [0, 2, 0], [0, 2, 3])
    """
    if not len(candidates) or len(candidates) != len(references):
        raise InputError(
            "candidates and references do not fit together",
            given=f"{len(candidates)} candidates, {len(references)} lists of references",
            allowed="a list of references for each of at least 1 candidate",
        )
    for row, listed in enumerate(references):
        if isinstance(listed, str):
            raise InputError(
                "references are a list, also where there is one", where=f"row {row}", given=repr(listed)
            )
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
