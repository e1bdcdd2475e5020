"""Tables of a run over rated or preferred captions, written and read.

scores.parquet    question, then `score` (rated); `a` and `b` (preferred), or `a_d0`, `b_d0`, `a_d1`, ...
                  where references were drawn; or right and wrong as `accuracy`
items.parquet     a row per question: cluster, the candidate's text and its image's id, the ratings `r0`,
                  `r1`, ... or `votes_a`, `votes_b` and `label`, groupings, and a column per measure that
                  questions have. Of preferences texts and images are lists: a candidate may be several
                  sentences. Columns that end in `_at` are positions in the two tables below; `references_at`
                  is a list, of preferences a list for every sentence
captions.parquet  id and text of every candidate and reference
images.parquet    id, photo and crop of every image; of videos the part's start and end
"""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from pydantic import Field

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.forms import Preference, Rated
from counterfoil.data.records import Caption, Image
from counterfoil.data.references import References
from counterfoil.data.scores import Outcomes, Scores
from counterfoil.data.videos import Video
from counterfoil.evaluation.run_schemas import PREFIXES, QUESTION, check_answers, check_crops, misfits
from counterfoil.inputs.columns import ColumnSchema, Schema, check_columns, notes
from counterfoil.inputs.models import Stored, check_model

SCORES, ITEMS = "scores.parquet", "items.parquet"
CAPTIONS, IMAGES = "captions.parquet", "images.parquet"

#: The tables, in the order they are written.
FILES = (SCORES, ITEMS, CAPTIONS, IMAGES)

_SIDES = ("a", "b")

_SECONDS = ColumnSchema("real", null=True, low=0, required=False)

#: What they hold, as far as it is the same in all runs; the questions' own columns depend on their form.
SCHEMAS = {
    SCORES: Schema(QUESTION),
    ITEMS: Schema({**QUESTION, "cluster": ColumnSchema("whole", low=0)}, PREFIXES),
    CAPTIONS: Schema({"id": ColumnSchema("text"), "text": ColumnSchema("text", null=True)}),
    IMAGES: Schema(
        {
            "id": ColumnSchema("text"),
            "photo": ColumnSchema("text", null=True),
            "crop": ColumnSchema("wholes", null=True),
            "start": _SECONDS,
            "end": _SECONDS,
        }
    ),
}

_RATING = ColumnSchema("real", null=True, nan=True)
_POSITION, _LIST = ColumnSchema("whole", low=0), ColumnSchema("wholes", low=0)
_RATED = Schema(
    {
        "candidate_at": _POSITION,
        "image_at": _POSITION,
        "r0": _RATING,
        "references_at": ColumnSchema("wholes", low=0, required=False),
    },
    {f"r{digit}": _RATING for digit in range(10)},
)
_PREFERENCE = Schema(
    {"label": ColumnSchema("whole", low=0, high=1)}
    | {f"votes_{side}": ColumnSchema("real", low=0) for side in _SIDES}
    | {f"{side}{end}": _LIST for side in _SIDES for end in ("_at", "_images_at")}
    | {f"{side}_references_at": ColumnSchema("wholes2", low=0, required=False) for side in _SIDES}
)
_POSITIONS = pa.list_(pa.int64())


def to_tables(
    benchmark: Benchmark, answers: Scores | Outcomes, items: Mapping[str, NDArray[np.float64]]
) -> dict[str, pa.Table]:
    """The tables by file name."""
    return {
        SCORES: _answers_table(benchmark, answers),
        ITEMS: _items_table(benchmark, items),
        CAPTIONS: pa.table(
            {
                "id": pa.array([c.id for c in benchmark.captions], pa.string()),
                "text": pa.array([c.text for c in benchmark.captions], pa.string()),
            }
        ),
        IMAGES: _images_table(benchmark),
    }


