"""Pages of rank correlations, and of the agreement of metrics with people on the order of systems."""

from collections.abc import Sequence

import numpy as np

from counterfoil.evaluation.list_overlap import Diversity
from counterfoil.evaluation.rank_correlation import Agreement, RankCorrelation
from counterfoil.evaluation.result import Run
from counterfoil.evaluation.system_scores import MEASURES
from counterfoil.evaluation.systems import ONE_PERSON, SystemCorrelations
from counterfoil.metrics.measure import DIRECTIONS
from counterfoil.report import html, ranking_figures
from counterfoil.report.html import Section, drawn, shareable, users
from counterfoil.report.labels import measure_label
from counterfoil.report.ranking_figures import written
from counterfoil.report.tables import Cell, Column, Table, csv_lines


def page(
    correlation: RankCorrelation,
    lists: Sequence[Diversity] = (),
    *,
    runs: Sequence[Run] = (),
    title: str = "What rankings say",
    private: bool = False,
) -> str:
    """The page as HTML, the same for the same numbers; it names `runs` as what they were computed from.

    It says nothing of where files lie on this machine and who uses it; `private` keeps that.
    """
    bump = drawn(
        "Ranks of the models",
        "Best on top. Equal models share a frame and a rank (“2=”). The models that move most are in bold: "
        "blue where they end higher than they begin, orange and dashed where lower, else in plain ink.",
        "bump",
        ranking_figures.bump(correlation),
        "The rank of every model by measure",
    )
    heat = drawn(
        "Rank correlations",
        "Below the diagonal Kendall’s τ-b, above it Spearman’s ρ; small, the interval. Framed and bold: "
        "the interval leaves out 0. Blue is agreement, orange the contrary.",
        "heat",
        ranking_figures.heatmap(correlation),
        "Rank correlations between measures",
    )
    return html.render(
        "rankings.html",
        title=title,
        correlation=correlation,
        lead=lead(correlation),
        bump=bump,
        heat=heat,
        ranks=ranks_table(correlation),
        agreements=agreements_table(correlation),
        lists=[_lists(one, number) for number, one in enumerate(lists)],
        nothing_common=written(-2 * lists[0].k / (3 * lists[0].k - 1)) if lists else "",
        sources=_sources(runs, private=private),
    )


def lead(correlation: RankCorrelation) -> str:
    """The page's first sentences: which two columns agree most and least, and how sure that is."""
    defined = [pair for pair in correlation.pairs if not np.isnan(pair.tau)]
    if not defined:
        return "No two measures have enough models in common, or vary enough, to say whether they agree."
    name = dict(zip((c.name for c in correlation.columns), ranking_figures.labels(correlation), strict=True))

    def said(pair: Agreement) -> str:
        ends = f"{written(pair.tau_low)} to {written(pair.tau_high)}"
        return f"{name[pair.a]} and {name[pair.b]} (τ {written(pair.tau)}, {ends})"

    least, most = (choose(defined, key=lambda pair: pair.tau) for choose in (min, max))
    sure = sum(pair.sure for pair in defined)
    of_them = f"For {sure} of {len(defined)} pairs of measures the interval leaves out 0."
    if len(defined) > 1 and np.isclose(least.tau, most.tau):
        ends = min(pair.tau_low for pair in defined), max(pair.tau_high for pair in defined)
        return (
            f"All {len(defined)} pairs of measures agree equally on the order of models: "
            f"τ {written(most.tau)}, with intervals within {written(ends[0])} to {written(ends[1])}. "
            f"{of_them}"
        )
    if len(defined) == 1:
        return f"{said(most)}. {of_them}"
    return f"The order of models agrees most between {said(most)} and least between {said(least)}. {of_them}"


