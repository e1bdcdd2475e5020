"""Steps that drop rows which come twice, and rows that are also somewhere else."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from counterfoil.build.near_duplicates import first_of_alike, near_duplicates
from counterfoil.build.rating import numbers_of
from counterfoil.build.step import BuiltStep, Output, Work, setting, split_rows
from counterfoil.data.caption_files import read_image_names, read_texts
from counterfoil.data.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.errors import DataError
from counterfoil.evaluation.duplicates import image_stem, normal

#: Reasons for which rows are dropped.
EXACT, NEAR = "exact duplicate", "near-duplicate"
QUESTION, NO_STOP = "a question", "no full stop"
CAPTION_ELSEWHERE, ALIKE_ELSEWHERE = "caption in another set", "caption alike to one in another set"
IMAGE_ELSEWHERE = "image in another set"
CAPTION_IN_SPLIT, IMAGE_IN_SPLIT = "caption in another split", "image in another split"
#: Groups of duplicates that facts show, and ids of each.
_GROUPS, _IDS = 10, 5


@dataclass(frozen=True)
class Dedup(BuiltStep):
    """Of rows with the same captions, or captions that are alike, one is kept."""

    name: ClassVar[str] = "dedup"
    opens: ClassVar[bool] = False

    fields: tuple[str, ...] = setting(
        ("negative_caption",), "The columns of texts that are compared.", within="one or more"
    )
    within: str | None = setting(None, "A column; only rows of the same value are compared: image, subset.")
    near: float | None = setting(
        None,
        "Jaccard similarity of letters from which on texts are alike; none: equal ones.",
        within="between 0 and 1",
    )
    best: str | None = setting(None, "A column of numbers whose highest is kept; by default the first row.")

    @property
    def reads(self) -> Sequence[str]:
        return (*self.fields, *(each for each in (self.within, self.best) if each))

    def run(self, rows: pa.Table, work: Work) -> Output:
        """The rows without duplicates; dropped ones name in `same_as` the row that stays in their place.

        Texts are equal where their words are, in order and in lower case. Every near-duplicate that goes is
        alike to a row that stays. Facts hold the numbers of groups, their largest and examples. Raises
        `DataError` for columns that hold no texts, `MissingExtraError` where `near` is asked for without
        rensa.
        """
        n = len(rows)
        texts = _plain(rows, self.fields)
        value = np.zeros(n, dtype=np.int64) if self.within is None else _coded(rows[self.within])
        order = self._preferred(rows)
        text = _coded(pa.array(texts, pa.large_string()))
        # The first row in the order of preference with the same text and value.
        both = (value * (int(text.max(initial=0)) + 1) + text)[order]
        _, firsts, inverse = np.unique(both, return_index=True, return_inverse=True)
        stands = np.empty(n, dtype=np.int64)
        stands[order] = order[firsts[inverse.reshape(-1)]]
        exact = stands != np.arange(n)
        facts: dict[str, Any] = {"exact": _groups(stands, rows["id"])}
        if self.near is not None:
            left = order[~exact[order]]
            pairs, _ = near_duplicates(
                [texts[row] for row in left.tolist()],
                threshold=self.near,
                seed=work.number("minhash") % (1 << 32),
                progress=work.progress,
            )
            pairs = pairs[value[left[pairs[:, 0]]] == value[left[pairs[:, 1]]]]
            alike = np.arange(n)
            alike[left] = left[first_of_alike(len(left), pairs)]
            facts["near"] = _groups(alike, rows["id"])
            stands = alike[stands]
        kept = stands == np.arange(n)
        same_as = rows["id"].take(pa.array(stands[~kept]))
        first, dropped = split_rows(rows, kept, np.where(exact, EXACT, NEAR).tolist())
        return Output(first, dropped.append_column("same_as", same_as), facts)

    def _preferred(self, rows: pa.Table) -> NDArray[np.int64]:
        """The rows in the order in which they are kept."""
        if self.best is None:
            return np.arange(len(rows))
        numbers = -numbers_of(rows, self.best, where=self.name)
        table = pa.table({"number": np.where(np.isnan(numbers), np.inf, numbers), "id": rows["id"]})
        by = [("number", "ascending"), ("id", "ascending")]
        found: NDArray[np.int64] = pc.sort_indices(table, sort_keys=by).to_numpy().astype(np.int64)
        return found


@dataclass(frozen=True)
class Clean(BuiltStep):
    """Rows that leak from other sets or splits, and captions that are no statements, are dropped."""

    name: ClassVar[str] = "clean"
    opens: ClassVar[bool] = False

    against: tuple[str, ...] = setting(
        (), "Tables, files of captions or benchmarks, with which nothing is to be shared.", file=True
    )
    fields: tuple[str, ...] = setting(
        ("caption", "negative_caption"), "The columns of captions.", among=CAPTION_ROLES
    )
    compare_images: bool = setting(True, "Whether names of images are compared too.")
    near: float | None = setting(
        None,
        "Similarity from which on captions of other sets count; none: equal ones.",
        within="between 0 and 1",
    )
    split: str | None = setting(None, "The column of splits.")
    drop_from: str = setting("train", "The split that loses rows shared with the others.")
    questions: bool = setting(True, "Drop negative captions that are questions.")
    full_stop: bool = setting(False, "Drop negative captions that do not end in a full stop.")

    @property
    def reads(self) -> Sequence[str]:
        return (*self.fields, *([self.split] if self.split else []))

    def run(self, rows: pa.Table, work: Work) -> Output:
        """The rows that are left. A row has the first reason that applies, in the order of the facts.

        Captions are equal by their words, images by their names without folders and endings. Raises
        `DataError` for sets that do not exist or cannot be read, and a split that no row has.
        """
        n = len(rows)
        reasons = np.full(n, "", dtype=object)

        def drop(where: NDArray[np.bool_], reason: str) -> None:
            reasons[where & (reasons == "")] = reason

        for column in self.fields if self.questions or self.full_stop else ():
            if column.startswith("negative"):
                ends = pc.utf8_rtrim_whitespace(rows[column])
                asked = pc.fill_null(pc.ends_with(ends, "?"), False).to_numpy(zero_copy_only=False)
                if self.questions:
                    drop(asked, QUESTION)
                if self.full_stop:
                    stops = pc.fill_null(pc.match_substring_regex(ends, r"[.!?][\"')]*$"), False)
                    drop(~stops.to_numpy(zero_copy_only=False), NO_STOP)
        columns = [_plain(rows, (each,)) for each in self.fields]
        stems = _stems(rows) if self.compare_images else []
        facts: dict[str, Any] = {"sets": {}}
        for name in self.against:
            texts, images = self._other(name, work)
            facts["sets"][name] = self._shared(columns, stems, texts, images, drop, work)
        if self.split is not None:
            self._splits(rows, columns, stems, drop)
        kept, dropped = split_rows(rows, reasons == "", reasons.tolist())
        return Output(kept, dropped, facts)

    def _other(self, name: str, work: Work) -> tuple[list[str], list[str]]:
        path = Path(name)
        if path.is_file():
            return [normal(text) for text in read_texts(path)], list(read_image_names(path))
        if path.suffix and not path.exists():
            raise DataError("no such file", where=name, hint="a table, a file of captions, or a benchmark")
        found = work.benchmark(name, None, None)
        texts = [normal(each.text) for each in found.captions if each.text is not None]
        return texts, [image.id for image in found.images]

    def _shared(
        self,
        columns: list[list[str]],
        stems: list[list[str | None]],
        texts: list[str],
        images: list[str],
        drop: Any,
        work: Work,
    ) -> dict[str, int]:
        """Drop what the rows share with one set; how many rows share what."""
        known, counts = set(texts), {}
        equal = np.any([[text in known for text in column] for column in columns], axis=0)
        drop(equal, CAPTION_ELSEWHERE)
        counts["captions"] = int(equal.sum())
        if self.near is not None:
            own = list(dict.fromkeys(text for column in columns for text in column if text not in known))
            others = list(known)
            pairs, _ = near_duplicates(
                [*sorted(others), *own],
                threshold=self.near,
                seed=work.number("minhash") % (1 << 32),
                progress=work.progress,
            )
            across = pairs[(pairs[:, 0] < len(others)) & (pairs[:, 1] >= len(others)), 1]
            alike = {own[at - len(others)] for at in across.tolist()}
            near = np.any([[text in alike for text in column] for column in columns], axis=0)
            drop(near, ALIKE_ELSEWHERE)
            counts["alike"] = int((near & ~equal).sum())
        named = {image_stem(name) for name in images}
        for column in stems:
            shown = np.array([stem in named for stem in column], dtype=bool)
            drop(shown, IMAGE_ELSEWHERE)
            counts["images"] = counts.get("images", 0) + int(shown.sum())
        return counts

    def _splits(
        self, rows: pa.Table, columns: list[list[str]], stems: list[list[str | None]], drop: Any
    ) -> None:
        labels = np.array(rows[self.split].to_pylist(), dtype=object)
        losing = labels == self.drop_from
        if len(labels) and not losing.any():
            raise DataError(
                "no row of this split",
                where=f"clean, column '{self.split}'",
                given=self.drop_from,
                allowed=sorted({str(label) for label in labels}),
            )
        for cells, reason in ((columns, CAPTION_IN_SPLIT), (stems, IMAGE_IN_SPLIT)):
            others = {cell for column in cells for cell in np.array(column, dtype=object)[~losing].tolist()}
            others.discard(None)
            for column in cells:
                drop(losing & np.array([cell in others for cell in column], dtype=bool), reason)


def _plain(rows: pa.Table, columns: Sequence[str]) -> list[str]:
    """The normal text of each row: that of its columns, line by line."""
    parts = []
    for column in columns:
        kind = rows.schema.field(column).type
        if not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            raise DataError(f"column '{column}' holds no texts", where="the rows", given=str(kind))
        parts.append([normal(cell or "") for cell in rows[column].to_pylist()])
    return parts[0] if len(parts) == 1 else ["\n".join(cells) for cells in zip(*parts, strict=True)]


def _stems(rows: pa.Table) -> list[list[str | None]]:
    """Of each column of images the names by which they are compared."""
    found = []
    for column in IMAGE_ROLES:
        if column in rows.column_names:
            cells = rows[column].to_pylist()
            stem = {cell: image_stem(cell) for cell in dict.fromkeys(cells) if cell is not None}
            found.append([None if cell is None else stem[cell] for cell in cells])
    return found


def _coded(column: pa.Array | pa.ChunkedArray) -> NDArray[np.int64]:
    """A number for each value of a column."""
    coded = pc.dictionary_encode(column, null_encoding="encode")
    coded = coded.combine_chunks() if isinstance(coded, pa.ChunkedArray) else coded
    found: NDArray[np.int64] = coded.indices.to_numpy(zero_copy_only=False).astype(np.int64)
    return found


def _groups(stands: NDArray[np.int64], ids: pa.ChunkedArray) -> dict[str, Any]:
    """How many groups of duplicates there are, the rows of the largest, and the ids of the largest ones."""
    sizes = np.bincount(stands, minlength=len(stands))
    several = np.flatnonzero(sizes > 1)
    largest = several[np.argsort(-sizes[several], kind="stable")][:_GROUPS]
    examples = [
        ids.take(pa.array(np.flatnonzero(stands == row)[:_IDS])).to_pylist() for row in largest.tolist()
    ]
    return {
        "groups": len(several),
        "rows": int((sizes[several] - 1).sum()),
        "largest": int(sizes.max(initial=0)) if len(several) else 0,
        "examples": examples,
    }
