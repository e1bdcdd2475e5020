"""`format`: captions made uniform, so that their form does not tell right ones from wrong ones."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.build.step import BuiltStep, Output, StepContext, with_column
from counterfoil.errors import DataError
from counterfoil.inputs.fields import setting

#: Typographic marks and what stands for them.
_QUOTES = (
    ("[\u2018\u2019\u201b\u0060\u00b4]", "'"),
    ("[\u201c\u201d\u201f\u00ab\u00bb]", '"'),
    ("\u2026", "..."),
)
#: Spaces within, at the ends, before marks, and behind commas that lack one.
_SPACES = (
    (r"[\s\x{00a0}\x{200b}\x{feff}]{2,}|[^\S ]|[\x{00a0}\x{200b}\x{feff}]", " "),
    (r"^ | $", ""),
    (r" +([.,;:!?])(\s|$)", r"\1\2"),
    (r",([A-Za-z])", r", \1"),
)
_CHANGES = ("spaces", "quotes", "capitals", "first letter", "final stop")


def uniform(
    captions: pa.Array | pa.ChunkedArray, *, case: bool = True, stop: bool = True
) -> tuple[pa.ChunkedArray, dict[str, int]]:
    """Captions in one form, and how many each kind of change changed; what is missing or empty stays so.

    Source: Miranda et al., BiVLC, 2024, section 3.1, step 1.
    """
    texts = captions if isinstance(captions, pa.ChunkedArray) else pa.chunked_array([captions])
    texts = texts.cast(pa.string())
    counts = dict.fromkeys(_CHANGES, 0)

    def changed(kind: str, edited: pa.ChunkedArray) -> pa.ChunkedArray:
        counts[kind] += pc.sum(pc.not_equal(edited, texts)).as_py() or 0
        return edited

    texts = changed("spaces", _edited(texts, _SPACES))
    texts = changed("quotes", _edited(texts, _QUOTES))
    if case:
        shouted = pc.and_(pc.utf8_is_upper(texts), pc.match_substring_regex(texts, r"\S \S+ \S"))
        titled = pc.and_(pc.utf8_is_title(texts), pc.match_substring_regex(texts, r"\S \S+ \S+ \S"))
        loud = pc.fill_null(pc.or_(shouted, titled), False)
        texts = changed("capitals", _where(texts, loud, _capitalised(pc.utf8_lower(texts.filter(loud)))))
        texts = changed("first letter", _capitalised(texts))
    if stop:
        ended = pc.match_substring_regex(texts, r"[.!?][\"')\]]*$")
        empty = pc.equal(pc.utf8_length(texts), 0)
        open_ = pc.fill_null(pc.invert(pc.or_(ended, empty)), False)
        bare = pc.utf8_rtrim(texts.filter(open_), " ,;:-")
        texts = changed("final stop", _where(texts, open_, pc.binary_join_element_wise(bare, ".", "")))
    return texts, counts


def _capitalised(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    first = pc.utf8_upper(pc.utf8_slice_codeunits(texts, 0, 1))
    return pc.binary_join_element_wise(first, pc.utf8_slice_codeunits(texts, 1), "")


def _edited(texts: pa.ChunkedArray, rules: Sequence[tuple[str, str]]) -> pa.ChunkedArray:
    """The texts after every rule (a pattern and what it becomes); texts that none fits stay."""
    some = pc.fill_null(pc.match_substring_regex(texts, "|".join(pattern for pattern, _ in rules)), False)
    edited = texts.filter(some)
    for pattern, new in rules:
        edited = pc.replace_substring_regex(edited, pattern, new)
    return _where(texts, some, edited)


def _where(texts: pa.ChunkedArray, mask: pa.ChunkedArray, new: pa.ChunkedArray) -> pa.ChunkedArray:
    """The texts with those where the mask is true replaced, in order."""
    if not len(new):
        return texts
    replaced = pc.replace_with_mask(texts.combine_chunks(), mask.combine_chunks(), new.combine_chunks())
    return replaced if isinstance(replaced, pa.ChunkedArray) else pa.chunked_array([replaced])


@dataclass(frozen=True)
class Format(BuiltStep):
    """Captions in one form: first letter, final stop, spaces, quotes; `X_original` keeps what was there."""

    name: ClassVar[str] = "format"

    columns: tuple[str, ...] = setting(("caption", "negative_caption"), "Columns to make uniform.", least=1)
    case: bool = setting(True, "Begin with a capital; undo captions all in capitals.")
    stop: bool = setting(True, "End with a full stop.")

    @property
    def produces(self) -> Sequence[str]:
        return tuple(name for column in self.columns for name in (column, f"{column}_original"))

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        columns = [column for column in self.columns if column in rows.column_names]
        if not columns:
            where, given = f"step {context.step}", rows.column_names
            raise DataError("no column to format", where=where, given=given, allowed=self.columns)
        facts: dict[str, dict[str, int]] = {}
        for column in columns:
            before = rows[column]
            if not (pa.types.is_string(before.type) or pa.types.is_large_string(before.type)):
                raise DataError("captions are no text", where=f"column '{column}'", given=str(before.type))
            texts, facts[column] = uniform(before, case=self.case, stop=self.stop)
            if f"{column}_original" not in rows.column_names:
                rows = with_column(rows, f"{column}_original", before)
            rows = with_column(rows, column, texts)
        return Output(rows, facts={"changed": facts})
