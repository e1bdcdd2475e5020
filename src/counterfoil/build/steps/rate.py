"""A step that scores captions: plausibility, grammar, likelihood, or how well they fit an image."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.rating import (
    caption_scores,
    clusters_of,
    learned_scores,
    looks,
    pair_scores,
    score_column,
    settings_by_scorer,
    texts_of,
)
from counterfoil.build.step import BuiltStep, Output, StepContext, setting, with_column
from counterfoil.errors import DataError, InputError
from counterfoil.models.base import abilities, identity_of


@dataclass(frozen=True)
class Rate(BuiltStep):
    """Columns of scores by one scorer, through the session's cache: no caption is scored twice."""

    name: ClassVar[str] = "rate"

    scorer: str = setting(
        "blind:length",
        "The scorer: plausibility:MODEL, text-classifier:MODEL, lm:MODEL, open-clip:MODEL.",
        model=(),
    )
    score: str | None = setting(None, "What the columns of scores are called; by default as the scorer.")
    columns: tuple[str, ...] = setting(
        ("caption", "negative_caption"), "The columns of captions to score.", among=CAPTION_ROLES
    )
    image: str = setting(
        "image", "The column of images that the captions are scored with.", among=IMAGE_ROLES
    )
    set: tuple[str, ...] = setting((), "Settings of the scorer, KEY=VALUE.", model=())

    def __post_init__(self) -> None:
        super().__post_init__()
        settings_by_scorer([self.scorer], self.set)
        if {*self.produces} & {"id", "of", *CAPTION_ROLES, *IMAGE_ROLES}:
            raise InputError("name of the scores", given=self.called, allowed="another than that of a role")

    @property
    def called(self) -> str:
        """The name of the scores: `blind:length` makes `length`, `lm:gpt2` makes `lm`."""
        prefix, _, argument = self.scorer.partition(":")
        return self.score or (argument if prefix == "blind" and argument else prefix).replace("-", "_")

    @property
    def requires(self) -> Sequence[str]:
        return self.columns

    @property
    def produces(self) -> Sequence[str]:
        return tuple(score_column(self.called, column) for column in self.columns)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """The rows with the columns of scores, none dropped.

        A scorer that learns scores `caption` and `negative_caption` of a row by what it learned from others.
        Raises what loading the scorer raises, `InputError` for one that scores no new captions, `DataError`
        where a caption, or an image that it looks at, is not at hand.
        """
        scorer = context.scorer(self.scorer, settings_by_scorer([self.scorer], self.set)[self.scorer])
        if not {"learns", "embeds", "scores_pairs"}.intersection(abilities(scorer)):
            raise InputError(
                "gives no scores of new captions",
                where=self.scorer,
                allowed="scorers of texts, dual encoders, scorers of pairs, blind:...",
            )
        texts = [texts_of(rows, column_name) for column_name in self.columns]
        numbers = self._scored(scorer, texts, rows, context)
        facts: dict[str, Any] = {"scorer": identity_of(scorer).to_json(), "scores": {}}
        for column, values in zip(self.produces, numbers, strict=True):
            rows = with_column(rows, column, pa.array(values, pa.float64()))
            facts["scores"][column] = (
                {"mean": float(values.mean()), "low": float(values.min()), "high": float(values.max())}
                if len(values)
                else {}
            )
        return Output(rows, facts=facts)

    def _scored(
        self, scorer: Any, texts: list[list[str]], rows: pa.Table, context: StepContext
    ) -> list[NDArray[np.float64]]:
        if "learns" in abilities(scorer):
            if self.columns != ("caption", "negative_caption"):
                raise InputError(
                    "learns what tells right captions from wrong ones",
                    where=self.scorer,
                    given=", ".join(self.columns),
                    allowed="caption, negative_caption",
                )
            return list(learned_scores(scorer, texts[0], texts[1], clusters_of(rows)))
        flat = [text for column in texts for text in column]
        if looks(scorer):
            if self.image not in rows.column_names or rows[self.image].null_count:
                raise DataError(
                    f"the scorer looks at images, and rows have no '{self.image}'",
                    where=self.scorer,
                    given=", ".join(rows.column_names),
                    hint="give rows with images, or choose a scorer of texts",
                )
            scores = pair_scores(scorer, rows[self.image].to_pylist() * len(texts), flat, context)
        else:
            scores = caption_scores(scorer, flat, context)
        return list(scores.reshape(len(texts), len(rows)))
