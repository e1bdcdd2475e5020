"""Scores of rows' captions by any model, and how well a blind model tells right captions from wrong ones.

Scores of `caption` are in column NAME, those of `negative_caption` in `negative_NAME`; a row's gap is the
difference.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from jaxtyping import Float, Int
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.benchmarks.contrasts import Contrasts
from counterfoil.benchmarks.records import Caption, Image, caption_key, distinct, image_key
from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.step import StepContext, codes_of
from counterfoil.engine.session import score_items
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.result import Estimate
from counterfoil.models.base import abilities
from counterfoil.stats.intervals import spread

NEGATIVE = "negative_"
#: Stands for all images where a model looks at none.
_NO_IMAGE = Image("no image")


def looks(model: Any) -> bool:
    return "learns" not in abilities(model) and "images" in getattr(model, "needs", ("images", "captions"))


def clusters_of(rows: pa.Table) -> NDArray[np.int64]:
    """A number per row, equal for rows of one image, or of one caption where there is no column of images."""
    column = "image" if "image" in rows.column_names and not rows["image"].null_count else "caption"
    codes, values = codes_of(rows[column])
    key = image_key if column == "image" else caption_key
    _, same = distinct(None if name is None else key(name) for name in values)
    return same[codes]


def pair_scores(
    model: Any, images: Sequence[str] | None, texts: Sequence[str], context: StepContext
) -> Float[ndarray, "rows"]:
    """One score per image (a cell of the rows) and text, each distinct pair once and through the cache.

    Without `images` the model opens none.
    """
    cells, positions = distinct(["none"] * len(texts) if images is None else images)
    shown = (_NO_IMAGE,) if images is None else tuple(context.image(cell) for cell in cells)
    keys = ("none",) if images is None else context.session.keys(shown)
    captions = tuple(Caption(str(i), text) for i, text in enumerate(texts))
    pairs = np.arange(len(captions)), positions
    return score_items(model, shown, keys, captions, pairs, session=context.session)


def learned_scores(
    model: Any, right: Sequence[str], wrong: Sequence[str], clusters: Int[ndarray, "rows"]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Scores of right and wrong captions by a model that learned from other clusters and captions."""
    n = len(right)
    pairs = Contrasts(
        [text for pair in zip(right, wrong, strict=True) for text in pair],
        np.repeat(np.arange(n), 2),
        np.tile([1.0, 0.0], n),
        np.unique(clusters, return_inverse=True)[1].reshape(-1),
    )
    scores = model.answer(pairs)
    return scores[::2], scores[1::2]


def accuracies(gaps: Float[ndarray, "*rows"]) -> Float[ndarray, "*rows"]:
    """1 where a gap is above 0, 1/2 where it is 0, else 0."""
    return (1 + np.sign(np.asarray(gaps, dtype=np.float64))) / 2


@dataclass(frozen=True, eq=False)
class BlindGaps:
    """The gaps of rows by one blind model: its score of the right caption less that of the wrong one."""

    model: Any
    name: str
    right: Sequence[str]
    wrong: Sequence[str]
    clusters: NDArray[np.int64]
    context: StepContext

    def __post_init__(self) -> None:
        if looks(self.model) or not {"learns", "scores_pairs"}.intersection(abilities(self.model)):
            allowed = "blind:..., lm:..., text-classifier:..., plausibility:..."
            raise InputError("is no blind model of captions", where=self.name, allowed=allowed)

    def of(self, rows: Int[ndarray, "rows"]) -> Float[ndarray, "rows"]:
        if "learns" not in abilities(self.model):
            return self._fixed[rows]
        right, wrong = ([captions[row] for row in rows.tolist()] for captions in (self.right, self.wrong))
        scores = learned_scores(self.model, right, wrong, self.clusters[rows])
        return scores[0] - scores[1]

    @cached_property
    def _fixed(self) -> NDArray[np.float64]:
        scores = pair_scores(self.model, None, [*self.right, *self.wrong], self.context)
        n = len(self.right)
        return np.asarray(scores[:n] - scores[n:])


def blind_accuracy(gaps: Float[ndarray, "rows"], clusters: Int[ndarray, "rows"]) -> Estimate:
    """How often gaps prefer the right caption, ties one half, with its 95 % interval over `clusters`."""
    if not len(gaps):
        raise InputError("no rows to measure a blind model on")
    estimate = spread(accuracies(gaps)[:, None], clusters)
    (low,), (high,), (effective,) = (*estimate.wilson(), estimate.effective())
    return Estimate(float(estimate.value[0]), float(low), float(high), len(gaps), 0.5, float(effective))


def accuracy_facts(before: Estimate, after: Estimate) -> dict[str, Any]:
    """Both estimates as plain values, and whether the interval of what is left contains one half."""
    return {"before": asdict(before), "after": asdict(after), "chance_after": after.low <= 0.5 <= after.high}


def scores_in(rows: pa.Table) -> list[str]:
    """The scores in a table: names of columns of numbers beside which those of the wrong captions stand."""
    roles = {*CAPTION_ROLES, *IMAGE_ROLES, "scene"}
    scores = [field.name for field in rows.schema if field.name not in roles and _numeric(field.type)]
    return [name for name in scores if NEGATIVE + name in scores]


def _numeric(kind: pa.DataType) -> bool:
    return pa.types.is_floating(kind) or pa.types.is_integer(kind)


def numbers_of(rows: pa.Table, column: str, *, where: object) -> NDArray[np.float64]:
    """A column of numbers, NaN where a row has none or one that is not finite."""
    if column not in rows.column_names:
        given, hint = ", ".join(rows.column_names), "put a step that makes it before, such as rate"
        raise DataError(f"no column '{column}'", where=where, given=given, hint=hint)
    kind = rows.schema.field(column).type
    if not _numeric(kind):
        raise DataError(f"column '{column}' holds no numbers", where=where, given=str(kind))
    numbers = pc.cast(rows[column], pa.float64()).to_numpy(zero_copy_only=False).astype(np.float64)
    return np.where(np.isfinite(numbers), numbers, np.nan)
