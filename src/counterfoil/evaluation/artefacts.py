"""Artefacts: words that say which caption is right, without the image."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterfoil.data.contrasts import Contrasts
from counterfoil.stats.tests import tarone_holm


@dataclass(frozen=True)
class Artefact:
    """A word whose presence says which caption is right.

    `right` and `wrong` count the questions whose right, and whose wrong caption alone has it, `for_right` and
    `for_wrong` the clusters in which more of the one are; `p` is of the clusters, two-sided, `p_adjusted`
    with all words that were tested. `examples` are questions, at most three.
    """

    word: str
    right: int
    wrong: int
    for_right: int
    for_wrong: int
    p: float
    p_adjusted: float
    examples: tuple[int, ...]

    @property
    def precision(self) -> float:
        """The share of the questions that the word answers, by the side on which it is more often."""
        return max(self.right, self.wrong) / (self.right + self.wrong)


#: Names of what is tested beside words.
LONGER = "(more words)"


def artefacts(contrasts: Contrasts) -> tuple[Artefact, ...]:
    """Every word that only one of a question's two captions has somewhere, by p.

    A sign test of clusters: where right and wrong captions could be exchanged, each cluster has a word more
    often on the right side or on the wrong one by a fair coin. That one caption has more words is tested with
    them. p-values are adjusted by Holm among the words that could be significant at all (Tarone), so that the
    chance of naming any word where there is no artefact is at most the level. None of rated captions.

    Of several wrong captions one is drawn (`Contrasts.pairs`). With all k of them there is no fair coin: a
    word that stands in one of the k + 1 captions is among the wrong ones k times in k + 1, artefact or not.

    Source: Tarone, A modified Bonferroni method for discrete data, 1990; Holm 1979.
    """
    from scipy.special import bdtr

    found: dict[str, list[tuple[int, int]]] = {}
    for right, wrong in contrasts.pairs.tolist():
        question = int(contrasts.question[right])
        first, second = contrasts.tokens[right], contrasts.tokens[wrong]
        for word in set(first) ^ set(second):
            found.setdefault(word, []).append((question, 1 if word in first else -1))
        if len(first) != len(second):
            found.setdefault(LONGER, []).append((question, 1 if len(first) > len(second) else -1))
    names = sorted(found)
    signs = np.zeros((len(names), 2), dtype=np.int64)
    for at, name in enumerate(names):
        of_cluster: dict[int, int] = {}
        for question, sign in found[name]:
            cluster = int(contrasts.clusters[question])
            of_cluster[cluster] = of_cluster.get(cluster, 0) + sign
        values = np.array(list(of_cluster.values()))
        signs[at] = (values > 0).sum(), (values < 0).sum()
    n = signs.sum(axis=1)
    p = np.minimum(1.0, 2 * bdtr(signs.min(axis=1), n, 0.5)) if len(names) else np.empty(0)
    adjusted = tarone_holm(p, np.minimum(1.0, 2.0 ** (1 - n)))
    rows = [
        Artefact(
            name,
            sum(sign > 0 for _, sign in found[name]),
            sum(sign < 0 for _, sign in found[name]),
            int(signs[at, 0]),
            int(signs[at, 1]),
            float(p[at]),
            float(adjusted[at]),
            _examples(found[name], contrasts),
        )
        for at, name in enumerate(names)
    ]
    rows.sort(key=lambda each: (each.p_adjusted, each.p, each.word))
    return tuple(rows)


def _examples(signs: Sequence[tuple[int, int]], contrasts: Contrasts) -> tuple[int, ...]:
    """Questions on the side where the word is more often, of different clusters, the first ones."""
    side = 1 if sum(sign for _, sign in signs) > 0 else -1
    seen: dict[int, int] = {}
    for question, sign in sorted(signs):
        if sign == side:
            seen.setdefault(int(contrasts.clusters[question]), question)
    return tuple(list(seen.values())[:3])
