"""The tables of a comparison, in the layouts of the papers. `tables` says what a table is and writes it."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from counterfoil.benchmarks.forms import Form
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import leading as leading_of, main_measures as main_of, of
from counterfoil.evaluation.result import Estimate, Run
from counterfoil.metrics.measures import DIRECTIONS, of_form, signed, split_direction
from counterfoil.report import tables as label_of
from counterfoil.report.tables import Cell, Column, Row, Table, measure_label, style_of, unit


def overview(*comparisons: Comparison, finer: bool = True, measures: Sequence[str] | None = None) -> Table:
    """A row per model, a column per measure, chance first (BiVLC Table 3, ECCV Caption Table 4)."""
    columns, alone = [], len(comparisons) == 1
    for comparison in comparisons:
        benchmark, names = comparison.runs[0].benchmark, comparison.measures
        title, main = benchmark.title, main_of(benchmark)
        if measures is not None:
            names = [name for name in measures if name in names]
        elif not finer:
            names = [name for name in names if name in main]
        # The measures, each with the heading over its column and the label on it.
        headed = []
        if benchmark.questions.directed:
            split = [(name, *split_direction(name)) for name in names]
            for side in DIRECTIONS.values():
                head = side.title if alone else f"{title}: {side.title.lower()}"
                headed += [
                    (name, head, measure_label(base)) for name, whose, base in split if whose == side.name
                ]
        else:
            first = [name for name in names if name in main]
            others = [name for name in names if name not in first]
            rest = "finer measures" if alone else f"{title} (finer)"
            headed += [(name, title, measure_label(name)) for name in first]
            head = rest if of(benchmark).finer_measures else title
            headed += [(name, head, measure_label(name)) for name in others]
        columns += [_column(comparison, name, head, label) for name, head, label in headed]
    models = list(dict.fromkeys(run.name for comparison in comparisons for run in comparison.runs))
    titles = " and ".join(comparison.runs[0].benchmark.title for comparison in comparisons)
    return _table(f"Results on {titles}.", models, columns)


def compact(comparison: Comparison, *, wide: bool) -> Table:
    """A row per model for a terminal: the card's measures of a gallery if `wide`, else the main ones."""
    first = comparison.runs[0].benchmark
    if first.questions.directed and wide:
        plain = overview(comparison, measures=headline(comparison))
    else:
        plain = overview(comparison, finer=wide)
    if not plain.columns:
        # Of runs with chosen measures there may be no main one.
        plain = overview(comparison)
    title = f"{first.card.title}, {len(first):,} {'queries' if first.questions.directed else 'questions'}"
    called = {comparison.baseline: f"{comparison.baseline} (baseline)"}
    rows = (replace(row, name=called.get(row.name, row.name)) for row in plain.rows)
    # The columns have sizes of their own where benchmarks stand side by side, which they do not here.
    columns = tuple(replace(column, size=None) for column in plain.columns)
    return Table(title, columns, tuple(rows), unit(column.measure for column in columns))


def by_group(comparison: Comparison, grouping: str = "") -> Table:
    """A row per model, a block of columns per group of `grouping`, by default the card's (BiVLC Table 4)."""
    run = comparison.runs[0]
    labels = groupings(run.benchmark.questions)
    reported = (name for name in (*run.benchmark.card.groupings, *labels) if name in labels)
    grouping = grouping or next(reported, "")
    columns = [
        _column(comparison, name, label_of.group(group), measure_label(name), group)
        for group in labels.get(grouping, ())
        for name in grouped_measures(comparison)
    ]
    caption = f"Results on {run.benchmark.title} by {label_of.grouping(grouping)}."
    return _table(caption, [run.name for run in comparison.runs], columns)


def group_rows(comparison: Comparison, measure: str, *, grouping: str) -> Table:
    """One row per group, one column per model: for groupings too large to stand side by side."""
    run = comparison.runs[0]
    rows = []
    for group in groupings(run.benchmark.questions)[grouping]:
        estimates = estimates_of(comparison, measure, group)
        ranks = _ranks({name: e.value for name, e in estimates.items() if e is not None})
        cells = [Cell.of(e, ranks.get(name, 0)) for name, e in estimates.items()]
        n = next((cell.n for cell in cells if cell.n), 0)
        rows.append((f"{label_of.group(group)} ({n:,})", *cells))
    columns = [
        Column(run.name, style=style_of(measure), measure=measure, signature=run.result.signature(measure))
        for run in comparison.runs
    ]
    corner = label_of.grouping(grouping)
    caption = f"{measure_label(measure)} on {run.benchmark.title} by {corner}."
    return Table.of(caption, corner, columns, rows)


