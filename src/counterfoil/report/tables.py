"""Tables: declared once and written as text, Markdown, LaTeX and CSV; numbers and names in print."""

import csv
import io
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from counterfoil.evaluation.result import Estimate
from counterfoil.metrics.measures import find, signed
from counterfoil.store import csv_cell

#: "points" and "shift" are differences of percentages and of correlations, "score" is a number as it is.
Style = Literal["percent", "points", "correlation", "shift", "p", "score"]


@dataclass(frozen=True)
class Column:
    """One column. `block` is the heading of neighbours and `key` its name in files, `size` the number of
    questions, `signature` what its numbers depend on; `align` and `look` are for terminals.
    """

    label: str
    block: str = ""
    style: Style = "percent"
    measure: str = ""
    size: int | None = None
    key: str = ""
    signature: str = ""
    align: Literal["left", "center", "right"] = "right"
    look: Literal["", "bold", "dim", "first"] = ""


@dataclass(frozen=True)
class Cell:
    """One value, with its interval where there is one; `rank` is 1 for the best, 2 for the second best."""

    value: float | str | None = None
    low: float | None = None
    high: float | None = None
    n: int | None = None
    rank: int = 0

    @classmethod
    def of(cls, value: object, rank: int = 0) -> "Cell":
        """A number, a text, an `Estimate`, or (value, low, high); empty where there is none or it is NaN."""
        if isinstance(value, Cell):
            return value
        if isinstance(value, Estimate):
            value = (value.value, value.low, value.high, value.n)
        parts = value if isinstance(value, tuple) else (value,)
        first, low, high, n, *_ = (None if part != part else part for part in (*parts, None, None, None))
        return cls() if first is None else cls(first, low, high, n, rank)


@dataclass(frozen=True)
class Row:
    """One row: a model, or chance."""

    name: str
    cells: tuple[Cell, ...]
    kind: Literal["model", "chance"] = "model"


