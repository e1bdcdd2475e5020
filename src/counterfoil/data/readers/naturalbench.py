"""NaturalBench's questions and answers: two questions about two images, four answers that must differ.

Each of the four (question, image) of a row is a choice between its two answers, the right one first: a
caption is the question with one answer behind it. So every scorer of pairs can answer it, and a chat model is
sent the question itself (`--protocol answer`).
"""

from pathlib import Path

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.questions import check_counts, choices
from counterfoil.data.readers.released_files import pictures
from counterfoil.data.readers.rows import hub_rows, open_rows
from counterfoil.data.tables import DataTable, labels, names, shown, texts
from counterfoil.errors import DataError

_IMAGES = ("Image_0", "Image_1")
#: The answers of each type of question, and what the official code puts behind a question, without a blank.
_TYPES = {
    "yes_no": (("Yes", "No"), "Please answer Yes or No."),
    "multiple_choice": (("A", "B"), "Please output the letter corresponding to the correct option."),
}


def read_vqa(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """NaturalBench from the hub, its Parquet files, or a table of the same columns with paths of images.

    Columns: Index, Image_0, Image_1, Question_0, Question_1, Image_0_Question_0 (the answer of image 0 to
    question 0) and so on, Question_Type (yes_no or multiple_choice), Source. Choice "17_q0_i1" is question 0
    of row 17 about image 1. Groupings: `type`, `source`, and those that the measures q_acc, i_acc and g_acc
    are over: `same_question` (both images), `same_image` (both questions) and `quartet` (all four).
    Raises `DataError` for missing columns, types and answers that are none of these, naming the row.
    """
    table = hub_rows(card, _IMAGES) if data is None else open_rows(data, _IMAGES, split=card.split)
    kind = "Question_Type" if "Question_Type" in table else "Question Type"
    types = labels(table, kind, tuple(_TYPES))
    rows = names(table, "Index") if "Index" in table else tuple(str(row) for row in range(len(table)))
    sides = pictures(table, _IMAGES, rows, data, images)
    asked = [texts(table, f"Question_{q}") for q in (0, 1)]
    cells = [(row, q, i) for row in range(len(table)) for q in (0, 1) for i in (0, 1)]
    pairs = [_answers(table, types[row], row, f"Image_{i}_Question_{q}") for row, q, i in cells]
    prompts = [f"{asked[q][row]}{_TYPES[types[row]][1]}" for row, q, _ in cells]
    groupings = {
        "type": tuple(types[row] for row, _, _ in cells),
        "same_question": tuple(f"{rows[row]}_q{q}" for row, q, _ in cells),
        "same_image": tuple(f"{rows[row]}_i{i}" for row, _, i in cells),
        "quartet": tuple(rows[row] for row, _, _ in cells),
    }
    if "Source" in table:
        sources = labels(table, "Source")
        groupings["source"] = tuple(sources[row] for row, _, _ in cells)
    found = choices(
        card,
        [f"{rows[row]}_q{q}_i{i}" for row, q, i in cells],
        [[f"{prompt} {pair[k]}" for prompt, pair in zip(prompts, pairs, strict=True)] for k in (0, 1)],
        [sides[i][row] for row, _, i in cells],
        groupings,
        source=table.source,
        path=data,
    )
    return check_counts(found)


def _answers(table: DataTable, kind: str, row: int, column: str) -> tuple[str, str]:
    """The right answer of a cell, and the other one."""
    known = _TYPES[kind][0]
    cell = table[column][row] if column in table else None
    words = cell.strip().lower() if isinstance(cell, str) else ""
    if words not in [each.lower() for each in known]:
        raise DataError("no answer", where=table.where(row, column), given=shown(cell), allowed=known)
    return known if words == known[0].lower() else (known[1], known[0])
