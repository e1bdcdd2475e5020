"""Inputs of a caption metric: candidates, their images or videos, and their references, gathered by row.

Each distinct item is embedded once. Texts go to metrics that read, embeddings to those that look, parts to
those that match.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from jaxtyping import Float64, Int64
from numpy import ndarray

from counterfoil.data.forms.base import first_use
from counterfoil.data.records import Caption, FileSource, Image
from counterfoil.data.references import References, check_references
from counterfoil.engine.align import used_rows
from counterfoil.engine.plan import ScoringPlan, items
from counterfoil.engine.session import Session
from counterfoil.errors import DataError, InputError
from counterfoil.scorers.captions.base import CaptionMetric, EmbeddingMetric, LocalMetric, TextMetric
from counterfoil.scorers.given_galleries import GivenEmbeddings


@dataclass(frozen=True, eq=False)
class CaptionInputs:
    """Candidates, one per row, and what they are of.

    `image` and `candidate` are (rows,) positions into `images` and `captions`; so are `references`, which
    has an entry per row, or is None. `owner` (rows,) numbers what rows are of where several may be of one
    image and share its references; None says that each row is asked by itself. `name` says in errors whose
    rows they are.

    >>> captions = Caption("a", "a dog runs"), Caption("b", "a running dog")
    >>> references = References.of([[1]])
    >>> asked = CaptionInputs((), captions, image=None, candidate=np.array([0]), references=references)
    >>> asked.row(0)
    "the captions, row 1, caption 'a dog runs'"
    """

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

    def beside(self, references: References | None) -> "CaptionInputs":
        """The same rows beside other references."""
        return replace(self, references=references)

    def take(self, rows: Int64[ndarray, "some"]) -> "CaptionInputs":
        """Some of the rows, in that order."""
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
        """The texts of some captions; all are at hand once `checked` has passed."""
        return [str(self.captions[position].text) for position in positions]

    def row(self, row: int) -> str:
        """A row in words for an error."""
        caption = self.captions[self.candidate[row]]
        of = "" if self.image is None else f" of '{self.images[self.image[row]].id}'"
        return f"{self.name}, row {row + 1}, caption {caption.text or caption.id!r}{of}"

    def checked(self, metric: CaptionMetric) -> "CaptionInputs":
        """Itself, if all that `metric` needs is at hand, without what it does not need.

        Where embeddings are given, neither texts nor images need be there.

        Raises `DataError` where captions have no text or are empty, images are not at hand, and rows have no
        references; `InputError` where there are no references at all.
        """
        if not len(self):
            raise DataError("there are no captions", where=self.name)
        needs = metric.needs
        references = self.references if "references" in needs else None
        if "references" in needs and references is None:
            raise InputError(
                f"{self.name} has no references, which {metric.identity.name} compares with",
                hint=_without_references(metric.identity.name),
            )
        if references is not None and not references.counts.all():
            raise DataError(
                f"a caption has no references, which {metric.identity.name} compares with",
                where=self.row(int(np.argmin(references.counts))),
                given=f"{int((references.counts == 0).sum())} of {len(self)} without",
                hint=_without_references(metric.identity.name),
            )
        image = self.image if "images" in needs else None
        if "images" in needs and image is None:
            raise InputError(
                f"{metric.identity.name} looks at images, and none were given",
                where=self.name,
                hint="name their folder with --images, or that of videos with --videos",
            )
        if not isinstance(getattr(metric, "embedder", None), GivenEmbeddings):
            self._check_texts(self.candidate, "candidate")
            if references is not None:
                self._check_texts(references.captions, "reference")
            if image is not None:
                self._check_images(image)
        return replace(self, image=image, references=references)

    def _check_texts(self, positions: Int64[ndarray, "some"], kind: str) -> None:
        for position in np.unique(positions):
            text = self.captions[position].text
            if text is None:
                raise DataError(
                    f"the {kind} is not at hand",
                    where=f"{self.name}, '{self.captions[position].id}'",
                    hint="give the captions with --data, or measure from given scores",
                )

    def _check_images(self, image: Int64[ndarray, "rows"]) -> None:
        shown = [self.images[position] for position in np.unique(image)]
        gone = [image.id for image in shown if not _exists(image)]
        if gone:
            raise DataError(
                "images are not at hand",
                where=self.name,
                given=f"{len(gone)} of {len(shown)} missing, first: {', '.join(gone[:3])}",
                hint="give their folder with --images, or measure only the questions whose images are there "
                "with --available",
            )


def _exists(image: Image) -> bool:
    source = image.source
    return source is not None and (not isinstance(source, FileSource) or source.path.exists())


def _without_references(name: str) -> str:
    """Which metric does without references, in place of the one called `name`."""
    kind = name.partition(":")[2].partition(" ")[0]
    if kind.startswith("ref-"):
        return f"metric:{kind.removeprefix('ref-')} does without"
    return "metric:clip-s, metric:pac-s and metric:em-score do without, with a model (--scorer)"


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
