"""Functions from files to tables of judged captions, for what no layout of a benchmark can say.

A column `references` holds the captions that people wrote of the image of a row.
"""

import csv
import io
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Card
from counterfoil.benchmarks.readers.questions import (
    clean_caption,
    left_out,
    noted,
    numbered,
    ratings_of,
    truths,
)
from counterfoil.benchmarks.readers.released_captions import (
    COCO,
    FLICKR8K,
    FLICKR30K,
    coco_captions,
    flickr_captions,
    of_image,
    read_split,
    read_tokens,
)
from counterfoil.benchmarks.readers.released_files import list_of, object_tables, released_file, released_set
from counterfoil.benchmarks.records import Caption
from counterfoil.benchmarks.references import collapsed, nearest
from counterfoil.benchmarks.tables import DataTable, TablePart, check_cells, integers, labels, shown, texts
from counterfoil.errors import DataError
from counterfoil.inputs.files import decoded, read_bytes, read_json, read_text, read_value
from counterfoil.inputs.pickled import plain_pickle

(_TOKENS,) = FLICKR8K


def flickr8k(card: Card, data: Path, *, files: Sequence[str], raters: int) -> tuple[DataTable, bool]:
    """Flickr8k's candidates and their ratings: three of experts, or the share of a crowd's yes.

    A text file lies beside Flickr8k.token.txt, CLIPScore's JSON has the captions. A row whose candidate is a
    reference is left out of what experts rated; elsewhere the candidate is taken out of the references of its
    image, for all candidates, as `list.remove` does in the released code.
    """
    path = released_file(card, data, files, hint=f"{_TOKENS} lies beside a text file")
    is_json = path.suffix.lower() == ".json"
    table, written = _flickr8k_objects(path, raters) if is_json else _flickr8k_lines(path)
    rows, dropped = [], 0
    lists = {image: list(captions) for image, captions in written.items()}
    for row, (image, text) in enumerate(zip(table["image"], table["caption"], strict=True)):
        is_reference = any(caption.text == text for caption in written[image])
        if is_reference and raters == 1:
            same = next((caption for caption in lists[image] if caption.text == text), None)
            dropped += same is not None
            lists[image] = [caption for caption in lists[image] if caption is not same]
        if raters == 1 or not is_reference:
            rows.append(row)
    ratings = ratings_of(table, [f"rating_{i + 1}" for i in range(raters)], missing=True)
    lacking = sum(cell is None for i in range(raters) for cell in table[f"rating_{i + 1}"])
    notes = [
        *left_out(int(np.isnan(ratings).sum()) - lacking, "ratings that are NaN"),
        *left_out(len(table) - len(rows), "rows whose candidate is a reference"),
        *([f"{dropped:,} references equal to a candidate taken out"] if dropped else []),
    ]
    references = [lists[image] for image in table["image"]]
    table = replace(table.with_columns({"references": references}), notes=tuple(notes))
    return table.take(rows), False


def _flickr8k_lines(path: Path) -> tuple[DataTable, Mapping[str, Sequence[Caption]]]:
    tokens = path.parent / _TOKENS
    if not tokens.is_file():
        raise DataError("file missing", where=tokens, hint=f"it lies beside {path.name}: the captions")
    entries = read_tokens(tokens)
    text_of = {name: text for captions in entries.values() for name, text in captions}
    # Of equal captions the first gives its name to all.
    name_of = {text: name for name, text in reversed(text_of.items())}
    rows = []
    for number, line in enumerate(read_text(path).rstrip().split("\n"), start=1):
        where = f"{path}, line {number}"
        cells = [cell.strip() for cell in line.split("\t")]
        if len(cells) != 5:
            what = "not a judgement"
            raise DataError(what, where=where, given=f"{len(cells)} cells", allowed="5, tabs between them")
        odd = cells[0] if cells[0] not in entries else cells[1] if cells[1] not in text_of else None
        if odd is not None:
            raise DataError("no such image or caption", where=where, given=odd, allowed=f"those of {_TOKENS}")
        text = text_of[cells[1]]
        rows.append((f"{cells[0]}/{cells[1]}", cells[0], text, name_of[text], *cells[2:]))
    table = replace(_candidates(path, rows, 3, "line"), source=f"{path}, {_TOKENS}")
    written = {image: [Caption(name_of[text], text) for _, text in lines] for image, lines in entries.items()}
    return table, written


