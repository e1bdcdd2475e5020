"""Items of a campaign from a table or a benchmark: cells of the form's columns, and right answers.

A table (CSV, TSV, JSON, JSON Lines, Parquet) has the columns of the form (`counterfoil annotate forms NAME`),
called so or as other tables call them (`filename` for `image`, `text` for `caption`). A column of several
images or texts is a list, texts with "|" between them, or numbered columns (`image_1`, `image_2`). Beside
these: `id` (else the number of the row), `golden` (values of the form's main question with "|" between them,
or a JSON object of question to values), `truth` (the right values of that question, by which people are
scored), `role`, `instance` and `kind`, as `WorkItem` has them. The text or the image of exactly one option
stands for its value.

Two kinds of table have a layout of their own: a pool of candidate pairs (`data.judgements.pool_table`), of
which each pair becomes one item, and candidates of a build (`of`, from `build imagine`), of which those of
one row become one item.

Of the questions of a benchmark, by the columns of the form:

image, caption            every pair that a question asks about, as Winoground shows them to people
images, captions          the single directions of quads and choices, as BiVLC's human baseline has them
image, negative_image, …  the rows that a question stands for in training: its positive pair and negative
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from counterfoil.annotate.campaign import CampaignRecipe
from counterfoil.annotate.forms.base import ROLES, FormField, Role, WorkForm, WorkItem
from counterfoil.annotate.golden import TRUTHS, grouped
from counterfoil.annotate.item_order import plan_blocks
from counterfoil.annotate.pictures import Pictures
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.readers.own import named
from counterfoil.benchmarks.records import BytesSource, Image, Photos, Source
from counterfoil.benchmarks.tables import DataTable, labels, shown
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.files import parse_json

#: Between several values in one cell.
SEPARATOR = "|"
#: Columns of the images that `build imagine` makes, each with the column of captions they are made for.
_CANDIDATES = (("negative_image", "negative_caption"), ("generated_image", "caption"))
#: The four single directions of a quad: image k with both captions, caption k with both images.
QUAD_KINDS: tuple[str, ...] = ("i2t-0", "i2t-1", "t2i-0", "t2i-1")
#: Columns of forms as roles of training rows.
_ROLES: Mapping[str, Mapping[str, str]] = {
    "which-image": {"caption": "caption", "image": "image", "negative_image": "negative_image"},
    "quad-validation": {
        "first_image": "image",
        "second_image": "negative_image",
        "first_caption": "caption",
        "second_caption": "negative_caption",
    },
}


@dataclass(frozen=True, eq=False)
class CampaignItems:
    """Items, and `rows`: of each item, by the column `item`, the row or rows of the source that it is of."""

    items: tuple[WorkItem, ...]
    rows: pa.Table


def items_of_table(
    table: DataTable,
    form: WorkForm,
    pictures: Pictures,
    *,
    folder: Path | None = None,
    benchmark: Benchmark | None = None,
    role: Role = "work",
) -> CampaignItems:
    """The items of a table, all of one role unless its column `role` says otherwise; see the module.

    Images lie in `folder`, else beside the table, or are named by their id in the benchmark.
    """
    source = table
    if {"pair", "direction", "image", "caption"} <= set(table.columns):
        table, groups = _of_pool(table, benchmark)
    elif "of" in table and set(form.columns) == {"caption", "images"}:
        table, groups = _of_candidates(table)
    else:
        table, groups = named(table, tuple(form.columns)), [[row] for row in range(len(table))]
    place = folder or (Path(source.source).parent if Path(source.source).is_file() else None)
    cells = {name: _column(table, name, kind) for name, kind in form.columns.items()}
    pick = _finder(table, place, benchmark, pictures)
    names = "id", "role", "instance", "kind", "truth"
    texts = {name: (labels(table, name) if name in table else ("",) * len(table)) for name in names}
    items = []
    for row in range(len(table)):
        item_cells: dict[str, Any] = {name: cells[name][row] for name in form.columns}
        for name, kind in form.columns.items():
            if kind == "image":
                item_cells[name] = pick(row, name, item_cells[name]) if item_cells[name] else None
            elif kind == "images":
                item_cells[name] = [pick(row, name, image) for image in item_cells[name]]
        its = texts["role"][row] or role
        if its not in ROLES:
            raise DataError("no such role", where=table.where(row, "role"), given=its, allowed=ROLES)
        name = texts["id"][row] or (str(row) if its == "work" else f"{its}-{row}")
        more: Any = {key: texts[key][row] for key in ("instance", "kind", "truth")}
        item = WorkItem(name, item_cells, its, **more)
        items.append(_with_answers(item, form, table, row, cells["images"][row] if "images" in cells else ()))
    return CampaignItems(tuple(items), source_rows(items, groups, source))


def source_rows(items: Sequence[WorkItem], groups: Sequence[Sequence[int]], table: DataTable) -> pa.Table:
    """Rows of the source with the item that each belongs to, texts as the source has them, no images."""
    order = [(item.id, row) for item, rows in zip(items, groups, strict=True) for row in rows]
    columns = {"item": pa.array([name for name, _ in order], pa.string())}
    for name, cells in table.columns.items():
        if name != "item" and all(cell is None or isinstance(cell, str | int | float) for cell in cells):
            texts = [None if cells[row] is None else str(cells[row]) for _, row in order]
            columns[name] = pa.array(texts, pa.string())
    return pa.table(columns)


def _column(table: DataTable, name: str, kind: str) -> Sequence[Any]:
    """The cells of a column; of several images or texts lists; Nones and empty lists where there is none."""
    if kind in ("image", "text"):
        if name not in table:
            return (None,) * len(table)
        return labels(table, name) if kind == "text" else table[name]
    if name in table:
        several = []
        for row, cell in enumerate(table[name]):
            if isinstance(cell, str) and cell.lstrip().startswith("["):
                cell = parse_json(cell, where=table.where(row, name))
            if isinstance(cell, str):
                cell = [part.strip() for part in cell.split(SEPARATOR)]
            if not isinstance(cell, list | tuple | None):
                raise DataError("not a list", where=table.where(row, name), given=shown(cell))
            several.append([text for text in cell or () if text])
        return several
    number = re.compile(rf"{re.escape(name.removesuffix('s'))}_?(\d+)")
    numbered = {int(m[1]): column for column in table.columns if (m := number.fullmatch(column))}
    order = [numbered[i] for i in sorted(numbered)]
    return [[cell for column in order if (cell := table[column][row])] for row in range(len(table))]


def _finder(
    table: DataTable, folder: Path | None, benchmark: Benchmark | None, pictures: Pictures
) -> Callable[[int, str, Any], str]:
    """A function that adds the image of a cell and returns its name in the campaign."""
    photos = Photos(folder, Path(table.source).parent)
    by_id = {} if benchmark is None else {image.id: image for image in benchmark.images}

    def pick(row: int, column: str, value: Any) -> str:
        where = table.where(row, column) if column in table else table.where(row)
        if isinstance(value, str) and value in by_id:
            return pictures.add(by_id[value], where=where)
        data = value.get("bytes") if isinstance(value, dict) else value
        source: Source | None = photos.source(data, where=where) if isinstance(data, str) else None
        if isinstance(data, bytes) and data:
            source = BytesSource(data, "the image")
        if source is None:
            hint = "name the folder of images with --images"
            hint += "" if benchmark is None else ", or the benchmark that they are of with --benchmark"
            raise DataError("no such image", where=where, given=shown(value), hint=hint)
        return pictures.add(Image(str(value)[:200], source), where=where)

    return pick


def _of_pool(table: DataTable, benchmark: Benchmark | None) -> tuple[DataTable, list[list[int]]]:
    """A row per pair of a pool, whichever direction it was proposed in, with the caption's words."""
    groups = grouped(labels(table, "pair"))
    first = [rows[0] for rows in groups.values()]
    words: Sequence[str | None]
    if "text" in table:
        words = labels(table, "text")
    elif benchmark is not None:
        texts = {caption.id: caption.text for caption in benchmark.captions}
        words = [texts.get(caption) or "" for caption in labels(table, "caption")]
    else:
        what = "captions are named by their ids and have no words"
        hint = "name the benchmark that they are of with --benchmark"
        raise DataError(what, where=table.source, hint=hint)
    cells: dict[str, Sequence[Any]] = {"image": labels(table, "image"), "caption": words}
    cells |= {name: table[name] for name in ("golden", "role", "instance", "kind", "truth") if name in table}
    columns: dict[str, Sequence[Any]] = {"id": list(groups)}
    columns |= {name: [column[row] for row in first] for name, column in cells.items()}
    return DataTable(columns, table.source, table.kind), list(groups.values())


