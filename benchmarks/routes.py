"""How far faster routes of pictures, and lower precisions, move embeddings and decisions from the reference.

    python benchmarks/routes.py [--model open-clip:ViT-B-32/laion2b_s34b_b79k] [--device cuda] [--items 240]

The reference decodes whole pictures, resizes them by Pillow and computes in fp32. Beside it stand the routes
of `--set resize` and `compile`, and the precisions that the device has. The questions are those of
`benchmarks/engine.py`: SugarCrepe's on COCO's photographs where the data are at hand, else made up with the
same repetition. Without `--model` the model is a ViT-B-32 of random weights, of which more decisions, or
fewer, may change than of a trained one.

For each route are printed the cosines of its image embeddings with the reference's, those of captions, the
largest difference of a score beside the median margin of the reference's decisions, how many decisions
differ, and on which side of the reference's right and wrong they fall.
"""

import argparse
import logging
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy import ndarray

from counterfoil import catalog
from counterfoil.benchmarks import Benchmark
from counterfoil.errors import CounterfoilError
from counterfoil.models.base import Options
from engine import ARCHITECTURE, BATCH, Row, benchmark_of, checkpoint, data_folder, photographs, questions


@dataclass(frozen=True)
class Route:
    """One way to the same embeddings."""

    name: str
    precision: str = "fp32"
    settings: Mapping[str, str] = field(default_factory=dict)


ROUTES = (
    Route("reference"),
    Route("resize=device", settings={"resize": "device"}),
    Route("compile=yes", settings={"compile": "yes"}),
    Route("bf16", "bf16"),
    Route("fp16", "fp16"),
)


@dataclass(frozen=True, eq=False)
class Embedded:
    """The embeddings of a benchmark's items, and the scores of its questions, the right candidate first."""

    images: ndarray
    captions: ndarray
    scores: ndarray


@dataclass(frozen=True)
class Shift:
    """What a route changes, beside the reference."""

    #: Means and least of the cosines of images, and of captions, with the reference's.
    images: tuple[float, float]
    captions: tuple[float, float]
    #: The largest difference of a score, and the median margin of the reference's decisions.
    scores: float
    margin: float
    #: Decisions that differ, those of them that were right in the reference, and those that are right now.
    differ: int
    lost: int
    gained: int
    of: int


def shift(reference: Embedded, other: Embedded) -> Shift:
    """What differs between two ways; a decision is right where the right candidate's score is the higher.

    >>> rows = np.eye(2)
    >>> one = Embedded(rows, rows, np.array([[0.3, 0.1], [0.2, 0.4]]))
    >>> shift(one, Embedded(rows, rows, np.array([[0.3, 0.31], [0.2, 0.1]])))
    Shift(images=(1.0, 1.0), captions=(1.0, 1.0), scores=0.3, margin=0.2, differ=2, lost=1, gained=1, of=2)
    """

    def cosines(one: ndarray, two: ndarray) -> tuple[float, float]:
        each = np.einsum("ij,ij->i", one.astype(np.float64), two.astype(np.float64))
        return float(each.mean()), float(each.min())

    margins = [each.scores[:, 0] - each.scores[:, 1] for each in (reference, other)]
    before, now = (margin > 0 for margin in margins)
    return Shift(
        cosines(reference.images, other.images),
        cosines(reference.captions, other.captions),
        round(float(abs(reference.scores - other.scores).max()), 12),
        round(float(np.median(abs(margins[0]))), 12),
        int((before != now).sum()),
        int((before & ~now).sum()),
        int((now & ~before).sum()),
        len(before),
    )


def embedded(model: Any, work: Benchmark, captions: ndarray | None = None) -> Embedded:
    """All items of a benchmark of two candidates each, and the scores of its questions.

    `captions` are embeddings of the same text tower, where there are some.
    """

    def cut(items: Sequence[Any]) -> list[Sequence[Any]]:
        return [items[at : at + BATCH] for at in range(0, len(items), BATCH)]

    images = np.concatenate(list(model.embed_images(cut(work.images))))
    if captions is None:
        captions = np.concatenate(list(model.embed_captions(cut(work.captions))))
    form: Any = work.questions
    scores = [model.compare(captions[form.candidates[:, i]], images[form.query]) for i in range(2)]
    return Embedded(images, captions, np.stack(scores, axis=1))


def line(name: str, found: Shift) -> str:
    """A row of the table."""
    return (
        f"{name:34}{found.images[0]:11.6f}{found.images[1]:10.6f}{found.captions[1]:10.6f}"
        f"{found.scores:10.1e}{found.differ:8} of {found.of}{found.lost:7}{found.gained:8}"
    )


def main() -> None:
    """Print a row for each route."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", help="open-clip: or hf: and the model; random weights without it")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--items", type=int, default=240, help="questions, about")
    parser.add_argument("--data", type=Path, default=None)
    parser.add_argument("--only", nargs="+", choices=[each.name for each in ROUTES[1:]])
    options = parser.parse_args()
    logging.disable(logging.WARNING)  # open_clip warns that random weights are random
    with tempfile.TemporaryDirectory() as folder:
        measure(options, Path(folder))


def measure(options: argparse.Namespace, folder: Path) -> None:
    """The reference, then every other route, over the same questions."""
    data = data_folder(options.data)
    asked = questions(data, options.items)
    names = list(dict.fromkeys(image for image, _, _ in asked))
    files = photographs(data, len(names), folder)
    file_of = dict(zip(names, files, strict=True))
    work = benchmark_of([Row(file_of[image], caption, negative) for image, caption, negative in asked])
    spec = options.model or f"open-clip:{ARCHITECTURE}/{checkpoint(folder)}"
    print(
        f"{options.model or f'{ARCHITECTURE}, random weights'} on {options.device}: {len(asked)} questions "
        f"on {len(names)} photographs"
    )
    reference: Embedded | None = None
    for route in ROUTES:
        if options.only and route.name not in ("reference", *options.only):
            continue
        wanted = Options(device=options.device, precision=route.precision, settings=route.settings)
        try:
            model = catalog.model(spec, wanted)
            # Routes are of pictures, so captions change with the precision alone.
            known = reference.captions if reference and route.precision == "fp32" else None
            found = embedded(model, work, known)
        except CounterfoilError as error:
            print(f"{route.name:34}  left out: {error}", flush=True)
            continue
        if reference is None:
            reference = found
            print(f"median margin of the reference's decisions: {shift(found, found).margin:.1e}")
            print(
                f"{'':34}{'images':>11}{'least':>10}{'captions':>10}{'score':>10}{'decisions':>14}"
                f"{'lost':>7}{'gained':>8}"
            )
            continue
        activations = model.identity.options.get("activations")
        name = f"{route.name}, activations {activations}" if activations else route.name
        print(line(name, shift(reference, found)), flush=True)


if __name__ == "__main__":
    main()
