"""How much each token of a caption weighs: by how rare it is, in a corpus or in the rows at hand."""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import numpy as np
from jaxtyping import Int64
from numpy import ndarray

from counterfoil.metrics.captions.token_matching import Frequencies, Phrase
from counterfoil.scorers.captions.corpora import documents
from counterfoil.scorers.captions.protocols import LocalEmbedder, Tokens
from counterfoil.store import digest_file

#: What the setting `idf` may be beside a file.
SOURCES = ("references", "candidates", "none")


@dataclass(frozen=True)
class Corpus:
    """A file of captions whose tokens are counted, and a digest of what is in it."""

    captions: tuple[str, ...]
    digest: str
    _counted: dict[str, Frequencies] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def of(cls, idf: str, where: str) -> "Corpus | None":
        """The corpus that the setting `idf` names, None where it names none.

        Raises `DataError` for a file that is not there, or holds no captions.
        """
        if idf in SOURCES:
            return None
        own = documents(Path(idf), where=f"{where}, idf", allowed=SOURCES)
        return cls(tuple(itertools.chain.from_iterable(own)), digest_file(idf))

    def frequencies(self, local: LocalEmbedder) -> Frequencies:
        """Those of the corpus, as the model's tokenizer reads it; counted once."""
        key = local.identity.key
        if key not in self._counted:
            # Every embedder of tokens here has it; a corpus is too long to be embedded for its ids.
            self._counted[key] = Frequencies.of(cast(Any, local).token_ids(self.captions))
        return self._counted[key]


def frequencies(
    idf: str,
    corpus: Corpus | None,
    local: LocalEmbedder,
    candidates: Sequence[Tokens],
    references: Sequence[Sequence[Tokens]] | None,
    documents: Int64[ndarray, "documents"] | None = None,
) -> Frequencies | None:
    """The document frequencies that the setting `idf` asks for, None where every token counts alike.

    Of candidates every one counts. References are those of the rows `documents`, or of all rows, and then a
    reference of several candidates counts as often. Raises `DataError` where there are no captions to count.
    """
    if corpus is not None:
        return corpus.frequencies(local)
    if idf == "none" or not len(candidates):
        return None
    if idf == "candidates":
        return Frequencies.of([each.ids for each in candidates])
    groups = references or ()
    counted = groups if documents is None else [groups[row] for row in documents]
    return Frequencies.of([each.ids for group in counted for each in group])


class Phrases:
    """Captions with their weights, each made once however often it is asked for.

    Without frequencies every token weighs 1. Where marks do not count, those of begin and end weigh 0.
    """

    def __init__(self, frequencies: Frequencies | None, *, marks: bool) -> None:
        self._frequencies = frequencies
        self._marks = marks
        self._made: dict[int, tuple[Tokens, Phrase]] = {}

    def __call__(self, tokens: Tokens) -> Phrase:
        """The phrase of these tokens."""
        known = self._made.get(id(tokens))
        if known is None:
            # The tokens are kept too, so that no others can get their id.
            known = self._made[id(tokens)] = tokens, self._phrase(tokens)
        return known[1]

    def _phrase(self, tokens: Tokens) -> Phrase:
        if self._frequencies is None:
            weights = np.ones(len(tokens.used))
        else:
            weights = self._frequencies.weights(tokens.used)
        if not self._marks:
            weights[[0, -1]] = 0
        return Phrase(tokens.vectors, weights, tokens.whole)
