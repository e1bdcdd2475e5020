"""Splits of a benchmark by image, for training and for testing, and what that of a gallery leaves out."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.base import Ids
from counterfoil.benchmarks.forms.gallery import Gallery, RetrievalDirection
from counterfoil.benchmarks.forms.release import SPLIT, FormRelease
from counterfoil.benchmarks.references import bounds
from counterfoil.errors import DataError, InputError
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels
from counterfoil.stats.dependence import Sharing

#: Queries whose right answers by rule are counted at once.
_AT_ONCE = 1024


@dataclass(frozen=True)
class SplitLoss:
    """What a split of a gallery leaves out: of so many right `answers` those `cut`, which join two splits.

    `queries` is how many have no right answer left. Both directions count.

    >>> print(SplitLoss(1200, 30, 0))
    30 of 1,200 right answers join an image and a caption of two splits and are left out
    """

    answers: int
    cut: int
    queries: int

    def __str__(self) -> str:
        lost = f"; {self.queries:,} queries have none left" if self.queries else ""
        return (
            f"{self.cut:,} of {self.answers:,} right answers join an image and a caption of two splits and "
            f"are left out{lost}"
        )


def divided(gallery: Gallery, tested: NDArray[np.bool_]) -> tuple[Gallery, SplitLoss]:
    """The gallery in two parts, and what is lost: the images of the mask `tested` are in the test part.

    A caption is in the part of the image that it was written for, or else of its first right image; one
    without either is in that for training. A query sees the items of its own part alone, and the grouping
    "split" has its name. Right answers in the other part are no longer any; by a rule those at its widest
    threshold are counted. Raises `DataError` for a gallery that is in parts already.
    """
    if gallery.image_parts is not None:
        raise DataError(
            "the gallery is in parts already, each with its own queries", hint="leave --split out"
        )
    images = tested.astype(np.int64)
    first_right = np.full(gallery.n_captions, -1)
    for search, asks_images in ((gallery.i2t, True), (gallery.t2i, False)):
        if isinstance(search.positives, Qrels):
            held = search.positives.items >= 0
            asking, item = search.queries[search.positives.queries[held]], search.positives.items[held]
            image, caption = (asking, item) if asks_images else (item, asking)
            # Of several the first is written last.
            first_right[caption[::-1]] = image[::-1]
    at = np.where(gallery.owners >= 0, gallery.owners, first_right)
    captions = np.where(at >= 0, images[at], 0)
    i2t, t2i = _within(gallery.i2t, images, captions), _within(gallery.t2i, captions, images)
    parts = np.concatenate([images[i2t.queries], captions[t2i.queries]])
    labels = tuple("test" if part else "train" for part in parts.tolist())
    split = replace(
        gallery,
        i2t=i2t,
        t2i=t2i,
        image_parts=images,
        caption_parts=captions,
        groupings={**gallery.groupings, SPLIT: labels},
    )
    answers = _right(gallery.i2t) + _right(gallery.t2i)
    left = sum(
        _right(search, *parts) for search, *parts in ((i2t, images, captions), (t2i, captions, images))
    )
    return split, SplitLoss(answers, answers - left, int((gallery.defined & ~split.defined).sum()))


def _within(search: RetrievalDirection, of_query: Ids, of_item: Ids) -> RetrievalDirection:
    """The search without right answers in other parts; what the gallery does not hold stays, as do rules."""
    listed = search.positives
    if isinstance(listed, Plausible):
        return search
    same_part = (listed.items < 0) | (of_item[listed.items] == of_query[search.queries][listed.queries])
    counts = np.bincount(listed.queries[same_part], minlength=len(search))
    left = Qrels(bounds(counts), listed.items[same_part], listed.gains[same_part])
    return RetrievalDirection(search.queries, left)


def _right(search: RetrievalDirection, of_query: Ids | None = None, of_item: Ids | None = None) -> int:
    """How many right answers its queries have in the gallery, or in their parts."""
    positives = search.positives
    if isinstance(positives, Qrels):
        return int((positives.items >= 0).sum())
    count = 0
    for at in range(0, len(search), _AT_ONCE):
        right = positives.distances(slice(at, at + _AT_ONCE)) <= max(positives.thresholds)
        if of_query is not None:
            right &= of_query[search.queries[at : at + _AT_ONCE]][:, None] == of_item
        count += int(right.sum())
    return count


def with_split(benchmark: Benchmark, release: FormRelease, share: float, seed: int) -> tuple[Benchmark, str]:
    """The benchmark with a grouping "split", and what that left out; raises `DataError` where it cannot be.

    Questions that show one photograph stay together (`split_by_image`). A gallery becomes two parts, of
    images with the captions that were written for them: a query sees the items of its own split, and right
    answers in the other one are left out.
    """
    if SPLIT in benchmark.questions.groupings:
        raise DataError(
            "the questions are in splits already",
            where=benchmark.name,
            given=", ".join(dict.fromkeys(benchmark.questions.groupings[SPLIT])),
            hint="leave --split out",
        )
    if not release.tables[0].questions:
        photos = np.unique(np.array(benchmark.photos), return_inverse=True)[1].reshape(-1)
        tested = _drawn(photos, share, seed, benchmark.name)
        gallery, lost = divided(benchmark.gallery, tested)
        return replace(benchmark, questions=gallery), str(lost)
    tested = split_by_image(benchmark, share, seed)
    labels = tuple("test" if is_test else "train" for is_test in tested)
    questions = replace(benchmark.questions, groupings={**benchmark.questions.groupings, SPLIT: labels})
    return replace(benchmark, questions=questions), ""


def split_by_image(benchmark: Benchmark, share: float, seed: int) -> NDArray[np.bool_]:
    """(n,) which questions are tested: about `share` of them, none of which has an image that others have.

    Questions that show one photograph, directly or through others, stay together; such sets are drawn in an
    order from `seed` for as long as the share is not passed. Raises `InputError` for a share that is not
    between 0 and 1, and `DataError` where all questions hang together, or a split would be empty.

    >>> from counterfoil.world.benchmarks import read
    >>> from counterfoil.benchmarks.benchmark import cards_of
    >>> quads = next(card for card in cards_of("counterfoil.world") if card.name == "world-quads")
    >>> float(split_by_image(read(quads, None, None), 0.2, seed=0).mean())
    0.2
    """
    images = benchmark.sharing.images
    parts = Sharing(images, np.zeros((len(images), 0), dtype=np.int64)).components
    return _drawn(parts, share, seed, benchmark.name)


def _drawn(parts: NDArray[np.int64], share: float, seed: int, where: str) -> NDArray[np.bool_]:
    """(n,) which are tested: whole parts, in an order from `seed`, for as long as the share is not passed."""
    if not 0 < share < 1:
        raise InputError("not a share", where="--split", given=share, allowed="above 0 and below 1")
    sizes = np.bincount(parts)
    wanted, taken = share * len(parts), np.zeros(len(sizes), dtype=bool)
    held = 0
    for part in np.random.default_rng(seed).permutation(len(sizes)):
        if held + sizes[part] <= wanted + 0.5:
            taken[part] = True
            held += int(sizes[part])
    if not taken.any() or taken.all():
        raise DataError(
            "the questions cannot be split by image",
            where=where,
            given=f"{len(sizes):,} sets of questions that share images, the largest of {sizes.max():,}",
            hint="leave --split out, or give another share",
        )
    return np.asarray(taken[parts])
