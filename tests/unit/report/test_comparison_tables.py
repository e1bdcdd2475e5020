"""Tables of comparisons: layout and numbers, and how they are written."""

import csv
import io
import re
import shutil
import subprocess
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, strategies as st

from counterfoil.benchmarks.forms import Quad
from counterfoil.report.comparison_tables import (
    by_group,
    differences,
    group_rows,
    groupings,
    overview,
    ranking,
)
from counterfoil.report.tables import Cell, Column, Row, Table, to_csv, to_latex, to_markdown, written


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
            assert cell.rank == (order.index(float(value)) + 1 if float(value) in order[:2] else 0)
    assert all(cell.rank == 0 for cell in table.rows[0].cells)


def test_by_group_takes_the_official_grouping_and_the_groups_own_numbers(quads):
    table = by_group(quads)
    assert table.blocks == (("swap", 3), ("add", 3), ("replace", 3))
    labels = np.array(quads.runs[0].benchmark.questions.groupings["type"])
    for run in quads.runs:
        cells = ((group, name) for group in ("swap", "add", "replace") for name in ("i2t", "t2i", "group"))
        expected = [f"{100 * run.items[name][labels == group].mean():.2f}" for group, name in cells]
        assert printed(table, run.name) == expected
    assert [column.size for column in table.columns[::3]] == [14, 13, 13]
    assert by_group(quads, grouping="tag").blocks[0] == ("tag <1>", 3)
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


def test_differences_say_who_is_ahead_and_models_are_ranked_by_any_measure(quads):
    table = differences(quads, "group")
    value = {run.name: run.items["group"].mean() for run in quads.runs}
    assert len(table.rows) == 3
    for row in table.rows:
        a, b = row.name.split(" − ")
        assert row.cells[0].value == pytest.approx(value[a] - value[b])
        assert row.cells[0].low <= row.cells[0].value <= row.cells[0].high
        assert 0 < row.cells[1].value <= row.cells[2].value <= 1
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
    assert {key for labels in groupings(questions).values() for key in labels} == set(questions.groups())


HOSTILE = (r"\input{/etc/passwd}", "[9cm]", "*x", "a|b", "$x^2$", "</script>", "&lt;", "~~y~~", "a\x1b[31m")
NAMES = st.sampled_from(HOSTILE) | st.text(
    st.characters(min_codepoint=32, max_codepoint=0x24F, exclude_categories=["Cc", "Cf"]), min_size=1
)


def table(*names):
    """Two columns under one heading, and one row per name; the first is best."""
    columns = (Column("I2T", "BiVLC", measure="i2t"), Column("Ipos2T", "BiVLC", measure="ipos2t"))
    rows = [Row("Random chance", (Cell(0.25), Cell(0.5)), "chance")]
    rows += [
        Row(name, (Cell(0.9 - 0.1 * i, 0.8 - 0.1 * i, 0.95 - 0.1 * i, 40, min(i + 1, 3) % 3), Cell()))
        for i, name in enumerate(names)
    ]
    return Table("Results on A & B.", columns, tuple(rows))


def test_markdown_has_one_line_per_row_and_marks_the_best():
    assert to_markdown(table("first", "second", "third")).splitlines() == [
        "Results on A \\& B.",
        "",
        "| Model | BiVLC I2T | BiVLC Ipos2T |",
        "| :--- | ---: | ---: |",
        "| Random chance | 25.00 | 50.00 |",
        "| first | **90.00 [80.00, 95.00]** | – |",
        "| second | *80.00 [70.00, 85.00]* | – |",
        "| third | 70.00 [60.00, 75.00] | – |",
    ]


@given(NAMES)
def test_no_name_breaks_a_markdown_row(name):
    row = to_markdown(table(name)).splitlines()[5]
    assert len(re.findall(r"(?<!\\)(?:\\\\)*\|", row)) == 4
    assert not re.search(r"(?<!\\)[$~&<`]|\x1b", row)


