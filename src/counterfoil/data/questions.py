"""The forms of question. Each is a table of positions into a benchmark's images and captions.

A form holds no scores and knows no model. Positions are columns of integers, so a benchmark of a
hundred thousand questions is a few arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.errors import DataError
from counterfoil.metrics.plausible import Plausible
from counterfoil.metrics.ranks import Positives

Ids = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Questions:
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

    def used(self) -> tuple[Ids, Ids]:
        """Positions of the captions and of the images that questions ask about, in order of first use."""
        raise NotImplementedError

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
        _check_shape("captions", self.captions, (len(self), 2))
        _check_shape("images", self.images, (len(self), 2))

    def used(self) -> tuple[Ids, Ids]:
        """Positions of the captions, and of the images, in order of first use."""
        return _first_use(self.captions), _first_use(self.images)

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every score asked for, each of shape (n, 2, 2)."""
        captions = np.repeat(self.captions[:, :, None], 2, axis=2)
        images = np.repeat(self.images[:, None, :], 2, axis=1)
        return captions, images


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
        _check_shape("query", self.query, (len(self),))
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

    def used(self) -> tuple[Ids, Ids]:
        """Positions of the captions, and of the images, in order of first use."""
        captions, images = self.pairs()
        return _first_use(captions), _first_use(images)

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every score asked for, each of shape (n, k)."""
        query = np.repeat(self.query[:, None], self.candidates.shape[1], axis=1)
        return (self.candidates, query) if self.asks == "image" else (query, self.candidates)


@dataclass(frozen=True, eq=False)
class Search:
    """One direction of retrieval: queries of one kind, a gallery of the other, and what is right.

    `queries` are positions of the queries among the benchmark's images (image to text) or captions (text to
    image). `positives` has a row per query; its items are positions in the other kind, -1 for a right answer
    that the gallery does not hold. With a rule in place of a list (`Plausible`), right is what the rule says.
    """

    queries: Ids
    positives: Positives | Plausible

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Which queries have a right answer; by rule their own image, at least, is one."""
        if isinstance(self.positives, Plausible):
            return np.ones(len(self.queries), dtype=bool)
        return self.positives.defined

    def take(self, rows: Ids) -> "Search":
        """The search of some of the queries."""
        return Search(self.queries[rows], self.positives.take(rows))


