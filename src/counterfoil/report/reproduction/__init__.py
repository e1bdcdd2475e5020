"""The ledger: what the papers print, beside what this project computes from the data they released."""

from counterfoil.report.reproduction.compute import files, reproduce
from counterfoil.report.reproduction.paper import Basis, Entry, Verdict, all_papers, by_basis, summary

__all__ = ["Basis", "Entry", "Verdict", "all_papers", "by_basis", "files", "reproduce", "summary"]