def _of_candidates(table: DataTable) -> tuple[DataTable, list[list[int]]]:
    """A row per row of a build, with all its candidates."""
    pair = next((pair for pair in _CANDIDATES if set(pair) <= set(table.columns)), None)
    if pair is None:
        given, allowed = ", ".join(table.columns), " or ".join(map(" and ".join, _CANDIDATES))
        raise DataError("candidates without images", where=table.source, given=given, allowed=allowed)
    groups = grouped(labels(table, "of"))
    columns: dict[str, Sequence[Any]] = {
        "id": list(groups),
        "caption": [table[pair[1]][rows[0]] for rows in groups.values()],
        "images": [[table[pair[0]][row] for row in rows] for rows in groups.values()],
    }
    return DataTable(columns, table.source, table.kind), list(groups.values())


def _with_answers(
    item: WorkItem, form: WorkForm, table: DataTable, row: int, images: Sequence[Any] = ()
) -> WorkItem:
    """The item with its right answers, held against its page; `images` as the table names them."""
    try:
        page = form.page(item)
    except InputError as error:
        lacking = [name for name in form.columns if name not in table]
        advice = f"the table has no column {', '.join(lacking)}" if lacking else None
        why = f"an item that the form '{form.name}' cannot show: {str(error).partition(': ')[2] or error}"
        raise DataError(why, where=table.where(row), hint=advice) from None
    choices = {field.name: field for field in page.fields if field.kind in ("one", "many")}
    main = choices.get(form.main)

    def several(text: str) -> list[str]:
        # A caption may hold what stands between values.
        whole = main is not None and _named(main, text, images)
        return [text] if whole else [part.strip() for part in text.split(SEPARATOR)]

    if item.truth and main is not None:
        where = table.where(row, "truth")
        truth = _values(main, several(item.truth), images, "no option of this item", where)
        item = replace(item, truth=SEPARATOR.join(truth))
    cell = table["golden"][row] if "golden" in table else None
    where = table.where(row, "golden")
    if cell in (None, ""):
        if item.role == "work":
            return item
        what, hint = f"no right answer of an item for {item.role}", "give its column 'golden'"
        raise DataError(what, where=where, hint=hint)
    if isinstance(cell, str) and cell.lstrip().startswith("{"):
        cell = parse_json(cell, where=where)
    if not isinstance(cell, dict):
        cell = {form.main: cell if isinstance(cell, list) else several(str(cell))}
    gold: dict[str, list[str]] = {}
    for name, values in cell.items():
        if name not in choices:
            raise DataError("golden answer of another form", where=where, given=name, allowed=sorted(choices))
        given = [str(value) for value in (values if isinstance(values, list) else [values])]
        gold[name] = _values(choices[name], given, images, "golden answer of another form", where)
    return replace(item, golden=gold)


