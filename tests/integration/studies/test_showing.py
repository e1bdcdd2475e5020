"""The end of a demo on a terminal: a table per benchmark, and what was found in full."""

import io

from rich.console import Console

from counterfoil.cli.show import show_study


def test_what_was_found_is_said_in_full(made):
    console = Console(file=io.StringIO(), width=60, highlight=False)
    show_study(made, console)
    words = " ".join(console.file.getvalue().split())  # type: ignore[attr-defined]
    assert "Networks of seed 0." in words
    for finding in [*made.findings, *made.captions.findings]:
        assert f"{finding.claim} {finding.verdict.capitalize()} in this run. {finding.sentence}" in words
    assert "Caption metrics. The oracle, which knows what is shown, has a correlation of 1.0" in words
    assert made.order is not None
    assert made.order.sentence in words
