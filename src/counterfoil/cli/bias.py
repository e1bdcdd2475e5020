"""`counterfoil bias`: what the choice of machine annotators does to a benchmark."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterfoil.cli.options import Overwrite
from counterfoil.inputs.amounts import most

if TYPE_CHECKING:
    from counterfoil.data.benchmark import Benchmark
    from counterfoil.data.pools import Judgements
    from counterfoil.engine.top_lists import ModelLists
    from counterfoil.evaluation.annotation_recall import Coverage, Multiplicity
    from counterfoil.evaluation.annotators import AnnotatorBias
    from counterfoil.evaluation.judged_pairs import JudgedPairs

EPILOG = """Examples:

  counterfoil bias runs/*/eccv --judgements judged.csv

  counterfoil bias pvse.npz vsrn.npz clip.npz --judgements judged.parquet --k 5 --html bias.html

  counterfoil bias runs/*/coco-5k --judgements judged.csv --positives coco-5k --positives cxc --data COCO

judged.csv is a table of `counterfoil pool` with a column `answer` (100% YES, Partially YES, Mostly NO,
100% NO) or `gain` (1 to 0). Several rows per pair are several people's answers."""


def command(
    scores: Annotated[
        list[Path],
        typer.Argument(metavar="SCORES", help="Run folders, embeddings (.npz) or similarities (.npy)."),
    ],
    judgements: Annotated[
        Path, typer.Option(help="Judged pairs: direction, image, caption, answer or gain.")
    ],
    k: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=most("k"),
            help="How many items each model proposes: all in the table's places, else 5.",
        ),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="recall_at_1, r_precision, and both with graded_ before them; commas between.")
    ] = "graded_recall_at_1,graded_r_precision",
    direction: Annotated[
        Literal["i2t", "t2i"] | None,
        typer.Option(help="Only this one; that of all judgements where the table does not say."),
    ] = None,
    aggregate: Annotated[
        Literal["majority", "mean"], typer.Option(help="How several answers to one pair are aggregated.")
    ] = "majority",
    undefined: Annotated[
        Literal["out", "zero"],
        typer.Option(help="Queries for which a set of annotators found nothing: left out, or 0."),
    ] = "out",
    positives: Annotated[
        list[str] | None,
        typer.Option(
            help="A benchmark or folder whose right answers to hold against the judgements; repeat."
        ),
    ] = None,
    data: Annotated[Path | None, typer.Option(help="Where the data of those benchmarks are.")] = None,
    ids: Annotated[
        Path | None, typer.Option(help="An npz file with image_ids and caption_ids, for files without.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write one self-contained HTML page here.")] = None,
    plot: Annotated[
        Path | None, typer.Option(help="Draw bias by number of annotators (svg, pdf, png).")
    ] = None,
    json: Annotated[
        str | None, typer.Option(metavar="PATH|-", help="Write the machine-readable results here.")
    ] = None,
    draws: Annotated[int, typer.Option(min=100, max=most("draws"), help="Bootstrap draws.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, max=most("seed"), help="Seed of the bootstrap.")] = 0,
    overwrite: Overwrite = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")] = False,
) -> None:
    """Measure each model on the benchmarks that each set of models would have made, and how far that is off.

    Bias is the mean distance of all models to their values on the benchmark that all made together; self-bias
    that of the annotators themselves, non-self-bias that of the rest.
    """
    from counterfoil.cli import output_paths, terminal
    from counterfoil.cli.folders import data_folder
    from counterfoil.cli.judged_pairs import verified as verified_pairs
    from counterfoil.cli.model_lists import load
    from counterfoil.cli.report_tables import printed
    from counterfoil.data.pools import read_judgements
    from counterfoil.evaluation.annotation_recall import against
    from counterfoil.evaluation.annotators import MOST, study
    from counterfoil.report import annotator_tables as tables

    output_paths.check(html=html, json=json, plot=plot)
    terminal.check_drawing(html)
    measures = tuple(dict.fromkeys(name.strip() for name in measure.split(",")))
    with terminal.busy("reading judgements and lists", quiet=quiet):
        judged = read_judgements(judgements, direction=direction, aggregate=aggregate)
        models = load(scores, ids=ids, widest=True)
        sets = _benchmarks(positives or [], data_folder(data))
    clustering = next((m.benchmark for m in models if m.benchmark is not None), next(iter(sets), None))
    studies: list[AnnotatorBias] = []
    coverages: list[Coverage] = []
    counts: list[Multiplicity] = []
    notes = _about(judged, aggregate)
    crossed = False
    for one in _of(judged.directions, direction):
        with terminal.progress(quiet=quiet) as report:
            verified, unjudged = verified_pairs(models, one, k, clustering, report)
        notes += _about_direction(one, verified, unjudged)
        with terminal.busy("measuring on the benchmarks of all sets", quiet=quiet):
            found = study(verified, measures, undefined=undefined, draws=draws, seed=seed)
        studies += found
        crossed = crossed or verified.sharing.crossed
        notes += _about_queries(found[0], undefined)
        some, many = against(one, sets, sharing=verified.sharing, draws=draws, seed=seed)
        coverages += some
        counts += many
    if clustering is None and any(one.direction == "t2i" for one in judged.directions):
        notes.append("which captions are of one image is not known: intervals take each query by itself")
    if len(models) > MOST:
        notes.append(
            f"{len(models)} models make too many sets: "
            f"{len(studies[0].annotators):,} of them were drawn (seed {seed})"
        )
    console = terminal.err() if json == "-" else terminal.out()
    shown = [table for each in studies for table in (tables.performance(each), tables.biases(each))]
    if coverages:
        shown.append(tables.coverages(coverages))
    shown.append(tables.multiplicities(counts))
    for table in () if quiet and json == "-" else shown:
        for part in printed(table, console.width):
            console.print(part)
    if not quiet:
        for note in notes:
            terminal.note(note)
    if json is not None:
        terminal.write_result(
            json,
            _json(
                models,
                studies,
                coverages,
                counts,
                notes,
                policies={"several_answers": aggregate, "queries_without_right_answers": undefined},
                interval={
                    "method": "bootstrap over queries"
                    + ("" if clustering is None else ", those of one image together")
                    + (", images and captions crossed" if crossed else ""),
                    "level": 0.95,
                    "draws": draws,
                    "seed": seed,
                },
            ),
        )
    if plot is not None:
        from counterfoil.report.bias_page import curves
        from counterfoil.report.drawing import save

        save(curves(studies), plot, title="Bias by number of annotators")
    if html is not None:
        from counterfoil.report.bias_page import bias_page
        from counterfoil.store import write_text

        write_text(html, bias_page(studies, coverages, counts, notes))
        if not quiet:
            terminal.note(f"page written to {html}")


def _of(directions: "Sequence[Judgements]", direction: Literal["i2t", "t2i"] | None) -> "list[Judgements]":
    """The judgements of the wanted direction, or of both."""
    from counterfoil.errors import InputError

    found = [one for one in directions if direction in (None, one.direction)]
    if not found:
        raise InputError(
            "no judgement of this direction",
            given=direction,
            allowed=", ".join(d.direction for d in directions),
        )
    return found


def _benchmarks(names: Sequence[str], data: Path | None) -> "list[Benchmark]":
    from counterfoil import catalog

    found = []
    for name in names:
        benchmark = catalog.benchmark(name, data=None if Path(name).is_dir() else data)
        # Raises where it is no gallery.
        _ = benchmark.gallery
        found.append(benchmark)
    return found


def _about(judged: Any, aggregate: str) -> list[str]:
    notes = [f"{judged.pairs:,} judged pairs in {judged.rows:,} rows"]
    if judged.several:
        how = "the most frequent answer, of equals the lowest" if aggregate == "majority" else "the mean gain"
        notes.append(f"{judged.several:,} pairs have several answers: {how}")
    if judged.unanswered:
        notes.append(f"{judged.unanswered:,} rows have no answer and were left out")
    return notes


def _about_direction(one: "Judgements", verified: "JudgedPairs", unjudged: int) -> list[str]:
    from counterfoil.report.annotator_tables import WAYS

    way = WAYS[one.direction]
    notes = []
    if unjudged:
        total = unjudged + int(verified.proposed.sum())
        notes.append(f"{way}: {unjudged:,} of {total:,} proposals were never judged and count as wrong")
    stray = int((~verified.proposed.any(axis=1)).sum())
    if stray:
        notes.append(f"{way}: {stray:,} judged pairs were proposed by no model here and make no benchmark")
    return notes


def _about_queries(study: "AnnotatorBias", undefined: str) -> list[str]:
    from counterfoil.report.annotator_tables import WAYS

    least, most = int(study.queries[:-1].min()), int(study.queries[-1])
    how = "left out of its means" if undefined == "out" else "counted as 0"
    if least == most:
        return []
    return [
        f"{WAYS[study.direction]}: all models found something for {most:,} queries, some sets for as few "
        f"as {least:,}; a query without right answers was {how}"
    ]


def _json(
    models: "Sequence[ModelLists]",
    studies: "Sequence[AnnotatorBias]",
    coverages: "Sequence[Coverage]",
    counts: "Sequence[Multiplicity]",
    notes: Sequence[str],
    *,
    policies: dict[str, str],
    interval: dict[str, Any],
) -> dict[str, Any]:
    from counterfoil.evaluation.annotators import to_json

    return {
        "models": [m.name for m in models],
        "measures": {study.name: to_json(study) for study in studies},
        "positives": {
            way: {each.name: each.to_json() for each in coverages if each.direction == way}
            for way in dict.fromkeys(each.direction for each in coverages)
        },
        "multiplicity": {
            way: {each.name: each.to_json() for each in counts if each.direction == way}
            for way in dict.fromkeys(each.direction for each in counts)
        },
        "policies": policies,
        "interval": interval,
        "notes": list(notes),
    }