def differences(comparison: Comparison, measure: str, among: str = "") -> Table:
    """A row per pair of models: difference, interval and p-values; `among` ends the title."""
    pairs = [d for d in comparison.differences if d.measure == measure]
    # McNemar's test is of right and wrong, in questions that share nothing.
    tests = ("p", "p (Holm)", *(("p (McNemar)",) if any(d.mcnemar is not None for d in pairs) else ()))
    columns = [
        Column("Difference", style=style_of(measure, difference=True), measure=measure),
        *(Column(test, style="p", measure=measure) for test in tests),
    ]
    rows = (
        (f"{d.a} − {d.b}", (d.value, d.low, d.high), *(d.p, d.p_holm, d.mcnemar)[: len(tests)]) for d in pairs
    )
    title = comparison.runs[0].benchmark.title
    return Table.of(f"Differences in {measure_label(measure)} on {title}{among}.", "Pair", columns, rows)


def main_measures(comparison: Comparison) -> tuple[str, ...]:
    """The measures that papers put first, of those that any run has."""
    main = main_of(comparison.runs[0].benchmark)
    return tuple(name for name in main if name in comparison.measures)


def grouped_measures(comparison: Comparison) -> tuple[str, ...]:
    """What is told of each group: the main measures, and of correlations, which say much the same, one."""
    main = main_measures(comparison)
    return main[:1] if main and signed(main[0]) else main


def signature_of(runs: Sequence[Run], measure: str) -> str:
    """The signature of a measure of several runs in a line; of each run where they differ."""
    lines = {run.name: run.result.signature(measure) for run in runs if measure in run.result.measures}
    if len(set(lines.values())) == 1:
        return next(iter(lines.values()))
    return "; ".join(f"{name}: {line}" for name, line in lines.items())


def leading(comparison: Comparison) -> str:
    """The one measure that models are ordered by: what the benchmark's authors put first."""
    return leading_of(comparison.runs[0].benchmark, *(run.result for run in comparison.runs))


def headline(comparison: Comparison) -> tuple[str, ...]:
    """The measures of a gallery that its card puts first, in every direction, of those that any run has."""
    main = tuple(measure.name for measure in of_form("gallery") if measure.main)
    bases = comparison.runs[0].benchmark.card.measures or main
    measures = comparison.measures
    return tuple(name for side in DIRECTIONS for base in bases if (name := f"{side}_{base}") in measures)


def estimates_of(comparison: Comparison, measure: str, group: str = "") -> dict[str, Estimate | None]:
    """A measure over all questions, or those of a group, by model; None for those without a value."""
    of_runs = (
        (run.name, run.result.groups.get(group, {}) if group else run.result.measures)
        for run in comparison.runs
    )
    return {name: measures.get(measure) for name, measures in of_runs}


def ranking(comparison: Comparison, measure: str | None = None) -> list[str]:
    """The models' names, best first on `measure` (default: `leading`); equal ones in the order given."""
    chosen = leading(comparison) if measure is None else measure
    of_runs = estimates_of(comparison, chosen)
    return sorted(of_runs, key=lambda name: -e.value if (e := of_runs[name]) else 2.0)


def groupings(questions: Form) -> dict[str, tuple[str, ...]]:
    """The groups of each grouping, by the key under which a result holds them."""
    masks = questions.groups()
    keys_by_grouping: dict[str, tuple[str, ...]] = {}
    for name, labels in questions.groupings.items():
        keys = []
        for label in filter(None, dict.fromkeys(labels)):
            qualified = f"{name}:{label}"
            members = [value == label for value in labels]
            # A label of two groupings is qualified in the later one, unless both mean the same questions.
            keys.append(qualified if qualified in masks and masks[label].tolist() != members else label)
        if keys:
            keys_by_grouping[name] = tuple(keys)
    return keys_by_grouping


def _column(
    comparison: Comparison, name: str, block: str, label: str, group: str = ""
) -> tuple[Column, dict[str, Estimate]]:
    of_runs = estimates_of(comparison, name, group)
    values = {run: estimate for run, estimate in of_runs.items() if estimate is not None}
    size = next((estimate.n for estimate in values.values()), None)
    column = Column(label, block, style_of(name), name, size, group, signature_of(comparison.runs, name))
    return column, values


def _table(
    caption: str, models: Sequence[str], columns: Sequence[tuple[Column, Mapping[str, Estimate]]]
) -> Table:
    """A row of chance, then one per model, with the best two of each column marked."""
    ranks = [_ranks({name: e.value for name, e in values.items()}) for _, values in columns]
    chances = tuple(Cell(next((e.chance for e in values.values()), None)) for _, values in columns)
    rows = [Row("Random chance", chances, "chance")]
    for name in models:
        both = zip(columns, ranks, strict=True)
        rows.append(Row(name, tuple(Cell.of(of.get(name), rank.get(name, 0)) for (_, of), rank in both)))
    return Table(caption, tuple(column for column, _ in columns), tuple(rows))


def _ranks(values: Mapping[str, float]) -> dict[str, int]:
    """1 for the best and 2 for the second best, as printed: what looks the same is marked the same."""
    printed = {name: round(100 * value, 2) for name, value in values.items()}
    order = sorted(set(printed.values()), reverse=True)
    if len(order) < 2:
        return {}
    return {name: order.index(value) + 1 for name, value in printed.items() if value in order[:2]}