def _flickr8k_objects(path: Path, raters: int) -> tuple[DataTable, Mapping[str, Sequence[Caption]]]:
    value = read_json(path)
    if not isinstance(value, dict) or not value:
        what = "not judgements"
        raise DataError(what, where=path, given=shown(value), allowed="an object with an entry per image")
    rows: list[list[Any]] = []
    written: dict[str, list[Caption]] = {}
    # Of equal captions the first gives its name to all.
    name_of: dict[str, str] = {}
    for key, entry in value.items():
        place = f"{path}, image '{key}'"
        for name in ("ground_truth", "human_judgement"):
            if not isinstance(entry, dict) or not isinstance(entry.get(name), list):
                raise DataError(f"no list '{name}'", where=place, given=shown(entry))
        image = Path(str(entry.get("image_path") or f"{key}.jpg")).name
        if image in written:
            raise DataError("an image occurs twice", where=place, given=image)
        written[image] = []
        for i, cell in enumerate(entry["ground_truth"]):
            text = clean_caption(cell, f"{place}, reference {i + 1}", "reference")
            written[image].append(Caption(name_of.setdefault(text, f"{image}#{i}"), text))
        # The released file has an entry per rating: those of one candidate follow each other.
        last: list[Any] = []
        for i, judgement in enumerate(entry["human_judgement"]):
            where = f"{place}, judgement {i + 1}"
            if not isinstance(judgement, dict) or not {"caption", "rating"} <= set(judgement):
                what = "not a judgement"
                raise DataError(what, where=where, given=shown(judgement), allowed="caption and rating")
            text = clean_caption(judgement["caption"], where)
            if last and text == last[2] and len(last) < 4 + raters:
                last.append(judgement["rating"])
            else:
                name = f"{image}/{i}"
                last = [name, image, text, name_of.setdefault(text, name), judgement["rating"]]
                rows.append(last)
    rows = [[*row, *[None] * (4 + raters - len(row))] for row in rows]
    return _candidates(path, rows, raters, "judgement"), written


def _candidates(path: Path, rows: Sequence[Sequence[Any]], raters: int, unit: str) -> DataTable:
    """Rows of id, image, caption, its name, and ratings as a table."""
    if not rows:
        raise DataError("no judgements", where=path)
    columns = ("id", "image", "caption", "caption_id", *(f"rating_{i + 1}" for i in range(raters)))
    part = TablePart(str(path), len(rows), unit)
    return DataTable(dict(zip(columns, zip(*rows, strict=True), strict=True)), str(path), "table", (part,))


#: Which pair of an image is drawn where each has one; the papers did not release theirs.
_SEED = 0


def foil(
    card: Card,
    data: Path,
    *,
    files: Sequence[str],
    one_pair: bool = False,
    unseen: bool = False,
    required: bool = False,
) -> tuple[DataTable, bool]:
    """FOIL's pairs of a caption of COCO and a copy of it with one word wrong."""
    path = released_file(card, data, files, hint="it is the test half of FOIL's release")
    notes, files_of, pairs = _foil_pairs(path)
    images = integers(notes, "image_id").tolist()
    source, remarks = str(path), []
    if one_pair:
        pairs_of: dict[int, list[tuple[int, int]]] = {}
        for pair in pairs:
            pairs_of.setdefault(images[pair[0]], []).append(pair)
        rng = np.random.default_rng(_SEED)
        pairs = [pair_list[int(rng.integers(len(pair_list)))] for pair_list in pairs_of.values()]
        remarks.append(f"one pair of each image, drawn with seed {_SEED}")
    if unseen:
        split = path.parent / "dataset_coco.json"
        if not split.is_file():
            what = "file missing"
            raise DataError(what, where=split, hint="PAC-S's pairs are those of its validation and test part")
        part = {image for image, _ in read_split(split, "cocoid", int, ("val", "test"))}
        pairs = [pair for pair in pairs if images[pair[0]] in part]
        source += f", {split.name}"
        if not pairs:
            raise DataError("no image is in Karpathy's validation or test part", where=source)
    captions = texts(notes, "caption")
    words = labels(notes, "target_word") if "target_word" in notes else ("",) * len(notes)
    ids = labels(notes, "foil_id") if "foil_id" in notes else tuple(str(row + 1) for row in range(len(notes)))
    rows = [row for _, row in pairs]
    originals = [captions[row] for row, _ in pairs]
    table = notes.with_columns({"foil_id": ids, "file": files_of, "word": words}).take(rows)
    table = table.with_columns({"original": originals, "right": [1] * len(rows), "wrong": [0] * len(rows)})
    written = coco_captions(path.parent)
    if written is None:
        if required:
            what, allowed = "no captions of COCO here, which are the references", " or ".join(COCO)
            hint = "without references, read the row of the same name without '-1ref'"
            raise DataError(what, where=path.parent, allowed=allowed, hint=hint)
        remarks.append("without references: COCO's captions are not in the folder")
        return replace(table, source=source, notes=tuple(remarks)), False
    lists = {
        image: numbered(of_image(written, str(image)), f"coco-{image}")
        for image in dict.fromkeys(images[row] for row in rows)
    }
    references = [
        [caption for caption in lists[images[row]] if caption.text != original]
        for row, original in zip(rows, map(collapsed, originals), strict=True)
    ]
    dropped = sum(len(lists[images[row]]) for row in rows) - sum(map(len, references))
    referred = [row for row, of_row in enumerate(references) if of_row]
    without = left_out(len(rows) - len(referred), "pairs without a reference")
    remarks = [*without, *remarks, f"{dropped:,} references equal to the original taken out"]
    table = replace(table.with_columns({"references": references}), source=f"{source}, {written[1].name}")
    return replace(table.take(referred), notes=tuple(remarks)), False


