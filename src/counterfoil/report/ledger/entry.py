"""Entries of the ledger: printed and recomputed numbers, the formulas between them, and the verdict."""

import ast
import operator
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from counterfoil.errors import DataError

_OPERATIONS: Mapping[type[ast.operator], Callable[[float, float], float]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}


def evaluate(formula: str, letters: Mapping[str, float]) -> float:
    """The value of a formula of numbers, the letters given, + - * / and parentheses.

    Raises `DataError` for anything else, unknown letters and a division by zero.

    >>> evaluate("100 * (a - b) / a", {"a": 8, "b": 6}), evaluate("-2 + 3 * 4", {})
    (25.0, 10)
    """
    try:
        return _value(ast.parse(formula, mode="eval").body, letters)
    except (SyntaxError, ZeroDivisionError, _ForeignError) as error:
        raise DataError(
            "not a formula of printed numbers",
            given=f"'{formula}'",
            allowed=f"numbers, + - * / ( ), and {', '.join(letters) or 'no letters'}",
        ) from error


class _ForeignError(Exception):
    """Something that arithmetic does not need."""


def _value(node: ast.expr, letters: Mapping[str, float]) -> float:
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=letter) if letter in letters:
            return letters[letter]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand, letters)
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left, letters), _value(right, letters))
        case _:
            raise _ForeignError


_PRINTED = re.compile(r"-?([0-9]+|[0-9]{1,3}(,[0-9]{3})+)([.][0-9]+)?")

#: Slack for floating point beside half a unit of the last printed digit, far below anything a paper prints.
_SLACK = 1e-9


class Verdict(StrEnum):
    """What the ledger says of a printed number."""

    #: The recomputed value, rounded as the paper rounds, is the printed one.
    SAME = "same"
    #: It is not; `reason` says why where that is known.
    DIFFERS = "differs"
    #: It cannot be recomputed here; `reason` says what is missing.
    NO_DATA = "no data"


class Basis(StrEnum):
    """What a number of the ledger was computed from.

    The distinction matters for every total: a number that follows from others printed in the same paper
    checks the paper's arithmetic, not its experiments.
    """

    #: Released data: answers of models, ratings, lists of positives.
    DATA = "data"
    #: Other numbers printed in the same paper, or arithmetic alone (what chance gets).
    DERIVED = "derived"
    #: Nothing: the data are missing.
    NONE = "none"


@dataclass(frozen=True)
class Entry:
    """One printed number and what became of it.

    `printed` is the number as the paper has it ("1,036", "16.67"), `value` the same as a number and `digits`
    how many decimals it shows. `recomputed` is in the unit of the paper (per cent, counts), None where there
    is no data. `source` names what it was computed from, relative to the folder of data, and `basis` which
    kind of thing that is.
    """

    paper: str
    name: str
    title: str
    table: str
    row: str
    column: str
    printed: str
    value: float
    digits: int
    recomputed: float | int | None
    verdict: Verdict
    reason: str = ""
    source: str = ""
    basis: Basis = Basis.DATA

    @property
    def unexplained(self) -> bool:
        """Whether it differs for no known reason."""
        return self.verdict is Verdict.DIFFERS and not self.reason

    @property
    def rounded(self) -> str:
        """The recomputed value with as many decimals as the paper prints; empty where there is none.

        One decimal more where it lies between two printable numbers, and the paper's is the other one.
        """
        if self.recomputed is None:
            return ""
        text = f"{self.recomputed:,.{self.digits}f}"
        halfway = self.verdict is Verdict.SAME and parse(text)[0] != self.value
        return f"{self.recomputed:,.{self.digits + 1}f}" if halfway else text

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "paper": self.paper,
            "name": self.name,
            "title": self.title,
            "table": self.table,
            "row": self.row,
            "column": self.column,
            "printed": self.printed,
            "value": self.value,
            "digits": self.digits,
            "recomputed": self.recomputed,
            "verdict": str(self.verdict),
            "reason": self.reason,
            "source": self.source,
            "basis": str(self.basis),
        }


def parse(printed: str) -> tuple[float, int]:
    """The value of a printed number and how many decimals it shows.

    Raises `DataError` for anything that is not a plain decimal number.

    >>> parse("1,036"), parse("-0.20"), parse("9.263")
    ((1036.0, 0), (-0.2, 2), (9.263, 3))
    """
    if not _PRINTED.fullmatch(printed):
        raise DataError("not a printed number", given=f"'{printed}'", allowed="digits such as 1,036 or -0.20")
    plain = printed.replace(",", "")
    return float(plain), len(plain.partition(".")[2])


def judge(printed: str, recomputed: float | int) -> Verdict:
    """Whether `recomputed` rounds to `printed`.

    A value that lies exactly between two printable ones may be printed as either: programs round halves up,
    down and to even. Nothing else is forgiven; in particular, digits cut off instead of rounded differ.

    >>> [str(judge("0.12", value)) for value in (0.1249, 0.125, 0.1251, 0.115, 0.1149)]
    ['same', 'same', 'differs', 'same', 'differs']
    """
    value, digits = parse(printed)
    return Verdict.SAME if abs(recomputed - value) <= 0.5 * 10.0**-digits + _SLACK else Verdict.DIFFERS


def summary(entries: Iterable[Entry]) -> dict[str, int]:
    """How many entries have each verdict, and how many of those that differ have no known reason.

    >>> summary([])
    {'same': 0, 'differs': 0, 'unexplained': 0, 'no data': 0}
    """
    entries = list(entries)
    count = Counter(entry.verdict for entry in entries)
    return {
        "same": count[Verdict.SAME],
        "differs": count[Verdict.DIFFERS],
        "unexplained": sum(entry.unexplained for entry in entries),
        "no data": count[Verdict.NO_DATA],
    }


def by_basis(entries: Iterable[Entry]) -> dict[Basis, dict[str, int]]:
    """The `summary` of the entries of each basis, so that no total mixes data with a paper's own arithmetic.

    >>> by_basis([])[Basis.DERIVED]
    {'same': 0, 'differs': 0, 'unexplained': 0, 'no data': 0}
    """
    entries = list(entries)
    return {basis: summary(entry for entry in entries if entry.basis is basis) for basis in Basis}
