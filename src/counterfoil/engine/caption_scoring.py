"""Caption metrics' scores; equal rows stay apart, since document frequencies count every row."""

import itertools
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.base import first_use
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.references import References, check_references
from counterfoil.benchmarks.videos import Video
from counterfoil.engine.join_scores import item_rows
from counterfoil.engine.plan import ScoringPlan, ability_for, check_images, items
from counterfoil.engine.session import Session, with_provenance
from counterfoil.errors import DataError, InputError, ScoreError
from counterfoil.models.captions.base import CaptionMetric, EmbeddingMetric, LocalMetric, TextMetric
from counterfoil.models.precomputed_galleries import PrecomputedEmbeddings


@dataclass(frozen=True, eq=False)
class CaptionInputs:
    """Candidates, one per row; rows of one `owner` share an image and its references (None: none do)."""

    images: tuple[Image, ...]
    captions: tuple[Caption, ...]
    #: None where nothing is shown.
    image: Int64[ndarray, "rows"] | None
    candidate: Int64[ndarray, "rows"]
    references: References | None = None
    owner: Int64[ndarray, "rows"] | None = None
    name: str = "the captions"

    def __post_init__(self) -> None:
        check_references(self.references, len(self.candidate))

    def __len__(self) -> int:
        return len(self.candidate)

    def take(self, rows: Int64[ndarray, "some"]) -> "CaptionInputs":
        return replace(
            self,
            image=None if self.image is None else self.image[rows],
            candidate=self.candidate[rows],
            references=None if self.references is None else self.references.take(rows),
            owner=None if self.owner is None else self.owner[rows],
        )

    @property
    def documents(self) -> Int64[ndarray, "documents"] | None:
        """The rows whose references are the documents of the load, one of each image; None where all are."""
        return None if self.owner is None else np.sort(np.unique(self.owner, return_index=True)[1])

    def texts(self, positions: Int64[ndarray, "some"]) -> list[str]:
        return [str(self.captions[position].text) for position in positions]

    def row(self, row: int) -> str:
        caption = self.captions[self.candidate[row]]
        of = "" if self.image is None else f" of '{self.images[self.image[row]].id}'"
        return f"{self.name}, row {row + 1}, caption {caption.text or caption.id!r}{of}"

    def checked(self, metric: CaptionMetric) -> "CaptionInputs":
        """Itself without what `metric` does not need, once all that it needs is at hand."""
        if not len(self):
            raise DataError("there are no captions", where=self.name)
        self.check_given(metric.identity.name, metric.needs)
        references = self.references if "references" in metric.needs else None
        if references is not None and not references.counts.all():
            problem = f"a caption has no references, which {metric.identity.name} compares with"
            where = self.row(int(np.argmin(references.counts)))
            given = f"{int((references.counts == 0).sum())} of {len(self)} without"
            raise DataError(problem, where=where, given=given, hint=_without_references(metric.identity.name))
        image = self.image if "images" in metric.needs else None
        if not isinstance(getattr(metric, "embedder", None), PrecomputedEmbeddings):
            self._check_texts(self.candidate, "candidate")
            if references is not None:
                self._check_texts(references.captions, "reference")
            if image is not None:
                hint = (
                    "give their folder with --images, or measure only the questions whose images are there "
                    "with --available"
                )
                check_images([self.images[position] for position in np.unique(image)], self.name, hint)
        return replace(self, image=image, references=references)

    def check_given(self, metric: str, needs: Collection[str]) -> None:
        """Raise `InputError` where a metric `needs` images or references, and there are none."""
        if "references" in needs and self.references is None:
            problem = f"{self.name} has no references, which {metric} compares with"
            # Rows with owners are of files of captions, the others of a benchmark.
            named = "" if self.owner is None else "name their file with --references; "
            raise InputError(problem, hint=named + _without_references(metric))
        if "images" in needs and self.image is None:
            problem = f"{metric} looks at images, and none were given"
            hint = "name their folder with --images, or that of videos with --videos"
            raise InputError(problem, where=self.name, hint=hint)

    def _check_texts(self, positions: Int64[ndarray, "some"], kind: str) -> None:
        for position in np.unique(positions):
            text = self.captions[position].text
            if text is None:
                problem = f"the {kind} is not at hand"
                hint = "give the captions with --data, or measure from given scores"
                raise DataError(problem, where=f"{self.name}, '{self.captions[position].id}'", hint=hint)


def _without_references(name: str) -> str:
    kind = name.partition(":")[2].partition(" ")[0]
    if kind.startswith("ref-"):
        return f"metric:{kind.removeprefix('ref-')} does without"
    return "metric:clip-s, metric:pac-s and metric:em-score do without, with a model (--backbone)"


_BLOCK = 1 << 23

