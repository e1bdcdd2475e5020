"""Tables in writing: what is escaped, what is bold, and that LaTeX compiles."""

import csv
import io
import re
import shutil
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from counterfoil.report.comparison_tables import by_group, differences, overview
from counterfoil.report.tables import Cell, Column, Row, Table, to_csv, to_latex, to_markdown

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
    lines = to_markdown(table("first", "second", "third")).splitlines()
    assert lines == [
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
    found = {(row["model"], row["measure"]): row for row in rows}
    for run in quads.runs:
        for name, estimate in run.result.measures.items():
            row = found[run.name, name]
            assert (float(row["value"]), float(row["low"]), float(row["high"])) == (
                estimate.value,
                estimate.low,
                estimate.high,
            )
            assert int(row["n"]) == estimate.n
    assert float(found["Random chance", "group"]["value"]) == pytest.approx(1 / 6)
    assert ("outcomes", "group_match") not in found


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
    found = {row["model"] for row in rows} - {"Random chance"}
    assert found == {"'=HYPERLINK(1)", "'+1", "'-x", "'@SUM", "'\tx", "''-x", "plain"}
    below = Table("d", (Column("d", style="points"),), (Row("a", (Cell(-0.25),)),))
    assert next(csv.DictReader(io.StringIO(to_csv(below))))["value"] == "-0.25"
