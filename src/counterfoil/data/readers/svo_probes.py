"""SVO-Probes: a sentence and two images, of which one lacks its subject, its verb or its object."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.forms import Statement
from counterfoil.data.readers.questions import check_counts, image_choices
from counterfoil.data.readers.released_files import pictures, released_file
from counterfoil.data.tables import DataTable, booleans, labels, read_table
from counterfoil.errors import DataError

_SIDES = ("pos_image_id", "neg_image_id")
_TYPES = {"subj_neg": "subject", "verb_neg": "verb", "obj_neg": "object"}


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
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
    kept = [row for row, text in enumerate(sentences) if isinstance(text, str) and text.strip()]
    for row in kept:
        if sum(bool(each[row]) for each in flags.values()) != 1:
            raise DataError(
                "not of one type", where=table.where(row), allowed=f"one of {', '.join(_TYPES)} is True"
            )
    numbers = {side: labels(table, side) for side in _SIDES}
    files = {side: tuple(f"{numbers[side][row]}.jpg" for row in kept) for side in _SIDES}
    ids = [str(row) for row in kept]
    sides = pictures(DataTable(files, table.source), _SIDES, ids, data, images, suffixes=(".png",))
    kinds = tuple(next(name for name, each in flags.items() if each[row]) for row in kept)
    found = image_choices(
        card,
        ids,
        [str(sentences[row]) for row in kept],
        sides,
        {"type": kinds},
        source=table.source,
        path=data,
    )
    return check_counts(found)


def read_statements(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Each sentence of SVO-Probes with each of its images: true of the first and false of the other.

    A sentence that comes with one image again is left out, as the authors do. Question "7/true" is row 7 with
    its first image, "7/false" with the other. Grouping: `type` (subject, verb, object) of false statements;
    true ones lack nothing. Files and errors as in `read`.
    """
    made = read(card, data, images)
    choices = made.choices
    kinds = choices.groupings["type"]
    rows: dict[tuple[str | None, int], tuple[str, int, bool, str]] = {}
    for name, caption, both, kind in zip(choices.ids, choices.query, choices.candidates, kinds, strict=True):
        for image, truth in zip(both.tolist(), (True, False), strict=True):
            key = made.captions[caption].text, image
            rows.setdefault(key, (f"{name}/{str(truth).lower()}", int(caption), truth, "" if truth else kind))
    ids, captions, truths, types = zip(*rows.values(), strict=True)
    questions = Statement(
        ids,
        captions=np.array(captions, dtype=np.int64),
        images=np.array([image for _, image in rows], dtype=np.int64),
        truth=np.array(truths, dtype=bool),
        groupings={"type": types},
    )
    whole = replace(made, questions=questions)
    return check_counts(whole.select(np.arange(len(questions))))
