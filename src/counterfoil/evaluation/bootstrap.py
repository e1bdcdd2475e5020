"""Measures of several models and benchmarks in draws of clusters of queries that they share.

Galleries that share images (COCO, CxC, ECCV Caption) share their draws, image by image, since a lucky image
is lucky in all of them. Other benchmarks are drawn each on their own. What adds up to the measures is summed
once per cluster, so that a draw is a product of its weights and these sums. Where images and captions are
crossed, draws are of images, and each value is moved away from its centre by as much as its crossed standard
error is larger (`stats.crossed.inflation`). What a draw makes of the measures is the form's (`MeasureDraws`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np
from jaxtyping import Float
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.errors import UnknownNameError
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.forms import of
from counterfoil.evaluation.forms.draws import MeasureDraws
from counterfoil.evaluation.forms.gallery import overall
from counterfoil.evaluation.result import Run
from counterfoil.stats.sharing import Sharing

#: A correlation of fewer models says nothing: two are in the same order or not.
LEAST = 3


@dataclass(frozen=True)
class RankColumn:
    """One measure on one benchmark."""

    benchmark: str
    measure: str
    #: The benchmark as print calls it.
    title: str

    @property
    def name(self) -> str:
        """As `--measure` takes it: "eccv:mean_map_at_r"."""
        return f"{self.benchmark}:{self.measure}"


def choose(groups: Mapping[str, tuple[Run, ...]], wanted: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """The measures of each benchmark that become columns."""
    known = {
        name: tuple(dict.fromkeys(m for run in runs for m in of(run.benchmark).measures_of(run)))
        for name, runs in groups.items()
    }
    if not wanted:
        return {name: _default(runs[0].benchmark, known[name]) for name, runs in groups.items()}
    found: dict[str, list[str]] = {name: [] for name in groups}
    for pattern in wanted:
        benchmark, _, measure = pattern.rpartition(":")
        hits = [
            (name, own)
            for name in groups
            if fnmatchcase(name, benchmark or "*")
            for own in known[name]
            if fnmatchcase(own, measure) or own == overall(known[name], measure)
        ]
        if not hits:
            asked = [name for name in groups if fnmatchcase(name, benchmark or "*")]
            if not asked:
                raise UnknownNameError("benchmark", benchmark, groups, where=f"measure '{pattern}'")
            raise UnknownNameError(
                "measure", measure, {own for name in asked for own in known[name]}, where=benchmark or None
            )
        for name, own in hits:
            if own not in found[name]:
                found[name].append(own)
    return {name: tuple(own) for name, own in found.items()}


def _default(benchmark: Benchmark, known: Sequence[str]) -> tuple[str, ...]:
    """The main measures, and in a gallery the means of those its authors report (of all, if none)."""
    names = [*main_measures(benchmark), *of(benchmark).overall(benchmark, known)]
    return tuple(name for name in dict.fromkeys(names) if name in known)


@dataclass(frozen=True, eq=False)
class Sheet:
    """One benchmark: what of it is drawn, together with the other benchmarks of its family.

    `family` numbers the benchmarks whose images are drawn together, `n_clusters` of them.
    """

    benchmark: Benchmark
    draws: MeasureDraws
    n_clusters: int
    family: int

    @property
    def models(self) -> tuple[str, ...]:
        """The models that have values, by name."""
        return self.draws.models

    @property
    def measures(self) -> tuple[str, ...]:
        """The measures that are columns."""
        return self.draws.measures

    def values(self) -> Float[ndarray, "1 models measures"]:
        """The measures themselves: every cluster once."""
        return self.drawn(np.ones((1, self.n_clusters), dtype=np.float32))

    def drawn(self, weights: Float[ndarray, "draws all"]) -> Float[ndarray, "draws models measures"]:
        """The measures in each draw (`MeasureDraws.drawn`), moved apart where images and captions cross."""
        found, wide = self.draws.drawn(weights), self.draws.wide
        if wide is None:
            return found
        centre = self.draws.drawn(np.ones((1, self.n_clusters), dtype=np.float32))
        return centre + wide * (found - centre)


def sheets_of(
    groups: Mapping[str, tuple[Run, ...]], measures: Sequence[str]
) -> tuple[tuple[Sheet, ...], tuple[str, ...]]:
    """What is drawn of each benchmark, and the names of columns that too few models have."""
    chosen = choose(groups, measures)
    few = []
    sheets = []
    shared = {name: Sharing.joined([run.benchmark.sharing for run in runs]) for name, runs in groups.items()}
    for (name, runs), (family, codes, size) in zip(groups.items(), _families(groups, shared), strict=True):
        kept = []
        for measure in chosen[name]:
            having = sum(of(run.benchmark).has(run, measure) for run in runs)
            if having >= LEAST:
                kept.append(measure)
            else:
                few.append(f"{name}:{measure}")
        if kept:
            draws = of(runs[0].benchmark).draws(runs, kept, codes, size, shared[name])
            sheets.append(Sheet(runs[0].benchmark, draws, size, family))
    return tuple(sheets), tuple(few)


def _families(
    groups: Mapping[str, tuple[Run, ...]], shared: Mapping[str, Sharing]
) -> list[tuple[int, ndarray, int]]:
    """For each benchmark the number of its family, the cluster of each question, and the family's clusters.

    Galleries with an image in common are a family, whose clusters are the images; any other benchmark is one
    of its own.
    """
    keys: dict[str, list[str]] = {}
    family: dict[str, int] = {}
    for number, (name, runs) in enumerate(groups.items()):
        family[name] = number
        if (images := of(runs[0].benchmark).images(runs[0].benchmark)) is not None:
            keys[name] = images
            for other in [o for o in keys if o != name and not set(keys[o]).isdisjoint(keys[name])]:
                old = family[other]
                family |= {o: number for o, f in family.items() if f == old}
    found = []
    for name in groups:
        if name not in keys:
            codes = shared[name].units
            found.append((family[name], codes, int(codes.max()) + 1))
            continue
        together = sorted({key for o in keys if family[o] == family[name] for key in keys[o]})
        place = {key: i for i, key in enumerate(together)}
        found.append((family[name], np.asarray([place[key] for key in keys[name]], np.int64), len(together)))
    return found
