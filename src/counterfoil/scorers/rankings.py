"""Given rankings: for every query the ids found, best first, truncated anywhere.

Two kinds of file hold them, recognised by what is in them:

* JSON: `{"i2t": {image id: [caption ids]}, "t2i": {caption id: [image ids]}}`, ids as numbers or strings,
  lists as long as they come. Fit for lists of tens or hundreds: the full rankings of COCO's 5,000 test images
  and 25,000 captions are 2 GB of text, which take ten times that in memory.
* npz, for full rankings: `image_ids` (n,), `i2t` (n, k) of caption ids, `caption_ids` (m,), `t2i` (m, j) of
  image ids, a row per query; behind the end of a shorter list stands -1 (integers) or "" (strings).

Both directions must be there. A list that names an item twice is refused: what it leaves out is unknown.
"""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Int
from numpy import ndarray

from counterfoil.data.tables import first_double
from counterfoil.errors import DataError
from counterfoil.inputs.arrays import read_npz
from counterfoil.inputs.files import parse_json, read_text
from counterfoil.scorers.base import DEFAULT, Ability, Identity, Options, reject_unused_options
from counterfoil.scorers.given_arrays import CAPTION_IDS, IMAGE_IDS, ids_of
from counterfoil.store import digest_file

_ARRAYS = ("image_ids", "i2t", "caption_ids", "t2i")
# Integers below this are looked up in a table.
_SMALL = 1 << 26
# {"i2t": {"17": [ ..., as no table begins.
_BEGINNING = re.compile(r'\s*\{\s*"(i2t|t2i)"\s*:\s*(\[|\{\s*(\}|"[^"]*"\s*:\s*\[))')


@dataclass(frozen=True, eq=False)
class RankedLists:
    """A ranked list per query: that of query q is `found[starts[q]:starts[q + 1]]`, best first.

    Its entries are places in `items`, the ids of everything that any list names.
    """

    queries: tuple[str, ...]
    items: tuple[str, ...]
    starts: Int[ndarray, "bounds"]
    found: Int[ndarray, "entries"]

    @property
    def lengths(self) -> Int[ndarray, "queries"]:
        """How many items each list names."""
        return np.diff(self.starts)

    def __getitem__(self, query: str) -> tuple[str, ...]:
        """The ids that a query's list names, best first."""
        at = self.queries.index(query)
        return tuple(self.items[i] for i in self.found[self.starts[at] : self.starts[at + 1]])


@dataclass(frozen=True, eq=False)
class GivenRankings:
    """The ranked captions of images (`i2t`) and the ranked images of captions (`t2i`)."""

    does: ClassVar[tuple[Ability, ...]] = ("given_rankings",)

    identity: Identity
    i2t: RankedLists
    t2i: RankedLists


def holds_rankings(path: Path) -> bool:
    """Whether a file is of rankings: a JSON object that begins with "i2t" or "t2i", or any npz file."""
    if path.suffix.lower() == ".npz":
        return True
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with open(path, "rb") as file:
        beginning = file.read(4096).decode("utf-8-sig", "ignore")
    return _BEGINNING.match(beginning) is not None


def load_rankings(argument: str, options: Options = DEFAULT) -> GivenRankings:
    """The rankings in a JSON or npz file.

    Raises `DataError` for files that cannot be read, where a direction is missing, where something is no list
    of ids, and where a list names an item twice.
    """
    reject_unused_options(f"given:{argument}", options)
    path = Path(argument)
    i2t, t2i = _from_arrays(path) if path.suffix.lower() == ".npz" else _from_json(path)
    return GivenRankings(Identity(name=f"given:{argument}", weights=digest_file(path)), i2t, t2i)


def to_lists(ranked: Mapping[str, Any], *, where: str = "rankings") -> RankedLists:
    """The lists of some queries, from ids; raises `DataError` for other things and for doubled ids.

    >>> lists = to_lists({"17": [4, 2], "9": ["2"]})
    >>> lists["17"], lists["9"], lists.lengths
    (('4', '2'), ('2',), array([2, 1]))
    """
    place: dict[str, int] = {}
    parts = []
    for query, ids in ranked.items():
        here = f"{where}, query '{query}'"
        if not isinstance(ids, list | tuple):
            raise DataError("not a list of ids", where=here, given=str(ids)[:40], allowed="[id, id, ...]")
        odd = [str(i)[:40] for i in ids if isinstance(i, bool) or not isinstance(i, int | str)]
        if odd:
            raise DataError("not an id", where=here, given=odd[0], allowed="whole numbers and strings")
        names = [i if isinstance(i, str) else str(i) for i in ids]
        if len(set(names)) < len(names):
            raise _doubled(here, first_double(names))
        parts.append(np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int32))
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
    return RankedLists(tuple(ranked), tuple(place), starts, np.concatenate([np.empty(0, np.int32), *parts]))


def _from_json(path: Path) -> tuple[RankedLists, RankedLists]:
    value = parse_json(read_text(path), where=path)
    if not isinstance(value, dict):
        raise DataError("not rankings", where=path, allowed='{"i2t": {...}, "t2i": {...}}')
    _check_directions(value, path)
    for side in ("i2t", "t2i"):
        if not isinstance(value[side], dict):
            raise DataError(
                "not an object of lists", where=f"{path}, '{side}'", allowed="{query id: [ids], ...}"
            )
    # One direction at a time, so that its text-like form is gone before the next is made.
    i2t = to_lists(value.pop("i2t"), where=f"{path}, i2t")
    return i2t, to_lists(value.pop("t2i"), where=f"{path}, t2i")


