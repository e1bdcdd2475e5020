"""A sentence and several images: SVO-Probes (two, of which one lacks a thing) and ImageCoDe (ten)."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.forms import Choice, Statement
from counterfoil.benchmarks.readers.questions import check_counts, image_choices
from counterfoil.benchmarks.readers.released_files import pictures, released_file
from counterfoil.benchmarks.readers.rows import Photos
from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.tables import DataTable, booleans, labels, read_table, shown
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_json

_SIDES = ("pos_image_id", "neg_image_id")
_TYPES = {"subj_neg": "subject", "verb_neg": "verb", "obj_neg": "object"}


def read_svo_probes(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """SVO-Probes from `svo_probes.csv`: each sentence chooses between its image and another.

    Images are `{pos_image_id}.jpg` and `{neg_image_id}.jpg` (or .png) in `images` or in the folder of the
    file: the release has their addresses, many of which are gone, so that a benchmark of those that are at
    hand is a part (`--available`). Rows without a sentence are left out. Question ids are row numbers from 0
    of the file. Grouping: `type` (subject, verb, object: what the second image lacks). Raises `DataError`
    for a row with other than one type.
    """
    table = read_table(released_file(card, data, ("svo_probes.csv", "svo-probes.csv")))
    sentences = table["sentence"]
    flags = {name: booleans(table, column) for column, name in _TYPES.items()}
    rows = [row for row, text in enumerate(sentences) if isinstance(text, str) and text.strip()]
    for row in rows:
        if sum(bool(flag[row]) for flag in flags.values()) != 1:
            raise DataError(
                "not of one type", where=table.where(row), allowed=f"one of {', '.join(_TYPES)} is True"
            )
    numbers = {side: labels(table, side) for side in _SIDES}
    files = {side: tuple(f"{numbers[side][row]}.jpg" for row in rows) for side in _SIDES}
    ids = [str(row) for row in rows]
    sides = pictures(DataTable(files, table.source), _SIDES, ids, data, images, suffixes=(".png",))
    kinds = tuple(next(name for name, flag in flags.items() if flag[row]) for row in rows)
    return image_choices(
        card,
        ids,
        [str(sentences[row]) for row in rows],
        sides,
        {"type": kinds},
        source=table.source,
        path=data,
    )


def read_svo_statements(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Each sentence of SVO-Probes with each of its images: true of the first and false of the other.

    A sentence that comes with one image again is left out, as the authors do. Question "7/true" is row 7 with
    its first image, "7/false" with the other. Grouping: `type` (subject, verb, object) of false statements;
    true ones lack nothing. Files and errors as in `read_svo_probes`.
    """
    benchmark = read_svo_probes(card, data, images)
    choices = benchmark.choices
    kinds = choices.groupings["type"]
    rows: dict[tuple[str | None, int], tuple[str, int, bool, str]] = {}
    for name, caption, both, kind in zip(choices.ids, choices.query, choices.candidates, kinds, strict=True):
        for image, truth in zip(both.tolist(), (True, False), strict=True):
            key = benchmark.captions[caption].text, image
            rows.setdefault(key, (f"{name}/{str(truth).lower()}", int(caption), truth, "" if truth else kind))
    ids, captions, truths, types = zip(*rows.values(), strict=True)
    questions = Statement(
        ids,
        captions=np.array(captions, dtype=np.int64),
        images=np.array([image for _, image in rows], dtype=np.int64),
        truth=np.array(truths, dtype=bool),
        groupings={"type": types},
    )
    whole = replace(benchmark, questions=questions)
    return check_counts(whole.select(np.arange(len(questions))))


#: Images of a set.
TEN = 10
#: What begins the directory of a set of photographs; all others are frames of a video.
_STATIC = "open-images"


def read_imagecode(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """`valid_data.json`: {directory: {number of the right image: caption}}, or a folder that holds it.

    Question "DIRECTORY/5" is the caption of image 5 of ten, `DIRECTORY/img5.jpg` in `images` (else in the
    folder `image-sets` beside the file). The right image comes first, the others by number. Grouping `kind`:
    "static" (photographs) or "video". Raises `DataError` for what is not of this layout, and for counts that
    are not the card's.
    """
    file = released_file(card, data, ("valid_data.json", "data/valid_data.json"))
    sets = read_json(file)
    if not isinstance(sets, dict) or not sets:
        raise DataError("not an object of sets of images", where=file, given=type(sets).__name__)
    ids, texts, candidates, kinds = [], [], [], []
    for number, (directory, captions) in enumerate(sets.items()):
        if not isinstance(captions, Mapping):
            raise DataError("not captions by number", where=f"{file}, '{directory}'", given=shown(captions))
        for key, text in captions.items():
            if key not in map(str, range(TEN)) or not isinstance(text, str) or not text.strip():
                raise DataError(
                    "not a caption of one of ten images",
                    where=f"{file}, '{directory}'",
                    given=f"{key}: {shown(text)}",
                    allowed="a text under 0 to 9",
                )
            right = int(key)
            ids.append(f"{directory}/{key}")
            texts.append(text)
            order = [right, *(other for other in range(TEN) if other != right)]
            candidates.append([TEN * number + other for other in order])
            kinds.append("static" if directory.startswith(_STATIC) else "video")
    if not ids:
        raise DataError("no captions", where=file)
    beside = file.parent / "image-sets"
    photos = Photos(images or (beside if beside.is_dir() else None))
    names = [f"{directory}/img{k}.jpg" for directory in sets for k in range(TEN)]
    sources = photos.sources(names)
    benchmark = Benchmark(
        card,
        tuple(Image(name, sources[name]) for name in names),
        tuple(Caption(name, text) for name, text in zip(ids, texts, strict=True)),
        Choice(
            tuple(ids),
            query=np.arange(len(ids), dtype=np.int64),
            candidates=np.array(candidates, dtype=np.int64),
            asks="caption",
            groupings={"kind": tuple(kinds)},
        ),
        str(file),
        data,
    )
    return check_counts(replace(benchmark.select(np.arange(len(ids))), path=data))
