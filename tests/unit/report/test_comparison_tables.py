"""The tables' layout and numbers, on drawn benchmarks and against the papers' own tables."""

from dataclasses import replace

import numpy as np
import pytest

from counterfoil.benchmarks.forms import Quad
from counterfoil.report.comparison_tables import (
    by_group,
    differences,
    group_rows,
    groupings,
    overview,
    ranking,
)
from counterfoil.report.tables import written


def printed(table, name):
    row = next(row for row in table.rows if row.name == name)
    return [written(cell, column) for cell, column in zip(row.cells, table.columns, strict=True)]


def test_overview_has_chance_first_and_a_column_per_measure(quads):
    table = overview(quads)
    labels = [column.label for column in table.columns]
    assert labels == ["I2T", "T2I", "Group", "Ipos2T", "Ineg2T", "Tpos2I", "Tneg2I", "Group match"]
    assert table.blocks == (("Drawn & written", 3), ("finer measures", 5))
    assert [row.name for row in table.rows] == ["Random chance", "good", "poor & <tied>", "outcomes"]
    assert printed(table, "Random chance") == ["25.00"] * 2 + ["16.67"] + ["50.00"] * 5
    for run in quads.runs:
        # Averages of the per-question values, computed here.
        assert printed(table, run.name)[:3] == [
            f"{100 * run.items[name].mean():.2f}" for name in ("i2t", "t2i", "group")
        ]
    # Outcomes alone decide no group match.
    assert printed(table, "outcomes")[-1] == "–"


def test_benchmarks_stand_side_by_side_and_share_rows_by_name(quads, choices):
    table = overview(choices, quads, finer=False)
    assert table.blocks == (("Choices", 1), ("Drawn & written", 3))
    names = [run.name for comparison in (choices, quads) for run in comparison.runs]
    assert [row.name for row in table.rows] == ["Random chance", *names]
    assert printed(table, "scored")[1:] == ["–"] * 3
    assert printed(table, "good")[0] == "–"
    # One right caption of three.
    assert printed(table, "Random chance")[0] == "33.33"


def test_best_and_second_best_are_marked_by_what_is_printed(quads):
    table = overview(quads)
    for j, column in enumerate(table.columns):
        cells = [row.cells[j] for row in table.rows[1:] if row.cells[j].value is not None]
        values = [written(cell, column) for cell in cells]
        order = sorted({float(value) for value in values}, reverse=True)
        for cell, value in zip(cells, values, strict=True):
            expected = order.index(float(value)) + 1 if float(value) in order[:2] else 0
            assert cell.rank == expected
    assert all(cell.rank == 0 for cell in table.rows[0].cells)


def test_by_group_takes_the_official_grouping_and_the_groups_own_numbers(quads):
    table = by_group(quads)
    assert table.blocks == (("swap", 3), ("add", 3), ("replace", 3))
    labels = np.array(quads.runs[0].benchmark.questions.groupings["type"])
    for run in quads.runs:
        expected = [
            f"{100 * run.items[name][labels == group].mean():.2f}"
            for group in ("swap", "add", "replace")
            for name in ("i2t", "t2i", "group")
        ]
        assert printed(table, run.name) == expected
    assert [column.size for column in table.columns[::3]] == [14, 13, 13]
    assert by_group(quads, grouping="tag").blocks[0] == ("tag <1>", 3)


def test_without_groups_a_table_of_them_is_empty(quads):
    run = quads.runs[0]
    questions = replace(run.benchmark.questions, groupings={})
    bare = replace(run, benchmark=replace(run.benchmark, questions=questions))
    assert by_group(replace(quads, runs=(bare,))).columns == ()


def test_many_groups_stand_in_rows(quads):
    table = group_rows(quads, "group", grouping="tag")
    labels = np.array(quads.runs[0].benchmark.questions.groupings["tag"])
    assert len(table.rows) == len(set(labels) - {""})
    assert [column.label for column in table.columns] == [run.name for run in quads.runs]
    first = table.rows[0]
    mask = labels == "tag <1>"
    assert first.name == f"tag <1> ({mask.sum()})"
    assert [cell.value for cell in first.cells] == [
        pytest.approx(run.items["group"][mask].mean()) for run in quads.runs
    ]


def test_differences_say_who_is_ahead(quads):
    table = differences(quads, "group")
    value = {run.name: run.items["group"].mean() for run in quads.runs}
    assert len(table.rows) == 3
    for row in table.rows:
        a, b = row.name.split(" − ")
        assert row.cells[0].value == pytest.approx(value[a] - value[b])
        assert row.cells[0].low <= row.cells[0].value <= row.cells[0].high
        assert 0 < row.cells[1].value <= row.cells[2].value <= 1


def test_scorers_are_ranked_by_any_measure(quads):
    value = {run.name: run.items["t2i"].mean() for run in quads.runs}
    assert ranking(quads, "t2i") == sorted(value, key=lambda name: -value[name])


def test_a_label_of_two_groupings_is_told_apart():
    pairs = np.arange(6).reshape(3, 2)
    questions = Quad(
        ("a", "b", "c"),
        captions=pairs,
        images=pairs,
        groupings={"first": ("x", "y", ""), "second": ("", "x", "z"), "third": ("x", "", "")},
    )
    # "third" calls the same question "x" as "first" does, so it needs no name of its own.
    assert groupings(questions) == {"first": ("x", "y"), "second": ("second:x", "z"), "third": ("x",)}
    keys = {key for labels in groupings(questions).values() for key in labels}
    assert keys == set(questions.groups())
