"""PAC-S in the ledger: its numbers against each other, and what Flickr8k's files and an example give."""

import json
import shutil
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from counterfoil.errors import CounterfoilError
from counterfoil.report.reproduction import Entry, Verdict, all_papers, reproduce, summary
from counterfoil.report.reproduction.paper import judge, parse
from counterfoil.scorers.captions import java

Cell = tuple[str, str, str]

PAPER = all_papers()["pac-s"]
CELLS = {
    (table.name, row.name, column.name): cell.printed
    for table in PAPER.tables
    for row in table.rows
    for column, cell in zip(table.columns, row.cells, strict=True)
    if cell.printed
}
NGRAM = ("BLEU-1", "BLEU-4", "ROUGE", "METEOR", "CIDEr", "SPICE")
README = "README of pacscore, Flickr8k"
EXAMPLE = "README of clipscore, example"
JAVA = shutil.which("java") is not None


def number(*cell: str) -> float:
    return parse(CELLS[cell[0], cell[1], cell[2]])[0]


def by_cell(entries: tuple[Entry, ...]) -> dict[Cell, Entry]:
    return {(e.table, e.row, e.column): e for e in entries}


@pytest.fixture(scope="module")
def ledger(shared_data: Path) -> dict[Cell, Entry]:
    pytest.importorskip("pycocoevalcap", reason="needs pycocoevalcap (extra java)")
    found = by_cell(reproduce(data=shared_data, papers=["PAC-S"]))
    java.close_all()
    return found


@pytest.fixture(scope="module")
def alone() -> dict[Cell, Entry]:
    """What comes out without any data."""
    return by_cell(reproduce(papers=["pac-s"]))


class TestPrint:
    def test_every_row_of_the_papers_tables_is_there(self) -> None:
        rows = {table.name: len(table.rows) for table in PAPER.tables}
        assert [rows[f"Table {n}"] for n in range(1, 9)] == [17, 15, 9, 16, 4, 12, 9, 12]
        # Rows by columns, less blanks: what other papers do not say, metrics that need references
        cells = Counter(table for table, _, _ in CELLS)
        assert [cells[f"Table {n}"] for n in range(1, 9)] == [
            *(17 * 4 - (2 + 2 + 3 + 3 + 3 + 3 + 2), 15 * 2 - 5, 9 * 6 - 7 * 2, 16 * 5),
            *(4, 12 * 3 - (1 + 1 + 2 + 1 + 2), 9 * 6 - 1, 4 * (6 + 3 + 9)),
        ]

    def test_the_released_digits_round_to_the_printed_ones_but_for_one(self) -> None:
        off = [
            (row, column)
            for (table, row, column) in CELLS
            if table == README
            and judge(CELLS["Table 1", row, column], number(table, row, column)) is not Verdict.SAME
        ]
        assert off == [("METEOR", "CF tau_b")]

    def test_what_the_metric_gains_is_what_it_has_more(self, alone: dict[Cell, Entry]) -> None:
        gains = [cell for cell in CELLS if "gains" in cell[0]]
        assert len(gains) == 8 + 4 + 6 + 10 + 2 + 6 + 36
        for cell in gains:
            assert alone[cell].verdict is Verdict.SAME
            table, row, column = cell
            if table.startswith("Table 8"):
                continue
            ours, _, others = row.partition(", over ")
            more = [
                number(table.removesuffix(", gains"), ours, column) - number(table[:7], other, column)
                for other in others.split(" and ")
                if (table[:7], other, column) in CELLS
            ]
            assert alone[cell].recomputed in [pytest.approx(each) for each in more]

    def test_means_of_table_4_are_means(self, alone: dict[Cell, Entry]) -> None:
        for row in (row.name for table in PAPER.tables if table.name == "Table 4" for row in table.rows):
            entry = alone["Table 4", row, "Mean"]
            four = [number("Table 4", row, column) for column in ("HC", "HI", "HM", "MM")]
            assert entry.recomputed == pytest.approx(np.mean(four))
            assert entry.verdict is Verdict.SAME

    def test_without_data_only_what_follows_from_print_is_there(self, alone: dict[Cell, Entry]) -> None:
        assert alone.keys() == CELLS.keys()
        found = {cell for cell, entry in alone.items() if entry.verdict is not Verdict.NO_DATA}
        over_cider = {cell for cell in CELLS if cell[1].startswith("PAC-S over CIDEr")}
        assert found == over_cider | {
            cell for cell in CELLS if "gains" in cell[0] or cell[0::2] == ("Table 4", "Mean")
        }
        assert all(entry.reason for cell, entry in alone.items() if cell not in found)
        asked = alone["Table 1", "BLEU-1", "Expert tau_b"]
        assert asked.reason == ("no folder of data was given; this needs its flickr8k/ExpertAnnotations.txt")