#: What answers for the rows of one question set, given its references.
Answer = Callable[[CaptionInputs], ndarray]


def _used(question_sets: Sequence[CaptionInputs]) -> tuple[ndarray, ndarray]:
    """The captions, and the images, that rows and their references name."""
    first = question_sets[0]
    mentioned = [inputs.references.captions for inputs in question_sets if inputs.references is not None]
    shown = np.empty(0, np.int64) if first.image is None else first_use(first.image)
    return first_use(np.concatenate([first.candidate, *mentioned])), shown


def _plan(question_sets: Sequence[CaptionInputs], session: Session) -> ScoringPlan:
    first, used = question_sets[0], _used(question_sets)
    keys = session.keys([first.images[position] for position in used[1]])
    return items(first.images, first.captions, used, keys)


def row_model(question_sets: Sequence[CaptionInputs], metric: CaptionMetric, session: Session) -> Answer:
    if isinstance(metric, TextMetric):
        return lambda inputs: metric.of_texts(*texts(inputs), **_documents(inputs))
    if isinstance(metric, LocalMetric):
        return _by_parts(question_sets, metric, session)
    embedder = metric.embedder
    if isinstance(embedder, PrecomputedEmbeddings):
        first, (used, image_of) = question_sets[0], _used(question_sets)
        caption_of = item_rows("caption", first.captions, embedder, first.name, used)
        if first.image is not None:
            image_of = item_rows("image", first.images, embedder, first.name, image_of)
        return _rows_of(metric, _unit(embedder.captions), caption_of, _unit(embedder.images), image_of)
    plan = _plan(question_sets, session)
    cache = session.cache_for(embedder)
    session.note_truncated(embedder, plan, cache, metric.identity.name)
    images = session.embed_images(embedder, plan, cache) if plan.images else None
    captions = session.embed_captions(embedder, plan, cache)
    return _rows_of(metric, captions, plan.caption_of, images, plan.image_of)


def _documents(inputs: CaptionInputs) -> dict[str, Any]:
    """The documents of the load for a metric that counts some; nothing where every row is one."""
    return {} if inputs.documents is None else {"documents": inputs.documents}


def texts(inputs: CaptionInputs) -> tuple[list[str], list[list[str]]]:
    """Candidates, and the references of each (none at all where there are none), as they are written."""
    references = inputs.references
    if references is None:
        return inputs.texts(inputs.candidate), []
    flat = inputs.texts(references.captions)
    starts = references.starts.tolist()
    return inputs.texts(inputs.candidate), [flat[start:stop] for start, stop in itertools.pairwise(starts)]


def _rows_of(
    metric: EmbeddingMetric,
    captions: ndarray,
    caption_of: Int64[ndarray, "captions"],
    images: ndarray | None,
    image_of: Int64[ndarray, "images"],
) -> Answer:
    """Rows gathered in blocks, so that never all references of a load lie in memory twice."""

    def answer(inputs: CaptionInputs) -> Float64[ndarray, "rows"]:
        scores = np.empty(len(inputs), dtype=np.float64)
        counts = np.full(len(inputs), 2) if inputs.references is None else 2 + inputs.references.counts
        number = np.cumsum(counts) // max(1, _BLOCK // max(1, captions.shape[1]))
        cuts = [*(np.flatnonzero(np.diff(number)) + 1).tolist(), len(inputs)]
        for start, stop in itertools.pairwise([0, *cuts]):
            rows = np.arange(start, stop)
            references = None if inputs.references is None else inputs.references.take(rows)
            shown, others, starts = None, None, None
            if inputs.image is not None and images is not None:
                shown = images[image_of[inputs.image[rows]]]
            if references is not None:
                others, starts = captions[caption_of[references.captions]], references.starts
            candidates = captions[caption_of[inputs.candidate[rows]]]
            scores[rows] = metric.of_embeddings(candidates, shown, others, starts)
        return scores

    return answer


def _by_parts(question_sets: Sequence[CaptionInputs], metric: LocalMetric, session: Session) -> Answer:
    plan, cache = _plan(question_sets, session), session.cache_for(metric.local)
    session.note_truncated(metric.local, plan, cache, metric.identity.name)
    frames = session.frames(metric.local, plan, cache) if plan.images else None
    tokens = session.tokens(metric.local, plan, cache)

    def answer(inputs: CaptionInputs) -> ndarray:
        references = inputs.references
        candidates, shown, groups = [tokens[i] for i in plan.caption_of[inputs.candidate]], None, None
        if inputs.image is not None and frames is not None:
            shown = [frames[i] for i in plan.image_of[inputs.image]]
        if references is not None:
            references_of = (plan.caption_of[references.row(row)] for row in range(len(inputs)))
            groups = [[tokens[i] for i in positions] for positions in references_of]
        return metric.of_parts(candidates, shown, groups, **_documents(inputs))

    return answer


