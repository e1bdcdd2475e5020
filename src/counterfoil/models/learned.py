"""Blind scorers that learn from the other questions of a benchmark, which share no item with that answered.

`unigram` knows word frequencies, `bag-of-words` which words right captions have, and `learned` also which
neighbours words have, how long captions are and where they differ.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.benchmarks.caption_files import read_texts
from counterfoil.benchmarks.contrasts import Contrasts
from counterfoil.benchmarks.records import words
from counterfoil.inputs.files import digest_value
from counterfoil.models.base import Identity, OfText, Options, reject_unused_options

#: The weight of the squared length of the coefficients of a fit.
RIDGE = 1.0
LEAST = 2


def log_frequencies(contrasts: Contrasts) -> Float[ndarray, "rows"]:
    """The mean log-frequency of each caption's words among the distinct captions of the other folds."""
    scores = np.zeros(len(contrasts.texts))
    for tested, learned in contrasts.splits():
        distinct = {" ".join(contrasts.tokens[row]): row for row in np.flatnonzero(learned)}
        table = WordFrequencies.of(contrasts.tokens[row] for row in distinct.values())
        scores[tested] = [table.mean_log(contrasts.tokens[row]) for row in np.flatnonzero(tested)]
    return scores


@dataclass(frozen=True, eq=False)
class WordFrequencies:
    counts: Mapping[str, int]
    total: int

    @classmethod
    def of(cls, captions: Iterable[Sequence[str]]) -> "WordFrequencies":
        counts = Counter(chain.from_iterable(captions))
        return cls(counts, counts.total())

    def mean_log(self, tokens: Sequence[str]) -> float:
        """The mean over words of log((count + 1) / (total + different words + 1))."""
        whole = self.total + len(self.counts) + 1
        # Captions of the same words are equal to the last bit, in whatever order they have them.
        seen = sorted(self.counts.get(word, 0) + 1 for word in tokens) or [1]
        return float(np.mean(np.log(seen)) - np.log(whole))


#: Numbers beside n-grams: of words, of letters, of words that only this caption has, and where these stand.
SHAPE = ("words", "letters", "own words", "place of own words")


def shapes(contrasts: Contrasts) -> Float[ndarray, "rows 4"]:
    """`SHAPE` of each row; places are from 0, the first word, to 1, the last, and 1/2 without own words."""
    numbers = np.zeros((len(contrasts.texts), len(SHAPE)))
    of_question: dict[int, list[int]] = {}
    for row, question in enumerate(contrasts.question.tolist()):
        of_question.setdefault(question, []).append(row)
    for rows in of_question.values():
        for row in rows:
            tokens = contrasts.tokens[row]
            others = {word for other in rows if other != row for word in contrasts.tokens[other]}
            places = [place for place, word in enumerate(tokens) if word not in others and len(rows) > 1]
            place = float(np.mean(places)) / max(1, len(tokens) - 1) if places else 0.5
            numbers[row] = len(tokens), len(contrasts.texts[row]), len(places), place
    return numbers


