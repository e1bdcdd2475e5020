"""The forms in which people were asked about captions: rated one by one, or preferred one to another.

Either may carry references: captions that people wrote of the same image or video, for metrics that read
them.
"""

from dataclasses import dataclass, field, replace
from typing import ClassVar, Literal

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data.questions import Ids, Questions, check_shape, first_use
from counterfoil.data.references import References, check_references
from counterfoil.errors import DataError


@dataclass(frozen=True, eq=False)
class Rated(Questions):
    """A caption (the candidate) of an image or a video, and what people gave it.

    `captions` and `images` are (n,) positions, `ratings` is (n, raters) with NaN where one is missing;
    every question has one, at least. `raters` says how several are correlated: "points" makes every rating a
    point of its own (Flickr8k-Expert), "apart" takes the correlation with each rater and averages them
    (VATEX-EVAL). Scores are rounded to `decimals` before they are ranked, where the protocol does so.
    """

    captions: Ids = field(kw_only=True)
    images: Ids = field(kw_only=True)
    ratings: NDArray[np.float64] = field(kw_only=True)
    references: References | None = field(default=None, kw_only=True)
    raters: Literal["points", "apart"] = field(default="points", kw_only=True)
    decimals: int | None = field(default=None, kw_only=True)

    form: ClassVar[str] = "rated"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape("captions", self.captions, (len(self.ids),))
        check_shape("images", self.images, (len(self.ids),))
        if self.ratings.ndim != 2 or len(self.ratings) != len(self.ids) or not self.ratings.shape[1]:
            raise DataError("ratings have the wrong shape", given=self.ratings.shape, allowed="(n, raters)")
        if np.isinf(self.ratings).any():
            raise DataError("a rating is infinite", allowed="finite numbers, or none")
        unrated = np.flatnonzero(np.isnan(self.ratings).all(axis=1))
        if len(unrated):
            raise DataError(
                "a question has no rating",
                where=f"question '{self.ids[unrated[0]]}'",
                given=f"{len(unrated)} of {len(self.ids)} without any",
                hint="leave such questions out",
            )
        check_references(self.references, len(self.ids))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n,)."""
        return (len(self),)

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every score asked for, each of shape (n,)."""
        return self.captions, self.images

    def about(self) -> tuple[Ids, Ids]:
        """The image and the candidate."""
        return self.images[:, None], self.captions[:, None]

    def used(self) -> tuple[Ids, Ids]:
        """Positions of the candidates and of the images, in order of first use; no references."""
        return first_use(self.captions), first_use(self.images)

    def select(self, rows: Ids) -> "Rated":
        """The chosen questions."""
        return replace(
            self,
            **self.chosen(rows),
            captions=self.captions[rows],
            images=self.images[rows],
            ratings=self.ratings[rows],
            references=None if self.references is None else self.references.take(rows),
        )

    def mentioned(self) -> tuple[Ids, Ids]:
        """Positions of all captions (candidates and references) and images it knows, each sorted."""
        return _mentioned(self.captions, self.references), np.unique(self.images)

    def renumber(self, caption_of: Ids, image_of: Ids) -> "Rated":
        """The same questions where caption c and image i are now at `caption_of[c]` and `image_of[i]`."""
        return replace(
            self,
            captions=caption_of[self.captions],
            images=image_of[self.images],
            references=self.references and self.references.renumber(caption_of),
        )


