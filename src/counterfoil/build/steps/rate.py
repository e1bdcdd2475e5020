"""Steps that score captions (plausibility, grammar, fit to an image) and keep the best rows by them."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from math import ceil
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.rating import clusters_of, learned_scores, looks, numbers_of, pair_scores
from counterfoil.build.step import (
    BuiltStep,
    Output,
    StepContext,
    codes_of,
    filled,
    order_by,
    ranks,
    split_rows,
    with_column,
)
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import setting
from counterfoil.models.base import abilities, identity_of


@dataclass(frozen=True)
class Rate(BuiltStep):
    """Add columns of scores by one model; the cache scores no caption twice."""

    name: ClassVar[str] = "rate"

    model: str = setting(
        "blind:length",
        "The model: plausibility:MODEL, text-classifier:MODEL, lm:MODEL, open-clip:MODEL.",
        model=(),
    )
    score: str | None = setting(None, "Name of the score columns; default: the model's.")
    columns: tuple[str, ...] = setting(
        ("caption", "negative_caption"),
        "Columns of captions to score.",
        among=CAPTION_ROLES,
        least=1,
        column=True,
    )
    image: str = setting("image", "Column of images that the captions are scored with.", among=IMAGE_ROLES)
    set: tuple[str, ...] = setting((), "Settings of the model, KEY=VALUE.", model=())

    def __post_init__(self) -> None:
        super().__post_init__()
        if {*self.produces} & {"id", "of", *CAPTION_ROLES, *IMAGE_ROLES}:
            raise InputError("name of the scores", given=self.called, allowed="another than that of a role")

    @property
    def called(self) -> str:
        """The name of the scores: `blind:length` makes `length`, `lm:gpt2` makes `lm`."""
        prefix, _, argument = self.model.partition(":")
        return self.score or (argument if prefix == "blind" and argument else prefix).replace("-", "_")

    @property
    def produces(self) -> Sequence[str]:
        return tuple(column.removesuffix("caption") + self.called for column in self.columns)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        model = context.model(self.model, self.model_settings()[self.model])
        can = abilities(model)
        if not {"learns", "embeds", "scores_pairs"}.intersection(can):
            allowed = "models of texts, dual encoders, models of pairs, blind:..."
            raise InputError("gives no scores of new captions", where=self.model, allowed=allowed)
        texts = filled(rows, self.columns, where=f"step {context.step}")
        if "learns" in can and self.columns != ("caption", "negative_caption"):
            what, given = "learns what tells right captions from wrong ones", ", ".join(self.columns)
            raise InputError(what, where=self.model, given=given, allowed="caption, negative_caption")
        if looks(model) and (self.image not in rows.column_names or rows[self.image].null_count):
            what = f"the model looks at images, and rows have no '{self.image}'"
            given, hint = ", ".join(rows.column_names), "give rows with images, or choose a model of texts"
            raise DataError(what, where=self.model, given=given, hint=hint)
        if "learns" in can:
            numbers = list(learned_scores(model, texts[0], texts[1], clusters_of(rows)))
        else:
            images = rows[self.image].to_pylist() * len(texts) if looks(model) else None
            numbers = np.split(pair_scores(model, images, list(chain(*texts)), context), len(texts))
        facts: dict[str, Any] = {"model": identity_of(model).to_json(), "scores": {}}
        for column, values in zip(self.produces, numbers, strict=True):
            rows = with_column(rows, column, pa.array(values, pa.float64()))
            named = (("mean", values.mean), ("low", values.min), ("high", values.max))
            facts["scores"][column] = {name: float(of()) for name, of in named} if len(values) else {}
        return Output(rows, facts=facts)


NO_SCORE, BELOW = "no score", "below the best of its category"


@dataclass(frozen=True)
class Select(BuiltStep):
    """Select in each category the share of rows with the highest sum of scores (TROHN-Img).

    Source: Miranda et al., BiVLC, 2024, section 5.2, step 1 (the top 35 % by Vera's and CoLA's scores).
    """

    name: ClassVar[str] = "select"
    opens: ClassVar[bool] = False

    by: tuple[str, ...] = setting(
        ("negative_plausibility",), "Columns of scores to add up.", least=1, column=True
    )
    share: float = setting(0.35, "Share of rows to keep in each category.", above=0, high=1)
    category: str | None = setting("subset", "Column of categories; none: all rows are one.", column=True)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """The share of the rows of each category, rounded up; of equal sums those of lesser ids."""
        total = np.zeros(len(rows))
        for column in self.by:
            total = total + numbers_of(rows, column, where=self.name)
        labels = rows[self.category] if self.category else pa.array([""] * len(rows), pa.string())
        group, categories = codes_of(pc.cast(labels, pa.string()))
        names = [name or "" for name in categories]
        there = ~np.isnan(total)
        sums = np.where(there, -total, np.inf)
        order = order_by(group=group, sum=sums, id=rows["id"])
        counts = np.bincount(group[there], minlength=len(names))
        wanted = np.array([ceil(self.share * count - 1e-9) for count in counts.tolist()], dtype=np.int64)
        selected = ranks(group, order) < wanted[group]
        facts: dict[str, Any] = {}
        for i, name in enumerate(names):
            last = float(total[selected & (group == i)].min()) if wanted[i] else None
            facts[name] = {"rows": int((group == i).sum()), "kept": int(wanted[i]), "last": last}
        reasons = np.where(there, BELOW, NO_SCORE).tolist()
        return Output(*split_rows(rows, selected, reasons), {"categories": facts})
