"""Small benchmarks of every form, published once."""

from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from counterfoil.benchmarks.benchmark import Benchmark, card
from counterfoil.benchmarks.forms import Choice
from counterfoil.benchmarks.publishing import tables
from counterfoil.benchmarks.publishing.facts import Provenance, Publication, find
from counterfoil.benchmarks.publishing.writing import PublishedFolder, publish_folder
from counterfoil.benchmarks.records import BytesSource, Caption, Image
from counterfoil.world import ratings, sample
from counterfoil.world.benchmarks import gallery

CC_BY = find("CC-BY-4.0")


@dataclass(frozen=True)
class Released:
    benchmark: Benchmark
    folder: Path
    written: PublishedFolder


def plain(**facts):
    return Publication(licence=CC_BY, **facts)


@pytest.fixture(scope="session")
def benchmarks(jpeg):
    """By name; quads have a crop and an image that is not at hand, choices are among two and three items."""
    quads = sample.quads(10)
    images = [*quads.images]
    images[0] = replace(images[0], crop=(10, 20, 60, 80))
    images[-1] = replace(images[-1], source=None)
    labels = {**quads.questions.groupings, "split": ("train",) * 7 + ("test",) * 3}
    photographs = tuple(Image(f"sub/p{i}.jpg", BytesSource(jpeg(i))) for i in range(6))
    of_images = Benchmark(
        card("imagecode").model_copy(update={"size": None}),
        photographs,
        (Caption("c0", 'a "quoted": caption, | with # signs'), Caption("c1", "ein Hündchen\nzwei Zeilen")),
        Choice(
            ("a", "b"),
            groupings={"kind of it": ("x", ""), "id": ("1", "2")},
            query=np.array([0, 1]),
            candidates=np.arange(6).reshape(2, 3),
            asks="caption",
        ),
    )
    return {
        "quads": replace(quads, images=tuple(images), questions=replace(quads.questions, groupings=labels)),
        "choices": sample.choices(8),
        "of-images": of_images,
        "gallery": gallery(6, size=32),
        "statements": sample.statements(8),
        "ratings": ratings.rated(8),
        "preferences": ratings.preferences(8),
    }


@pytest.fixture(scope="session")
def published(benchmarks, tmp_path_factory):
    """Every benchmark in a folder; quads in splits, in files of few images, with who made what."""
    folder, result = tmp_path_factory.mktemp("published"), {}
    ids = list(benchmarks["quads"].questions.ids)
    persons = [f"person {i}" for i in range(len(ids))]
    makers = {"negative_caption_by": persons, "negative_image_seed": range(10)}
    rows = pa.table({"id": ids[::-1], **{name: list(cells)[::-1] for name, cells in makers.items()}})
    made = Provenance.of({"rows": rows, "steps": [{"name": "negate", "rows_in": 12, "rows_out": 10}]})
    for name, benchmark in benchmarks.items():
        of_quads = name == "quads"
        about = plain(provenance=made) if of_quads else plain()
        with pytest.MonkeyPatch.context() as patch:
            if of_quads:
                patch.setattr(tables, "MOST_BYTES", 60_000)
            written = publish_folder(benchmark, folder / name, about)
        result[name] = Released(benchmark, folder / name, written)
    return result
