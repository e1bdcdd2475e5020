"""Given embeddings (npz), similarities (npy; images x captions) and rankings (JSON), read without unpickling.

Rankings are ids, best first: `{"i2t": {image id: [caption ids]}, "t2i": {caption id: [image ids]}}`.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from jaxtyping import Float, Int, Real
from numpy import ndarray

from counterfoil.benchmarks.tables import first_double
from counterfoil.errors import DataError
from counterfoil.inputs.arrays import read_npy, read_npz
from counterfoil.inputs.files import digest_file, parse_json, read_text
from counterfoil.inputs.limits import check_room
from counterfoil.models.base import DEFAULT, Identity, Options, PairVectors, cosines, reject_unused_options

#: Names under which files in the wild keep their arrays, ours first.
IMAGES = ("images", "image", "img", "imgs", "image_embeddings", "image_embeds")
CAPTIONS = ("captions", "caption", "cap", "caps", "text", "texts", "caption_embeddings", "text_embeds")
IMAGE_IDS = ("image_ids", "image_id", "img_ids")
CAPTION_IDS = ("caption_ids", "caption_id", "cap_ids", "text_ids")

#: Values of embeddings whose lengths neither overflow nor vanish in any precision that is computed in.
_LARGEST, _SMALLEST = 1e15, 1e-15


@dataclass(frozen=True, eq=False)
class PrecomputedEmbeddings:
    """Embeddings as stored, (items, width), finite and not zero; without ids in the order of a benchmark."""

    does = ("given_embeddings",)

    identity: Identity
    images: Float[ndarray, "images width"]
    captions: Float[ndarray, "captions width"]
    image_ids: tuple[str, ...] | None = None
    caption_ids: tuple[str, ...] | None = None
    held: ClassVar[str] = "embedding"

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.images), len(self.captions)

    def compare(self, captions: PairVectors, images: PairVectors) -> Float[ndarray, "pairs"]:
        left, right = captions.astype(np.float64), images.astype(np.float64)
        return cosines(left, right) / (np.linalg.norm(left, axis=1) * np.linalg.norm(right, axis=1))


def load_embeddings(argument: str, options: Options = DEFAULT) -> PrecomputedEmbeddings:
    """The embeddings in the npz file `argument`; of captions alone they are compared with each other."""
    reject_unused_options(f"embeddings:{argument}", options)
    path = Path(argument)
    arrays = read_npz(path, names="images captions", hint="check the path after 'embeddings:'")
    caption_name, captions = _embeddings_of(arrays, CAPTIONS, path)
    image_name, images = "", captions[:0]
    if any(name.lower() not in (*CAPTIONS, *CAPTION_IDS) for name in arrays):
        image_name, images = _embeddings_of(arrays, IMAGES, path)
    if images.shape[1] != captions.shape[1]:
        given = f"'{image_name}' {images.shape}, '{caption_name}' {captions.shape}"
        hint = "both must come from the same model, after its projections"
        raise DataError("image and caption embeddings differ in width", where=path, given=given, hint=hint)
    image_ids = ids_of(arrays, IMAGE_IDS, len(images), path, per="embedding")
    caption_ids = ids_of(arrays, CAPTION_IDS, len(captions), path, per="embedding")
    identity = Identity(f"embeddings:{argument}", weights=digest_file(argument))
    return PrecomputedEmbeddings(identity, images, captions, image_ids, caption_ids)


def _embeddings_of(
    arrays: Mapping[str, ndarray], names: tuple[str, ...], path: Path
) -> tuple[str, Float[ndarray, "rows width"]]:
    fitting = [name for name in arrays if name.lower() in names]
    if len(fitting) != 1:
        problem = f"{'several arrays' if fitting else 'no array'} could be the {names[0]}"
        given, allowed = ", ".join(fitting or arrays) or "(no arrays)", f"one of {', '.join(names)}"
        raise DataError(problem, where=path, given=given, allowed=allowed)
    array, where = arrays[fitting[0]], f"{path}, array '{fitting[0]}'"
    if array.dtype.kind != "f":
        problem, allowed = "embeddings are not floating point", "float16, float32, float64"
        raise DataError(problem, where=where, given=array.dtype, allowed=allowed)
    if array.ndim != 2 or 0 in array.shape:
        problem, allowed, hint = "embeddings have the wrong shape", "(rows, width)", None
        if array.ndim > 2 and array.size:
            hint = f"reshape it to ({array.size // array.shape[-1]}, {array.shape[-1]})"
        raise DataError(problem, where=where, given=array.shape, allowed=allowed, hint=hint)
    check_room(array.size * 8, where=where, what="these embeddings")
    values: ndarray = array.astype(np.float64 if array.dtype.itemsize >= 8 else np.float32)
    largest = np.abs(values).max(axis=1)
    for problem, wrong, hint in (
        ("embedding is not finite", ~np.isfinite(largest), "{} of {} rows have NaN or infinite values"),
        (
            f"embedding has values above {_LARGEST:g}",
            largest > _LARGEST,
            "{} of {}; divide all by one number",
        ),
        ("embedding is all zeros (or nearly)", largest < _SMALLEST, "{} of {} rows are zero"),
    ):
        if wrong.any():
            row, hint = int(np.argmax(wrong)) + 1, hint.format(int(wrong.sum()), len(values))
            raise DataError(problem, where=f"{where}, row {row}", hint=hint)
    return fitting[0], values


def ids_of(
    arrays: Mapping[str, ndarray], names: tuple[str, ...], rows: int, path: Path, *, per: str
) -> tuple[str, ...] | None:
    """The ids among the arrays of a file, as strings; None where it has none under any of the names."""
    id_arrays = [name for name in arrays if name.lower() in names]
    if not id_arrays:
        return None
    array = arrays[id_arrays[0]]
    where = f"{path}, array '{id_arrays[0]}'"
    if array.dtype.kind not in "iuUS" or array.ndim != 1:
        given = f"{array.dtype} {array.shape}"
        raise DataError("ids are not a list of integers or strings", where=where, given=given)
    if len(array) != rows:
        raise DataError(f"not one id per {per}", where=where, given=f"{len(array)} ids", allowed=str(rows))
    values = array.tolist()
    ids = tuple(v.decode("utf-8", "replace") if isinstance(v, bytes) else str(v) for v in values)
    if len(set(ids)) < rows:
        name = first_double(ids)
        one, other = [row for row, one_id in enumerate(ids, 1) if one_id == name][:2]
        raise DataError("id occurs twice", where=f"{where}, rows {one} and {other}", given=name)
    return ids


@dataclass(frozen=True, eq=False)
class PrecomputedSimilarity:
    """Scores of images (rows) with captions (columns) as stored, memory-mapped; NaN is not looked for."""

    does = ("given_similarity",)

    identity: Identity
    values: Real[ndarray, "images captions"]
    image_ids: tuple[str, ...] | None = None
    caption_ids: tuple[str, ...] | None = None
    held: ClassVar[str] = "score"

    @property
    def shape(self) -> tuple[int, int]:
        return self.values.shape[0], self.values.shape[1]


def load_similarity(argument: str, options: Options = DEFAULT) -> PrecomputedSimilarity:
    """The similarity in an npy file, with the ids in the npz file `options.ids` if there is one."""
    reject_unused_options(f"given:{argument}", options, "ids")
    path = Path(argument)
    values = read_npy(path, mapped=True, hint="check the path after 'given:'")
    if values.dtype.kind not in "iu" and values.dtype.type not in (np.float16, np.float32, np.float64):
        problem = "a similarity is not of real numbers"
        allowed = "float16, float32, float64, integers"
        raise DataError(problem, where=path, given=values.dtype, allowed=allowed)
    if values.ndim != 2 or 0 in values.shape:
        problem, allowed = "a similarity has the wrong shape", "(images, captions)"
        raise DataError(problem, where=path, given=values.shape, allowed=allowed)
    identity = Identity(f"given:{argument}", weights=digest_file(path))
    if (file := options.ids) is None:
        return PrecomputedSimilarity(identity, values)
    arrays = read_npz(file, names="image_ids caption_ids", hint="check the path after '--ids'")
    rows = ids_of(arrays, IMAGE_IDS, values.shape[0], file, per=f"row of {path.name}")
    columns = ids_of(arrays, CAPTION_IDS, values.shape[1], file, per=f"column of {path.name}")
    if rows is None or columns is None:
        problem = f"no ids of {'images' if rows is None else 'captions'}"
        given, allowed = ", ".join(arrays) or "(no arrays)", "image_ids and caption_ids"
        raise DataError(problem, where=file, given=given, allowed=allowed)
    identity = replace(identity, options={"ids": digest_file(file)})
    return PrecomputedSimilarity(identity, values, rows, columns)


# {"i2t": {"17": [ ..., as no table begins.
_BEGINNING = re.compile(r'\s*\{\s*"(i2t|t2i)"\s*:\s*(\[|\{\s*(\}|"[^"]*"\s*:\s*\[))')


@dataclass(frozen=True, eq=False)
class RankedLists:
    """A ranked list per query: that of query q is `entries[starts[q]:starts[q + 1]]`, places in `items`."""

    queries: tuple[str, ...]
    items: tuple[str, ...]
    starts: Int[ndarray, "bounds"]
    entries: Int[ndarray, "entries"]

    @property
    def lengths(self) -> Int[ndarray, "queries"]:
        return np.diff(self.starts)

    def __getitem__(self, query: str) -> tuple[str, ...]:
        j = self.queries.index(query)
        return tuple(self.items[i] for i in self.entries[self.starts[j] : self.starts[j + 1]])


@dataclass(frozen=True, eq=False)
class PrecomputedRankings:
    """The ranked captions of images (`i2t`) and the ranked images of captions (`t2i`)."""

    does = ("given_rankings",)

    identity: Identity
    i2t: RankedLists
    t2i: RankedLists


def holds_rankings(path: Path) -> bool:
    """Whether a file is of rankings: a JSON object that begins with "i2t" or "t2i"."""
    if path.suffix.lower() != ".json" or not path.is_file():
        return False
    with open(path, "rb") as file:
        beginning = file.read(4096).decode("utf-8-sig", "ignore")
    return _BEGINNING.match(beginning) is not None


def load_rankings(argument: str, options: Options = DEFAULT) -> PrecomputedRankings:
    reject_unused_options(f"given:{argument}", options)
    path = Path(argument)
    value = parse_json(read_text(path), where=path)
    if not isinstance(value, dict):
        raise DataError("not rankings", where=path, allowed='{"i2t": {...}, "t2i": {...}}')
    for side, what in (("i2t", "image id: [caption ids]"), ("t2i", "caption id: [image ids]")):
        if side not in value:
            problem, given = f"the direction '{side}' is missing", ", ".join(value)
            hint = "a benchmark is measured in both directions; an empty list ranks nothing for a query"
            raise DataError(problem, where=path, given=given, allowed=f'"{side}" with {what}', hint=hint)
        if not isinstance(value[side], dict):
            where, allowed = f"{path}, '{side}'", "{query id: [ids], ...}"
            raise DataError("not an object of lists", where=where, allowed=allowed)
    # One direction at a time, so that its text-like form is gone before the next is made.
    i2t, t2i = (to_lists(value.pop(side), where=f"{path}, {side}") for side in ("i2t", "t2i"))
    return PrecomputedRankings(Identity(name=f"given:{argument}", weights=digest_file(path)), i2t, t2i)


def to_lists(ranked: Mapping[str, Any], *, where: str = "rankings") -> RankedLists:
    """The lists of some queries, from ids; raises `DataError` for other things and for doubled ids."""
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
            problem, given = "a ranking names an item twice", first_double(names)
            hint = "one of the two pushed another item out: make the list again from the scores"
            raise DataError(problem, where=here, given=given, hint=hint)
        parts.append(np.array([place.setdefault(name, len(place)) for name in names], dtype=np.int32))
    starts = np.concatenate([[0], np.cumsum([len(part) for part in parts], dtype=np.int64)])
    return RankedLists(tuple(ranked), tuple(place), starts, np.concatenate([np.empty(0, np.int32), *parts]))
