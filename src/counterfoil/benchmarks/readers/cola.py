"""Cola's single-object setting: for each class of objects the images on which it is hard to tell."""

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Gallery, RetrievalDirection
from counterfoil.benchmarks.readers.questions import search
from counterfoil.benchmarks.readers.released_files import list_of, released_file
from counterfoil.benchmarks.records import Caption, Image, Photos, image_folder
from counterfoil.benchmarks.tables import shown
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_json
from counterfoil.metrics.ranks import Qrels

#: A row; the last two have a 0 or 1 for each class. The annotation may be missing (PACO).
_COLUMNS = ("image_file", "objects_attributes_annotation", "label", "hard_list")


def read_single(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """`COLA_singleobjects_benchmark_GQA.json` and its like: [labels, rows], or an object of `labels`, `data`.

    Classes without a hard image that shows them have no average precision, and are left out.
    """
    source = card.name.rpartition("-")[2].upper()
    path = released_file(card, data, (f"COLA_singleobjects_benchmark_{source}.json",))
    labels, files, present, hard = _read(path)
    right = hard & present
    tested = np.flatnonzero(right.any(axis=0))
    if not len(tested):
        raise DataError("no class has a hard image that shows it", where=path)
    of_class, row = np.nonzero(hard[:, tested].T)
    photos = Photos(image_folder(data, images)).sources([files[position] for position in np.unique(row)])
    times: Counter[str] = Counter()
    items = []
    for c, position in zip(of_class, row, strict=True):
        name = f"{labels[tested[c]]}/{files[position]}"
        times[name] += 1
        # One that comes again has a number behind it.
        unique = name if times[name] == 1 else f"{name} ({times[name]})"
        items.append(Image(unique, photos[files[position]], photo=files[position]))
    captions = tuple(Caption(labels[position], labels[position]) for position in tested)
    is_right = right[row, tested[of_class]]
    queries = np.arange(len(tested), dtype=np.int64)
    left_out = len(labels) - len(tested)
    where = f"{path}, {left_out:,} of {len(labels):,} classes left out" if left_out else str(path)
    questions = Gallery(
        tuple(f"t2i/{caption.id}" for caption in captions),
        i2t=RetrievalDirection(np.empty(0, dtype=np.int64), Qrels.of([])),
        t2i=search(
            queries,
            (of_class[is_right], np.flatnonzero(is_right)),
            names=[caption.id for caption in captions],
            where=path,
        ),
        owners=np.full(len(captions), -1, dtype=np.int64),
        n_images=len(items),
        image_parts=of_class.astype(np.int64),
        caption_parts=queries,
    )
    card = card if card.size is not None else card.model_copy(update={"size": len(tested)})
    return Benchmark(card, tuple(items), captions, questions, where, data)


def _read(path: Path) -> tuple[list[str], list[str], NDArray[np.bool_], NDArray[np.bool_]]:
    """The classes, the images, and for each image and class whether it shows it, and is hard."""
    whole = read_json(path)
    if isinstance(whole, dict):
        whole = [whole.get("labels"), whole.get("data")]
    if not isinstance(whole, list) or len(whole) != 2:
        what = "not classes and images"
        raise DataError(what, where=path, given=shown(whole), allowed="[labels, data], or both by name")
    labels = [str(label).strip() for label in list_of(whole[0], where=f"{path}, labels")]
    if len(set(labels)) < len(labels) or "" in labels:
        raise DataError("classes are not distinct words", where=f"{path}, labels")
    files: list[str] = []
    marks: list[Any] = []
    for number, row in enumerate(list_of(whole[1], where=f"{path}, data"), start=1):
        place = f"{path}, data, row {number}"
        if not isinstance(row, list) or len(row) not in (3, 4) or not isinstance(row[0], str) or not row[0]:
            what = "not a row of this layout"
            raise DataError(what, where=place, given=shown(row), allowed=f"[{', '.join(_COLUMNS)}]")
        for name, column in zip(_COLUMNS[2:], row[-2:], strict=True):
            fits = isinstance(column, list) and len(column) == len(labels)
            if not fits or any(cell not in (0, 1) for cell in column):
                what = f"{name} is no 0 or 1 for each class"
                raise DataError(what, where=place, given=shown(column), allowed=f"{len(labels):,} of 0 and 1")
        files.append(row[0])
        marks.append(row[-2:])
    present, hard = np.array(marks, dtype=bool).transpose(1, 0, 2)
    return labels, files, present, hard
