"""Functions from table to table for what no layout of a benchmark can say: steps of `catalog.toml`."""

import ast
import base64
import io
import json
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
from pydantic import BaseModel

from counterfoil.benchmarks.benchmark import Card
from counterfoil.benchmarks.readers.released_files import released_file, released_set
from counterfoil.benchmarks.records import words
from counterfoil.benchmarks.tables import (
    ROW,
    DataTable,
    TablePart,
    booleans,
    integers,
    labels,
    objects_table,
    read_table,
    shown,
    stack,
    texts,
)
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_json, read_text, read_value
from counterfoil.inputs.pictures import open_picture


def same_words(table: DataTable, card: Card, home: Path | None) -> DataTable:
    """The column `words`: "same words" where both captions have them as often, in another order."""
    pairs = zip(texts(table, "caption"), texts(table, "negative_caption"), strict=True)
    same = ["same words" if sorted(words(a)) == sorted(words(b)) else "" for a, b in pairs]
    return table.with_columns({"words": same})


def numbered_items(table: DataTable, card: Card, home: Path | None, *, subset: str, number: int) -> DataTable:
    """SugarCrepe's items in a table of outcomes: `subset`, and `id`, an item's place in its subset.

    Where the subset is without the item that was dropped after the paper, its number is skipped.
    """
    pairs = zip(labels(table, "type"), labels(table, "subtype"), strict=True)
    subsets = [f"{kind}_{part}" for kind, part in pairs]
    skipped = subsets.count(subset) == card.counts.get(subset)
    numbers: Counter[str] = Counter()
    ids = []
    for name in subsets:
        ids.append(numbers[name] + (skipped and name == subset and numbers[name] >= number))
        numbers[name] += 1
    return table.with_columns({"subset": subsets, "id": ids})


def statement_pairs(table: DataTable, card: Card, home: Path | None) -> DataTable:
    """A row of each sentence with each of its images: true of the first and false of the other."""
    rows: dict[tuple[str, str], tuple[str, str, str, bool, str, str]] = {}
    images = (labels(table, name) for name in ("pos_image_id", "neg_image_id"))
    columns = (table[ROW], table["sentence"], *images, table["type"])
    for number, sentence, right, wrong, kind in zip(*columns, strict=True):
        for image, truth in ((right, True), (wrong, False)):
            name = f"{number}/{str(truth).lower()}"
            statement = (name, sentence, image, truth, "" if truth else kind, f"{number}_c0")
            rows.setdefault((sentence, image), statement)
    names = ("id", "sentence", "image", "truth", "type", "caption")
    return DataTable(dict(zip(names, zip(*rows.values(), strict=True), strict=True)), table.source)


def svo_types(table: DataTable, card: Card, home: Path | None) -> DataTable:
    """The rows with a sentence, and the column `type`: what the second image lacks."""
    names = {"subj_neg": "subject", "verb_neg": "verb", "obj_neg": "object"}
    flags = np.stack([booleans(table, column) for column in names])
    rows = [row for row, text in enumerate(table["sentence"]) if isinstance(text, str) and text.strip()]
    odd = next((row for row in rows if flags[:, row].sum() != 1), None)
    if odd is not None:
        allowed = f"one of {', '.join(names)} is True"
        raise DataError("not of one type", where=table.where(odd), allowed=allowed)
    types = [list(names.values())[i] for i in flags.argmax(axis=0).tolist()]
    return table.with_columns({"type": types}).take(rows)


def paired_rows(table: DataTable, card: Card, home: Path | None) -> DataTable:
    """MMVP's two consecutive rows of a question as one: `first` and `second` ids, and both statements."""
    numbers, types = integers(table, "Question ID").tolist(), labels(table, "Type")
    statements = texts(table, "Statement")
    if len(table) % 2:
        raise DataError("a row without its second", where=table.where(len(table) - 1))
    for row in range(0, len(table), 2):
        first, second = numbers[row : row + 2]
        if first % 2 != 1 or second != first + 1 or types[row] != types[row + 1]:
            given = f"{first} ({types[row]}), {second} ({types[row + 1]})"
            allowed = "an odd id and the next one, of one type"
            raise DataError("two rows that are no pair", where=table.where(row), given=given, allowed=allowed)
    columns = {"first": numbers[::2], "second": numbers[1::2], "type": types[::2]}
    return DataTable({**columns, "caption_0": statements[::2], "caption_1": statements[1::2]}, table.source)


