"""A form of question: an image and k captions in the order of their truth; with a benchmark of that form."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from counterfoil.benchmarks import Benchmark, Caption, Card, Image, PixelSource
from counterfoil.benchmarks.forms import FormEntry, Ids, Listed
from counterfoil.benchmarks.forms.tables import POSITION, QUESTIONS, StoredField

FORM = FormEntry(
    name="order",
    questions="counterfoil_example.order:Order",
    evaluation="counterfoil_example.order_evaluation:EVALUATION",
    report="counterfoil_example.order_report:REPORT",
)


@dataclass(frozen=True, eq=False)
class Order(Listed):
    """`images` is (n,) and `captions` (n, k), truest first: positions into the benchmark's items."""

    images: Ids = field(kw_only=True)
    captions: Ids = field(kw_only=True)

    form: ClassVar[str] = "order"
    asks: ClassVar[str] = "image"
    stored: ClassVar[Mapping[str, tuple[StoredField, ...]]] = {
        QUESTIONS: (
            StoredField("images", "image"),
            StoredField("captions", "caption_", width=1, more=POSITION),
        )
    }

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n, k)."""
        return self.captions.shape

    def slots(self) -> tuple[Ids, Ids]:
        """All captions and the image, for tables and pages."""
        return self.captions, self.images[:, None]

    def pairs(self) -> tuple[Ids, Ids]:
        """The (caption, image) of every score."""
        return self.captions, np.repeat(self.images[:, None], self.captions.shape[1], axis=1)

    def about(self) -> tuple[Ids, Ids]:
        """What makes questions depend on each other: the image and all captions."""
        return self.images[:, None], self.captions

    def renumber(self, caption_of: Ids, image_of: Ids) -> "Order":
        """The same questions over items at other positions."""
        return replace(self, images=image_of[self.images], captions=caption_of[self.captions])

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        """The truest caption with every other one as its negative."""
        k = self.captions.shape[1] - 1
        rows = np.repeat(np.arange(len(self)), k)
        roles = {"image": self.images[rows], "caption": self.captions[rows, 0]}
        return rows, {**roles, "negative_caption": self.captions[:, 1:].reshape(-1)}


CARD = Card(
    name="example-degrees",
    title="Degrees of truth",
    form="order",
    size=6,
    measures=("concordance", "accuracy"),
    groupings=("colour",),
    reader="counterfoil_example.order:read",
)
COLOURS = {"red": (220, 40, 40), "green": (40, 200, 60), "blue": (50, 70, 220)}


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Of a coloured square: its colour, no colour, another colour. No files are read."""
    asked = [(name, other) for name in COLOURS for other in COLOURS if name != other]
    texts = [text for name, other in asked for text in (f"a {name} square", "a square", f"a {other} square")]
    return Benchmark(
        card=card,
        images=tuple(
            Image(name, PixelSource(np.full((24, 24, 3), c, np.uint8))) for name, c in COLOURS.items()
        ),
        captions=tuple(Caption(str(number), text) for number, text in enumerate(texts)),
        questions=Order(
            tuple(f"{name}-{other}" for name, other in asked),
            groupings={"colour": tuple(name for name, _ in asked)},
            images=np.array([list(COLOURS).index(name) for name, _ in asked]),
            captions=np.arange(len(texts)).reshape(-1, 3),
        ),
        source="drawn",
    )
