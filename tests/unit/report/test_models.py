"""Each scorer by itself: its groups are those of its result, and its worst questions those of its arrays."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.report.forms import WORST
from counterfoil.report.html import shareable, shared
from counterfoil.report.page import page, scorer_sections


def test_groups_are_those_of_the_result(quads):
    for run, model in zip(quads.runs, scorer_sections(quads, "b-x", captions=True), strict=True):
        by_name = {row.name: row for row in model.groups.rows}
        assert {"all questions", "swap", "add", "replace"} <= set(by_name)
        groups = {"all questions": run.result.measures, **run.result.groups}
        for name in ("all questions", "swap", "add"):
            for column, cell in zip(model.groups.columns[1:], by_name[name].cells[1:], strict=True):
                e = groups[name][column.measure]
                assert (cell.value, cell.low, cell.high) == (e.value, e.low, e.high)


def test_worst_questions_are_the_most_wrong_ones(quads, galleries):
    run = quads.runs[0]
    s = run.answers.values
    # The smaller true score of each question less the larger false one, row by row and column by column.
    gaps = np.min([s[:, i, i] - s[:, j, k] for i in (0, 1) for j, k in ((0, 1), (1, 0))], axis=0)
    worst = scorer_sections(quads, "b-x", captions=True)[0].worst
    expected = [f"q{q}" for q in np.argsort(gaps, kind="stable")[:WORST] if gaps[q] <= 0]
    assert [id for id, *_ in worst] == expected
    assert f"{-gaps.min():.4g}" in worst[0][1]
    assert all(len(captions) == 2 for _, _, captions, _ in worst)
    closed = scorer_sections(quads, "b-x", captions=False)[0]
    assert not any(captions for _, _, captions, _ in closed.worst)
    outcomes = scorer_sections(quads, "b-x", captions=True)[2].worst
    items = quads.runs[2].items
    choices = ("ipos2t", "ineg2t", "tpos2i", "tneg2i")
    wrong = [sum(items[name][int(id[1:])] < 1 for name in choices) for id, *_ in outcomes]
    assert wrong == sorted(wrong, reverse=True)
    assert [how for _, how, *_ in outcomes] == [f"wrong in {n} of 4 choices" for n in wrong]
    late = scorer_sections(galleries, "b-y", captions=True)[0].worst
    numbers = [int(how.rsplit(" ", 1)[1].replace(",", "")) for _, how, *_ in late]
    assert numbers == sorted(numbers, reverse=True)
    assert numbers[-1] > 1


def renamed(comparison, names, **more):
    """The comparison with other names, and other facts of its runs."""
    runs = tuple(replace(run, name=names[run.name], **more) for run in comparison.runs)
    differences = tuple(replace(d, a=names[d.a], b=names[d.b]) for d in comparison.differences)
    return replace(comparison, runs=runs, baseline=None, differences=differences)


@pytest.mark.usefixtures("undrawn")
def test_nothing_private_is_anywhere_on_the_page(quads):
    manifest = {
        "command": ["counterfoil", "evaluate", "given:/home/jane/my data/clip.csv", "--out=/home/jane/runs"],
        "benchmark": {"path": "/Users/jane/data", "source": "C:\\Users\\jane\\x.csv"},
        "note": "written by jane in ~/somewhere/deep/a.json; see https://example.org/a/b",
    }
    names = {run.name: f"given:/home/jane/{run.name}" for run in quads.runs}
    comparison = renamed(quads, names, manifest=manifest)
    text = page([comparison])
    for private in ("jane", "/home", "Users", "my data", "somewhere"):
        assert private not in text, private
    assert "given:…/good" in text
    assert "https://example.org/a/b" in text
    assert "/home/jane/my data/clip.csv" in page([comparison], private=True)


def test_scorers_that_only_differ_in_what_is_left_out_are_numbered(quads):
    places = ("/a/b/clip", "/a/c/clip", "other")
    found = shared(renamed(quads, dict(zip((run.name for run in quads.runs), places, strict=True))))
    assert [run.name for run in found.runs] == ["…/clip", "…/clip (2)", "other"]
    assert {name for d in found.differences for name in (d.a, d.b)} == {run.name for run in found.runs}


@pytest.mark.parametrize(
    "text", ["runs/clip", "MIT / Apache", "open-clip:ViT-B-32/openai", "a: 3/4", "/", "and/or"]
)
def test_what_is_no_path_of_a_machine_stays(text):
    assert shareable(text) == text