def _foil_pairs(path: Path) -> tuple[DataTable, list[str], list[tuple[int, int]]]:
    """The annotations, the file of the image of each, and the rows of each original with a foil of it."""
    pictures, notes = object_tables(path, "images", "annotations")
    names = dict(zip(integers(pictures, "id").tolist(), texts(pictures, "file_name"), strict=True))
    images = integers(notes, "image_id").tolist()
    groups: dict[int, tuple[list[int], list[int]]] = {}
    group_of = integers(notes, "id").tolist()
    for row, is_foil in enumerate(truths(notes, "foil").tolist()):
        if images[row] not in names:
            given = f"image_id {images[row]}"
            raise DataError("a candidate without an image", where=notes.where(row), given=given)
        groups.setdefault(group_of[row], ([], []))[is_foil].append(row)
    pairs = []
    for group, (originals, foils) in groups.items():
        if len(originals) != 1 or not foils or len({images[row] for row in (*originals, *foils)}) > 1:
            what = "not an original and its foils of one image"
            given = f"{len(originals)} originals, {len(foils)} foils"
            allowed = "one original, one foil or more"
            raise DataError(what, where=f"{path}, annotations of id {group}", given=given, allowed=allowed)
        pairs += [(originals[0], row) for row in foils]
    return notes, [names[image] for image in images], pairs


def side_by_side(table: DataTable, card: Card, home: Path | None, *, column: str) -> DataTable:
    """A row of each judgement in a column of {"metrics/ASPECT": "IIW-Human is substantially better", ...}.

    Columns `file`, `aspect`, `degree`, and votes for the captions; those answered "Neutral" are left out.
    """
    rows: list[int] = []
    cells: list[tuple[Any, ...]] = []
    neutral = 0
    for row, judgements in enumerate(table[column]):
        if not isinstance(judgements, dict):
            raise DataError("no side-by-side judgements", where=table.where(row), allowed=column)
        for metric, answer in judgements.items():
            winner, _, degree = str(answer).removesuffix(" better").partition(" is ")
            if answer == "Neutral":
                neutral += 1
                continue
            if winner not in ("IIW-Human", "IIW-P5B") or degree not in ("marginally", "substantially"):
                what, where = "not a judgement", f"{table.where(row)}, '{metric}'"
                allowed = "IIW-Human or IIW-P5B is marginally or substantially better, Neutral"
                raise DataError(what, where=where, given=shown(answer), allowed=allowed)
            rows.append(row)
            votes = int(winner == "IIW-Human"), int(winner == "IIW-P5B")
            cells.append((metric.removeprefix("metrics/"), degree, *votes))
    notes = left_out(neutral, "neutral judgements")
    if not rows:
        raise DataError("no judgement is left", where=noted(table.source, notes))
    files = [key if Path(key).suffix else f"{key}.jpg" for key in texts(table, "image/key")]
    names = ("aspect", "degree", "votes_a", "votes_b")
    columns = dict(zip(names, zip(*cells, strict=True), strict=True)) | {"file": [files[row] for row in rows]}
    return replace(table.take(rows).with_columns(columns), notes=notes)


