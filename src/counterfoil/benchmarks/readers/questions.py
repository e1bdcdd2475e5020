"""Rows to questions, right answers by id for the two searches of a gallery, and counts against the card.

Ids become positions once, in bulk: a benchmark of 25,000 captions is a few arrays. Rows of captions that
people judged have ratings, votes and references, or are statements.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain, starmap
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks import forms
from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms.base import Ids
from counterfoil.benchmarks.records import Caption, Image, distinct
from counterfoil.benchmarks.references import References, bounds, collapsed
from counterfoil.benchmarks.tables import DataTable, booleans, first_double, shown
from counterfoil.errors import DataError, ScoreError


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows that are questions: their ids, and a column for each caption and each image of a question.

    Captions are texts, None where a question has fewer; those that people judged are `Caption`s. Caption j of
    question "17" is called "17_c{j}", where not by the columns `caption_ids`. The first `correct` candidates
    of a choice are right. Of a `part` of a release the counts of its subsets alone are checked.
    """

    card: Card
    ids: Sequence[str]
    captions: Sequence[Sequence[Any]]
    images: Sequence[Sequence[Any]]
    groupings: Mapping[str, tuple[str, ...]]
    source: str
    path: Path | None = None
    caption_ids: Sequence[Sequence[str]] = ()
    votes: NDArray[np.float64] | None = None
    correct: int = 1
    part: bool = False

    def quad(self) -> Benchmark:
        """Two captions and two images per question."""
        texts = [text for pair in zip(self.captions[0], self.captions[1], strict=True) for text in pair]
        names = [f"{name}_c{j}" for name in self.ids for j in (0, 1)]
        images = [image for pair in zip(self.images[0], self.images[1], strict=True) for image in pair]
        items, positions = listed(images)
        questions = forms.Quad(
            tuple(self.ids),
            groupings=self.groupings,
            captions=np.arange(len(texts), dtype=np.int64).reshape(-1, 2),
            images=positions.reshape(-1, 2),
        )
        captions = tuple(map(Caption, names, texts))
        whole = Benchmark(self.card, items, captions, questions, self.source, self.path)
        return check_counts(whole, part=self.part)

    def choice(self) -> Benchmark:
        """One image and k captions per question; where there are several images, one caption and k images."""
        by_caption = len(self.images) > 1
        rows = list(zip(*(self.images if by_caption else self.captions), strict=True))
        candidates = [
            (f"{name}_c{j}", one)
            for name, row in zip(self.ids, rows, strict=True)
            for j, one in enumerate(row)
            if one is not None
        ]
        if by_caption:
            images, order = listed([image for _, image in candidates])
            names = self.caption_ids[0] if self.caption_ids else [f"{name}_c0" for name in self.ids]
            captions = tuple(map(Caption, names, self.captions[0]))
            of_query = np.arange(len(self.ids), dtype=np.int64)
        else:
            images, of_query = listed(self.images[0])
            captions = tuple(starmap(Caption, candidates))
            order = np.arange(len(captions), dtype=np.int64)
        there = np.array([[candidate is not None for candidate in row] for row in rows], dtype=bool)
        positions = np.full(there.shape, -1, dtype=np.int64)
        positions[there] = order
        questions = forms.Choice(
            tuple(self.ids),
            groupings=self.groupings,
            query=of_query,
            candidates=positions,
            correct=1 if by_caption else self.correct,
            asks="caption" if by_caption else "image",
        )
        whole = Benchmark(self.card, images, captions, questions, self.source, self.path)
        return check_counts(whole, part=self.part)

    def paraphrase(self) -> Benchmark:
        """The first two captions have one meaning; the image is what they were written of."""
        whole = self.choice()
        parts: dict[str, Any] = {"captions": whole.choices.candidates, "images": whole.choices.query}
        return replace(whole, questions=forms.Paraphrase(tuple(self.ids), groupings=self.groupings, **parts))

    def described(self, written: Sequence[Sequence[Caption]]) -> Benchmark:
        """Images with the captions written for each, which alone are right; columns, or else `written`."""
        images = self.images[0]
        if self.captions:
            rows = zip(images, zip(*self.captions, strict=True), strict=True)
            written = [numbered((text for text in row if text is not None), image.id) for image, row in rows]
        double = first_double(image.id for image in images)
        if double is not None:
            raise DataError("an image is described twice", where=self.source, given=double)
        owners = np.repeat(np.arange(len(images)), [len(row) for row in written]).astype(np.int64)
        captions, searches = list(chain.from_iterable(written)), own_pairs(owners, len(images))
        return gallery(self.card, images, captions, owners, searches, source=self.source, path=self.path)

    def true_or_false(self, truth: NDArray[np.bool_], calibration: NDArray[np.bool_] | None) -> Benchmark:
        """One caption and one image per question, and whether it is true; equal texts are one caption."""
        if calibration is not None and calibration.all():
            raise DataError("all rows are of the split that chooses the threshold", where=self.source)
        table = CaptionTable()
        names = self.caption_ids[0] if self.caption_ids else [f"{name}_c" for name in self.ids]
        positions = table.add_all(map(Caption, names, self.captions[0]))
        items, shown_images = listed(self.images[0])
        questions = forms.Statement(
            unique_ids(self.ids),
            groupings=self.groupings,
            captions=np.asarray(positions, dtype=np.int64),
            images=shown_images,
            truth=truth,
            calibration=calibration if calibration is not None and calibration.any() else None,
            votes=self.votes,
        )
        benchmark = Benchmark(self.card, items, tuple(table.items), questions, self.source, self.path)
        check_counts(benchmark.select(benchmark.statements.measured))
        return benchmark

    def judged(
        self,
        *,
        ratings: NDArray[np.float64] | None = None,
        references: Sequence[Sequence[Caption]] | None = None,
        most: int | None = None,
        notes: Sequence[str] = (),
        **fields: Any,
    ) -> Benchmark:
        """Captions that people rated, or of which two of an image got `votes`; equal texts are one caption.

        `ratings` is (n, raters) with NaN where one is missing, `votes` (n, 2). Without a `label` it is that
        of more votes, drawn with seed 0 where they are equal. Rated rows without a rating, and without a
        reference where others have some, are left out.
        """
        items, positions = listed(self.images[0])
        table = CaptionTable()
        candidates = np.array(
            [table.add_all(row) for row in zip(*self.captions, strict=True)], dtype=np.int64
        )
        listed_references = None
        if references is not None:
            # Rows of one image share its list.
            lists: dict[int, list[int]] = {}
            for row in references:
                if id(row) not in lists:
                    lists[id(row)] = table.add_all(row)[:most]
            listed_references = References.of([lists[id(row)] for row in references])
        ids, groupings, votes = tuple(self.ids), self.groupings, self.votes
        if votes is not None:
            if "label" not in fields:
                drawn = np.random.default_rng(0).integers(0, 2, len(votes))
                ahead = np.sign(votes[:, 1] - votes[:, 0])
                fields["label"] = np.where(ahead == 0, drawn, ahead > 0).astype(np.int64)
            fields |= {"groupings": groupings, "references": listed_references}
            questions: "forms.Rated | forms.Preference"
            questions = forms.Preference.between(ids, candidates, positions, votes, **fields)
        else:
            assert ratings is not None
            rated = ~np.isnan(ratings).all(axis=1)
            referred = rated if listed_references is None else rated & (listed_references.counts > 0)
            notes = [
                *notes,
                *left_out(int((~rated).sum()), "rows without a rating"),
                *left_out(int((rated & ~referred).sum()), "rows without a reference"),
            ]
            rows = np.flatnonzero(referred).astype(np.int64)
            if not len(rows):
                raise DataError("no row is left", where=noted(self.source, notes))
            questions = forms.Rated(
                tuple(ids[row] for row in rows.tolist()),
                groupings={name: tuple(of[row] for row in rows.tolist()) for name, of in groupings.items()},
                captions=candidates[rows, 0],
                images=positions[rows],
                ratings=ratings[rows],
                references=None if listed_references is None else listed_references.take(rows),
                **fields,
            )
        where = noted(self.source, notes)
        whole = Benchmark(self.card, items, tuple(table.items), questions, where, self.path)
        return check_counts(whole.mentioned())


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
    """As `Rows.quad`, for readers of other packages."""
    return Rows(card, ids, captions, images, groupings, source, path, part=part).quad()


