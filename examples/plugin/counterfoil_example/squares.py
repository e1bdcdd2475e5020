"""A benchmark: quads of two coloured squares and their captions."""

from itertools import combinations
from pathlib import Path

import numpy as np

from counterfoil.benchmarks import Benchmark, Card, Image, PixelSource
from counterfoil.benchmarks.readers.questions import quads

CARD = Card(
    name="example-squares",
    title="Coloured squares",
    form="quad",
    size=6,
    measures=("group", "i2t", "t2i"),
    groupings=("first",),
    reader="counterfoil_example.squares:read",
)
COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 70, 220), "yellow": (230, 220, 50)}


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Every two of four colours. Nothing is read from files, so `data` and `images` are not used."""
    pairs = list(combinations(COLOURS, 2))
    squares = {
        name: Image(name, PixelSource(np.full((24, 24, 3), c, np.uint8))) for name, c in COLOURS.items()
    }
    first, second = zip(*pairs, strict=True)
    return quads(
        card,
        ids=["-".join(pair) for pair in pairs],
        captions=([f"a {name} square" for name in first], [f"a {name} square" for name in second]),
        images=([squares[name] for name in first], [squares[name] for name in second]),
        groupings={"first": tuple(first)},
        source="drawn",
    )
