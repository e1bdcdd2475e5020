"""What counts as the same number, and arithmetic with printed numbers."""

from decimal import ROUND_DOWN, ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.report.reproduction.paper import Entry, Verdict, evaluate, judge, parse, summary
from refusals import refuses


def entry(verdict, reason=""):
    value = None if verdict is Verdict.NO_DATA else 1036.5
    return Entry("P0", "p", "Title", "Table 1", "row", "column", "1,036", 1036.0, 0, value, verdict, reason)


@pytest.mark.parametrize("broken", ["", "12,34", "1.", ".5", "1e3", "nan", "5 %", "--1", "٣"])
def test_what_no_paper_prints_is_refused(broken):
    refuses("not a printed number", parse, broken)


@given(
    st.integers(-(10**7), 10**7),
    st.integers(0, 3),
    st.sampled_from([ROUND_HALF_UP, ROUND_HALF_DOWN, ROUND_HALF_EVEN]),
)
def test_however_halves_are_rounded_the_print_is_the_same(tens, digits, rounding):
    # Numbers of four decimals, halves among them, printed with fewer.
    value = Decimal(tens) / 10_000
    printed = value.quantize(Decimal(1).scaleb(-digits), rounding)
    assert judge(f"{printed:f}", float(value)) is Verdict.SAME


@given(st.integers(1, 10**7), st.integers(0, 3))
def test_the_next_printable_number_differs(tens, digits):
    value, unit = Decimal(tens) / 10_000, Decimal(1).scaleb(-digits)
    printed = value.quantize(unit, ROUND_HALF_EVEN)
    # A half is printed as either neighbour, so the second next differs in any case.
    for step in (-2, 2):
        other = printed + step * unit
        if other >= 0:
            assert judge(f"{other:f}", float(value)) is Verdict.DIFFERS


def test_digits_cut_off_are_not_rounded():
    value = Decimal("57.2963")
    assert judge(str(value.quantize(Decimal("0.01"), ROUND_DOWN)), float(value)) is Verdict.DIFFERS


def test_summary_counts_the_unexplained():
    differing = [entry(Verdict.DIFFERS, "misprint"), entry(Verdict.DIFFERS)]
    entries = [entry(Verdict.SAME), *differing, *[entry(Verdict.NO_DATA, "no file")] * 2]
    assert summary(entries) == {"same": 1, "differs": 2, "unexplained": 1, "no data": 2}
    assert [e.unexplained for e in entries] == [False, False, True, False, False]


@pytest.mark.parametrize(
    ("printed", "value", "verdict", "shown"),
    [
        ("22.67", 22.665, Verdict.SAME, "22.665"),
        ("22.66", 22.6649, Verdict.SAME, "22.66"),
        ("1,036", 1036.5, Verdict.SAME, "1,036"),
        ("1,037", 1036.5, Verdict.SAME, "1,036.5"),
        ("34.14", 44.225, Verdict.DIFFERS, "44.23"),
    ],
)
def test_what_lies_between_two_printable_numbers_is_shown_so(printed, value, verdict, shown):
    number, digits = parse(printed)
    assert judge(printed, value) is verdict
    made = Entry("P0", "p", "Title", "Table 1", "row", "column", printed, number, digits, value, verdict)
    assert made.rounded == shown


def test_an_entry_without_data_has_no_value_to_show():
    assert entry(Verdict.NO_DATA).rounded == ""


# A formula and its value, built side by side.
_LEAVES = st.one_of(
    st.integers(1, 10**6).map(lambda n: (str(n), float(n))), st.sampled_from([("a", 7.0), ("b", 0.5)])
)


def _join(parts):
    (left, x), sign, (right, y) = parts
    return f"({left} {sign} {right})", {"+": x + y, "-": x - y, "*": x * y}[sign]


@given(st.recursive(_LEAVES, lambda inner: st.tuples(inner, st.sampled_from("+-*"), inner).map(_join)))
def test_a_formula_is_worth_what_its_parts_are(made):
    formula, value = made
    assert evaluate(formula, {"a": 7.0, "b": 0.5}) == pytest.approx(value, rel=1e-12, abs=1e-6)


def test_operations_bind_as_in_arithmetic():
    # 2 + 12 / 4 - 1 = 4; minus binds to what follows it.
    assert evaluate("2 + 12 / 4 - 1", {}) == 4
    assert evaluate("-(1 - 3) * 2", {}) == 4


FOREIGN = ";1 +;c;1 / 0;a / (b - b);2 ** 3;5 // 2;1e3;abs(a);a.real;'1';True;[1]"


@pytest.mark.parametrize("foreign", FOREIGN.split(";"))
def test_anything_else_is_refused(foreign):
    words = refuses("not a formula of printed numbers; given: '", evaluate, foreign, {"a": 1, "b": 2})
    assert "and a, b" in words
