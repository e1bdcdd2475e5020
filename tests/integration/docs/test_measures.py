"""The table of measures in the documentation, which is that of the registry."""

import os
from pathlib import Path

from counterfoil.metrics.measure import FORMS, Measure
from counterfoil.metrics.measures import every

PAGE = Path(__file__).resolve().parents[3] / "docs" / "measures.md"


def row(measure: Measure) -> str:
    cells = (f"`{measure.name}`", measure.label, measure.chance.replace("*", "\\*"), measure.meaning)
    return f"| {' | '.join(cells)} |"


def tables() -> str:
    """A table per form of question."""
    lines = []
    for form in FORMS:
        lines += [f"## {form.capitalize()}", "", "| name | label | chance | meaning |", f"|{' --- |' * 4}"]
        lines += [*(row(measure) for measure in every() if measure.form == form), ""]
    return "\n".join(lines).rstrip() + "\n"


def test_the_page_has_all_measures() -> None:
    text = PAGE.read_text(encoding="utf-8")
    head = text.partition("## ")[0]
    if os.environ.get("COUNTERFOIL_GOLDENS") == "write":
        PAGE.write_text(head + tables(), encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == head + tables()
