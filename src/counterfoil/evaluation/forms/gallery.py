"""Evaluation of galleries: directions and parts count the same, queries without a value do not count."""

from collections.abc import Sequence
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.scores import Answers
from counterfoil.evaluation.forms.base import EvaluationSettings, FormEvaluation, PairedRuns, Tested
from counterfoil.evaluation.galleries import answers as stored
from counterfoil.evaluation.galleries import measures, retrieval
from counterfoil.evaluation.galleries.chance import chance
from counterfoil.evaluation.galleries.gallery import evaluate_gallery, no_folds
from counterfoil.evaluation.galleries.means import columns as measure_columns
from counterfoil.evaluation.galleries.means import mean, weights_of
from counterfoil.evaluation.question_means import IntervalMethod, dependence
from counterfoil.evaluation.result import Result
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.measure import DIRECTIONS, split_direction
from counterfoil.metrics.ties import Ties
from counterfoil.stats.table_estimates import macro_table_differences
from counterfoil.stats.tests import paired_permutation


class GalleryEvaluation(FormEvaluation):
    """Galleries."""

    captions_drawn: ClassVar[bool] = False

    def main_measures(self, benchmark: Benchmark) -> tuple[str, ...]:
        """The first measure of the card, in both directions and their mean."""
        first = (benchmark.card.measures or super().main_measures(benchmark))[0]
        return tuple(f"{side}_{first}" for side in DIRECTIONS)

    def measure_names(self, benchmark: Benchmark) -> tuple[str, ...]:
        return measures.measure_names(benchmark)

    def check_measures(self, benchmark: Benchmark, names: Sequence[str]) -> None:
        measures.expand(names, benchmark)

    def chance(self, benchmark: Benchmark) -> dict[str, float]:
        return chance(benchmark)

    def check(self, benchmark: Benchmark, answers: Answers, *, where: str) -> None:
        retrieval.check(benchmark, answers, where=where)

    def per_item(
        self, benchmark: Benchmark, answers: Answers, *, ties: Ties, measures: Sequence[str] | None = None
    ) -> dict[str, NDArray[np.float64]]:
        return retrieval.per_item(benchmark, answers.rankings, ties=ties, measures=measures)

    def score_columns(self, shape: tuple[int, ...]) -> list[str]:
        """None: scores of all pairs are not kept."""
        return []

    def answer_columns(self, benchmark: Benchmark, answers: Answers) -> dict[str, pa.Array]:
        return stored.columns(benchmark.gallery, answers.rankings)

    def read_answers(self, benchmark: Benchmark, table: pa.Table, *, where: object) -> Answers:
        return stored.read(benchmark.gallery, table, where=where)

    def item_columns(self, benchmark: Benchmark) -> dict[str, pa.Array]:
        """The direction, the position of the query among the images (or the captions), and its part."""
        gallery = benchmark.gallery
        return {
            "direction": pa.array([("i2t", "t2i")[side] for side in gallery.directions], pa.string()),
            "query": pa.array(np.concatenate([gallery.i2t.queries, gallery.t2i.queries]), pa.int64()),
            "part": pa.array(gallery.query_parts, pa.int64()),
        }

    def without(self, benchmark: Benchmark, measure: str) -> NDArray[np.bool_] | None:
        """The queries of the other direction."""
        side = {"i2t": 0, "t2i": 1}.get(measure.partition("_")[0])
        return None if side is None else benchmark.gallery.directions != side

    def evaluate(self, benchmark: Benchmark, answers: Answers, settings: EvaluationSettings) -> Result:
        if settings.interval is IntervalMethod.FOLDS:
            raise no_folds(benchmark)
        return evaluate_gallery(benchmark, answers.rankings, **vars(settings))

    def test(self, paired: PairedRuns) -> Tested:
        """Paired permutations of queries, weighted as the measures weight them."""
        benchmark = paired.runs[0].benchmark
        of_runs = [{name: run.items[name] for name in paired.main} for run in paired.runs]
        weights = np.stack(
            [weights_of(benchmark, ~np.isnan(of_runs[0][name])) for name in paired.main], axis=1
        )
        if paired.interval is IntervalMethod.FOLDS:
            raise no_folds(benchmark)
        shared = dependence(paired.sharing, paired.interval)
        # Weights of each measure, so that all share their signs, whatever rows they are about.
        values = np.hstack(
            [np.stack([np.nan_to_num(table[name]) for name in paired.main], axis=1) for table in of_runs]
        )
        pairs = paired.columns
        p = paired_permutation(
            values,
            shared,
            pairs,
            weights=np.tile(weights, len(paired.runs)),
            seed=paired.seed,
            draws=paired.permutations,
        )
        tables, averages = [], np.zeros((0, 0))
        for table in of_runs:
            columns, averages = measure_columns(benchmark, table, paired.main)
            tables.append(columns)
        groups = np.where(np.isnan(tables[0]), -1, benchmark.gallery.query_parts[:, None])
        _, low, high = macro_table_differences(
            np.clip(np.stack(tables), 0.0, 1.0),
            groups,
            shared,
            np.asarray(paired.of_scorers, dtype=np.int64),
            averages=averages,
            seed=paired.seed,
            draws=paired.draws,
        )
        means = [[mean(benchmark, table[name]) for name in paired.main] for table in of_runs]
        value = [means[a][k] - means[b][k] for a, b in paired.of_scorers for k in range(len(paired.main))]
        return Tested(np.array(value), low.reshape(-1), high.reshape(-1), p, [None] * len(pairs))

    def conflict(self, first: Benchmark, other: Benchmark) -> str:
        """Whether items or right answers differ; texts may be at hand in one benchmark only."""
        (items, facts), (other_items, other_facts) = _facts(first), _facts(other)
        same_length = items == other_items and len(facts) == len(other_facts)
        same = same_length and all(map(np.array_equal, facts, other_facts))
        return "" if same else "other galleries, or other right answers"

    def stored_measures(self, result: Result) -> tuple[str, ...]:
        """Those that the result has, for recall has any K."""
        return tuple(result.measures)

    def overall(self, benchmark: Benchmark, known: Sequence[str]) -> list[str]:
        """The means of the measures its authors report (of all, if none)."""
        return [overall(known, base) for base in benchmark.card.measures] or [
            name for name in known if split_direction(name)[0] == "mean"
        ]

    def images(self, benchmark: Benchmark) -> list[str]:
        """The image of each query: its own, or that of its caption; else the caption itself."""
        questions = benchmark.gallery
        owners = questions.owners[questions.t2i.queries].tolist()
        captions = questions.t2i.queries.tolist()
        return [f"image {benchmark.images[i].id}" for i in questions.i2t.queries.tolist()] + [
            f"image {benchmark.images[owner].id}"
            if owner >= 0
            else f"caption {benchmark.captions[caption].id}"
            for caption, owner in zip(captions, owners, strict=True)
        ]

    def mean(self, benchmark: Benchmark, values: NDArray[np.float64]) -> float:
        """The mean over directions of means over parts."""
        return mean(benchmark, values)


def overall(known: Sequence[str], base: str) -> str:
    """The measure of a gallery in both directions, or in the only one that has queries; empty if neither."""
    return next((name for side in ("mean", *DIRECTIONS) if (name := f"{side}_{base}") in known), "")


def _facts(benchmark: Benchmark) -> tuple[list[str], list[ndarray]]:
    """The ids of all items, and what is right where."""
    gallery = benchmark.gallery
    facts: list[ndarray] = [gallery.query_parts]
    for found in (gallery.i2t.positives, gallery.t2i.positives):
        if isinstance(found, Plausible):
            rule = np.array([*found.thresholds, found.cap or 0])
            facts += [found.query_codes, found.item_codes, rule]
        else:
            facts += [found.starts, found.items, found.gains]
    images = [image.id for image in benchmark.images]
    return [*images, *(caption.id for caption in benchmark.captions)], facts
