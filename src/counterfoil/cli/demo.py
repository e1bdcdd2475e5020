"""The end of `counterfoil demo`: of a tour of all verbs, or of the study of four trainings."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.table import Table
from rich.text import Text

if TYPE_CHECKING:
    from counterfoil.evaluation.findings import Finding
    from counterfoil.evaluation.result import Estimate
    from counterfoil.jobs.study import StudyReport
    from counterfoil.jobs.tour import ExampleFiles, Tour
    from counterfoil.studies.demo import Study

#: What the summary shows of each model: the benchmark, the measure, the column's head.
_COLUMNS = (
    ("world-quads-alike", "i2t", "I2T"),
    ("world-quads-alike", "t2i", "T2I"),
    ("world-quads-alike", "group", "group"),
    ("world-quads", "group", "mixed"),
    ("world-choices", "accuracy", "choice"),
    ("world-gallery", "mean_map_at_r", "mAP@R"),
)
_MARKS = {"holds": ("✓", "green"), "does not hold": ("✗", "red"), "undecided": ("?", "yellow")}
_POINT = ("•", "")
#: Columns of a terminal from which the summary has room for intervals, and the most that words run over.
_ROOMY, _LINE = 110, 100


def show_demo(demo: "Tour | StudyReport | ExampleFiles", console: Console) -> None:
    """What the tour or the study says, how long it took, and last the path of its page; or the files."""
    from counterfoil import terminal
    from counterfoil.cli.tables import show as show_tables
    from counterfoil.jobs.tour import ExampleFiles, Tour

    if isinstance(demo, ExampleFiles):
        console.print(f"{demo.folder}: {', '.join(demo.names)}", soft_wrap=True)
        return
    if isinstance(demo, Tour):
        show_tables(console, demo.comparison.tables)
        parts, what = "", "page"
    else:
        show(demo.study, console)
        spent = {**demo.study.seconds, "the report": demo.seconds - sum(demo.study.seconds.values())}
        parts = ": " + ", ".join(f"{part} {seconds:.0f} s" for part, seconds in spent.items())
        what = "report"
    terminal.note(f"{demo.seconds:.0f} s in all{parts} ({demo.processor:.0f} s of processor time)")
    console.print(f"The {what} is in {demo.path.resolve()}", soft_wrap=True)


def show(study: "Study", console: Console) -> None:
    """The end of a demo: a table of the models, then each finding and its verdict."""
    from counterfoil.report.study_page import known

    seeds = study.plan.seeds
    console.print()
    console.print(_summary(study, intervals=console.width >= _ROOMY))
    about = "In per cent" + (", with 95 % intervals" if console.width >= _ROOMY else "")
    about += f"; networks of seed {seeds[0]}. Both pictures in one style; "
    about += "mixed: group where the second picture is synthetic."
    if len(seeds) > 1:
        about += f" What follows is over seeds {', '.join(map(str, seeds))}."
    width = min(console.width, _LINE)
    console.print(Text(about, style="dim"), width=width)
    sentences = [_verdict(finding) for finding in study.findings]
    if study.order is not None:
        sentences.append((_POINT, "The trainings in order.", study.order.sentence))
    sentences += [(_POINT, sweep.question, sweep.sentence) for sweep in study.sweeps]
    sentences += [(_POINT, "Caption metrics.", known(study.captions.comparisons))]
    sentences += [_verdict(finding) for finding in study.captions.findings]
    console.print()
    for mark, head, words in sentences:
        # Every line of the words as far in as the first.
        grid = Table.grid(padding=(0, 1, 0, 0))
        grid.add_column(width=1)
        grid.add_column(overflow="fold")
        grid.add_row(Text(*mark), Text.assemble((head, "bold"), "\n", (words, "dim")))
        console.print(grid, width=width)
    console.print()


def _verdict(finding: "Finding") -> tuple[tuple[str, str], str, str]:
    """A finding's mark, its claim and its verdict."""
    sentence = f"{finding.verdict.capitalize()} in this run. {finding.sentence}"
    return _MARKS[finding.verdict], finding.claim, sentence


def _summary(study: "Study", *, intervals: bool) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim", padding=(0, 2, 0, 0))
    table.add_column("model", no_wrap=True)
    for _, _, head in _COLUMNS:
        table.add_column(head, justify="right", no_wrap=True)
    rows: dict[str, dict[str, Text]] = {}
    chance: dict[str, str] = {}
    for comparison in study.comparisons:
        for run in comparison.runs:
            for of, measure, head in _COLUMNS:
                if of == comparison.benchmark and measure in run.result.measures:
                    estimate = run.result.measures[measure]
                    rows.setdefault(run.name, {})[head] = Text.assemble(
                        f"{100 * estimate.value:.1f}", (_span(estimate) if intervals else "", "dim")
                    )
                    if estimate.chance is not None:
                        chance[head] = f"{100 * estimate.chance:.1f}" + (
                            " " * len(_span(estimate)) * intervals
                        )
    table.add_row("chance", *(chance.get(head, "") for _, _, head in _COLUMNS), style="dim")
    for name, cells in rows.items():
        table.add_row(name, *(cells.get(head, "") for _, _, head in _COLUMNS))
    return table


def _span(estimate: "Estimate") -> str:
    return f" {100 * estimate.low:4.1f} to {100 * estimate.high:4.1f}"