@dataclass(frozen=True, eq=False)
class Gallery(Questions):
    """Every query against a whole gallery, in both directions.

    A question is a query: first those of `i2t` (images, among all captions), then those of `t2i` (captions,
    among all images); `ids` has one for each, written "i2t/IMAGE" and "t2i/CAPTION". `owners` gives for every
    caption the position of the image it was written for, -1 where nobody knows. With `image_parts` and
    `caption_parts` (the part of every item, 0, 1, ...) a query sees only the items of its own part, and a
    measure is the mean over the parts: COCO 1K is five parts of a thousand images.
    """

    i2t: Search = field(kw_only=True)
    t2i: Search = field(kw_only=True)
    owners: Ids = field(kw_only=True)
    #: How many images there are; there are as many captions as owners.
    n_images: int = field(kw_only=True)
    image_parts: Ids | None = field(default=None, kw_only=True)
    caption_parts: Ids | None = field(default=None, kw_only=True)

    form: ClassVar[str] = "gallery"

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.ids) != len(self.i2t) + len(self.t2i):
            raise DataError(
                "not one id per query",
                given=f"{len(self.ids)} ids",
                allowed=f"{len(self.i2t)} images and {len(self.t2i)} captions",
            )
        if (self.image_parts is None) != (self.caption_parts is None):
            raise DataError("only one kind of item is in parts", hint="give parts of images and of captions")
        for name, search, of_query, of_item in (
            ("image", self.i2t, self.n_images, self.n_captions),
            ("caption", self.t2i, self.n_captions, self.n_images),
        ):
            _check_search(name, search, of_query, of_item)
        strange = self.owners[(self.owners < -1) | (self.owners >= self.n_images)]
        if len(strange):
            raise DataError(
                "a caption's image is no image of the gallery",
                given=int(strange[0]),
                allowed=f"0 to {self.n_images - 1}, or -1",
            )
        if self.image_parts is not None and self.caption_parts is not None:
            _check_shape("parts of images", self.image_parts, (self.n_images,))
            _check_shape("parts of captions", self.caption_parts, (self.n_captions,))
            if min(self.image_parts.min(initial=0), self.caption_parts.min(initial=0)) < 0:
                raise DataError("an item is in no part", given="a part below 0", allowed="0, 1, ...")
            _check_parts("i2t", self.i2t, self.image_parts, self.caption_parts)
            _check_parts("t2i", self.t2i, self.caption_parts, self.image_parts)

    @property
    def n_captions(self) -> int:
        """How many captions there are."""
        return len(self.owners)

    @property
    def directions(self) -> NDArray[np.int64]:
        """0 for every image query, then 1 for every caption query."""
        return np.repeat([0, 1], [len(self.i2t), len(self.t2i)])

    @property
    def query_parts(self) -> NDArray[np.int64]:
        """The part of every query, 0 throughout where there are none."""
        if self.image_parts is None or self.caption_parts is None:
            return np.zeros(len(self), dtype=np.int64)
        return np.concatenate([self.image_parts[self.i2t.queries], self.caption_parts[self.t2i.queries]])

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Which queries have a right answer: the others have no value under any measure."""
        return np.concatenate([self.i2t.defined, self.t2i.defined])

    def clusters(self) -> Ids:
        """A number per query: an image and the captions written for it share one."""
        own = np.where(self.owners >= 0, self.owners, self.n_images + np.arange(self.n_captions))
        together = np.concatenate([self.i2t.queries, own[self.t2i.queries]])
        _, first, inverse = np.unique(together, return_index=True, return_inverse=True)
        return np.argsort(np.argsort(first))[inverse.reshape(-1)].astype(np.int64)

    def used(self) -> tuple[Ids, Ids]:
        """All captions and all images: the whole gallery."""
        return np.arange(self.n_captions), np.arange(self.n_images)

    def select(self, rows: Ids) -> "Gallery":
        """The gallery with some of its queries (rows of `ids`, ascending)."""
        split = len(self.i2t)
        return replace(
            self,
            ids=tuple(self.ids[i] for i in rows),
            groupings={name: tuple(labels[i] for i in rows) for name, labels in self.groupings.items()},
            i2t=self.i2t.take(rows[rows < split]),
            t2i=self.t2i.take(rows[rows >= split] - split),
        )


def clusters(items: Sequence[ndarray]) -> Ids:
    """Questions that share an item, directly or through others, get the same number.

    `items` are integer arrays with one row per question; equal numbers within one array mean the same item.
    Returns (n,) cluster numbers 0, 1, 2, ... in order of first appearance.

    >>> clusters([np.array([[0, 1], [2, 3], [3, 4]])])
    array([0, 1, 1])
    """
    from scipy.sparse import coo_matrix
    from scipy.sparse.csgraph import connected_components

    n = len(items[0])
    rows, columns, offset = [], [], n
    for positions in items:
        flat = positions.reshape(n, -1)
        _, codes = np.unique(flat, return_inverse=True)
        rows.append(np.repeat(np.arange(n), flat.shape[1]))
        columns.append(codes.reshape(-1) + offset)
        offset += int(codes.max(initial=-1)) + 1
    row, column = np.concatenate(rows), np.concatenate(columns)
    graph = coo_matrix((np.ones(len(row), dtype=np.int8), (row, column)), shape=(offset, offset))
    labels = connected_components(graph, directed=False)[1][:n]
    _, first, inverse = np.unique(labels, return_index=True, return_inverse=True)
    order = np.argsort(np.argsort(first))
    return order[inverse.reshape(-1)].astype(np.int64)


def _first_use(positions: ndarray) -> Ids:
    values, first = np.unique(positions, return_index=True)
    return values[np.argsort(first)].astype(np.int64)


def _check_search(kind: str, search: Search, queries: int, items: int) -> None:
    """That a search points into the benchmark's items and has a row of right answers per query."""
    positions = search.queries
    strange = positions[(positions < 0) | (positions >= queries)]
    if len(strange):
        raise DataError(f"a query is no {kind}", given=int(strange[0]), allowed=f"0 to {queries - 1}")
    if len(np.unique(positions)) != len(positions):
        raise DataError(f"an {kind} is a query twice" if kind == "image" else "a caption is a query twice")
    found = search.positives
    if isinstance(found, Plausible):
        _check_shape(f"codes of {kind} queries", found.query_codes, (len(search), found.item_codes.shape[1]))
        _check_shape("codes of items", found.item_codes, (items, found.item_codes.shape[1]))
        return
    if len(found.counts) != len(search):
        raise DataError(
            "not a row of right answers per query", given=len(found.counts), allowed=str(len(search))
        )
    strange = found.items[(found.items < -1) | (found.items >= items)]
    if len(strange):
        raise DataError(
            "a right answer is outside the gallery",
            given=int(strange[0]),
            allowed=f"0 to {items - 1}, or -1 for one that the gallery does not hold",
        )


def _check_parts(name: str, search: Search, of_query: Ids, of_item: Ids) -> None:
    """That no right answer lies in another part than its query: there it could never be found."""
    if isinstance(search.positives, Plausible):
        return
    present = search.positives.items >= 0
    asked = of_query[search.queries][search.positives.queries[present]]
    if (of_item[search.positives.items[present]] != asked).any():
        raise DataError(f"a right answer of {name} lies in another part of the gallery than its query")


def _check_shape(name: str, array: ndarray, shape: tuple[int, ...]) -> None:
    if array.shape != shape:
        raise DataError(f"{name} have the wrong shape", given=array.shape, allowed=str(shape))
