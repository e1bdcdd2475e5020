"""The world as benchmarks of the catalog: drawn on the spot, always the same."""

from pathlib import Path

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.errors import DataError
from counterfoil.world import galleries, ratings, sample, video_benchmark

#: How many images the gallery has, and captions for each.
IMAGES, CAPTIONS_EACH = 300, 2
#: Pixels to a side of every picture.
SIZE = 192


def quads(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """As many quads as the card says; raises `DataError` where a file is named: there is none to read."""
    return sample.quads(_questions(card, data), size=SIZE, lazy=True)


def choices(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """As many choices as the card says; raises as `quads`."""
    return sample.choices(_questions(card, data), size=SIZE, lazy=True)


def gallery(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """The gallery of the catalog; raises as `quads`."""
    _questions(card, data)
    return galleries.gallery(IMAGES, captions_each=CAPTIONS_EACH, size=SIZE, lazy=True)


def rated(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """As many rated captions as the card says; raises as `quads`."""
    return ratings.rated(_questions(card, data), size=SIZE, lazy=True)


def preferences(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """As many preferences as the card says; raises as `quads`."""
    return ratings.preferences(_questions(card, data), size=SIZE, lazy=True)


def moving(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """As many rated captions of moving scenes as the card says; raises as `quads`."""
    return video_benchmark.clips(_questions(card, data), size=SIZE)


def _questions(card: Card, data: Path | None) -> int:
    if data is not None:
        raise DataError(
            f"{card.title} is drawn, not read",
            where=data,
            allowed="no --data, or a folder that 'counterfoil world build' made",
        )
    if card.size is None:
        raise DataError("the card does not say how many questions to draw", where=card.name)
    return card.size
