"""The form in which every query is held against a whole gallery, in both directions."""

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.questions import Ids, Questions, check_shape
from counterfoil.errors import DataError
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Positives


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
    caption the position of the image it was written for, -1 where unknown. With `image_parts` and
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
            check_shape("parts of images", self.image_parts, (self.n_images,))
            check_shape("parts of captions", self.caption_parts, (self.n_captions,))
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
    def sizes(self) -> tuple[Ids, Ids]:
        """How many items each query of either direction looks through: those of its own part."""
        if self.image_parts is None or self.caption_parts is None:
            return np.full(len(self.i2t), self.n_captions), np.full(len(self.t2i), self.n_images)
        n = 1 + int(max(self.image_parts.max(initial=0), self.caption_parts.max(initial=0)))
        images, captions = (np.bincount(p, minlength=n) for p in (self.image_parts, self.caption_parts))
        return captions[self.image_parts[self.i2t.queries]], images[self.caption_parts[self.t2i.queries]]

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Which queries have a right answer: the others have no value under any measure."""
        return np.concatenate([self.i2t.defined, self.t2i.defined])

    def about(self) -> tuple[Ids, Ids]:
        """The image of each query, its own or the one that its caption was written for, and its caption."""
        captions = np.concatenate([np.full(len(self.i2t), -1), self.t2i.queries])
        images = np.concatenate([self.i2t.queries, self.owners[self.t2i.queries]])
        return images[:, None], captions[:, None]

    def used(self) -> tuple[Ids, Ids]:
        """All captions and all images: the whole gallery."""
        return np.arange(self.n_captions), np.arange(self.n_images)

    def select(self, rows: Ids) -> "Gallery":
        """The gallery with some of its queries (rows of `ids`, ascending)."""
        split = len(self.i2t)
        return replace(
            self,
            **self.chosen(rows),
            i2t=self.i2t.take(rows[rows < split]),
            t2i=self.t2i.take(rows[rows >= split] - split),
        )


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
        check_shape(f"codes of {kind} queries", found.query_codes, (len(search), found.item_codes.shape[1]))
        check_shape("codes of items", found.item_codes, (items, found.item_codes.shape[1]))
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
