"""The transcribed numbers against themselves: a slip of a digit breaks a sum or is no share of whole numbers.

None of this needs data. A table's shares are k of n questions for a whole k, so that k can be got back from
the print, and ks of parts must add up to those of the whole.
"""

import math
from itertools import product

import pytest
from scipy.stats import t as student

from counterfoil.errors import DataError
from counterfoil.report.reproduction.paper import (
    Paper,
    PaperCell,
    PaperRow,
    PaperTable,
    Spec,
    all_papers,
    chosen,
    parse,
)
from counterfoil.report.reproduction.recipes import RECIPES

BIVLC, WINOGROUND = all_papers()["bivlc"], all_papers()["winoground"]
SCORES = ("Text", "Image", "Group")
#: Sizes of the groups, FORMATS section 1 and 3: counted from the released files.
TYPES = {"REPLACE": 2099, "SWAP": 359, "ADD": 475}
TAGS = {"Object": 141, "Relation": 233, "Both": 26}
PREDICATES = {"1 Main Pred": 292, "2 Main Preds": 108}
VISUAL = {"Symbolic": 28, "Pragmatics": 17, "Same Image Series": 23}


def table(paper: Paper, name: str) -> PaperTable:
    return next(table for table in paper.tables if table.name == name)


def cells(paper: Paper, name: str) -> dict[tuple[str, str], str]:
    """The printed numbers of a table by (row, column), blanks left out."""
    found = table(paper, name)
    return {
        (row.name, column.name): cell.printed
        for row in found.rows
        for column, cell in zip(found.columns, row.cells, strict=True)
        if cell.printed
    }


def rows(
    paper: Paper, name: str, *, without: tuple[str, ...] = ("Random", "Random Chance", "Human")
) -> list[str]:
    return [row.name for row in table(paper, name).rows if row.name not in without]


def share(printed: str, n: int) -> int:
    """The whole k whose 100 k/n is printed so; fails where there is none."""
    value, digits = parse(printed)
    k = round(value * n / 100)
    assert abs(100 * k / n - value) <= 0.5 * 10.0**-digits + 1e-9, f"{printed} is no share of {n}"
    return k


def test_every_cell_names_a_recipe_or_says_why_there_is_none() -> None:
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


def test_no_two_cells_share_a_name() -> None:
    for paper in all_papers().values():
        assert len({found.name for found in paper.tables}) == len(paper.tables)
        for found in paper.tables:
            assert len({row.name for row in found.rows}) == len(found.rows)
            assert len({column.name for column in found.columns}) == len(found.columns)


def test_all_rows_of_the_papers_tables_are_there() -> None:
    # Winoground evaluates 19 models and people; Table 3 adds chance. BiVLC counts rows in its own tables.
    assert [len(table(WINOGROUND, f"Table {n}").rows) for n in (3, 4, 5, 6)] == [21, 20, 20, 20]
    assert len(table(WINOGROUND, "Appendix A").rows) == 20
    assert [len(table(BIVLC, f"Table {n}").rows) for n in (2, 3, 4, 5)] == [9, 7, 10, 3]
    models = rows(WINOGROUND, "Table 3")
    for name in ("Table 4", "Table 5", "Table 6", "Appendix A"):
        assert rows(WINOGROUND, name) == models
    assert [row[0] for row in WINOGROUND.inputs[0].rows] == models[1:]


