"""The ledger: what the papers print, beside what this project computes from the data they released."""

from counterfoil.report.ledger.compute import files, reproduce
from counterfoil.report.ledger.entry import Basis, Entry, Verdict, by_basis, summary
from counterfoil.report.ledger.paper import all_papers

__all__ = ["Basis", "Entry", "Verdict", "all_papers", "by_basis", "files", "reproduce", "summary"]
