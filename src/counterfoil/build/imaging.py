"""Images made for captions: what is asked for, and what came of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

#: Reasons for which a row goes: each says why there is no image.
NO_CAPTION = "no caption to draw"
NOT_READ = "the world cannot read the caption"
NOT_DRAWN = "the world has no such scene"


@dataclass(frozen=True)
class WantedImage:
    """One image that is asked for: the `number`-th for a row, `text` what it shall show, `seed` its chance.

    `source` is the cell of the image that is edited, None where it is drawn from the text alone.
    """

    row: str
    number: int
    text: str
    seed: int
    source: str | None = None


@dataclass(frozen=True)
class MadeImage:
    """What came of a request: the `cell` that names the image, or the `reason` for which there is none.

    `by` says who made it, `facts` are columns of their own, such as whether a filter calls it unsafe.
    """

    cell: str | None
    by: str
    reason: str = ""
    facts: Mapping[str, Any] = field(default_factory=dict)