def test_latex_is_laid_out_as_the_papers_do():
    text = to_latex(table("CLIP_COCO", "50% & more", "τ −3 ρ"))
    assert r"$\tau$ $-$3 $\rho$" in text
    assert r"\multirow{2}{*}{Model} & \multicolumn{2}{c}{BiVLC} \\" in text
    assert r"\cmidrule(lr){2-3}" in text
    assert r" & I2T & I\textsubscript{pos}2T \\" in text
    assert "Random chance & 25.00 & 50.00 \\\\\n\\midrule" in text
    assert r"CLIP\_COCO & \textbf{90.00} {\scriptsize [80.00, 95.00]} & -- \\" in text
    assert r"50\% \& more & \underline{80.00} {\scriptsize [70.00, 85.00]} & -- \\" in text
    assert text.index(r"\toprule") < text.index(r"\midrule") < text.index(r"\bottomrule")
    assert r"\caption{Results on A \& B. Bold for best, underline for second best.}" in text


@given(NAMES)
def test_every_special_character_of_a_name_is_escaped_in_latex(name):
    row = to_latex(table(name)).split("\\midrule\n")[2]
    # Braces keep a bracket or a star from being an option of the row before.
    assert not row.startswith(("[", "*"))
    cell = re.sub(r"^\{\}(?=[\[*])", "", row.split(r" & \textbf")[0].split(" & 90.00")[0])
    cell = re.sub(r"\\text(backslash|asciitilde|asciicircum|less|greater|bar)\{\}|\$-\$", "", cell)
    assert not re.search(r"(?<!\\)[&%$#_{}~^<>|]|\\input|\x1b", cell)


def test_csv_holds_full_precision_between_0_and_1(quads):
    rows = list(csv.DictReader(io.StringIO(to_csv(overview(quads)))))
    result = {(row["model"], row["measure"]): row for row in rows}
    for run in quads.runs:
        for name, estimate in run.result.measures.items():
            row = result[run.name, name]
            ends = tuple(float(row[end]) for end in ("value", "low", "high"))
            assert ends == (estimate.value, estimate.low, estimate.high)
            assert int(row["n"]) == estimate.n
    assert float(result["Random chance", "group"]["value"]) == pytest.approx(1 / 6)
    assert ("outcomes", "group_match") not in result


def test_latex_compiles(quads, choices, tmp_path):
    if shutil.which("pdflatex") is None:
        pytest.skip("no pdflatex: install it (Debian: texlive-latex-extra)")
    hostile = table('a_b & 50% {x} ~ $y$ #1 ^2 \\emph <é> |"–"', "second")
    tables = [overview(quads, choices), by_group(quads), differences(quads, "group"), hostile]
    body = "\n".join(to_latex(one) for one in tables)
    head = "\\documentclass{article}\\usepackage{booktabs,multirow}\\begin{document}\n"
    (tmp_path / "t.tex").write_text(head + body + "\\end{document}\n", encoding="utf-8")
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "t.tex"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    assert done.returncode == 0, done.stdout.decode("utf-8", "replace")[-2000:]
    assert (tmp_path / "t.pdf").stat().st_size > 10_000


def test_csv_holds_no_formula_and_numbers_stay_numbers():
    names = ["=HYPERLINK(1)", "+1", "-x", "@SUM", "\tx", "'-x", "plain"]
    rows = list(csv.DictReader(io.StringIO(to_csv(table(*names)))))
    result = {row["model"] for row in rows} - {"Random chance"}
    assert result == {"'=HYPERLINK(1)", "'+1", "'-x", "'@SUM", "'\tx", "''-x", "plain"}
    below = Table("d", (Column("d", style="points"),), (Row("a", (Cell(-0.25),)),))
    assert next(csv.DictReader(io.StringIO(to_csv(below))))["value"] == "-0.25"