@dataclass(frozen=True)
class Table:
    """A table as a value, independent of its layout."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    corner: str = "Model"

    @classmethod
    def of(
        cls, caption: str, corner: str, columns: Iterable[Column | str], rows: Iterable[Sequence[object]]
    ) -> "Table":
        """A table of rows that are each a name and what `Cell.of` takes; a column may be its label alone."""
        return cls(
            caption,
            tuple(Column(head) if isinstance(head, str) else head for head in columns),
            tuple(Row(str(name), tuple(map(Cell.of, cells))) for name, *cells in rows),
            corner,
        )

    @property
    def heads(self) -> list[str]:
        """What stands over each column in a line: heading and label."""
        return [" ".join(filter(None, (column.block, column.label))) for column in self.columns]

    def cells(self, row: Row) -> Iterable[tuple[Cell, Column]]:
        """The cells of a row, each with its column."""
        return zip(row.cells, self.columns, strict=True)

    @property
    def blocks(self) -> tuple[tuple[str, int], ...]:
        """The headings over the columns, each with how many columns it spans."""
        return tuple((name, len(list(run))) for name, run in groupby(column.block for column in self.columns))


def written(cell: Cell, column: Column, *, interval: bool = False) -> str:
    """A cell in print: per cent and correlations with two decimals, p-values with three, a dash for nothing.

    >>> written(Cell(0.758268, 0.742, 0.7735), Column("I2T"), interval=True)
    '75.83 [74.20, 77.35]'
    >>> written(Cell(0.00004), Column("p", style="p")), written(Cell(), Column("I2T"))
    ('<0.001', '–')
    """
    if cell.value is None:
        return "–"
    if isinstance(cell.value, str):
        return cell.value
    if column.style == "p":
        return "<0.001" if cell.value < 0.001 else f"{cell.value:.3f}"
    text = number(cell.value, column.style)
    if interval and cell.low is not None and cell.high is not None:
        return f"{text} [{number(cell.low, column.style)}, {number(cell.high, column.style)}]"
    return text


def number(value: float, style: Style = "percent") -> str:
    """A ratio, a correlation or a difference of such times a hundred, without a unit.

    >>> number(-0.00002, "correlation"), number(0.25, "shift"), number(-0.25, "points")
    ('0.00', '+25.00', '−25.00')
    """
    if style == "score":
        return f"{value:.4f}".replace("-", "−")
    sign = "+" if style in ("points", "shift") else ""
    text = f"{100 * value:{sign}.2f}"
    # A minus as papers print it; what rounds to nothing has no sign.
    return text.replace("-", "−") if float(text) else text.lstrip("+-")


def plainly(value: float, column: Column) -> str:
    """A number in the unit of its column with all its digits, as scripts and CSV read it."""
    return f"{value if column.style in ('p', 'score') else 100 * value:.12g}"


def to_text(table: Table) -> str:
    """The table in plain text under its caption, every value with its interval, columns aligned.

    >>> row = Row("accuracy", (Cell(0.5, 0.4, 0.6), Cell(0.25)))
    >>> print(to_text(Table("blind:length on pairs", (Column("%"), Column("chance")), (row,), "measure")))
    blind:length on pairs
    measure                     %  chance
    accuracy  50.00 [40.00, 60.00]   25.00
    """
    rows = ([row.name, *(written(*cell, interval=True) for cell in table.cells(row))] for row in table.rows)
    lines = [[table.corner, *table.heads], *rows]
    first, *widths = (max(map(len, column)) for column in zip(*lines, strict=True))
    texts = ("  ".join([name.ljust(first), *map(str.rjust, cells, widths)]) for name, *cells in lines)
    return "\n".join([table.caption, *map(str.rstrip, texts)])


def least_width(table: Table) -> int:
    """Letters of the longest line where columns of text stand side by side, two blanks between them."""
    lines = [[table.corner, *(column.label for column in table.columns)]]
    lines += [[row.name, *(str(cell.value) for cell in row.cells)] for row in table.rows]
    rooms = (max(len(part) for text in of for part in text.split("\n")) for of in zip(*lines, strict=True))
    return sum(rooms) + 2 * len(table.columns)


def to_markdown(table: Table) -> str:
    """The table in Markdown under its caption, with intervals: best in bold, second best in italics."""
    marks: dict[int, Callable[[str], str]] = {1: "**{}**".format, 2: "*{}*".format}
    heads = list(map(_escape_markdown, table.heads))
    lines = [
        *(_escape_markdown(table.caption), ""),
        "| " + " | ".join([_escape_markdown(table.corner), *heads]) + " |",
        "| " + " | ".join([":---", *("---:" for _ in heads)]) + " |",
    ]
    for row in table.rows:
        cells = [
            marks.get(cell.rank, str)(written(cell, column, interval=True))
            for cell, column in table.cells(row)
        ]
        lines.append("| " + " | ".join([_escape_markdown(row.name), *cells]) + " |")
    return "\n".join(lines) + "\n"


def to_latex(table: Table) -> str:
    """A LaTeX float in the style of the papers, best in bold, second best underlined; needs booktabs and
    multirow. Unicode outside Latin script needs XeLaTeX or LuaLaTeX.
    """
    marks: dict[int, Callable[[str], str]] = {1: r"\textbf{{{}}}".format, 2: r"\underline{{{}}}".format}
    headed = any(name for name, _ in table.blocks)
    ranked = any(cell.rank for row in table.rows for cell in row.cells)
    legend = " Bold for best, underline for second best." if ranked else ""
    lines = [
        "% needs \\usepackage{booktabs,multirow}",
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_escape_latex(table.caption)}{legend}}}",
        rf"\begin{{tabular}}{{l{'r' * len(table.columns)}}}",
        r"\toprule",
    ]
    corner = _escape_latex(table.corner)
    if headed:
        spans, rules, col = [], [], 2
        for name, width in table.blocks:
            spans.append(rf"\multicolumn{{{width}}}{{c}}{{{_escape_latex(name)}}}")
            if name:
                rules.append(rf"\cmidrule(lr){{{col}-{col + width - 1}}}")
            col += width
        lines += [rf"\multirow{{2}}{{*}}{{{corner}}} & " + " & ".join(spans) + r" \\", " ".join(rules)]
    heads = [_escape_latex(column.label) for column in table.columns]
    for col, (head, column) in enumerate(zip(heads, table.columns, strict=True)):
        # The four single directions carry their "pos" and "neg" as subscripts, as the paper prints them.
        if column.measure in ("ipos2t", "ineg2t", "tpos2i", "tneg2i"):
            heads[col] = rf"{head[0]}\textsubscript{{{head[1:4]}}}{head[4:]}"
    lines += [" & ".join(["" if headed else corner, *heads]) + r" \\", r"\midrule"]
    for row in table.rows:
        cells = []
        for cell, column in table.cells(row):
            cells.append(marks.get(cell.rank, str)(_escape_latex(written(cell, column))))
            whole = _escape_latex(written(cell, column, interval=True))
            if cell.low is not None and "[" in whole:
                # Small, so that a table of several columns still fits a page.
                cells[-1] += rf" {{\scriptsize {whole[whole.index('[') :]}}}"
        name = _escape_latex(row.name)
        # What follows the end of the row before is its option, were it not for the braces.
        name = f"{{}}{name}" if name.startswith(("[", "*")) else name
        lines.append(" & ".join([name, *cells]) + r" \\")
        if row.kind == "chance" and row is not table.rows[-1]:
            lines.append(r"\midrule")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}", ""])


def to_csv(*tables: Table) -> str:
    """One line per number at full precision (in [0, 1]; correlations in [-1, 1]), with interval and count."""
    lines: list[list[object]] = [["model", "of", "measure", "column", "value", "low", "high", "n"]]
    for table in tables:
        for row in table.rows:
            for cell, column in table.cells(row):
                if cell.value is not None:
                    numbers = ("" if v is None else v for v in (cell.value, cell.low, cell.high, cell.n))
                    of = column.key or column.block
                    lines.append([row.name, of, column.measure, column.label, *numbers])
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerows([csv_cell(cell) if isinstance(cell, str) else cell for cell in line] for line in lines)
    return out.getvalue()


def _escape_markdown(text: str) -> str:
    """Text that Markdown prints as it is: no emphasis, link, formula, entity or end of the cell."""
    for mark in "\\`*_[]<>|#~$&":
        text = text.replace(mark, f"\\{mark}")
    return " ".join("".join(mark for mark in text if mark.isprintable() or mark.isspace()).split())


_LATEX = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "–": "--",
    "−": r"$-$",
    # The letters of correlations, which text fonts of LaTeX lack.
    "τ": r"$\tau$",
    "ρ": r"$\rho$",
}


def _escape_latex(text: str) -> str:
    """Text that LaTeX prints as it is.

    >>> _escape_latex("50% of A_B & {C} ~ x^2")
    '50\\\\% of A\\\\_B \\\\& \\\\{C\\\\} \\\\textasciitilde{} x\\\\textasciicircum{}2'
    """
    return "".join(_LATEX.get(mark, mark) for mark in " ".join(text.split()) if mark.isprintable())


def measure_label(name: str, default: str | None = None) -> str:
    """The label of a measure in print; of a name that is none, `default` or the name itself.

    >>> measure_label("i2t_recall_at_5"), measure_label("group_match"), measure_label("loss")
    ('I2T R@5', 'Group match', 'loss')
    """
    measure = find(name)
    return measure.label if measure is not None else name if default is None else default


def measure_meaning(name: str, form: str = "") -> str:
    """One line on a measure of a form of question, by default the first that has it; empty where none is.

    >>> measure_meaning("t2i_recall_at_1")
    'a right answer comes first; each caption looks for its images'
    """
    measure = find(name, form)
    return "" if measure is None else measure.meaning


def style_of(measure: str, *, difference: bool = False) -> Style:
    """How the values of a measure, or differences of them, are written.

    >>> style_of("accuracy"), style_of("spearman"), style_of("spearman", difference=True)
    ('percent', 'correlation', 'shift')
    """
    if signed(measure):
        return "shift" if difference else "correlation"
    return "points" if difference else "percent"


def unit(measures: Iterable[str]) -> str:
    """What stands over a column of values: per cent, or times a hundred for correlations."""
    return "x 100" if any(map(signed, measures)) else "%"


#: What a benchmark's groupings are called after "by".
_GROUPINGS = {
    "type": "kind of change",
    "subset": "kind of change and what is changed",
    "collapsed": "what is swapped",
    "preds": "number of main predicates",
    "visual": "visual tag",
    "tag": "linguistic tag",
    "relation_kept": "relation",
    "attributes_kept": "attributes",
    "source": "source of the captions",
    "category": "category of the pair",
    "sampling": "how pairs were drawn",
    "things": "number of things shown",
    "motion": "motion",
}
_SHORTENED = {"obj": "object", "att": "attribute", "rel": "relation"}


def group(key: str) -> str:
    """What a group of questions is called in print, from the key under which a result holds it.

    Names that benchmarks' authors print stay as they are; a name made for files becomes words.

    >>> group("replace_obj"), group("Adjective-Color (3-way swap)"), group("visual:Series")
    ('replace object', 'Adjective-Color (3-way swap)', 'Series (visual tag)')
    """
    of, colon, label = key.partition(":")
    if colon and of in _GROUPINGS:
        return f"{group(label)} ({grouping(of)})"
    if not re.fullmatch(r"[a-z0-9]+(_[a-z0-9]+)+", key):
        return key
    return " ".join(_SHORTENED.get(word, word) for word in key.split("_"))


def grouping(name: str) -> str:
    """What a division of a benchmark's questions is called behind "by".

    >>> grouping("collapsed"), grouping("visual_any_series"), grouping("photographer")
    ('what is swapped', 'visual any series', 'photographer')
    """
    return _GROUPINGS.get(name) or group(name)


def amount(number: int, noun: str) -> str:
    """A number with its noun, which is given in the singular; commas between thousands.

    >>> amount(1, "image"), amount(0, "true pair"), amount(12_000, "query"), amount(2, "image with captions")
    ('1 image', '0 true pairs', '12,000 queries', '2 images with captions')
    """
    head, with_, rest = noun.partition(" with ")
    if number != 1:
        head = head[:-1] + "ies" if head.endswith("ry") else head + "s"
    return f"{number:,} {head}{with_}{rest}"


def listed(names: Sequence[str]) -> str:
    """Names as a sentence has them.

    >>> listed(["a", "b", "c"])
    'a, b and c'
    """
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}" if names else ""


def duration(seconds: float) -> str:
    """Seconds in words, no more exact than an estimate is.

    >>> duration(0.2), duration(8.2), duration(83), duration(840), duration(9000)
    ('1 s', '10 s', '1 min 20 s', '14 min', '2.5 h')
    """
    tens = round(seconds / 10)
    if tens < 6:
        return f"{10 * tens or max(1, round(seconds))} s"
    minutes, rest = divmod(tens, 6)
    if minutes >= 90:
        return f"{seconds / 3600:,.1f} h"
    return f"{minutes} min" + (f" {10 * rest} s" if rest and minutes < 10 else "")


def short(name: str, most: int = 22) -> str:
    """A name that fits; the middle goes, since both ends of a checkpoint's name tell more."""
    if len(name) <= most:
        return name
    head = (most - 1) // 2
    return f"{name[:head]}…{name[len(name) - (most - 1 - head) :]}"