def opposite_relations(
    table: DataTable, card: Card, home: Path | None, *, pairs: Sequence[Sequence[str]]
) -> DataTable:
    """Columns `stem`, `relation`, `pair` and `set` of What'sUp's images, OBJECT_RELATION_of_OBJECT.

    A pair is two opposite relations of the same objects, a set all four; those that are not whole are "".
    """
    listed = [relation for pair in pairs for relation in pair]
    keys = []
    for row, name in enumerate(texts(table, "image_path")):
        stem = Path(name).stem
        parts = stem.split("_")
        if len(parts) < 3 or parts[1] not in listed:
            what = "a name without objects and relation"
            allowed = f"OBJECT_RELATION_OBJECT, with one of {', '.join(listed)}"
            raise DataError(what, where=table.where(row, "image_path"), given=stem, allowed=allowed)
        keys.append((parts[0], parts[1], parts[-1]))
    members = Counter(keys)

    def group(first: str, second: str, relations: Sequence[str], name: str) -> str:
        whole = all(members[first, relation, second] == 1 for relation in relations)
        return f"{first} {second}: {name}" if whole else ""

    columns: dict[str, list[str]] = {"stem": [Path(name).stem for name in table["image_path"]]}
    columns["relation"] = [relation for _, relation, _ in keys]
    both = [next(pair for pair in pairs if relation in pair) for relation in columns["relation"]]
    columns["pair"] = [group(a, b, pair, "/".join(pair)) for (a, _, b), pair in zip(keys, both, strict=True)]
    columns["set"] = [group(first, second, listed, "all") for first, _, second in keys]
    return table.with_columns(columns)


def questions_of_images(
    table: DataTable, card: Card, home: Path | None, *, answers: Mapping[str, Sequence[str]]
) -> DataTable:
    """NaturalBench's four choices of each row: two questions about two images, right and wrong."""
    types = labels(table, "Question_Type", tuple(answers))
    rows = labels(table, "Index") if "Index" in table else tuple(map(str, range(len(table))))
    questions = [texts(table, f"Question_{q}") for q in (0, 1)]
    sources = labels(table, "Source") if "Source" in table else None
    choices: list[dict[str, Any]] = []
    for row in range(len(table)):
        *words, prompt = answers[types[row]]
        for q, i in ((0, 0), (0, 1), (1, 0), (1, 1)):
            answer_column = f"Image_{i}_Question_{q}"
            cell = table[answer_column][row] if answer_column in table else None
            answer = cell.strip().lower() if isinstance(cell, str) else ""
            if answer not in [word.lower() for word in words]:
                where = table.where(row, answer_column)
                raise DataError("no answer", where=where, given=shown(cell), allowed=words)
            right, wrong = words if answer == words[0].lower() else words[::-1]
            question, name = f"{questions[q][row]}{prompt}", rows[row]
            cells = {
                "id": f"{name}_q{q}_i{i}",
                "image": table[f"Image_{i}"][row],
                "type": types[row],
                "right": f"{question} {right}",
                "wrong": f"{question} {wrong}",
                "same_question": f"{name}_q{q}",
                "same_image": f"{name}_i{i}",
                "quartet": name,
                **({"source": sources[row]} if sources else {}),
            }
            choices.append(cells)
    return objects_table(choices, TablePart(table.source, len(choices)), "table")


def entries(card: Card, data: Path, *, files: Sequence[str], key: str, column: str) -> tuple[DataTable, bool]:
    """A row of each entry of an object: its name in the column `key`, its value in `column`."""
    path = released_file(card, data, files)
    value = read_value(path, dict[str, Any])
    part = TablePart(str(path), len(value), "item", list(value))
    return DataTable({key: list(value), column: list(value.values())}, str(path), "json", (part,)), False


def checklist_groups(table: DataTable, card: Card, home: Path | None, *, sources: Sequence[str]) -> DataTable:
    """VL-CheckList's columns `kind`, `source` and `aspect` of a file.

    "Object/Location/swig_location/swig_agent/swig_agent_mid" is of "Object/Location/mid" and of "swig".
    """
    groups = {}
    for subset in dict.fromkeys(table["subset"]):
        parts = subset.split("/")
        kind = "/".join((*parts[: 2 if parts[0] == "Object" else 1], parts[-1].rsplit("_", 1)[-1]))
        first = (part.split("_")[0] for part in parts[1:])
        source = next((word for word in first if word in sources), subset)
        groups[subset] = (kind, f"{kind}: {source}", parts[0])
    columns = zip(*(groups[subset] for subset in table["subset"]), strict=True)
    return table.with_columns(dict(zip(("kind", "source", "aspect"), columns, strict=True)))


