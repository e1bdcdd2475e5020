"""The end of a demo on a terminal: a table, and words that hang beside their marks, wide or narrow."""

import io

import pytest
from rich.console import Console

from counterfoil.cli.demo import show
from counterfoil.studies.demo import Study


def _shown(made: Study, width: int) -> str:
    console = Console(file=io.StringIO(), width=width, highlight=False)
    show(made, console)
    return console.file.getvalue()  # type: ignore[attr-defined]


@pytest.mark.parametrize("width", [60, 160])
def test_the_end_of_a_demo(made, width):
    lines = [line.rstrip() for line in _shown(made, width).splitlines()]
    assert max(map(len, lines)) <= width
    head = next(i for i, line in enumerate(lines) if line.startswith("model"))
    assert lines[head].split() == ["model", "I2T", "T2I", "group", "mixed", "choice", "mAP@R"]
    # Chance first, then the models; intervals where there is room for them.
    names = ["chance", "pretrained", "coco", "trohn-text", "trohn-img", "detectors", "trohn-img-detectors"]
    assert [line.split()[0] for line in lines[head + 1 : head + 1 + len(names)]] == names
    assert lines[head + 1].split()[1:6] == ["25.0", "25.0", "16.7", "16.7", "50.0"]
    assert (" to " in lines[head + 2]) == (width == 160)
    # Words are as far in as the claim they are of.
    claims = [i for i, line in enumerate(lines) if line.startswith(("✓", "✗", "?", "•"))]
    assert len(claims) == 7 + 2 + 4
    beside = [line for i, line in enumerate(lines) if i > claims[0] and i not in claims and line]
    assert all(line.startswith("  ") and line[2] != " " for line in beside)


@pytest.mark.slow
def test_what_was_found_is_said_in_full(fuller):
    words = " ".join(_shown(fuller, 60).split())
    assert (
        "networks of seed 0. Both pictures in one style; mixed: group where the second picture is synthetic."
        in words
    )
    assert "What follows is over seeds 0, 1." in words
    for each in fuller.findings:
        assert f"{each.claim} {each.verdict.capitalize()} in this run. {each.sentence}" in words
    for each in fuller.captions.findings:
        assert f"{each.claim} {each.verdict.capitalize()} in this run. {each.sentence}" in words
    assert "Caption metrics. The oracle, which knows what is shown, has a correlation of 1.0" in words
    assert fuller.order is not None
    assert fuller.order.sentence in words
    assert all(f"{each.question} {each.sentence}" in words for each in fuller.sweeps)