class TestReleasedFiles:
    @pytest.mark.parametrize("column", ["Expert tau_b", "Expert tau_c"])
    @pytest.mark.parametrize("row", ["BLEU-1", "BLEU-4", "ROUGE", "METEOR", "CIDEr"])
    def test_table_1_to_a_hundredth(self, ledger: dict[Cell, Entry], row: str, column: str) -> None:
        if row == "METEOR" and not JAVA:
            pytest.skip("needs Java")
        entry = ledger[README, row, column]
        assert entry.recomputed == pytest.approx(entry.value, abs=0.01)
        assert ledger["Table 1", row, column].verdict is Verdict.SAME
        metric = {"ROUGE": "rouge-l"}.get(row, row.lower())
        assert "Flickr8k.token.txt" in entry.source
        assert entry.source.endswith(f", metric:{metric}")

    def test_the_example(self, ledger: dict[Cell, Entry]) -> None:
        columns = ["BLEU-1", "BLEU-2", "BLEU-3", "BLEU-4", "ROUGE", "CIDEr", *(["METEOR"] if JAVA else [])]
        for column in columns:
            assert ledger[EXAMPLE, "good captions", column].verdict is Verdict.SAME

    def test_bigrams_of_the_example_by_hand(self, ledger: dict[Cell, Entry], shared_data: Path) -> None:
        # The two candidates have as many words as one of their references, or more: no penalty.
        folder = shared_data / "clipscore_example"
        good = json.loads((folder / "good_captions.json").read_text(encoding="utf-8"))
        known = json.loads((folder / "refs.json").read_text(encoding="utf-8"))
        right = [0, 0]
        total = [0, 0]
        for key, text in good.items():
            for n in (1, 2):
                grams = [grams_of(each, n) for each in known[key]]
                for gram, count in grams_of(text, n).items():
                    right[n - 1] += min(count, max(each[gram] for each in grams))
                    total[n - 1] += count
        one, two = (a / b for a, b in zip(right, total, strict=True))
        assert ledger[EXAMPLE, "good captions", "BLEU-1"].recomputed == pytest.approx(one, abs=1e-6)
        assert ledger[EXAMPLE, "good captions", "BLEU-2"].recomputed == pytest.approx(
            np.sqrt(one * two), abs=1e-6
        )

    def test_judgements_are_counted(self, ledger: dict[Cell, Entry], shared_data: Path) -> None:
        section = "Section 4.2, Flickr8k"
        text = (shared_data / "flickr8k" / "ExpertAnnotations.txt").read_text(encoding="utf-8")
        images = {line.split("\t")[0] for line in text.splitlines()}
        assert ledger[section, "expert annotations, in 1,000", "Number"].recomputed == 16.992
        entry = ledger[section, "different images", "Number"]
        assert entry.recomputed == len(images) == 1000
        assert (entry.verdict, entry.unexplained) == (Verdict.DIFFERS, False)
        assert ledger[section, "pairs of an image and a caption", "Number"].recomputed == 5664

    def test_what_is_not_there_is_named(self, ledger: dict[Cell, Entry]) -> None:
        counts = summary(ledger.values())
        assert counts["unexplained"] == 0
        assert counts["differs"] == 1
        assert ledger["Table 1", "CIDEr", "CF tau_b"].reason == (
            "flickr8k/CrowdFlowerAnnotations.txt is not in the folder of data"
        )
        assert "clip_ViT-B-32.pth" in ledger["Table 1", "PAC-S", "Expert tau_b"].reason
        assert ledger["Table 2", "CIDEr", "tau_b"].reason == "composite is not in the folder of data"

    def test_other_ratings_give_other_numbers_and_without_java_its_rows_say_so(
        self,
        ledger: dict[Cell, Entry],
        shared_data: Path,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        # Ratings of 1 to 4 turned round: what went with them goes against them.
        file = copy_flickr8k(shared_data, tmp_path)
        lines = [line.split("\t") for line in file.read_text(encoding="utf-8").splitlines()]
        turned = ["\t".join([*line[:2], *(str(5 - int(cell)) for cell in line[2:])]) for line in lines]
        file.write_text("\n".join(turned) + "\n", encoding="utf-8")
        monkeypatch.setenv("PATH", "")
        entries = by_cell(reproduce(data=tmp_path, papers=["PAC-S"]))
        for row in ("BLEU-1", "CIDEr"):
            entry, before = (each["Table 1", row, "Expert tau_b"] for each in (entries, ledger))
            assert entry.recomputed == pytest.approx(-(before.recomputed or 0))
            assert entry.unexplained
        for row in ("METEOR", "SPICE"):
            entry = entries["Table 1", row, "Expert tau_c"]
            assert entry.verdict is Verdict.NO_DATA
            assert entry.reason.startswith(f"metric:{row.lower()}: needs Java")

    def test_a_broken_file_is_an_error_that_names_it(self, shared_data: Path, tmp_path: Path) -> None:
        file = copy_flickr8k(shared_data, tmp_path)
        file.write_text(file.read_text(encoding="utf-8").replace("\t1", "\tone", 1), encoding="utf-8")
        with pytest.raises(CounterfoilError, match=r"ExpertAnnotations\.txt, line 1: .*given: .?one"):
            reproduce(data=tmp_path, papers=["PAC-S"])


def copy_flickr8k(data: Path, folder: Path) -> Path:
    """A folder of data with Flickr8k's files alone; gives the file of ratings."""
    shutil.copytree(data / "flickr8k", folder / "flickr8k", copy_function=shutil.copyfile)
    return folder / "flickr8k" / "ExpertAnnotations.txt"


def grams_of(text: str, n: int) -> Counter[tuple[str, ...]]:
    """How often each n-gram is in a caption of the example, whose only punctuation are full stops."""
    words = text.lower().replace(".", "").split()
    return Counter(zip(*(words[at:] for at in range(n)), strict=False))
