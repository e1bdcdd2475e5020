"""Training data: rows of images and captions that belong together, and of ones that do not.

A column is a role. Every row has an `image` and a `caption` that belong together. What else there is decides
what can be learnt: `negative_caption` (close to the caption, false of the image), `negative_image` (what the
negative caption is true of), `generated_image` and `generated_caption` (further positives, made by machines).
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from jaxtyping import Int
from numpy import ndarray

from counterfoil.benchmarks.records import Caption, Image
from counterfoil.benchmarks.tables import shown
from counterfoil.errors import DataError, InputError

#: Roles that images play, and captions.
IMAGE_ROLES = ("image", "negative_image", "generated_image")
CAPTION_ROLES = ("caption", "negative_caption", "generated_caption")

#: What readers do with an image whose file is not there: raise, or keep it, to raise when it is decoded; of
#: images that will never be opened ("unread") none need be there, nor any folder of them.
Missing = Literal["refuse", "keep", "unread"]


@dataclass(frozen=True, eq=False)
class TrainingSet:
    """`n` rows over images and captions."""

    name: str
    images: Sequence[Image]
    captions: Sequence[Caption]
    rows: Mapping[str, Int[ndarray, "n"]]
    groupings: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    source: str = ""

    def __post_init__(self) -> None:
        where = self.source or self.name
        lacking = [role for role in ("image", "caption") if role not in self.rows]
        if lacking or not self.rows.keys() <= {*IMAGE_ROLES, *CAPTION_ROLES}:
            what = f"no column '{lacking[0]}'" if lacking else "unknown column"
            roles = (*IMAGE_ROLES, *CAPTION_ROLES)
            raise DataError(what, where=where, given=", ".join(self.rows), allowed=roles)
        for role, positions in self.rows.items():
            items = len(self.images if role in IMAGE_ROLES else self.captions)
            if len(positions) != len(self):
                what, allowed = f"column '{role}' has the wrong length", f"{len(self)}, one per row"
                raise DataError(what, where=where, given=len(positions), allowed=allowed)
            if len(positions) and not 0 <= positions.min() <= positions.max() < items:
                what = f"column '{role}' points to an item that is not there"
                given = f"{positions.min()} to {positions.max()}"
                raise DataError(what, where=where, given=given, allowed=f"0 to {items - 1}")

    def __len__(self) -> int:
        return len(self.rows["image"])

    def select(self, rows: Int[ndarray, "m"]) -> "TrainingSet":
        """Those rows, in that order; images and captions stay as they are."""
        return replace(
            self,
            rows={role: positions[rows] for role, positions in self.rows.items()},
            groupings={name: tuple(labels[i] for i in rows) for name, labels in self.groupings.items()},
        )

    def items(self, role: str, rows: Int[ndarray, "m"]) -> Sequence[Image] | Sequence[Caption]:
        """What plays `role` in those rows."""
        items: Sequence[Image] | Sequence[Caption] = self.images if role in IMAGE_ROLES else self.captions
        return [items[i] for i in self.need(role)[rows]]

    def need(self, role: str) -> Int[ndarray, "n"]:
        """The column of `role`; raises `InputError` where there is none."""
        if role not in self.rows:
            what = f"the training data have no column '{role}'"
            hint = "choose a recipe that needs none, or data that have it"
            raise InputError(what, where=self.source or self.name, given=", ".join(self.rows), hint=hint)
        return self.rows[role]


#: Columns that are kept as groupings of the rows, where they are there.
LABELS = ("subset", "type", "subtype", "faithful")


def of_split(files: Sequence[Path], split: str | None, *, where: Path) -> list[Path]:
    """The files of one split: those whose names begin with it, up to a dash and a number, or the full stop.

    None is "train" where there are several splits, and all files where there is one or none of that name.
    """
    names = [re.sub(r"[-_.]?\d[-\d]*(of[-_]\d+)?$", "", file.name.split(".")[0]) for file in files]
    if split is None:
        split = "train" if "train" in names else None
    if split is None:
        return list(files)
    # COCO and the hub do not agree on what the held-out part is called.
    wanted = {split, *({"val", "valid", "validation"} if split in ("val", "validation") else ())}
    chosen_files = [file for file, name in zip(files, names, strict=True) if name in wanted]
    if not chosen_files:
        what = "no file of this split"
        raise DataError(what, where=where, given=split, allowed=dict.fromkeys(n for n in names if n))
    return chosen_files


def label(value: object, where: str) -> str:
    """A cell as a label of a row, "yes" and "no" for true and false; raises `DataError` for other things."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if not isinstance(value, str | int):
        raise DataError("not a label", where=where, given=shown(value))
    return str(value).strip()
