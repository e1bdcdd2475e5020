"""Choices between captions: VALSE, VL-CheckList, NegBench's questions and NaturalBench's answers."""

from dataclasses import replace
from functools import partial
from pathlib import Path

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.questions import choices
from counterfoil.benchmarks.readers.released_files import listed_rows, pictures, right_first
from counterfoil.benchmarks.readers.rows import not_on_hub, released_rows
from counterfoil.benchmarks.readers.sugarcrepe import subset_files
from counterfoil.benchmarks.tables import DataTable, integers, labels, names, read_table, shown, stack, texts
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_json

#: VALSE's files by what they are called in the paper: a phenomenon has one to three.
VALSE = {
    "existence": "existence",
    "plurals": "plurality",
    "counting-small-quant": "counting",
    "counting-hard": "counting",
    "counting-adversarial": "counting",
    "relations": "relations",
    "action-replacement": "actions",
    "actant-swap": "actions",
    "coreference-standard": "coreference",
    "coreference-hard": "coreference",
    "foil-it": "foil-it",
}

#: VL-CheckList's aspects, and the rows of each file that its configuration keeps: MAX_NUM is 2,000, and a row
#: is two of those.
ASPECTS = ("Attribute", "Object", "Relation")
SOURCES = ("vg", "vaw", "swig", "hake")
FIRST_ROWS = 1000

_NEGBENCH = ("image_path", "caption_0", "caption_1", "caption_2", "caption_3")
_TEMPLATES = ("positive", "negative", "hybrid")


def _valse(card: Card, data: Path | None, images: Path | None, *, least: int) -> Benchmark:
    """VALSE's items that at least `least` of three people found right.

    `data` is the folder of its eleven JSON files, or one of them; without counts, those that are there. The
    caption comes first, the foil second. Question "actant-swap/actions_test_0" is the item of that key: keys
    repeat between files. Images are called by their file names; they come from several data sets, and are
    looked for in one folder. Groupings: `subset` (the file) and `phenomenon`. Raises `DataError` naming the
    file that is missing or miscounted, or the item that does not fit.
    """
    if data is None:
        raise not_on_hub(card)
    there = [name for name in VALSE if (data / f"{name}.json").is_file()] if card.size is None else []
    files = subset_files(card, data, there or list(VALSE))
    cells_of: dict[str, list[str]] = {name: [] for name in ("id", "subset", "image", "caption", "foil")}
    for file in files:
        table = read_table(file)
        if table.kind != "keyed":
            raise DataError("not an object keyed by item id", where=table.source)
        columns = [table["id"], texts(table, "image_file"), texts(table, "caption"), texts(table, "foil")]
        for row, (key, image, caption, foil) in enumerate(zip(*columns, strict=True)):
            people = table["mturk"][row]
            # How many people chose the caption alone.
            votes = people.get("caption") if isinstance(people, dict) else None
            if not isinstance(votes, int) or isinstance(votes, bool):
                raise DataError(
                    "no votes",
                    where=table.where(row, "mturk"),
                    given=shown(people),
                    allowed="{caption, foil, other}",
                )
            if votes >= least:
                cells = (f"{file.stem}/{key}", file.stem, image, caption, foil)
                for name, cell in zip(cells_of, cells, strict=True):
                    cells_of[name].append(cell)
    rows = DataTable(cells_of, str(data))
    return _two(
        card,
        rows,
        {
            "subset": tuple(cells_of["subset"]),
            "phenomenon": tuple(VALSE[name] for name in cells_of["subset"]),
        },
        data,
        images,
        part=len(files) < len(VALSE),
    )


#: The official filter.
read_valse = partial(_valse, least=2)
read_valse_unanimous = partial(_valse, least=3)