def unfolded(table: DataTable, card: Card, home: Path | None, *, column: str, key: str) -> DataTable:
    """A row of each entry of the objects in a column: its name in the column `key`, its value in `column`."""
    cells = check_cells(table, column, lambda cell: isinstance(cell, Mapping), "not an object")
    rows = [row for row, cell in enumerate(cells) for _ in cell]
    keys = [name for cell in cells for name in cell]
    values = [value for cell in cells for value in cell.values()]
    return table.take(rows).with_columns({key: keys, column: values})


def prompt_tags(table: DataTable, card: Card, home: Path | None, *, file: str) -> DataTable:
    """A column "tag NAME" of each tag in a file {NAME: [numbers]} beside the data, where there is one."""
    assert home is not None
    path = (home if home.is_dir() else home.parent) / file
    if not path.is_file():
        return table
    tags = read_value(path, dict[str, list[Any]])
    rows = integers(table, "id").tolist()
    columns = {}
    for tag, numbers in tags.items():
        tagged = {int(number) for number in numbers if str(number).isdecimal()}
        if tagged & {*rows}:
            columns[f"tag {tag}"] = [tag if number in tagged else "" for number in rows]
    return table.with_columns(columns)


#: Composite's sources in the order of the release, and how many texts a row has; studies use three.
_TEXTS = {"8k": ("flickr8k", 3), "30k": ("flickr30k", 4), "coco": ("coco", 4)}
_ADDRESS, _PLACE = "Input.image_url", 27


def composite(card: Card, data: Path, *, scale: str) -> tuple[DataTable, bool]:
    """Composite's captions of Flickr8k, Flickr30k and COCO and how people rated them, in NAME_SCALE.csv.

    The first text of an image was written by a person: the nearest of the image's captions is no reference.
    """
    hint = "the folder holds the three tables of the release, and the captions of the images"
    paths = released_set(card, data, [f"{name}_{scale}.csv" for name in _TEXTS], hint=hint)
    rows: list[tuple[str, ...]] = []
    parts, junk = [], 0
    for path, (source, number) in zip(paths, _TEXTS.values(), strict=True):
        cells, unused = _composite_rows(path, source, number)
        marks = [i for i in range(1, len(cells) + 1) for _ in range(3)]
        parts.append(TablePart(str(path), len(marks), "row", marks))
        junk += unused
        for i, (image, *row) in enumerate(cells, start=1):
            for place in range(3):
                name = f"{source}/{i}/{place + 1}"
                rows.append((source, f"candidate {place + 1}", name, image, row[place], row[number + place]))
    columns: dict[str, Sequence[Any]] = dict(
        zip(("source", "candidate", "id", "image", "caption", "rating"), zip(*rows, strict=True), strict=True)
    )
    captions_of = {
        "flickr8k": flickr_captions(data, FLICKR8K),
        "flickr30k": flickr_captions(data, FLICKR30K),
        "coco": coco_captions(data),
    }
    written = {name: captions for name, captions in captions_of.items() if captions is not None}
    if written and len(written) < len(captions_of):
        what = f"no captions of {', '.join(name for name in captions_of if name not in written)} here"
        allowed = f"{_TOKENS}, {' or '.join(FLICKR30K)}, and {' or '.join(COCO)}"
        hint = "without any of them, captions are rated without references"
        raise DataError(what, where=data, allowed=allowed, hint=hint)
    notes = list(left_out(junk, "rows at the end of a file, without an image,"))
    if written:
        lists: dict[str, list[Caption]] = {}
        for source, _, _, image, text, _ in rows:
            # The first candidate met is the one that a person wrote.
            if image not in lists:
                key = str(int(image.rpartition("_")[2].removesuffix(".jpg"))) if source == "coco" else image
                references = list(of_image(written[source], key))
                del references[nearest(collapsed(text), references)]
                lists[image] = numbered(references, image)
        columns["references"] = [lists[image] for image in columns["image"]]
        notes.append(f"{len(lists):,} references nearest to the first candidate taken out")
    else:
        notes.append("without references: the captions of the images are not in the folder")
    names = (path.name for path in (*paths, *(path for _, path in written.values())))
    source = ", ".join([str(data), *names])
    return DataTable(columns, source, "table", tuple(parts), notes=tuple(notes)), False


