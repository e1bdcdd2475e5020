"""The forms of question. Each is a table of positions into a benchmark's images and captions.

A form holds no scores and knows no model. Positions are columns of integers, so a benchmark of a
hundred thousand questions is a few arrays.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import DataError

Ids = NDArray[np.int64]

#: Up to so many candidates of a choice count as items that its answer depends on; of more, sets of candidates
#: that any two questions share are too many to go through.
MOST_APART = 10


@dataclass(frozen=True, eq=False)
class Questions(ABC):
    """What all forms share: an id per question and named groupings of the questions.

    `groupings` maps a grouping's name ("type", "tag") to one label per question; the empty label means
    "in no group of this grouping".
    """

    ids: tuple[str, ...]
    groupings: Mapping[str, tuple[str, ...]] = field(default_factory=dict, kw_only=True)

    form: ClassVar[str] = "abstract"

    def __post_init__(self) -> None:
        if len(set(self.ids)) != len(self.ids):
            seen: set[str] = set()
            double = next(name for name in self.ids if name in seen or seen.add(name))  # type: ignore[func-returns-value]
            raise DataError("question id occurs twice", given=double, hint="ids must be unique")
        for name, labels in self.groupings.items():
            if len(labels) != len(self.ids):
                raise DataError(
                    f"grouping '{name}' has the wrong length",
                    given=f"{len(labels)} labels",
                    allowed=f"{len(self.ids)}, one per question",
                )

    def __len__(self) -> int:
        return len(self.ids)

    @abstractmethod
    def about(self) -> tuple[Ids, Ids]:
        """Positions of images and of captions that each question is about, (n, k) and (n, l); -1 is none.

        Questions that have one of them in common may be answered alike for it.
        """

    @abstractmethod
    def used(self) -> tuple[Ids, Ids]:
        """Positions of the captions and of the images that questions ask about, in order of first use."""

    def chosen(self, rows: Ids) -> dict[str, Any]:
        """What the chosen questions have of what all forms share, for `dataclasses.replace`."""
        return {
            "ids": tuple(self.ids[row] for row in rows),
            "groupings": {
                name: tuple(labels[row] for row in rows) for name, labels in self.groupings.items()
            },
        }

    def groups(self) -> dict[str, NDArray[np.bool_]]:
        """Every group of every grouping as a mask over the questions, in order of first appearance.

        A label that two groupings use for different questions is written `grouping:label`.
        """
        masks: dict[str, NDArray[np.bool_]] = {}
        for name, labels in self.groupings.items():
            column = np.asarray(labels, dtype=object)
            for label in dict.fromkeys(labels):
                if not label:
                    continue
                mask = column == label
                if label in masks and np.array_equal(masks[label], mask):
                    continue
                masks[f"{name}:{label}" if label in masks else label] = mask
        return masks


@dataclass(frozen=True, eq=False)
class Quad(Questions):
    """Two captions and two images; caption 0 belongs to image 0, caption 1 to image 1.

    `captions` and `images` are (n, 2) positions into the benchmark's items.
    """

    captions: Ids = field(kw_only=True)
    images: Ids = field(kw_only=True)

    form: ClassVar[str] = "quad"
    slots: ClassVar[int] = 2

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape("captions", self.captions, (len(self), 2))
        check_shape("images", self.images, (len(self), 2))

    def about(self) -> tuple[Ids, Ids]:
        """Both images and both captions."""
        return self.images, self.captions

    def used(self) -> tuple[Ids, Ids]:
        """Positions of the captions, and of the images, in order of first use."""
        return first_use(self.captions), first_use(self.images)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n, 2, 2)."""
        return (len(self), 2, 2)

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every score asked for, each of shape (n, 2, 2)."""
        captions = np.repeat(self.captions[:, :, None], 2, axis=2)
        images = np.repeat(self.images[:, None, :], 2, axis=1)
        return captions, images

    def mentioned(self) -> tuple[Ids, Ids]:
        """Positions of all captions and images it knows, each sorted."""
        return np.unique(self.captions), np.unique(self.images)

    def select(self, rows: Ids) -> "Quad":
        """The chosen questions."""
        return replace(self, **self.chosen(rows), captions=self.captions[rows], images=self.images[rows])

    def renumber(self, caption_of: Ids, image_of: Ids) -> "Quad":
        """The same questions where caption c and image i are now at `caption_of[c]` and `image_of[i]`."""
        return replace(self, captions=caption_of[self.captions], images=image_of[self.images])


@dataclass(frozen=True, eq=False)
class Choice(Questions):
    """One item and k candidates of the other kind, the first `correct` of them right.

    `query` is (n,) and `candidates` (n, k); `asks` says which kind the query is of: "image" (choose among
    captions) or "caption" (choose among images).
    """

    query: Ids = field(kw_only=True)
    candidates: Ids = field(kw_only=True)
    correct: int = field(default=1, kw_only=True)
    asks: Literal["image", "caption"] = field(default="image", kw_only=True)

    form: ClassVar[str] = "choice"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape("query", self.query, (len(self),))
        if self.candidates.ndim != 2 or len(self.candidates) != len(self):
            raise DataError(
                "candidates have the wrong shape", given=self.candidates.shape, allowed=f"({len(self)}, k)"
            )
        if not 0 < self.correct < self.candidates.shape[1]:
            raise DataError(
                "the number of correct candidates does not fit",
                given=self.correct,
                allowed=f"1 to {self.candidates.shape[1] - 1}",
            )

    def about(self) -> tuple[Ids, Ids]:
        """The query, and the candidates; of more than `MOST_APART` those that are right.

        Wrong candidates decide too: with none of them counted, intervals of choices among six captions of a
        pool covered 56 to 86 % in simulation where captions matter.
        """
        apart = self.candidates.shape[1] <= MOST_APART
        candidates, query = (
            self.candidates if apart else self.candidates[:, : self.correct],
            self.query[:, None],
        )
        return (query, candidates) if self.asks == "image" else (candidates, query)

    def used(self) -> tuple[Ids, Ids]:
        """Positions of the captions, and of the images, in order of first use."""
        captions, images = self.pairs()
        return first_use(captions), first_use(images)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n, k)."""
        return (len(self), self.candidates.shape[1])

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every score asked for, each of shape (n, k)."""
        query = np.repeat(self.query[:, None], self.candidates.shape[1], axis=1)
        return (self.candidates, query) if self.asks == "image" else (query, self.candidates)

    def mentioned(self) -> tuple[Ids, Ids]:
        """Positions of all captions and images it knows, each sorted."""
        captions, images = self.pairs()
        return np.unique(captions), np.unique(images)

    def select(self, rows: Ids) -> "Choice":
        """The chosen questions."""
        return replace(self, **self.chosen(rows), query=self.query[rows], candidates=self.candidates[rows])

    def renumber(self, caption_of: Ids, image_of: Ids) -> "Choice":
        """The same questions where caption c and image i are now at `caption_of[c]` and `image_of[i]`."""
        of_query, of_candidates = (image_of, caption_of) if self.asks == "image" else (caption_of, image_of)
        return replace(self, query=of_query[self.query], candidates=of_candidates[self.candidates])


def first_use(positions: ndarray) -> Ids:
    """The distinct positions, in order of first use."""
    values, first = np.unique(positions, return_index=True)
    return values[np.argsort(first)].astype(np.int64)


def check_shape(name: str, array: ndarray, shape: tuple[int, ...]) -> None:
    """Raise `DataError` unless an array of positions has this shape; `name` in the plural."""
    if array.shape != shape:
        raise DataError(f"{name} have the wrong shape", given=array.shape, allowed=str(shape))
