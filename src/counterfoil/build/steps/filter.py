"""`filter` drops questions whose wrong answer is right too; `choose` keeps the best of several candidates."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray
from scipy.stats import rankdata

from counterfoil.benchmarks.training_rows import CAPTION_ROLES, IMAGE_ROLES
from counterfoil.build.rating import numbers_of, pair_scores
from counterfoil.build.step import (
    BuiltStep,
    Output,
    StepContext,
    codes_of,
    filled,
    ranks,
    split_rows,
    with_column,
)
from counterfoil.build.verification import (
    Answers,
    Rule,
    Verified,
    calibrate,
    fits,
    label_noise,
    read_answers,
    read_choices,
    read_verified,
    share,
    sound,
)
from counterfoil.errors import DataError, InputError
from counterfoil.inputs.fields import setting
from counterfoil.metrics.agreement import fleiss_kappa
from counterfoil.world.people import Annotator, annotate


@dataclass(frozen=True, kw_only=True)
class RowFilter(BuiltStep):
    """Rows stay that people accept, or whose score reaches a threshold, given or chosen for a precision.

    Precision and recall are measured on verified rows: those of a table or, in the drawn world, a random
    sample.
    """

    people: str | None = setting(
        None, "Table of people's answers: id, answer (yes or no), annotator.", file=True
    )
    simulate: int = setting(0, "Drawn world: number of simulated people.", low=0)
    accuracy: float = setting(0.95, "Simulated people: accuracy.")
    bias: float = setting(0.0, "Simulated people: bias towards yes.")
    rule: Rule = setting("majority", "People's rule: majority, any or all.")

    threshold: float | None = setting(None, "Keep scores at or above this.")
    target_precision: float | None = setting(
        None, "Choose the lowest threshold at which this share of kept rows is right.", above=0, below=1
    )
    confidence: float = setting(
        0.95, "Confidence that the chosen threshold reaches the precision.", above=0, below=1
    )
    verified: str | None = setting(
        None, "Table of verified rows: id, right, and optionally weight.", file=True
    )
    verify: int = setting(0, "Drawn world: verify N random rows by their scenes.", low=0)

    #: The other ways in which a step filters, as settings.
    WAYS: ClassVar[tuple[str, ...]] = ()

    def __post_init__(self) -> None:
        super().__post_init__()
        ways, names = self.ways, ("people", "simulate", *self.WAYS)
        bounded = self.threshold is not None or self.target_precision is not None
        if len(ways) > 1:
            allowed = f"one of {', '.join(names)}"
            raise InputError("several ways at once", given=", ".join(ways), allowed=allowed)
        if bounded and not {*ways} & {*self.WAYS}:
            given = f"with {ways[0]}" if ways else "no scores"
            allowed = f"with {' or '.join(self.WAYS)}"
            raise InputError("a threshold is one of scores", given=given, allowed=allowed)
        # Raises where the chances would not be chances.
        Annotator("simulated", self.accuracy, self.bias)
        if self.threshold is not None and self.target_precision is not None:
            raise InputError("threshold or precision", given="both", allowed="one of them")
        if self.verify and self.verified is not None:
            raise InputError("verified or verify", given="both", allowed="one of them")
        if self.target_precision is not None and not self.verify and self.verified is None:
            what = "a precision to reach needs verified rows"
            allowed = "a table with --verified, or in the drawn world --verify N"
            raise InputError(what, given=self.target_precision, allowed=allowed)

    @property
    def ways(self) -> list[str]:
        """The settings that are given of those by which rows can be filtered."""
        return [name for name in ("people", "simulate", *self.WAYS) if getattr(self, name)]

    def answers(self, ids: Sequence[str], truth: NDArray[np.bool_] | None, context: StepContext) -> Answers:
        """What people answered of each row: those of the table, or simulated ones of drawn rows."""
        if self.people is not None:
            from_table, stray = read_answers(Path(self.people), ids)
            if stray:
                context.note(f"{self.people}: {stray:,} answers are about rows that are not here")
            return from_table
        if truth is None:
            where, hint = f"step {context.step}", "give a table of answers with --people"
            raise DataError("simulated people need drawn rows, whose truth is known", where=where, hint=hint)
        crowd = [Annotator(f"person {i + 1}", self.accuracy, self.bias) for i in range(self.simulate)]
        votes = annotate(truth, crowd, context.rng("people")).votes
        return Answers(tuple(person.name for person in crowd), votes, ~votes)

    def people_facts(
        self, ids: Sequence[str], answers: Answers, truth: NDArray[np.bool_] | None, context: StepContext
    ) -> dict[str, Any]:
        """How many answered, how they agree, and the noise of what they let in, estimated and verified."""
        accepted = answers.accepted(self.rule)
        noise = label_noise(answers, self.rule, context.rng("label noise"))
        if noise is None:
            context.note("fewer than three people answered: their errors cannot be told from their answers")
        votes = np.stack([answers.yes.sum(axis=0), answers.no.sum(axis=0)], axis=1)
        kappa = fleiss_kappa(votes)
        facts: dict[str, Any] = {"people": len(answers.people), "answers": int(votes.sum())}
        facts |= {"fleiss_kappa": None if np.isnan(kappa) else kappa, "estimated": noise}
        sample = self._sample(ids, accepted.astype(np.float64), truth, context)
        if sample is not None:
            inside = sample.scores > 0
            facts["verified"] = {
                "rows": len(sample),
                "label_noise": share(~sample.right, inside, sample.weight).to_json(),
                "recall": share(inside, sample.right, sample.weight).to_json(),
            }
        if truth is not None and accepted.any() and noise is not None:
            wrong = float((~truth[accepted]).mean())
            _, low, high = noise["label_noise"]
            facts["true"] = {"label_noise": wrong, "covered": low <= wrong <= high}
        return facts

    def calibrated(
        self,
        ids: Sequence[str],
        scores: NDArray[np.float64],
        truth: NDArray[np.bool_] | None,
        context: StepContext,
    ) -> tuple[NDArray[np.bool_], dict[str, Any]]:
        """Which rows stay, and facts about the filter; all and none where nothing was asked of it."""
        sample = self._sample(ids, scores, truth, context)
        if self.threshold is None and self.target_precision is None and sample is None:
            return np.ones(len(scores), dtype=bool), {}
        if sample is None:
            assert self.threshold is not None
            return scores >= self.threshold, {}
        # Without a threshold all rows stay; the curves say what one would do.
        given = -np.inf if self.threshold is None else self.threshold
        how: Any = {"precision": self.target_precision, "confidence": self.confidence}
        threshold, calibration = calibrate(sample, context.rng("halves"), threshold=given, **how)
        if threshold is None:
            context.note(
                f"no threshold reaches a precision of {self.target_precision:g} with "
                f"{100 * self.confidence:g} % confidence on {calibration['rows_chosen_on']:,} verified rows: "
                "none is kept"
            )
            threshold = np.inf
        return scores >= threshold, {"calibration": calibration}

    def _sample(
        self,
        ids: Sequence[str],
        scores: NDArray[np.float64],
        truth: NDArray[np.bool_] | None,
        context: StepContext,
    ) -> Verified | None:
        if self.verified is not None:
            positions, right, weights = read_verified(Path(self.verified), ids)
            return Verified(scores[positions], right, weights)
        if not self.verify:
            return None
        if truth is None:
            hint = "verify some rows by hand and name the table with --verified"
            what = "only drawn rows can be verified by their scenes"
            raise DataError(what, where=f"step {context.step}", hint=hint)
        drawn = np.sort(context.rng("verified").permutation(len(scores))[: self.verify])
        return Verified(scores[drawn], truth[drawn]) if len(drawn) else None


def truth_facts(truth: NDArray[np.bool_] | None, mask: NDArray[np.bool_]) -> dict[str, Any]:
    """What a filter really did to drawn rows: shares right before and after, and of the right ones kept."""
    if truth is None or not len(truth):
        return {}
    return {
        "truth": {
            "right_before": float(truth.mean()),
            "precision": float(truth[mask].mean()) if mask.any() else None,
            "recall": float(mask[truth].mean()) if truth.any() else None,
            "kept": float(mask.mean()),
        }
    }


#: Why a row, or a candidate, goes.
AMBIGUOUS, LOW, UNJUDGED = "ambiguous by people's answers", "below the threshold", "not judged"
OTHER, UNFIT = "another candidate was chosen", "no candidate fits"


@dataclass(frozen=True)
class FilterAmbiguous(RowFilter):
    """Keep rows whose captions fit only their own images, as judged by people or an ensemble of models.

    A model gives each row a margin: for its image and its negative image, the score of the own caption less
    that of the other; the lower of the two. Of several models the mean rank of margins counts, in [0, 1].
    """

    name: ClassVar[str] = "filter"

    models: tuple[str, ...] = setting((), "Image-text models.", model=())
    set: tuple[str, ...] = setting(
        (), "Settings of the models: KEY=VALUE of all, KIND.KEY=VALUE of one kind (open-clip).", model=()
    )
    column: str | None = setting(None, "Column of scores; higher means a row is likelier right.", column=True)

    WAYS: ClassVar[tuple[str, ...]] = ("models", "column")

    @property
    def requires(self) -> Sequence[str]:
        return (*(("image", "caption", "negative_caption") if self.models else ()), *super().requires)

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        truth = sound(rows, where=f"step {context.step}")
        facts: dict[str, Any]
        if self.people is not None or self.simulate:
            ids = rows["id"].to_pylist()
            answers = self.answers(ids, truth, context)
            accepted = answers.accepted(self.rule)
            why = np.where(answers.answered, AMBIGUOUS, UNJUDGED).tolist()
            facts = {"by": "people" if self.people is not None else "simulated people", "rows": len(rows)}
            facts |= self.people_facts(ids, answers, truth, context) | truth_facts(truth, accepted)
            return Output(*split_rows(rows, accepted, why), facts)
        if not self.ways:
            allowed = " or ".join(("people", "simulate", *self.WAYS))
            raise InputError("nothing to filter by", where=f"step {context.step}", allowed=allowed)
        scores = self._scores(rows, context)
        held, calibration = self.calibrated(rows["id"].to_pylist(), scores, truth, context)
        passed, dropped = split_rows(rows, held & ~np.isnan(scores), LOW)
        facts = {"by": list(self.models) or self.column, "rows": len(rows), **calibration}
        return Output(passed, dropped, {**facts, **truth_facts(truth, held)})

    def _scores(self, rows: pa.Table, context: StepContext) -> NDArray[np.float64]:
        if self.column is not None:
            return numbers_of(rows, self.column, where=f"step {context.step}")
        both = "negative_image" in rows.column_names
        names = ["image", "caption", "negative_caption", *(["negative_image"] if both else [])]
        image, caption, other, *rest = filled(rows, names, where=f"step {context.step}")
        margins = []
        for name, settings in self.model_settings().items():
            model = context.model(name, settings)
            cells = [*image, *image, *rest[0], *rest[0]] if both else [*image, *image]
            texts = [*caption, *other, *other, *caption] if both else [*caption, *other]
            pairs = pair_scores(model, cells, texts, context).reshape(-1, 2, len(rows))
            margins.append((pairs[:, 0] - pairs[:, 1]).min(axis=0))
        if len(margins) == 1 or not len(rows):
            return margins[0]
        return np.mean([rankdata(margin) / len(rows) for margin in margins], axis=0)


@dataclass(frozen=True)
class Choose(RowFilter):
    """Choose at most one candidate for each row (`of`); it takes the row's name.

    The best has the highest score (the first of equals), most people's choice, or the first place.
    """

    name: ClassVar[str] = "choose"

    model: str | None = setting(None, "Image-text model that chooses.", model=())
    set: tuple[str, ...] = setting((), "Settings of the model, KEY=VALUE.", model=())
    column: str | None = setting(None, "Column of scores that chooses; higher is better.")
    image: str = setting("negative_image", "Column of candidate images.", among=IMAGE_ROLES)
    caption: str = setting(
        "negative_caption", "Column of captions that the images should show.", among=CAPTION_ROLES
    )
    against: str | None = setting(
        None, "Column of captions that they should not show; their score is subtracted.", among=CAPTION_ROLES
    )

    WAYS: ClassVar[tuple[str, ...]] = ("model", "column")

    @property
    def requires(self) -> Sequence[str]:
        if self.model is not None:
            return tuple(name for name in (self.image, self.caption, self.against) if name)
        return (self.column,) if self.column is not None else ()

    def run(self, rows: pa.Table, context: StepContext) -> Output:
        """A row per `of` that keeps a candidate, in their order, and the other candidates with the reason."""
        ids: list[str] = rows["id"].to_pylist()
        of: list[str] = rows["of"].to_pylist() if "of" in rows.column_names else ids
        orphan = next((name for name, row in zip(ids, of, strict=True) if row is None), None)
        if orphan is not None:
            raise DataError("a candidate of no row", where=f"step {context.step}, row '{orphan}'")
        group, number = codes_of(pa.array(of, pa.string()))
        truth = fits(rows, self.image, self.caption, self.against, where=f"step {context.step}")
        scores, why, about = self._scores(rows, ids, of, truth, context)
        positions = ranks(group, np.arange(len(rows)))
        # The first row of the highest score of each group, -1 where all are NaN.
        there = np.flatnonzero(~np.isnan(scores))
        order = there[np.lexsort((there, -scores[there], group[there]))]
        best = np.full(len(number), -1, dtype=np.int64)
        best[group[order][::-1]] = order[::-1]
        chosen = best[best >= 0]
        right = None if truth is None else truth[chosen]
        held, calibration = self.calibrated([ids[i] for i in chosen], scores[chosen], right, context)
        reasons = np.where(best[group] < 0, why, OTHER)
        reasons[chosen[~held]] = LOW
        keep = np.zeros(len(rows), dtype=bool)
        keep[chosen[held]] = True
        named, dropped = split_rows(rows, keep, reasons.tolist())
        by = self.model or self.column or next(iter(self.ways), "place")
        facts: dict[str, Any] = {"by": by, "candidates": len(rows), "rows": len(number)}
        facts["rows_with_a_choice"] = len(chosen)
        facts["places"] = np.bincount(positions[chosen]).tolist() if len(chosen) else []
        facts |= about | calibration | truth_facts(right, held)
        if truth is not None and len(rows):
            facts["truth"]["first_candidates_right"] = float(truth[positions == 0].mean())
        if "of" in rows.column_names:
            named = with_column(named, "id", named["of"].cast(pa.string())).drop_columns(["of"])
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
        if self.model is not None:
            # The model's number for each candidate with its caption, less that with the other one.
            names = [name for name in (self.image, self.caption, self.against) if name]
            cells, *texts = filled(rows, names, where=f"step {context.step}")
            model = context.model(self.model, self.model_settings()[self.model])
            scores = pair_scores(model, cells * len(texts), list(chain(*texts)), context)
            fitting, *other = scores.reshape(len(texts), len(rows))
            return fitting - other[0] if other else fitting, why, {}
        if self.column is not None:
            scores = numbers_of(rows, self.column, where=f"step {context.step}")
            why[np.isnan(scores)] = UNJUDGED
            return scores, why, {}
        if self.people is None and not self.simulate:
            return np.zeros(len(rows)), why, {}
        if self.people is not None and (voted := read_choices(Path(self.people), ids, of)) is not None:
            votes, judged = voted
            why[~judged] = UNJUDGED
            return votes, why, {}
        answers = self.answers(ids, truth, context)
        why[~answers.answered] = UNJUDGED
        share = answers.yes.sum(axis=0) / np.maximum((answers.yes | answers.no).sum(axis=0), 1)
        about = self.people_facts(ids, answers, truth, context)
        return np.where(answers.accepted(self.rule), share, np.nan), why, about
