"""A benchmark's questions as rows to learn from."""

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.forms import Ids
from counterfoil.data.training import Missing, TrainingSet
from counterfoil.errors import DataError


def from_benchmark(benchmark: Benchmark, *, missing: Missing = "refuse") -> TrainingSet:
    """A row per quad; per right and wrong candidate of a choice; per caption of a gallery's images.

    Quads have all four roles, image 0 and caption 0 being the positive pair. A choice among captions has a
    `negative_caption`, one among images a `negative_image`. In a gallery, a caption goes with the image it
    was written for; where that is unknown, with every image that is a full match. Groupings stay. Raises
    `DataError` where a caption of a row is not at hand, or an image, unless such images are kept.
    """
    questions, place = benchmark.questions, benchmark.source or benchmark.name
    source, rows = questions.training_rows(where=place)
    _check_at_hand(benchmark, rows, missing)
    return TrainingSet(
        name=benchmark.name,
        images=benchmark.images,
        captions=benchmark.captions,
        rows=rows,
        groupings={}
        if source is None
        else {name: tuple(labels[i] for i in source) for name, labels in questions.groupings.items()},
        source=benchmark.source,
    )


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
