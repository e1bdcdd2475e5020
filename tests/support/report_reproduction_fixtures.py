"""The whole ledger over the released files, computed once."""

import functools
import os
import pickle
import subprocess
import sys

import pytest

from counterfoil.report.reproduction import all_papers
from made_once import made_once

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


def save_ledger(folder, shared_data, **variables):
    """The ledger as users make it: without shape checks, which take ten times as long."""
    code = (
        "import pickle, sys; from pathlib import Path; from counterfoil.report.reproduction import reproduce;"
        "Path(sys.argv[2]).write_bytes(pickle.dumps(reproduce(data=Path(sys.argv[1]))))"
    )
    command = [sys.executable, "-W", "error", "-c", code, str(shared_data), str(folder / "entries")]
    subprocess.run(command, check=True, capture_output=True, env=os.environ | variables)
    return pickle.loads((folder / "entries").read_bytes())


@pytest.fixture(scope="session")
def ledger(shared_data, tmp_path_factory):
    """Without Java: METEOR of five numbers takes four times as long as all else."""
    make = functools.partial(save_ledger, shared_data=shared_data, PATH="")
    return pickle.loads((made_once(tmp_path_factory, "ledger", make) / "entries").read_bytes())
