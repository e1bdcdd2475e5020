"""Steps that drop rows which come twice, and rows that are also somewhere else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.benchmarks.caption_files import read_image_names, read_texts
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.rating import numbers_of
from counterfoil.build.step import BuiltStep, Output, StepContext, codes_of, order_by, split_rows
from counterfoil.engine.plan import Progress, silent
from counterfoil.errors import DataError, MissingExtraError
from counterfoil.evaluation.duplicates import image_stem, normal
from counterfoil.inputs.fields import setting

#: Letters of a shingle, as in `evaluation.duplicates`.
_LETTERS = 4
#: MinHash values of a text, at most, and the chance to find a pair at the threshold, at least.
_VALUES, _RECALL = 128, 0.99
#: Texts that are hashed together.
_BLOCK = 50_000
#: The most earlier texts of a shared band that each text is compared with.
_COMPARED = 100


def bands_of(threshold: float) -> tuple[int, int]:
    """The number of bands and values in each, with which pairs at the threshold meet surely enough."""
    surely = (w for w in range(16, 1, -1) if 1 - (1 - threshold**w) ** (_VALUES // w) >= _RECALL)
    width = next(surely, 1)
    return _VALUES // width, width


def near_duplicates(
    texts: Sequence[str], *, threshold: float, seed: int, progress: Progress = silent
) -> tuple[Int[ndarray, "pairs 2"], NDArray[np.float64]]:
    """Pairs (i, j), i < j, of texts alike to `threshold` or more, and how alike, in the order of j, then i.

    Alike is the Jaccard similarity of sets of four letters, as in audits (`evaluation.duplicates`). MinHash
    and banding find two texts at the threshold with a chance of 99 % or more; of more than 100 texts in one
    band each is compared with the 100 before it. Source: Leskovec, Rajaraman, Ullman, Mining of massive
    datasets, chapter 3.
    """
    try:
        import rensa
    except ImportError:
        raise MissingExtraError("rensa", "build") from None
    n_bands, width = bands_of(threshold)
    n = len(texts)
    if n < 2:
        return np.zeros((0, 2), dtype=np.int64), np.zeros(0)
    index = rensa.RMinHashLSH(threshold, n_bands * width, n_bands)

    def hashed(texts: Sequence[str]) -> Iterator["rensa.RMinHashDigestMatrix"]:
        for start in range(0, len(texts), _BLOCK):
            tokens, offsets = shingle_hashes(texts[start : start + _BLOCK])
            yield rensa.RMinHash.digest_matrix_from_flat_token_hashes(tokens, offsets, n_bands * width, seed)

    # First which texts meet another in any band; most do not, and nothing more is kept of them.
    for number, matrix in enumerate(hashed(texts)):
        index.insert_matrix(matrix, number * _BLOCK)
        progress("hashing captions", min((number + 1) * _BLOCK, n), n)
    met = [np.array(index.query_duplicate_flags_matrix(matrix), dtype=bool) for matrix in hashed(texts)]
    del index
    rows = np.flatnonzero(np.concatenate(met))
    few = [texts[row] for row in rows.tolist()]
    values = [np.array(matrix.to_rows(), dtype=np.uint32) for matrix in hashed(few)]
    nothing = np.zeros((0, n_bands * width), dtype=np.uint32)
    pairs = _candidates(np.concatenate([nothing, *values]), n_bands, width)
    alike = _jaccard(*shingle_hashes(few), pairs, progress)
    near = alike >= threshold - 1e-9
    return rows[pairs[near]].reshape(-1, 2), alike[near]


def shingle_hashes(texts: Sequence[str]) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """A 64-bit hash of each run of four letters of each text, and where each text's begin and end."""
    padded = [text.ljust(_LETTERS, "\0") for text in texts]
    lengths = np.array([len(text) for text in padded], dtype=np.int64)
    offsets = np.concatenate([[0], np.cumsum(lengths - _LETTERS + 1)]).astype(np.uint64)
    codes = np.frombuffer("".join(padded).encode("utf-32-le", "surrogatepass"), dtype=np.uint32)
    codes = codes.astype(np.uint64)
    if not len(codes):
        return np.zeros(0, dtype=np.uint64), offsets
    # A code point has 21 bits: three of them fill a word, and the fourth is mixed in.
    n = len(codes) - _LETTERS + 1
    hashes = codes[:n] | (codes[1 : n + 1] << np.uint64(21)) | (codes[2 : n + 2] << np.uint64(42))
    hashes ^= codes[3 : n + 3] * np.uint64(0x9E3779B97F4A7C15)
    # The end of SplitMix64, which spreads every bit over all others.
    hashes ^= hashes >> np.uint64(30)
    hashes *= np.uint64(0xBF58476D1CE4E5B9)
    hashes ^= hashes >> np.uint64(27)
    hashes *= np.uint64(0x94D049BB133111EB)
    hashes ^= hashes >> np.uint64(31)
    inside = np.ones(n, dtype=bool)
    for back in range(1, _LETTERS):
        inside[np.cumsum(lengths)[:-1] - back] = False
    return hashes[inside], offsets