def check_counts(benchmark: Benchmark, *, part: bool = False) -> Benchmark:
    """The benchmark itself, if it has as many questions as its card says, in all and in each group."""
    card, groups = benchmark.card, benchmark.questions.groups()
    whole = set(benchmark.questions.groupings.get("subset", ())) if part else set(card.counts)
    for name, expected in card.counts.items():
        if name not in whole:
            continue
        count = int(groups[name].sum()) if name in groups else 0
        allowed = [expected, *([card.also[name]] if name in card.also else [])]
        if count not in allowed:
            what = f"questions {benchmark.title} has in group '{name}'"
            raise _miscounted(what, benchmark.source, count, allowed)
    if card.size is not None and not part:
        sizes = [card.size, *(card.size + n - card.counts[name] for name, n in card.also.items())]
        if len(benchmark) not in sizes:
            what = f"questions {benchmark.title} has in all"
            raise _miscounted(what, benchmark.source, len(benchmark), sorted(set(sizes)))
    return benchmark


def _miscounted(what: str, where: str, count: int, allowed: Sequence[int]) -> DataError:
    return DataError(
        f"not the number of {what}",
        where=where,
        given=f"{count:,}",
        allowed=" or ".join(f"{n:,}" for n in allowed),
        hint="is the file cut off, or another release? your own selection is read with --no-counts",
    )