@dataclass(frozen=True, eq=False)
class Preference(Questions):
    """Two candidates for one image or video, and how many people preferred each.

    `votes` is (n, 2), not negative. Each candidate is one caption or several sentences, each of its own image
    (a segment of the video): `captions` and `images` are (rows,) positions, row r belongs to candidate
    `sides[r]` (0 or 1) of question `owners[r]`, and a candidate's score is the mean over its rows. Rows lie
    in the order of questions and sides. `references` has an entry per row.

    `label` is the preferred one, (n,) 0 or 1: that of more votes; where both have as many it was drawn, once,
    when the benchmark was read. With `sample`, metrics that read references get that many of each row, in
    `draws` draws from `seed`, and a measure is the mean over the draws (Pascal-50S: 5 of 48, 5 times).
    """

    captions: Ids = field(kw_only=True)
    images: Ids = field(kw_only=True)
    owners: Ids = field(kw_only=True)
    sides: Ids = field(kw_only=True)
    votes: NDArray[np.float64] = field(kw_only=True)
    label: Ids = field(kw_only=True)
    references: References | None = field(default=None, kw_only=True)
    sample: int | None = field(default=None, kw_only=True)
    draws: int = field(default=1, kw_only=True)
    seed: int = field(default=0, kw_only=True)

    form: ClassVar[str] = "preference"

    @classmethod
    def between(
        cls,
        ids: tuple[str, ...],
        captions: Ids,
        images: Ids,
        votes: NDArray[np.float64],
        label: Ids,
        **more: object,
    ) -> "Preference":
        """Questions whose candidates are single captions of one image: `captions` (n, 2), `images` (n,).

        References, where given, have an entry per question, shared by both candidates.
        """
        n = len(ids)
        check_shape("captions", captions, (n, 2))
        found = more.pop("references", None)
        return cls(
            ids,
            captions=captions.reshape(-1),
            images=np.repeat(images, 2),
            owners=np.repeat(np.arange(n), 2),
            sides=np.tile(np.array([0, 1]), n),
            votes=votes,
            label=label,
            references=found.take(np.repeat(np.arange(n), 2)) if isinstance(found, References) else None,
            **more,  # type: ignore[arg-type]
        )

    def __post_init__(self) -> None:
        super().__post_init__()
        n, rows = len(self.ids), len(self.captions)
        check_shape("votes", self.votes, (n, 2))
        check_shape("labels", self.label, (n,))
        for name, column in (("images", self.images), ("owners", self.owners), ("sides", self.sides)):
            check_shape(name, column, (rows,))
        if not (np.isfinite(self.votes).all() and (self.votes >= 0).all()):
            raise DataError("votes are not counts", allowed="finite numbers, 0 or more")
        ahead = np.sign(self.votes[:, 1] - self.votes[:, 0])
        wrong = np.flatnonzero(((ahead > 0) & (self.label != 1)) | ((ahead < 0) & (self.label != 0)))
        if len(wrong):
            raise DataError("the label is not that of more votes", where=f"question '{self.ids[wrong[0]]}'")
        place = self.owners * 2 + self.sides
        if np.any(np.diff(place) < 0) or not np.array_equal(np.unique(place), np.arange(2 * n)):
            raise DataError(
                "the rows of the candidates are not in order, or a candidate has none",
                allowed="every question's first candidate, then its second",
            )
        check_references(self.references, rows)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n, 2); a metric that draws references gives (n, 2, draws)."""
        return (len(self), 2)

    def pairs(self) -> tuple[Ids, Ids]:
        """(caption, image) positions of every row, each of shape (rows,)."""
        return self.captions, self.images

    def collect(self, values: ndarray) -> ndarray:
        """Scores of rows, (rows,), as those of candidates, (n, 2): the mean over a candidate's sentences."""
        place = self.owners * 2 + self.sides
        sums = np.bincount(place, weights=values, minlength=2 * len(self))
        return (sums / np.bincount(place, minlength=2 * len(self))).reshape(len(self), 2)

    def drawn(self) -> tuple[References, ...]:
        """The references of each draw; all of them, once, where none are drawn."""
        if self.references is None:
            return ()
        if self.sample is None:
            return (self.references,)
        # Both candidates of a question see the same references, so questions draw and not rows.
        first = np.flatnonzero(np.diff(self.owners, prepend=-1))
        rng = np.random.default_rng(self.seed)
        if np.any(self.references.counts != self.references.counts[first][self.owners]):
            raise DataError("references are drawn where both candidates share them")
        own = self.references.take(first)
        return tuple(own.sample(self.sample, rng).take(self.owners) for _ in range(self.draws))

    def about(self) -> tuple[Ids, Ids]:
        """The images and the captions of both candidates."""
        nth = np.arange(len(self.owners)) - np.searchsorted(self.owners, self.owners)
        both = np.full((2, len(self), int(nth.max()) + 1), -1, dtype=np.int64)
        both[:, self.owners, nth] = self.images, self.captions
        return both[0], both[1]

    def used(self) -> tuple[Ids, Ids]:
        """Positions of the candidates and of the images, in order of first use; no references."""
        return first_use(self.captions), first_use(self.images)

    def select(self, rows: Ids) -> "Preference":
        """The chosen questions."""
        starts = np.searchsorted(self.owners, np.arange(len(self) + 1))
        of_rows = [np.arange(starts[row], starts[row + 1]) for row in rows]
        kept = np.concatenate([*of_rows, np.empty(0, np.int64)])
        return replace(
            self,
            **self.chosen(rows),
            captions=self.captions[kept],
            images=self.images[kept],
            owners=np.repeat(np.arange(len(rows)), [len(part) for part in of_rows]),
            sides=self.sides[kept],
            votes=self.votes[rows],
            label=self.label[rows],
            references=None if self.references is None else self.references.take(kept),
        )

    def mentioned(self) -> tuple[Ids, Ids]:
        """Positions of all captions (candidates and references) and images it knows, each sorted."""
        return _mentioned(self.captions, self.references), np.unique(self.images)

    def renumber(self, caption_of: Ids, image_of: Ids) -> "Preference":
        """The same questions where caption c and image i are now at `caption_of[c]` and `image_of[i]`."""
        return replace(
            self,
            captions=caption_of[self.captions],
            images=image_of[self.images],
            references=self.references and self.references.renumber(caption_of),
        )


def _mentioned(captions: Ids, references: References | None) -> Ids:
    return np.unique(captions if references is None else np.concatenate([captions, references.captions]))
