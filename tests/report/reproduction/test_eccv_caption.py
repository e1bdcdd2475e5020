"""ECCV in the ledger: what its numbers and the released files say, each worked out here a second time."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from itertools import combinations
from math import sqrt
from pathlib import Path

import pytest

from counterfoil.errors import CounterfoilError, DataError
from counterfoil.report.reproduction import Entry, Verdict, _row, all_papers, reproduce, summary
from counterfoil.report.reproduction.evidence import ReleasedFiles
from counterfoil.report.reproduction.paper import Paper, PaperTable

PAPER = all_papers()["eccv-caption"]
CELLS = {
    (table.name, row.name, column.name): cell.printed
    for table in PAPER.tables
    for row in table.rows
    for column, cell in zip(table.columns, row.cells, strict=True)
    if cell.printed
}
MODELS = [row for (table, row, column) in CELLS if table == "Table 4" and column == "PMRP"]
#: How many queries ECCV Caption, CxC and COCO have: images, then captions.
QUERIES = {"Table D.2": (1261, 5000, 5000), "Table D.3": (1332, 24972, 25000)}
ANNOTATORS = ("PVSE", "VSRN", "PCME", "ViLT", "CLIP")
RANKINGS = ("A", "B", "C", "D", "E")
#: Tables whose cells stand alone, and cells of other tables that do.
ALONE = {
    *("Table 2", "Table A.1a", "Table A.1b", "Table B.2", "Table B.3a", "Table B.3b", "Table D.1"),
    *("Table D.2", "Table D.3", "Table E.1a", "Table E.1b"),
    *("README of eccv-caption, CLIP ViT-L/14", "README of pcme"),
    *("Human-verified positives", "top-5 pairs without duplicates", "pairs annotated as positive"),
    *("cost of these, in 1,000 dollars", "# Workers", "# Submit. HITs", "# Approv. HITs"),
}


def number(table: str, row: str, column: str) -> Decimal:
    return Decimal(CELLS[table, row, column].replace(",", ""))


def column(table: str, name: str) -> list[Decimal]:
    return [number(table, row, name) for row in MODELS]


def both(name: str, other: str | None = None) -> list[Decimal]:
    """The mean of image to text and text to image, exactly."""
    return [
        (i + t) / 2
        for i, t in zip(column("Table D.2", name), column("Table D.3", other or name), strict=True)
    ]


def tau_b(x: list[Decimal], y: list[Decimal]) -> float:
    """Kendall's tau-b by looking at every pair of models."""
    balance = in_x = in_y = 0
    for i, j in combinations(range(len(x)), 2):
        a, b = (x[i] > x[j]) - (x[i] < x[j]), (y[i] > y[j]) - (y[i] < y[j])
        balance, in_x, in_y = balance + a * b, in_x + abs(a), in_y + abs(b)
    return balance / sqrt(in_x * in_y)


def prints(value: float | Decimal | Fraction, printed: str) -> bool:
    """Whether a value can be printed so."""
    places = len(printed.partition(".")[2])
    return abs(float(value) - float(printed.replace(",", ""))) <= 0.5 * 10**-places + 1e-9


@pytest.fixture(scope="module")
def ledger(shared_data: Path) -> dict[tuple[str, str, str], Entry]:
    return {(e.table, e.row, e.column): e for e in reproduce(data=shared_data, papers=["ECCV Caption"])}


@pytest.fixture(scope="module")
def alone() -> dict[tuple[str, str, str], Entry]:
    """What comes out without any data: all that follows from other printed numbers."""
    return {(e.table, e.row, e.column): e for e in reproduce(papers=["eccv-caption"])}


def positives(folder: Path, name: str) -> dict[int, list[int]]:
    text = (folder / "eccv" / f"{name}.json").read_text(encoding="utf-8")
    return {int(query): right for query, right in json.loads(text).items()}