class TestWinoground:
    @pytest.mark.parametrize("model", rows(WINOGROUND, "Table 3"))
    def test_the_parts_of_table_4_add_up_to_table_3(self, model: str) -> None:
        whole, parts = cells(WINOGROUND, "Table 3"), cells(WINOGROUND, "Table 4")
        for score in SCORES:
            k = share(whole[model, score], 400)
            assert sum(share(parts[model, f"{tag} {score}"], n) for tag, n in TAGS.items()) == k
            assert sum(share(parts[model, f"{tag} {score}"], n) for tag, n in PREDICATES.items()) == k

    @pytest.mark.parametrize("model", rows(WINOGROUND, "Table 5"))
    def test_table_5_is_in_shares_of_its_groups(self, model: str) -> None:
        whole, parts = cells(WINOGROUND, "Table 3"), cells(WINOGROUND, "Table 5")
        for score in SCORES:
            found = [share(parts[model, f"{tag} {score}"], n) for tag, n in VISUAL.items()]
            assert sum(found) <= share(whole[model, score], 400)

    @pytest.mark.parametrize(
        ("name", "tags"), [("Table 3", [""]), ("Table 4", [*TAGS, *PREDICATES]), ("Table 5", list(VISUAL))]
    )
    def test_a_group_score_is_at_most_either_of_its_parts(self, name: str, tags: list[str]) -> None:
        printed = cells(WINOGROUND, name)
        for model, tag in product(rows(WINOGROUND, name), tags):
            text, image, group = (float(printed[model, f"{tag} {score}".strip()]) for score in SCORES)
            assert group <= min(text, image), (model, tag)
            # And at least what two sets of these sizes must share.
            assert group >= text + image - 100 - 0.011, (model, tag)

    @pytest.mark.parametrize("model", rows(WINOGROUND, "Appendix A"))
    def test_intervals_lie_about_the_scores_of_table_3(self, model: str) -> None:
        scores, printed = cells(WINOGROUND, "Table 3"), cells(WINOGROUND, "Appendix A")
        for score in SCORES:
            assert printed[model, score] == scores[model, score]
            value, low, high = (float(printed[model, f"{score}{end}"]) for end in ("", ", low", ", high"))
            if low > 0:
                assert (low + high) / 2 == pytest.approx(value, abs=0.0101)
            # Four means of 100 questions each are whole per cents: their squares about the mean add up to
            # (half / t)^2 * 4 * 3, a multiple of 1/4 since the mean is one of 1/4.
            squares = ((high - value) / student.ppf(0.975, 3)) ** 2 * 12
            slack = 12 * 2 * ((high - value) / student.ppf(0.975, 3)) * 0.0051 / student.ppf(0.975, 3)
            assert abs(squares - round(squares * 4) / 4) <= slack + 1e-6

    @pytest.mark.parametrize(("kind", "n"), [("Perplexity", 1600), ("Caption Length", 400)])
    def test_p_values_belong_to_the_correlations(self, kind: str, n: int) -> None:
        printed = cells(WINOGROUND, "Table 6")
        for model in rows(WINOGROUND, "Table 6"):
            r, p = abs(float(printed[model, f"{kind} Corr."])), float(printed[model, f"{kind} p-value"])
            smallest, largest = (p_value(r + step, n) for step in (0.005, -0.005))
            assert smallest - 0.005 <= p <= largest + 0.005, model

    def test_table_1_adds_up_but_for_its_misprint(self) -> None:
        printed = {row: int(value) for (row, _), value in cells(WINOGROUND, "Table 1").items()}
        assert sum(printed[tag] for tag in TAGS) == 400
        assert sum(printed[tag] for tag in PREDICATES) == 401