def learned_scores(contrasts: Contrasts, *, ngrams: int, shape: bool) -> Float[ndarray, "rows"]:
    """A score of each caption by a linear model that was fitted to the questions of the other folds.

    Contrasts are fitted by logistic regression of "the first is right" on the difference of the features of a
    right and a wrong caption, without an intercept; ratings by least squares; both with `RIDGE`. Features are
    the presence of words (`ngrams` 1), of words and neighbours (2), and with `shape` the numbers of `shapes`,
    in units of their standard deviation. Where nothing is left to learn from, scores are 0.
    """
    from scipy.sparse import csr_matrix, hstack

    named = []
    for tokens in contrasts.tokens:
        neighbours = pairwise(["^", *tokens, "$"]) if ngrams > 1 else ()
        named.append(sorted({*tokens, *map(" ".join, neighbours)}))
    names = {name: at for at, name in enumerate(sorted({name for row in named for name in row}))}
    columns = np.array([names[name] for row in named for name in row], dtype=np.int64)
    starts = np.cumsum([0, *map(len, named)])
    table = csr_matrix((np.ones(len(columns)), columns, starts), shape=(len(named), len(names)))
    if shape:
        numbers = shapes(contrasts)
        spread = numbers.std(axis=0)
        table = hstack([table, csr_matrix(numbers / np.where(spread > 0, spread, 1))]).tocsr()
    # The order of the texts, and not of the questions, decides how sums are rounded.
    order = sorted(range(len(named)), key=lambda row: (contrasts.keys[row], contrasts.truth[row]))
    pairs, scores = contrasts.pairs, np.zeros(len(named))
    for tested, learned in contrasts.splits():
        if contrasts.rated:
            rows = [row for row in order if learned[row]]
            if rows:
                weights, middle = _least_squares(table[rows], contrasts.truth[rows])
                scores[tested] = table[tested] @ weights + middle
            continue
        chosen = pairs[learned[pairs].all(axis=1)]
        if len(chosen):
            scores[tested] = table[tested] @ _logistic(table[chosen[:, 0]] - table[chosen[:, 1]])
    return scores


def _logistic(differences: Any) -> Float[ndarray, "features"]:
    """The coefficients that make every row's product large, with `RIDGE`."""
    from scipy.optimize import minimize
    from scipy.special import expit

    columns = np.flatnonzero(np.asarray((differences != 0).sum(axis=0)).reshape(-1) >= LEAST)
    inside = differences[:, columns].tocsr()
    across = inside.T.tocsr()

    def loss(weights: ndarray) -> tuple[float, ndarray]:
        product = inside @ weights
        value = np.logaddexp(0, -product).sum() + RIDGE / 2 * weights @ weights
        return float(value), RIDGE * weights - across @ expit(-product)

    fitted = minimize(loss, np.zeros(len(columns)), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    weights = np.zeros(differences.shape[1])
    weights[columns] = fitted.x
    return weights


def _least_squares(table: Any, values: Float[ndarray, "rows"]) -> tuple[Float[ndarray, "features"], float]:
    """Coefficients and the mean, with `RIDGE` on features less their means."""
    from scipy.sparse.linalg import LinearOperator, lsqr

    means = np.asarray(table.mean(axis=0)).reshape(-1)
    centred = LinearOperator(
        table.shape,
        matvec=lambda x: table @ x.reshape(-1) - means @ x.reshape(-1),
        rmatvec=lambda y: table.T @ y.reshape(-1) - means * y.sum(),
    )
    middle = float(values.mean())
    weights: ndarray = lsqr(centred, values - middle, damp=RIDGE**0.5, atol=1e-10, btol=1e-10)[0]
    return weights, middle - float(means @ weights)


@dataclass(frozen=True, eq=False)
class LearnedScorer:
    """A scorer whose answer to a question is learned from the others; `answer` is given all of them."""

    does = ("learns",)
    needs = ("captions",)

    identity: Identity
    kind: str

    def answer(self, contrasts: Contrasts) -> Float[ndarray, "rows"]:
        if self.kind == "unigram":
            return log_frequencies(contrasts)
        more = self.kind == "learned"
        return learned_scores(contrasts, ngrams=2 if more else 1, shape=more)


FITS = ("unigram", "bag-of-words", "learned")


def load(name: str, options: Options) -> "LearnedScorer | Unigram":
    """`unigram`, `bag-of-words` or `learned`; `unigram` of a file where `--set captions=FILE` names one."""
    where = f"blind:{name}"
    reject_unused_options(where, options, "settings")
    path = options.settings.get("captions")
    if not path:
        return LearnedScorer(Identity(where, revision="1"), name)
    table = WordFrequencies.of(map(words, read_texts(Path(path))))
    return Unigram(Identity(where, weights=digest_value(table.counts), revision="1"), table)


@dataclass(frozen=True, eq=False)
class Unigram(OfText):
    """The mean log-frequency of a caption's words in a file of captions."""

    table: WordFrequencies

    def number(self, text: str) -> float:
        return self.table.mean_log(words(text))