def first_of_alike(n: int, pairs: Int[ndarray, "pairs 2"]) -> Int[ndarray, "n"]:
    """For each of n texts the one that is kept in its place: itself, or the first kept one that is alike."""
    stands = np.arange(n)
    for i, j in pairs.tolist():
        if stands[i] == i and stands[j] == j:
            stands[j] = i
    return stands


def _candidates(values: NDArray[np.uint32], n_bands: int, width: int) -> NDArray[np.int64]:
    """The pairs of rows that have the same values in some band, in the order of the later row."""
    n = len(values)
    candidates = [np.zeros((0, 2), dtype=np.int64)]
    for band in range(n_bands if n else 0):
        part = np.ascontiguousarray(values[:, band * width : (band + 1) * width])
        key = part.view(np.dtype((np.void, part.dtype.itemsize * width))).reshape(-1)
        order = np.argsort(key, kind="stable")
        same = np.concatenate([key[order][1:] == key[order][:-1], [False]])
        # Rows of one key lie together; pairs at a distance of 1, 2, ... within them.
        there = same.copy()
        for lag in range(1, _COMPARED + 1):
            positions = np.flatnonzero(there)
            if not len(positions):
                break
            candidates.append(np.stack([order[positions], order[positions + lag]], axis=1))
            there[: n - lag] &= same[lag:]
            there[n - lag :] = False
    pairs = np.concatenate(candidates)
    number = np.unique(pairs[:, 1] * n + pairs[:, 0])
    return np.stack([number % max(1, n), number // max(1, n)], axis=1)


def _jaccard(
    tokens: NDArray[np.uint64], offsets: NDArray[np.uint64], pairs: NDArray[np.int64], progress: Progress
) -> NDArray[np.float64]:
    from scipy.sparse import csr_matrix

    if not len(pairs):
        return np.zeros(0)
    names, columns = np.unique(tokens, return_inverse=True)
    table = csr_matrix(
        (np.ones(len(tokens), dtype=np.int32), columns.reshape(-1), offsets.astype(np.int64)),
        shape=(len(offsets) - 1, len(names)),
    )
    table.sum_duplicates()
    table.data[:] = 1
    sizes = np.diff(table.indptr)
    similarity = np.zeros(len(pairs))
    for start in range(0, len(pairs), _BLOCK):
        one, other = pairs[start : start + _BLOCK].T
        both = np.asarray(table[one].multiply(table[other]).sum(axis=1)).reshape(-1)
        similarity[start : start + _BLOCK] = both / (sizes[one] + sizes[other] - both)
        progress("comparing captions", min(start + _BLOCK, len(pairs)), len(pairs))
    return similarity


EXACT, NEAR = "exact duplicate", "near-duplicate"
QUESTION, NO_STOP = "a question", "no full stop"
CAPTION_ELSEWHERE, ALIKE_ELSEWHERE = "caption in another set", "caption alike to one in another set"
IMAGE_ELSEWHERE = "image in another set"
#: Groups of duplicates that facts show, and ids of each.
_GROUPS, _IDS = 10, 5


@dataclass(frozen=True)
class Dedup(BuiltStep):
    """Keep one of several rows with equal or similar captions."""

    name: ClassVar[str] = "dedup"
    opens: ClassVar[bool] = False

    fields: tuple[str, ...] = setting(
        ("negative_caption",), "Columns of texts to compare.", least=1, column=True
    )
    within: str | None = setting(
        None, "Compare only rows with the same value in this column: image, subset.", column=True
    )
    near: float | None = setting(
        None,
        "Least Jaccard similarity of letters at which texts are similar; default: equal texts only.",
        above=0,
        below=1,
    )
    best: str | None = setting(
        None, "Keep the row with the highest value in this column; default: the first row.", column=True
    )

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """The rows without duplicates; dropped ones name in `same_as` the row that stays in their place."""
        n = len(rows)
        texts = _plain(rows, self.fields)
        value = np.zeros(n, dtype=np.int64) if self.within is None else codes_of(rows[self.within])[0]
        order = np.arange(n)
        if self.best is not None:
            numbers = -numbers_of(rows, self.best, where=self.name)
            order = order_by(number=np.where(np.isnan(numbers), np.inf, numbers), id=rows["id"])
        text, _ = codes_of(pa.array(texts, pa.large_string()))
        # The first row in the order of preference with the same text and value.
        both = (value * (int(text.max(initial=0)) + 1) + text)[order]
        _, firsts, inverse = np.unique(both, return_index=True, return_inverse=True)
        stands = np.empty(n, dtype=np.int64)
        stands[order] = order[firsts[inverse.reshape(-1)]]
        exact = stands != np.arange(n)
        facts: dict[str, Any] = {"exact": _groups(stands, rows["id"])}
        if self.near is not None:
            left = order[~exact[order]]
            pairs = _near([texts[row] for row in left.tolist()], self.near, context)
            pairs = pairs[value[left[pairs[:, 0]]] == value[left[pairs[:, 1]]]]
            alike = np.arange(n)
            alike[left] = left[first_of_alike(len(left), pairs)]
            facts["near"] = _groups(alike, rows["id"])
            stands = alike[stands]
        stays = stands == np.arange(n)
        same_as = rows["id"].take(pa.array(stands[~stays]))
        first, dropped = split_rows(rows, stays, np.where(exact, EXACT, NEAR).tolist())
        return Output(first, dropped.append_column("same_as", same_as), facts)


@dataclass(frozen=True)
class Clean(BuiltStep):
    """Drop rows that occur in other sets, and captions that are no statements."""

    name: ClassVar[str] = "clean"
    opens: ClassVar[bool] = False

    against: tuple[str, ...] = setting(
        (), "Tables, caption files or benchmarks that must share nothing with the rows.", file=True
    )
    fields: tuple[str, ...] = setting(
        ("caption", "negative_caption"), "Columns of captions.", among=CAPTION_ROLES, least=1, column=True
    )
    compare_images: bool = setting(True, "Also compare names of images.")
    near: float | None = setting(
        None,
        "Least similarity at which a caption counts as shared; default: equal captions only.",
        above=0,
        below=1,
    )
    questions: bool = setting(True, "Drop negative captions that are questions.")
    full_stop: bool = setting(False, "Drop negative captions that do not end in a full stop.")

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """The rows that are left; each row that goes has the first reason that applies."""
        reasons = np.full(len(rows), "", dtype=object)

        def drop(where: NDArray[np.bool_], reason: str) -> None:
            reasons[where & (reasons == "")] = reason

        for column in self.fields:
            if column.startswith("negative"):
                ends = pc.utf8_rtrim_whitespace(rows[column])
                if self.questions:
                    drop(_matching(ends, r"\?$"), QUESTION)
                if self.full_stop:
                    drop(~_matching(ends, r"[.!?][\"')]*$"), NO_STOP)
        columns = [_plain(rows, (column,)) for column in self.fields]
        # The names by which images are compared.
        stems = [
            [None if cell is None else image_stem(cell) for cell in rows[role].to_pylist()]
            for role in IMAGE_ROLES
            if self.compare_images and role in rows.column_names
        ]
        facts: dict[str, Any] = {"sets": {}}
        for name in self.against:
            facts["sets"][name] = self._shared(name, columns, stems, drop, context)
        clean, dropped = split_rows(rows, reasons == "", reasons.tolist())
        return Output(clean, dropped, facts)

    def _shared(
        self,
        name: str,
        columns: list[list[str]],
        stems: list[list[str | None]],
        drop: Any,
        context: StepContext,
    ) -> dict[str, int]:
        """Drop what the rows share with one set; how many rows share what."""
        path = Path(name)
        texts: Sequence[str | None]
        if path.is_file():
            texts, images = read_texts(path), list(read_image_names(path))
        elif path.suffix and not path.exists():
            raise DataError("no such file", where=name, hint="a table, a file of captions, or a benchmark")
        else:
            benchmark = context.benchmark(name, None, None)
            texts = [caption.text for caption in benchmark.captions]
            images = [image.id for image in benchmark.images]
        shared_texts = {normal(text) for text in texts if text is not None}
        equal = np.any([[text in shared_texts for text in column] for column in columns], axis=0)
        drop(equal, CAPTION_ELSEWHERE)
        counts = {"captions": int(equal.sum())}
        if self.near is not None:
            mine = [text for text in dict.fromkeys(chain(*columns)) if text not in shared_texts]
            others = len(shared_texts)
            pairs = _near([*sorted(shared_texts), *mine], self.near, context)
            across = pairs[(pairs[:, 0] < others) & (pairs[:, 1] >= others), 1]
            alike = {mine[i - others] for i in across.tolist()}
            near = np.any([[text in alike for text in column] for column in columns], axis=0)
            drop(near, ALIKE_ELSEWHERE)
            counts["alike"] = int((near & ~equal).sum())
        named = {image_stem(name) for name in images}
        for column in stems:
            shown = np.array([stem in named for stem in column], dtype=bool)
            drop(shown, IMAGE_ELSEWHERE)
            counts["images"] = counts.get("images", 0) + int(shown.sum())
        return counts


def _matching(texts: pa.ChunkedArray, pattern: str) -> NDArray[np.bool_]:
    matched = pc.fill_null(pc.match_substring_regex(texts, pattern), False)
    return np.asarray(matched.to_numpy(zero_copy_only=False), dtype=bool)


def _near(texts: Sequence[str], threshold: float, context: StepContext) -> Int[ndarray, "pairs 2"]:
    seed = context.number("minhash") % (1 << 32)
    return near_duplicates(texts, threshold=threshold, seed=seed, progress=context.progress)[0]


def _plain(rows: pa.Table, columns: Sequence[str]) -> list[str]:
    """The normal text of each row: that of its columns, line by line."""
    parts = []
    for column in columns:
        kind = rows.schema.field(column).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise DataError(f"column '{column}' holds no texts", where="the rows", given=str(kind))
        parts.append([normal(cell or "") for cell in rows[column].to_pylist()])
    return parts[0] if len(parts) == 1 else ["\n".join(cells) for cells in zip(*parts, strict=True)]


def _groups(stands: NDArray[np.int64], ids: pa.ChunkedArray) -> dict[str, Any]:
    """How many groups of duplicates there are, the rows of the largest, and the ids of the largest ones."""
    sizes = np.bincount(stands, minlength=len(stands))
    several = np.flatnonzero(sizes > 1)
    largest = several[np.argsort(-sizes[several], kind="stable")][:_GROUPS]
    members = (np.flatnonzero(stands == row)[:_IDS] for row in largest)
    facts: dict[str, Any] = {"groups": len(several), "rows": int((sizes[several] - 1).sum())}
    facts["largest"] = int(sizes.max(initial=0)) if len(several) else 0
    return {**facts, "examples": [ids.take(pa.array(rows)).to_pylist() for rows in members]}
