"""Arithmetic that a paper does with its own numbers: "100 * (a - b) / a", and nothing else of Python."""

import ast
import operator
from collections.abc import Callable, Mapping

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
