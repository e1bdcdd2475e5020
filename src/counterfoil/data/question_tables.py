"""Questions as tables, and back: what the folder of a benchmark keeps of each form.

    questions.parquet   id, positions into captions and images, a column `group:NAME` per grouping; for a
                        gallery `query` (the image, or the caption, that asks) and `code`
    members.parquet     of a gallery: its images, then its captions: owner (of captions), part, code
    positives.parquet   of a gallery: question, item (null where the gallery does not hold it), gain
    candidates.parquet  of preferences: question, side, positions of caption and image; a row per sentence
    references.parquet  of ratings and preferences: row (of the questions, or of the candidates), caption

A code is the classes of object of `Plausible`, a bit each, packed into bytes; null where right answers are
listed. Which direction has which, and how many of the questions ask for captions, is in the facts.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.data.galleries import Gallery, Search
from counterfoil.data.questions import Choice, Quad
from counterfoil.data.ratings import Preference, Rated
from counterfoil.data.references import References
from counterfoil.errors import DataError, InputError
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Positives

QUESTIONS, MEMBERS, POSITIVES = "questions.parquet", "members.parquet", "positives.parquet"

CANDIDATES, REFERENCES = "candidates.parquet", "references.parquet"

#: Every table that some form has.
TABLES = (QUESTIONS, MEMBERS, POSITIVES, CANDIDATES, REFERENCES)

_GROUP = "group:"

Form = Quad | Choice | Gallery | Rated | Preference


def files(form: str) -> tuple[str, ...]:
    """The tables of a form, by file name."""
    others = {
        Gallery.form: (MEMBERS, POSITIVES),
        Rated.form: (REFERENCES,),
        Preference.form: (CANDIDATES, REFERENCES),
    }
    return (QUESTIONS, *others.get(form, ()))


def to_tables(questions: Form) -> tuple[dict[str, pa.Table], dict[str, Any]]:
    """The tables by file name, and the facts that go into the manifest."""
    columns: dict[str, Any] = {"id": pa.array(questions.ids, pa.string())}
    facts: dict[str, Any] = {"form": questions.form, "groupings": list(questions.groupings)}
    others: dict[str, pa.Table] = {}
    if isinstance(questions, Quad):
        columns |= _columns("caption_", questions.captions) | _columns("image_", questions.images)
    elif isinstance(questions, Choice):
        columns |= {"query": pa.array(questions.query)} | _columns("candidate_", questions.candidates)
        facts |= {"correct": questions.correct, "asks": questions.asks}
    elif isinstance(questions, Rated):
        columns |= {"caption": pa.array(questions.captions), "image": pa.array(questions.images)}
        columns |= _columns("rating_", questions.ratings)
        facts |= {"raters": questions.raters, "decimals": questions.decimals}
        facts |= {"references": questions.references is not None}
        others = {REFERENCES: _references(questions.references)}
    elif isinstance(questions, Preference):
        columns |= {"label": pa.array(questions.label)} | _columns("votes_", questions.votes)
        facts |= {"sample": questions.sample, "draws": questions.draws, "seed": questions.seed}
        facts |= {"references": questions.references is not None}
        rows = {
            "question": pa.array(questions.owners),
            "side": pa.array(questions.sides),
            "caption": pa.array(questions.captions),
            "image": pa.array(questions.images),
        }
        others = {CANDIDATES: pa.table(rows), REFERENCES: _references(questions.references)}
    else:
        i2t, t2i = questions.i2t, questions.t2i
        columns |= {
            "query": pa.array(np.concatenate([i2t.queries, t2i.queries])),
            "code": pa.array(
                [*_codes(i2t, "query_codes", len(i2t)), *_codes(t2i, "query_codes", len(t2i))], _BITS
            ),
        }
        facts |= {"i2t": _facts(i2t), "t2i": _facts(t2i)}
        others = {MEMBERS: _members(questions), POSITIVES: _positives(i2t, t2i)}
    for name, labels in questions.groupings.items():
        columns[_GROUP + name] = pa.array(labels, pa.string())
    return {QUESTIONS: pa.table(columns), **others}, facts


def from_tables(tables: Mapping[str, pa.Table], facts: Mapping[str, Any], *, where: object) -> Form:
    """The questions from tables of their schemas (`folder_schemas`), and the facts of the manifest.

    Raises `DataError` where the tables do not fit each other, or the facts.
    """
    table = tables[QUESTIONS]
    lacking = [name for name in facts["groupings"] if _GROUP + name not in table.column_names]
    if lacking:
        raise DataError(f"no column '{_GROUP}{lacking[0]}'", where=where, hint="was it edited?")
    try:
        ids = tuple(table.column("id").to_pylist())
        groupings = {name: tuple(table.column(_GROUP + name).to_pylist()) for name in facts["groupings"]}
        if facts["form"] == Quad.form:
            return Quad(
                ids,
                groupings=groupings,
                captions=_positions(table, "caption_"),
                images=_positions(table, "image_"),
            )
        if facts["form"] == Choice.form:
            return Choice(
                ids,
                groupings=groupings,
                query=table.column("query").to_numpy(),
                candidates=_positions(table, "candidate_"),
                correct=facts["correct"],
                asks=facts["asks"],
            )
        if facts["form"] == Rated.form:
            return Rated(
                ids,
                groupings=groupings,
                captions=table.column("caption").to_numpy(),
                images=table.column("image").to_numpy(),
                ratings=_numbers(table, "rating_"),
                references=_read_references(tables[REFERENCES], len(ids), facts),
                raters=facts["raters"],
                decimals=facts["decimals"],
            )
        if facts["form"] == Preference.form:
            rows = tables[CANDIDATES]
            return Preference(
                ids,
                groupings=groupings,
                captions=rows.column("caption").to_numpy(),
                images=rows.column("image").to_numpy(),
                owners=rows.column("question").to_numpy(),
                sides=rows.column("side").to_numpy(),
                votes=_numbers(table, "votes_"),
                label=table.column("label").to_numpy(),
                references=_read_references(tables[REFERENCES], len(rows), facts),
                sample=facts["sample"],
                draws=facts["draws"],
                seed=facts["seed"],
            )
        return _gallery(tables, facts, ids, groupings)
    except InputError as error:
        raise DataError(f"the tables do not fit each other: {error}", where=where) from None


_BITS = pa.binary()


def _references(references: References | None) -> pa.Table:
    found = references or References.of([])
    return pa.table({"row": pa.array(found.rows), "caption": pa.array(found.captions)})


def _read_references(table: pa.Table, rows: int, facts: Mapping[str, Any]) -> References | None:
    if not facts["references"]:
        return None
    of_row = table.column("row").to_numpy()
    check_order("rows of references", of_row, rows)
    counts = np.bincount(of_row, minlength=rows)
    return References(
        np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]), table.column("caption").to_numpy()
    )


def _facts(search: Search) -> dict[str, Any]:
    found: dict[str, Any] = {"queries": len(search)}
    if isinstance(search.positives, Plausible):
        rule = search.positives
        found["plausible"] = {
            "classes": rule.item_codes.shape[1],
            "thresholds": list(rule.thresholds),
            "cap": rule.cap,
        }
    return found


def _codes(search: Search, which: str, rows: int) -> list[bytes | None]:
    """The packed codes of the queries or of the items, null where right answers are listed."""
    if not isinstance(search.positives, Plausible):
        return [None] * rows
    codes: NDArray[np.bool_] = getattr(search.positives, which)
    return [row.tobytes() for row in np.packbits(codes, axis=1)]


def _members(questions: Gallery) -> pa.Table:
    n, m = questions.n_images, questions.n_captions
    owners = [None] * n + [owner if owner >= 0 else None for owner in questions.owners.tolist()]
    parts: list[int | None] = [None] * (n + m)
    if questions.image_parts is not None and questions.caption_parts is not None:
        parts = [*questions.image_parts.tolist(), *questions.caption_parts.tolist()]
    codes = [*_codes(questions.t2i, "item_codes", n), *_codes(questions.i2t, "item_codes", m)]
    return pa.table(
        {
            "kind": pa.array(["image"] * n + ["caption"] * m, pa.string()),
            "owner": pa.array(owners, pa.int64()),
            "part": pa.array(parts, pa.int64()),
            "code": pa.array(codes, _BITS),
        }
    )


def _positives(i2t: Search, t2i: Search) -> pa.Table:
    question, item, gain = [], [], []
    for start, search in ((0, i2t), (len(i2t), t2i)):
        if isinstance(search.positives, Positives):
            question.append(search.positives.queries + start)
            item.append(search.positives.items)
            gain.append(search.positives.gains)
    items = np.concatenate([*item, np.empty(0, np.int64)])
    return pa.table(
        {
            "question": pa.array(np.concatenate([*question, np.empty(0, np.int64)]), pa.int64()),
            "item": pa.array(items, pa.int64(), mask=items < 0),
            "gain": pa.array(np.concatenate([*gain, np.empty(0)]), pa.float64()),
        }
    )


def _gallery(
    tables: Mapping[str, pa.Table],
    facts: Mapping[str, Any],
    ids: tuple[str, ...],
    groupings: Mapping[str, tuple[str, ...]],
) -> Gallery:
    asked, members, listed = (tables[name] for name in files(Gallery.form))
    kinds = members.column("kind").to_pylist()
    n = kinds.count("image")
    if kinds != ["image"] * n + ["caption"] * (len(kinds) - n):
        raise DataError("the members are not images first, then captions")
    asked_for = facts["i2t"]["queries"] + facts["t2i"]["queries"]
    if asked_for != len(ids):
        raise DataError("not as many queries as the manifest says", given=len(ids), allowed=str(asked_for))
    owner = _whole(members, "owner")
    part = _whole(members, "part")
    member_codes, query_codes = (table.column("code").to_pylist() for table in (members, asked))
    query = _whole(asked, "query")
    question, item = _whole(listed, "question"), _whole(listed, "item")
    check_order("right answers", question, len(ids))
    gain = listed.column("gain").to_numpy().astype(np.float64)
    searches = []
    first = 0
    for name, codes in (("i2t", member_codes[n:]), ("t2i", member_codes[:n])):
        last = first + facts[name]["queries"]
        rule = facts[name].get("plausible")
        found: Positives | Plausible
        if rule is not None:
            classes = rule["classes"]
            found = Plausible(
                unpacked(query_codes[first:last], classes),
                unpacked(codes, classes),
                tuple(rule["thresholds"]),
                rule["cap"],
            )
        else:
            mine = (question >= first) & (question < last)
            counts = np.bincount(question[mine] - first, minlength=last - first)
            starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
            found = Positives(starts, item[mine], gain[mine]).checked(where=name)
        searches.append(Search(query[first:last], found))
        first = last
    has_parts = bool(len(part)) and bool((part >= 0).all())
    return Gallery(
        ids,
        groupings=groupings,
        i2t=searches[0],
        t2i=searches[1],
        owners=owner[n:],
        n_images=n,
        image_parts=part[:n] if has_parts else None,
        caption_parts=part[n:] if has_parts else None,
    )


def _whole(table: pa.Table, name: str) -> NDArray[np.int64]:
    """A column of whole numbers, -1 where it is null."""
    return table.column(name).fill_null(-1).to_numpy().astype(np.int64)


def unpacked(rows: list[bytes | None], classes: int) -> NDArray[np.bool_]:
    """Codes of so many classes, (rows, classes); raises `DataError` for one that is missing or of others."""
    width = -(-classes // 8)
    odd = next((at for at, row in enumerate(rows) if row is None or len(row) != width), None)
    if odd is not None:
        raise DataError(
            "a code is not of as many classes as the rule", where=f"code {odd + 1}", allowed=str(classes)
        )
    packed = np.frombuffer(b"".join(row for row in rows if row), dtype=np.uint8).reshape(len(rows), width)
    return np.unpackbits(packed, axis=1, count=classes).astype(bool)


def check_order(what: str, owners: NDArray[np.int64], n: int, *, where: object = None) -> None:
    """Raise `DataError` unless the rows that owners have are in the owners' order, of which there are `n`.

    >>> check_order("right answers", np.array([0, 2, 1]), 3)
    Traceback (most recent call last):
    counterfoil.errors.DataError: right answers are not in order; given: 1 after 2
    """
    out = (owners < 0) | (owners >= n)
    if out.any():
        raise DataError(
            f"{what} are not those of the table of questions",
            where=where,
            given=f"{int(owners[out][0])} in row {int(np.argmax(out)) + 1}",
            allowed=f"0 to {n - 1}",
        )
    back = np.flatnonzero(np.diff(owners) < 0)
    if len(back):
        at = int(back[0])
        raise DataError(f"{what} are not in order", where=where, given=f"{owners[at + 1]} after {owners[at]}")


def _columns(prefix: str, cells: NDArray[np.int64] | NDArray[np.float64]) -> dict[str, pa.Array]:
    return {f"{prefix}{i}": pa.array(cells[:, i]) for i in range(cells.shape[1])}


def _positions(table: pa.Table, prefix: str) -> NDArray[np.int64]:
    names = [name for name in table.column_names if name.startswith(prefix)]
    return np.stack([table.column(name).to_numpy() for name in names], axis=1)


def _numbers(table: pa.Table, prefix: str) -> NDArray[np.float64]:
    names = [name for name in table.column_names if name.startswith(prefix)]
    return np.stack([table.column(name).to_numpy().astype(np.float64) for name in names], axis=1)
