"""The ledger: what the papers print, beside what this project computes from the data they released."""

from counterfoil.report.ledger.compute import reproduce
from counterfoil.report.ledger.entry import Entry, Verdict, summary
from counterfoil.report.ledger.paper import all_papers

__all__ = ["Entry", "Verdict", "all_papers", "reproduce", "summary"]