def evaluated(table: DataTable, card: Card, home: Path | None, *, column: str) -> DataTable:
    """The column as lists of one text or more, of Python lists as texts."""
    return table.with_columns({column: _evaluated(table, column, least=1)})


def negatives_by_type(table: DataTable, card: Card, home: Path | None) -> DataTable:
    """CREPE's questions of each split and type of negative, in turn; none without negatives."""
    blocks: list[tuple[int, str, list[str]]] = []
    splits = labels(table, "split")
    lists = {kind: _evaluated(table, f"valid_hard_negs_{kind}", least=0) for kind in ("atom", "comp")}
    for split in dict.fromkeys(splits):
        for kind, cells in lists.items():
            blocks += [
                (row, kind, cells[row]) for row, name in enumerate(splits) if name == split and cells[row]
            ]
    if not blocks:
        raise DataError("no caption has hard negatives", where=table.source)
    rows, kinds, wrong = zip(*blocks, strict=True)
    compounds = [splits[row].replace("_", " ") for row in rows]
    return table.take(rows).with_columns({"compounds": compounds, "type": kinds, "negatives": wrong})


def _evaluated(table: DataTable, column: str, *, least: int) -> list[list[str]]:
    """The lists of texts in a column, written as Python has them; nothing in them is run."""
    lists = []
    for row, cell in enumerate(table[column]):
        try:
            with warnings.catch_warnings():
                # Of a backslash before a letter that means nothing.
                warnings.simplefilter("ignore")
                value = ast.literal_eval(cell) if isinstance(cell, str) else cell
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            value = None
        if not isinstance(value, list) or len(value) < least or not all(isinstance(t, str) for t in value):
            what, given = "not a list of texts", shown(cell)
            raise DataError(what, where=table.where(row, column), given=given, allowed="['a caption', ...]")
        lists.append(value)
    return lists


def urban1k(card: Card, data: Path) -> tuple[DataTable, bool]:
    """Urban1k's `caption/NAME.txt`, of which the first line is the caption, of `image/NAME.jpg`."""
    files = sorted((data / "caption").glob("*.txt"), key=lambda file: (len(file.stem), file.stem))
    if not files:
        raise DataError("no caption/*.txt in this folder", where=data)
    captions = [read_text(file).partition("\n")[0] for file in files]
    images = [f"{file.stem}.jpg" for file in files]
    return DataTable({"image": images, "caption": captions}, str(data)), False


def sharegpt4v(card: Card, data: Path) -> tuple[DataTable, bool]:
    """The first entries of ShareGPT4V's list: `image`, and the second turn of `conversations`."""
    entries = read_json(data)
    if not isinstance(entries, list):
        raise DataError("not a list of conversations", where=data, given=type(entries).__name__)
    rows: dict[str, list[str]] = {"image": [], "caption": []}
    for number, entry in enumerate(entries[: card.counts.get("images", len(entries))]):
        try:
            rows["caption"].append(entry["conversations"][1]["value"].replace("\n", " "))
            rows["image"].append(entry["image"])
        except (KeyError, IndexError, TypeError, AttributeError):
            what, where = "no image with a second turn", f"{data}, entry {number + 1}"
            allowed = "image, and conversations of two turns or more"
            raise DataError(what, where=where, given=shown(entry), allowed=allowed) from None
    return DataTable(rows, str(data)), False


def clusters(table: DataTable, card: Card, home: Path | None, *, file: str) -> DataTable:
    """The column `photo` of DOCCI, where its metadata are there: intervals take near-duplicates as one."""
    assert home is not None
    names: dict[str, str] = {}
    if (home.parent / file).is_file():
        cluster_table = read_table(home.parent / file)
        names = dict(
            zip(labels(cluster_table, "example_id"), labels(cluster_table, "cluster_id"), strict=True)
        )
    of_rows = [names.get(name) for name in labels(table, "example_id")]
    return table.with_columns({"photo": [f"cluster {name}" if name else "" for name in of_rows]})


#: Second tags of all items of Winoground; the paper calls "Non Minimal" "Non-Compositional".
SECOND_TAGS = "new_tag_assignments.json"
_Tag = Literal[
    "Complex Reasoning",
    "Unusual Image",
    "Unusual Text",
    "Ambiguously Correct",
    "Visually Difficult",
    "Non Minimal",
]