def _vl_checklist(card: Card, data: Path | None, images: Path | None, *, most: int | None) -> Benchmark:
    """VL-CheckList: the first `most` rows of each file.

    `data` is the folder `data` of the repository, with Attribute, Object and Relation. A row is [path of the
    image, {"POS": texts, "NEG": texts}], of which the official code takes the first text each. Question
    "Attribute/vg/color/17" is row 17, from 0, of that file; empty files are passed over. Images are called
    by their paths. Groupings: `subset` (the file), `source` ("Object/Location/center: swig", of up to four
    files), `kind` ("Attribute/color", "Object/Location/center") and `aspect`. Raises `DataError` naming the
    row that does not fit.
    """
    if data is None:
        raise not_on_hub(card)
    files = sorted(file for aspect in ASPECTS for file in (data / aspect).rglob("*.json"))
    if not files:
        raise DataError(f"no file of {card.title} in this folder", where=data, allowed=ASPECTS)
    cells_of: dict[str, list[str]] = {name: [] for name in ("id", "subset", "image", "caption", "foil")}
    for file in files:
        if read_json(file) == []:
            continue
        subset = file.relative_to(data).with_suffix("").as_posix()
        table = listed_rows(file, ("image", "texts"))
        for row, (image, cell) in enumerate(
            zip(texts(table, "image")[:most], table["texts"][:most], strict=True)
        ):
            cells = (f"{subset}/{row}", subset, image, *_first_texts(cell, table.where(row)))
            for name, value in zip(cells_of, cells, strict=True):
                cells_of[name].append(value)
    subsets = tuple(cells_of["subset"])
    groupings = {
        "subset": subsets,
        "source": tuple(f"{_kind(name)}: {_source(name)}" for name in subsets),
        "kind": tuple(map(_kind, subsets)),
        "aspect": tuple(name.split("/")[0] for name in subsets),
    }
    return _two(card, DataTable(cells_of, str(data)), groupings, data, images)


#: As the released configurations have it.
read_vl_checklist = partial(_vl_checklist, most=FIRST_ROWS)
read_vl_checklist_all = partial(_vl_checklist, most=None)


def _first_texts(cell: object, where: str) -> tuple[str, str]:
    """The first right and the first wrong text of a row."""
    sides = [cell.get(side) if isinstance(cell, dict) else None for side in ("POS", "NEG")]
    first = [listed[0] if isinstance(listed, list) and listed else None for listed in sides]
    if not isinstance(first[0], str) or not isinstance(first[1], str):
        raise DataError("no texts", where=where, given=shown(cell), allowed='{"POS": [...], "NEG": [...]}')
    return first[0], first[1]


def _kind(subset: str) -> str:
    """The kind of a file, whatever its source.

    >>> _kind("Object/Location/swig_location/swig_agent/swig_agent_mid"), _kind("Relation/swig_action")
    ('Object/Location/mid', 'Relation/action')
    """
    parts = subset.split("/")
    return "/".join((*parts[: 2 if parts[0] == "Object" else 1], parts[-1].rsplit("_", 1)[-1]))


def _source(subset: str) -> str:
    """The data set that a file's images are of, by which the released charts average.

    >>> _source("Object/Location/swig_location/swig_agent/swig_agent_mid"), _source("Attribute/vaw/color")
    ('swig', 'vaw')
    """
    words = [part.split("_")[0] for part in subset.split("/")[1:]]
    return next((word for word in words if word in SOURCES), subset)


def _two(
    card: Card,
    rows: DataTable,
    groupings: dict[str, tuple[str, ...]],
    data: Path,
    images: Path | None,
    *,
    part: bool = False,
) -> Benchmark:
    """Rows of an image, a caption and a foil as choices."""
    ids = [str(name) for name in rows["id"]]
    (shown_images,) = pictures(rows, ("image",), ids, data, images)
    candidates = [texts(rows, "caption"), texts(rows, "foil")]
    return choices(card, ids, candidates, shown_images, groupings, source=rows.source, path=data, part=part)