class TestVerdicts:
    def test_every_number_has_its_entry(self, ledger: dict[tuple[str, str, str], Entry]) -> None:
        assert ledger.keys() == CELLS.keys()
        assert summary(ledger.values()) == {"same": 391, "differs": 68, "unexplained": 0, "no data": 916}

    def test_what_stands_alone_and_nothing_else_is_without_data(
        self, ledger: dict[tuple[str, str, str], Entry]
    ) -> None:
        for cell, entry in ledger.items():
            lonely = not ALONE.isdisjoint(cell)
            assert (entry.verdict is Verdict.NO_DATA) == lonely, cell
            assert bool(entry.source) != lonely

    def test_reasons_about_numbers_are_about_those_that_differ(
        self, ledger: dict[tuple[str, str, str], Entry]
    ) -> None:
        for table in PAPER.tables:
            for row in table.rows:
                for head, cell in zip(table.columns, row.cells, strict=True):
                    if cell.reason:
                        entry = ledger[table.name, row.name, head.name]
                        assert cell.reason in entry.reason

    def test_which_cells_differ(self, ledger: dict[tuple[str, str, str], Entry]) -> None:
        assert Counter(cell[0] for cell, e in ledger.items() if e.verdict is Verdict.DIFFERS) == {
            "Section 3": 2,
            "Section 3.3 and C.1": 1,
            "Section 4.1, preference": 4,
            "Table 4": 24 + 11,
            "Table 4, COCO 1K R@1 as it came about": 1,
            "Section 4.2": 2,
            "Table 5": 6,
            "Section B.2": 2,
            "Table B.2, Avg.": 15,
        }

    def test_without_data_all_that_follows_from_print_is_there(
        self, alone: dict[tuple[str, str, str], Entry], ledger: dict[tuple[str, str, str], Entry]
    ) -> None:
        needs_files = {
            cell
            for cell in ledger
            if ledger[cell].verdict is not Verdict.NO_DATA and alone[cell].verdict is Verdict.NO_DATA
        }
        # 10 of section 1, 10 of Table 3, two counts of section 3, three of C.1, six files of four numbers.
        assert Counter(cell[0] for cell in needs_files) == {
            "Abstract and section 1": 10,
            "Table 3": 10,
            "Section 3": 2,
            "Section 3.3 and C.1": 3,
            "Files of eccv_caption": 24,
        }
        assert {alone[cell].reason for cell in needs_files} == {
            "no folder of data was given; this needs its eccv"
        } | {
            f"no folder of data was given; this needs its eccv. {entry.reason}"
            for cell, entry in ledger.items()
            if cell in needs_files and entry.reason
        }


