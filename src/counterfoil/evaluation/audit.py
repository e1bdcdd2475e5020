"""An audit of a benchmark: how far its questions can be answered without looking, and why."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.contrasts import Contrasts
from counterfoil.evaluation.duplicates import Leakage, Repeated
from counterfoil.evaluation.evaluate import of
from counterfoil.evaluation.intervals import LEVEL, OF_FOLDS, one_sided
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.metrics.measures import signed
from counterfoil.stats import Reals
from counterfoil.stats.intervals import cluster_interval
from counterfoil.stats.tests import holm, tarone_holm

#: The group of questions whose right and wrong captions have the same words.
SAME_WORDS = "same words"


@dataclass(frozen=True)
class Artefact:
    """A word whose presence says which caption is right. `right` and `wrong` count questions, `for_right`
    and `for_wrong` clusters; `p` is two-sided over clusters, `examples` at most three questions.
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
    """Every word that only one of a question's two captions has, by the p of a sign test of clusters.
    p-values are adjusted by Holm among the words that could be significant at all (Tarone). Of several wrong
    captions one is drawn (`Contrasts.pairs`): with all of them there is no fair coin.

    Source: Tarone, A modified Bonferroni method for discrete data, 1990; Holm 1979.
    """
    from scipy.special import bdtr

    occurrences: dict[str, list[tuple[int, int]]] = {}
    for right, wrong in contrasts.pairs.tolist():
        question = int(contrasts.question[right])
        first, second = contrasts.tokens[right], contrasts.tokens[wrong]
        for word in set(first) ^ set(second):
            occurrences.setdefault(word, []).append((question, 1 if word in first else -1))
        if len(first) != len(second):
            occurrences.setdefault(LONGER, []).append((question, 1 if len(first) > len(second) else -1))
    names = sorted(occurrences)
    signs = np.zeros((len(names), 2), dtype=np.int64)
    for i, name in enumerate(names):
        of_cluster: dict[int, int] = {}
        for question, sign in occurrences[name]:
            cluster = int(contrasts.clusters[question])
            of_cluster[cluster] = of_cluster.get(cluster, 0) + sign
        values = np.array(list(of_cluster.values()))
        signs[i] = (values > 0).sum(), (values < 0).sum()
    n = signs.sum(axis=1)
    p = np.minimum(1.0, 2 * bdtr(signs.min(axis=1), n, 0.5)) if len(names) else np.empty(0)
    adjusted = tarone_holm(p, np.minimum(1.0, 2.0 ** (1 - n)))
    rows = []
    for i, name in enumerate(names):
        right, wrong = (sum(sign == side for _, sign in occurrences[name]) for side in (1, -1))
        # Questions on the side where the word is more often, of different clusters, the first ones.
        firsts: dict[int, int] = {}
        for question, sign in sorted(occurrences[name]):
            if sign == (1 if right > wrong else -1):
                firsts.setdefault(int(contrasts.clusters[question]), question)
        up, down = signs[i].tolist()
        examples = tuple(list(firsts.values())[:3])
        rows.append(Artefact(name, right, wrong, up, down, float(p[i]), float(adjusted[i]), examples))
    return tuple(sorted(rows, key=lambda artefact: (artefact.p_adjusted, artefact.p, artefact.word)))


@dataclass(frozen=True, eq=False)
class BenchmarkAudit:
    """What an audit found; `told_apart` says how often blind models put the right caption first."""

    benchmark: Benchmark
    blind: tuple[Result, ...]
    told_apart: Mapping[str, Estimate]
    artefacts: tuple[Artefact, ...]
    same_words: int
    repeated: tuple[Repeated, ...]
    leakage: tuple[Leakage, ...]
    notes: tuple[str, ...]
    level: float = LEVEL

    @property
    def named(self) -> tuple[Artefact, ...]:
        """The words that give answers away: those whose adjusted p is at most the level."""
        return tuple(artefact for artefact in self.artefacts if artefact.p_adjusted <= self.level)

    @property
    def above_chance(self) -> list[tuple[str, str]]:
        """The models that see no image and are above chance, each with the main measure, farthest first."""
        return above_chance(self.blind, *of(self.benchmark).main_measures(self.benchmark))

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values; of words that are no artefacts the number alone."""
        ids = self.benchmark.questions.ids
        words = [{**asdict(artefact), "precision": artefact.precision} for artefact in self.named]
        for word in words:
            word["examples"] = [ids[i] for i in word["examples"]]
        leakage = map(asdict, self.leakage)
        return {
            "benchmark": self.benchmark.name,
            "questions": len(self.benchmark),
            "digest": self.benchmark.digest,
            "blind": [result.to_json() for result in self.blind],
            "above_chance": [{"model": name, "measure": measure} for name, measure in self.above_chance],
            "told_apart": {name: asdict(estimate) for name, estimate in self.told_apart.items()},
            "words": {"level": self.level, "tested": len(self.artefacts), "artefacts": words},
            "same_words": self.same_words,
            "duplicates": [asdict(repeated) for repeated in self.repeated],
            "leakage": [{name.rstrip("_"): value for name, value in leak.items()} for leak in leakage],
            "notes": list(self.notes),
        }


def with_same_words(benchmark: Benchmark, contrasts: Contrasts) -> Benchmark:
    """The benchmark with its questions of the same words as a group, where it has some and no such group."""
    same = contrasts.same_words
    groupings = benchmark.questions.groupings
    if not same.any() or any(SAME_WORDS in labels for labels in groupings.values()):
        return benchmark
    labels = tuple(SAME_WORDS if is_same else "" for is_same in same.tolist())
    questions = replace(benchmark.questions, groupings={**groupings, "same words": labels})
    return replace(benchmark, questions=questions)


def told_apart(contrasts: Contrasts, scores: Reals, benchmark: Benchmark) -> Estimate:
    """The share of questions whose first caption scores higher than the second, a tie being one half."""
    first, second = contrasts.pairs.T
    values = (scores[first] > scores[second]) + 0.5 * (scores[first] == scores[second])
    questions = contrasts.question[first]
    dependence = benchmark.dependence.take(questions)
    low, high = cluster_interval(values[:, None], dependence)
    return Estimate(float(values.mean()), float(low[0]), float(high[0]), len(values), 0.5)


#: Models that learn from the answers to other questions.
_LEARN = ("blind:bag-of-words", "blind:learned")


def above_chance(results: Sequence[Result], *measures: str, above: bool = True) -> list[tuple[str, str]]:
    """The models and measures above chance (or below it), farthest first, by one-sided tests with Holm's
    correction.

    Answers of models that learn are not independent of each other, and count as less (`OF_FOLDS`).
    """
    pairs = [(result, name) for name in measures for result in results if name in result]
    p = []
    for result, name in pairs:
        wider = OF_FOLDS if result.model in _LEARN else 1.0
        p.append(one_sided(result[name], above=above, correlation=signed(name), wider=wider))
    sure = holm(np.array(p)) < LEVEL
    named = [(result, name) for (result, name), is_sure in zip(pairs, sure, strict=True) if is_sure]
    named.sort(key=lambda pair: -abs((pair[0][pair[1]].chance or 0) - pair[0][pair[1]].value))
    return [(result.model, name) for result, name in named]
