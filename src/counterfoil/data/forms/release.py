"""Tables of a benchmark for other programs: which items, texts and numbers each row of a release holds.

Columns are named as those of training rows and of one's own tables are (`image`, `caption`,
`negative_caption`, `negative_image`), so that what was published is read again by them. Every form says by
its method `release` which of the functions here its questions go through.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.data.records import Caption, Image
from counterfoil.data.references import References
from counterfoil.errors import DataError

if TYPE_CHECKING:
    from counterfoil.data.forms.contrast import Choice, Preference, Quad
    from counterfoil.data.forms.gallery import Gallery
    from counterfoil.data.forms.rated import Rated
    from counterfoil.data.forms.statement import Statement

#: The grouping that names splits.
SPLIT = "split"
#: What a column holds: images, videos, captions, lists of captions or names of items by position (images are
#: counted first, then captions), or values of its own.
ReleaseKind = Literal["image", "video", "caption", "captions", "item", "value"]


@dataclass(frozen=True, eq=False)
class ReleaseColumn:
    """A column of a release: positions of items, one per row (-1 for none), or an Arrow array of values.

    Of `captions` a row lists the positions of several. `about` says what the column means.
    """

    kind: ReleaseKind
    values: Any
    about: str

    def __len__(self) -> int:
        return len(self.values)

    def cells(
        self, rows: Sequence[int] | NDArray[np.int64], images: Sequence[Image], captions: Sequence[Caption]
    ) -> list[Any]:
        """What the column holds in `rows`: an `Image`, texts, the id of an item, a value; None for none."""
        if self.kind == "value":
            return self.values.take(pa.array(rows, pa.int64())).to_pylist()
        of_rows = [self.values[row] for row in rows]
        if self.kind == "captions":
            return [[captions[at].text for at in several if at >= 0] for several in of_rows]
        if self.kind == "caption":
            return [captions[at].text if at >= 0 else None for at in of_rows]
        if self.kind == "item":
            items = (*images, *captions)
            return [items[at].id if at >= 0 else None for at in of_rows]
        return [images[at] if at >= 0 else None for at in of_rows]


@dataclass(frozen=True, eq=False)
class ReleaseTable:
    """A table of a release, which is a configuration of the data set.

    `questions` says that a row is a question, in their order: such rows are divided into splits. `of` has for
    each row of another table a question whose split it is in, -1 for none; without it the table is one split.
    """

    name: str
    about: str
    columns: Mapping[str, ReleaseColumn]
    questions: bool = False
    of: NDArray[np.int64] | None = None

    @property
    def divided(self) -> bool:
        """Whether its rows are divided into the splits of the questions."""
        return self.questions or self.of is not None

    def rows_of(self, questions: NDArray[np.int64], *, last: bool) -> NDArray[np.int64]:
        """The rows in the split of these questions; those of no question are in the `last` one.

        >>> column = ReleaseColumn("value", pa.array(["x", "y", "z"]), "A letter.")
        >>> table = ReleaseTable("letters", "Letters.", {"letter": column}, of=np.array([4, 7, -1]))
        >>> table.rows_of(np.array([7]), last=True), table.rows_of(np.array([4]), last=False)
        (array([1, 2]), array([0]))
        """
        if self.questions:
            return questions
        if self.of is None:
            return np.arange(len(self) if last else 0, dtype=np.int64)
        return np.flatnonzero(np.isin(self.of, questions) | ((self.of < 0) & last))

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))


@dataclass(frozen=True, eq=False)
class FormRelease:
    """All tables of a release, the main one first, and what the questions ask, in a sentence or two.

    `tasks` are task categories of the hub. `facts` are what the tables do not hold, such as a rule by which
    answers are right.
    """

    tables: tuple[ReleaseTable, ...]
    asks: str
    tasks: tuple[str, ...]
    facts: Mapping[str, object] = field(default_factory=dict)


def _texts(values: Sequence[str | None], about: str) -> ReleaseColumn:
    return ReleaseColumn("value", pa.array(values, pa.string()), about)


def _numbers(values: NDArray[np.float64], about: str) -> ReleaseColumn:
    """NaN is null."""
    return ReleaseColumn("value", pa.array(values, pa.float64(), from_pandas=True), about)


def question_table(
    ids: Sequence[str],
    columns: Mapping[str, ReleaseColumn],
    groupings: Mapping[str, Sequence[str]],
    *,
    about: str,
    name: str = "default",
) -> ReleaseTable:
    """A table with a row per question: its id, the columns of the form, then its groups.

    A grouping is a column of its own name, `group_NAME` where the name is taken or no plain word; a question
    in no group has null there.
    """
    found = {"id": _texts(list(ids), "The id of the question."), **columns}
    for grouping, labels in groupings.items():
        plain = grouping.isidentifier() and grouping.lower() not in {each.lower() for each in found}
        found[grouping if plain else f"group_{grouping}"] = _texts(
            [label or None for label in labels], f"The group of the question by '{grouping}'."
        )
    return ReleaseTable(name, about, found, questions=True)


_CONTRAST = ("image-text-to-text", "zero-shot-image-classification")


def release_quads(questions: "Quad") -> FormRelease:
    """A row per quad: image and caption, negative caption and negative image."""
    images, captions = questions.images, questions.captions
    columns = {
        "image": ReleaseColumn("image", images[:, 0], "The first image."),
        "caption": ReleaseColumn("caption", captions[:, 0], "The caption of the first image."),
        "negative_caption": ReleaseColumn("caption", captions[:, 1], "The caption of the second image."),
        "negative_image": ReleaseColumn("image", images[:, 1], "The second image."),
    }
    table = question_table(questions.ids, columns, questions.groupings, about="Two images, two captions.")
    asks = (
        "Each question holds two images and two captions: `caption` is right of `image` and wrong of "
        "`negative_image`, `negative_caption` the other way round."
    )
    return FormRelease((table,), asks, _CONTRAST)


def release_choices(questions: "Choice") -> FormRelease:
    """A row per question: the query and its candidates, those that are right first.

    Two candidates are `caption` and `negative_caption` (or images); of more, captions are a list and images a
    column each.
    """
    asks: str = questions.asks
    candidates, correct = questions.candidates, questions.correct
    k, other = candidates.shape[1], "caption" if asks == "image" else "image"
    kinds: dict[str, ReleaseKind] = {"image": "image", "caption": "caption"}
    columns = {asks: ReleaseColumn(kinds[asks], questions.query, f"The {asks} that is asked about.")}
    if k == 2:
        columns[other] = ReleaseColumn(kinds[other], candidates[:, 0], f"The {other} that fits.")
        columns[f"negative_{other}"] = ReleaseColumn(
            kinds[other], candidates[:, 1], f"The {other} that does not fit."
        )
    elif other == "caption":
        columns["captions"] = ReleaseColumn("captions", candidates, "The candidates, right ones first.")
    else:
        for at in range(k):
            what = "fits" if at < correct else "does not fit"
            columns[f"image_{at}"] = ReleaseColumn("image", candidates[:, at], f"An image that {what}.")
    table = question_table(questions.ids, columns, questions.groupings, about=f"A choice among {k} {other}s.")
    fit = "the first one fits" if correct == 1 else f"the first {correct} fit"
    said = f"Each question holds one {asks} and {k} {other}s, of which {fit}."
    return FormRelease((table,), said, _CONTRAST, {"asks": asks, "correct": correct})


def release_statements(questions: "Statement") -> FormRelease:
    """A row per statement, with its truth, and the votes where they are known."""
    columns = {
        "image": ReleaseColumn("image", questions.images, "The image."),
        "caption": ReleaseColumn("caption", questions.captions, "The statement."),
        "truth": ReleaseColumn("value", pa.array(questions.truth), "Whether it is true of the image."),
    }
    if questions.calibration is not None:
        about = "Whether the statement only chooses the threshold and counts in no measure."
        columns["calibration"] = ReleaseColumn("value", pa.array(questions.calibration), about)
    if questions.votes is not None:
        for at, answer in enumerate(("false", "true")):
            columns[f"votes_{answer}"] = _numbers(questions.votes[:, at], f"How many people said {answer}.")
    table = question_table(questions.ids, columns, questions.groupings, about="Statements of images.")
    asks = "Each question holds one image and a statement that is true or false of it."
    return FormRelease((table,), asks, ("visual-question-answering",))


def release_ratings(questions: "Rated") -> FormRelease:
    """A row per candidate with its ratings, a column per rater, and its references where it has some."""
    columns = {
        "image": ReleaseColumn("image", questions.images, "The image."),
        "caption": ReleaseColumn("caption", questions.captions, "The caption that was rated."),
    }
    raters = questions.ratings.shape[1]
    for at in range(raters):
        name = "rating" if raters == 1 else f"rating_{at + 1}"
        columns[name] = _numbers(questions.ratings[:, at], f"The rating by rater {at + 1}.")
    columns |= _references(questions.references, np.arange(len(questions)))
    table = question_table(questions.ids, columns, questions.groupings, about="Captions with ratings.")
    asks = "Each question holds one image, a caption of it, and the ratings that people gave the caption."
    return FormRelease((table,), asks, ("image-to-text",), {"raters": questions.raters})


def release_preferences(questions: "Preference") -> FormRelease:
    """A row per pair of captions with the votes for each.

    Raises `DataError` for candidates of several sentences.
    """
    if not questions.single:
        raise DataError(
            "candidates of several sentences cannot be published",
            allowed="preferences between two captions of one image",
        )
    sides = questions.captions.reshape(-1, 2)
    columns = {
        "image": ReleaseColumn("image", questions.images[::2], "The image."),
        "caption_a": ReleaseColumn("caption", sides[:, 0], "The first caption."),
        "caption_b": ReleaseColumn("caption", sides[:, 1], "The second caption."),
        "votes_a": _numbers(questions.votes[:, 0], "How many people preferred the first."),
        "votes_b": _numbers(questions.votes[:, 1], "How many people preferred the second."),
    }
    columns |= _references(questions.references, np.arange(0, 2 * len(questions), 2))
    table = question_table(questions.ids, columns, questions.groupings, about="Two captions with votes.")
    asks = "Each question holds two captions of one image, and how many people preferred each."
    return FormRelease((table,), asks, ("image-to-text",))


def _references(references: References | None, rows: NDArray[np.int64]) -> dict[str, ReleaseColumn]:
    if references is None:
        return {}
    own = [references.row(int(row)).tolist() for row in rows]
    return {"references": ReleaseColumn("captions", own, "Captions that people wrote of the image.")}


def release_gallery(questions: "Gallery") -> FormRelease:
    """Tables of the images, of the captions, of the queries, and of the right answers of each query.

    Where a rule says what is right, items have the classes that they show, and the rule is among the facts.
    The items of a part are in the split of its queries, where these are all in one.
    """
    n, m = questions.n_images, questions.n_captions
    images = {
        "id": ReleaseColumn("item", np.arange(n), "The name of the image."),
        "image": ReleaseColumn("image", np.arange(n), "The image."),
    }
    captions = {
        "id": ReleaseColumn("item", n + np.arange(m), "The name of the caption."),
        "caption": ReleaseColumn("caption", np.arange(m), "The caption."),
        "image_id": ReleaseColumn("item", questions.owners, "The image that the caption was written for."),
    }
    for columns, parts in ((images, questions.image_parts), (captions, questions.caption_parts)):
        if parts is not None:
            about = "The part of the gallery; a query sees only the items of its own part."
            columns["part"] = ReleaseColumn("value", pa.array(parts, pa.int64()), about)
    facts: dict[str, object] = {}
    right: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
    for name, search, items, first, offset in (
        ("i2t", questions.i2t, captions, 0, n),
        ("t2i", questions.t2i, images, len(questions.i2t), 0),
    ):
        found: Any = search.positives
        if not search.ruled:
            held = np.where(found.items < 0, -1, found.items + offset)
            right.append((found.queries + first, held, found.gains))
            continue
        facts[name] = {"thresholds": list(found.thresholds), "cap": found.cap}
        classes = [np.flatnonzero(code).tolist() for code in found.item_codes]
        about = "Numbers of the classes of object; items match whose sets differ in few enough."
        items["classes"] = ReleaseColumn("value", pa.array(classes, pa.list_(pa.int64())), about)
    asked = np.concatenate([questions.i2t.queries, questions.t2i.queries + n])
    directions = ["i2t" if direction == 0 else "t2i" for direction in questions.directions]
    queries = question_table(
        questions.ids,
        {
            "direction": _texts(directions, "i2t: an image among all captions; t2i: the other way round."),
            "query_id": ReleaseColumn("item", asked, "The name of the image or caption that asks."),
        },
        questions.groupings,
        about="Queries of both directions.",
        name="queries",
    )
    of_images, of_captions = _split_of_items(questions)
    tables = [
        ReleaseTable("images", "The images of the gallery.", images, of=of_images),
        ReleaseTable("captions", "The captions of the gallery.", captions, of=of_captions),
        queries,
    ]
    if right:
        rows, held, gains = (np.concatenate(part) for part in zip(*right, strict=True))
        about = "The name of a right answer; null for one that the gallery does not hold."
        answers = {
            "query": _texts([questions.ids[row] for row in rows], "The id of the query."),
            "item_id": ReleaseColumn("item", held, about),
            "gain": _numbers(gains, "1 for a full match, less for a partial one."),
        }
        about = "The right answers of every query."
        tables.append(ReleaseTable("positives", about, answers, of=None if of_images is None else rows))
    asks = "Every image is a query among all captions, and every caption among all images."
    return FormRelease(tuple(tables), asks, ("text-retrieval", "image-feature-extraction"), facts)


def _split_of_items(gallery: "Gallery") -> tuple[NDArray[np.int64] | None, NDArray[np.int64] | None]:
    """A query whose split each image and each caption is in, -1 where their part has none.

    None where the gallery is not in parts, or the queries of one part are in several splits.
    """
    labels = gallery.groupings.get(SPLIT)
    if labels is None or gallery.image_parts is None or gallery.caption_parts is None:
        return None, None
    parts, first = np.unique(gallery.query_parts, return_index=True)
    query = np.full(1 + max(int(gallery.image_parts.max()), int(gallery.caption_parts.max())), -1)
    query[parts] = first
    if any(labels[query[part]] != label for part, label in zip(gallery.query_parts, labels, strict=True)):
        return None, None
    return query[gallery.image_parts], query[gallery.caption_parts]
