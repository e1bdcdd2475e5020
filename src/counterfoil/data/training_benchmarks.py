"""A benchmark's questions as rows to learn from."""

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.galleries import Gallery
from counterfoil.data.questions import Choice, Ids, Quad
from counterfoil.data.training import Missing, TrainingSet
from counterfoil.errors import DataError
from counterfoil.metrics.ranks import Positives


def from_benchmark(benchmark: Benchmark, *, missing: Missing = "refuse") -> TrainingSet:
    """A row per quad; per right and wrong candidate of a choice; per caption of a gallery's images.

    Quads have all four roles, image 0 and caption 0 being the positive pair. A choice among captions has a
    `negative_caption`, one among images a `negative_image`. In a gallery, a caption goes with the image it
    was written for; where that is unknown, with every image that is a full match. Groupings stay. Raises
    `DataError` where a caption of a row is not at hand, or an image, unless such images are kept.
    """
    questions = benchmark.questions
    rows: dict[str, Ids]
    if isinstance(questions, Quad):
        source = np.arange(len(questions))
        rows = {
            "image": questions.images[:, 0],
            "caption": questions.captions[:, 0],
            "negative_image": questions.images[:, 1],
            "negative_caption": questions.captions[:, 1],
        }
    elif isinstance(questions, Choice):
        source, rows = _of_choices(questions)
    elif isinstance(questions, Gallery):
        source, rows = _of_gallery(questions)
    else:
        raise DataError(
            "captions that people judged are no training set",
            where=benchmark.source or benchmark.name,
            given=f"a benchmark of form '{questions.form}'",
            allowed="quads, choices or a gallery",
        )
    groupings = questions.groupings
    if isinstance(questions, Gallery):
        # A gallery groups its queries; a row here is a pair, and no query.
        groupings = {}
    if not len(source):
        raise DataError("no image of the gallery has a caption", where=benchmark.source or benchmark.name)
    _check_at_hand(benchmark, rows, missing)
    return TrainingSet(
        name=benchmark.name,
        images=benchmark.images,
        captions=benchmark.captions,
        rows=rows,
        groupings={name: tuple(labels[i] for i in source) for name, labels in groupings.items()},
        source=benchmark.source,
    )


def _of_choices(questions: Choice) -> tuple[Ids, dict[str, Ids]]:
    """Every right candidate with every wrong one, question after question."""
    n, k = questions.candidates.shape
    right = questions.candidates[:, : questions.correct]
    wrong = questions.candidates[:, questions.correct :]
    each = questions.correct * (k - questions.correct)
    source = np.repeat(np.arange(n), each)
    query = questions.query[source]
    positive = np.repeat(right, k - questions.correct, axis=1).reshape(-1)
    negative = np.tile(wrong, (1, questions.correct)).reshape(-1)
    if questions.asks == "image":
        return source, {"image": query, "caption": positive, "negative_caption": negative}
    return source, {"image": positive, "caption": query, "negative_image": negative}


def _of_gallery(questions: Gallery) -> tuple[Ids, dict[str, Ids]]:
    captions = np.flatnonzero(questions.owners >= 0)
    images = questions.owners[captions]
    positives = questions.t2i.positives
    if not len(captions) and isinstance(positives, Positives):
        query = np.repeat(np.arange(len(questions.t2i)), positives.counts)
        # A right answer that the gallery does not hold is no image; a partial match is no positive.
        good = (positives.items >= 0) & (positives.gains == 1)
        captions, images = questions.t2i.queries[query[good]], positives.items[good]
    order = np.lexsort((captions, images))
    return captions[order], {"image": images[order], "caption": captions[order]}


def _check_at_hand(benchmark: Benchmark, rows: dict[str, Ids], missing_images: Missing) -> None:
    lacks = {
        "image": np.array([image.source is None for image in benchmark.images], dtype=bool),
        "caption": np.array([caption.text is None for caption in benchmark.captions], dtype=bool),
    }
    for role, positions in rows.items():
        kind = "image" if role.endswith("image") else "caption"
        missing = lacks[kind][positions]
        if missing.any() and not (kind == "image" and missing_images == "keep"):
            item = (benchmark.images if kind == "image" else benchmark.captions)[
                int(positions[np.argmax(missing)])
            ]
            raise DataError(
                f"{int(missing.sum()):,} of {len(positions):,} rows have no {role} at hand",
                where=benchmark.source or benchmark.name,
                given=f"{kind} '{item.id}'",
                hint="learning needs the pictures and the texts themselves",
            )
