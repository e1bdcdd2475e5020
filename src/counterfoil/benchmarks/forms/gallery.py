"""The gallery: every query against a whole gallery, in both directions."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, ClassVar, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from counterfoil.benchmarks.forms.base import Facts, Form, Identity, Ids, check_shape
from counterfoil.benchmarks.forms.release import (
    FormRelease,
    ReleaseColumn,
    ReleaseTable,
    number_column,
    question_table,
    text_column,
)
from counterfoil.benchmarks.forms.tables import (
    MEMBERS,
    POSITION,
    POSITIVES,
    QUESTIONS,
    Count,
    Positive,
    check_order,
    questions_schema,
    unpacked,
)
from counterfoil.benchmarks.references import bounds
from counterfoil.errors import DataError
from counterfoil.inputs.columns import ColumnSchema, Schema
from counterfoil.inputs.files import Stored
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels


class _Rule(Stored):
    """Right answers by rule (`Plausible`)."""

    classes: Annotated[int, Field(ge=1, le=1 << 20)]
    thresholds: Annotated[list[Count], Field(min_length=1)]
    cap: Positive | None


class Direction(Stored):
    """One direction of a gallery: its queries, and the rule where right is what a rule says."""

    queries: Count
    plausible: _Rule | None = None


class _GalleryFacts(Facts):
    """Both directions."""

    i2t: Direction
    t2i: Direction


@dataclass(frozen=True, eq=False)
class RetrievalDirection:
    """One direction of retrieval: queries of one kind, a gallery of the other, and what is right.

    `queries` are positions of the queries among the benchmark's images (image to text) or captions (text to
    image). `positives` has a row per query; its items are positions in the other kind, -1 for a right answer
    that the gallery does not hold. With a rule in place of a list (`Plausible`), right is what the rule says.
    """

    queries: Ids
    positives: Qrels | Plausible

    def __len__(self) -> int:
        return len(self.queries)

    @property
    def defined(self) -> NDArray[np.bool_]:
        """Which queries have a right answer; by rule their own image, at least, is one."""
        if isinstance(self.positives, Plausible):
            return np.ones(len(self.queries), dtype=bool)
        return self.positives.defined

    def take(self, rows: Ids) -> "RetrievalDirection":
        return RetrievalDirection(self.queries[rows], self.positives.take(rows))

    def digest_facts(self) -> list[object]:
        positives = self.positives
        if isinstance(positives, Qrels):
            return [
                array.tolist() for array in (self.queries, positives.starts, positives.items, positives.gains)
            ]
        codes = [
            np.packbits(c, axis=1).tobytes().hex() for c in (positives.query_codes, positives.item_codes)
        ]
        return [self.queries.tolist(), *codes, list(positives.thresholds), positives.cap]


@dataclass(frozen=True, eq=False)
class GallerySide:
    """One direction of a gallery, beside the items that ask in it and those that are looked through."""

    #: "i2t", whose queries are images, or "t2i".
    name: str
    search: RetrievalDirection
    #: The gallery's question that is the first query.
    first: int
    #: How many items there are of the kind that asks, and of the other.
    n_askers: int
    n_items: int
    asker_parts: Ids | None
    item_parts: Ids | None

    @property
    def query_parts(self) -> Ids | None:
        return None if self.asker_parts is None else self.asker_parts[self.search.queries]

    @property
    def sizes(self) -> Ids:
        """How many items each query looks through: those of its own part."""
        if self.asker_parts is None or self.item_parts is None:
            return np.full(len(self.search), self.n_items)
        counts = np.bincount(self.item_parts, minlength=1 + int(self.asker_parts.max(initial=0)))
        return counts[self.query_parts]

    def views(self) -> Iterator[tuple[Ids, Ids]]:
        """Rows of the queries, and the items that these see: all, or those of their own part."""
        parts = self.query_parts
        if parts is None:
            yield np.arange(len(self.search)), np.arange(self.n_items)
            return
        for part in np.unique(parts):
            yield np.flatnonzero(parts == part), np.flatnonzero(self.item_parts == part)

    def check(self) -> None:
        """Raise `DataError` unless the search points into the items and has a row of answers per query."""
        kind = "image" if self.name == "i2t" else "caption"
        positions, positives = self.search.queries, self.search.positives
        strange = positions[(positions < 0) | (positions >= self.n_askers)]
        if len(strange):
            allowed = f"0 to {self.n_askers - 1}"
            raise DataError(f"a query is no {kind}", given=int(strange[0]), allowed=allowed)
        if len(np.unique(positions)) != len(positions):
            raise DataError(f"{'an' if kind == 'image' else 'a'} {kind} is a query twice")
        if isinstance(positives, Plausible):
            classes = positives.item_codes.shape[1]
            check_shape(f"codes of {kind} queries", positives.query_codes, (len(self.search), classes))
            check_shape("codes of items", positives.item_codes, (self.n_items, classes))
            return
        if len(positives.counts) != len(self.search):
            what = "not a row of right answers per query"
            raise DataError(what, given=len(positives.counts), allowed=str(len(self.search)))
        strange = positives.items[(positives.items < -1) | (positives.items >= self.n_items)]
        if len(strange):
            allowed = f"0 to {self.n_items - 1}, or -1 for one that the gallery does not hold"
            raise DataError("a right answer is outside the gallery", given=int(strange[0]), allowed=allowed)

    def check_parts(self) -> None:
        """Raise `DataError` for a right answer in another part than its query: it could never be found."""
        positives, parts = self.search.positives, self.query_parts
        if isinstance(positives, Plausible) or parts is None or self.item_parts is None:
            return
        present = positives.items >= 0
        if (self.item_parts[positives.items[present]] != parts[positives.queries[present]]).any():
            problem = f"a right answer of {self.name} lies in another part of the gallery than its query"
            raise DataError(problem)


@dataclass(frozen=True, eq=False)
class Gallery(Form):
    """Every query against a whole gallery, in both directions.

    A question is a query: first those of `i2t` (images, among all captions), then those of `t2i` (captions,
    among all images); `ids` has one for each, written "i2t/IMAGE" and "t2i/CAPTION". `owners` gives for every
    caption the position of the image it was written for, -1 where unknown. With `image_parts` and
    `caption_parts` (the part of every item, 0, 1, ...) a query sees only the items of its own part, and a
    measure is the mean over the parts: COCO 1K is five parts of a thousand images.
    """

    i2t: RetrievalDirection = field(kw_only=True)
    t2i: RetrievalDirection = field(kw_only=True)
    owners: Ids = field(kw_only=True)
    #: How many images there are; there are as many captions as owners.
    n_images: int = field(kw_only=True)
    image_parts: Ids | None = field(default=None, kw_only=True)
    caption_parts: Ids | None = field(default=None, kw_only=True)

    form: ClassVar[str] = "gallery"
    units: ClassVar[Literal["questions", "queries"]] = "queries"
    directed: ClassVar[bool] = True
    images_by: ClassVar[Identity] = "item"
    version: ClassVar[int] = 2
    facts_model: ClassVar[type[Facts]] = _GalleryFacts
    schemas: ClassVar[Mapping[str, Schema]] = {
        QUESTIONS: questions_schema({"query": POSITION, "code": ColumnSchema("bytes", null=True)}),
        MEMBERS: Schema(
            {
                "kind": ColumnSchema("text"),
                "owner": ColumnSchema("whole", null=True, low=0),
                "part": ColumnSchema("whole", null=True, low=0),
                "code": ColumnSchema("bytes", null=True),
            }
        ),
        POSITIVES: Schema(
            {
                "question": POSITION,
                "item": ColumnSchema("whole", null=True, low=0),
                "gain": ColumnSchema("real", low=0),
            }
        ),
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.ids) != len(self.i2t) + len(self.t2i):
            allowed = f"{len(self.i2t)} images and {len(self.t2i)} captions"
            raise DataError("not one id per query", given=f"{len(self.ids)} ids", allowed=allowed)
        if (self.image_parts is None) != (self.caption_parts is None):
            raise DataError("only one kind of item is in parts", hint="give parts of images and of captions")
        for side in self.sides:
            side.check()
        strange = self.owners[(self.owners < -1) | (self.owners >= self.n_images)]
        if len(strange):
            what = "a caption's image is no image of the gallery"
            raise DataError(what, given=int(strange[0]), allowed=f"0 to {self.n_images - 1}, or -1")
        if self.image_parts is not None and self.caption_parts is not None:
            check_shape("parts of images", self.image_parts, (self.n_images,))
            check_shape("parts of captions", self.caption_parts, (self.n_captions,))
            if min(self.image_parts.min(initial=0), self.caption_parts.min(initial=0)) < 0:
                raise DataError("an item is in no part", given="a part below 0", allowed="0, 1, ...")
            for side in self.sides:
                side.check_parts()

    @property
    def sides(self) -> tuple[GallerySide, GallerySide]:
        """Both directions, image to text first."""
        n, m, images, captions = self.n_images, self.n_captions, self.image_parts, self.caption_parts
        return (
            GallerySide("i2t", self.i2t, 0, n, m, images, captions),
            GallerySide("t2i", self.t2i, len(self.i2t), m, n, captions, images),
        )

    @property
    def n_captions(self) -> int:
        """How many captions there are."""
        return len(self.owners)

    @property
    def directions(self) -> NDArray[np.int64]:
        return np.repeat([0, 1], [len(self.i2t), len(self.t2i)])

    @property
    def query_parts(self) -> NDArray[np.int64]:
        parts = [side.query_parts for side in self.sides if side.query_parts is not None]
        return np.concatenate(parts) if parts else np.zeros(len(self), dtype=np.int64)

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
        return np.arange(self.n_captions), np.arange(self.n_images)

    def check_items(self, images: int, captions: int, *, where: str) -> None:
        if (images, captions) != (self.n_images, self.n_captions):
            what, given = "the items are not those of the gallery", f"{images} images and {captions} captions"
            raise DataError(what, where=where, given=given, allowed=f"{self.n_images} and {self.n_captions}")

    def pairs(self) -> tuple[Ids, Ids]:
        return np.empty(0, np.int64), np.empty(0, np.int64)

    def captions_of(self, question: int) -> list[int]:
        position = question - len(self.i2t)
        return [int(self.t2i.queries[position])] if position >= 0 else []

    def select(self, rows: Ids) -> "Gallery":
        split = len(self.i2t)
        return replace(
            self,
            **self.chosen(rows),
            i2t=self.i2t.take(rows[rows < split]),
            t2i=self.t2i.take(rows[rows >= split] - split),
        )

    def take(self, rows: Ids) -> "tuple[Gallery, None, None]":
        return self.select(np.sort(rows)), None, None

    def check_limit(self, *, where: str) -> None:
        what = "a gallery is measured whole: with fewer items it would be another one"
        raise DataError(what, where=where, hint="leave --limit out")

    def at_hand(
        self, texts: NDArray[np.bool_], sources: NDArray[np.bool_], *, where: str
    ) -> NDArray[np.bool_]:
        lacking = {"images": int((~sources).sum()), "captions": int((~texts).sum())}
        if any(lacking.values()):
            what = "a gallery is measured whole, and some of its items are not at hand"
            given = " and ".join(f"{n:,} {kind} missing" for kind, n in lacking.items() if n)
            hint = "give the folder that holds them, or measure from given scores or embeddings"
            raise DataError(what, where=where, given=given, hint=hint)
        return np.ones(len(self), dtype=bool)

    def caption_means(self, values: NDArray[np.float64], *, where: str) -> NDArray[np.float64]:
        what = "a gallery has no captions of a question of its own"
        raise DataError(what, where=where, allowed="quads, choices, ratings and preferences")

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        captions = np.flatnonzero(self.owners >= 0)
        images = self.owners[captions]
        positives = self.t2i.positives
        if not len(captions) and isinstance(positives, Qrels):
            query = np.repeat(np.arange(len(self.t2i)), positives.counts)
            # A right answer that the gallery does not hold is no image; a partial match is no positive.
            good = (positives.items >= 0) & (positives.gains == 1)
            captions, images = self.t2i.queries[query[good]], positives.items[good]
        if not len(captions):
            raise DataError("no image of the gallery has a caption", where=where)
        order = np.lexsort((captions, images))
        return None, {"image": images[order], "caption": captions[order]}

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        parts = [part if part is None else part.tolist() for part in (self.image_parts, self.caption_parts)]
        return {
            "captions": list(texts),
            "images": list(names),
            "owners": self.owners.tolist(),
            "parts": parts,
            "i2t": self.i2t.digest_facts(),
            "t2i": self.t2i.digest_facts(),
        }

    def release(self) -> FormRelease:
        """Tables of the images, of the captions, of the queries, and of the right answers of each query."""
        n, m = self.n_images, self.n_captions
        images = {
            "id": ReleaseColumn("item", np.arange(n), "The name of the image."),
            "image": ReleaseColumn("image", np.arange(n), "The image."),
        }
        captions = {
            "id": ReleaseColumn("item", n + np.arange(m), "The name of the caption."),
            "caption": ReleaseColumn("caption", np.arange(m), "The caption."),
            "image_id": ReleaseColumn("item", self.owners, "The image that the caption was written for."),
        }
        for columns, parts in ((images, self.image_parts), (captions, self.caption_parts)):
            if parts is not None:
                about = "The part of the gallery; a query sees only the items of its own part."
                columns["part"] = ReleaseColumn("value", pa.array(parts, pa.int64()), about)
        facts: dict[str, object] = {}
        right: list[tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]] = []
        for side, items, offset in zip(self.sides, (captions, images), (n, 0), strict=True):
            positives = side.search.positives
            if isinstance(positives, Qrels):
                held = np.where(positives.items < 0, -1, positives.items + offset)
                right.append((positives.queries + side.first, held, positives.gains))
                continue
            facts[side.name] = {"thresholds": list(positives.thresholds), "cap": positives.cap}
            classes = [np.flatnonzero(code).tolist() for code in positives.item_codes]
            about = "Numbers of the classes of object; items match whose sets differ in few enough."
            items["classes"] = ReleaseColumn("value", pa.array(classes, pa.list_(pa.int64())), about)
        query_items = np.concatenate([self.i2t.queries, self.t2i.queries + n])
        directions = ["i2t" if direction == 0 else "t2i" for direction in self.directions]
        about = "i2t: an image among all captions; t2i: the other way round."
        cells = {"direction": text_column(directions, about)}
        cells["query_id"] = ReleaseColumn("item", query_items, "The name of the image or caption that asks.")
        about = "Queries of both directions."
        queries = question_table(self.ids, cells, self.groupings, about=about, name="queries")
        tables = [
            ReleaseTable("images", "The images of the gallery.", images),
            ReleaseTable("captions", "The captions of the gallery.", captions),
            queries,
        ]
        if right:
            rows, held, gains = (np.concatenate(part) for part in zip(*right, strict=True))
            about = "The name of a right answer; null for one that the gallery does not hold."
            answers = {
                "query": text_column([self.ids[row] for row in rows], "The id of the query."),
                "item_id": ReleaseColumn("item", held, about),
                "gain": number_column(gains, "1 for a full match, less for a partial one."),
            }
            about = "The right answers of every query."
            tables.append(ReleaseTable("positives", about, answers))
        asks = "Every image is a query among all captions, and every caption among all images."
        return FormRelease(tuple(tables), asks, ("text-retrieval", "image-feature-extraction"), facts)

    def columns(self) -> tuple[dict[str, pa.Array], dict[str, Any], dict[str, pa.Table]]:
        i2t, t2i, n, m = self.i2t, self.t2i, self.n_images, self.n_captions
        codes = [*_codes(i2t, "query_codes", len(i2t)), *_codes(t2i, "query_codes", len(t2i))]
        columns = {
            "query": pa.array(np.concatenate([i2t.queries, t2i.queries])),
            "code": pa.array(codes, pa.binary()),
        }
        parts = np.full(n + m, -1)
        if self.image_parts is not None and self.caption_parts is not None:
            parts = np.concatenate([self.image_parts, self.caption_parts])
        members = {
            "kind": pa.array(["image"] * n + ["caption"] * m, pa.string()),
            "owner": _or_null(np.concatenate([np.full(n, -1), self.owners])),
            "part": _or_null(parts),
            "code": pa.array([*_codes(t2i, "item_codes", n), *_codes(i2t, "item_codes", m)], pa.binary()),
        }
        listed = [(side.first, side.search.positives) for side in self.sides]
        right = [(start, rows) for start, rows in listed if isinstance(rows, Qrels)]
        none = np.empty(0, np.int64)
        positives = {
            "question": pa.array(np.concatenate([none, *(rows.queries + start for start, rows in right)])),
            "item": _or_null(np.concatenate([none, *(rows.items for _, rows in right)])),
            "gain": pa.array(np.concatenate([np.empty(0), *(rows.gains for _, rows in right)])),
        }
        facts = {"i2t": _facts(i2t), "t2i": _facts(t2i)}
        return columns, facts, {MEMBERS: pa.table(members), POSITIVES: pa.table(positives)}

    @classmethod
    def fields(cls, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> dict[str, Any]:
        queries, members, listed = tables[QUESTIONS], tables[MEMBERS], tables[POSITIVES]
        kinds = members.column("kind").to_pylist()
        n = kinds.count("image")
        if kinds != ["image"] * n + ["caption"] * (len(kinds) - n):
            raise DataError("the members are not images first, then captions")
        asked_for = facts["i2t"]["queries"] + facts["t2i"]["queries"]
        if asked_for != len(queries):
            what = "not as many queries as the manifest says"
            raise DataError(what, given=len(queries), allowed=str(asked_for))
        owner, part = _whole(members, "owner"), _whole(members, "part")
        member_codes, query_codes = (table.column("code").to_pylist() for table in (members, queries))
        query, question, item = _whole(queries, "query"), _whole(listed, "question"), _whole(listed, "item")
        check_order("right answers", question, len(queries))
        gain = listed.column("gain").to_numpy().astype(np.float64)
        searches, first = [], 0
        for name, codes in (("i2t", member_codes[n:]), ("t2i", member_codes[:n])):
            last = first + facts[name]["queries"]
            rule = facts[name].get("plausible")
            positives: Qrels | Plausible
            if rule is not None:
                of_queries, of_items = (
                    unpacked(part, rule["classes"]) for part in (query_codes[first:last], codes)
                )
                positives = Plausible(of_queries, of_items, tuple(rule["thresholds"]), rule["cap"])
            else:
                mine = (question >= first) & (question < last)
                counts = np.bincount(question[mine] - first, minlength=last - first)
                positives = Qrels(bounds(counts), item[mine], gain[mine]).checked(where=name)
            searches.append(RetrievalDirection(query[first:last], positives))
            first = last
        has_parts = bool(len(part)) and bool((part >= 0).all())
        return {
            "i2t": searches[0],
            "t2i": searches[1],
            "owners": owner[n:],
            "n_images": n,
            "image_parts": part[:n] if has_parts else None,
            "caption_parts": part[n:] if has_parts else None,
        }


def _facts(search: RetrievalDirection) -> dict[str, Any]:
    facts: dict[str, Any] = {"queries": len(search)}
    if isinstance(search.positives, Plausible):
        rule = search.positives
        classes = rule.item_codes.shape[1]
        facts["plausible"] = {"classes": classes, "thresholds": list(rule.thresholds), "cap": rule.cap}
    return facts


def _codes(search: RetrievalDirection, which: str, rows: int) -> list[bytes | None]:
    """The packed codes of the queries or of the items, null where right answers are listed."""
    if not isinstance(search.positives, Plausible):
        return [None] * rows
    codes: NDArray[np.bool_] = getattr(search.positives, which)
    return [row.tobytes() for row in np.packbits(codes, axis=1)]


def _whole(table: pa.Table, name: str) -> NDArray[np.int64]:
    """A column of whole numbers, -1 where it is null."""
    return table.column(name).fill_null(-1).to_numpy().astype(np.int64)


def _or_null(positions: NDArray[np.int64]) -> pa.Array:
    return pa.array(positions, pa.int64(), mask=positions < 0)
