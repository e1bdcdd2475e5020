"""The rows that a caption metric is asked about: what it reads of them, embedded once and gathered by row.

Texts go to metrics that read, embeddings to those that look, parts to those that match.
"""

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.data.forms.base import first_use
from counterfoil.engine.align import used_rows
from counterfoil.engine.caption_inputs import CaptionInputs
from counterfoil.engine.plan import ScoringPlan, items
from counterfoil.engine.session import Session
from counterfoil.scorers.captions.base import CaptionMetric, EmbeddingMetric, LocalMetric, TextMetric
from counterfoil.scorers.given import GivenEmbeddings

#: Numbers in one block of gathered embeddings.
_BLOCK = 1 << 23

#: What answers for the rows of one question set, given its references.
Answer = Callable[[CaptionInputs], ndarray]


def _plan(asked: Sequence[CaptionInputs], session: Session) -> ScoringPlan:
    """The distinct items of all that is asked; all of it is about the same images and candidates."""
    first = asked[0]
    mentioned = [each.references.captions for each in asked if each.references is not None]
    shown = np.empty(0, np.int64) if first.image is None else first_use(first.image)
    return items(
        first.images,
        first.captions,
        used_images=shown,
        image_keys=session.keys([first.images[position] for position in shown]),
        used_captions=first_use(np.concatenate([first.candidate, *mentioned])),
    )


def row_scorer(asked: Sequence[CaptionInputs], metric: CaptionMetric, session: Session) -> Answer:
    """What answers for the rows, with everything behind it embedded."""
    if isinstance(metric, TextMetric):
        return lambda each: metric.of_texts(*texts(each), **_documents(each))
    if isinstance(metric, LocalMetric):
        return _by_parts(asked, metric, session)
    if isinstance(metric.embedder, GivenEmbeddings):
        return _by_given(asked, metric, metric.embedder)
    return _by_embeddings(asked, metric, session)


def _documents(asked: CaptionInputs) -> dict[str, Any]:
    """The documents of the load for a metric that counts some; nothing where every row is one."""
    return {} if asked.documents is None else {"documents": asked.documents}


def texts(asked: CaptionInputs) -> tuple[list[str], list[list[str]]]:
    """Candidates, and the references of each (none at all where there are none), as they are written."""
    references = asked.references
    if references is None:
        return asked.texts(asked.candidate), []
    flat = asked.texts(references.captions)
    starts = references.starts.tolist()
    return asked.texts(asked.candidate), [flat[start:stop] for start, stop in itertools.pairwise(starts)]


def _by_embeddings(asked: Sequence[CaptionInputs], metric: EmbeddingMetric, session: Session) -> Answer:
    plan, embedder = _plan(asked, session), metric.embedder
    kept = session.shards_of(embedder)
    session.note_truncated(embedder, plan, kept, metric.identity.name)
    images = session.embed_images(embedder, plan, kept) if plan.images else None
    captions = session.embed_captions(embedder, plan, kept)
    return _rows_of(metric, captions, plan.caption_of, images, plan.image_of)


def _by_given(asked: Sequence[CaptionInputs], metric: EmbeddingMetric, given: GivenEmbeddings) -> Answer:
    first, where = asked[0], given.identity.name
    name = first.name
    mentioned = [each.references.captions for each in asked if each.references is not None]
    used = np.unique(np.concatenate([first.candidate, *mentioned]))
    caption_of = used_rows(
        "caption", first.captions, used, given.caption_ids, len(given.captions), name, where
    )
    image_of = np.empty(0, np.int64)
    if first.image is not None:
        shown = np.unique(first.image)
        image_of = used_rows("image", first.images, shown, given.image_ids, len(given.images), name, where)
    return _rows_of(metric, _unit(given.captions), caption_of, _unit(given.images), image_of)


def _rows_of(
    metric: EmbeddingMetric,
    captions: ndarray,
    caption_of: Int64[ndarray, "captions"],
    images: ndarray | None,
    image_of: Int64[ndarray, "images"],
) -> Answer:
    """Rows gathered in blocks, so that never all references of a load lie in memory twice."""

    def answer(asked: CaptionInputs) -> Float64[ndarray, "rows"]:
        found = np.empty(len(asked), dtype=np.float64)
        for start, stop in _blocks(asked, captions.shape[1]):
            rows = np.arange(start, stop)
            references = None if asked.references is None else asked.references.take(rows)
            found[rows] = metric.of_embeddings(
                captions[caption_of[asked.candidate[rows]]],
                None if asked.image is None or images is None else images[image_of[asked.image[rows]]],
                None if references is None else captions[caption_of[references.captions]],
                None if references is None else references.starts,
            )
        return found

    return answer


def _blocks(asked: CaptionInputs, width: int) -> list[tuple[int, int]]:
    """Rows cut so that a block gathers about as many embeddings as there is room for."""
    counts = np.full(len(asked), 2) if asked.references is None else 2 + asked.references.counts
    number = np.cumsum(counts) // max(1, _BLOCK // max(1, width))
    cuts = [0, *(np.flatnonzero(np.diff(number)) + 1).tolist(), len(asked)]
    return [(start, stop) for start, stop in itertools.pairwise(cuts) if start < stop]


def _by_parts(asked: Sequence[CaptionInputs], metric: LocalMetric, session: Session) -> Answer:
    plan, kept = _plan(asked, session), session.shards_of(metric.local)
    session.note_truncated(metric.local, plan, kept, metric.identity.name)
    frames = session.frames(metric.local, plan, kept) if plan.images else None
    tokens = session.tokens(metric.local, plan, kept)

    def answer(each: CaptionInputs) -> ndarray:
        references = each.references
        return metric.of_parts(
            [tokens[i] for i in plan.caption_of[each.candidate]],
            None if each.image is None or frames is None else [frames[i] for i in plan.image_of[each.image]],
            None
            if references is None
            else [[tokens[i] for i in plan.caption_of[references.row(row)]] for row in range(len(each))],
            **_documents(each),
        )

    return answer


def _unit(rows: ndarray) -> ndarray:
    wide = rows.astype(np.float64)
    unit: ndarray = wide / np.linalg.norm(wide, axis=1, keepdims=True)
    return unit
