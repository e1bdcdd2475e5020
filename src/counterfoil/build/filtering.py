"""Filters of rows by scores or by people, with the settings that the steps that filter share."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.build.calibration import Calibration, Prices, Verified, calibrate, share
from counterfoil.build.step import Work
from counterfoil.build.verification import (
    Answers,
    Rule,
    check_rule,
    label_noise,
    read_answers,
    read_verified,
)
from counterfoil.errors import DataError, InputError
from counterfoil.metrics.agreement import fleiss_kappa
from counterfoil.world.people import Annotator, annotate


@dataclass(frozen=True, kw_only=True)
class RowFilter:
    """Rows stay that people accept, or whose score is at or above a threshold.

    The threshold is given, or chosen so that it reaches a precision. Precision, recall and cost of the filter
    are measured on verified rows: those of a table, or in the drawn world a random sample whose truth is
    looked up. People's answers are those of a table, or in the drawn world of simulated people who err at a
    known rate.
    """

    people: str | None = field(
        default=None,
        metadata={"help": "A table of people's answers: id, answer (yes or no), annotator.", "file": True},
    )
    simulate: int = field(default=0, metadata={"help": "In the drawn world: so many simulated people."})
    accuracy: float = field(default=0.95, metadata={"help": "Of simulated people: how often they are right."})
    bias: float = field(default=0.0, metadata={"help": "Of simulated people: how much readier for yes."})
    rule: Rule = field(default="majority", metadata={"help": "Of people: majority, any, all."})

    threshold: float | None = field(default=None, metadata={"help": "Keep what scores at or above it."})
    target_precision: float | None = field(
        default=None,
        metadata={"help": "Choose the lowest threshold at which so many of the kept rows are right."},
    )
    confidence: float = field(
        default=0.95, metadata={"help": "How sure it is that the chosen threshold reaches the precision."}
    )
    verified: str | None = field(
        default=None,
        metadata={"help": "A table of verified rows: id, right, and optionally weight.", "file": True},
    )
    verify: int = field(
        default=0, metadata={"help": "In the drawn world: so many random rows are verified by their scenes."}
    )
    making: float = field(default=0.0, metadata={"help": "The price of making one row, for the costs."})
    verifying: float = field(default=0.0, metadata={"help": "The price of verifying one row, for the costs."})

    #: The other ways in which a step filters, as settings.
    WAYS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        ways = [name for name in ("people", "simulate", *self.WAYS) if getattr(self, name)]
        if len(ways) > 1:
            raise InputError(
                "several ways at once", given=", ".join(ways), allowed=f"one of {', '.join(self.ways)}"
            )
        if ways[:1] in (["people"], ["simulate"], []) and (self.threshold, self.target_precision) != (
            None,
            None,
        ):
            raise InputError(
                "a threshold is one of scores",
                given=f"with {ways[0]}" if ways else "no scores",
                allowed=f"with {' or '.join(self.WAYS)}",
            )
        check_rule(self.rule)
        if self.simulate < 0:
            raise InputError("simulate", given=self.simulate, allowed="0 or more")
        # Raises where the chances would not be chances.
        Annotator("simulated", self.accuracy, self.bias)
        if self.threshold is not None and self.target_precision is not None:
            raise InputError("threshold or precision", given="both", allowed="one of them")
        for name in ("target_precision", "confidence"):
            value = getattr(self, name)
            if value is not None and not 0 < value < 1:
                raise InputError(name, given=value, allowed="between 0 and 1")
        if self.verify < 0:
            raise InputError("verify", given=self.verify, allowed="0 or more")
        if self.verify and self.verified is not None:
            raise InputError("verified or verify", given="both", allowed="one of them")
        if self.target_precision is not None and not self.verify and self.verified is None:
            raise InputError(
                "a precision to reach needs verified rows",
                given=self.target_precision,
                allowed="a table with --verified, or in the drawn world --verify N",
            )
        for name in ("making", "verifying"):
            if not 0 <= getattr(self, name) < np.inf:
                raise InputError(f"price, {name}", given=getattr(self, name), allowed="0 or more")

    @property
    def ways(self) -> tuple[str, ...]:
        """The settings one of which says by what rows are filtered."""
        return ("people", "simulate", *self.WAYS)

    @property
    def way(self) -> str | None:
        """The one of `ways` that was set, None where none was."""
        return next((name for name in self.ways if getattr(self, name)), None)

    def answers(self, ids: Sequence[str], truth: NDArray[np.bool_] | None, work: Work) -> Answers:
        """What people answered of each row: those of the table, or simulated ones.

        Raises `DataError` where the table cannot be used, and for simulated people where rows are not drawn.
        """
        if self.people is not None:
            found, stray = read_answers(Path(self.people), ids)
            if stray:
                work.note(f"{self.people}: {stray:,} answers are about rows that are not here")
            return found
        if truth is None:
            raise DataError(
                "simulated people need drawn rows, whose truth is known",
                where=f"step {work.step}",
                hint="give a table of answers with --people",
            )
        crowd = [Annotator(f"person {at + 1}", self.accuracy, self.bias) for at in range(self.simulate)]
        said = annotate(truth, crowd, work.rng("people")).yes
        return Answers(tuple(each.name for each in crowd), said, ~said)

    def people_facts(
        self, ids: Sequence[str], answers: Answers, truth: NDArray[np.bool_] | None, work: Work
    ) -> dict[str, Any]:
        """How many answered, how they agree, and the noise of what they let in, estimated and verified.

        Of drawn rows also the true noise, and whether the interval of the estimate holds it.
        """
        kept = answers.accepted(self.rule)
        noise = label_noise(answers, self.rule, work.rng("label noise"))
        if noise is None:
            work.note("fewer than three people answered: their errors cannot be told from their answers")
        votes = np.stack([answers.yes.sum(axis=0), answers.no.sum(axis=0)], axis=1)
        kappa = fleiss_kappa(votes)
        facts: dict[str, Any] = {
            "people": len(answers.people),
            "answers": int(votes.sum()),
            "cost": int(votes.sum()) * self.verifying,
            "fleiss_kappa": None if np.isnan(kappa) else kappa,
            "estimated": None if noise is None else noise.to_json(),
        }
        sample = self._sample(ids, kept.astype(np.float64), truth, work)
        if sample is not None:
            inside = sample.scores > 0
            facts["verified"] = {
                "rows": len(sample),
                "label_noise": share(~sample.right, inside, sample.weight).to_json(),
                "recall": share(inside, sample.right, sample.weight).to_json(),
            }
        if truth is not None and kept.any() and noise is not None:
            wrong = float((~truth[kept]).mean())
            covered = bool(noise.share.low <= wrong <= noise.share.high)
            facts["true"] = {"label_noise": wrong, "covered": covered}
        return facts

    def calibrated(
        self,
        ids: Sequence[str],
        scores: NDArray[np.float64],
        truth: NDArray[np.bool_] | None,
        work: Work,
    ) -> tuple[NDArray[np.bool_], Calibration | None]:
        """Which rows stay, and what is known of the filter; all and None where nothing was asked of it.

        `truth` is that of drawn rows. A threshold without verified rows is applied and not measured. Raises
        `DataError` where truth is asked of rows that are not drawn and where verified rows are not here.
        """
        sample = self._sample(ids, scores, truth, work)
        if self.threshold is None and self.target_precision is None and sample is None:
            return np.ones(len(scores), dtype=bool), None
        if sample is None:
            assert self.threshold is not None
            return scores >= self.threshold, None
        # Without a threshold all rows stay; the curves say what one would do.
        given = None if self.target_precision is not None else self.threshold
        found = calibrate(
            sample,
            work.rng("halves"),
            threshold=-np.inf if given is None and self.target_precision is None else given,
            precision=self.target_precision,
            confidence=self.confidence,
            prices=Prices(self.making, self.verifying),
        )
        if found.threshold is None:
            work.note(
                f"no threshold reaches a precision of {self.target_precision:g} with "
                f"{100 * self.confidence:g} % confidence on {found.chosen_on:,} verified rows: none is kept"
            )
            return np.zeros(len(scores), dtype=bool), found
        return scores >= found.threshold, found

    def _sample(
        self,
        ids: Sequence[str],
        scores: NDArray[np.float64],
        truth: NDArray[np.bool_] | None,
        work: Work,
    ) -> Verified | None:
        if self.verified is not None:
            at, right, weights = read_verified(Path(self.verified), ids)
            return Verified(scores[at], right, weights)
        if not self.verify:
            return None
        if truth is None:
            raise DataError(
                "only drawn rows can be verified by their scenes",
                where=f"step {work.step}",
                hint="verify some rows by hand and name the table with --verified",
            )
        drawn = np.sort(work.rng("verified").permutation(len(scores))[: self.verify])
        return Verified(scores[drawn], truth[drawn]) if len(drawn) else None


def truth_facts(truth: NDArray[np.bool_] | None, kept: NDArray[np.bool_]) -> dict[str, Any]:
    """What a filter really did to drawn rows: shares right before and after, and of the right ones kept.

    >>> truth_facts(np.array([True, False, True, False]), np.array([True, True, False, False]))
    {'truth': {'right_before': 0.5, 'precision': 0.5, 'recall': 0.5, 'kept': 0.5}}
    """
    if truth is None or not len(truth):
        return {}
    return {
        "truth": {
            "right_before": float(truth.mean()),
            "precision": float(truth[kept].mean()) if kept.any() else None,
            "recall": float(kept[truth].mean()) if truth.any() else None,
            "kept": float(kept.mean()),
        }
    }


def texts_and_cells(rows: pa.Table, names: Sequence[str], *, where: object) -> list[list[str]]:
    """Columns of texts or of names of images without empty cells; raises `DataError` naming a row."""
    found = []
    for name in names:
        cells = rows[name].to_pylist()
        at = next((row for row, cell in enumerate(cells) if not cell), None)
        if at is not None:
            raise DataError(f"a row without {name}", where=f"{where}, row '{rows['id'][at].as_py()}'")
        found.append(cells)
    return found
