"""Caption metrics of texts: BLEU, ROUGE-L, CIDEr, METEOR, SPICE, and how long a caption is."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import Any, get_args

import numpy as np
from jaxtyping import Float, Int64
from numpy import ndarray

from counterfoil.errors import InputError
from counterfoil.metrics.captions import cider, ngrams, ptb
from counterfoil.models.base import Identity, Options, ScorerSettings, reject_unused_options
from counterfoil.models.captions import java
from counterfoil.models.captions.corpora import documents
from counterfoil.models.captions.registry import entry
from counterfoil.store import digest_file

#: Candidates, and the references of each, in words with blanks between them.
Texts = tuple[str, ...]
Lists = tuple[tuple[str, ...], ...]
#: Rows whose references are counted, one of each image; None where every row is.
Documents = Int64[ndarray, "documents"] | None
#: What gives a number per row.
Items = Callable[[Texts, Lists, Documents], Float[ndarray, "n"]]

#: What may be set of every metric here: the words of the COCO tool kit (lower case, no punctuation, as all
#: published numbers have it), or what stands between blanks, of captions that were cut into words before.
TOKENS = ("ptb", "blanks")


@dataclass(frozen=True)
class Sums:
    """What a number of a whole load is made of: (rows, k) that add up, and the number that sums make."""

    counted: Callable[[Texts, Lists], ndarray]
    value: Callable[[ndarray], ndarray]


@dataclass(frozen=True, eq=False)
class TextMeasure:
    """A metric of texts. `items` gives a number per row of words, `whole` one for all; None is their mean.

    `sums` are what the whole is made of, where that adds up over rows.
    """

    does = ("reads_references",)

    identity: Identity
    needs: tuple[str, ...]
    tokens: str
    items: Items
    whole: Callable[[Texts, Lists], float] | None = None
    sums: "Sums | None" = None

    def of_texts(
        self,
        candidates: Sequence[str],
        references: Sequence[Sequence[str]],
        documents: Int64[ndarray, "documents"] | None = None,
    ) -> Float[ndarray, "n"]:
        """One number per row. Raises `InputError` for a row without references where it reads them.

        CIDEr counts the references of the rows `documents`, or of all.
        """
        # A copy: the metric keeps the original for the next call.
        return np.array(self.items(*self._words(candidates, references), documents))

    def of_corpus(self, candidates: Sequence[str], references: Sequence[Sequence[str]]) -> float:
        """One number for the load: of BLEU and METEOR that of all rows as one text, else the mean over rows.

        NaN for no rows.
        """
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
        for at, own in enumerate(references, 1):
            if not own:
                where = f"{name}, candidate {at}"
                hint = "leave such candidates out, or take a metric that needs none"
                raise InputError("no references", where=where, given=candidates[at - 1], hint=hint)
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
    words = cut((*candidates, *(text for own in references for text in own)), tokens)
    starts = accumulate(map(len, references), initial=len(candidates))
    return words[: len(candidates)], tuple(words[start:stop] for start, stop in pairwise(starts))


_load = lru_cache(maxsize=1)(ngrams.load)
_meteor_of = lru_cache(maxsize=1)(java.meteor)


@lru_cache(maxsize=1)
def _bleu_of(candidates: Texts, references: Lists, length: ngrams.Length) -> ngrams.Bleu:
    return ngrams.bleu_of_load(_load(candidates, references), length=length)


def load(name: str, options: Options) -> TextMeasure:
    """The metric called `name` ("cider"), as `options.settings` has it.

    All can be set `tokens` ("ptb" or "blanks"). Of BLEU, `length` is the reference length that a candidate is
    held against: "closest" (as in the COCO tool kit), "shortest" or "average". Of CIDEr and CIDEr-D, `df`
    says where document frequencies are counted: "references" (those of the load) or a JSON file (see
    `counterfoil.models.captions.corpora`); of CIDEr alone, `variant` "plain" is the formula that tables do
    not mean (see `counterfoil.metrics.captions.cider`). Of SPICE, `models` is the folder of its parser. The
    identity names all that decides a number, and of a file its digest.

    `length` counts words: PAC-S (Table 4) prefers "the longer caption" and does not say longer in what.

    Raises `UnknownNameError` for another setting, `InputError` for a value that is not allowed,
    `DataError` for a file that cannot be read, and what METEOR and SPICE raise of things that are missing.

    >>> load("bleu-1", Options()).of_texts(["A dog sleeps."], [["a dog", "the dog runs"]]).round(4)
    array([0.6667])
    >>> load("length", Options()).of_texts(["A dog runs.", "Two dogs!"], []).tolist()
    [3.0, 2.0]
    """
    where = f"metric:{name}"
    reject_unused_options(where, options, "settings")
    settings = ScorerSettings(where, options.settings)
    settings.only("tokens", *_TAKES[name])
    tokens = settings.one_of("tokens", TOKENS)

    def metric_of(
        items: Items,
        *,
        whole: Callable[[Texts, Lists], float] | None = None,
        sums: Sums | None = None,
        **decided: Any,
    ) -> TextMeasure:
        # All that decides its numbers is in its identity.
        identity = Identity(where, options={"tokens": tokens, **decided})
        return TextMeasure(identity, entry(name).reads, tokens, items, whole, sums)

    if name == "length":
        return metric_of(lambda candidates, *_: np.array([len(text.split()) for text in candidates], float))
    if name == "rouge-l":
        return metric_of(
            lambda candidates, references, _: ngrams.rouge_of_load(_load(candidates, references))
        )
    if name == "meteor":
        java.check_meteor()
        return metric_of(
            lambda candidates, references, _: _meteor_of(candidates, references).items,
            whole=lambda candidates, references: _meteor_of(candidates, references).corpus,
            program="METEOR 1.5, -l en -norm",
        )
    if name == "spice":
        models = Path(folder) if (folder := settings.get("models")) else None
        java.spice_command(models)
        return metric_of(
            lambda candidates, references, _: java.spice(candidates, references, models=models),
            program="SPICE 1.0, CoreNLP 3.6.0",
        )
    if name.startswith("bleu"):
        order = int(name.removeprefix("bleu-")) - 1
        length: Any = settings.one_of("length", get_args(ngrams.Length))
        return metric_of(
            lambda candidates, references, _: _bleu_of(candidates, references, length).items[:, order],
            whole=lambda candidates, references: float(
                _bleu_of(candidates, references, length).corpus[order]
            ),
            sums=Sums(
                lambda candidates, references: ngrams.bleu_counts(
                    _load(candidates, references), length=length
                ),
                lambda sums: ngrams.bleu_of_sums(sums)[..., order],
            ),
            length=length,
        )
    variant: Any = settings.one_of("variant", get_args(cider.Variant))
    source, frequencies, counted = settings.get("df", "references"), None, "references"
    if source != "references":
        corpus = documents(Path(source), where=f"{where}, df", allowed=["references"])
        words = _cut_all((), tuple(map(tuple, corpus)), tokens)[1]
        frequencies, counted = cider.document_frequencies(words), digest_file(source)
    return metric_of(
        lambda candidates, references, documents: cider.of_load(
            _load(candidates, references), frequencies=frequencies, variant=variant, documents=documents
        ),
        variant=variant,
        df=counted,
    )


#: The settings that each metric takes besides `tokens`.
_TAKES: Mapping[str, tuple[str, ...]] = {
    **{f"bleu-{order}": ("length",) for order in (1, 2, 3, 4)},
    "rouge-l": (),
    "cider": ("df", "variant"),
    "cider-d": ("df",),
    "meteor": (),
    "spice": ("models",),
    "length": (),
}