def _composite_rows(path: Path, source: str, number: int) -> tuple[list[list[str]], int]:
    """The file of the image, the texts and the ratings of each row, and how many rows have no image."""
    try:
        with io.StringIO(decoded(read_bytes(path), where=path), newline="") as file:
            rows = [[cell.strip() for cell in row] for row in csv.reader(file, delimiter=";") if row]
    except csv.Error as error:
        raise DataError(f"not valid CSV: {error}", where=path) from None
    header, rows = (rows or [[]])[0], rows[1:]
    column = header.index(_ADDRESS) if _ADDRESS in header else _PLACE
    files = [row[column].rpartition("/")[2] if len(row) > column else "" for row in rows]
    files = [name if name.lower().endswith((".jpg", ".jpeg", ".png")) else "" for name in files]
    last = max((place for place, name in enumerate(files) if name), default=-1) + 1
    if not last:
        raise DataError("no rows", where=path, allowed=f"a column {_ADDRESS}, the texts and their ratings")
    cells = []
    for place, (name, row) in enumerate(zip(files[:last], rows, strict=False), start=1):
        where = f"{path}, row {place}"
        if not name:
            raise DataError("a candidate without an image", where=where, allowed=f"an address in {_ADDRESS}")
        if source == "coco" and not name.rpartition("_")[2].removesuffix(".jpg").isdecimal():
            what = "no image of COCO"
            raise DataError(what, where=where, given=name, allowed="COCO_val2014_000000000042.jpg")
        if len(row) <= column + 2 * number:
            given, allowed = f"{len(row)} cells", f"more than {column + 2 * number}"
            raise DataError("a row is cut short", where=where, given=given, allowed=allowed)
        cells.append([name, *row[column + 1 : column + 1 + 2 * number]])
    return cells, len(rows) - last


#: How many people judged each pair of Pascal-50S, each with a reference of their own.
_JUDGED = 48


def fifty_sentences(
    card: Card, data: Path, *, name: str, categories: Sequence[str], alike: int = 0
) -> tuple[DataTable, bool]:
    """Pascal-50S and Abstract-50S: which of two captions 48 people found nearer to a reference of theirs.

    pair_NAME.mat holds new_input (image file, caption A, caption B of every pair) and category (1 to 4: two
    of people, one of them of another image, one of a machine, two of machines); consensus_NAME.mat holds
    triplets, 48 rows for every pair: reference, B, C, and which is nearer to it (1: B, else C). Pairs without
    categories are of the first one up to the pair `alike`, else of the second. Equal votes are drawn.
    """
    consensus = _matlab_file(data, f"consensus_{name}.mat")
    triplets = _variable(consensus, "triplets")
    try:
        files = [_matlab_file(data, f"pair_{name}.mat")]
    except DataError:
        if not alike:
            raise
        files = []
    where = f"{files[0]}, new_input" if files else f"{consensus}, triplets"
    step = 1 if files else _JUDGED
    pairs = []
    for i, row in enumerate(_variable(files[0], "new_input") if files else triplets[::_JUDGED]):
        place = f"{where}, row {i * step + 1}"
        first, left, right = (_text(cell, place) for cell in _fields(row, 3 if files else 4, place)[:3])
        pairs.append((Path(first).name if files else str(i), left, right))
    if not pairs:
        raise DataError("no pairs", where=where)
    if alike:
        labels_of = [categories[int(number >= alike)] for number in range(len(pairs))]
    else:
        labels_of = [categories[int(n) - 1] for n in _variable(files[0], "category").tolist()]
    columns: dict[str, Sequence[Any]] = _votes(pairs, triplets, consensus)
    votes = np.array([columns["votes_a"], columns["votes_b"]], dtype=np.float64)
    # At most half a vote to either side: it only decides where votes are equal.
    drawn = np.random.default_rng(_SEED).uniform(-0.5, 0.5, len(pairs))
    ties = int((votes[0] == votes[1]).sum())
    columns |= {"category": labels_of, "label": np.where(votes[0] > votes[1] + drawn, 0, 1).tolist()}
    notes = (f"{ties:,} labels drawn with seed {_SEED}, votes being equal",) if ties else ()
    source = ", ".join(str(file) for file in (*files, consensus))
    return DataTable(columns, source, notes=notes), False