def ranks_table(correlation: RankCorrelation) -> Table:
    """One row per model, one column per measure: its value in per cent; the best two of each are marked."""
    columns = [
        Column(ranking_figures.label(column, alone=True), column.title, measure=column.measure)
        for column in correlation.columns
    ]
    ranks = correlation.ranks
    # Those without a value in the column that orders are last.
    order = np.argsort(np.nan_to_num(ranks[:, correlation.lead], nan=np.inf), kind="stable").tolist()
    rows = (
        (
            correlation.models[i],
            *(
                Cell.of(float(value), int(rank) if rank <= 2 else 0)
                for value, rank in zip(correlation.values[i], ranks[i], strict=True)
            ),
        )
        for i in order
    )
    return Table.of("Values of the models under each measure, in per cent.", "Model", columns, rows)


def agreements_table(correlation: RankCorrelation) -> Table:
    """One row per pair of columns: tau-b and Spearman's correlation with their intervals, and the models."""
    name = dict(zip((c.name for c in correlation.columns), ranking_figures.labels(correlation), strict=True))
    rows = (
        (
            f"{name[pair.a]} – {name[pair.b]}",
            *_with_ends(pair.tau, pair.tau_low, pair.tau_high),
            *_with_ends(pair.rho, pair.rho_low, pair.rho_high),
            str(pair.models),
        )
        for pair in correlation.pairs
    )
    heads = ("Kendall’s τ-b", "95 % interval", "Spearman’s ρ", "95 % interval", "Models")
    return Table.of("Rank correlations of all pairs of measures.", "Measures", heads, rows)


def _with_ends(value: float, low: float, high: float) -> tuple[str, str]:
    if np.isnan(value):
        return "–", ""
    return written(value), f"{written(low)} to {written(high)}"


def _lists(diversity: Diversity, number: int) -> Section:
    """What the page says of one direction of one gallery."""
    side = DIRECTIONS[diversity.direction].title
    of = "captions" if diversity.direction == "i2t" else "images"
    parts = (
        (ranking_figures.list_tau, f"How alike the first {diversity.k} {of} are"),
        (ranking_figures.first_choice, "Where the others rank a model’s first choice"),
    )
    return Section(
        f"lists-{number}",
        f"{diversity.title}, {side.lower()}",
        f"{diversity.queries:,} queries, the first {diversity.k} {of} of each.",
        drawings=tuple(
            drawn(title, "", f"lists-{number}-{i}", draw(diversity), f"{title}: {diversity.title}, {side}")
            for i, (draw, title) in enumerate(parts)
        ),
    )


def _sources(runs: Sequence[Run], *, private: bool) -> list[tuple[str, str]]:
    """For each run what it is of, and what of its manifest names it beyond doubt."""
    rows = []
    for run in runs:
        digests, command = run.manifest.get("digests", {}), run.manifest.get("command", "")
        words = [command] if isinstance(command, str) else [str(word) for word in command]
        known = users(words)
        command_text = " ".join(words if private else (shareable(word, known) for word in words))
        digest = digests.get("answers.parquet", "")
        name = run.name if private else shareable(run.name, known)
        text = " · ".join(part for part in (command_text, f"answers {digest}" if digest else "") if part)
        rows.append((f"{name} on {run.benchmark.card.title or run.benchmark.name}", text or "not recorded"))
    return rows


def to_csv(correlation: RankCorrelation, lists: Sequence[Diversity] = ()) -> str:
    """One line per number at full precision, with its interval where it has one.

    `what` is "value" or "rank" (of the model `a` under the measure `b`), "tau" or "spearman" (between the
    measures `a` and `b`, over `n` models), "list_tau", "common", "place" or "beyond" (of the models `a` and
    `b`, over `n` queries of `of`). What is undefined has no line.
    """
    lines: list[list[object]] = [["what", "of", "a", "b", "value", "low", "high", "n"]]
    for what, matrix in (("value", correlation.values), ("rank", correlation.ranks)):
        for model, row in zip(correlation.models, matrix.tolist(), strict=True):
            for column, value in zip(correlation.columns, row, strict=True):
                if not np.isnan(value):
                    lines.append([what, column.benchmark, model, column.name, value, "", "", ""])
    for pair in correlation.pairs:
        for what, value, low, high in (
            ("tau", pair.tau, pair.tau_low, pair.tau_high),
            ("spearman", pair.rho, pair.rho_low, pair.rho_high),
        ):
            if not np.isnan(value):
                lines.append([what, "", pair.a, pair.b, value, low, high, pair.models])
    for one in lists:
        of = f"{one.benchmark}:{one.direction}:{one.k}"
        for name, matrix in one.matrices.items():
            what = "list_tau" if name == "tau" else name
            for a, row in zip(one.models, matrix.tolist(), strict=True):
                for b, value in zip(one.models, row, strict=True):
                    if a != b and not np.isnan(value):
                        lines.append([what, of, a, b, value, "", "", one.queries])
    return csv_lines(lines)


