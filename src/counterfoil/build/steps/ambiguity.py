"""`filter`: questions whose wrong answer is right too are dropped, by people's answers or by scorers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import rankdata

from counterfoil.build.filtering import RowFilter, texts_and_cells, truth_facts
from counterfoil.build.rating import numbers_of, pair_scores
from counterfoil.build.scorer_settings import settings_by_scorer
from counterfoil.build.step import Output, Work, setting, split_rows
from counterfoil.build.verification import sound
from counterfoil.errors import InputError

#: Why a row goes.
AMBIGUOUS, LOW, UNJUDGED = "ambiguous by people's answers", "below the threshold", "not judged"


@dataclass(frozen=True)
class FilterAmbiguous(RowFilter):
    """Rows stay whose captions fit their own images only, as people say, or as an ensemble of scorers does.

    People answer of each row whether each caption fits its own image and no other (yes keeps the row). In the
    drawn world people can be simulated who err at a known rate. Scorers give each row its margin: the own
    caption's score less the other's, for the image and, where there is one, the negative image, the lower of
    the two. Of several scorers the mean of the margins' ranks counts, as shares in [0, 1].
    """

    name: ClassVar[str] = "filter"

    scorers: tuple[str, ...] = setting((), "Scorers of images with captions.", model=())
    set: tuple[str, ...] = setting(
        (), "Settings of the scorers: KEY=VALUE of all, KIND.KEY=VALUE of one kind (open-clip).", model=()
    )
    column: str | None = setting(None, "A column of scores; higher where a row is likelier sound.")

    WAYS: ClassVar[tuple[str, ...]] = ("scorers", "column")

    def __post_init__(self) -> None:
        super().__post_init__()
        settings_by_scorer(self.scorers, self.set)

    @property
    def reads(self) -> Sequence[str]:
        if self.scorers:
            return ("image", "caption", "negative_caption")
        return (self.column,) if self.column is not None else ()

    def run(self, rows: pa.Table, work: Work) -> Output:
        """The rows that stay, and the others with the reason.

        Facts hold, of people: their number and answers, Fleiss' kappa, the estimated label noise of what is
        kept with its interval, and with verified rows the noise among those; of scorers the calibration; of
        drawn rows the truth. Raises `DataError` where rows cannot be asked about, and `InputError` where
        nothing says what to filter by.
        """
        truth = sound(rows, where=f"step {work.step}")
        if self.people is not None or self.simulate:
            return self._by_people(rows, truth, work)
        if not self.scorers and self.column is None:
            raise InputError(
                "nothing to filter by",
                where=f"step {work.step}",
                allowed=" or ".join(self.ways),
            )
        scores = self._scores(rows, work)
        held, known = self.calibrated(rows["id"].to_pylist(), scores, truth, work)
        kept, dropped = split_rows(rows, held & ~np.isnan(scores), LOW)
        facts: dict[str, Any] = {"by": list(self.scorers) or self.column, "rows": len(rows)}
        facts |= {} if known is None else {"calibration": known.to_json()}
        return Output(kept, dropped, {**facts, **truth_facts(truth, held)})

    def _by_people(self, rows: pa.Table, truth: NDArray[np.bool_] | None, work: Work) -> Output:
        ids = rows["id"].to_pylist()
        answers = self.answers(ids, truth, work)
        kept = answers.accepted(self.rule)
        why = np.where(answers.asked, AMBIGUOUS, UNJUDGED).tolist()
        facts = {
            "by": "people" if self.people is not None else "simulated people",
            "rows": len(rows),
            **self.people_facts(ids, answers, truth, work),
            **truth_facts(truth, kept),
        }
        return Output(*split_rows(rows, kept, why), facts)

    def _scores(self, rows: pa.Table, work: Work) -> NDArray[np.float64]:
        if self.column is not None:
            return numbers_of(rows, self.column, where=f"step {work.step}")
        both = "negative_image" in rows.column_names
        names = ["image", "caption", "negative_caption", *(["negative_image"] if both else [])]
        image, own, other, *rest = texts_and_cells(rows, names, where=f"step {work.step}")
        margins = []
        for name, settings in settings_by_scorer(self.scorers, self.set).items():
            scorer = work.scorer(name, settings)
            cells = [*image, *image, *rest[0], *rest[0]] if both else [*image, *image]
            texts = [*own, *other, *other, *own] if both else [*own, *other]
            found = pair_scores(scorer, cells, texts, work).reshape(-1, 2, len(rows))
            margins.append((found[:, 0] - found[:, 1]).min(axis=0))
        if len(margins) == 1 or not len(rows):
            return margins[0]
        return np.mean([rankdata(each) / len(rows) for each in margins], axis=0)