def read_negbench(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """NegBench's questions of four captions: one table, or a folder of them.

    Tables are called as released (`COCO_val_mcq_llama3.1_rephrased.csv`); what stands before "_mcq" is the
    grouping `subset`, and `template` says which kind of caption is right (positive, negative, hybrid). The
    right caption comes first here, the others in their order. Question "COCO_val/17" is row 17, from 0.
    Raises `DataError` for a right answer that is none of four, naming the row.
    """
    if data is None:
        raise not_on_hub(card)
    files = [data] if data.is_file() else sorted(data.glob("*_mcq_*.csv"))
    if not files:
        raise DataError(
            f"no file of {card.title} in this folder", where=data, allowed="NAME_mcq_llama3.1_rephrased.csv"
        )
    columns = (*_NEGBENCH, "correct_answer", "correct_answer_template")
    tables = [
        replace(table, columns={name: table[name] for name in columns}) for table in map(read_table, files)
    ]
    subsets = [file.stem.partition("_mcq")[0] for file in files]
    rows = stack(tables, source=str(data), column="subset", values=subsets)
    ids = [f"{name}/{row}" for name, table in zip(subsets, tables, strict=True) for row in range(len(table))]
    (shown_images,) = pictures(rows, ("image_path",), ids, data, images)
    right = integers(rows, "correct_answer")
    for row, answer in enumerate(right.tolist()):
        if not 0 <= answer < 4:
            raise DataError(
                "no such option", where=rows.where(row, "correct_answer"), given=answer, allowed="0 to 3"
            )
    options = list(zip(*(texts(rows, column) for column in _NEGBENCH[1:]), strict=True))
    ordered = [
        right_first(row_options, answer) for row_options, answer in zip(options, right.tolist(), strict=True)
    ]
    return choices(
        card,
        ids,
        list(zip(*ordered, strict=True)),
        shown_images,
        {
            "subset": tuple(str(name) for name in rows["subset"]),
            "template": labels(rows, "correct_answer_template", _TEMPLATES),
        },
        source=rows.source,
        path=data,
    )


_PAIR = ("Image_0", "Image_1")
#: The answers of each type of question, and what the official code puts behind a question, without a blank.
_ANSWERS = {
    "yes_no": (("Yes", "No"), "Please answer Yes or No."),
    "multiple_choice": (("A", "B"), "Please output the letter corresponding to the correct option."),
}


def read_naturalbench(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """NaturalBench from the hub, its Parquet files, or a table of the same columns with paths of images.

    Columns: Index, Image_0, Image_1, Question_0, Question_1, Image_0_Question_0 (the answer of image 0 to
    question 0) and so on, Question_Type (yes_no or multiple_choice), Source. Choice "17_q0_i1" is question 0
    of row 17 about image 1. Groupings: `type`, `source`, and those that the measures q_acc, i_acc and g_acc
    are over: `same_question` (both images), `same_image` (both questions) and `quartet` (all four).
    Raises `DataError` for missing columns, types and answers that are none of these, naming the row.
    """
    table = released_rows(card, data, _PAIR)
    kind = "Question_Type" if "Question_Type" in table else "Question Type"
    types = labels(table, kind, tuple(_ANSWERS))
    rows = names(table, "Index") if "Index" in table else tuple(str(row) for row in range(len(table)))
    sides = pictures(table, _PAIR, rows, data, images)
    questions = [texts(table, f"Question_{q}") for q in (0, 1)]
    cells = [(row, q, i) for row in range(len(table)) for q in (0, 1) for i in (0, 1)]
    pairs = [_answers(table, types[row], row, f"Image_{i}_Question_{q}") for row, q, i in cells]
    prompts = [f"{questions[q][row]}{_ANSWERS[types[row]][1]}" for row, q, _ in cells]
    groupings = {
        "type": tuple(types[row] for row, _, _ in cells),
        "same_question": tuple(f"{rows[row]}_q{q}" for row, q, _ in cells),
        "same_image": tuple(f"{rows[row]}_i{i}" for row, _, i in cells),
        "quartet": tuple(rows[row] for row, _, _ in cells),
    }
    if "Source" in table:
        sources = labels(table, "Source")
        groupings["source"] = tuple(sources[row] for row, _, _ in cells)
    return choices(
        card,
        [f"{rows[row]}_q{q}_i{i}" for row, q, i in cells],
        [[f"{prompt} {pair[k]}" for prompt, pair in zip(prompts, pairs, strict=True)] for k in (0, 1)],
        [sides[i][row] for row, _, i in cells],
        groupings,
        source=table.source,
        path=data,
    )


def _answers(table: DataTable, kind: str, row: int, column: str) -> tuple[str, str]:
    """The right answer of a cell, and the other one."""
    known = _ANSWERS[kind][0]
    cell = table[column][row] if column in table else None
    words = cell.strip().lower() if isinstance(cell, str) else ""
    if words not in [answer.lower() for answer in known]:
        raise DataError("no answer", where=table.where(row, column), given=shown(cell), allowed=known)
    return known if words == known[0].lower() else (known[1], known[0])
