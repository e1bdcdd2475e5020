"""`counterfoil compare`: runs side by side, with tests and a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from counterfoil.evaluation.compare import Comparison

EPILOG = """Examples:

  counterfoil compare runs/*

  counterfoil compare runs/* --baseline clip --html report.html

  counterfoil compare runs/* --latex table.tex --markdown table.md --json comparison.json"""


def command(
    runs: Annotated[list[Path], typer.Argument(help="Run folders, or folders of them.")],
    baseline: Annotated[str | None, typer.Option(help="Compare every other run with this one.")] = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained HTML page here.")] = None,
    markdown: Annotated[Path | None, typer.Option(help="Write the tables as Markdown here.")] = None,
    latex: Annotated[Path | None, typer.Option(help="Write the tables as LaTeX (booktabs) here.")] = None,
    csv: Annotated[Path | None, typer.Option(help="Write the tables as CSV here.")] = None,
    json: Annotated[
        str | None, typer.Option(metavar="PATH|-", help="Write the machine-readable results here.")
    ] = None,
    title: Annotated[str, typer.Option(help="Title of the HTML page.")] = "counterfoil report",
    pictures: Annotated[
        Literal["auto", "always", "never"],
        typer.Option(help="Images on the page: auto asks the benchmark's licence."),
    ] = "auto",
    data: Annotated[
        Path | None, typer.Option(help="Where the benchmark's images are, if not where they were.")
    ] = None,
    images: Annotated[
        Path | None, typer.Option(help="Folder of the images, where the data name files.")
    ] = None,
    draws: Annotated[
        int, typer.Option(min=100, help="Bootstrap draws; permutations are at least as many.")
    ] = 10_000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of bootstrap and permutations.")] = 0,
) -> None:
    """Compare runs question by question: bootstrap of the difference, paired permutation and McNemar, Holm.

    The same seed gives the same numbers, to the last bit.
    """
    from counterfoil.cli import terminal
    from counterfoil.cli.tables import comparison_table, differences_table
    from counterfoil.evaluation.compare import compare
    from counterfoil.evaluation.run import find_runs

    terminal.check_targets(html, markdown, latex, csv, json)
    comparisons = compare(find_runs(runs), baseline=baseline, draws=draws, seed=seed)
    console = terminal.err() if json == "-" else terminal.out()
    for comparison in comparisons:
        console.print(comparison_table(comparison, width=console.width))
        found = differences_table(comparison)
        if found is not None:
            console.print(found)
    _write_tables(comparisons, markdown=markdown, latex=latex, csv=csv)
    if json is not None:
        found_json = _results(comparisons)
        terminal.write_result(json, found_json[0] if len(found_json) == 1 else found_json)
    if html is not None:
        _write_page(html, comparisons, title=title, pictures=pictures, data=data, images=images)
        terminal.note(f"report written to {html}")


def _results(comparisons: "Sequence[Comparison]") -> list[dict[str, Any]]:
    """The result of every run, with its differences to the baseline (else to later runs) as `against`."""
    found = []
    for comparison in comparisons:
        for run in comparison.runs:
            against: dict[str, dict[str, Any]] = {}
            for d in comparison.differences:
                if d.a == run.name and comparison.baseline in (None, d.b):
                    against.setdefault(d.b, {})[d.measure] = {
                        "difference": d.value,
                        "low": d.low,
                        "high": d.high,
                        "p": d.p,
                        "p_holm": d.p_holm,
                        "mcnemar": d.mcnemar,
                    }
            found.append({**run.result.to_json(), "scorer": run.name, "against": against})
    return found


def _write_tables(
    comparisons: "Sequence[Comparison]", *, markdown: Path | None, latex: Path | None, csv: Path | None
) -> None:
    from counterfoil.data.galleries import Gallery
    from counterfoil.report.markup import to_csv, to_latex, to_markdown
    from counterfoil.report.tables import by_group, headline, overview
    from counterfoil.store import write_text

    if not (markdown or latex or csv):
        return
    groups = [by_group(comparison) for comparison in comparisons]
    # What is read on a page has a table per gallery, with what its authors report; CSV has all there is.
    galleries = [each for each in comparisons if isinstance(each.runs[0].benchmark.questions, Gallery)]
    others = [each for each in comparisons if each not in galleries]
    pages = [overview(*others)] if others else []
    pages += [overview(each, measures=headline(each) or None) for each in galleries]
    pages = [table for table in (*pages, *groups) if table.columns]
    if markdown is not None:
        write_text(markdown, "\n".join(map(to_markdown, pages)))
    if latex is not None:
        write_text(latex, "\n".join(map(to_latex, pages)))
    if csv is not None:
        write_text(csv, to_csv(*(table for table in (overview(*comparisons), *groups) if table.columns)))


def _with_pictures(
    comparisons: "Sequence[Comparison]", *, data: Path | None, images: Path | None
) -> "list[Comparison]":
    """The comparisons with their benchmarks' images, where those are still to be found."""
    from dataclasses import replace

    from counterfoil import catalog
    from counterfoil.cli import terminal
    from counterfoil.errors import CounterfoilError

    found = []
    for comparison in comparisons:
        first = comparison.runs[0]
        about = first.manifest.get("benchmark", {})
        place = data or first.benchmark.path
        folder = images or (Path(about["images"]) if about.get("images") else None)
        card = catalog.benchmarks().get(comparison.benchmark)
        if first.benchmark.path is None and card is not None and card.reader.startswith("counterfoil.world."):
            # Drawn on the spot: it comes from no file, and is always the same.
            place, drawn = None, True
        else:
            drawn = False
        if place is not None or drawn:
            try:
                whole = catalog.benchmark(comparison.benchmark, data=place, images=folder)
                runs = tuple(run.with_benchmark(whole) for run in comparison.runs)
                comparison = replace(comparison, runs=runs)
            except CounterfoilError as error:
                terminal.note(f"no pictures of {comparison.benchmark} on the page: {error}")
        found.append(comparison)
    return found


def _write_page(
    path: Path,
    comparisons: "Sequence[Comparison]",
    *,
    title: str,
    pictures: Literal["auto", "always", "never"],
    data: Path | None,
    images: Path | None,
) -> None:
    from counterfoil.report.page import page
    from counterfoil.store import write_text

    if pictures != "never":
        comparisons = _with_pictures(comparisons, data=data, images=images)
    write_text(path, page(comparisons, title=title, pictures=pictures))