def second_tags(table: DataTable, card: Card, home: Path | None) -> DataTable:
    """The columns `second_tags` (the only one of an item, or "No Tag") and `second_any` (all of them)."""
    path = None if home is None else (home if home.is_dir() else home.parent) / SECOND_TAGS
    if path is None or not path.is_file():
        return table
    given, names = read_value(path, dict[str, list[_Tag]]), labels(table, "id")
    lacking = next((name for name in names if name not in given), None)
    if lacking is not None:
        raise DataError("an item without an entry", where=path, given=lacking)
    tags = [given[name] for name in names]
    single = ["No Tag" if not listed else listed[0] if len(listed) == 1 else "" for listed in tags]
    return table.with_columns({"second_tags": single, "second_any": [", ".join(listed) for listed in tags]})


def vsr(card: Card, data: Path) -> tuple[DataTable, bool]:
    """VSR's rows of the folder of one of its splits, or of a file alone."""
    if data.is_dir():
        files = [data / "test.jsonl", data / "dev.jsonl"]
        if not files[0].is_file():
            given = ", ".join(sorted(file.name for file in data.iterdir())[:8]) or "nothing"
            hint = "name the folder of one split: data/splits/zeroshot or data/splits/random"
            raise DataError("no test.jsonl in this folder", where=data, given=given, hint=hint)
        tables = [read_table(file) for file in files if file.is_file()]
    else:
        tables = [read_table(data)]
    table = stack(tables, source=str(data), column="split", values=("test", "dev")[: len(tables)])
    columns: dict[str, Any] = {"dev": [name == "dev" for name in table["split"]]}
    columns[ROW] = [number for one in tables for number in range(len(one))]
    links = labels(table, "image_link") if "image_link" in table else ("",) * len(table)
    pairs = zip(texts(table, "image"), links, strict=True)
    columns["file"] = ["/".join(to.split("/")[-2:]) if to.count("/") > 1 else name for name, to in pairs]
    for side in ("false", "true"):
        counts, column = [], f"vote_{side}_validator_id"
        for row, cell in enumerate(table.columns.get(column, ())):
            # How many validators a cell lists, as a text or as a list.
            try:
                counts.append(len(json.loads(cell) if isinstance(cell, str) else cell))
            except (ValueError, TypeError):
                what, where = "not a list of validators", table.where(row, column)
                allowed = "a list such as [18, 2]"
                raise DataError(what, where=where, given=shown(cell), allowed=allowed) from None
        columns |= {f"votes_{side}": counts} if counts else {}
    return table.with_columns(columns), False


_QUAD = ("image0", "image1", "caption0", "caption1")


def eqben(card: Card, data: Path, *, files: Sequence[str]) -> tuple[DataTable, bool]:
    """EqBen's quads, in lists and objects of any depth; whether one source is alone."""
    path = released_file(card, data, files)
    rows = list(_objects(read_json(path), str(path)))
    columns: dict[str, list[Any]] = {name: [row.get(name) for row in rows] for name in _QUAD}
    for name, cells in columns.items():
        # Of several captions the first is used, as in the official code.
        columns[name] = [cell[0] if isinstance(cell, list) and cell else cell for cell in cells]
    table = DataTable(columns, str(path), "json", (TablePart(str(path), len(rows)),))
    return table, path.name not in files


def _objects(value: Any, where: str) -> Iterator[dict[str, Any]]:
    """Every object with an image0, in lists and objects of any depth."""
    if isinstance(value, dict) and "image0" in value:
        yield value
    elif isinstance(value, dict):
        for name, inner in value.items():
            yield from _objects(inner, f"{where}, '{name}'")
    elif isinstance(value, list):
        for row, inner in enumerate(value, start=1):
            yield from _objects(inner, f"{where}, row {row}")
    else:
        what = "not a row of EqBen"
        raise DataError(what, where=where, given=shown(value), allowed=f"{{{', '.join(_QUAD)}}}")


class _Splits(BaseModel):
    """The files of sDCI's test split."""

    test: list[str]