class TestBivlc:
    @pytest.mark.parametrize("model", rows(BIVLC, "Table 4"))
    def test_the_parts_of_table_4_add_up_to_the_whole(self, model: str) -> None:
        whole = {**cells(BIVLC, "Table 2"), **cells(BIVLC, "Table 3")}
        parts = cells(BIVLC, "Table 4")
        for score in ("I2T", "T2I", "Group"):
            k = sum(share(parts[model, f"{kind} {score}"], n) for kind, n in TYPES.items())
            assert share(whole[model, score], 2933) == k

    def test_tables_2_and_3_agree(self) -> None:
        two, three = cells(BIVLC, "Table 2"), cells(BIVLC, "Table 3")
        shared = two.keys() & three.keys()
        assert len(shared) == 5 * 4
        assert {key: two[key] for key in shared} == {key: three[key] for key in shared}

    @pytest.mark.parametrize("model", rows(BIVLC, "Table 3"))
    def test_single_directions_bound_the_scores_made_of_them(self, model: str) -> None:
        printed = {column: value for (row, column), value in cells(BIVLC, "Table 3").items() if row == model}
        assert 0 < share(printed["SUGARCREPE"], 7512) < 7512
        k = {column: share(value, 2933) for column, value in printed.items() if column != "SUGARCREPE"}
        for score, one, other in (
            ("I2T", "Ipos2T", "Ineg2T"),
            ("T2I", "Tpos2I", "Tneg2I"),
            ("Group", "I2T", "T2I"),
        ):
            assert max(0, k[one] + k[other] - 2933) <= k[score] <= min(k[one], k[other])

    def test_detectors_and_people_are_in_shares(self) -> None:
        five = cells(BIVLC, "Table 5")
        for model, score in product(("CLIP Det", "CLIP TROHN-IMG/Det"), ("I2T", "T2I", "Group")):
            share(five[model, score], 2933)
        share(five["CLIP TROHN-IMG/Det", "Text detection acc"], 2 * 2933)
        for printed in cells(BIVLC, "Section 5.3").values():
            share(printed, 7512)
        # People answered 500 instances of BiVLC.
        for score in ("I2T", "T2I", "Group"):
            share(cells(BIVLC, "Table 2")["Human", score], 500)

    @pytest.mark.parametrize(
        "row", ["SUGARCREPE, by the outcome tables", "SUGARCREPE, by its files today", "BIVLC (ours)"]
    )
    def test_the_counts_of_table_1_add_up(self, row: str) -> None:
        printed = {
            column: parse(value)[0]
            for (name, column), value in cells(BIVLC, "Table 1").items()
            if name == row
        }
        assert sum(value for column, value in printed.items() if column != "Total") == printed["Total"]

    def test_winoground_s_counts_overlap_by_those_in_both(self) -> None:
        printed = cells(BIVLC, "Table 1")
        swaps = [parse(printed["Winoground", f"SWAP {kind}"])[0] for kind in ("OBJ", "REL")]
        both = parse(printed["Winoground, both SWAP OBJ and SWAP REL", "Total"])[0]
        assert sum(swaps) - both == parse(printed["Winoground", "Total"])[0] == 1600


class TestReading:
    def test_the_nearer_to_the_cell_the_stronger(self) -> None:
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

    def test_a_row_of_the_wrong_length_is_refused(self) -> None:
        with pytest.raises(ValueError, match="row 'm': 1 cells, 2 columns"):
            PaperTable(name="T", columns=({"name": "A"}, {"name": "B"}), rows=(["m", "1"],))

    def test_a_cell_that_is_no_number_is_refused(self) -> None:
        with pytest.raises(DataError, match="not a printed number; given: '12,34'"):
            PaperCell(printed="12,34")
        assert PaperRow(name="m", cells=("",)).cells[0].printed == ""

    def test_papers_are_found_by_name_and_number(self) -> None:
        every = all_papers()
        assert chosen(None) == (BIVLC, every["eccv-caption"], every["pac-s"], WINOGROUND)
        assert chosen(["winoground", "bivlc", "BiVLC"]) == (BIVLC, WINOGROUND)

    def test_a_column_that_is_not_there_is_an_error(self) -> None:
        with pytest.raises(DataError, match="Winoground: no such column in the paper; given: Table 3, Words"):
            WINOGROUND.printed("Table 3, Words")


def p_value(r: float, n: int) -> float:
    """The two-sided p-value of a correlation of n points, by Student's t."""
    r = max(r, 0.0)
    return 2 * float(student.sf(r * math.sqrt((n - 2) / (1 - r * r)), n - 2))
