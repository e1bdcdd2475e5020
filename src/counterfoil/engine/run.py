"""Ask a scorer for the fewest computations that answer a benchmark, and repeat none that is finished."""

from pathlib import Path

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Gallery, Preference
from counterfoil.data.scores import Answers, Scores
from counterfoil.engine.align import align
from counterfoil.engine.caption_scoring import score_benchmark
from counterfoil.engine.compute import check_amounts, embed, prepared, score_pairs
from counterfoil.engine.detect import detect
from counterfoil.engine.plan import ScoringPlan, plan
from counterfoil.engine.progress import Note, Progress, silent, warn
from counterfoil.engine.provenance import signed
from counterfoil.engine.retrieve import Given, rank_galleries
from counterfoil.errors import ScoreError
from counterfoil.scorers.base import Classifier, Embedder, Scorer
from counterfoil.scorers.captions.base import CaptionMetric
from counterfoil.scorers.given import GivenEmbeddings, GivenTable

#: Numbers in one block of embeddings while pairs are compared: 64 MB of float32 for each of the two sides.
_BLOCK = 1 << 24


def run(
    benchmark: Benchmark,
    scorer: Embedder | Scorer | Classifier | Given | CaptionMetric,
    *,
    cache: str | Path | None = None,
    batch_size: int = 32,
    workers: int = 0,
    progress: Progress = silent,
    note: Note = warn,
) -> Answers:
    """What `scorer` answers to every question of `benchmark`.

    * An `Embedder` embeds each distinct image and caption once; distinct pairs are compared once, in blocks.
    * A `Scorer` scores each distinct pair once.
    * A `Classifier` tells natural items from synthetic ones, and the rule of two steps answers by that
      (`counterfoil.engine.detect`).
    * A caption metric reads candidates beside their references, or looks at their images
      (`counterfoil.engine.caption_scoring`).
    * Given tables and embeddings are matched to the questions (`counterfoil.engine.align`).
    * A gallery is ranked (`counterfoil.engine.retrieve`).

    Finished shards of about 256 rows go to the folder `cache` at once (None keeps nothing): a run that is
    stopped at any moment and started again repeats at most one of them and returns the same bits.
    `batch_size` rows go through the model at a time and `workers` processes decode images; neither changes
    what is computed. `progress` is called after every batch, `note` with what went wrong without stopping
    the run (a damaged shard that is computed again, rows of a table that belong to no question).

    Returns float64 scores in the shape of the questions, all finite; or outcomes, of a classifier or where
    the table holds only those; or the places of a gallery's right answers. What made them is written on them
    (`counterfoil.engine.provenance`), and from there in results and the manifests of runs.
    Raises `DataError` where captions or images are not at hand or cannot be read, `ScoreError` where a
    scorer gives numbers that are not finite or too few of them, `StorageError` where the cache cannot be
    written.
    """
    cache = None if cache is None else Path(cache)
    check_amounts(batch_size, workers)
    if isinstance(scorer, CaptionMetric):
        return score_benchmark(
            benchmark,
            scorer,
            cache=cache,
            batch_size=batch_size,
            workers=workers,
            progress=progress,
            note=note,
        )
    if isinstance(scorer, Classifier):
        return detect(
            benchmark,
            scorer,
            cache=cache,
            batch_size=batch_size,
            workers=workers,
            progress=progress,
            note=note,
        )
    if isinstance(benchmark.questions, Gallery):
        return rank_galleries(
            [benchmark],
            scorer,
            cache=cache,
            batch_size=batch_size,
            workers=workers,
            progress=progress,
            note=note,
        )[0]
    if isinstance(scorer, GivenTable | GivenEmbeddings):
        found = align(scorer, benchmark, note=note)
        return signed(found, scorer, batch_size=batch_size, workers=workers)
    if isinstance(scorer, Given):
        raise ScoreError(
            "these answers are those of a gallery",
            where=scorer.identity.name,
            given=f"{benchmark.name}, of form '{benchmark.questions.form}'",
            allowed="coco-5k, eccv and other galleries",
        )
    if not isinstance(scorer, Embedder | Scorer):
        raise TypeError(f"{type(scorer).__name__} is no Embedder, Scorer, Classifier or given answers")

    keys, shelf = prepared(benchmark, scorer, cache=cache, progress=progress)
    work = plan(benchmark, keys)
    if isinstance(scorer, Embedder):
        values = _compare(scorer, work, *embed(scorer, work, shelf, batch_size, workers, progress, note))
    else:
        values = score_pairs(scorer, work, shelf, batch_size, progress, note)
    scores = work.spread(values)
    if isinstance(benchmark.questions, Preference):
        scores = benchmark.questions.collect(scores)
    checked = Scores(scores).check(benchmark, where=f"scores of {scorer.identity.name}")
    return signed(checked, scorer, batch_size=batch_size, workers=workers)


def _compare(
    scorer: Embedder,
    work: ScoringPlan,
    captions: Float32[ndarray, "captions width"],
    images: Float32[ndarray, "images width"],
) -> Float64[ndarray, "pairs"]:
    """One score per distinct pair; never more than a block of rows is gathered at once."""
    scores = np.empty(len(work.pairs), dtype=np.float64)
    step = max(1, _BLOCK // max(1, captions.shape[1]))
    for start in range(0, len(scores), step):
        block = work.pairs[start : start + step]
        scores[start : start + step] = scorer.compare(captions[block[:, 0]], images[block[:, 1]])
    return scores
