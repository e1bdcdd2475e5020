"""A run: one scorer on one benchmark, as a folder that everything later can be recomputed from.

`manifest.json` says how the numbers came about, `scores.parquet` holds the answers, `items.parquet` the
questions with their per-item values, `result.json` the measures. The manifest is written last, so a folder
that has one is whole.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.questions import Choice, Quad
from counterfoil.data.records import Caption, Image
from counterfoil.data.scores import Answers, Outcomes, Scores
from counterfoil.errors import DataError
from counterfoil.evaluation.evaluate import per_item
from counterfoil.evaluation.result import Result
from counterfoil.metrics.ties import Ties
from counterfoil.store import digest_file, read_json, read_parquet, write_json, write_parquet

#: Raised when the layout of a run folder changes.
SCHEMA = 1

_QUAD_COLUMNS = ("c0_i0", "c0_i1", "c1_i0", "c1_i1")


@dataclass(frozen=True, eq=False)
class Run:
    """One scorer on one benchmark: questions, answers, per-item values and the result.

    `benchmark` may lack pixels (a run folder does not keep them); `name` is what tables call the scorer.
    """

    name: str
    benchmark: Benchmark
    answers: Answers
    items: Mapping[str, NDArray[np.float64]]
    result: Result
    manifest: Mapping[str, Any]

    def with_benchmark(self, benchmark: Benchmark) -> "Run":
        """The same run over `benchmark` with its pictures, if that asks all its questions; else itself."""
        place = {name: i for i, name in enumerate(benchmark.questions.ids)}
        positions = [place.get(name, -1) for name in self.benchmark.questions.ids]
        if min(positions) < 0:
            return self
        if positions != list(range(len(benchmark))):
            benchmark = benchmark.select(np.asarray(positions, dtype=np.int64))
        return replace(self, benchmark=benchmark) if benchmark.digest == self.benchmark.digest else self


def save_run(
    folder: Path, benchmark: Benchmark, answers: Answers, result: Result, manifest: Mapping[str, Any]
) -> Run:
    """Write a run to `folder` and return it. A run that is there already is replaced, file by file."""
    policy = Ties(result.ties["policy"])
    items = per_item(benchmark, answers, ties=policy)
    # Without its manifest an older run in this folder is no run, so a stop in between leaves no mixture.
    (folder / "manifest.json").unlink(missing_ok=True)
    write_parquet(folder / "scores.parquet", _answers_table(benchmark, answers))
    write_parquet(folder / "items.parquet", _items_table(benchmark, items))
    write_json(folder / "result.json", result.to_json())
    full = {
        "schema": SCHEMA,
        **manifest,
        "card": benchmark.card.model_dump(mode="json"),
        "digests": {
            name: digest_file(folder / name) for name in ("scores.parquet", "items.parquet", "result.json")
        },
    }
    write_json(folder / "manifest.json", full)
    return Run(result.scorer, benchmark, answers, items, result, full)


def load_run(folder: Path) -> Run:
    """The run in `folder`; raises `DataError` where it is no run, or one whose files were changed since."""
    if not (folder / "manifest.json").is_file():
        raise DataError(
            "not a run folder: it has no manifest.json",
            where=folder,
            hint="give a folder written by 'counterfoil evaluate ... --out'",
        )
    manifest = read_json(folder / "manifest.json")
    if manifest.get("schema") != SCHEMA:
        raise DataError(
            "unknown version of a run folder",
            where=folder / "manifest.json",
            given=manifest.get("schema"),
            allowed=str(SCHEMA),
            hint="evaluate again, or use the counterfoil that wrote it",
        )
    for name, digest in manifest["digests"].items():
        if not (folder / name).is_file():
            raise DataError(
                "the run is not whole: a file is missing", where=folder / name, hint="evaluate again"
            )
        if digest_file(folder / name) != digest:
            raise DataError(
                "the file is not the one the run wrote",
                where=folder / name,
                hint="evaluate again to replace it",
            )
    result = Result.from_json(read_json(folder / "result.json"))
    benchmark = _benchmark(Card(**manifest["card"]), read_parquet(folder / "items.parquet"), manifest)
    answers = _answers(benchmark, read_parquet(folder / "scores.parquet"))
    items = per_item(benchmark, answers, ties=Ties(result.ties["policy"]))
    return Run(result.scorer, benchmark, answers, items, result, manifest)


def find_runs(paths: Sequence[Path]) -> list[Run]:
    """The runs in `paths`: each a run folder, or a folder of run folders (however deep).

    Runs are named after the scorer; where two of one benchmark share that name, after their folders.
    """
    folders: list[Path] = []
    for path in paths:
        if not path.is_dir():
            raise DataError("no such run folder", where=path, hint="give folders written by --out")
        found = sorted(manifest.parent for manifest in path.rglob("manifest.json"))
        if not found:
            raise DataError("no run in this folder", where=path, hint="give a folder written by --out")
        folders += [folder for folder in found if folder not in folders]
    return [
        replace(load_run(folder), name=name) for folder, name in zip(folders, _names(folders), strict=True)
    ]


def _names(folders: Sequence[Path]) -> list[str]:
    """A short name per run: the folder above the benchmark's, and more above it until names differ."""
    for depth in range(1, max(len(folder.parts) for folder in folders) + 1):
        names = ["/".join(folder.resolve().parts[-1 - depth : -1]) for folder in folders]
        keys = [(name, folder.name) for name, folder in zip(names, folders, strict=True)]
        if len(set(keys)) == len(keys):
            return names
    return [str(folder) for folder in folders]


def _answers_table(benchmark: Benchmark, answers: Answers) -> pa.Table:
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


def _answers(benchmark: Benchmark, table: pa.Table) -> Answers:
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
