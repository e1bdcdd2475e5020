"""Captioning systems, their metrics and people, as one HTML page that needs nothing else."""

from collections.abc import Sequence

from counterfoil.report import page_frame
from counterfoil.report.markup import Table


def systems_page(
    systems: Table,
    agreement: Sequence[Table],
    differences: Sequence[Table],
    notes: Sequence[str],
    *,
    title: str = "Captioning systems, metrics and people",
) -> str:
    """The page as HTML, the same for the same tables."""
    return page_frame.render(
        "systems.html",
        title=title,
        systems=systems,
        agreement=tuple(agreement),
        differences=tuple(differences),
        notes=tuple(notes),
    )