def listed(images: Sequence[Image]) -> tuple[tuple[Image, ...], NDArray[np.int64]]:
    """Distinct images in order of first appearance, and the position of each one given."""
    positions = distinct(image.id for image in images)[1]
    _, first = np.unique(positions, return_index=True)
    return tuple(images[i] for i in first), positions


@dataclass(frozen=True, eq=False)
class IdPositions:
    """Positions of whole-number ids."""

    ids: Ids
    kind: str
    where: object

    def __post_init__(self) -> None:
        ordered = np.sort(self.ids)
        double = ordered[1:][np.diff(ordered) == 0]
        if len(double):
            what = f"{self.kind} id occurs twice"
            raise DataError(what, where=self.where, given=int(double[0]), hint="ids are unique")

    def of(self, ids: Ids) -> Ids:
        """The position of each id, -1 where there is none such."""
        import pyarrow.compute as pc  # a sixth of what the command line takes to start

        positions = pc.index_in(pa.array(ids, pa.int64()), value_set=pa.array(self.ids, pa.int64()))
        return positions.fill_null(-1).to_numpy().astype(np.int64)


def search(
    queries: Ids,
    pairs: tuple[Ids, Ids],
    gains: NDArray[np.float64] | None = None,
    *,
    names: Sequence[str],
    where: object,
) -> "forms.RetrievalDirection":
    """The search of some items, as positions, from pairs of (row of `queries`, position of what is right)."""
    from counterfoil.metrics.ranks import Qrels

    query, item = pairs
    if not len(item):
        raise DataError("no query has a right answer", where=where)
    order = np.lexsort((item, query))
    query, item = query[order], item[order]
    double = (np.diff(query) == 0) & (np.diff(item) == 0) & (item[1:] >= 0)
    if double.any():
        i = int(query[1:][double][0])
        raise DataError("a right answer is listed twice", where=f"{where}, query '{names[i]}'")
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


def own_pairs(owners: Ids, n_images: int) -> "tuple[forms.RetrievalDirection, forms.RetrievalDirection]":
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
    the gallery does not hold, both directions together).
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
            raise _miscounted(f"{_WORDS[name]} {card.title} has", source, counts[name], [expected])
    return benchmark


