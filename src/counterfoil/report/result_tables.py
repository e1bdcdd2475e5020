"""The result of one run as a table with lines below it, by form of question: for terminals and notebooks."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Forms
from counterfoil.evaluation.evaluate import main_measures
from counterfoil.evaluation.result import Estimate, Result
from counterfoil.metrics.measures import DIRECTIONS, split_direction
from counterfoil.report.labels import amount, measure_label, style_of, unit
from counterfoil.report.notes import fitted_ties, of_gallery
from counterfoil.report.tables import Column, Table, least_width, number


class ResultTable:
    """The table of a result, of any form; the report of a form of another package is one too."""

    def amount(self, benchmark: Benchmark) -> str:
        """How many questions there are, in words."""
        return amount(len(benchmark), "question")

    def table(self, result: Result, benchmark: Benchmark, width: int) -> Table:
        """The measures of one result, a row each, at most `width` letters wide; no value is a dash."""
        columns = (
            Column(unit([*result.measures, *result.undefined]), look="bold"),
            Column("95 % interval", align="center"),
            Column("chance", look="dim"),
        )
        rows = []
        for name, e in result.measures.items():
            style = style_of(name)
            value, low, high = (number(end, style) for end in (e.value, e.low, e.high))
            chance = "" if e.chance is None else number(e.chance, style)
            rows.append((name, value, f"[{low}, {high}]", chance))
        rows += [(name, "–", "", "") for name in result.undefined]
        title = f"{result.scorer} on {benchmark.title}, {self.amount(benchmark)}"
        return Table.of(title, "measure", columns, rows)

    def lines(self, result: Result) -> list[str]:
        """Lines below that table: why a measure has no value."""
        return [f"{name}: {why}" for name, why in result.undefined.items()]


class StatementResult(ResultTable):
    """Statements: the threshold that was chosen, and how well people agree."""

    def amount(self, benchmark: Benchmark) -> str:
        measured = benchmark.statements.measured
        text = amount(int(measured.sum()), "statement")
        return text if measured.all() else f"{text}, {int((~measured).sum()):,} more for a threshold"

    def lines(self, result: Result) -> list[str]:
        threshold, agreed = result.provenance.get("threshold"), result.provenance.get("agreement")
        lines = super().lines(result)
        if threshold:
            lines.append(
                f"fitted threshold: {threshold_range(threshold)}, of highest balanced accuracy over "
                f"{threshold['chosen_on']}"
            )
        if agreed:
            lines.append(
                f"people who judged {amount(agreed['statements'], 'statement')} agree with Fleiss' kappa "
                f"{agreed['fleiss_kappa']:.3f}"
            )
        return lines


class GalleryResult(ResultTable):
    """Galleries: directions side by side."""

    def table(self, result: Result, benchmark: Benchmark, width: int) -> Table:
        rows: dict[str, dict[str, Estimate]] = {}
        for name, estimate in result.measures.items():
            side, base = split_direction(name)
            rows.setdefault(base, {})[side] = estimate
        title = f"{result.scorer} on {benchmark.title}, per cent with 95 % intervals"
        drawn = [_directions_table(title, rows, *layout) for layout in _LAYOUTS]
        return next((table for table in drawn if least_width(table) <= width), drawn[-1])

    def lines(self, result: Result) -> list[str]:
        facts = result.provenance.get("gallery", {})
        if not facts:
            return []
        parts = f", the mean over {facts['parts']} parts" if facts["parts"] > 1 else ""
        first = (
            f"{facts['i2t']['queries']:,} of {facts['images']:,} images and {facts['t2i']['queries']:,} of "
            f"{facts['captions']:,} captions are queries{parts}"
        )
        return [first, *(note.text for note in of_gallery(result))]


class RatedResult(ResultTable):
    """Ratings: the threshold of ties that was fitted."""

    def amount(self, benchmark: Benchmark) -> str:
        ratings = int((~np.isnan(benchmark.rated.ratings)).sum())
        return f"{amount(len(benchmark), 'caption')}, {amount(ratings, 'rating')}"

    def lines(self, result: Result) -> list[str]:
        return [*super().lines(result), *(note.text for note in fitted_ties([result]))]


#: The table of a result by the form's name.
RESULTS: Forms[ResultTable] = Forms(
    {
        **dict.fromkeys(
            ("quad", "choice", "paraphrase", "preference"), "counterfoil.report.result_tables:ResultTable"
        ),
        "statement": "counterfoil.report.result_tables:StatementResult",
        "gallery": "counterfoil.report.result_tables:GalleryResult",
        "rated": "counterfoil.report.result_tables:RatedResult",
    },
    "report",
)


def reported_groups(result: Result, benchmark: Benchmark) -> Table | None:
    """One row per group of the groupings that the benchmark's authors report by; None of more than forty."""
    wanted = benchmark.card.groupings or tuple(benchmark.questions.groupings)
    labels = {label for name in wanted for label in benchmark.questions.groupings.get(name, ())}
    groups = [label for label, of in result.groups.items() if of and label.rpartition(":")[2] in labels]
    if not groups or len(groups) > 40:
        return None
    columns = []
    for name in (name for name in main_measures(benchmark) if name in result.measures):
        head = f"{name} %" if style_of(name) == "percent" else measure_label(name)
        columns.append(Column(head, style=style_of(name), measure=name))
    # A direction that a group of a gallery does not ask in is no missing value.
    nothing = "" if benchmark.questions.directed else None
    rows = (
        (label, f"{max(e.n for e in of.values()):,}", *(of.get(c.measure, nothing) for c in columns))
        for label, of in ((label, result.groups[label]) for label in groups)
    )
    return Table.of("by group", "group", [benchmark.questions.units, *columns], rows)


def threshold_range(threshold: Mapping[str, Any]) -> str:
    """A threshold, or the lowest and the highest of several."""
    low, high = (f"{threshold[end]:.4g}" for end in ("low", "high"))
    return low if low == high else f"{low} to {high}"


#: Digits of intervals, and what stands before these; the first that fits is taken.
_LAYOUTS = ((2, " "), (1, " "), (2, "\n"), (1, "\n"))


def _directions_table(
    title: str, rows: Mapping[str, Mapping[str, Estimate]], digits: int, between: str
) -> Table:
    sides = [side for side in DIRECTIONS if any(side in of for of in rows.values())]
    heads = (DIRECTIONS[side].arrow if between == " " else DIRECTIONS[side].label for side in sides)
    columns = [*(Column(head, look="first") for head in heads), Column("chance", look="dim")]
    lines = []
    for base, of in rows.items():
        cells = [base]
        for e in map(of.get, sides):
            # In a narrow terminal 100 stands without digits.
            ends = () if e is None else (f"{100 * end:.{digits}f}" for end in (e.low, e.high))
            span = "–".join(end.replace(f"{100:.{digits}f}", "100") for end in ends)
            cells.append("" if e is None else f"{100 * e.value:.2f}{between}{span}")
        chance = of[next(side for side in reversed(sides) if side in of)].chance
        lines.append([*cells, "" if chance is None else f"{100 * chance:.2f}"])
    return Table.of(title, "measure", columns, lines)