def from_tables(
    card: Card, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any], folder: Path
) -> tuple[Benchmark, Scores | Outcomes]:
    """The questions of a run, without pixels, and the answers, from tables that fit `SCHEMAS`.

    Raises `DataError` naming the file (in `folder`), column and row that does not fit the others.
    """
    with misfits(folder):
        return _from_tables(card, tables, manifest, folder)


def _from_tables(
    card: Card, tables: Mapping[str, pa.Table], manifest: Mapping[str, Any], folder: Path
) -> tuple[Benchmark, Scores | Outcomes]:
    about = manifest.get("benchmark", {})
    path = about.get("path")
    captions, images = tables[CAPTIONS], tables[IMAGES]
    check_crops(images, where=folder / IMAGES)
    read_form = _rated if card.form == Rated.form else _preference
    questions = read_form(tables[ITEMS], folder / ITEMS)
    benchmark = Benchmark(
        card,
        _images(images),
        tuple(
            Caption(name, text)
            for name, text in zip(captions["id"].to_pylist(), captions["text"].to_pylist(), strict=True)
        ),
        questions,
        source=about.get("source", ""),
        path=Path(path) if path else None,
    )
    return benchmark, _answers(tables[SCORES], questions, folder / SCORES)


def _answers_table(benchmark: Benchmark, answers: Scores | Outcomes) -> pa.Table:
    columns: dict[str, pa.Array] = {"question": pa.array(benchmark.questions.ids, pa.string())}
    if isinstance(answers, Outcomes):
        columns |= {name: pa.array(right, pa.bool_()) for name, right in answers.right.items()}
    elif answers.values.ndim == 1:
        columns["score"] = pa.array(answers.values, pa.float64())
    elif answers.values.ndim == 2:
        columns |= {side: pa.array(answers.values[:, k], pa.float64()) for k, side in enumerate(_SIDES)}
    else:
        for draw in range(answers.values.shape[2]):
            for k, side in enumerate(_SIDES):
                columns[f"{side}_d{draw}"] = pa.array(answers.values[:, k, draw], pa.float64())
    return pa.table(columns)


def _answers(table: pa.Table, questions: Rated | Preference, where: Path) -> Scores | Outcomes:
    table = check_answers(table, _score_columns(table, questions), questions.ids, where=where)
    names = [name for name in table.column_names if name != "question"]
    columns = [table[name].to_numpy(zero_copy_only=False) for name in names]
    if all(pa.types.is_boolean(table[name].type) for name in names):
        return Outcomes({name: column.astype(bool) for name, column in zip(names, columns, strict=True)})
    if isinstance(questions, Rated):
        return Scores(columns[0].astype(np.float64))
    values = np.stack(columns, axis=1).astype(np.float64)
    if names == list(_SIDES):
        return Scores(values)
    # Columns are draws x sides; scores are sides x draws.
    return Scores(np.ascontiguousarray(values.reshape(len(table), -1, 2).transpose(0, 2, 1)))


def _score_columns(table: pa.Table, questions: Rated | Preference) -> list[str]:
    """The columns of scores, in order."""
    if isinstance(questions, Rated):
        return ["score"]
    if "a_d0" not in table.column_names:
        return list(_SIDES)
    draws = (len(table.column_names) - 1) // 2
    return [f"{side}_d{draw}" for draw in range(draws) for side in _SIDES]


def _items_table(benchmark: Benchmark, items: Mapping[str, NDArray[np.float64]]) -> pa.Table:
    questions = benchmark.judged
    columns: dict[str, pa.Array] = {
        "question": pa.array(questions.ids, pa.string()),
        "cluster": pa.array(benchmark.clusters, pa.int64()),
    }
    if isinstance(questions, Rated):
        columns |= _rated_columns(benchmark, questions)
        facts = {
            "raters": questions.raters,
            "decimals": "" if questions.decimals is None else questions.decimals,
        }
    else:
        columns |= _preference_columns(benchmark, questions)
        facts = {
            "sample": "" if questions.sample is None else questions.sample,
            "draws": questions.draws,
            "seed": questions.seed,
        }
    columns |= {
        f"group:{name}": pa.array(labels, pa.string()) for name, labels in questions.groupings.items()
    }
    columns |= {f"measure:{name}": pa.array(values, pa.float64()) for name, values in items.items()}
    facts |= {"form": questions.form}
    return pa.table(columns).replace_schema_metadata({name: str(value) for name, value in facts.items()})


