"""Arithmetic with printed numbers, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.errors import DataError
from counterfoil.report.reproduction.paper import evaluate

# A formula and its value, built side by side.
_LEAVES = st.one_of(
    st.integers(1, 10**6).map(lambda n: (str(n), float(n))),
    st.sampled_from([("a", 7.0), ("b", 0.5)]),
)


def _join(parts: tuple[tuple[str, float], str, tuple[str, float]]) -> tuple[str, float]:
    (left, x), sign, (right, y) = parts
    return f"({left} {sign} {right})", {"+": x + y, "-": x - y, "*": x * y}[sign]


@given(st.recursive(_LEAVES, lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(_join)))
def test_a_formula_is_worth_what_its_parts_are(made: tuple[str, float]) -> None:
    formula, value = made
    assert evaluate(formula, {"a": 7.0, "b": 0.5}) == pytest.approx(value, rel=1e-12, abs=1e-6)


def test_operations_bind_as_in_arithmetic() -> None:
    # 2 + 12 / 4 - 1 = 4; minus binds to what follows it.
    assert evaluate("2 + 12 / 4 - 1", {}) == 4
    assert evaluate("-(1 - 3) * 2", {}) == 4


@pytest.mark.parametrize(
    "foreign",
    [
        "",
        "1 +",
        "c",
        "1 / 0",
        "a / (b - b)",
        "2 ** 3",
        "abs(a)",
        "__import__('os')",
        "a.real",
        "'1'",
        "True",
        "[1]",
    ],
)
def test_anything_else_is_refused(foreign: str) -> None:
    with pytest.raises(DataError, match="not a formula of printed numbers; given: '") as refused:
        evaluate(foreign, {"a": 1, "b": 2})
    assert "and a, b" in str(refused.value)
