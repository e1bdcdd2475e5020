"""Rows to questions, right answers by id for the two searches of a gallery, and counts against the card.

Ids become positions once, in bulk: a benchmark of 25,000 captions is a few arrays.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks import forms
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms.base import Ids
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.references import bounds
from counterfoil.benchmarks.tables import first_double
from counterfoil.errors import DataError


def quads(
    card: Card,
    ids: Sequence[str],
    captions: tuple[Sequence[str | None], Sequence[str | None]],
    images: tuple[Sequence[Image], Sequence[Image]],
    groupings: Mapping[str, tuple[str, ...]],
    *,
    source: str,
    path: Path | None = None,
    part: bool = False,
) -> Benchmark:
    """Two captions and two images per question; caption j of question "17" is called "17_c{j}".

    Images of one id are one item. As all builders here it checks the card's counts (`check_counts`).
    """
    texts = [text for pair in zip(*captions, strict=True) for text in pair]
    names = [f"{name}_c{j}" for name in ids for j in (0, 1)]
    items, positions = listed([image for pair in zip(*images, strict=True) for image in pair])
    questions = forms.Quad(
        tuple(ids),
        groupings=groupings,
        captions=np.arange(len(texts), dtype=np.int64).reshape(-1, 2),
        images=positions.reshape(-1, 2),
    )
    written = tuple(map(Caption, names, texts))
    return check_counts(Benchmark(card, items, written, questions, source, path), part=part)


def choices(
    card: Card,
    ids: Sequence[str],
    candidates: Sequence[Sequence[Any]],
    query: Sequence[Any],
    groupings: Mapping[str, tuple[str, ...]],
    *,
    asks: Literal["image", "caption"] = "image",
    correct: int = 1,
    caption_ids: Sequence[str] | None = None,
    source: str,
    path: Path | None = None,
    part: bool = False,
) -> Benchmark:
    """One image and k captions per question, or one caption and k images, the first `correct` of them right.

    `candidates` holds a column of n texts, or images, per candidate, None where a question has fewer; caption
    j of question "17" is called "17_c{j}", where a caption is asked about not by `caption_ids`. Images of one
    id are one item.
    """
    rows = list(zip(ids, zip(*candidates, strict=True), strict=True))
    listed_candidates = [
        (f"{name}_c{j}", candidate)
        for name, row in rows
        for j, candidate in enumerate(row)
        if candidate is not None
    ]
    if asks == "image":
        images, of_query = listed(query)
        captions = tuple(starmap(Caption, listed_candidates))
        places = np.arange(len(captions), dtype=np.int64)
    else:
        images, places = listed([image for _, image in listed_candidates])
        captions = tuple(map(Caption, caption_ids or [f"{name}_c0" for name in ids], query))
        of_query = np.arange(len(ids), dtype=np.int64)
    there = np.array([[candidate is not None for candidate in row] for _, row in rows], dtype=bool)
    positions = np.full(there.shape, -1, dtype=np.int64)
    positions[there] = places
    questions = forms.Choice(
        tuple(ids), groupings=groupings, query=of_query, candidates=positions, correct=correct, asks=asks
    )
    return check_counts(Benchmark(card, images, captions, questions, source, path), part=part)


def check_counts(benchmark: Benchmark, *, part: bool = False) -> Benchmark:
    """The benchmark itself, if it has as many questions as its card says, in all and in each group.

    A group may have as many as another edition of the release has (`Card.also`). With `part`, some subsets
    may be left out: those that are there are checked, not groups across them, nor the sum. Raises
    `DataError` naming the group.
    """
    card, groups = benchmark.card, benchmark.questions.groups()
    whole = set(benchmark.questions.groupings.get("subset", ())) if part else set(card.counts)
    for name, expected in card.counts.items():
        if name not in whole:
            continue
        count = int(groups[name].sum()) if name in groups else 0
        allowed = [expected, *([card.also[name]] if name in card.also else [])]
        if count not in allowed:
            raise _miscounted(benchmark, f"in group '{name}'", count, allowed)
    if card.size is not None and not part:
        sizes = [card.size, *(card.size + n - card.counts[name] for name, n in card.also.items())]
        if len(benchmark) not in sizes:
            raise _miscounted(benchmark, "in all", len(benchmark), sorted(set(sizes)))
    return benchmark


def _miscounted(benchmark: Benchmark, place: str, count: int, allowed: Sequence[int]) -> DataError:
    return DataError(
        f"not the number of questions {benchmark.card.title} has {place}",
        where=benchmark.source,
        given=f"{count:,}",
        allowed=" or ".join(f"{n:,}" for n in allowed),
        hint="is the file cut off, or another release? your own selection is read with --no-counts",
    )


def listed(images: Sequence[Image]) -> tuple[tuple[Image, ...], NDArray[np.int64]]:
    """Distinct images in order of first appearance, and the position of each one given."""
    number: dict[str, int] = {}
    positions = np.asarray([number.setdefault(image.id, len(number)) for image in images], dtype=np.int64)
    _, first = np.unique(positions, return_index=True)
    return tuple(images[i] for i in first), positions


@dataclass(frozen=True, eq=False)
class IdPositions:
    """Positions of whole-number ids; raises `DataError` where an id occurs twice.

    >>> IdPositions(np.array([30, 10, 20]), "image", "ids.npy").of(np.array([10, 40, 30]))
    array([ 1, -1,  0])
    """

    ids: Ids
    kind: str
    where: object

    def __post_init__(self) -> None:
        ordered = np.sort(self.ids)
        double = ordered[1:][np.diff(ordered) == 0]
        if len(double):
            raise DataError(
                f"{self.kind} id occurs twice", where=self.where, given=int(double[0]), hint="ids are unique"
            )

    def of(self, ids: Ids) -> Ids:
        """The position of each id, -1 where there is none such."""
        if not len(self.ids):
            return np.full(len(ids), -1, dtype=np.int64)
        order = np.argsort(self.ids, kind="stable")
        near = np.minimum(np.searchsorted(self.ids, ids, sorter=order), len(order) - 1)
        return np.where(self.ids[order[near]] == ids, order[near], -1).astype(np.int64)


def search(
    queries: Ids,
    pairs: tuple[Ids, Ids],
    gains: NDArray[np.float64] | None = None,
    *,
    names: Sequence[str],
    where: object,
) -> "forms.RetrievalDirection":
    """The search of some items, as positions, from pairs of (row of `queries`, position of what is right).

    Positions of right answers are -1 where the gallery does not hold them. Within a query they are sorted.
    `names` calls the queries in messages. Raises `DataError` where nothing is right for any query, where a
    query has right answers and the gallery holds none of them, and where a pair is listed twice.
    """
    from counterfoil.metrics.ranks import Qrels

    query, item = pairs
    if not len(item):
        raise DataError("no query has a right answer", where=where)
    order = np.lexsort((item, query))
    query, item = query[order], item[order]
    double = (np.diff(query) == 0) & (np.diff(item) == 0) & (item[1:] >= 0)
    if double.any():
        at = int(query[1:][double][0])
        raise DataError("a right answer is listed twice", where=f"{where}, query '{names[at]}'")
    counts = np.bincount(query, minlength=len(queries))
    held = np.bincount(query[item >= 0], minlength=len(queries))
    lost = np.flatnonzero((counts > 0) & (held == 0))
    if len(lost):
        raise DataError(
            f"{len(lost):,} queries have right answers, none of which is in the gallery"
            if len(lost) > 1
            else "the gallery holds none of a query's right answers",
            where=f"{where}, query '{names[lost[0]]}'",
            hint="are these the positives of another gallery?",
        )
    worth = np.ones(len(item)) if gains is None else gains[order]
    return forms.RetrievalDirection(queries, Qrels(bounds(counts), item, worth))


def own(owners: Ids, n_images: int) -> "tuple[forms.RetrievalDirection, forms.RetrievalDirection]":
    """Image to text and text to image where right is what was written for the image, and nothing else.

    A caption of no image (-1) and an image without captions are queries without right answers.
    """
    from counterfoil.metrics.ranks import Qrels

    captions = np.arange(len(owners), dtype=np.int64)
    owned = owners >= 0
    counts, ones = np.bincount(owners[owned], minlength=n_images), np.ones(int(owned.sum()))
    i2t = Qrels(bounds(counts), captions[owned][np.argsort(owners[owned], kind="stable")], ones)
    t2i = Qrels(bounds(owned.astype(np.int64)), owners[owned], ones)
    pictures = np.arange(n_images, dtype=np.int64)
    return forms.RetrievalDirection(pictures, i2t), forms.RetrievalDirection(captions, t2i)


def gallery(
    card: Card,
    images: Sequence[Image],
    captions: Sequence[Caption],
    owners: Ids,
    searches: "tuple[forms.RetrievalDirection, forms.RetrievalDirection]",
    *,
    parts: tuple[Ids, Ids] | None = None,
    source: str,
    path: Path | None,
) -> Benchmark:
    """The benchmark of two searches (image to text, text to image) through the same items.

    Its size is its number of queries, and counts on the card are checked: `images`, `captions`, `i2t`, `t2i`
    (queries with a right answer), `i2t_pairs`, `t2i_pairs` (right answers) and `outside` (those of them that
    the gallery does not hold, both directions together). Raises `DataError` naming the count that is off,
    and where no query of a direction has a right answer.
    """
    from counterfoil.metrics.class_rules import Plausible

    i2t, t2i = searches
    for name, direction in (("image", i2t), ("caption", t2i)):
        if not direction.defined.any():
            raise DataError(f"no {name} has a right answer", where=source)
    names = (
        *(f"i2t/{images[i].id}" for i in i2t.queries.tolist()),
        *(f"t2i/{captions[i].id}" for i in t2i.queries.tolist()),
    )
    questions = forms.Gallery(
        names,
        i2t=i2t,
        t2i=t2i,
        owners=owners,
        n_images=len(images),
        image_parts=None if parts is None else parts[0],
        caption_parts=None if parts is None else parts[1],
    )
    card = card if card.size is not None else card.model_copy(update={"size": len(names)})
    benchmark = Benchmark(card, tuple(images), tuple(captions), questions, source, path)
    counts = {"images": len(images), "captions": len(captions), "outside": 0}
    for name, direction in (("i2t", i2t), ("t2i", t2i)):
        counts[name] = int(direction.defined.sum())
        if not isinstance(direction.positives, Plausible):
            counts[f"{name}_pairs"] = len(direction.positives.items)
            counts["outside"] += int(direction.positives.absent.sum())
    for name, expected in card.counts.items():
        if counts[name] != expected:
            raise DataError(
                f"not the number of {_WORDS[name]} {card.title} has",
                where=source,
                given=f"{counts[name]:,}",
                allowed=f"{expected:,}",
                hint="is a file cut off, or another release?",
            )
    return benchmark


def gallery_of_own(
    card: Card,
    captions: Sequence[Sequence[Caption]],
    images: Sequence[Image],
    *,
    source: str,
    path: Path | None,
) -> Benchmark:
    """The gallery of images with the captions written for each, which alone are right.

    Raises `DataError` for an image that is described twice.
    """
    double = first_double(image.id for image in images)
    if double is not None:
        raise DataError("an image is described twice", where=source, given=double)
    owners = np.repeat(np.arange(len(images)), [len(row) for row in captions]).astype(np.int64)
    written = [caption for row in captions for caption in row]
    return gallery(card, images, written, owners, own(owners, len(images)), source=source, path=path)


_WORDS = {
    "images": "images",
    "captions": "captions",
    "i2t": "images with a right answer",
    "t2i": "captions with a right answer",
    "i2t_pairs": "right answers to images",
    "t2i_pairs": "right answers to captions",
    "outside": "right answers outside the gallery",
}
