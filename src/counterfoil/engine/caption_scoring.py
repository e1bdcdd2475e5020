"""Caption metrics answer, for every candidate that a benchmark or a command asks about.

Each distinct image, video and text goes through a model once, and is kept in the cache; arithmetic is done
again every time. Rows are never taken together, though two may hold the same texts: document frequencies
count every row of the load.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.data.answers import Scores
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.records import Image
from counterfoil.data.videos import Video
from counterfoil.engine.caption_inputs import CaptionInputs, row_scorer
from counterfoil.engine.plan import Note, ability_for, signed
from counterfoil.engine.session import Session
from counterfoil.errors import ScoreError
from counterfoil.scorers.captions.base import CaptionMetric

#: Metrics of pictures that are asked of videos in another way, or refuse it.
_Moving = Callable[[], CaptionMetric]


def score_benchmark(
    benchmark: Benchmark,
    metric: CaptionMetric,
    *,
    session: Session = Session(),
) -> Scores:
    """What a caption metric gives to every candidate that `benchmark` asks about.

    Returns float64 scores in the shape of the questions; of preferences that draw references (n, 2, draws),
    where the metric reads references: it is asked once per draw. The first candidates are one load and the
    second ones another, as in the released scripts, so that no document counts twice. A candidate of several
    sentences gets the mean over them. Questions of other forms have no references, and each of their pairs
    is a row.

    Raises `InputError` for galleries, and for a metric that reads references where there are none;
    `DataError` where captions or images are not at hand, `ScoreError` where a score is not finite.
    """
    asked = _asked(benchmark, metric)
    questions = benchmark.listed
    _say_corpus(benchmark, metric, session.note)
    metric = metric_for(metric, benchmark.images, benchmark.corpus)
    draws = questions.drawn() if "references" in metric.needs else ()
    inputs = [asked.beside(references) for references in draws] or [asked]
    values = _answered(inputs, metric, session, loads=questions.loads)
    collected = questions.collect_draws(values) if draws else questions.collect(values[0])
    checked = Scores(collected).check(benchmark, where=f"scores of {metric.identity.name}")
    return signed(checked, metric, session=session)


def score_captions(
    asked: CaptionInputs,
    metric: CaptionMetric,
    *,
    session: Session = Session(),
) -> Float64[ndarray, "rows"]:
    """One number per row, all finite.

    Raises what `score_benchmark` raises. Captions longer than the model reads are cut off by its tokenizer,
    and the note of the `session` says how many.
    """
    metric = metric_for(metric, asked.images)
    return _answered([asked], metric, session)[0]


def check(benchmark: Benchmark, metric: CaptionMetric) -> None:
    """Raise what `score_benchmark` raises before it computes: for missing items, and other forms."""
    _asked(benchmark, metric).checked(metric_for(metric, benchmark.images, benchmark.corpus))


def _asked(benchmark: Benchmark, metric: CaptionMetric) -> CaptionInputs:
    ability_for(metric, benchmark)
    questions = benchmark.listed
    captions, images = questions.pairs()
    return CaptionInputs(
        benchmark.images,
        benchmark.captions,
        image=images.reshape(-1),
        candidate=captions.reshape(-1),
        references=questions.references,
        name=benchmark.name,
    )


def metric_for(metric: CaptionMetric, images: Sequence[Image], corpus: Path | None = None) -> CaptionMetric:
    """The metric as it is asked of these: of videos PAC-S is another one than of pictures.

    `corpus` is the file in which metrics count documents where the benchmark came with one. Raises
    `InputError` where the metric is about pictures only, and these are videos; `DataError` for a corpus
    without captions.
    """
    shown = _of_shown(metric, images)
    counting: Callable[[Path | None], CaptionMetric] | None = getattr(shown, "for_corpus", None)
    return shown if counting is None else counting(corpus)


def _of_shown(metric: CaptionMetric, images: Sequence[Image]) -> CaptionMetric:
    moving: _Moving | None = getattr(metric, "for_videos", None)
    if moving is None or "images" not in metric.needs:
        return metric
    return moving() if any(isinstance(image, Video) for image in images) else metric


def _say_corpus(benchmark: Benchmark, metric: CaptionMetric, note: Note) -> None:
    """That the corpus of a benchmark is not at hand, where the metric would count its documents."""
    file = benchmark.corpus
    if (
        file is None
        or file.is_file()
        or not getattr(_of_shown(metric, benchmark.images), "wants_corpus", False)
    ):
        return
    counted = "references" if "references" in metric.needs else "candidates"
    note(
        f"{benchmark.name}: {file.name} is not in {file.parent}; {metric.identity.name} weighs tokens by the "
        f"{counted} that are measured, and published numbers by those captions"
    )


def _answered(
    asked: Sequence[CaptionInputs],
    metric: CaptionMetric,
    session: Session,
    *,
    loads: Int64[ndarray, "rows"] | None = None,
) -> list[Float64[ndarray, "rows"]]:
    """The scores of each of `asked`, which differ in their references only.

    Rows of different `loads` do not know of each other, where a metric counts documents over its load.
    """
    asked = [each.checked(metric) for each in asked]
    answer = row_scorer(asked, metric, session)
    found = []
    for done, each in enumerate(asked):
        session.progress("comparing captions", done, len(asked))
        values = np.empty(len(each))
        for load in (0,) if loads is None else np.unique(loads):
            rows = np.flatnonzero(loads == load) if loads is not None else np.arange(len(each))
            part = np.asarray(answer(each.take(rows)), dtype=np.float64)
            if part.shape != (len(rows),):
                raise ScoreError(
                    "the metric gave the wrong number of scores",
                    where=metric.identity.name,
                    given=part.shape,
                    allowed=f"({len(rows)},)",
                )
            values[rows] = part
        found.append(_finite(values, each, metric))
    session.progress("comparing captions", len(asked), len(asked))
    return found


def _finite(
    values: Float64[ndarray, "rows"], asked: CaptionInputs, metric: CaptionMetric
) -> Float64[ndarray, "rows"]:
    broken = np.flatnonzero(~np.isfinite(values))
    if len(broken):
        raise ScoreError(
            f"{metric.identity.name} gave a score that is not a finite number",
            where=asked.row(int(broken[0])),
            given=values[broken[0]],
            hint=f"{len(broken)} of {len(values)} scores are NaN or infinite",
        )
    return values
