"""Tables of a run on a gallery, written and read. None has a row per pair of query and item.

    scores.parquet    per query and right answer: question, item (its id) and position (both null where the
                      gallery does not hold it), gain, and how many items score above it (null where it was
                      not found) and level with it
    items.parquet     per query: question, direction, its position among the images (or captions), cluster,
                      part, depth to which its ranking is known, groupings, a column per measure; where right
                      is a rule its code, and the share of right answers per threshold and tie policy
    gallery.parquet   per item, images first: kind, id, text, owner (the position of a caption's image), part,
                      photo, crop, code
    tops.parquet      per query what was ranked first: items (positions, -1 behind the end), scores

A code is the classes of object of `Plausible`, a bit each, packed into bytes.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.forms import Gallery, Search
from counterfoil.data.forms.gallery import Direction
from counterfoil.data.forms.tables import check_order, unpacked
from counterfoil.data.records import Caption, Image
from counterfoil.data.scores import DirectionRanks, Rankings
from counterfoil.errors import DataError
from counterfoil.evaluation.run_schemas import (
    PREFIXES,
    QUESTION,
    Count,
    check_crops,
    check_questions,
    misfits,
)
from counterfoil.inputs.columns import ColumnSchema, Schema, notes
from counterfoil.inputs.models import Stored, check_model
from counterfoil.inputs.parsed import parse_json
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Positives

SCORES, ITEMS, GALLERY, TOPS = "scores.parquet", "items.parquet", "gallery.parquet", "tops.parquet"

#: The tables, in the order they are written.
FILES = (SCORES, ITEMS, GALLERY, TOPS)

_POSITION = ColumnSchema("whole", low=0)
_SOMETIMES = ColumnSchema("whole", null=True, low=0)
_CODE = ColumnSchema("bytes", null=True)

#: What they hold.
SCHEMAS = {
    SCORES: Schema(
        {
            "question": ColumnSchema("text"),
            "item": ColumnSchema("text", null=True),
            "position": _SOMETIMES,
            "gain": ColumnSchema("real", low=0),
            "above": _SOMETIMES,
            "level": _POSITION,
        }
    ),
    ITEMS: Schema(
        {
            **QUESTION,
            "direction": ColumnSchema("text"),
            "query": _POSITION,
            "cluster": _POSITION,
            "part": _POSITION,
            "depth": _POSITION,
            "code": _CODE,
        },
        {**PREFIXES, "share:": ColumnSchema("real", null=True, nan=True, low=0, high=1)},
    ),
    GALLERY: Schema(
        {
            "kind": ColumnSchema("text"),
            "id": ColumnSchema("text"),
            "text": ColumnSchema("text", null=True),
            "owner": _SOMETIMES,
            "part": _SOMETIMES,
            "photo": ColumnSchema("text", null=True),
            "crop": ColumnSchema("wholes", null=True),
            "code": _CODE,
        }
    ),
    TOPS: Schema(
        {**QUESTION, "items": ColumnSchema("wholes", low=-1), "scores": ColumnSchema("reals", nan=True)}
    ),
}

_SIDES = ("i2t", "t2i")
_POLICIES = ("strict", "half", "optimistic")
_GROUP, _MEASURE, _SHARE = "group:", "measure:", "share:"


def to_tables(
    benchmark: Benchmark, rankings: Rankings, items: Mapping[str, NDArray[np.float64]]
) -> dict[str, pa.Table]:
    """The tables by file name."""
    return {
        SCORES: _places(benchmark, rankings),
        ITEMS: _queries(benchmark, rankings, items),
        GALLERY: _members(benchmark),
        TOPS: _tops(benchmark, rankings),
    }


def from_tables(
    card: Card, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any], folder: Path
) -> tuple[Benchmark, Rankings]:
    """The gallery of a run, without pixels, and the rankings, as they were; from tables that fit `SCHEMAS`.

    Raises `DataError` naming the file (in `folder`) that does not fit the others.
    """
    with misfits(folder):
        return _from_tables(card, tables, manifest, folder)


def _from_tables(
    card: Card, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any], folder: Path
) -> tuple[Benchmark, Rankings]:
    queries, members, tops = tables[ITEMS], tables[GALLERY], tables[TOPS]
    where = folder / ITEMS
    said = parse_json(notes(queries).get("gallery", "{}"), where=f"{where}, metadata", finite=True)
    facts = check_model(said, _GalleryFacts, where=f"{where}, metadata").model_dump()
    images, captions = _items(members, folder / GALLERY)
    split = int(facts["i2t"]["queries"])
    ids = tuple(queries["question"].to_pylist())
    if split + facts["t2i"]["queries"] != len(ids):
        raise DataError("not as many queries as its metadata say", where=where, given=len(ids))
    sides = [_SIDES[at >= split] for at in range(len(ids))]
    if queries["direction"].to_pylist() != sides:
        raise DataError("directions are not those of its metadata", where=where)
    check_questions(tops, ids, where=folder / TOPS)
    place = {name: i for i, name in enumerate(ids)}
    asked = np.array([place.get(name, -1) for name in tables[SCORES]["question"].to_pylist()], dtype=np.int64)
    check_order("questions", asked, len(ids), where=folder / SCORES)
    codes = members["code"].to_pylist()
    of_items = {"i2t": codes[len(images) :], "t2i": codes[: len(images)]}
    depth, query, query_codes = (
        _whole(queries, "depth"),
        _whole(queries, "query"),
        queries["code"].to_pylist(),
    )
    sizes = {"i2t": len(captions), "t2i": len(images)}
    searches, placed = [], []
    for name, rows in zip(_SIDES, (slice(0, split), slice(split, len(ids))), strict=True):
        mine = (asked >= rows.start) & (asked < rows.stop)
        listed = tables[SCORES].filter(pa.array(mine))
        rule = facts[name]["plausible"]
        found: Positives | Plausible
        if rule is None:
            counts = np.bincount(asked[mine] - rows.start, minlength=rows.stop - rows.start)
            found = Positives(
                np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
                _whole(listed, "position"),
                listed["gain"].to_numpy().astype(np.float64),
            ).checked(where=name)
        else:
            found = Plausible(
                unpacked(query_codes[rows], rule["classes"]),
                unpacked(of_items[name], rule["classes"]),
                tuple(rule["thresholds"]),
                rule["cap"],
            )
        searches.append(Search(query[rows], found))
        placed.append(
            _check_placed(
                DirectionRanks(
                    _whole(listed, "above"),
                    _whole(listed, "level"),
                    depth[rows],
                    _rectangle(tops["items"], rows, facts[name]["top"], folder / TOPS).astype(np.int32),
                    _rectangle(tops["scores"], rows, facts[name]["top"], folder / TOPS).astype(np.float32),
                    None if rule is None else _shares(queries, rows, rule["thresholds"], where),
                ),
                sizes[name],
                None if rule is not None else _whole(listed, "position"),
                folder,
            )
        )
    part = _whole(members, "part")
    in_parts = bool((part >= 0).all())
    gallery = Gallery(
        ids,
        groupings={
            name.removeprefix(_GROUP): tuple(queries[name].to_pylist())
            for name in queries.column_names
            if name.startswith(_GROUP)
        },
        i2t=searches[0],
        t2i=searches[1],
        owners=_whole(members, "owner")[len(images) :],
        n_images=len(images),
        image_parts=part[: len(images)] if in_parts else None,
        caption_parts=part[len(images) :] if in_parts else None,
    )
    about = manifest.get("benchmark", {})
    path = about.get("path")
    benchmark = Benchmark(
        card, images, captions, gallery, source=about.get("source", ""), path=Path(path) if path else None
    )
    return benchmark, Rankings(placed[0], placed[1])


def _searches(benchmark: Benchmark) -> tuple[Search, Search]:
    return benchmark.gallery.i2t, benchmark.gallery.t2i


def _places(benchmark: Benchmark, rankings: Rankings) -> pa.Table:
    question, position, name, gain = [], [], [], []
    start = 0
    for search, names in zip(
        _searches(benchmark),
        ([c.id for c in benchmark.captions], [i.id for i in benchmark.images]),
        strict=True,
    ):
        if isinstance(search.positives, Positives):
            question.append(search.positives.queries + start)
            position.append(search.positives.items)
            gain.append(search.positives.gains)
            name += [names[item] if item >= 0 else None for item in search.positives.items.tolist()]
        start += len(search)
    at = _joined(position)
    ids = benchmark.questions.ids
    above = _joined([rankings.i2t.above, rankings.t2i.above])
    return pa.table(
        {
            "question": pa.array([ids[i] for i in _joined(question).tolist()], pa.string()),
            "item": pa.array(name, pa.string()),
            "position": pa.array(at, pa.int64(), mask=at < 0),
            "gain": pa.array(np.concatenate([*gain, np.empty(0)]), pa.float64()),
            "above": pa.array(above, pa.int64(), mask=above < 0),
            "level": pa.array(_joined([rankings.i2t.level, rankings.t2i.level]), pa.int64()),
        }
    )


def _queries(benchmark: Benchmark, rankings: Rankings, items: Mapping[str, NDArray[np.float64]]) -> pa.Table:
    gallery = benchmark.gallery
    i2t, t2i = _searches(benchmark)
    columns: dict[str, Any] = {
        "question": pa.array(gallery.ids, pa.string()),
        "direction": pa.array([_SIDES[side] for side in gallery.directions.tolist()], pa.string()),
        "query": pa.array(np.concatenate([i2t.queries, t2i.queries]), pa.int64()),
        "cluster": pa.array(benchmark.clusters, pa.int64()),
        "part": pa.array(gallery.query_parts, pa.int64()),
        "depth": pa.array(np.concatenate([rankings.i2t.depth, rankings.t2i.depth]), pa.int64()),
        "code": pa.array(
            [*_codes(i2t, "query_codes", len(i2t)), *_codes(t2i, "query_codes", len(t2i))], pa.binary()
        ),
    }
    columns |= {_GROUP + name: pa.array(labels, pa.string()) for name, labels in gallery.groupings.items()}
    # A measure of the other direction is null; that of a query without right answers is not a number.
    columns |= {
        _MEASURE + name: pa.array(values, pa.float64(), mask=_other(gallery, name))
        for name, values in items.items()
    }
    columns |= _share_columns(gallery, rankings)
    facts = {
        name: _facts(search, placed)
        for name, search, placed in zip(_SIDES, (i2t, t2i), (rankings.i2t, rankings.t2i), strict=True)
    }
    return pa.table(columns).replace_schema_metadata(
        {"form": gallery.form, "gallery": json.dumps(facts, sort_keys=True)}
    )


def _facts(search: Search, placed: DirectionRanks) -> dict[str, Any]:
    rule = search.positives
    return {
        "queries": len(search),
        "top": placed.top.shape[1],
        "plausible": {
            "classes": rule.item_codes.shape[1],
            "thresholds": list(rule.thresholds),
            "cap": rule.cap,
        }
        if isinstance(rule, Plausible)
        else None,
    }


def _other(gallery: Gallery, name: str) -> NDArray[np.bool_]:
    """The rows of the direction that a measure is not of."""
    side = name.partition("_")[0]
    if side not in _SIDES:
        return np.zeros(len(gallery), dtype=bool)
    mask: NDArray[np.bool_] = gallery.directions != _SIDES.index(side)
    return mask


def _share_columns(gallery: Gallery, rankings: Rankings) -> dict[str, pa.Array]:
    """A column per threshold and policy; null in a direction whose right answers are listed."""
    columns: dict[str, ndarray] = {}
    start = 0
    for search, placed in ((gallery.i2t, rankings.i2t), (gallery.t2i, rankings.t2i)):
        if placed.shares is not None and isinstance(search.positives, Plausible):
            for t, threshold in enumerate(search.positives.thresholds):
                for p, policy in enumerate(_POLICIES):
                    column = columns.setdefault(
                        f"{_SHARE}{threshold}:{policy}", np.full(len(gallery), np.nan)
                    )
                    column[start : start + len(search)] = placed.shares[t, p]
        start += len(search)
    return {name: pa.array(column, pa.float64()) for name, column in columns.items()}


class _Side(Direction):
    """One direction: its queries, how many of the first items are kept, and the rule where there is one."""

    top: Count


class _GalleryFacts(Stored):
    """What the metadata of `items.parquet` say of the gallery."""

    i2t: _Side
    t2i: _Side


def _check_placed(
    placed: DirectionRanks, size: int, position: NDArray[np.int64] | None, folder: Path
) -> DirectionRanks:
    """Itself; raises `DataError` where there are more items than the gallery of `size` has, or too few.

    `position` are the right answers' own, -1 where the gallery does not hold them.
    """
    for name, values, file in (("depth", placed.depth, ITEMS), ("items", placed.top, TOPS)):
        high = size if name == "depth" else size - 1
        if values.max(initial=-1) > high:
            raise DataError(
                "out of range",
                where=f"{folder / file}, column '{name}'",
                given=int(values.max()),
                allowed=f"at most {high}",
            )
    above, level = placed.above, placed.level
    if position is None:
        return placed
    found = above >= 0
    odd = (above + level > size) | (found != (level > 0)) | (found & (position < 0))
    if odd.any():
        at = int(np.argmax(odd))
        raise DataError(
            "the numbers of items above and level with a right answer cannot both be",
            where=f"{folder / SCORES}, columns 'above' and 'level'",
            given=f"{above[at]} above (-1 where not found), {level[at]} level, {size} items",
        )
    return placed


def _shares(table: pa.Table, rows: slice, thresholds: list[int], where: Path) -> NDArray[np.float64]:
    lacking = [
        name
        for t in thresholds
        for policy in _POLICIES
        if (name := f"{_SHARE}{t}:{policy}") not in table.column_names
    ]
    if lacking:
        raise DataError(f"no column '{lacking[0]}'", where=where, hint="was it edited?")
    return np.stack(
        [
            np.stack([table[f"{_SHARE}{t}:{policy}"].to_numpy()[rows] for policy in _POLICIES])
            for t in thresholds
        ]
    )


def _members(benchmark: Benchmark) -> pa.Table:
    gallery = benchmark.gallery
    images, captions = benchmark.images, benchmark.captions
    parts: list[int | None] = [None] * (len(images) + len(captions))
    if gallery.image_parts is not None and gallery.caption_parts is not None:
        parts = [*gallery.image_parts.tolist(), *gallery.caption_parts.tolist()]
    nothing = [None] * len(captions)
    crops = [None if image.crop is None else list(image.crop) for image in images]
    owners = [owner if owner >= 0 else None for owner in gallery.owners.tolist()]
    codes = [
        *_codes(gallery.t2i, "item_codes", len(images)),
        *_codes(gallery.i2t, "item_codes", len(captions)),
    ]
    return pa.table(
        {
            "kind": pa.array(["image"] * len(images) + ["caption"] * len(captions), pa.string()),
            "id": pa.array([*(i.id for i in images), *(c.id for c in captions)], pa.string()),
            "text": pa.array([*([None] * len(images)), *(c.text for c in captions)], pa.string()),
            "owner": pa.array([*([None] * len(images)), *owners], pa.int64()),
            "part": pa.array(parts, pa.int64()),
            "photo": pa.array([*(i.photo for i in images), *nothing], pa.string()),
            "crop": pa.array([*crops, *nothing], pa.list_(pa.int64())),
            "code": pa.array(codes, pa.binary()),
        }
    )


def _items(table: pa.Table, where: Path) -> tuple[tuple[Image, ...], tuple[Caption, ...]]:
    kinds = table["kind"].to_pylist()
    first = kinds.count("image")
    if kinds != ["image"] * first + ["caption"] * (len(kinds) - first):
        raise DataError("the items are not images first, then captions", where=where)
    check_crops(table, where=where)
    if table["owner"].slice(0, first).null_count < first:
        raise DataError("an image has an owner, which captions alone have", where=where)
    rows = zip(*(table[name].to_pylist() for name in ("kind", "id", "text", "photo", "crop")), strict=True)
    images, captions = [], []
    for kind, name, text, photo, crop in rows:
        if kind == "image":
            images.append(Image(name, None, tuple(crop) if crop else None, photo))
        else:
            captions.append(Caption(name, text))
    return tuple(images), tuple(captions)


def _tops(benchmark: Benchmark, rankings: Rankings) -> pa.Table:
    sides = (rankings.i2t, rankings.t2i)
    widths = np.repeat([placed.top.shape[1] for placed in sides], [len(placed.top) for placed in sides])
    offsets = pa.array(np.concatenate([[0], np.cumsum(widths)]), pa.int32())
    items = np.concatenate([placed.top.reshape(-1) for placed in sides])
    scores = np.concatenate([placed.top_scores.reshape(-1) for placed in sides])
    return pa.table(
        {
            "question": pa.array(benchmark.questions.ids, pa.string()),
            "items": pa.ListArray.from_arrays(offsets, pa.array(items, pa.int32())),
            "scores": pa.ListArray.from_arrays(offsets, pa.array(scores, pa.float32())),
        }
    )


def _rectangle(column: pa.ChunkedArray, rows: slice, width: int, where: Path) -> ndarray:
    """The lists of some rows, all of one length, as a table."""
    lists = column.slice(rows.start, rows.stop - rows.start).combine_chunks()
    lengths = lists.value_lengths().to_numpy(zero_copy_only=False)
    if (lengths != width).any():
        raise DataError(
            "not as many items as its run's metadata say",
            where=f"{where}, row {rows.start + int(np.argmax(lengths != width)) + 1}",
            allowed=str(width),
        )
    part = lists.flatten()
    table: ndarray = np.array(part.to_numpy(zero_copy_only=False)).reshape(rows.stop - rows.start, width)
    return table


def _codes(search: Search, which: str, rows: int) -> list[bytes | None]:
    if not isinstance(search.positives, Plausible):
        return [None] * rows
    codes: NDArray[np.bool_] = getattr(search.positives, which)
    return [row.tobytes() for row in np.packbits(codes, axis=1)]


def _whole(table: pa.Table, name: str) -> NDArray[np.int64]:
    """A column of whole numbers, -1 where it is null."""
    return np.array(table[name].fill_null(-1).to_numpy(), dtype=np.int64)


def _joined(arrays: list[NDArray[np.int64]]) -> NDArray[np.int64]:
    return np.concatenate([*arrays, np.empty(0, np.int64)])