class TestReleasedFiles:
    def test_table_3_straight_from_the_files(
        self, ledger: dict[tuple[str, str, str], Entry], shared_data: Path
    ) -> None:
        rows = {"original": "Original MS-COCO Caption", "cxc": "CxC", "eccv": "ECCV Caption"}
        for way, head in (("caption_to_image", "images"), ("image_to_caption", "captions")):
            asked = positives(shared_data, f"eccv_{way}")
            found = {
                name: sum(
                    len(right)
                    for query, right in positives(shared_data, f"{name}_{way}").items()
                    if query in asked
                )
                for name in rows
            }
            for name, row in rows.items():
                assert ledger["Table 3", row, f"# positive {head}"].recomputed == found[name]
                if name != "original":
                    times = ledger["Table 3", row, f"{head}, times the original"]
                    assert times.recomputed == pytest.approx(found[name] / found["original"])
                    assert times.verdict is Verdict.SAME

    def test_cxc_has_35585_pairs_both_ways(self, ledger: dict[tuple[str, str, str], Entry]) -> None:
        for way in ("image_to_caption", "caption_to_image"):
            assert ledger["Files of eccv_caption", f"cxc_{way}", "Pairs"].recomputed == 35585

    def test_three_wrong_captions_are_still_positives(
        self, ledger: dict[tuple[str, str, str], Entry], shared_data: Path
    ) -> None:
        images = positives(shared_data, "eccv_image_to_caption")
        captions = positives(shared_data, "eccv_caption_to_image")
        used = captions.keys() | {caption for right in images.values() for caption in right}
        (row,) = (row for table in PAPER.tables for row in table.rows if row.name == "wrong captions")
        kept = sorted({int(caption) for caption in row.listed or ()} & used)
        assert kept == [75083, 359139, 605566]
        entry = ledger["Section 3.3 and C.1", "wrong captions", "Filtered out"]
        assert entry.recomputed == 14 - len(kept)
        assert all(str(caption) in entry.reason for caption in kept)

    def test_sources_are_the_files_read(self, ledger: dict[tuple[str, str, str], Entry]) -> None:
        source = ledger["Table 3", "CxC", "# positive images"].source
        assert source.startswith("eccv/")
        assert "cxc_image_to_caption.json" in source

    def test_files_that_are_missing_are_no_data(
        self, shared_data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # Without the package that has them too.
        monkeypatch.setattr("counterfoil.data.readers.coco_files.find_spec", lambda name: None)
        folder = self.copy(shared_data, tmp_path, "").parent / "eccv"
        for file in folder.glob("cxc_*"):
            file.unlink()
        entries = {(e.table, e.row, e.column): e for e in reproduce(data=tmp_path, papers=["ECCV Caption"])}
        assert entries["Table 3", "ECCV Caption", "# positive images"].verdict is Verdict.SAME
        lost = entries["Table 3", "CxC", "# positive images"]
        assert lost.verdict is Verdict.NO_DATA
        assert lost.reason.startswith(
            "eccv is not complete: the Python package 'eccv_caption' is not installed"
        )

    def test_a_pair_of_another_query_is_noticed(self, shared_data: Path, tmp_path: Path) -> None:
        file = self.copy(shared_data, tmp_path, "eccv_caption_to_image.json")
        rights = json.loads(file.read_text(encoding="utf-8"))
        longest = max(rights.values(), key=len)
        source = next(right for right in rights.values() if 2 < len(right) < 19 and right[0] not in longest)
        longest.append(source.pop(0))
        file.write_text(json.dumps(rights), encoding="utf-8")
        entries = {(e.table, e.row, e.column): e for e in reproduce(data=tmp_path, papers=["ECCV Caption"])}
        most = entries["Files of eccv_caption", "eccv_caption_to_image", "Most"]
        assert (most.recomputed, most.verdict, most.reason) == (20, Verdict.DIFFERS, "")
        assert entries["Table 3", "ECCV Caption", "# positive images"].verdict is Verdict.SAME

    @pytest.mark.parametrize(
        "damage",
        [lambda text: text[:-9], lambda text: "[]", lambda text: text.replace("[", "[7, ", 1)],
        ids=["cut off", "no object", "a pair too many"],
    )
    def test_a_broken_file_is_an_error_that_names_it(
        self, damage: Callable[[str], str], shared_data: Path, tmp_path: Path
    ) -> None:
        file = self.copy(shared_data, tmp_path, "eccv_caption_to_image.json")
        file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")
        with pytest.raises(CounterfoilError, match=r"eccv_caption_to_image\.json"):
            reproduce(data=tmp_path, papers=["ECCV Caption"])

    def copy(self, shared_data: Path, folder: Path, name: str) -> Path:
        shutil.copytree(shared_data / "eccv", folder / "eccv", copy_function=shutil.copyfile)
        return folder / "eccv" / name


class TestTables4And5:
    def test_table_4_is_the_mean_of_both_directions_but_for_two_columns(
        self, alone: dict[tuple[str, str, str], Entry]
    ) -> None:
        off = {}
        for head in ("ECCV mAP@R", "ECCV R-P", "ECCV R@1", "CxC R@1", "COCO 1K R@1", "COCO 5K R@1", "PMRP"):
            for model, mean in zip(MODELS, both(head), strict=True):
                entry = alone["Table 4", model, head]
                assert entry.recomputed == pytest.approx(float(mean))
                assert (entry.verdict is Verdict.SAME) == prints(mean, entry.printed)
                if entry.verdict is not Verdict.SAME:
                    off.setdefault(head, []).append(model)
        assert off == {"COCO 1K R@1": [model for model in MODELS if model != "VinVL"], "PMRP": MODELS[14:]}

    def test_what_the_wrong_column_is(self) -> None:
        mixed = both("COCO 1K R@1", "COCO 5K R@1")
        found = [
            prints(mean, CELLS["Table 4", model, "COCO 1K R@1"])
            for model, mean in zip(MODELS, mixed, strict=True)
        ]
        assert [model for model, same in zip(MODELS, found, strict=True) if not same] == ["VinVL"]

    def test_pmrp_of_the_last_two_blocks_is_near_cxc(self) -> None:
        pmrp, cxc = column("Table D.2", "PMRP")[14:], column("Table D.2", "CxC R@1")[14:]
        assert max(abs(a - b) for a, b in zip(pmrp, cxc, strict=True)) == Decimal("2.72")
        assert tau_b(pmrp, cxc) > 0.96
        # In the others it is not.
        others = zip(column("Table D.2", "PMRP")[:14], column("Table D.2", "CxC R@1")[:14], strict=True)
        assert max(abs(a - b) for a, b in others) > 20

    def hits(self, sources: dict[str, list[Decimal]]) -> int:
        """How many of the 55 printed pairs come out to the digit."""
        return sum(
            prints(tau_b(sources[a], sources[b]), CELLS["Table 5", a, b]) for a, b in combinations(sources, 2)
        )

    def test_table_5_comes_from_true_means_and_the_pmrp_of_table_4(
        self, alone: dict[tuple[str, str, str], Entry]
    ) -> None:
        heads = list(dict.fromkeys(row for table, row, _ in CELLS if table == "Table 5"))
        means = {head: both(head) for head in heads}
        found = {**means, "PMRP": column("Table 4", "PMRP")}
        for a, b in combinations(heads, 2):
            for row, head in ((a, b), (b, a)):
                entry = alone["Table 5", row, head]
                assert entry.recomputed == pytest.approx(tau_b(found[a], found[b]), abs=1e-12)
                assert entry.printed == CELLS["Table 5", a, b]
        assert self.hits(found) == 52
        assert self.hits(means) == 45
        assert self.hits({**found, "COCO 1K R@1": column("Table 4", "COCO 1K R@1")}) == 44
        # The tie of PCME (CutMix) and VSE infty (WSL grid) broken, one way and the other.
        first, second = (MODELS.index(name) for name in ("PCME (CutMix)", "VSE infty (WSL grid)"))
        assert found["PMRP"][first] == found["PMRP"][second] == Decimal("57.65")
        for ahead, count in ((second, 55), (first, 50)):
            broken = list(found["PMRP"])
            broken[ahead] += Decimal("0.001")
            assert self.hits({**found, "PMRP": broken}) == count
        assert means["PMRP"][first] > means["PMRP"][second]


class TestPreferences:
    def votes(self, winner: str, loser: str) -> int:
        return int(number("Table D.1", winner, loser))

    def test_strengths_win_as_often_as_counted(self, alone: dict[tuple[str, str, str], Entry]) -> None:
        # At the likeliest strengths the expected wins of each are its wins: the equations they solve.
        p = {name: alone["Section 4.1, preference", name, "Bradley-Terry"].recomputed for name in RANKINGS}
        assert sum(p.values()) == pytest.approx(100)
        for a in RANKINGS:
            others = [b for b in RANKINGS if b != a]
            expected = sum((self.votes(a, b) + self.votes(b, a)) * p[a] / (p[a] + p[b]) for b in others)
            assert expected == pytest.approx(sum(self.votes(a, b) for b in others), rel=1e-6)

    def test_the_printed_strengths_belong_to_other_rows(
        self, alone: dict[tuple[str, str, str], Entry]
    ) -> None:
        for name, row in zip(RANKINGS, "CDABE", strict=True):
            printed = CELLS["Section 4.1, preference", name, "Bradley-Terry"]
            assert prints(alone["Section 4.1, preference", row, "Bradley-Terry"].recomputed, printed)

    def test_row_d_was_shown_as_e_for_three_captions(self) -> None:
        # Every pair was asked 40 x 8 = 320 times; for 3 captions D was E, and its 24 votes count so.
        lent = 3 * 8
        for a, b in combinations(RANKINGS, 2):
            extra = lent * ((b == "E") - ("D" in (a, b))) if (a, b) != ("D", "E") else -lent
            assert self.votes(a, b) + self.votes(b, a) == 320 + extra
        assert self.votes("E", "E") == lent
        assert sum(self.votes(a, b) for a in RANKINGS for b in RANKINGS) == 3200

    @pytest.mark.parametrize(
        ("row", "value"),
        [
            # The sum of n / place over the right ones among the first 8, divided by 8.
            ("(A) only top-1 is wrong", sum(Fraction(place - 1, place) for place in range(2, 9)) / 8),
            ("(B) only top-1 is correct", Fraction(1, 8)),
            ("(C) top-1 to 5 are wrong", (Fraction(1, 6) + Fraction(2, 7) + Fraction(3, 8)) / 8),
            ("(D) only top-5 is correct", Fraction(1, 5) / 8),
        ],
    )
    def test_rankings_of_eight(
        self, row: str, value: Fraction, alone: dict[tuple[str, str, str], Entry]
    ) -> None:
        entry = alone["Section 4.1, eight positives", row, "mAP@R"]
        assert entry.recomputed == pytest.approx(100 * float(value))
        assert prints(100 * value, entry.printed)
        marks = next(r.shown for table in PAPER.tables for r in table.rows if r.name == row)
        for k in (1, 5):
            recall = alone["Section 4.1, eight positives", row, f"R@{k}"]
            assert recall.recomputed == 100 * ("1" in (marks or "")[:k])
            assert recall.verdict is Verdict.SAME


class TestAnnotators:
    def test_bias_of_pvse_by_hand(self, alone: dict[tuple[str, str, str], Entry]) -> None:
        away = {
            model: abs(number("Table E.1a", model, "PVSE") - number("Table E.1a", model, "All"))
            for model in ANNOTATORS
        }
        others = [value for model, value in away.items() if model != "PVSE"]
        expected = {
            "Bias": sum(away.values()) / 5,
            "Self-bias": away["PVSE"],
            "Non-self-bias": sum(others) / 4,
        }
        for head, value in expected.items():
            entry = alone["Equation E.6", "PVSE", head]
            assert entry.recomputed == pytest.approx(float(value))
            assert entry.verdict is Verdict.SAME

    @pytest.mark.parametrize("table", ["Table E.1a", "Table E.1b"])
    def test_who_proposes_is_best_once_with_another(
        self, table: str, alone: dict[tuple[str, str, str], Entry]
    ) -> None:
        head = "Recall@1" if table.endswith("a") else "R-Precision"
        ties = []
        for name in (*ANNOTATORS, "All"):
            values = {model: number(table, model, name) for model in ANNOTATORS}
            best = [model for model, value in values.items() if value == max(values.values())]
            assert name in best or name == "All"
            entry = alone["Table E.1, best of each column", name, head]
            assert entry.verdict is Verdict.SAME
            assert entry.source == f"as printed: {table}, {name}: {' and '.join(best)}"
            ties += [name] if len(best) > 1 else []
        assert ties == (["CLIP"] if table == "Table E.1a" else [])

    def test_tables_e1_and_a1a_are_as_they_must_be(self) -> None:
        for a, b in combinations(ANNOTATORS, 2):
            assert CELLS["Table A.1a", a, b] == CELLS["Table A.1a", b, a]

    def test_sums_of_table_b1(self, alone: dict[tuple[str, str, str], Entry]) -> None:
        sums = [
            sum(int(text) for (table, _, head), text in CELLS.items() if (table, head) == ("Table B.1", name))
            for name in ("# Workers", "# Submit. HITs", "# Approv. HITs")
        ]
        assert sums == [970, 2969, 2162]
        found = {row: entry.recomputed for (table, row, _), entry in alone.items() if table == "Section B.2"}
        assert found == pytest.approx(
            {
                "workers": 970,
                "HITs submitted": 2969,
                "HITs approved": 2162,
                "HITs rejected": 807,
                "rejected, in per cent of those submitted": 100 * 807 / 2969,
                "rejected, in per cent of those approved": 100 * 807 / 2162,
                "HITs per worker": 2969 / 970,
            }
        )


class TestTranscription:
    """A slip of a digit is no share of whole numbers, or breaks a sum or an order."""

    @pytest.mark.parametrize("table", list(QUERIES))
    def test_recalls_are_shares_of_their_queries(self, table: str) -> None:
        eccv, cxc, coco = QUERIES[table]
        doubtful = []
        for model in MODELS:
            for head in ("ECCV R@1", "CxC R@1", *(f"COCO {n}K R@{k}" for n in (1, 5) for k in (1, 5, 10))):
                n = {"ECCV R@1": eccv, "CxC R@1": cxc}.get(head, coco)
                if not self.share(number(table, model, head), n):
                    doubtful.append((model, head))
                    assert self.share(number(table, model, head), 1331)
        assert doubtful == (
            [("ViLT (zero-shot)", "ECCV R@1"), ("ViLT", "ECCV R@1")] if table == "Table D.3" else []
        )

    @pytest.mark.parametrize("table", list(QUERIES))
    def test_more_places_find_more(self, table: str) -> None:
        for model in MODELS:
            at = {head: number(table, model, head) for _, row, head in CELLS if (_, row) == (table, model)}
            for task in ("COCO 1K", "COCO 5K"):
                assert at[f"{task} R@1"] < at[f"{task} R@5"] < at[f"{task} R@10"]
            for k in (1, 5, 10):
                assert at[f"COCO 5K R@{k}"] < at[f"COCO 1K R@{k}"]
            assert at["COCO 5K R@1"] < at["CxC R@1"]
            assert at["ECCV mAP@R"] < at["ECCV R-P"] < at["ECCV R@1"]

    def test_answers_and_errors_add_up_to_all(self) -> None:
        for rank in range(1, 6):
            for model in ANNOTATORS:
                whole = sum(
                    number("Table B.2", f"rank {rank}", f"{model}, {answer}")
                    for answer in ("Yes", "Weak yes", "Weak no", "No")
                )
                assert abs(whole - 100) <= Decimal("0.2")
        for table in ("Table B.3a", "Table B.3b"):
            for model in ANNOTATORS:
                parts = [
                    Decimal(text) for (name, row, _), text in CELLS.items() if (name, row) == (table, model)
                ]
                assert abs(sum(parts) - 100) <= Decimal("0.05") * len(parts)

    def test_tables_have_all_their_rows(self) -> None:
        assert len(MODELS) == 25
        for table in ("Table D.2", "Table D.3"):
            assert [row for name, row, head in CELLS if (name, head) == (table, "PMRP")] == MODELS

    def share(self, printed: Decimal, n: int) -> bool:
        k = round(printed * n / 100)
        return abs(Fraction(100 * k, n) - Fraction(printed)) <= Fraction(1, 200)


class TestRecipes:
    """What a slip in the paper's file gives."""

    def attempt(self, **said: object) -> Entry:
        table = PaperTable.model_validate(
            {"name": "T", "columns": [{"name": "c"}], "rows": [{"name": "PVSE", "cells": ["1"], **said}]}
        )
        (entry,) = _row(PAPER, table, table.rows[0], ReleasedFiles(None, {}))
        return entry

    def test_columns_that_do_not_fit(self) -> None:
        for said, words in (
            ({"recipe": "printed_best"}, "wrong number of printed columns; given: 0; allowed: 1"),
            (
                {"recipe": "in_sum", "formula": "a"},
                "wrong number of printed columns; given: 0; allowed: 1 or more",
            ),
            (
                {"recipe": "in_row", "of": ["Table 4, PMRP"], "formula": "a"},
                "no such row in the paper; given: PVSE",
            ),
            ({"recipe": "in_row"}, "the row has no 'formula'; given: PVSE"),
            ({"recipe": "preference", "of": ["Table D.1, A"]}, "not a table of preferences with this row"),
            (
                {"recipe": "annotator_bias", "of": ["Table 4, PMRP"], "against": ["Table 4, PMRP"]},
                "the annotator is none of the models; given: PMRP",
            ),
        ):
            with pytest.raises(DataError) as refused:
                self.attempt(**said)
            for part in words.split("; "):
                assert part in str(refused.value)

    def test_a_blank_is_no_part_of_a_mean(self) -> None:
        entry = self.attempt(
            recipe="printed_tau", of=["Table A.1b, PVSE", "Table A.1b, VSRN"], against=["Table E.1a, All"]
        )
        assert entry.source.endswith("(3 models)")
        # PCME, ViLT, CLIP: means 4.185, 5.49, 5.985 against 77.4, 72.4, 64.3.
        assert entry.recomputed == pytest.approx(-1.0)

    def test_a_number_between_two_printable_ones_is_shown_with_one_decimal_more(
        self, alone: dict[tuple[str, str, str], Entry]
    ) -> None:
        # (14.92 + 30.41) / 2 = 22.665.
        entry = alone["Table 4", "VSE0", "ECCV mAP@R"]
        assert (entry.printed, entry.rounded) == ("22.67", "22.665")


def test_the_paper_is_found_by_its_number() -> None:
    assert isinstance(PAPER, Paper)
    assert (PAPER.called, PAPER.questions["cxc"]) == ("ECCV Caption", ("eccv",))