def _unit(rows: ndarray) -> ndarray:
    wide = rows.astype(np.float64)
    unit: ndarray = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return unit


def score_benchmark(benchmark: Benchmark, metric: CaptionMetric, *, session: Session = Session()) -> Scores:
    """A caption metric's score of every candidate in `benchmark`, in the questions' shape.

    Preferences that draw references are (n, 2, draws). First and second candidates are loads of their own, as
    in the released scripts, so that no document counts twice; a candidate of several sentences gets their
    mean.
    """
    inputs = _inputs(benchmark, metric)
    questions = benchmark.listed
    file = benchmark.corpus
    wants_corpus = getattr(_of_shown(metric, benchmark.images), "wants_corpus", False)
    if wants_corpus and file is not None and not file.is_file():
        counted = "references" if "references" in metric.needs else "candidates"
        session.note(
            f"{benchmark.name}: {file.name} is not in {file.parent}; {metric.identity.name} weighs tokens by "
            f"the {counted} that are measured, and published numbers by those captions"
        )
    metric = metric_for(metric, benchmark.images, benchmark.corpus)
    draws = questions.drawn() if "references" in metric.needs else ()
    question_sets = [replace(inputs, references=references) for references in draws] or [inputs]
    values = _answered(question_sets, metric, session, loads=questions.loads)
    collected = questions.collect_draws(values) if draws else questions.collect(values[0])
    checked = Scores(collected).check(benchmark, where=f"scores of {metric.identity.name}")
    return with_provenance(checked, metric, session=session)


def score_captions(
    inputs: CaptionInputs, metric: CaptionMetric, *, session: Session = Session()
) -> Float64[ndarray, "rows"]:
    metric = metric_for(metric, inputs.images)
    return _answered([inputs], metric, session)[0]


def checked_metric(benchmark: Benchmark, metric: CaptionMetric) -> CaptionMetric:
    """The metric as it is asked of a benchmark; raises `InputError` where that lacks what it needs."""
    metric = metric_for(metric, benchmark.images, benchmark.corpus)
    _inputs(benchmark, metric).checked(metric)
    return metric


def _inputs(benchmark: Benchmark, metric: CaptionMetric) -> CaptionInputs:
    ability_for(metric, benchmark)
    questions = benchmark.listed
    captions, images = (positions.reshape(-1) for positions in questions.pairs())
    shown = benchmark.images, benchmark.captions, images, captions, questions.references
    return CaptionInputs(*shown, name=benchmark.name)


def metric_for(metric: CaptionMetric, images: Sequence[Image], corpus: Path | None = None) -> CaptionMetric:
    """The metric as it is asked of these images (videos have another PAC-S) and with this `corpus`."""
    shown = _of_shown(metric, images)
    counting: Callable[[Path | None], CaptionMetric] | None = getattr(shown, "for_corpus", None)
    return shown if counting is None else counting(corpus)


def _of_shown(metric: CaptionMetric, images: Sequence[Image]) -> CaptionMetric:
    moving: Callable[[], CaptionMetric] | None = getattr(metric, "for_videos", None)
    videos = "images" in metric.needs and any(isinstance(image, Video) for image in images)
    return moving() if moving is not None and videos else metric


def _answered(
    question_sets: Sequence[CaptionInputs],
    metric: CaptionMetric,
    session: Session,
    *,
    loads: Int64[ndarray, "rows"] | None = None,
) -> list[Float64[ndarray, "rows"]]:
    """The scores of each of `question_sets`, which differ in references; `loads` count documents apart."""
    question_sets = [inputs.checked(metric) for inputs in question_sets]
    answer = row_model(question_sets, metric, session)
    scores = []
    for done, inputs in enumerate(question_sets):
        session.progress("comparing captions", done, len(question_sets))
        values = np.empty(len(inputs))
        for load in (0,) if loads is None else np.unique(loads):
            rows = np.flatnonzero(loads == load) if loads is not None else np.arange(len(inputs))
            part = np.asarray(answer(inputs.take(rows)), dtype=np.float64)
            if part.shape != (len(rows),):
                problem = "the metric gave the wrong number of scores"
                given = part.shape
                raise ScoreError(problem, where=metric.identity.name, given=given, allowed=f"({len(rows)},)")
            values[rows] = part
        broken = np.flatnonzero(~np.isfinite(values))
        if len(broken):
            problem = f"{metric.identity.name} gave a score that is not a finite number"
            hint = f"{len(broken)} of {len(values)} scores are NaN or infinite"
            raise ScoreError(problem, where=inputs.row(int(broken[0])), given=values[broken[0]], hint=hint)
        scores.append(values)
    session.progress("comparing captions", len(question_sets), len(question_sets))
    return scores
