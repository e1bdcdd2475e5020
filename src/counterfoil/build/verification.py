"""Verified rows: the truth of drawn rows, people's answers about rows, and the error of what they let in.

A row is sound where each of its captions is true of its own image and of no other image of the row. Label
noise, the share of unsound rows that people let in, follows from how three or more contradict each other
(`stats.dawid_skene`).
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import compress
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.judgements import gain_of
from counterfoil.benchmarks.tables import DataTable, booleans, floats, labels, names, read_table
from counterfoil.build.step import SCENE_OF
from counterfoil.errors import DataError
from counterfoil.stats.dawid_skene import FEWEST, drawn_so, patterns
from counterfoil.world.scenes import Scene
from counterfoil.world.truth import matches

#: How several answers about a row become one verdict.
RULES = ("majority", "any", "all")
Rule = Literal["majority", "any", "all"]
#: Columns that say who answered; the first there is counts.
_PEOPLE = ("annotator", "worker", "judge", "person")


def fits(
    rows: pa.Table, image: str, own: str, other: str | None = None, *, where: object = None
) -> NDArray[np.bool_] | None:
    """Whether the caption in `own` is true of the scene of `image`, that in `other` not; None: no scenes."""
    column = SCENE_OF.get(image)
    wanted = [name for name in (own, other) if name is not None]
    if column is None or not {column, *wanted} <= set(rows.column_names):
        return None
    scenes: dict[str, Scene] = {}
    right = np.zeros(len(rows), dtype=bool)
    texts_of = [rows[name].to_pylist() for name in wanted]
    for at, cell in enumerate(rows[column].to_pylist()):
        if cell is None or any(texts[at] is None for texts in texts_of):
            continue
        if cell not in scenes:
            scenes[cell] = Scene.from_json(cell, where=where)
        true = [matches(texts[at], scenes[cell]) for texts in texts_of]
        right[at] = true[0] and not any(true[1:])
    return right


def sound(rows: pa.Table, *, where: object = None) -> NDArray[np.bool_] | None:
    """Whether each caption of a drawn row is true of its own image only; None where scenes are not known."""
    own_fits = fits(rows, "image", "caption", "negative_caption", where=where)
    if own_fits is None or "negative_image" not in rows.column_names:
        return own_fits
    other = fits(rows, "negative_image", "negative_caption", "caption", where=where)
    return None if other is None else np.logical_and(own_fits, other)


@dataclass(frozen=True, eq=False)
class Answers:
    """Who said yes and who said no about which row: (people, rows); neither where a person was not asked."""

    people: tuple[str, ...]
    yes: NDArray[np.bool_]
    no: NDArray[np.bool_]

    @property
    def asked(self) -> NDArray[np.bool_]:
        return np.asarray((self.yes | self.no).any(axis=0), dtype=bool)

    def accepted(self, rule: Rule = "majority") -> NDArray[np.bool_]:
        """Which rows people let in: more yes than no, any yes, or no no; never one without an answer."""
        yes, no = self.yes.sum(axis=0), self.no.sum(axis=0)
        by_rule: dict[str, NDArray[np.bool_]] = {"majority": yes > no, "any": yes > 0, "all": no == 0}
        return np.logical_and(by_rule[rule], self.asked)


def answer_gains(table: DataTable) -> NDArray[np.float64]:
    """The gain of each row by its column `answer`, NaN where that is empty; raises `DataError` for others."""
    words = labels(table, "answer")
    gains = [gain_of(word) if word else np.nan for word in words]
    if None in gains:
        row = gains.index(None)
        raise DataError(
            "an answer that cannot be read",
            where=table.where(row, "answer"),
            given=words[row],
            allowed="yes, no, 100% YES, Partially YES, Mostly NO, 100% NO",
        )
    return np.array(gains, dtype=np.float64)


def read_answers(path: Path, ids: Sequence[str]) -> tuple[Answers, int]:
    """People's answers about rows, and how many are about rows that are not among `ids`.

    A table with `id`, `answer` (yes or no, or ECCV Caption's four) or `gain` (above 0.25 is a yes), and who
    answered (`_PEOPLE`); without that, a row's first answer counts as one person's, the second as another's.
    """
    table = read_table(path)
    row_ids = labels(table, "id")
    if "gain" in table and "answer" not in table:
        given = [gain not in (None, "") for gain in table["gain"]]
        gains = np.full(len(table), np.nan)
        gains[given] = floats(DataTable({"gain": list(compress(table["gain"], given))}, table.source), "gain")
    else:
        gains = answer_gains(table)
    who = next((name for name in _PEOPLE if name in table), None)
    number = {name: at for at, name in enumerate(ids)}
    times: Counter[str] = Counter()
    cells: dict[tuple[str, int], bool] = {}
    named = labels(table, who) if who is not None else ()
    stray = 0
    for row, (name, gain) in enumerate(zip(row_ids, gains, strict=True)):
        if np.isnan(gain):
            continue
        if name not in number:
            stray += 1
            continue
        times[name] += 1
        person = named[row] if named else f"answer {times[name]}"
        if (person, number[name]) in cells:
            where, why = table.where(row, "id"), "a person answered twice about one row"
            raise DataError(why, where=where, given=f"{person}, {name}")
        cells[person, number[name]] = gain > 0.25
    if not cells:
        raise DataError(
            "no row has an answer",
            where=table.source,
            given=f"{len(table)} rows, such as about '{row_ids[0]}'",
            allowed=f"ids such as '{ids[0]}'" if len(ids) else "rows to ask about",
        )
    people = tuple(dict.fromkeys(person for person, _ in cells))
    line = {name: at for at, name in enumerate(people)}
    yes_, no_ = (np.zeros((len(people), len(ids)), dtype=bool) for _ in range(2))
    for (person, at), answer in cells.items():
        (yes_ if answer else no_)[line[person], at] = True
    return Answers(people, yes_, no_), stray


def read_verified(
    path: Path, ids: Sequence[str]
) -> tuple[NDArray[np.int64], NDArray[np.bool_], NDArray[np.float64] | None]:
    """Positions in `ids` of verified rows (`id`, `right`, `weight`), their truth, and their weights."""
    table = read_table(path)
    ids_verified, right = names(table, "id"), booleans(table, "right")
    weights = floats(table, "weight") if "weight" in table else None
    number = {name: at for at, name in enumerate(ids)}
    at = np.array([number.get(name, -1) for name in ids_verified], dtype=np.int64)
    matched = at >= 0
    if not matched.any():
        raise DataError(
            "none of the verified rows is here",
            where=table.source,
            given=f"{len(table)} rows, such as '{ids_verified[0]}'",
            allowed=f"ids such as '{ids[0]}'" if len(ids) else "rows to verify",
        )
    return at[matched], right[matched], None if weights is None else weights[matched]


def label_noise(
    answers: Answers,
    rule: Rule,
    rng: np.random.Generator,
    *,
    draws: int = 2000,
    level: float = 0.95,
) -> dict[str, Any] | None:
    """How much of what people let in is not sound, by their answers alone; None for fewer than three."""
    answered = answers.asked
    yes, no = answers.yes[:, answered], answers.no[:, answered]
    if len(answers.people) < FEWEST or not answered.any():
        return None
    counted = patterns(yes, no)
    verdict = Answers(answers.people, counted.yes.T, counted.no.T).accepted(rule)
    so = drawn_so(counted, rng, draws=draws)
    rows_kept = int(counted.counts[verdict].sum())

    def drawn_share(drawn: NDArray[np.int64], total: int) -> list[float | None]:
        if not total:
            return [None, 0.0, 1.0]
        low, high = np.quantile(drawn, ((1 - level) / 2, (1 + level) / 2), method="inverted_cdf")
        return [float(drawn.mean() / total), float(low / total), float(high / total)]

    middle = so.mean(axis=0)
    wrong = counted.counts - middle
    hits = (middle @ counted.yes) / np.maximum(middle @ (counted.yes | counted.no), 1e-12)
    rejections = (wrong @ counted.no) / np.maximum(wrong @ (counted.yes | counted.no), 1e-12)
    return {
        "label_noise": drawn_share(rows_kept - so[:, verdict].sum(axis=1), rows_kept),
        "rows_kept": rows_kept,
        "sound_before": drawn_share(so.sum(axis=1), int(counted.counts.sum())),
        "hits": dict(zip(answers.people, hits.tolist(), strict=True)),
        "rejections": dict(zip(answers.people, rejections.tolist(), strict=True)),
        "assumes": "people err independently of each other, at rates that are the same for all rows",
    }


def read_choices(
    path: Path, ids: Sequence[str], of: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]] | None:
    """The votes of each candidate, NaN if not chosen, and whose row has a vote; None without choices."""
    table = read_table(path)
    if "chosen" not in table:
        return None
    number = {name: at for at, name in enumerate(ids)}
    votes, none = np.zeros(len(ids)), dict.fromkeys(of, 0)
    voted: set[str] = set()
    for row, (name, chosen) in enumerate(zip(labels(table, "of"), labels(table, "chosen"), strict=True)):
        if name not in none:
            continue
        voted.add(name)
        if not chosen:
            none[name] += 1
        elif chosen not in number or of[number[chosen]] != name:
            raise DataError(
                "the choice is no candidate of its row",
                where=table.where(row, "chosen"),
                given=chosen,
                allowed=[candidate for candidate, its in zip(ids, of, strict=True) if its == name],
            )
        else:
            votes[number[chosen]] += 1
    if not voted:
        raise DataError("no row has a choice", where=table.source, allowed=f"rows such as '{of[0]}'")
    least = np.array([none[name] for name in of])
    return np.where(votes > least, votes, np.nan), np.array([name in voted for name in of])
