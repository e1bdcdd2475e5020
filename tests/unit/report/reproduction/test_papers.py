"""The papers' files: a slip of a digit breaks a sum or is no share."""

import pytest

from counterfoil.report.reproduction import all_papers
from counterfoil.report.reproduction.paper import PaperTable, Spec, parse
from counterfoil.report.reproduction.recipes import RECIPES, Case, ReleasedFiles
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


def test_every_cell_names_a_recipe_or_says_why_there_is_none():
    for paper in all_papers().values():
        for found in paper.tables:
            for row in found.rows:
                for column, cell in zip(found.columns, row.cells, strict=True):
                    if cell.printed:
                        spec = found.spec(row, column, cell)
                        assert spec.missing or spec.recipe in RECIPES, (found.name, row.name, column.name)
                        assert spec.reason or not spec.instead
                        for reference in (*(spec.of or ()), *(spec.against or ())):
                            assert paper.printed(reference)


def test_no_two_cells_share_a_name():
    for paper in all_papers().values():
        assert len({found.name for found in paper.tables}) == len(paper.tables)
        for found in paper.tables:
            assert len({row.name for row in found.rows}) == len(found.rows)
            assert len({column.name for column in found.columns}) == len(found.columns)


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
    whole = {
        (row, column): text for (table, row, column), text in cells.items() if table in ("Table 2", "Table 3")
    }
    models = {row for table, row, _ in cells if table == parts} - {"Random", "Random Chance", "Human"}
    assert len(models) > 8
    for model in models:
        for score in scores:
            k = sum(share(cells[parts, model, f"{name} {score}"], size) for name, size in groups.items())
            assert k == share(whole[model, score], n)


def test_tables_2_and_3_of_bivlc_agree_and_bound_each_other():
    cells = printed_cells("bivlc")
    two, three = (
        {(row, column): text for (table, row, column), text in cells.items() if table == name}
        for name in ("Table 2", "Table 3")
    )
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
    made = PaperTable.model_validate(
        {
            "name": "Table 9",
            "recipe": "mean",
            "benchmark": "bivlc",
            "columns": [{"name": "A", "groups": ["add"], "benchmark": "sugarcrepe"}],
            "rows": [["m", {"printed": "1.0", "groups": ["swap"]}]],
        }
    )
    spec = made.spec(made.rows[0], made.columns[0], made.rows[0].cells[0])
    assert spec == Spec(recipe="mean", benchmark="sugarcrepe", groups=("swap",))


def test_a_blank_is_no_part_of_a_mean():
    spec = Spec(of=["Table A.1b, PVSE", "Table A.1b, VSRN"], against=["Table E.1a, All"])
    case = Case(all_papers()["eccv-caption"], "PVSE", spec, ReleasedFiles(None, {}))
    tau = RECIPES["printed_tau"](case)
    assert tau.source.endswith("(3 models)")
    # PCME, ViLT, CLIP: means 4.185, 5.49, 5.985 against 77.4, 72.4, 64.3.
    assert tau.value == pytest.approx(-1.0)
