"""IIW-400's side-by-side judgements of long captions."""

from pathlib import Path

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Preference
from counterfoil.benchmarks.readers.human_ratings import CaptionTable, Skipped, clean_caption, finished
from counterfoil.benchmarks.readers.released_files import released_file
from counterfoil.benchmarks.readers.rows import Photos, image_folder
from counterfoil.benchmarks.records import Image
from counterfoil.benchmarks.tables import read_table, shown, texts
from counterfoil.errors import DataError

_DEGREES = ("marginally", "substantially")


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """IIW-400's side-by-side judgements of the caption by people (first) and that of IIW-P5B (second).

    A question per image and aspect ("Comprehensiveness", "Hallucination", ...), one vote; those answered
    "Neutral" are left out. Groupings: `aspect`, and `degree` ("marginally", "substantially").
    """
    captions, left = CaptionTable(), Skipped()
    names, sides, positions, votes, aspects, degrees = [], [], [], [], [], []
    pictures: dict[str, int] = {}
    table = read_table(released_file(card, data, ("data.jsonl",)))
    column = "image/key" if "image/key" in table or "image" not in table else "image"
    for row, (key, text) in enumerate(zip(texts(table, column), texts(table, "IIW"), strict=True)):
        name = key if Path(key).suffix else f"{key}.jpg"
        where = f"{data}, image '{name}'"
        judged = table["iiw-human-sxs-iiw-p5b"][row] if "iiw-human-sxs-iiw-p5b" in table else None
        if not isinstance(judged, dict):
            raise DataError("no side-by-side judgements", where=where, allowed="iiw-human-sxs-iiw-p5b")
        both = [
            captions.add(clean_caption(candidate, where), f"{name}#{k}")
            for k, candidate in enumerate((text, table["IIW-P5B"][row]))
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
            positions.append(pictures.setdefault(name, len(pictures)))
            votes.append([float(first), float(not first)])
            aspects.append(aspect)
            degrees.append(degree)
    if not names:
        raise DataError("no judgement is left", where=left.said(str(data)))
    photos = Photos(image_folder(data, images))
    questions = Preference.between(
        tuple(names),
        np.array(sides, dtype=np.int64),
        np.array(positions, dtype=np.int64),
        np.array(votes),
        np.array(votes)[:, 1].astype(np.int64),
        groupings={"aspect": tuple(aspects), "degree": tuple(degrees)},
    )
    files = [Image(name, photos.source(name)) for name in pictures]
    return finished(card, captions.items, files, questions, source=left.said(str(data)), path=data)
