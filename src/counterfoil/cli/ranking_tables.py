"""Rank correlations as Rich tables: matrices split into as many pieces as the terminal is narrow."""

from collections.abc import Mapping

import numpy as np
from rich.table import Table
from rich.text import Text

from counterfoil.evaluation.list_overlap import Diversity
from counterfoil.evaluation.rank_correlation import RankCorrelation
from counterfoil.metrics.measure import DIRECTIONS
from counterfoil.report.drawing import short
from counterfoil.report.ranking_figures import labels, written

#: Between columns, and the share of the terminal that names of rows may take.
_GAP, _NAMES = 2, 0.5
#: So many pairs of measures are listed with their intervals.
_FEW_PAIRS = 15
#: Of so many models, places are shown with how often there is none.
_FEW_MODELS = 10

Part = Table | Text


def correlation_tables(found: RankCorrelation, *, width: int) -> list[Part]:
    """Kendall's tau-b of all pairs of columns; the intervals too where there are few of them."""
    names = labels(found)
    cells = {}
    at = {column.name: i for i, column in enumerate(found.columns)}
    for pair in found.pairs:
        mark = "*" if pair.sure else ""
        cells[at[pair.b], at[pair.a]] = Text(written(pair.tau) + mark, style="bold" if mark else "")
        if np.isnan(pair.tau):
            cells[at[pair.b], at[pair.a]] = Text("–")
    heading = f"Kendall's tau-b between measures, {len(found.models)} models"
    # The first row and the last column of the lower triangle are empty.
    rows = {i: names[i] for i in range(len(names))}
    parts = _matrix(heading, rows, {i: str(i + 1) for i in range(len(names) - 1)}, cells, width)
    parts.append(Text("* the 95 % interval leaves out 0", style="dim"))
    if 0 < len(found.pairs) <= _FEW_PAIRS:
        table = _table()
        for head in ("pair", "tau-b", "95 % interval", "Spearman", "95 % interval", "models"):
            table.add_column(head, justify="left" if head == "pair" else "right", no_wrap=True)
        for pair in found.pairs:
            ends = [
                ("–", "") if np.isnan(value) else (written(value), f"[{written(low)}, {written(high)}]")
                for value, low, high in (
                    (pair.tau, pair.tau_low, pair.tau_high),
                    (pair.rho, pair.rho_low, pair.rho_high),
                )
            ]
            numbers = f"{at[pair.a] + 1} – {at[pair.b] + 1}"
            table.add_row(numbers, *(Text(text) for end in ends for text in end), str(pair.models))
        parts += [Text(""), table]
    return parts


def rank_tables(found: RankCorrelation, *, width: int) -> list[Part]:
    """The rank of each model under each measure, "=" where it is shared, with values where there is room."""
    ranks = found.ranks
    order = np.argsort(np.nan_to_num(ranks[:, 0], nan=np.inf), kind="stable").tolist()
    n = len(found.columns)
    shared = [[(ranks[:, j] == ranks[i, j]).sum() > 1 for j in range(n)] for i in range(len(ranks))]
    plain = {
        (i, j): f"{ranks[i, j]:.0f}{'=' if shared[i][j] else ''}"
        for i in order
        for j in range(n)
        if not np.isnan(ranks[i, j])
    }
    full = {(i, j): f"{100 * found.values[i, j]:.2f} {text:>3}" for (i, j), text in plain.items()}
    rows = {i: found.models[i] for i in order}
    heads = {j: str(j + 1) for j in range(n)}
    longest = min(max(map(len, rows.values())) + 3, int(_NAMES * width))
    roomy = longest + n * (_GAP + max(map(len, full.values()))) <= width
    cells = {
        at: Text(full[at] if roomy else text, style="bold" if ranks[at] == 1 else "")
        for at, text in plain.items()
    }
    heading = f"{'Values in % and ranks' if roomy else 'Ranks'} of {len(found.models)} models"
    return _matrix(heading, rows, heads, cells, width, numbered=False)


def diversity_tables(found: Diversity, *, width: int) -> list[Part]:
    """How alike the first items of models are, and where one's first choice stands with another."""
    n = len(found.models)
    rows = dict(enumerate(found.models))
    heads = {i: str(i + 1) for i in range(n)}
    off = [(i, j) for i in range(n) for j in range(n) if i != j]
    few = n <= _FEW_MODELS
    taus = {
        at: Text("–")
        if np.isnan(found.tau[at])
        else Text(written(float(found.tau[at])) + (f" {100 * found.common[at]:3.0f} %" if few else ""))
        for at in off
    }
    places = {
        at: Text("–")
        if np.isnan(found.place[at])
        else Text(
            f"{found.place[at]:.2f} {100 * found.beyond[at]:3.0f} %" if few else f"{found.place[at]:.1f}"
        )
        for at in off
    }
    where = f"{found.title}, {DIRECTIONS[found.direction].title.lower()}, {found.queries:,} queries"
    alike = f"Kendall's tau-b of the first {found.k}{', and the share of common ones' if few else ''}"
    average = "Average place of the row's first choice with the column"
    if few:
        average += f", and how often not in its first {found.k}"
    return [
        Text(where, style="bold underline"),
        *_matrix(alike, rows, heads, taus, width),
        Text(""),
        *_matrix(average, rows, heads, places, width),
    ]


def _matrix(
    heading: str,
    rows: Mapping[int, str],
    heads: Mapping[int, str],
    cells: Mapping[tuple[int, int], Text],
    width: int,
    *,
    numbered: bool = True,
) -> list[Part]:
    """Tables of as many columns as there is room for, one below the other, without rows that stay empty."""
    longest = max(map(len, rows.values()))
    number = len(str(len(rows))) + 2 if numbered else 0
    names = min(longest, max(8, int(_NAMES * width) - number))
    wide = max([*map(len, cells.values()), *map(len, heads.values())], default=1) + _GAP
    at_once = max(1, (width - names - number) // wide)
    parts: list[Part] = [Text(heading, style="bold")]
    columns = list(heads)
    for lo in range(0, len(columns), at_once):
        chosen = columns[lo : lo + at_once]
        table = _table()
        if numbered:
            table.add_column("", justify="right", no_wrap=True, style="dim")
        table.add_column("", no_wrap=True, overflow="ellipsis", max_width=names)
        for column in chosen:
            table.add_column(heads[column], justify="right", no_wrap=True, min_width=wide - _GAP)
        for row, name in rows.items():
            if lo == 0 or any((row, column) in cells for column in chosen):
                shown = [cells.get((row, column), Text("")) for column in chosen]
                table.add_row(*([str(row + 1)] if numbered else []), short(name, names), *shown)
        parts.append(table)
    return parts


def _table() -> Table:
    return Table(box=None, pad_edge=False, header_style="dim", padding=(0, _GAP, 0, 0))