def _rated_columns(benchmark: Benchmark, questions: Rated) -> dict[str, pa.Array]:
    columns = {
        "candidate": pa.array([benchmark.captions[i].text for i in questions.captions], pa.string()),
        "image": pa.array([benchmark.images[i].id for i in questions.images], pa.string()),
        "candidate_at": pa.array(questions.captions, pa.int64()),
        "image_at": pa.array(questions.images, pa.int64()),
    }
    columns |= {
        f"r{rater}": pa.array(given, pa.float64(), mask=np.isnan(given))
        for rater, given in enumerate(questions.ratings.T)
    }
    if questions.references is not None:
        columns["references_at"] = _lists(questions.references.starts, questions.references.captions)
    return columns


def _preference_columns(benchmark: Benchmark, questions: Preference) -> dict[str, pa.Array]:
    columns: dict[str, pa.Array] = {}
    for k, side in enumerate(_SIDES):
        rows = np.flatnonzero(questions.sides == k)
        starts = np.searchsorted(questions.owners[rows], np.arange(len(questions) + 1))
        captions, images = questions.captions[rows], questions.images[rows]
        columns[f"{side}"] = _lists(starts, [benchmark.captions[i].text for i in captions], pa.string())
        columns[f"{side}_images"] = _lists(starts, [benchmark.images[i].id for i in images], pa.string())
        columns[f"{side}_at"] = _lists(starts, captions)
        columns[f"{side}_images_at"] = _lists(starts, images)
        columns[f"votes_{side}"] = pa.array(questions.votes[:, k], pa.float64())
        if questions.references is not None:
            own = questions.references.take(rows)
            columns[f"{side}_references_at"] = pa.ListArray.from_arrays(
                pa.array(starts, pa.int32()), _lists(own.starts, own.captions)
            )
    columns["label"] = pa.array(questions.label, pa.int64())
    return columns


def _lists(
    starts: NDArray[np.int64], values: NDArray[np.int64] | Sequence[str | None], kind: Any = None
) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), pa.array(values, kind or pa.int64()))


def _images_table(benchmark: Benchmark) -> pa.Table:
    columns = {
        "id": pa.array([i.id for i in benchmark.images], pa.string()),
        "photo": pa.array(benchmark.photos, pa.string()),
        "crop": pa.array([None if i.crop is None else list(i.crop) for i in benchmark.images], _POSITIONS),
    }
    if any(isinstance(i, Video) for i in benchmark.images):
        for name in ("start", "end"):
            columns[name] = pa.array([getattr(i, name, None) for i in benchmark.images], pa.float64())
    return pa.table(columns)


def _images(table: pa.Table) -> tuple[Image, ...]:
    plain = zip(*(table[name].to_pylist() for name in ("id", "crop", "photo")), strict=True)
    images = [Image(name, None, tuple(crop) if crop else None, photo) for name, crop, photo in plain]
    if "start" not in table.column_names:
        return tuple(images)
    parts = zip(images, table["start"].to_pylist(), table["end"].to_pylist(), strict=True)
    return tuple(
        Video(image.id, None, image.crop, image.photo, start=start, end=end) for image, start, end in parts
    )


class _RatedFacts(Stored):
    """What the metadata of `items.parquet` say of ratings."""

    form: Literal["rated"]
    raters: Literal["points", "apart"]
    decimals: Annotated[str, Field(pattern=r"^[0-9]{0,2}$")]


