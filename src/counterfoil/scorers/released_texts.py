"""Free-text answers of chat models as they were released: the letters that they name, as right and wrong.

ColorSwap's `vlm_results/text-*-colorswap.json` holds an object per question: for each of two images the
prompt ("(A) ..., or (B) ..."), the response as it came, and a log of both captions in the order shown and of
the right letter. That is one direction of a quad, whether both images pick their caption (`i2t`).
"""

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.tables import DataTable
from counterfoil.errors import ScoreError
from counterfoil.scorers.chat.parsing import option_letter

#: The responses about the first and the second image, and the logs beside them.
RESPONSES = ("response_image_1", "response_image_2")
_LOGS = ("log_1", "log_2")
_CAPTIONS = ("caption_1", "caption_2")
_RIGHT = "correct_answer"


def holds_texts(table: DataTable) -> bool:
    """Whether a table has the columns of such answers, with logs that are objects."""
    return all(name in table for name in (*RESPONSES, *_LOGS)) and all(
        isinstance(table[name][0], Mapping) for name in _LOGS if len(table)
    )


def with_captions(table: DataTable) -> DataTable:
    """The same table with the captions of each question: `caption_0` is that of the first image.

    Raises `ScoreError` for a log that lacks its captions or its right letter, naming the row.
    """
    captions = {
        f"caption_{side}": [
            _shown(table, name, row)[0][_right(table, name, row)] for row in range(len(table))
        ]
        for side, name in enumerate(_LOGS)
    }
    return DataTable({**table.columns, **captions}, table.source, table.kind, table.parts)


def letters_right(
    table: DataTable,
) -> tuple[dict[str, NDArray[np.bool_]], dict[str, NDArray[np.bool_]]]:
    """Whether each image picked its caption (`ipos2t`, `ineg2t`), and which responses cannot be read.

    A response that names no letter and no caption is not right, and is marked under its column. Each of
    the 600 responses of GPT-4V can be read, and 274 of 300 questions have both right.
    Source: ColorSwap, the released file `text-gpt4v-colorswap.json`.
    """
    right: dict[str, NDArray[np.bool_]] = {}
    unread: dict[str, NDArray[np.bool_]] = {}
    for outcome, response, name in zip(("ipos2t", "ineg2t"), RESPONSES, _LOGS, strict=True):
        picked: list[int | None] = []
        for row in range(len(table)):
            options, text = _shown(table, name, row)[0], table[response][row]
            picked.append(option_letter(text, options) if isinstance(text, str) else None)
        wanted = [_right(table, name, row) for row in range(len(table))]
        right[outcome] = np.array([one == other for one, other in zip(picked, wanted, strict=True)])
        unread[response] = np.array([letter is None for letter in picked])
    return right, unread


def _shown(table: DataTable, column: str, row: int) -> tuple[Sequence[str], str]:
    """The captions in the order shown, and the right letter."""
    log = table[column][row]
    cells = [log.get(name) if isinstance(log, Mapping) else None for name in (*_CAPTIONS, _RIGHT)]
    if not all(isinstance(cell, str) for cell in cells) or cells[2] not in ("A", "B"):
        raise ScoreError(
            "the log does not say what was asked",
            where=table.where(row, column),
            given=str(log),
            allowed="an object with caption_1, caption_2 and correct_answer (A or B)",
        )
    return [str(cell) for cell in cells[:2]], str(cells[2])


def _right(table: DataTable, column: str, row: int) -> int:
    return "AB".index(_shown(table, column, row)[1])