def agreements(agreed: SystemCorrelations) -> tuple[Table, ...]:
    """A table for each score of people: a row per metric, and what one person has with the others."""
    return tuple(_agreement(agreed, human) for human in agreed.humans)


def _agreement(agreed: SystemCorrelations, human: str) -> Table:
    by_metric = {(c.metric, c.measure): c for c in agreed.correlations if c.human == human}
    columns = []
    for measure in MEASURES:
        head = measure_label(measure)
        columns += [Column(head, head, "correlation", measure), Column("p", head, "p", measure)]
    best = {
        measure: max(
            (value for metric in agreed.metrics if (value := by_metric[metric, measure].value) > -2),
            default=None,
        )
        for measure in MEASURES
    }
    rows: list[tuple[object, ...]] = []
    for metric in (*agreed.metrics, *((ONE_PERSON,) if (ONE_PERSON, MEASURES[0]) in by_metric else ())):
        cells: list[object] = []
        for measure in MEASURES:
            one = by_metric[metric, measure]
            first = metric != ONE_PERSON and one.value == best[measure]
            cells += [Cell.of((one.value, one.low, one.high, one.systems), int(first)), one.p]
        rows.append((f"{ONE_PERSON}, with the others" if metric == ONE_PERSON else metric, *cells))
    over = drawn_over(agreed)
    caption = f"Correlation with {human} over systems, x 100, with 95 % intervals over {over}."
    return Table.of(caption, "metric", columns, rows)


def differences(agreed: SystemCorrelations) -> tuple[Table, ...]:
    """A table for each score of people of which two metrics can be compared: a row per pair of metrics."""
    tables = []
    for human in agreed.humans:
        by_pair = {(d.a, d.b, d.measure): d for d in agreed.differences if d.human == human}
        pairs = dict.fromkeys((a, b) for a, b, _ in by_pair)
        if not pairs:
            continue
        columns = []
        for measure in MEASURES:
            head = measure_label(measure)
            columns += [Column(head, head, "shift", measure), Column("p (Holm)", head, "p", measure)]
        columns.append(Column("p (Williams)", measure_label("pearson"), "p", "pearson"))
        rows = []
        for a, b in pairs:
            of = [by_pair[a, b, measure] for measure in MEASURES]
            cells = (cell for one in of for cell in ((one.value, one.low, one.high), one.p_holm))
            rows.append((f"{a} − {b}", *cells, by_pair[a, b, "pearson"].williams))
        caption = f"Differences in correlation with {human}, x 100; drawn and swapped: {drawn_over(agreed)}."
        tables.append(Table.of(caption, "metrics", columns, rows))
    return tuple(tables)


def drawn_over(agreed: SystemCorrelations) -> str:
    """What was drawn, in words: "200 images", "images" where none are known, or "systems"."""
    many = agreed.over == "images" and agreed.images
    return f"{agreed.images:,} images" if many else agreed.over


def systems_page(
    systems: Table,
    agreement: Sequence[Table],
    differences: Sequence[Table],
    notes: Sequence[str],
    *,
    title: str = "Captioning systems, metrics and people",
) -> str:
    """The page as HTML, the same for the same tables."""
    return html.render(
        "systems.html",
        title=title,
        systems=systems,
        agreement=tuple(agreement),
        differences=tuple(differences),
        notes=tuple(notes),
    )