def gallery_of_pairs(
    card: Card,
    images: Sequence[Image],
    captions: Sequence[Caption],
    owners: Ids,
    pairs: tuple[Ids, Ids],
    gains: NDArray[np.float64] | None = None,
    *,
    source: str,
    path: Path | None = None,
) -> Benchmark:
    """The gallery in which pairs of an image and a caption, by their positions, are right both ways."""
    sides = (images, pairs), (captions, pairs[::-1])
    i2t, t2i = (
        search(np.arange(len(of)), right, gains, names=[item.id for item in of], where=source)
        for of, right in sides
    )
    return gallery(card, images, captions, owners, (i2t, t2i), source=source, path=path)


_WORDS = {
    "images": "images",
    "captions": "captions",
    "i2t": "images with a right answer",
    "t2i": "captions with a right answer",
    "i2t_pairs": "right answers to images",
    "t2i_pairs": "right answers to captions",
    "outside": "right answers outside the gallery",
}


@dataclass
class CaptionTable:
    """Captions as they are met, one per text, called by the name that the text was first met under."""

    items: list[Caption] = field(default_factory=list)
    _positions: dict[str | None, int] = field(default_factory=dict, repr=False)

    def add(self, caption: Caption) -> int:
        """The position of a caption, whose text was collapsed already."""
        position = self._positions.setdefault(caption.text, len(self.items))
        if position == len(self.items):
            self.items.append(caption)
        return position

    def add_all(self, captions: Iterable[Caption]) -> list[int]:
        """The positions of several captions."""
        return list(map(self.add, captions))


def numbered(texts: Iterable[str], name: str) -> list[Caption]:
    """Texts as captions that are called NAME#0, NAME#1 and so on."""
    return [Caption(f"{name}#{number}", text) for number, text in enumerate(texts)]


def clean_caption(cell: object, where: object, what: str = "caption") -> str:
    """A caption with its white space collapsed."""
    if not isinstance(cell, str):
        raise DataError(f"a {what} is no text", where=where, given=shown(cell), allowed="a text")
    text = collapsed(cell)
    if not text:
        raise DataError(f"an empty {what}", where=where, allowed="a text")
    return text


def ratings_of(table: DataTable, columns: Sequence[str], *, missing: bool = False) -> NDArray[np.float64]:
    """(rows, columns) ratings; the mean of those that a cell lists."""
    ratings = np.full((len(table), len(columns)), np.nan)
    for i, column in enumerate(columns):
        for row, cell in enumerate(table[column]):
            where = partial(table.where, row, column)
            if cell == []:
                raise DataError("no ratings", where=where())
            if isinstance(cell, list):
                ratings[row, i] = np.mean([rating(value, where, missing=missing) for value in cell])
            elif not (missing and (cell is None or (isinstance(cell, str) and not cell.strip()))):
                ratings[row, i] = rating(cell, where, missing=missing)
    return ratings


def rating(cell: object, where: Callable[[], str], *, missing: bool = False) -> float:
    """A rating as a number."""
    try:
        number = float(cell) if isinstance(cell, str | int | float | np.number) else None
    except ValueError:
        number = None
    if number is None or isinstance(cell, bool) or math.isinf(number):
        raise DataError("a rating is no number", where=where(), given=shown(cell), allowed="a finite number")
    if math.isnan(number) and not missing:
        raise DataError("a rating is missing", where=where(), given=shown(cell), allowed="a finite number")
    return number


def unique_ids(names: Sequence[str]) -> tuple[str, ...]:
    """Ids made unique: the second question of one name is called NAME/2, the third NAME/3."""
    seen: dict[str, int] = {}
    ids = []
    for name in names:
        seen[name] = seen.get(name, 0) + 1
        ids.append(name if seen[name] == 1 else f"{name}/{seen[name]}")
    return tuple(ids)


def left_out(number: int, what: str) -> tuple[str, ...]:
    """The note that says how many of something were left out; none where that is nothing."""
    return (f"{number:,} {what} left out",) if number else ()


def noted(source: str, notes: Sequence[str]) -> str:
    """A source with what there is to say of it behind it."""
    return f"{source} ({'; '.join(notes)})" if notes else source


def truths(table: DataTable, column: str) -> NDArray[np.bool_]:
    """A column of right and wrong (`booleans`); raises `DataError` naming the row that is neither."""
    try:
        return booleans(table, column)
    except ScoreError as error:
        raise DataError(str(error)) from None
