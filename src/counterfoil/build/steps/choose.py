"""`choose`: of several candidates for a row the best one, or none."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.rating import numbers_of, pair_scores, settings_by_scorer
from counterfoil.build.step import Output, StepContext, split_rows, with_column
from counterfoil.build.steps.filter import RowFilter, texts_and_cells, truth_facts
from counterfoil.build.verification import fits, read_choices
from counterfoil.errors import DataError
from counterfoil.inputs.fields import setting

#: Why a candidate goes.
OTHER, UNFIT, LOW, UNJUDGED = (
    "another candidate was chosen",
    "no candidate fits",
    "below the threshold",
    "not judged",
)


@dataclass(frozen=True)
class Choose(RowFilter):
    """Candidates for a row (`of`) become at most one, which is called as the row again.

    The best is the one of the highest score (of equal ones the first), the one that most people accept or
    choose (a table of choices has `of` and `chosen`), or the first. With a threshold, or a precision to
    reach, a row whose best candidate scores lower has none.
    Rows without a column `of` are their own only candidates.
    """

    name: ClassVar[str] = "choose"

    scorer: str | None = setting(None, "A scorer of images with captions that chooses.", model=())
    set: tuple[str, ...] = setting((), "Settings of the scorer, KEY=VALUE.", model=())
    column: str | None = setting(None, "A column of scores that chooses; higher is better.")
    image: str = setting("negative_image", "The column of candidate images.", among=IMAGE_ROLES)
    caption: str = setting(
        "negative_caption", "The captions that the images should show.", among=CAPTION_ROLES
    )
    against: str | None = setting(
        None, "Captions that they should not show: the score of these is subtracted.", among=CAPTION_ROLES
    )

    WAYS: ClassVar[tuple[str, ...]] = ("scorer", "column")

    def __post_init__(self) -> None:
        super().__post_init__()
        settings_by_scorer([self.scorer or ""], self.set)

    @property
    def requires(self) -> Sequence[str]:
        if self.scorer is not None:
            return tuple(name for name in (self.image, self.caption, self.against) if name)
        return (self.column,) if self.column is not None else ()

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """A row per `of` that keeps a candidate, in their order, and the other candidates with the reason.

        Facts hold how many candidates and rows there were, at which place of its row a chosen candidate
        stood, the calibration of the threshold and, of drawn rows, the truth. Raises `DataError` where a
        candidate lacks something and where tables of people do not fit, and what loading a scorer raises.
        """
        ids: list[str] = rows["id"].to_pylist()
        of: list[str] = rows["of"].to_pylist() if "of" in rows.column_names else ids
        if rows.schema.get_field_index("of") >= 0 and rows["of"].null_count:
            orphan = next(name for name, row in zip(ids, of, strict=True) if row is None)
            raise DataError("a candidate of no row", where=f"step {context.step}, row '{orphan}'")
        number: dict[str, int] = {}
        group = np.array([number.setdefault(name, len(number)) for name in of], dtype=np.int64)
        truth = fits(rows, self.image, self.caption, self.against, where=f"step {context.step}")
        scores, why, about = self._scores(rows, ids, of, truth, context)
        # The first row of the highest score of each group, -1 where all are NaN.
        there = np.flatnonzero(~np.isnan(scores))
        order = there[np.lexsort((there, -scores[there], group[there]))]
        best = np.full(len(number), -1, dtype=np.int64)
        best[group[order][::-1]] = order[::-1]
        chosen = best[best >= 0]
        held, known = self.calibrated(
            [ids[at] for at in chosen], scores[chosen], None if truth is None else truth[chosen], context
        )
        reasons = np.full(len(rows), OTHER, dtype=object)
        lost = np.isin(group, np.flatnonzero(best < 0))
        reasons[lost] = why[lost]
        reasons[chosen[~held]] = LOW
        keep = np.zeros(len(rows), dtype=bool)
        keep[chosen[held]] = True
        _, dropped = split_rows(rows, keep, reasons.tolist())
        facts: dict[str, Any] = {
            "by": self.scorer or self.column or self.way or "place",
            "candidates": len(rows),
            "rows": len(number),
            "rows_with_a_choice": len(chosen),
            "places": np.bincount(_places(group)[chosen]).tolist() if len(chosen) else [],
            **about,
            **known,
            **truth_facts(None if truth is None else truth[chosen], held),
        }
        if truth is not None and len(rows):
            facts["truth"]["first_candidates_right"] = float(truth[_places(group) == 0].mean())
        named = rows.filter(pa.array(keep))
        if "of" in rows.column_names:
            names = pa.array([of[at] for at in np.flatnonzero(keep)], pa.string())
            named = with_column(named, "id", names).drop_columns(["of"])
        return Output(named, dropped, facts)

    def _scores(
        self,
        rows: pa.Table,
        ids: list[str],
        of: list[str],
        truth: NDArray[np.bool_] | None,
        context: StepContext,
    ) -> tuple[NDArray[np.float64], NDArray[np.object_], dict[str, Any]]:
        """A score per candidate, NaN where it cannot be chosen, why not, and facts about people."""
        why = np.full(len(rows), UNFIT, dtype=object)
        if self.scorer is not None:
            # The scorer's number for each candidate with its caption, less that with the other one.
            names = [name for name in (self.image, self.caption, self.against) if name]
            cells, *texts = texts_and_cells(rows, names, where=f"step {context.step}")
            scorer = context.scorer(self.scorer, settings_by_scorer([self.scorer], self.set)[self.scorer])
            scores = pair_scores(scorer, cells * len(texts), list(chain(*texts)), context)
            own, *other = scores.reshape(len(texts), len(rows))
            return own - other[0] if other else own, why, {}
        if self.column is not None:
            scores = numbers_of(rows, self.column, where=f"step {context.step}")
            why[np.isnan(scores)] = UNJUDGED
            return scores, why, {}
        if self.people is None and not self.simulate:
            return np.zeros(len(rows)), why, {}
        voted = None if self.people is None else read_choices(Path(self.people), ids, of)
        if voted is not None:
            votes, judged = voted
            why[~judged] = UNJUDGED
            return votes, why, {}
        answers = self.answers(ids, truth, context)
        why[~answers.asked] = UNJUDGED
        share = answers.yes.sum(axis=0) / np.maximum((answers.yes | answers.no).sum(axis=0), 1)
        about = self.people_facts(ids, answers, truth, context)
        return np.where(answers.accepted(self.rule), share, np.nan), why, about


def _places(group: NDArray[np.int64]) -> NDArray[np.int64]:
    """The place of each row in its group, from 0."""
    order = np.argsort(group, kind="stable")
    starts = np.searchsorted(group[order], group[order])
    places = np.empty(len(group), dtype=np.int64)
    places[order] = np.arange(len(group)) - starts
    return places