def _from_arrays(path: Path) -> tuple[RankedLists, RankedLists]:
    arrays = read_npz(path, names=" ".join(_ARRAYS), hint="check the path after 'given:'")
    if not {"i2t", "t2i"} & arrays.keys():
        raise DataError(
            "not rankings",
            where=path,
            given=f"arrays {', '.join(arrays) or '(none)'}",
            allowed=_ARRAYS,
            hint=f"embeddings are given as embeddings:{path}",
        )
    _check_directions(arrays, path)
    found = []
    for side, names, kind in (("i2t", IMAGE_IDS, "image"), ("t2i", CAPTION_IDS, "caption")):
        table = arrays.pop(side)
        where = f"{path}, array '{side}'"
        if table.ndim != 2 or table.dtype.kind not in "iuU":
            raise DataError(
                "not rows of ids",
                where=where,
                given=f"{table.dtype} {table.shape}",
                allowed="integers or strings, (queries, length)",
            )
        queries = ids_of(arrays, names, len(table), path, per=f"row of '{side}'")
        if queries is None:
            raise DataError(f"no ids of the {kind} queries", where=path, allowed=f"an array '{kind}_ids'")
        found.append(_from_rows(queries, table, where))
    return found[0], found[1]


def _check_directions(value: Mapping[str, Any], path: Path) -> None:
    for side, what in (("i2t", "image id: [caption ids]"), ("t2i", "caption id: [image ids]")):
        if side not in value:
            raise DataError(
                f"the direction '{side}' is missing",
                where=path,
                given=", ".join(value),
                allowed=f'"{side}" with {what}',
                hint="a benchmark is measured in both directions; an empty list ranks nothing for a query",
            )


def _from_rows(queries: tuple[str, ...], table: ndarray, where: str) -> RankedLists:
    """Lists from rows of ids, some rows at a time: what is made on the way is small beside the table."""
    ends = "" if table.dtype.kind == "U" else -1
    if table.dtype.kind == "i" and table.size and table.min() < -1:
        raise DataError(
            "not an id", where=where, given=int(table.min()), allowed="0 and above, or -1 behind the end"
        )
    step = max(1, (1 << 22) // max(table.shape[1], 1))
    rows = [slice(lo, lo + step) for lo in range(0, len(table), step)]
    known, places_of = _numbered(table, rows)
    lengths, parts = [np.zeros(0, np.int64)], [np.empty(0, np.int32)]
    for part in rows:
        ids = table[part]
        listed = ids != ends if table.dtype.kind != "u" else np.ones(ids.shape, dtype=bool)
        length = listed.sum(axis=1)
        holes = (listed != (np.arange(ids.shape[1]) < length[:, None])).any(axis=1)
        if holes.any():
            query = queries[part.start + int(np.argmax(holes))]
            raise DataError(
                "an id behind the end of a list", where=f"{where}, query '{query}'", given=repr(ends)
            )
        places = places_of(ids)
        # Behind the ends stand numbers that occur nowhere, so that no two of a row are equal by themselves.
        ordered = np.sort(np.where(listed, places, -1 - np.arange(ids.shape[1], dtype=np.int32)), axis=1)
        twice = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
        if twice.any():
            at = int(np.argmax(twice))
            double = ordered[at, 1:][ordered[at, 1:] == ordered[at, :-1]][0]
            raise _doubled(f"{where}, query '{queries[part.start + at]}'", str(known[double]))
        lengths.append(length)
        parts.append(places[listed])
    starts = np.concatenate([[0], np.cumsum(np.concatenate(lengths), dtype=np.int64)])
    return RankedLists(queries, tuple(str(i) for i in known.tolist()), starts, np.concatenate(parts))


def _numbered(table: ndarray, rows: Sequence[slice]) -> tuple[ndarray, Callable[[ndarray], ndarray]]:
    """The ids in a table, ascending, and what gives the place of each of some ids among them.

    What stands behind the ends gets a place that means nothing.
    """
    if table.dtype.kind != "U" and table.size and table.max() < _SMALL:
        # Small numbers, as COCO's: a mark and a place for each are found at once. -1 marks the last, unused.
        seen = np.zeros(int(table.max()) + 2, dtype=bool)
        for part in rows:
            seen[table[part]] = True
        seen[-1] = False
        place = (np.cumsum(seen) - 1).astype(np.int32)
        return np.flatnonzero(seen), lambda ids: place[ids]
    known = np.empty(0, table.dtype)
    for part in rows:
        known = np.union1d(known, table[part])
    if table.dtype.kind != "u":
        known = known[known != ("" if table.dtype.kind == "U" else -1)]
    return known, lambda ids: np.searchsorted(known, ids).astype(np.int32)


def _doubled(where: str, item: str) -> DataError:
    return DataError(
        "a ranking names an item twice",
        where=where,
        given=item,
        hint="one of the two pushed another item out: make the list again from the scores",
    )
