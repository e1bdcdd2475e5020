"""Answers of any scorer to any benchmark, with the fewest computations, none of which is repeated."""

import numpy as np
from jaxtyping import Float32, Float64
from numpy import ndarray

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Gallery, Preference
from counterfoil.data.scores import Answers, Scores
from counterfoil.engine.align import align
from counterfoil.engine.caption_scoring import score_benchmark
from counterfoil.engine.detect import detect
from counterfoil.engine.plan import ScoringPlan
from counterfoil.engine.provenance import signed
from counterfoil.engine.retrieve import Given, rank_galleries
from counterfoil.engine.session import Session
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
    session: Session = Session(),
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

    Finished shards of about 256 rows go to the cache of the `session` at once: a run that is stopped at any
    moment and started again repeats at most one of them and returns the same bits. Its batch size and its
    number of workers do not change what is computed.

    Returns float64 scores in the shape of the questions, all finite; or outcomes, of a classifier or where
    the table holds only those; or the places of a gallery's right answers. What made them is written on them
    (`counterfoil.engine.provenance`), and from there in results and the manifests of runs.
    Raises `DataError` where captions or images are not at hand or cannot be read, `ScoreError` where a
    scorer gives numbers that are not finite or too few of them, `StorageError` where the cache cannot be
    written.
    """
    if isinstance(scorer, CaptionMetric):
        return score_benchmark(
            benchmark,
            scorer,
            session=session,
        )
    if isinstance(scorer, Classifier):
        return detect(
            benchmark,
            scorer,
            session=session,
        )
    if isinstance(benchmark.questions, Gallery):
        return rank_galleries(
            [benchmark],
            scorer,
            session=session,
        )[0]
    if isinstance(scorer, GivenTable | GivenEmbeddings):
        found = align(scorer, benchmark, note=session.note)
        return signed(found, scorer, session=session)
    if isinstance(scorer, Given):
        raise ScoreError(
            "these answers are those of a gallery",
            where=scorer.identity.name,
            given=f"{benchmark.name}, of form '{benchmark.questions.form}'",
            allowed="coco-5k, eccv and other galleries",
        )
    if not isinstance(scorer, Embedder | Scorer):
        raise TypeError(f"{type(scorer).__name__} is no Embedder, Scorer, Classifier or given answers")

    work, kept = session.prepare(benchmark, scorer)
    if isinstance(scorer, Embedder):
        values = _compare(scorer, work, *session.embed(scorer, work, kept))
    else:
        values = session.score_pairs(scorer, work, kept)
    scores = work.spread(values)
    if isinstance(benchmark.questions, Preference):
        scores = benchmark.questions.collect(scores)
    checked = Scores(scores).check(benchmark, where=f"scores of {scorer.identity.name}")
    return signed(checked, scorer, session=session)


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