def _votes(
    pairs: Sequence[tuple[str, str, str]], triplets: NDArray[Any], path: Path
) -> dict[str, Sequence[Any]]:
    """Columns of the pairs, with the votes for both captions and the references."""
    if len(triplets) != _JUDGED * len(pairs):
        given, allowed = f"{len(triplets):,} judgements of {len(pairs):,} pairs", f"{_JUDGED * len(pairs):,}"
        raise DataError(f"not {_JUDGED} judgements of every pair", where=path, given=given, allowed=allowed)
    names = ("image", "caption_a", "caption_b", "votes_a", "votes_b", "references")
    columns: dict[str, list[Any]] = {name: [] for name in names}
    for number, (image, *sides) in enumerate(pairs):
        votes = [0.0, 0.0]
        references = []
        for i in range(number * _JUDGED, (number + 1) * _JUDGED):
            where = f"{path}, triplets, row {i + 1}"
            *cells, winner = _fields(triplets[i], 4, where)
            reference, left, right = (_text(cell, where) for cell in cells)
            if not isinstance(winner, int | float | np.number):
                raise DataError("no winner", where=where, given=type(winner).__name__, allowed="a number")
            chosen = left if winner == 1 else right
            if chosen not in sides:
                what = f"the judgement is not of pair {number}"
                raise DataError(what, where=where, given=chosen, allowed=" | ".join(sides))
            # By its text, as the released code counts: equal captions share their votes.
            votes = [vote + (chosen == text) for vote, text in zip(votes, sides, strict=True)]
            references.append(Caption(f"{number}_r{i % _JUDGED}", reference))
        for column, cell in zip(columns.values(), (image, *sides, *votes, references), strict=True):
            column.append(cell)
    return dict(columns)


def _matlab_file(data: Path, name: str) -> Path:
    folder = data if data.is_dir() else data.parent
    inside = "pyCIDErConsensus"
    path_there = next((path for path in (folder / name, folder / inside / name) if path.is_file()), None)
    if path_there is None:
        raise DataError("file missing", where=folder / name, hint=f"it may lie in {inside} too")
    return path_there


def _variable(path: Path, name: str) -> NDArray[Any]:
    from scipy.io import loadmat, whosmat

    try:
        variable = loadmat(path, variable_names=[name], squeeze_me=True).get(name)
        there = [] if variable is not None else [name for name, *_ in whosmat(path)]
    # On broken bytes scipy's reader can raise any exception.
    except Exception as error:
        what = f"not a MATLAB file that scipy reads: {type(error).__name__}"
        raise DataError(what, where=path, hint="is it cut off?") from None
    if variable is None:
        raise DataError(f"no variable '{name}'", where=path, given=", ".join(there))
    return np.ravel(variable)


def _fields(row: Any, number: int, where: str) -> list[Any]:
    """The fields of a structure, or the cells of a row."""
    fields = list(row.tolist()) if isinstance(row, np.void) else list(np.ravel(row))
    if len(fields) != number:
        what = "not a row as released"
        raise DataError(what, where=where, given=f"{len(fields)} fields", allowed=str(number))
    return fields


def _text(value: Any, where: str) -> str:
    """A caption; an empty one is an empty array."""
    return clean_caption("" if isinstance(value, np.ndarray) and not value.size else value, where)


def vatex(card: Card, data: Path, *, references: int) -> tuple[DataTable, bool]:
    """VATEX-EVAL's captions of videos that three people each rated, and references, as pickles."""
    names = ("candidates_list.pkl", "gts_list.pkl", "human_scores.pkl", "video_ids.pkl")
    files = released_set(card, data, names)
    captions, written, videos = (list_of(plain_pickle(files[i]), where=files[i]) for i in (0, 1, 3))
    n = len(captions)
    for file, rows in ((files[1], written), (files[3], videos)):
        if len(rows) != n:
            raise DataError("not a row per candidate", where=file, given=len(rows), allowed=str(n))
    try:
        ratings = np.asarray(given := plain_pickle(files[2]), dtype=np.float64).reshape(-1)
    except (TypeError, ValueError):
        raise DataError("a rating is no number", where=files[2], given=shown(given)) from None
    if len(ratings) != 3 * n:
        what = "not three ratings of every candidate"
        raise DataError(what, where=files[2], given=len(ratings), allowed=str(3 * n))
    lists = []
    for row, cell in enumerate(written):
        where = f"{files[1]}, row {row + 1}"
        sentences = list_of(cell, where=where)
        if len(sentences) < references:
            what = "too few references"
            raise DataError(what, where=where, given=len(sentences), allowed=f"{references} or more")
        used = (clean_caption(text, where, "reference") for text in sentences[:references])
        lists.append(numbered(used, f"r{row}"))
    # Columns have the names of the files that they come from.
    columns = {"video_ids": videos, "candidates_list": captions, "references": lists}
    columns |= {f"human_scores_{i + 1}": rows.tolist() for i, rows in enumerate(ratings.reshape(3, n))}
    return DataTable(columns, str(data)), False
