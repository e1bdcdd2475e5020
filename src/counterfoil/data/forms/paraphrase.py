"""Paraphrases: two captions that mean the same and one that does not, compared with each other."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from counterfoil.data.forms.base import Ids, Listed, Mask, check_shape, first_use
from counterfoil.data.forms.tables import POSITION, QUESTIONS, cells, positions, questions_schema
from counterfoil.errors import DataError
from counterfoil.inputs.columns import Schema

#: The captions of each score: the paraphrases, then each of them with the third caption.
_SIDES = np.array([[0, 0, 1], [1, 2, 2]])


@dataclass(frozen=True, eq=False)
class Paraphrase(Listed):
    """Three captions, the first two of one meaning: are these two more alike than any other two?

    `captions` is (n, 3) positions. `images` is (n,): the image that the captions were written of, which no
    scorer looks at; questions of one image depend on each other, and pages show it.
    """

    captions: Ids = field(kw_only=True)
    images: Ids = field(kw_only=True)

    form: ClassVar[str] = "paraphrase"
    given: ClassVar[tuple[str, ...]] = ("choice_scores", "choice_outcome")
    given_as: ClassVar[str] = (
        "similarities: columns s0 (of both paraphrases), s1 and s2 (of each with the other caption), or "
        "right and wrong per question"
    )
    schemas: ClassVar[Mapping[str, Schema]] = {
        QUESTIONS: questions_schema(
            {"image": POSITION, **{f"caption_{slot}": POSITION for slot in (0, 1, 2)}}
        )
    }

    def __post_init__(self) -> None:
        super().__post_init__()
        check_shape("captions", self.captions, (len(self), 3))
        check_shape("images", self.images, (len(self),))

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores, (n, 3): of captions 0 and 1, 0 and 2, 1 and 2."""
        return (len(self), 3)

    @property
    def true_captions(self) -> int:
        """The paraphrases."""
        return 2

    def pairs(self) -> tuple[Ids, Ids]:
        """None: no caption is compared with an image."""
        none = np.empty(0, dtype=np.int64)
        return none, none

    def text_pairs(self) -> tuple[Ids, Ids]:
        """The captions of each score, both (n, 3)."""
        first, second = self.captions[:, _SIDES[0]], self.captions[:, _SIDES[1]]
        return first, second

    def slots(self) -> tuple[Ids, Ids]:
        """The three captions and the image."""
        return self.captions, self.images[:, None]

    def about(self) -> tuple[Ids, Ids]:
        """The image and the three captions."""
        return self.images[:, None], self.captions

    def used(self) -> tuple[Ids, Ids]:
        """The captions; no image."""
        return first_use(self.captions), np.empty(0, dtype=np.int64)

    def mentioned(self) -> tuple[Ids, Ids]:
        return np.unique(self.captions), np.unique(self.images)

    def at_hand(self, texts: Mask, sources: Mask, *, where: str) -> Mask:
        return np.asarray(texts[self.captions].all(axis=1))

    def select(self, rows: Ids) -> "Paraphrase":
        """The chosen questions."""
        return replace(self, **self.chosen(rows), captions=self.captions[rows], images=self.images[rows])

    def renumber(self, caption_of: Ids, image_of: Ids) -> "Paraphrase":
        """The same questions where caption c and image i are now at `caption_of[c]` and `image_of[i]`."""
        return replace(self, captions=caption_of[self.captions], images=image_of[self.images])

    def digest_facts(self, texts: Sequence[object], names: Sequence[object]) -> dict[str, object]:
        return {
            "captions": [texts[i] for i in self.captions.reshape(-1).tolist()],
            "images": [names[i] for i in self.images.tolist()],
        }

    def training_rows(self, *, where: str) -> tuple[Ids | None, dict[str, Ids]]:
        raise DataError(
            "captions that are compared with each other are no training set",
            where=where,
            given=f"a benchmark of form '{self.form}'",
            allowed="quads, choices or a gallery",
        )

    def columns(self) -> tuple[dict[str, pa.Array], dict[str, Any], dict[str, pa.Table]]:
        return {"image": pa.array(self.images)} | cells("caption_", self.captions), {}, {}

    @classmethod
    def fields(cls, tables: Mapping[str, pa.Table], facts: Mapping[str, Any]) -> dict[str, Any]:
        table = tables[QUESTIONS]
        return {"captions": positions(table, "caption_"), "images": table.column("image").to_numpy()}
