"""The whole ledger over the released files, computed once."""

import pickle
import subprocess
import sys

import pytest

from counterfoil.report.reproduction import all_papers

Cell = tuple[str, str, str]


def by_cell(entries, paper):
    """The entries of a paper by (table, row, column)."""
    return {(e.table, e.row, e.column): e for e in entries if e.name == paper}


def printed_cells(paper):
    """What a paper prints by (table, row, column), blanks left out."""
    return {
        (table.name, row.name, column.name): cell.printed
        for table in all_papers()[paper].tables
        for row in table.rows
        for column, cell in zip(table.columns, row.cells, strict=True)
        if cell.printed
    }


@pytest.fixture(scope="session")
def ledger(shared_data):
    """Made as users make it: without shape checks, which take ten times as long."""
    code = (
        "import pickle, sys; from pathlib import Path; from counterfoil.report.reproduction import reproduce;"
        "sys.stdout.buffer.write(pickle.dumps(reproduce(data=Path(sys.argv[1]))))"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(shared_data)]
    return pickle.loads(subprocess.run(command, check=True, capture_output=True).stdout)
