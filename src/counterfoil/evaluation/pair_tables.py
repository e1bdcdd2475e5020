"""What a run over quads or choices keeps: a row per question in two tables, and how they are read again.

scores.parquet   question, then a score per pair, or right and wrong per direction
items.parquet    question, cluster, its captions and images, groupings, and a column per measure
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.questions import Choice, Quad
from counterfoil.data.records import Caption, Image
from counterfoil.data.scores import Outcomes, Scores

SCORES, ITEMS = "scores.parquet", "items.parquet"

#: The tables, in the order they are written.
FILES = (SCORES, ITEMS)

_QUAD_COLUMNS = ("c0_i0", "c0_i1", "c1_i0", "c1_i1")


def to_tables(
    benchmark: Benchmark, answers: Scores | Outcomes, items: Mapping[str, NDArray[np.float64]]
) -> dict[str, pa.Table]:
    """The tables by file name."""
    return {SCORES: _answers_table(benchmark, answers), ITEMS: _items_table(benchmark, items)}


def from_tables(
    card: Card, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any]
) -> tuple[Benchmark, Scores | Outcomes]:
    """The questions of a run, without pixels, and the answers."""
    benchmark = _benchmark(card, tables[ITEMS], manifest)
    return benchmark, _answers(benchmark, tables[SCORES])


def _answers_table(benchmark: Benchmark, answers: Scores | Outcomes) -> pa.Table:
    columns: dict[str, pa.Array] = {"question": pa.array(benchmark.questions.ids, pa.string())}
    if isinstance(answers, Outcomes):
        columns |= {name: pa.array(right, pa.bool_()) for name, right in answers.right.items()}
    else:
        flat = answers.values.reshape(len(benchmark), -1)
        names = (
            _QUAD_COLUMNS
            if isinstance(benchmark.questions, Quad)
            else tuple(f"s{i}" for i in range(flat.shape[1]))
        )
        columns |= {name: pa.array(flat[:, i], pa.float64()) for i, name in enumerate(names)}
    return pa.table(columns)


def _answers(benchmark: Benchmark, table: pa.Table) -> Scores | Outcomes:
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
    if isinstance(questions, Quad):
        slots = {"caption": questions.captions, "image": questions.images}
    else:
        of_query, of_candidates = ("image", "caption") if questions.asks == "image" else ("caption", "image")
        slots = {of_query: questions.query[:, None], of_candidates: questions.candidates}
    for k in range(slots["caption"].shape[1]):
        chosen = [benchmark.captions[i] for i in slots["caption"][:, k]]
        columns[f"caption_{k}_id"] = pa.array([c.id for c in chosen], pa.string())
        columns[f"caption_{k}"] = pa.array([c.text for c in chosen], pa.string())
    for k in range(slots["image"].shape[1]):
        chosen_images = [benchmark.images[i] for i in slots["image"][:, k]]
        columns[f"image_{k}"] = pa.array([i.id for i in chosen_images], pa.string())
        photos = [benchmark.photos[i] for i in slots["image"][:, k]]
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


def _benchmark(card: Card, table: pa.Table, manifest: Mapping[str, Any]) -> Benchmark:
    """The questions of a run again, without pixels."""
    captions: dict[str, Caption] = {}
    images: dict[tuple[str, tuple[int, ...] | None], Image] = {}
    caption_slots, image_slots = _slots(table, "caption"), _slots(table, "image")
    caption_at, image_at = [], []
    for k in caption_slots:
        rows = zip(table[f"caption_{k}_id"].to_pylist(), table[f"caption_{k}"].to_pylist(), strict=True)
        caption_at.append([captions.setdefault(name, Caption(name, text)).id for name, text in rows])
    for k in image_slots:
        columns = (table[f"image_{k}{part}"].to_pylist() for part in ("", "_crop", "_photo"))
        keys = []
        for name, box, photo in zip(*columns, strict=True):
            crop = tuple(box) if box else None
            images.setdefault((name, crop), Image(name, None, crop, photo))
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
    metadata = {key.decode(): value.decode() for key, value in (table.schema.metadata or {}).items()}
    questions: Quad | Choice
    if metadata["form"] == "quad":
        questions = Quad(ids, groupings=groupings, captions=by_caption, images=by_image)
    else:
        from_image = metadata["asks"] == "image"
        questions = Choice(
            ids,
            groupings=groupings,
            query=(by_image if from_image else by_caption)[:, 0],
            candidates=by_caption if from_image else by_image,
            correct=int(metadata["correct"]),
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


def _slots(table: pa.Table, kind: str) -> list[int]:
    names = [name.removeprefix(f"{kind}_") for name in table.column_names if name.startswith(f"{kind}_")]
    return sorted(int(name) for name in names if name.isdigit())
