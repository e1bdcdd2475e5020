"""`counterfoil compare`: runs side by side, with tests and a report."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterfoil.cli.options import Overwrite, Private
from counterfoil.inputs.amounts import most

if TYPE_CHECKING:
    from collections.abc import Sequence

    from counterfoil.data.benchmark import Benchmark
    from counterfoil.evaluation.compare import Comparison
    from counterfoil.report.markup import Table

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
    interval: Annotated[
        Literal["auto", "wilson", "bootstrap", "crossed", "folds"] | None,
        typer.Option(
            help="How intervals are made, those of the runs too; by default theirs are kept, and those of "
            "differences are made as auto makes them.",
        ),
    ] = None,
    draws: Annotated[
        int,
        typer.Option(
            min=100,
            max=most("draws"),
            help="Bootstrap draws; permutations are at least as many.",
        ),
    ] = 10_000,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=most("seed"),
            help="Seed of bootstrap and permutations.",
        ),
    ] = 0,
    private: Private = False,
    overwrite: Overwrite = False,
) -> None:
    """Compare runs question by question: intervals of the difference, paired permutation and McNemar, Holm.

    The same seed gives the same numbers, to the last bit.
    """
    from counterfoil.cli import output_paths, terminal
    from counterfoil.cli.tables import comparison_table, differences_table, resting_lines
    from counterfoil.evaluation.compare import check_common, compare, remeasured
    from counterfoil.evaluation.run import find_runs

    output_paths.check(html=html, markdown=markdown, latex=latex, csv=csv, json=json)
    terminal.check_drawing(html)
    found_runs = find_runs(runs, note=terminal.note)
    check_common(found_runs, note=terminal.note)
    if interval is not None:
        found_runs = [remeasured(run, interval, draws=draws, seed=seed) for run in found_runs]
    comparisons: Sequence[Comparison] = compare(
        found_runs, baseline=baseline, interval=interval or "auto", draws=draws, seed=seed
    )
    if html is not None and pictures != "never":
        insist = pictures == "always" and data is not None
        comparisons = _with_pictures(comparisons, data=data, images=images, insist=insist)
    console = terminal.err() if json == "-" else terminal.out()
    for comparison in comparisons:
        console.print(comparison_table(comparison, width=console.width))
        found = differences_table(comparison, width=console.width)
        if found is not None:
            console.print(found)
        console.print(resting_lines(comparison.runs[0].benchmark, [run.result for run in comparison.runs]))
    _write_tables(comparisons, markdown=markdown, latex=latex, csv=csv)
    if json is not None:
        found_json = _results(comparisons)
        terminal.write_result(json, found_json[0] if len(found_json) == 1 else found_json)
    if html is not None:
        _write_page(html, comparisons, title=title, pictures=pictures, private=private)
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
    from counterfoil.report.interval_basis import rests_on
    from counterfoil.report.markup import to_csv, to_latex, to_markdown
    from counterfoil.report.tables import by_group, headline, overview
    from counterfoil.store import write_text

    if not (markdown or latex or csv):
        return
    groups = [by_group(comparison) for comparison in comparisons]
    tested = [table for each in comparisons for table in _differences(each)]
    # What is read on a page has a table per gallery, with what its authors report; CSV has all there is.
    galleries = [each for each in comparisons if each.runs[0].benchmark.questions.directed]
    others = [each for each in comparisons if each not in galleries]
    pages = [overview(*others)] if others else []
    pages += [overview(each, measures=headline(each) or None) for each in galleries]
    pages = [table for table in (*pages, *groups, *tested) if table.columns]
    rests = [
        f"{each.benchmark}: {line}"
        for each in comparisons
        for line in rests_on(each.runs[0].benchmark, [run.result for run in each.runs])
    ]
    if markdown is not None:
        tables = [to_markdown(table, intervals=True) for table in pages]
        write_text(markdown, "\n".join([*tables, *(f"{line}.\n" for line in rests)]))
    if latex is not None:
        tables = [to_latex(table, intervals=True) for table in pages]
        write_text(latex, "\n".join([*tables, *(f"% {line}.\n" for line in rests)]))
    if csv is not None:
        write_text(
            csv, to_csv(*(table for table in (overview(*comparisons), *groups, *tested) if table.columns))
        )


def _differences(comparison: "Comparison") -> "list[Table]":
    """A table of the tested differences per measure that has any: to the baseline where there is one."""
    from dataclasses import replace

    from counterfoil.report.tables import differences

    if comparison.baseline:
        comparison = replace(comparison, differences=comparison.against_baseline())
    return [
        differences(comparison, name) for name in dict.fromkeys(d.measure for d in comparison.differences)
    ]


def _with_pictures(
    comparisons: "Sequence[Comparison]", *, data: Path | None, images: Path | None, insist: bool
) -> "list[Comparison]":
    """The comparisons with their benchmarks' images, where those are still to be found.

    With `insist` it is an error where they are not in `data`, else a note says so.
    """
    from dataclasses import replace

    from counterfoil.cli import output_paths, terminal
    from counterfoil.data.data_paths import Places
    from counterfoil.errors import CounterfoilError, DataError

    places = Places(data)
    found = []
    for comparison in comparisons:
        first = comparison.runs[0]
        about = first.manifest.get("benchmark", {})
        place = first.benchmark.path
        if data is not None:
            place = places.of(comparison.benchmark, many=len(comparisons) > 1)
        folder = images or (Path(about["images"]) if about.get("images") else None)
        output_paths.also_read(place, folder)
        try:
            whole = _whole(comparison.benchmark, place, folder)
            if whole is not None:
                runs = tuple(run.with_benchmark(whole) for run in comparison.runs)
                if all(after is before for after, before in zip(runs, comparison.runs, strict=True)):
                    raise DataError(
                        "not the questions, captions and images that the runs were measured on",
                        where=place or comparison.benchmark,
                        hint="name the right ones with --data and --images",
                    )
                comparison = replace(comparison, runs=runs)
        except CounterfoilError as error:
            if insist:
                raise
            terminal.note(f"no pictures of {comparison.benchmark} on the page: {error}")
        found.append(comparison)
    return found


def _whole(name: str, place: Path | None, images: Path | None) -> "Benchmark | None":
    """The benchmark with its images: from a folder of our own, by its reader, or drawn on the spot.

    None where nothing says where it is.
    """
    from counterfoil import catalog
    from counterfoil.data.folder import is_benchmark_folder, load

    if place is not None:
        return (
            load(place) if is_benchmark_folder(place) else catalog.benchmark(name, data=place, images=images)
        )
    card = catalog.benchmarks().get(name)
    # What is drawn comes from no file, and is always the same.
    drawn = card is not None and card.reader.startswith("counterfoil.world.")
    return catalog.benchmark(name, images=images) if drawn else None


def _write_page(
    path: Path,
    comparisons: "Sequence[Comparison]",
    *,
    title: str,
    pictures: Literal["auto", "always", "never"],
    private: bool,
) -> None:
    from counterfoil.report.page import page
    from counterfoil.store import write_text

    write_text(path, page(comparisons, title=title, pictures=pictures, private=private))
