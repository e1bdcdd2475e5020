"""Caption metrics of texts: BLEU, ROUGE-L, CIDEr, METEOR, SPICE, and how long a caption is."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int64
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.inputs.files import digest_file
from counterfoil.metrics.captions import cider, ngrams, ptb
from counterfoil.models.base import Identity, Options, reject_unused_options
from counterfoil.models.captions import java
from counterfoil.models.captions.corpora import documents
from counterfoil.models.captions.registry import entry, read

#: Candidates, and the references of each, in words with blanks between them.
Texts = tuple[str, ...]
Lists = tuple[tuple[str, ...], ...]
#: Rows whose references are counted, one of each image; None where every row is.
Documents = Int64[ndarray, "documents"] | None
Items = Callable[[Texts, Lists, Documents], Float[ndarray, "n"]]
Whole = Callable[[Texts, Lists], float] | None


@dataclass(frozen=True)
class Sums:
    """What a number of a whole load is made of: (rows, k) that add up, and the number that sums make."""

    counted: Callable[[Texts, Lists], ndarray]
    value: Callable[[ndarray], ndarray]


@dataclass(frozen=True, eq=False)
class TextMeasure:
    """A metric of texts: `items` gives a number per row of words, `whole` one for all (else the mean)."""

    does = ("reads_references",)

    identity: Identity
    needs: tuple[str, ...]
    tokens: str
    items: Items
    whole: Whole = None
    sums: "Sums | None" = None

    def of_texts(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        documents: Int64[ndarray, "documents"] | None = None,
    ) -> Float[ndarray, "n"]:
        # A copy: the metric keeps the original for the next call.
        return np.array(self.items(*self._words(candidates, references), documents))

    def of_corpus(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> float:
        if not candidates:
            return float("nan")
        words = self._words(candidates, references)
        return float(np.mean(self.items(*words, None)) if self.whole is None else self.whole(*words))

    def counted(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> ndarray | None:
        """(rows, k) what adds up to the number of the whole load (`sums.value`); None where nothing does."""
        return None if self.sums is None else self.sums.counted(*self._words(candidates, references))

    def _words(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> tuple[Texts, Lists]:
        if "references" not in self.needs:
            return cut(tuple(candidates), self.tokens), ()
        name, counts = self.identity.name, (len(references), len(candidates))
        if counts[0] != counts[1]:
            problem = "not as many lists of references as candidates"
            raise InputError(problem, where=name, given=counts[0], allowed=str(counts[1]))
        for i, texts in enumerate(references, 1):
            if not texts:
                where = f"{name}, candidate {i}"
                hint = "leave such candidates out, or take a metric that needs none"
                raise InputError("no references", where=where, given=candidates[i - 1], hint=hint)
        return _cut_all(tuple(candidates), tuple(map(tuple, references)), self.tokens)


def cut(texts: Texts, tokens: str) -> Texts:
    """Captions as words with blanks between them, white space collapsed first as in CLIPScore's code.

    >>> cut(("A dog,  a cat.",), "ptb"), cut(("A dog,  a cat.",), "blanks")
    (('a dog a cat',), ('A dog, a cat.',))
    """
    plain = [" ".join(text.split()) for text in texts]
    return tuple(ptb.tokenize_all(plain)) if tokens == "ptb" else tuple(plain)


# Several metrics are asked of one load, one after the other; what they share is done once.


@lru_cache(maxsize=1)
def _cut_all(candidates: Texts, references: Lists, tokens: str) -> tuple[Texts, Lists]:
    words = cut((*candidates, *(text for texts in references for text in texts)), tokens)
    starts = accumulate(map(len, references), initial=len(candidates))
    return words[: len(candidates)], tuple(words[start:stop] for start, stop in pairwise(starts))


_load = lru_cache(maxsize=1)(ngrams.load)
_meteor_of = lru_cache(maxsize=1)(java.meteor)


@lru_cache(maxsize=1)
def _bleu_of(candidates: Texts, references: Lists, length: ngrams.Length) -> ngrams.Bleu:
    return ngrams.bleu(_load(candidates, references), length=length)


def load(name: str, options: Options) -> TextMeasure:
    """The metric called `name` ("cider"), as `options.settings` has it (see `registry.Settings`).

    >>> load("bleu-1", Options()).of_texts(["A dog sleeps."], [["a dog", "the dog runs"]]).round(4)
    array([0.6667])
    >>> load("length", Options()).of_texts(["A dog runs.", "Two dogs!"], []).tolist()
    [3.0, 2.0]
    """
    where = f"metric:{name}"
    reject_unused_options(where, options, "settings")
    settings = read(options.settings, name)
    metric_of = partial(_measure, name, settings.tokens)
    if name == "length":
        return metric_of(lambda candidates, *_: np.array([len(text.split()) for text in candidates], float))
    if name == "rouge-l":
        return metric_of(lambda *words: ngrams.rouge_l(_load(*words[:2])))
    if name == "meteor":
        java.check_meteor()
        program, whole = "METEOR 1.5, -l en -norm", lambda *words: _meteor_of(*words).corpus
        return metric_of(lambda *words: _meteor_of(*words[:2]).items, whole=whole, program=program)
    if name == "spice":
        models, program = Path(settings.models) if settings.models else None, "SPICE 1.0, CoreNLP 3.6.0"
        java.spice_command(models)
        return metric_of(lambda *words: java.spice(*words[:2], models=models), program=program)
    if name.startswith("bleu"):
        return _bleu(metric_of, int(name.removeprefix("bleu-")) - 1, settings.length)
    source, frequencies, counted = settings.df, None, "references"
    if source != "references":
        corpus = documents(Path(source), where=f"{where}, df", allowed=["references"])
        words = _cut_all((), tuple(map(tuple, corpus)), settings.tokens)[1]
        frequencies, counted = cider.document_frequencies(words), digest_file(source)
    score = partial(cider.cider, frequencies=frequencies, variant=settings.variant)

    def items(candidates: Texts, references: Lists, documents: Documents) -> Float[ndarray, "n"]:
        return score(_load(candidates, references), documents=documents)

    return metric_of(items, variant=settings.variant, df=counted)


def _measure(
    name: str, tokens: str, items: Items, whole: Whole = None, sums: Sums | None = None, **options: Any
) -> TextMeasure:
    identity = Identity(f"metric:{name}", options={"tokens": tokens, **options})
    return TextMeasure(identity, entry(name).reads, tokens, items, whole, sums)


def _bleu(metric_of: Callable[..., TextMeasure], order: int, length: ngrams.Length) -> TextMeasure:
    return metric_of(
        lambda *words: _bleu_of(*words[:2], length).items[:, order],
        whole=lambda *words: float(_bleu_of(*words, length).corpus[order]),
        sums=Sums(
            lambda *words: ngrams.bleu_counts(_load(*words), length=length),
            lambda sums: ngrams.bleu_of_sums(sums)[..., order],
        ),
        length=length,
    )
