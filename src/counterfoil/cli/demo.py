"""The end of `counterfoil demo`, of a tour or of the study of four trainings, and of `counterfoil world`."""

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

if TYPE_CHECKING:
    from counterfoil.evaluation.findings import Finding
    from counterfoil.jobs.study import StudyReport
    from counterfoil.jobs.tour import ExampleFiles, Tour
    from counterfoil.jobs.world import Drawn
    from counterfoil.studies.demo import Study

_MARKS = {"holds": ("✓", "green"), "does not hold": ("✗", "red"), "undecided": ("?", "yellow")}
_POINT = ("•", "")


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
    """The end of a demo: the main measures of the models, then each finding and its verdict."""
    from counterfoil.cli.tables import show as show_tables
    from counterfoil.report.comparison_tables import overview
    from counterfoil.report.study_page import known

    show_tables(console, [overview(comparison, finer=False) for comparison in study.comparisons])
    console.print(Text(f"Networks of seed {study.plan.seed}.", style="dim"))
    sentences = [_verdict(finding) for finding in study.findings]
    if study.order is not None:
        sentences.append((_POINT, "The trainings in order.", study.order.sentence))
    sentences += [(_POINT, "Caption metrics.", known(study.captions.comparisons))]
    sentences += [_verdict(finding) for finding in study.captions.findings]
    for mark, head, words in sentences:
        console.print(Text.assemble(mark, f" {head} ", (words, "dim")))


def show_drawn(drawn: "Drawn", console: Console) -> None:
    """What `counterfoil world` drew, where the command is not quiet."""
    from counterfoil import terminal

    for line in () if terminal.quiet else drawn.lines:
        console.print(line, soft_wrap=True)


def _verdict(finding: "Finding") -> tuple[tuple[str, str], str, str]:
    """A finding's mark, its claim and its verdict."""
    sentence = f"{finding.verdict.capitalize()} in this run. {finding.sentence}"
    return _MARKS[finding.verdict], finding.claim, sentence