def _named(field: FormField, given: str, images: Sequence[Any]) -> list[str]:
    """The values of the options that a value, a text or an image in a table names."""
    if given in field.values:
        return [given]
    pictures = dict(zip(field.values, images, strict=False))
    return [
        option.value
        for option in field.options
        if given in (*option.texts, *([pictures.get(option.value)] if option.images else []))
    ]


def _values(
    field: FormField, given: Sequence[str], images: Sequence[Any], wrong: str, where: str
) -> list[str]:
    options = [_named(field, text, images) for text in given]
    odd = next((text for text, values in zip(given, options, strict=True) if len(values) != 1), None)
    if odd is not None:
        hint = "places count from 0" if field.exchangeable and "0" in field.values else None
        raise DataError(wrong, where=where, given=odd, allowed=field.values, hint=hint)
    return [value for (value,) in options]


def items_of_benchmark(
    benchmark: Benchmark,
    form: WorkForm,
    pictures: Pictures,
    *,
    sample: int | None = None,
    rng: np.random.Generator,
) -> CampaignItems:
    """The items of a benchmark's questions, or of `sample` of them; their `instance` is the question."""
    if benchmark.card.shows == "video":
        raise DataError("a campaign shows images", where=benchmark.name, given="a benchmark of videos")
    if sample is not None:
        if sample > len(benchmark):
            what, allowed = "a sample larger than the benchmark", f"1 to {len(benchmark):,}"
            raise InputError(what, where=benchmark.name, given=f"{sample:,}", allowed=allowed)
        benchmark = benchmark.select(np.sort(rng.choice(len(benchmark), sample, replace=False)))
    columns = set(form.columns)
    if columns <= {"image", "caption"}:
        drafts = _pairs(benchmark, form)
    elif columns == {"images", "captions"}:
        drafts = _choices(benchmark)
    elif form.name in _ROLES:
        drafts = _roles(benchmark, form)
    else:
        what, allowed = f"the form '{form.name}' takes its items from a table", ", ".join(form.columns)
        raise DataError(what, where=benchmark.name, allowed=allowed)

    def cell(kind: str, index: Any, where: str) -> Any:
        """The text or the image's name at a position of the benchmark, or several."""
        if index is None:
            return None
        if kind in ("images", "texts"):
            return [cell(kind[:-1], position, where) for position in index]
        if kind == "image":
            return pictures.add(benchmark.images[index], where=where)
        caption = benchmark.captions[index]
        if caption.text is None:
            raise DataError(f"caption '{caption.id}' is not at hand", where=where)
        return caption.text

    items = []
    for draft in drafts:
        where = f"question '{draft.instance}'"
        cells = {name: cell(kind, draft.cells.get(name), where) for name, kind in form.columns.items()}
        items.append(replace(draft, cells=cells))
        form.page(items[-1])
    rows = {"item": [item.id for item in items], "question": [item.instance for item in items]}
    return CampaignItems(tuple(items), pa.table(rows, pa.schema(dict.fromkeys(rows, pa.string()))))


