"""Small files of every kind that commands read: drawn pictures, pairs, scores of two models, captions, votes.

README and the tour go on with them, in a folder that holds nothing else, without a network.
"""

from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path
from typing import cast

import numpy as np
import pyarrow as pa

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Quad
from counterfoil.errors import InputError
from counterfoil.metrics.ranks import Qrels
from counterfoil.outputs import overwriting
from counterfoil.store import check_writable, write_bytes, write_csv, write_json
from counterfoil.world.benchmarks import gallery
from counterfoil.world.painting import encode
from counterfoil.world.ratings import rated
from counterfoil.world.sample import quads

#: Questions of the pairs, images of the gallery, captions with ratings.
_QUESTIONS, _IMAGES, _RATED = 60, 30, 40
#: Pixels to the side of a picture.
_SIZE = 128
#: How far the right answer of a model is ahead on average, in standard deviations of its scores.
_MODELS = {"sharp": 1.1, "blunt": 0.4}


def write_example_files(folder: Path, *, seed: int = 0) -> tuple[str, ...]:
    """Write the files into a new `folder`, and return their names; the same seed gives the same bytes.

    Raises `InputError` where something lies in the folder, unless the command was asked to overwrite.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as place:
    ...     write_example_files(Path(place) / "first")[:3]
    ('photos/', 'pairs.csv', 'quads.csv')
    """
    check_writable(folder, folder=True)
    if folder.is_dir() and any(folder.iterdir()) and not overwriting():
        problem = "the folder is not empty"
        raise InputError(problem, where=folder, hint="name a new one, or replace files with --overwrite")
    rng = np.random.default_rng(seed)
    questions, shown = quads(_QUESTIONS, seed=seed, size=_SIZE), gallery(_IMAGES, seed=seed, size=_SIZE)
    judged = rated(_RATED, seed=seed, size=_SIZE)
    named = {"quad": questions, "gallery": shown, "rated": judged}
    files: dict[str, list[str]] = {}
    for kind, benchmark in named.items():
        files[kind] = [f"{kind}-{row:02d}.jpg" for row in range(len(benchmark.images))]
        for name, image in zip(files[kind], benchmark.images, strict=True):
            write_bytes(folder / "photos" / name, encode(image.decode()))
    scores: dict[str, dict[str, Sequence[object]]] = {}
    for name, ahead in _MODELS.items():
        right, wrong = rng.normal([ahead, 0.0], 1.0, (len(questions), 2)).round(3).T
        columns = {"positive_score": right.tolist(), "negative_score": wrong.tolist()}
        scores[f"scores/{name}.csv"] = {"id": _ids(questions), **columns}
    # Every caption with every image that it is true of, and with the one that it was written for.
    positives = cast(Qrels, shown.gallery.t2i.positives)
    rows = np.repeat(np.arange(len(shown.captions)), positives.counts)
    tables: dict[str, Mapping[str, Sequence[object]]] = {
        "pairs.csv": _pairs(questions, files["quad"], both=False),
        "quads.csv": _pairs(questions, files["quad"], both=True),
        **scores,
        "captions.csv": {"caption": _captions()},
        "gallery.csv": {
            "image": [files["gallery"][image] for image in positives.items],
            "caption": [shown.captions[row].text for row in rows],
        },
        "ratings.csv": {
            "image": [files["rated"][row] for row in judged.rated.images],
            "caption": [judged.captions[row].text for row in judged.rated.captions],
            "rating": judged.rated.ratings[:, 0].tolist(),
        },
        "votes.csv": _votes(rng),
    }
    for name, table in tables.items():
        write_csv(folder / name, pa.table(table))
    # A caption of each image by two captioners, the second one of an image before, and references.
    photos = files["gallery"]
    texts: list[list[str]] = [[] for _ in photos]
    for caption, image in zip(shown.captions, shown.gallery.owners, strict=True):
        texts[image].append(str(caption.text))
    captioners = {
        "first.json": {photo: of[0] for photo, of in zip(photos, texts, strict=True)},
        "second.json": {photo: texts[row - row % 3][0] for row, photo in enumerate(photos)},
        "references.json": {photo: of[1:] for photo, of in zip(photos, texts, strict=True)},
    }
    for name, captions in captioners.items():
        write_json(folder / "captioners" / name, captions)
    return ("photos/", *tables, *(f"captioners/{name}" for name in captioners))


def _pairs(benchmark: Benchmark, files: Sequence[str], *, both: bool) -> dict[str, Sequence[object]]:
    questions = cast(Quad, benchmark.questions)
    captions, images = questions.captions, questions.images
    texts = [[benchmark.captions[row].text for row in rows] for rows in captions.T]
    seen = [[files[row] for row in rows] for rows in images.T]
    second = {"negative_image": seen[1]} if both else {}
    return {
        "id": _ids(benchmark),
        "image": seen[0],
        "caption": texts[0],
        "negative_caption": texts[1],
        **second,
        "type": questions.groupings["type"],
    }


def _ids(benchmark: Benchmark) -> list[str]:
    return [f"q{row:02d}" for row in range(len(benchmark))]


def _captions() -> list[str]:
    who = ("A brown dog", "Two old men", "A girl in a red dress", "A small white cat", "Three children")
    does = ("sits on a wooden bench", "waits near the blue door", "looks at a large green bus")
    plural = {"sits": "sit", "waits": "wait", "looks": "look"}
    where = ("in the park", "on a rainy street")
    sentences = []
    for subject, verb, place in product(who, does, where):
        head, _, rest = verb.partition(" ")
        many = subject.startswith(("Two", "Three"))
        sentences.append(f"{subject} {plural[head] if many else head} {rest} {place}.")
    return sentences


def _votes(rng: np.random.Generator) -> dict[str, Sequence[object]]:
    """Votes between three models, the first of which is liked best."""
    names = ("sharp", "blunt", "people")
    rows = []
    for row in range(90):
        a, b = rng.permutation(3)[:2]
        better = a if rng.random() < (4 - a) / (8 - a - b) else b
        rows.append((names[better], names[a + b - better], f"judge-{row % 6}"))
    winners, losers, judges = zip(*rows, strict=True)
    return {"winner": winners, "loser": losers, "judge": judges}