class _PreferenceFacts(Stored):
    """What the metadata of `items.parquet` say of preferences."""

    form: Literal["preference"]
    sample: Annotated[str, Field(pattern=r"^[0-9]{0,9}$")]
    draws: Annotated[str, Field(pattern=r"^[0-9]{1,4}$")]
    seed: Annotated[str, Field(pattern=r"^[0-9]{1,19}$")]


def _rated(table: pa.Table, where: Path) -> Rated:
    facts = check_model(notes(table), _RatedFacts, where=f"{where}, metadata")
    table = check_columns(table, _RATED, where=where)
    raters = [name for name in table.column_names if name[:1] == "r" and name[1:].isdigit()]
    ratings = [table[name].to_numpy(zero_copy_only=False).astype(np.float64) for name in raters]
    return Rated(
        tuple(table["question"].to_pylist()),
        groupings=_groupings(table),
        captions=table["candidate_at"].to_numpy().astype(np.int64),
        images=table["image_at"].to_numpy().astype(np.int64),
        ratings=np.stack(ratings, axis=1),
        references=References(*_flat(table, "references_at"))
        if "references_at" in table.column_names
        else None,
        raters=facts.raters,
        decimals=int(facts.decimals) if facts.decimals else None,
    )


def _preference(table: pa.Table, where: Path) -> Preference:
    facts = check_model(notes(table), _PreferenceFacts, where=f"{where}, metadata")
    table = check_columns(table, _PREFERENCE, where=where)
    n = len(table)
    columns: dict[str, list[NDArray[np.int64]]] = {"captions": [], "images": [], "owners": [], "sides": []}
    for k, side in enumerate(_SIDES):
        starts, captions = _flat(table, f"{side}_at")
        columns["captions"].append(captions)
        columns["images"].append(_flat(table, f"{side}_images_at")[1])
        columns["owners"].append(np.repeat(np.arange(n), np.diff(starts)))
        columns["sides"].append(np.full(len(captions), k))
    whole = {name: np.concatenate(parts) for name, parts in columns.items()}
    order = np.lexsort((whole["sides"], whole["owners"]))
    references = None
    if {"a_references_at", "b_references_at"} <= set(table.column_names):
        both = [_nested(table, f"{side}_references_at") for side in _SIDES]
        shifted = both[1].starts[1:] + both[0].starts[-1]
        joined = References(
            np.concatenate([both[0].starts, shifted]), np.concatenate([each.captions for each in both])
        )
        references = joined.take(order)
    votes = [table[f"votes_{side}"].to_numpy() for side in _SIDES]
    return Preference(
        tuple(table["question"].to_pylist()),
        groupings=_groupings(table),
        **{name: column[order] for name, column in whole.items()},
        votes=np.stack(votes, axis=1).astype(np.float64),
        label=table["label"].to_numpy().astype(np.int64),
        references=references,
        sample=int(facts.sample) if facts.sample else None,
        draws=int(facts.draws),
        seed=int(facts.seed),
    )


def _flat(table: pa.Table, name: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Where each row's list begins, and all lists one after another."""
    column = table[name].combine_chunks()
    counts = column.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    return np.concatenate([[0], np.cumsum(counts)]).astype(np.int64), column.flatten().to_numpy().astype(
        np.int64
    )


def _nested(table: pa.Table, name: str) -> References:
    """The references of every sentence, one question after another."""
    inner = table[name].combine_chunks().flatten()
    counts = inner.value_lengths().to_numpy(zero_copy_only=False).astype(np.int64)
    starts = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
    return References(starts, inner.flatten().to_numpy().astype(np.int64))


def _groupings(table: pa.Table) -> dict[str, tuple[str, ...]]:
    return {
        name.removeprefix("group:"): tuple(table[name].to_pylist())
        for name in table.column_names
        if name.startswith("group:")
    }
