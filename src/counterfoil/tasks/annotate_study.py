"""Human studies of the papers, repeated by simulated people, as results in tables."""

import re
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from counterfoil.data.tables import floats, labels, read_table
from counterfoil.errors import DataError, InputError
from counterfoil.report.markup import Column, Table, text_table
from counterfoil.studies.annotation import (
    StudyRow,
    human_baseline,
    merged_positives,
    preference_order,
)
from counterfoil.studies.crowd_scores import MEASURES, coverage, crowd_scores
from counterfoil.studies.stopping_rule import Rule, expected_scores, fitted_chances, share_votes
from counterfoil.tasks.feedback import SILENT, Feedback
from counterfoil.tasks.results import Tabular

#: The studies by name.
STUDIES = ("human-baseline", "merged-positives", "preferences", "winoground-baseline", "stopping-rule")
#: Rules of how many answers a pair gets, as they are called.
_RULES: tuple[tuple[str, Rule], ...] = (("first to ten", "first"), ("fixed ten", "fixed"))
#: A pair of Winoground: the question, the caption's number and the image's.
_PAIR = re.compile(r"(.+)_c([01])_i([01])")
#: Simulations behind coverage.
_COVERAGE = 1000


@dataclass(frozen=True, eq=False, repr=False)
class AnnotationStudy(Tabular):
    """A study: numbers beside the truth, and notes.

    Rows by "number" are one per number: `name`, `truth`, `value`, `low` and `high` (95 %); null where there
    is none.
    """

    name: str
    rows: tuple[StudyRow, ...]
    words: tuple[str, ...]

    rows_by = ("number",)

    def _rows(self, by: str) -> pa.Table:
        return pa.Table.from_pylist([_plain(row) for row in self.rows])

    @property
    def tables(self) -> tuple[Table]:
        """The numbers in per cent."""
        lines = []
        for row in self.rows:
            ends = "" if row.low != row.low else f" [{100 * row.low:.1f}, {100 * row.high:.1f}]"
            truth = "–" if row.truth != row.truth else f"{100 * row.truth:.1f}"
            lines.append((row.name, truth, f"{100 * row.value:.1f}{ends}"))
        return (text_table(f"Study {self.name}, %", "", (Column("truth"), Column("came out")), lines),)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done."""
        return self.words

    def __repr__(self) -> str:
        return f"<AnnotationStudy {self.name}>"

    def to_json(self) -> dict[str, Any]:
        """All of it as plain values."""
        return {"study": self.name, "numbers": [_plain(row) for row in self.rows], "notes": list(self.words)}


def annotate_study(
    name: str, *, data: str | Path | None = None, seed: int = 0, feedback: Feedback = SILENT
) -> AnnotationStudy:
    """One of `STUDIES`; "stopping-rule" reads shares of yes per pair from `data`, the others read nothing.

    Raises `InputError` for another name and where `data` is lacking or not wanted, `DataError` for a table
    that has no shares of pairs.
    """
    if name not in STUDIES:
        raise InputError("study", given=name, allowed=STUDIES)
    if (data is None) == (name == "stopping-rule"):
        hint = "name Winoground's human.jsonl with --data" if data is None else "leave --data out"
        raise InputError(f"data of the study '{name}'", given=data or "none", hint=hint)
    with feedback.busy(f"the study {name}"):
        if data is not None:
            return _stopping_rule(Path(data))
        return {
            "human-baseline": _baseline,
            "merged-positives": _merged,
            "preferences": _preferences,
            "winoground-baseline": _crowd,
        }[name](seed)


def _baseline(seed: int) -> AnnotationStudy:
    found = human_baseline(seed=seed)
    covered = found.coverage(_COVERAGE, seed=seed)
    return AnnotationStudy(
        "human-baseline",
        found.rows,
        (
            f"{len(found.right):,} questions, {len(found.accuracy)} people of {found.right.size:,} queries; "
            "no person has two directions of one question",
            "intervals have the truth in "
            + ", ".join(f"{100 * share:.1f} % ({name})" for name, share in covered.items())
            + f" of {_COVERAGE:,} simulations of other people",
            "a question's directions are answered by four people, who err independently: the scores are "
            "those of a crowd, not of one person",
        ),
    )


def _merged(seed: int) -> AnnotationStudy:
    rows, words = [], []
    for n in (1, 3):
        found = merged_positives(labels=n, seed=seed)
        for name in found.precision:
            for what, of in (
                ("precision", found.precision),
                ("recall in pool", found.recall_of_pool),
                ("recall", found.recall),
            ):
                kind = "1 answer" if n == 1 else f"{n} answers"
                rows.append(StudyRow(f"{what}, {name}, {kind}", float("nan"), *of[name]))
        words.append(
            f"{found.pairs:,} pairs of five models in {found.tasks:,} tasks, {n} per pair: "
            f"{100 * found.rejected:.0f} % of submissions rejected on golden items, "
            f"{100 * found.wrong:.0f} % of those accepted are of people who guess; "
            f"{100 * found.true['lenient']:.0f} % of the pairs are true"
        )
    words.append("several answers are aggregated by Dawid and Skene's model")
    words.append("strict takes 100 % yes, lenient also partly yes; recall is of the gallery")
    return AnnotationStudy("merged-positives", tuple(rows), tuple(words))


def _preferences(seed: int) -> AnnotationStudy:
    strengths = (35.0, 25.0, 20.0, 12.0, 8.0)
    rows, orders = [], []
    for accuracy in (1.0, 0.9):
        found = preference_order(strengths, accuracy=accuracy, seed=seed)
        for at, name in enumerate(found.names):
            numbers = (float(each[at]) / 100 for each in (found.strength, found.low, found.high))
            rows.append(
                StudyRow(f"{name}, people right in {100 * accuracy:.0f} %", strengths[at] / 100, *numbers)
            )
        orders.append(f"people right in {100 * accuracy:.0f} %: {found.written_order}")
    words = (*orders, "errors of people draw strengths together; they do not change their order")
    return AnnotationStudy("preferences", tuple(rows), words)


def _crowd(seed: int, questions: int = 100) -> AnnotationStudy:
    rows, words = [], []
    for label, rule in _RULES:
        found = crowd_scores(rule, questions, seed=seed)
        rows += [replace(row, name=f"{row.name}, {label}") for row in found.rows]
        turned = ", ".join(f"{n:,} of {of:,} {kind}" for kind, (n, of) in found.out.items())
        lacking = f"; {found.lacking:,} answers are lacking" if found.lacking else ""
        words.append(
            f"{label}: {found.votes:.2f} answers per pair, {100 * found.stopped:.1f} % of pairs as the rule "
            f"says; the test disqualified {turned} people{lacking}"
        )
        means = ", ".join(f"{100 * getattr(found.expected, name):.1f} ({name})" for name in MEASURES)
        words.append(f"{label}: so many answers of these people come to {means} on average")
        covered = coverage(rule, questions, repeats=_COVERAGE, seed=seed)
        for at, of in enumerate(("what such answers come to", "the score of endlessly many answers")):
            shares = ", ".join(f"{100 * each[at]:.1f} % ({name})" for name, each in covered.items())
            words.append(f"{label}: intervals have {of} in {shares} of {_COVERAGE:,} simulations")
    words.append(
        f"{questions:,} questions of four pairs; the truth is the score of endlessly many answers; chances "
        "of a yes are as spread as those behind the votes that Winoground released"
    )
    return AnnotationStudy("winoground-baseline", tuple(rows), tuple(words))


def _stopping_rule(path: Path) -> AnnotationStudy:
    shares = _shares(path)
    votes = share_votes(shares.ravel())
    ten = int((votes.more_frequent == 10).sum())
    belongs = np.broadcast_to(np.eye(2, dtype=bool), shares.shape).ravel()
    fitted = fitted_chances(votes, belongs).reshape(shares.shape)
    released = expected_scores(shares, None)
    nan = float("nan")
    rows = [
        StudyRow(f"{score}, released", nan, getattr(released, score), nan, nan)
        for score in ("text", "image", "group")
    ]
    words = [
        f"{ten:,} of {votes.yes.size:,} shares are k/n with ten votes for the more frequent answer; the "
        f"fewest votes that give them are {votes.votes.mean():.2f} per pair"
    ]
    for world, p in (("chances fitted", fitted), ("chances as released", shares)):
        truth = expected_scores(p, None)
        for label, rule in _RULES:
            came = expected_scores(p, rule)
            for score in ("text", "image", "group"):
                name = f"{score}, {label}, {world}"
                rows.append(StudyRow(name, getattr(truth, score), getattr(came, score), nan, nan))
            words.append(
                f"{world}, {label}: {came.votes:.2f} votes per pair, a tie in {100 * came.tied:.1f} % of "
                f"questions, shares {100 * came.bias:.2f} points too far from one half"
            )
    return AnnotationStudy("stopping-rule", tuple(rows), tuple(words))


def _shares(path: Path) -> np.ndarray:
    """(questions, captions, images) the share of yes; columns `label` (17_c0_i1) and `score`."""
    table = read_table(path)
    lacking = [name for name in ("label", "score") if name not in table.columns]
    if lacking:
        raise DataError(f"no column '{lacking[0]}'", where=str(path), given=", ".join(table.columns))
    names, values = labels(table, "label"), floats(table, "score")
    found: dict[str, np.ndarray] = {}
    for label, value in zip(names, values, strict=True):
        match = _PAIR.fullmatch(label)
        if match is None:
            raise DataError("no pair of a question", where=str(path), given=label, allowed="such as 17_c0_i1")
        question = found.setdefault(match[1], np.full((2, 2), np.nan))
        question[int(match[2]), int(match[3])] = value
    shares = np.stack(list(found.values())) if found else np.empty((0, 2, 2))
    if not len(shares) or np.isnan(shares).any():
        raise DataError("four pairs of each question", where=str(path), given=f"{len(names):,} rows")
    return shares


def _plain(row: StudyRow) -> dict[str, Any]:
    return {key: None if value != value else value for key, value in asdict(row).items()}
