"""A study as one HTML page: findings, caption metrics, how the world looks, trainings, and every number.

Its figures: differences and levels with intervals, and curves of trainings.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import cycle
from math import isclose
from typing import Any

import numpy as np

from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.evaluate import of
from counterfoil.evaluation.evidence import Evidence
from counterfoil.evaluation.findings import Finding, Ordering
from counterfoil.metrics.measures import signed
from counterfoil.report import comparison_tables, figures, html
from counterfoil.report.figure_style import INK, MUTED, RIGHT, WRONG, extent, name_ends, panels, plain
from counterfoil.report.forms import READING, rated, report_of
from counterfoil.report.html import Drawing, Section, shareable, wide_and_narrow
from counterfoil.report.labels import listed, measure_label, short, style_of
from counterfoil.report.notes import undefined
from counterfoil.report.thumbnails import Thumbnails

#: What is said of a benchmark under its heading.
_ASKED = {
    ("rated", "image"): "Captions of pictures, right to one of four degrees, and how scores go with those.",
    ("preference", "image"): "Two captions of a picture, and how often the better one scores higher.",
    ("rated", "video"): "Captions of clips, true of the whole, of a part, of nothing.",
}


def known(comparisons: Sequence[Comparison]) -> str:
    """What the oracle, one run of each comparison, got: everything, or where not and how much."""
    short = [
        f"{e.value:.5f} in {measure_label(name)} on {run.benchmark.card.title}"
        for comparison in comparisons
        for run in comparison.runs
        if run.name == "oracle"
        for name, e in run.result.measures.items()
        if not isclose(e.value, 1.0, abs_tol=1e-9)
    ]
    if short:
        return (
            "The oracle, which knows what is shown, should get 1.0 everywhere, and does not: it got "
            f"{listed(short)}. So something is wrong with the questions or with a measure."
        )
    return (
        "The oracle, which knows what is shown, has a correlation of 1.0 and an accuracy of 1.0 everywhere, "
        "as it has to."
    )


def metric_section(comparison: Comparison) -> Section:
    """One benchmark: all metrics in a table, as dots, and the scores at each degree."""
    benchmark = comparison.runs[0].benchmark
    anchor = f"captions-{benchmark.name}"
    measure = comparison_tables.leading(comparison)
    label = measure_label(measure)
    # Of correlations the one after the leading measure too, for screens with room.
    others = [name for name in comparison.measures if name != measure]
    side_by_side = [measure, *others[: int(signed(measure))]]
    dots = wide_and_narrow(
        f"{label} on {benchmark.card.title}",
        READING,
        f"{anchor}-dots",
        partial(figures.measures, comparison),
        {"names": side_by_side, "columns": len(side_by_side)},
        {"names": [measure], "columns": 1},
    )
    per_item = of(benchmark).values_per_item
    return Section(
        anchor,
        benchmark.card.title,
        _ASKED.get((benchmark.questions.form, benchmark.card.shows), ""),
        drawings=(replace(dots, title=label),),
        panels=() if per_item else (rated.spreads(comparison, f"{anchor}-spread", given="degree"),),
        tables=(comparison_tables.overview(comparison),),
        notes=(*undefined(comparison), *([] if per_item else rated.level(comparison))),
    )


#: Room for the pictures of the page, in bytes.
_BUDGET = 3_000_000


@dataclass(frozen=True)
class TrainingSummary:
    """How a model came about; `history` holds the rows of its journal."""

    name: str
    #: What it learned from, in words.
    learned: str
    rows: int
    steps: int
    seconds: float
    history: Sequence[Mapping[str, float]] = field(default_factory=tuple)


def page(
    findings: Sequence[Finding],
    *,
    title: str = "Which training teaches a model what belongs together?",
    standfirst: str = "",
    order: Ordering | None = None,
    comparisons: Sequence[Comparison] = (),
    trained: Sequence[TrainingSummary] = (),
    captions: Sequence[Comparison] = (),
    claims: Sequence[Finding] = (),
    facts: Mapping[str, str] | None = None,
    browse: str = "",
    seen: str = "",
) -> str:
    """The study as HTML, the same for the same values; it fetches nothing.

    It opens with `standfirst`, a paragraph a line, then the findings and their verdicts. Pictures are taken
    from the benchmarks of `comparisons`: pairs from quads, right answers from a gallery, where they are at
    hand. `captions` are comparisons of caption metrics, an oracle among them, and `claims` findings about
    those. `facts` are lines of "what was done" (machine, seed, time); `browse` is the address of a
    comparison's page (`report.page`), beside this one, in which every question can be looked at; `seen` is
    the size at which the networks see the pictures ("48 x 48"), where that is not the size that is shown.
    """
    thumbnails = Thumbnails(_BUDGET)
    # The loss, and whatever was validated, as far as a journal has it more than once.
    histories = {training.name: training.history for training in trained if training.history}
    counts = Counter[str]()
    for history in histories.values():
        counts |= Counter(name for row in history for name in row if has(row, name))
    repeated = sorted(name for name, n in counts.items() if n > 1)
    validated = [name for name in repeated if name.startswith("validation")]
    drawn = [
        figure(column(name), "", f"curve-{number}", partial(curves, histories, name), wide=5.4)
        for number, name in enumerate([name for name in ("loss", *validated) if name in repeated][:4])
    ]
    tested, claimed = ([(one, finding(one)) for one in some] for some in (findings, claims))
    examples: dict[str, Any] = {}
    for comparison in comparisons:
        report = report_of(comparison.runs[0].benchmark)
        examples[report.place] = examples.get(report.place) or report.examples(comparison, thumbnails)
    return html.render(
        "study.html",
        title=title,
        styles=("page.css", "study.css"),
        standfirst=standfirst,
        findings=tested,
        order=order,
        ordered=figure("The trainings in order", "", "order", partial(rows, order.levels)) if order else None,
        pairs=examples.get("questions", ()),
        shelves=examples.get("queries", ()),
        curves=drawn,
        overviews=[report_of(one.runs[0].benchmark).overview(one) for one in comparisons],
        groups=[
            comparison_tables.by_group(one)
            for one in comparisons
            if comparison_tables.groupings(one.runs[0].benchmark.questions)
        ],
        known=known(captions),
        captions=[metric_section(comparison) for comparison in captions],
        claims=claimed,
        trained=trained,
        facts={name: shareable(text) for name, text in (facts or {}).items()},
        browse=browse,
        seen=seen,
        called=called,
    )


def called(measure: str) -> str:
    """What a measure, or a difference of two, is called in print.

    >>> called("group"), called("i2t − t2i")
    ('Group', 'I2T − T2I')
    """
    return " − ".join(measure_label(part) for part in measure.split(" − "))


#: The widths of a figure in inches: beside text on a wide screen, and on a telephone.
WIDE, NARROW = 6.6, 3.75
_ROW, _SAID_ROW = 0.25, 0.42


def figure(title: str, caption: str, name: str, draw: Callable[..., Any], *, wide: float = WIDE) -> Drawing:
    """What `draw` draws of a width: of `wide` inches for wide screens, and for narrow ones."""
    return wide_and_narrow(title, caption, name, draw, {"width": wide}, {"width": NARROW})


def finding(one: Finding) -> Drawing:
    """The measures of the models, a panel each, and below them the differences that were asked."""
    name = f"finding-{one.key}"
    below = figure(one.claim, "", f"{name}-differences", partial(differences, one.differences))
    if not one.levels:
        return below
    above = figure(one.claim, "", name, partial(rows, one.levels))
    return replace(above, wide=above.wide + below.wide, narrow=above.narrow + below.narrow)


def rows(levels: Sequence[Evidence], *, width: float = WIDE) -> Any:
    """Levels, a panel per measure, a row per label."""
    by_measure: dict[str, dict[str, Evidence]] = {}
    for level in levels:
        by_measure.setdefault(level.measure, {})[level.label] = level
    units = {measure: "%" if style_of(measure) == "percent" else "x 100" for measure in by_measure}
    titled = [(f"{measure_label(name)} ({units[name]})", of) for name, of in by_measure.items()]
    order = list(dict.fromkeys(level.label for level in levels))
    return figures.dots(titled, order, len(titled), width=width)


def differences(evidence: Sequence[Evidence], *, width: float = WIDE) -> Any:
    """Differences, a row each; a filled dot decides, a hollow one is told beside it.

    They are blue above their threshold, vermilion below it, and grey where neither is sure. Labels stand
    beside their rows where there is room for them, else above.
    """
    beside = width > 5
    left = max([extent(one.label, 8) for one in evidence], default=0.0) + 0.12 if beside else 0.14
    panel = width - left - 0.16, (_ROW if beside else _SAID_ROW) * len(evidence) + 0.05
    with panels(panel, left=left, right=0.16, bottom=0.34) as (figure, (axes,)):
        for at, one in enumerate(evidence):
            colour = RIGHT if one.above else WRONG if one.below else MUTED
            axes.hlines(at, 100 * one.low, 100 * one.high, color=colour, lw=1.5, alpha=0.6, clip_on=False)
            face = {"mec": "none"} if one.decides else {"mfc": "none", "mec": colour, "mew": 1.2}
            axes.plot(100 * one.value, at, "o", ms=5, color=colour, clip_on=False, **face)
            # The lines to be held against, where no label lies over them.
            half = 0.5 if beside else 0.26
            lines = {0.0: "-", 100 * one.threshold: "-" if not one.threshold else (0, (4, 3))}
            for value, dashes in lines.items():
                axes.vlines(value, at - half, at + half, color=INK, lw=0.8, ls=dashes, zorder=0)
            if not beside:
                place = axes.get_yaxis_transform()
                axes.text(0, at - 0.3, one.label, transform=place, fontsize=7.8, color=INK, va="bottom")
        reach = [0.0, *(100 * v for e in evidence for v in (e.low, e.high, e.threshold))]
        beyond = max(0.06 * (max(reach) - min(reach)), 1.0)
        axes.set_xlim(max(-200, min(reach) - beyond), min(200, max(reach) + beyond))
        axes.set_ylim(len(evidence) - 0.5, -0.5 if beside else -0.85)
        axes.set_yticks(range(len(evidence)), [one.label if beside else "" for one in evidence])
        axes.tick_params(axis="y", length=0)
        plain(axes, "Differences (points)", grid="x" if beside else "", left=False, size=8)
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:+g}".replace("-", "−") if value else "0")
        axes.locator_params(axis="x", nbins=7)
    return figure


#: What tells lines apart, whatever their colours: the colour and the dashes.
_LINES = ((MUTED, (0, (1, 1.5))), (INK, (0, (5, 2))), (WRONG, (0, (5, 1.5, 1, 1.5))), (RIGHT, "-"))


def curves(
    histories: Mapping[str, Sequence[Mapping[str, float]]], measure: str, *, width: float = WIDE
) -> Any:
    """One column of the journals over steps, a line per model, named at its end.

    Shares, which never leave [0, 1], are shown in per cent, and everything else as it is.
    """
    every = [row[measure] for history in histories.values() for row in history if has(row, measure)]
    scale = 100.0 if "loss" not in measure and all(0 <= value <= 1 for value in every) else 1.0
    points_by_name = {
        name: [(row["step"], scale * row[measure]) for row in history if has(row, measure)]
        for name, history in histories.items()
    }
    points_by_name = {name: points for name, points in points_by_name.items() if points}
    right = max(extent(short(name, 20), 8) for name in points_by_name) + 0.18
    panel = width - 0.5 - right, 1.9
    with panels(panel, left=0.5, right=right, bottom=0.42, top=0.28) as (figure, (axes,)):
        ends = []
        for (name, points), (colour, dashes) in zip(points_by_name.items(), cycle(_LINES), strict=False):
            x, y = np.array(points).T
            axes.plot(x, y, color=colour, ls=dashes, lw=1.4, marker="o" if len(x) < 8 else None, ms=3)
            ends.append((float(x[-1]), float(y[-1]), short(name, 20), colour))
        name_ends(axes, ends)
        plain(axes, f"{column(measure)}{'' if scale == 1 else ' (%)'}", grid="y", size=8)
        axes.set_xlabel("step", fontsize=8, color=MUTED)
    return figure


def column(name: str) -> str:
    """What a column of a journal is called in print.

    >>> column("loss"), column("validation_group"), column("val/i2t")
    ('Loss', 'Validation group', 'Val i2t')
    """
    words = measure_label(name, name.replace("_", " ").replace("/", " "))
    return words[:1].upper() + words[1:]


def has(row: Mapping[str, float], name: str) -> bool:
    """Whether a row of a journal has a finite number of that name."""
    return name in row and bool(np.isfinite(row[name]))
