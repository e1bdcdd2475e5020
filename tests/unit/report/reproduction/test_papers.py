"""The papers' files, what counts as the same number, and arithmetic with printed numbers."""

from decimal import ROUND_HALF_DOWN, ROUND_HALF_EVEN, ROUND_HALF_UP, Decimal

import pytest
from hypothesis import given, strategies as st

from counterfoil.report.reproduction import all_papers
from counterfoil.report.reproduction.paper import (
    Entry,
    PaperTable,
    Spec,
    Verdict,
    evaluate,
    judge,
    parse,
    summary,
)
from counterfoil.report.reproduction.recipes import RECIPES, Case, ReleasedFiles
from refusals import refuses
from report.reproduction.conftest import printed_cells

#: Sizes of groups of questions, counted from the released files.
TYPES = {"REPLACE": 2099, "SWAP": 359, "ADD": 475}
TAGS = {"Object": 141, "Relation": 233, "Both": 26}
PREDICATES = {"1 Main Pred": 292, "2 Main Preds": 108}


def share(printed, n):
    """The whole k whose 100 k/n is printed so; fails where there is none."""
    value, digits = parse(printed)
    k = round(value * n / 100)
    assert abs(100 * k / n - value) <= 0.5 * 10.0**-digits + 1e-9, f"{printed} is no share of {n}"
    return k


def test_every_cell_names_a_recipe_or_says_why_there_is_none_and_no_two_share_a_name():
    for paper in all_papers().values():
        for result in paper.tables:
            for row in result.rows:
                for column, cell in zip(result.columns, row.cells, strict=True):
                    if cell.printed:
                        spec = result.spec(row, column, cell, paper.models.get(row.name))
                        assert spec.missing or spec.recipe in RECIPES, (result.name, row.name, column.name)
                        assert spec.reason or not spec.instead
                        assert not spec.reason or " " in spec.reason or spec.reason in paper.reasons
                        for reference in (*(spec.of or ()), *(spec.against or ())):
                            assert paper.printed(reference)
    for paper in all_papers().values():
        assert len({result.name for result in paper.tables}) == len(paper.tables)
        for result in paper.tables:
            assert len({row.name for row in result.rows}) == len(result.rows)
            assert len({column.name for column in result.columns}) == len(result.columns)


@pytest.mark.parametrize(
    ("paper", "parts", "scores", "n", "groups"),
    [
        ("winoground", "Table 4", ("Text", "Image", "Group"), 400, TAGS),
        ("winoground", "Table 4", ("Text", "Image", "Group"), 400, PREDICATES),
        ("bivlc", "Table 4", ("I2T", "T2I", "Group"), 2933, TYPES),
    ],
)
def test_the_parts_of_a_table_add_up_to_the_whole(paper, parts, scores, n, groups):
    # A table's shares are k of n questions for a whole k, so that k can be got back from the print.
    cells = printed_cells(paper)
    whole = {cell[1:]: text for cell, text in cells.items() if cell[0] in ("Table 2", "Table 3")}
    models = {row for table, row, _ in cells if table == parts} - {"Random", "Random Chance", "Human"}
    assert len(models) > 8
    for model in models:
        for score in scores:
            k = sum(share(cells[parts, model, f"{name} {score}"], size) for name, size in groups.items())
            assert k == share(whole[model, score], n)


def test_tables_2_and_3_of_bivlc_agree_and_bound_each_other():
    cells = printed_cells("bivlc")
    two, three = ({cell[1:]: text for cell, text in cells.items() if cell[0] == f"Table {n}"} for n in (2, 3))
    assert len(two.keys() & three.keys()) == 5 * 4
    assert all(two[cell] == three[cell] for cell in two.keys() & three.keys())
    for model in {row for row, _ in three} - {"Random"}:
        k = {column: share(three[model, column], 2933) for column in ("I2T", "T2I", "Group")}
        for score, one, other in (
            ("I2T", "Ipos2T", "Ineg2T"),
            ("T2I", "Tpos2I", "Tneg2I"),
            ("Group", "I2T", "T2I"),
        ):
            a, b = (share(three[model, column], 2933) for column in (one, other))
            assert max(0, a + b - 2933) <= k[score] <= min(a, b)


def test_the_nearer_to_the_cell_the_stronger():
    columns = [{"name": "A", "groups": ["add"], "benchmark": "sugarcrepe"}]
    rows = [["m", {"printed": "1.0", "groups": ["swap"]}]]
    table = {"name": "Table 9", "recipe": "mean", "benchmark": "bivlc", "columns": columns, "rows": rows}
    made = PaperTable.model_validate(table)
    spec = made.spec(made.rows[0], made.columns[0], made.rows[0].cells[0], None)
    assert spec == Spec(recipe="mean", benchmark="sugarcrepe", groups=("swap",))


def test_a_blank_is_no_part_of_a_mean():
    spec = Spec(of=["Table A.1b, PVSE", "Table A.1b, VSRN"], against=["Table E.1a, All"])
    tau = RECIPES["printed_tau"](Case(all_papers()["eccv-caption"], "PVSE", spec, ReleasedFiles(None, {})))
    assert tau.source.endswith("(3 models)")
    # PCME, ViLT, CLIP: means 4.185, 5.49, 5.985 against 77.4, 72.4, 64.3.
    assert tau.value == pytest.approx(-1.0)


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


def test_summary_counts_the_unexplained_and_without_data_there_is_no_value_to_show():
    differing = [entry(Verdict.DIFFERS, "misprint"), entry(Verdict.DIFFERS)]
    entries = [entry(Verdict.SAME), *differing, *[entry(Verdict.NO_DATA, "no file")] * 2]
    assert summary(entries) == {"same": 1, "differs": 2, "unexplained": 1, "no data": 2}
    assert [e.unexplained for e in entries] == [False, False, True, False, False]
    assert entry(Verdict.NO_DATA).rounded == ""


@pytest.mark.parametrize(
    ("printed", "value", "verdict", "shown"),
    [
        ("22.67", 22.665, Verdict.SAME, "22.665"),
        ("22.66", 22.6649, Verdict.SAME, "22.66"),
        ("1,036", 1036.5, Verdict.SAME, "1,036"),
        ("1,037", 1036.5, Verdict.SAME, "1,036.5"),
        ("34.14", 44.225, Verdict.DIFFERS, "44.23"),
        # Cut off, not rounded.
        ("57.29", 57.2963, Verdict.DIFFERS, "57.30"),
    ],
)
def test_what_lies_between_two_printable_numbers_is_shown_so(printed, value, verdict, shown):
    number, digits = parse(printed)
    assert judge(printed, value) is verdict
    made = Entry("P0", "p", "Title", "Table 1", "row", "column", printed, number, digits, value, verdict)
    assert made.rounded == shown


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
