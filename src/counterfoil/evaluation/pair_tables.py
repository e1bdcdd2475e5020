"""Tables of a run over quads or choices: a row per question in two tables, written and read.

scores.parquet   question, then a score per pair, or right and wrong per direction
items.parquet    question, cluster, its captions and images, groupings, and a column per measure
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field, model_validator

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.forms import Choice, Quad
from counterfoil.data.records import Caption, Image
from counterfoil.data.scores import Outcomes, Scores
from counterfoil.errors import DataError
from counterfoil.evaluation.run_schemas import PREFIXES, QUESTION, check_answers, check_crops, misfits
from counterfoil.inputs.columns import ColumnSchema, Schema, check_columns, notes
from counterfoil.inputs.models import Stored, check_model

_Item = TypeVar("_Item", Caption, Image)

SCORES, ITEMS = "scores.parquet", "items.parquet"

#: The tables, in the order they are written.
FILES = (SCORES, ITEMS)

#: What they hold, as far as it is the same in all runs; captions and images depend on the questions.
SCHEMAS = {
    SCORES: Schema(QUESTION),
    ITEMS: Schema({**QUESTION, "cluster": ColumnSchema("whole", low=0)}, PREFIXES),
}

_QUAD_COLUMNS = ("c0_i0", "c0_i1", "c1_i0", "c1_i1")


def to_tables(
    benchmark: Benchmark, answers: Scores | Outcomes, items: Mapping[str, NDArray[np.float64]]
) -> dict[str, pa.Table]:
    """The tables by file name."""
    return {SCORES: _answers_table(benchmark, answers), ITEMS: _items_table(benchmark, items)}


def from_tables(
    card: Card, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any], folder: Path
) -> tuple[Benchmark, Scores | Outcomes]:
    """The questions of a run, without pixels, and the answers, from tables that fit `SCHEMAS`.

    Raises `DataError` naming the file (in `folder`), column and row that does not fit the others.
    """
    with misfits(folder):
        benchmark = _benchmark(card, tables[ITEMS], manifest, folder / ITEMS)
        return benchmark, _answers(benchmark, tables[SCORES], folder / SCORES)


def _answers_table(benchmark: Benchmark, answers: Scores | Outcomes) -> pa.Table:
    columns: dict[str, pa.Array] = {"question": pa.array(benchmark.questions.ids, pa.string())}
    if not answers.has_scores:
        columns |= {name: pa.array(right, pa.bool_()) for name, right in answers.outcomes.right.items()}
    else:
        flat = answers.scores.reshape(len(benchmark), -1)
        names = _score_columns(benchmark.paired)
        columns |= {name: pa.array(flat[:, i], pa.float64()) for i, name in enumerate(names)}
    return pa.table(columns)


def _score_columns(questions: Quad | Choice) -> list[str]:
    """The columns of scores, in the order of the pairs of a question."""
    if isinstance(questions, Quad):
        return list(_QUAD_COLUMNS)
    return [f"s{i}" for i in range(questions.candidates.shape[1])]


def _answers(benchmark: Benchmark, table: pa.Table, where: Path) -> Scores | Outcomes:
    table = check_answers(table, _score_columns(benchmark.paired), benchmark.questions.ids, where=where)
    names = [name for name in table.column_names if name != "question"]
    columns = [table[name].to_numpy(zero_copy_only=False) for name in names]
    if all(pa.types.is_boolean(table[name].type) for name in names):
        return Outcomes({name: column.astype(bool) for name, column in zip(names, columns, strict=True)})
    flat = np.stack(columns, axis=1).astype(np.float64)
    return Scores(flat.reshape(benchmark.paired.pairs()[0].shape))


def _items_table(benchmark: Benchmark, items: Mapping[str, NDArray[np.float64]]) -> pa.Table:
    questions = benchmark.paired
    columns: dict[str, pa.Array] = {
        "question": pa.array(questions.ids, pa.string()),
        "cluster": pa.array(benchmark.clusters, pa.int64()),
    }
    caption_at, image_at = questions.slots()
    for k in range(caption_at.shape[1]):
        chosen = [benchmark.captions[i] for i in caption_at[:, k]]
        columns[f"caption_{k}_id"] = pa.array([c.id for c in chosen], pa.string())
        columns[f"caption_{k}"] = pa.array([c.text for c in chosen], pa.string())
    for k in range(image_at.shape[1]):
        chosen_images = [benchmark.images[i] for i in image_at[:, k]]
        columns[f"image_{k}"] = pa.array([i.id for i in chosen_images], pa.string())
        photos = [benchmark.photos[i] for i in image_at[:, k]]
        columns[f"image_{k}_photo"] = pa.array(photos, pa.string())
        crops = [None if i.crop is None else list(i.crop) for i in chosen_images]
        columns[f"image_{k}_crop"] = pa.array(crops, pa.list_(pa.int64()))
    columns |= {
        f"group:{name}": pa.array(labels, pa.string()) for name, labels in questions.groupings.items()
    }
    columns |= {f"measure:{name}": pa.array(values, pa.float64()) for name, values in items.items()}
    form = {
        "form": questions.form,
        "correct": str(getattr(questions, "correct", "")),
        "asks": str(getattr(questions, "asks", "")),
    }
    return pa.table(columns).replace_schema_metadata(form)


def _benchmark(card: Card, table: pa.Table, manifest: Mapping[str, Any], where: Path) -> Benchmark:
    """The questions of a run again, without pixels."""
    captions: dict[str, Caption] = {}
    images: dict[tuple[str, tuple[int, ...] | None], Image] = {}
    facts = check_model(notes(table), _QuestionFacts, where=f"{where}, metadata")
    caption_slots, image_slots = _slots(table, facts, where)
    table = check_columns(table, _slot_schema(caption_slots, image_slots), where=where)
    check_crops(table, *(f"image_{k}_crop" for k in image_slots), where=where)
    caption_at, image_at = [], []
    for k in caption_slots:
        rows = zip(table[f"caption_{k}_id"].to_pylist(), table[f"caption_{k}"].to_pylist(), strict=True)
        caption_at.append([_same(captions, name, Caption(name, text), where).id for name, text in rows])
    for k in image_slots:
        columns = (table[f"image_{k}{part}"].to_pylist() for part in ("", "_crop", "_photo"))
        keys = []
        for name, box, photo in zip(*columns, strict=True):
            crop = tuple(box) if box else None
            _same(images, (name, crop), Image(name, None, crop, photo), where)
            keys.append((name, crop))
        image_at.append(keys)
    caption_number = {name: i for i, name in enumerate(captions)}
    image_number = {key: i for i, key in enumerate(images)}
    by_caption = np.asarray([[caption_number[name] for name in column] for column in caption_at], np.int64).T
    by_image = np.asarray([[image_number[key] for key in column] for column in image_at], np.int64).T
    ids = tuple(table["question"].to_pylist())
    groupings = {
        name.removeprefix("group:"): tuple(table[name].to_pylist())
        for name in table.column_names
        if name.startswith("group:")
    }
    questions: Quad | Choice
    if facts.form == "quad":
        questions = Quad(ids, groupings=groupings, captions=by_caption, images=by_image)
    else:
        from_image = facts.asks == "image"
        questions = Choice(
            ids,
            groupings=groupings,
            query=(by_image if from_image else by_caption)[:, 0],
            candidates=by_caption if from_image else by_image,
            correct=int(facts.correct),
            asks="image" if from_image else "caption",
        )
    about = manifest.get("benchmark", {})
    path = about.get("path")
    return Benchmark(
        card,
        tuple(images.values()),
        tuple(captions.values()),
        questions,
        source=about.get("source", ""),
        path=Path(path) if path else None,
    )


class _QuestionFacts(Stored):
    """What the metadata of `items.parquet` say of the questions."""

    form: Literal["quad", "choice"]
    correct: Annotated[str, Field(pattern=r"^\d{0,9}$")] = ""
    asks: Literal["image", "caption", ""] = ""

    @model_validator(mode="after")
    def _complete(self) -> "_QuestionFacts":
        if self.form == "choice" and not (self.correct and self.asks):
            raise ValueError("says neither how many candidates are right nor what the query is")
        return self


def _slots(table: pa.Table, facts: _QuestionFacts, where: Path) -> tuple[range, range]:
    """How many captions and images a question has: two of each, or one of one kind and k of the other."""
    captions, images = (_count(table, kind) for kind in ("caption", "image"))
    fits = {
        "quad": captions == images == 2,
        "choice": (images if facts.asks == "image" else captions) == 1 and captions + images > 2,
    }
    if not fits[facts.form]:
        raise DataError(
            f"the columns are not those of questions of form '{facts.form}'",
            where=where,
            given=f"{captions} captions and {images} images per question",
            hint="was it edited?",
        )
    return range(captions), range(images)


def _count(table: pa.Table, kind: str) -> int:
    """How many columns `{kind}_0`, `{kind}_1`, ... there are without a gap."""
    names = set(table.column_names)
    return next(k for k in range(len(names) + 1) if f"{kind}_{k}" not in names)


def _slot_schema(captions: range, images: range) -> Schema:
    columns: dict[str, ColumnSchema] = {}
    for k in captions:
        columns |= {f"caption_{k}_id": ColumnSchema("text"), f"caption_{k}": ColumnSchema("text", null=True)}
    for k in images:
        columns |= {
            f"image_{k}": ColumnSchema("text"),
            f"image_{k}_photo": ColumnSchema("text", null=True),
            f"image_{k}_crop": ColumnSchema("wholes", null=True),
        }
    return Schema(columns)


def _same(known: dict[Any, _Item], key: Any, item: _Item, where: Path) -> _Item:
    """The item of that key; raises `DataError` where it was another one before."""
    found = known.setdefault(key, item)
    if found != item:
        kind = type(item).__name__.lower()
        raise DataError(f"two {kind}s of one id", where=where, given=item.id, hint="was it edited?")
    return found
