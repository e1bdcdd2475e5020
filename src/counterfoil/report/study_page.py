"""A study as one HTML page: findings, caption metrics, how the world looks, trainings, and every number."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from math import isclose
from typing import Any

from counterfoil.evaluation.ablations import Sweep
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.findings import Finding, Ordering
from counterfoil.evaluation.forms import of
from counterfoil.metrics.measures import signed
from counterfoil.report import comparison_tables, figures, html, study_figures
from counterfoil.report.forms import rated, report_of
from counterfoil.report.forms.base import READING
from counterfoil.report.html import Drawing, Section, shareable, wide_and_narrow
from counterfoil.report.labels import listed, measure_label
from counterfoil.report.thumbnails import Thumbnails

#: What is said of a benchmark under its heading.
_ASKED = {
    ("rated", "image"): "Captions of pictures, right to one of four degrees, and how scores go with those.",
    ("preference", "image"): "Two captions of a picture, and how often the better one scores higher.",
    ("rated", "video"): "Captions of clips, true of the whole, of a part, of nothing.",
}


@dataclass(frozen=True)
class CaptionPart:
    """All of the part; `known` says what the oracle got, whatever that is."""

    known: str
    sections: tuple[Section, ...]


def caption_part(comparisons: Sequence[Comparison], *, oracle: str = "oracle") -> CaptionPart | None:
    """What the page says about these comparisons, one run of each an oracle; None where there are none."""
    if not comparisons:
        return None
    return CaptionPart(known(comparisons, oracle), tuple(map(_metric_section, comparisons)))


def known(comparisons: Sequence[Comparison], oracle: str = "oracle") -> str:
    """What the oracle got: everything, or where not and how much."""
    short = [
        f"{e.value:.5f} in {measure_label(name)} on {run.benchmark.card.title}"
        for comparison in comparisons
        for run in comparison.runs
        if run.name == oracle
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


def _metric_section(comparison: Comparison) -> Section:
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
        notes=(*rated.undefined(comparison), *([] if per_item else rated.level(comparison))),
    )


_BUDGET = 3_000_000


@dataclass(frozen=True)
class TrainingSummary:
    """How a model came about; `history` holds the rows of its journal (of one seed where there are more)."""

    name: str
    #: What it learned from, in words.
    learned: str
    rows: int
    steps: int
    seconds: float
    seeds: int = 1
    history: Sequence[Mapping[str, float]] = field(default_factory=tuple)


def page(
    findings: Sequence[Finding],
    *,
    title: str = "Which training teaches a model what belongs together?",
    standfirst: str = "",
    order: Ordering | None = None,
    comparisons: Sequence[Comparison] = (),
    trained: Sequence[TrainingSummary] = (),
    sweeps: Sequence[Sweep] = (),
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
    those. `facts` are lines of "what was done" (machine, seeds, time); `browse` is the address of a
    comparison's page (`report.page`), beside this one, in which every question can be looked at; `seen` is
    the size at which the networks see the pictures ("48 x 48"), where that is not the size that is shown.
    """
    thumbnails = Thumbnails(_BUDGET)
    examples: dict[str, Any] = {}
    for comparison in comparisons:
        report = report_of(comparison.runs[0].benchmark)
        examples[report.place] = examples.get(report.place) or report.examples(comparison, thumbnails)
    return html.render(
        "study.html",
        title=title,
        styles=("page.css", "study.css"),
        standfirst=standfirst,
        findings=[(finding, _drawing(finding)) for finding in findings],
        order=order,
        ordered=study_figures.figure(
            "The trainings in order", "", "order", partial(study_figures.rows, order.levels)
        )
        if order
        else None,
        several=any(len(evidence.seeds) > 1 for finding in findings for evidence in finding.evidence),
        pairs=examples.get("questions", ()),
        shelves=examples.get("queries", ()),
        curves=_curves(trained),
        overviews=[report_of(one.runs[0].benchmark).overview(one) for one in comparisons],
        groups=[
            comparison_tables.by_group(one)
            for one in comparisons
            if comparison_tables.groupings(one.runs[0].benchmark.questions)
        ],
        sweeps=[(sweep, _sweep_drawing(sweep)) for sweep in sweeps],
        captions=caption_part(captions),
        claims=[(finding, _drawing(finding)) for finding in claims],
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


def _drawing(finding: Finding) -> Drawing:
    draw = partial(study_figures.finding, finding)
    return study_figures.figure(finding.claim, "", f"finding-{finding.key}", draw)


def _curves(trained: Sequence[TrainingSummary]) -> list[Drawing]:
    """The loss, and whatever was validated, as far as a journal has it more than once."""
    histories = {training.name: training.history for training in trained if training.history}
    counts: dict[str, int] = {}
    for history in histories.values():
        for name in {name for row in history for name in row}:
            counts[name] = max(counts.get(name, 0), sum(study_figures.has(row, name) for row in history))
    validated = sorted(name for name, n in counts.items() if n > 1 and name.startswith("validation"))
    shown = [name for name in ("loss", *validated) if counts.get(name, 0) > 1]
    drawings = []
    for number, name in enumerate(shown[:4]):
        title, draw = study_figures.column(name), partial(study_figures.curves, histories, name)
        drawings.append(study_figures.figure(title, "", f"curve-{number}", draw, wide=5.4))
    return drawings


def _sweep_drawing(sweep: Sweep) -> Drawing:
    if all(setting.x is not None for setting in sweep.settings):
        draw = partial(study_figures.dial, sweep)
    else:
        levels = [setting.levels[measure] for measure in sweep.measures for setting in sweep.settings]
        draw = partial(study_figures.rows, levels)
    return study_figures.figure(sweep.question, "", sweep.key, draw, wide=7.6)
