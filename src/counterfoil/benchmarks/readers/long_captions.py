"""Galleries and preferences of long captions (Urban1k, ShareGPT4V, DOCCI, IIW), and NegBench's retrieval.

Every image has captions of its own, and right is what was written for the image. Official measures are R@1 in
both directions (NegBench: R@5 from captions to images).
"""

import ast
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Preference
from counterfoil.benchmarks.readers.human_ratings import CaptionTable, Skipped, clean_caption, finished
from counterfoil.benchmarks.readers.questions import gallery, own
from counterfoil.benchmarks.readers.released_files import released_file
from counterfoil.benchmarks.readers.rows import Photos, image_folder, not_on_hub
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.tables import DataTable, labels, read_table, shown, texts
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_json, read_text


@dataclass(frozen=True)
class Described:
    """An image by its file, with the captions written for it, and the group of near-duplicates it is in."""

    file: str
    captions: tuple[str, ...]
    photo: str | None = None


def read_urban1k(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Urban1k: `caption/NAME.txt`, of which the first line is the caption, and `image/NAME.jpg`."""
    folder = _folder(card, data)
    files = sorted((folder / "caption").glob("*.txt"), key=lambda file: (len(file.stem), file.stem))
    if not files:
        raise DataError("no caption/*.txt in this folder", where=folder)
    rows = [Described(f"{file.stem}.jpg", (read_text(file).partition("\n")[0],)) for file in files]
    beside = folder / "image"
    return _gallery(card, rows, folder, images or (beside if beside.is_dir() else None))


def read_sharegpt4v(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """The first 1,000 entries of ShareGPT4V's list: `image`, and the second turn of `conversations`."""
    if data is None:
        raise not_on_hub(card)
    entries = read_json(data)
    if not isinstance(entries, list):
        raise DataError("not a list of conversations", where=data, given=type(entries).__name__)
    rows = []
    for number, entry in enumerate(entries[: card.counts.get("images", len(entries))]):
        try:
            rows.append(Described(entry["image"], (entry["conversations"][1]["value"].replace("\n", " "),)))
        except (KeyError, IndexError, TypeError, AttributeError):
            raise DataError(
                "no image with a second turn",
                where=f"{data}, entry {number + 1}",
                given=shown(entry),
                allowed="image, and conversations of two turns or more",
            ) from None
    return _gallery(card, rows, data, images)


def read_docci(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """DOCCI's test split: `docci_descriptions.jsonlines`, and `docci_metadata.jsonlines` where it is there.

    Images of one `cluster_id` are near-duplicates, which intervals take as one photograph.
    """
    folder = _folder(card, data)
    table = _lines(folder / "docci_descriptions.jsonlines")
    described = zip(
        labels(table, "example_id"), texts(table, "image_file"), texts(table, "description"), strict=True
    )
    split = labels(table, "split")
    clusters: dict[str, str] = {}
    metadata = folder / "docci_metadata.jsonlines"
    if metadata.is_file():
        known = _lines(metadata)
        cluster_of = zip(labels(known, "example_id"), labels(known, "cluster_id"), strict=True)
        clusters = {name: f"cluster {cluster}" for name, cluster in cluster_of if cluster}
    rows = [
        Described(file, (text,), clusters.get(name))
        for (name, file, text), of in zip(described, split, strict=True)
        if of == card.split
    ]
    return _gallery(card, rows, folder, images)


def read_iiw(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """A set of IIW: the captions `IIW` of `data.jsonl`, by people, or by models and people together."""
    rows = [Described(name, (text,)) for name, text, _ in _iiw(card, data)]
    assert data is not None
    return _gallery(card, rows, data, images)


def read_iiw_preferences(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """IIW-400's side-by-side judgements of the caption by people (first) and that of IIW-P5B (second).

    A question per image and aspect ("Comprehensiveness", "Hallucination", ...), one vote; those answered
    "Neutral" are left out. Groupings: `aspect`, and `degree` ("marginally", "substantially").
    """
    captions, left = CaptionTable(), Skipped()
    names, sides, at, votes, aspects, degrees = [], [], [], [], [], []
    pictures: dict[str, int] = {}
    for name, text, row in _iiw(card, data):
        where = f"{data}, image '{name}'"
        judged = row.get("iiw-human-sxs-iiw-p5b")
        if not isinstance(judged, dict):
            raise DataError("no side-by-side judgements", where=where, allowed="iiw-human-sxs-iiw-p5b")
        both = [
            captions.add(clean_caption(candidate, where), f"{name}#{k}")
            for k, candidate in enumerate((text, row.get("IIW-P5B")))
        ]
        for metric, answer in judged.items():
            aspect = metric.removeprefix("metrics/")
            if answer == "Neutral":
                left.out("neutral judgements")
                continue
            first = str(answer).startswith("IIW-Human is ")
            degree = str(answer).partition(" is ")[2].removesuffix(" better")
            if not (first or str(answer).startswith("IIW-P5B is ")) or degree not in _DEGREES:
                raise DataError(
                    "not a judgement",
                    where=f"{where}, '{metric}'",
                    given=shown(answer),
                    allowed="IIW-Human or IIW-P5B is marginally or substantially better, Neutral",
                )
            names.append(f"{name}/{aspect}")
            sides.append(both)
            at.append(pictures.setdefault(name, len(pictures)))
            votes.append([float(first), float(not first)])
            aspects.append(aspect)
            degrees.append(degree)
    if not names:
        raise DataError("no judgement is left", where=left.said(str(data)))
    photos = Photos(image_folder(data, images))
    questions = Preference.between(
        tuple(names),
        np.array(sides, dtype=np.int64),
        np.array(at, dtype=np.int64),
        np.array(votes),
        np.array(votes)[:, 1].astype(np.int64),
        groupings={"aspect": tuple(aspects), "degree": tuple(degrees)},
    )
    files = [Image(name, photos.source(name)) for name in pictures]
    return finished(card, captions.items, files, questions, source=left.said(str(data)), path=data)


def read_negbench(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """NegBench's retrieval: a CSV of `filepath` and `captions`, a Python list of texts.

    `data` is the file, or the folder that holds it under its released name.
    """
    file = released_file(card, data, (_NEGBENCH[card.name],))
    table = read_table(file)
    rows = []
    for row, (path, cell) in enumerate(zip(texts(table, "filepath"), table["captions"], strict=True)):
        try:
            listed = ast.literal_eval(cell) if isinstance(cell, str) else cell
        except (ValueError, SyntaxError):
            listed = None
        if not isinstance(listed, list) or not listed or not all(isinstance(text, str) for text in listed):
            raise DataError(
                "not a list of captions",
                where=table.where(row, "captions"),
                given=shown(cell),
                allowed="a list such as ['a cat', 'a cat and no dog']",
            )
        rows.append(Described(Path(path).name, tuple(listed)))
    return _gallery(card, rows, data or file, images)


_DEGREES = ("marginally", "substantially")
#: The file of each of NegBench's galleries.
_NEGBENCH = {
    "negbench-retrieval": "COCO_val_retrieval.csv",
    "negbench-retrieval-negated": "COCO_val_negated_retrieval_llama3.1_rephrased_affneg_true.csv",
}


def _gallery(card: Card, rows: Sequence[Described], data: Path, images: Path | None) -> Benchmark:
    """Every image with its captions, in the order of the rows."""
    if not rows:
        raise DataError("no image with a caption", where=data)
    seen: set[str] = set()
    double = next((row.file for row in rows if row.file in seen or seen.add(row.file)), None)  # type: ignore[func-returns-value]
    if double is not None:
        raise DataError("an image is described twice", where=data, given=double)
    captions = []
    for row in rows:
        for number, text in enumerate(row.captions):
            if not text.strip():
                raise DataError("an empty caption", where=f"{data}, image '{row.file}'")
            captions.append(Caption(f"{row.file}#{number}", text))
    owners = np.repeat(np.arange(len(rows), dtype=np.int64), [len(row.captions) for row in rows])
    sources = Photos(image_folder(data, images)).sources(row.file for row in rows)
    return gallery(
        card,
        [Image(row.file, sources[row.file], photo=row.photo or "") for row in rows],
        captions,
        owners,
        own(owners, len(rows)),
        source=str(data),
        path=data,
    )


def _iiw(card: Card, data: Path | None) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    """The file, the caption and the row of every image of a `data.jsonl`."""
    if data is None:
        raise not_on_hub(card)
    table = _lines(data / "data.jsonl" if data.is_dir() else data)
    column = next((name for name in ("image/key", "image") if name in table), "image/key")
    for row, (name, text) in enumerate(zip(texts(table, column), texts(table, "IIW"), strict=True)):
        file = name if Path(name).suffix else f"{name}.jpg"
        yield file, text, {key: cells[row] for key, cells in table.columns.items()}


def _lines(file: Path) -> DataTable:
    """A table of JSON Lines, whatever the file's name ends in."""
    if not file.is_file():
        raise DataError("no such file", where=file)
    return read_table(file)


def _folder(card: Card, data: Path | None) -> Path:
    if data is None:
        raise not_on_hub(card)
    if not data.is_dir():
        raise DataError("not a folder", where=data, hint="name the folder that the files lie in")
    return data