def sdci(
    card: Card, data: Path, *, batch: int = 0, regions: bool = True, captions: int = 1, hardest: bool = False
) -> tuple[DataTable, bool]:
    """sDCI: images and their regions of 224 pixels a side or more, cut out with 15 % around.

    The `captions` are the own ones and a wrong one, which swaps words, or is the hardest of any kind by the
    authors' CLIP; with `batch` the own ones and those of the others of `batch` entries in a row. Files that
    the authors' code passes over are passed over.
    """
    (file,) = released_set(card, data, ("splits.json",))
    names = read_value(file, _Splits).test
    entries: list[dict[str, Any]] = []
    passed = 0
    for name in names:
        whole = read_json(file.parent / "complete" / name)
        try:
            entries += _described(whole, regions=regions, hardest=hardest)
        except (KeyError, IndexError, TypeError, AttributeError):
            passed += 1
    entries = [entry for entry in entries if len(entry["own"]) >= captions]
    if batch and len(entries) % batch == 1:
        entries.pop()  # A batch of one has nothing to choose.
    source = f"{data}, {passed:,} of {len(names):,} files left out" if passed else str(data)
    if not entries:
        raise DataError("no image or region with enough captions", where=source)
    for place, entry in enumerate(entries):
        start = place - place % batch if batch else place
        others = [other for other in entries[start : start + batch] if other is not entry]
        wrong = [text for other in others for text in other["own"][:captions]]
        entry["captions"] = [*entry["own"][:captions], *(wrong if batch else [entry["wrong"]])]
    return DataTable({name: [entry[name] for entry in entries] for name in entries[0]}, source), False


def _described(whole: Any, *, regions: bool, hardest: bool) -> list[dict[str, Any]]:
    """The entries of one file; raises `KeyError` and its like where the authors' code would pass it over."""
    summaries, wrong = whole["summaries"], whole["negatives"]
    if regions and len(wrong) == 1:
        raise KeyError("negatives of regions")
    masks = list(whole["mask_data"].values())
    _ = whole["short_caption"], whole["extra_caption"]
    for mask in masks:
        # The authors' code describes every mask: quality 2 is unusable, 1 has a label alone.
        if mask["mask_quality"] != 2:
            _ = mask["label"], mask["mask_quality"] == 1 or mask["caption"]
    parts: list[tuple[str, tuple[int | None, ...]]] = [("base", (None,) * 4)]
    parts += _regions(masks, summaries, whole["image"]) if regions else []
    entries = []
    for key, box in parts:
        summary = summaries[key]
        lines = [summary] if isinstance(summary, str) else [summary[0], *summary[1:]]
        scores = whole["clip_scores"][key]
        kinds = wrong[key].items()
        negative = None if hardest else wrong[key]["swaps"][0]
        if hardest:
            scored = [(scores[f"{kind}_{k}"], text) for kind, texts in kinds for k, text in enumerate(texts)]
            highest = max(score for score, _ in scored)
            negative = [text for score, text in scored if score == highest][-1]
        if not all(isinstance(text, str) for text in (*lines, negative)):
            raise TypeError("a caption is no text")
        entry = {"id": f"{Path(whole['image']).stem}/{key}", "photo": whole["image"]}
        entry |= {"own": lines, "wrong": negative, "kind": "image" if box[0] is None else "region"}
        entries.append(entry | dict(zip("xywh", box, strict=True)))
    return entries


def _regions(
    masks: Sequence[Any], summaries: Mapping[str, Any], image: str
) -> Iterator[tuple[str, tuple[int | None, ...]]]:
    """What each region that is large enough is called among summaries, and the box around it."""
    width, height = 0, 0
    if masks:
        # Each mask is of the size of the image.
        try:
            with open_picture(io.BytesIO(base64.b64decode(masks[0]["outer_mask"]))) as picture:
                width, height = picture.size
        except (OSError, ValueError) as error:
            raise DataError(f"a mask is no picture: {error}", where=f"outer_mask of {image}") from None
    for mask in masks:
        first, last = mask["bounds"]["topLeft"], mask["bounds"]["bottomRight"]
        wide, high = last["x"] - first["x"], last["y"] - first["y"]
        if wide < 224 or high < 224:
            continue
        _ = mask["label"], mask["caption"]
        name = f"m-{mask['idx']}-sc"
        around, above = int(wide * 0.15), int(high * 0.15)
        left, top = max(first["x"] - around, 0), max(first["y"] - above, 0)
        right, bottom = min(last["x"] + around, width), min(last["y"] + above, height)
        box = (left, top, right - left, bottom - top)
        yield (name if name in summaries else f"m-{mask['idx']}", box)