# Items whose cells are positions of images and captions in the benchmark.
def _pairs(benchmark: Benchmark, form: WorkForm) -> Iterable[WorkItem]:
    """Every pair that a question asks about: "17", "17_s1", or of quads "17_c0_i1"."""
    questions = benchmark.listed
    captions, images = (positions.reshape(-1) for positions in questions.pairs())
    filled = questions.filled
    slots = np.argwhere(np.ones(questions.shape, dtype=bool) if filled is None else filled)
    if len(slots) != len(captions):
        raise DataError("questions that are not of single pairs", where=benchmark.name)
    right, wrong = TRUTHS.get(form.name, ("", ""))
    listed = zip(slots.tolist(), captions.tolist(), images.tolist(), strict=True)
    for (question, *slot), caption, image in listed:
        name = questions.ids[question]
        kind, truth = "", ""
        if slot:
            belongs = slot[0] == slot[1] if len(slot) == 2 else slot[0] < questions.correct
            kind, truth = ("right pair", right) if belongs else ("wrong pair", wrong)
        ending = "_c{}_i{}".format(*slot) if len(slot) == 2 else "".join(f"_s{i}" for i in slot)
        cells = {"image": image, "caption": caption}
        yield WorkItem(name + ending, cells, instance=name, kind=kind, truth=truth)


def _choices(benchmark: Benchmark) -> Iterable[WorkItem]:
    """Four items of a quad, one of a choice: "17_i2t-0", the place of the right one as truth."""
    questions = benchmark.paired
    captions, images = questions.slots()
    for name, *slots in zip(questions.ids, captions.tolist(), images.tolist(), strict=True):
        texts, pictures = ([i for i in of_kind if i >= 0] for of_kind in slots)
        if len(texts) > 1 and len(pictures) > 1:
            for i, kind in enumerate(QUAD_KINDS):
                side = i % 2
                cells = {"images": [pictures[side]], "captions": texts}
                if kind.startswith("t2i"):
                    cells = {"images": pictures, "captions": [texts[side]]}
                yield WorkItem(f"{name}_{kind}", cells, instance=name, kind=kind, truth=str(side))
        else:
            truth = "|".join(map(str, range(questions.correct)))
            kind = "i2t" if len(texts) > 1 else "t2i"
            cells = {"images": pictures, "captions": texts}
            yield WorkItem(name, cells, instance=name, kind=kind, truth=truth)


def _roles(benchmark: Benchmark, form: WorkForm) -> Iterable[WorkItem]:
    source, roles = benchmark.questions.training_rows(where=benchmark.name)
    wanted = _ROLES[form.name]
    lacking = sorted(set(wanted.values()) - set(roles))
    if lacking or source is None:
        what = (lacking or ["negative"])[0].replace("_", " ")
        text, given = f"the form '{form.name}' needs questions with a {what}", f"form '{benchmark.card.form}'"
        raise DataError(text, where=benchmark.name, given=given)
    names = [benchmark.questions.ids[i] for i in source.tolist()]
    several, seen = Counter(names), Counter[str]()
    for row, name in enumerate(names):
        role_name = name if several[name] == 1 else f"{name}/{seen[name]}"
        seen[name] += 1
        cells = {column: int(roles[role][row]) for column, role in wanted.items()}
        yield WorkItem(role_name, cells, instance=name)


def check_items(items: Sequence[WorkItem], recipe: CampaignRecipe) -> None:
    """Raise `InputError` where there are fewer items than the design needs, or they go into no blocks."""
    count = {role: len({item.exclusion_group for item in items if item.role == role}) for role in ROLES}
    if not count["work"]:
        raise InputError("a campaign needs items to work on", given="none")
    wanted: list[tuple[str, int, Role, str]] = [("onboarding", recipe.onboarding, "onboarding", "onboarding")]
    if recipe.design == "blocks":
        gold = recipe.golden_per_block
        wanted.append(("per_person", recipe.per_person - gold, "work", "work in a block"))
        wanted.append(("golden_per_block", gold, "golden", "golden in a block"))
    elif recipe.golden_share or recipe.golden_misses:
        wanted.append(("golden_share", max(1, recipe.golden_misses), "golden", "golden"))
    for key, needed, role, words in wanted:
        if count[role] < needed:
            what = f"fewer items than the design needs ({words})"
            hint = "give more items, or a smaller number"
            given, allowed = f"{count[role]:,} that one person can judge", f"{needed:,} or more"
            raise InputError(what, where=f"key '{key}'", given=given, allowed=allowed, hint=hint)
    if recipe.design == "blocks":
        plan_blocks(items, recipe)
