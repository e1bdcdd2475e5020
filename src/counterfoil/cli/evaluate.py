"""`counterfoil evaluate`: one scorer on one or more benchmarks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterfoil.cli import options, usage
from counterfoil.cli.options import (
    Available,
    Device,
    Draws,
    Json,
    Overwrite,
    Precision,
    Seed,
    Signatures,
    WorkOptions,
    key_values,
)
from counterfoil.inputs.limits import most

if TYPE_CHECKING:
    from counterfoil.benchmarks.benchmark import Benchmark

EPILOG = """Examples:
  counterfoil evaluate open-clip:ViT-B-32-quickgelu/openai bivlc winoground sugarcrepe --out runs/clip
  counterfoil evaluate given:scores/clip.jsonl winoground --data winoground/
  counterfoil evaluate hf:./my-siglip pairs --data my.csv --images photos/ --json result.json
  counterfoil evaluate embeddings:clip.npz coco-5k coco-1k cxc eccv --out runs/clip
  counterfoil evaluate given:similarities.npy eccv --ids ids.npz --measure map_at_r
  counterfoil evaluate chat:http://localhost:8000/v1#MODEL winoground --protocol choose --set rpm=60
  counterfoil evaluate metric:cider flickr8k-expert --data flickr8k/
  counterfoil evaluate metric:pac-s flickr8k-cf pascal-50s --data sets/ --scorer open-clip:ViT-B-32/pac.pth"""


@usage.panels(
    Data="data images limit no_counts available",
    Results="out json name quiet",
    Statistics="measure ties interval draws seed signatures",
    Model="prompt column unanswered",
    Generative_models="protocol question api_key_env",
    Caption_metrics="backbone settings",
    Galleries="ids first_stage depth top truncated_as_miss",
)
def command(
    scorer: Annotated[
        str,
        typer.Argument(
            help="What gives the scores, as KIND:WHAT; see 'counterfoil list scorers'.",
            autocompletion=options.complete_scorers,
        ),
    ],
    benchmarks: options.Benchmarks,
    data: options.BenchmarkData = None,
    images: options.BenchmarkImages = None,
    limit: Annotated[
        str | None,
        typer.Option(
            metavar="N|SHARE",
            help="Evaluate N evenly spaced questions, or such a share (0.1); results are marked as partial, "
            "and a note says what all of them would take.",
        ),
    ] = None,
    no_counts: Annotated[
        bool, typer.Option("--no-counts", help="Data may hold another number of questions than the release.")
    ] = False,
    available: Available = False,
    out: Annotated[
        Path | None, typer.Option(help="Write a run folder per benchmark here, for 'compare'.")
    ] = None,
    json: Json = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(
            help="Only this measure; may be repeated. In a gallery recall_at_20 stands for all of its kind; "
            "of several benchmarks each takes those it has."
        ),
    ] = None,
    ties: Annotated[
        Literal["strict", "half", "optimistic"],
        typer.Option(help="A tie is wrong, worth its chance in a random order, or right."),
    ] = "strict",
    interval: Annotated[
        Literal["auto", "wilson", "clusters", "crossed", "folds"],
        typer.Option(help="How intervals are made; auto knows which questions share images or captions."),
    ] = "auto",
    draws: Draws = 10_000,
    seed: Seed = 0,
    signatures: Signatures = False,
    name: Annotated[str | None, typer.Option(help="What results call the scorer.")] = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    prompt: Annotated[
        str, typer.Option(help="Template put around captions, with {} for the caption.")
    ] = "{}",
    column: Annotated[
        str | None, typer.Option(help="Column of a given table; default: guessed and said.")
    ] = None,
    unanswered: Annotated[
        Literal["refuse", "wrong", "leave-out"],
        typer.Option(
            help="Questions that given outcomes or a chat model do not answer: an error, wrong, or left out."
        ),
    ] = "refuse",
    backbone: Annotated[
        str | None,
        typer.Option(
            "--scorer", metavar="SCORER", help="The model that a caption metric looks at images with."
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="A setting of the scorer or caption metric, such as references=paper; may be repeated.",
        ),
    ] = None,
    protocol: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="How a generative model is asked, as --set protocol=NAME."),
    ] = None,
    question: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT", help="What it is asked, with {} for the caption, as --set question=TEXT."
        ),
    ] = None,
    api_key_env: Annotated[
        str | None,
        typer.Option(
            metavar="VARIABLE",
            help="Environment variable with the key of a chat endpoint; default: COUNTERFOIL_API_KEY.",
        ),
    ] = None,
    ids: Annotated[
        Path | None,
        typer.Option(
            help="npz file with image_ids and caption_ids of the rows and columns of a given similarity."
        ),
    ] = None,
    first_stage: Annotated[
        str | None,
        typer.Option(
            metavar="SCORER", help="A dual encoder whose first items a scorer of pairs ranks again."
        ),
    ] = None,
    depth: Annotated[
        int, typer.Option(min=1, max=most("k"), help="How many of the first stage's items are ranked again.")
    ] = 32,
    top: Annotated[
        int, typer.Option(min=0, max=most("k"), help="How many first items of each query a run keeps.")
    ] = 50,
    truncated_as_miss: Annotated[
        bool,
        typer.Option(
            "--truncated-as-miss",
            help="Count a right answer beyond the end of a truncated ranking as a miss, as published numbers "
            "from truncated lists do.",
        ),
    ] = False,
    work: WorkOptions = WorkOptions(),
    overwrite: Overwrite = False,
) -> None:
    """Measure a scorer on benchmarks: every number with its interval, chance and ties.

    Work that is done is kept in the cache, so a run that was stopped goes on where it was. Galleries of the
    same items (coco-5k, coco-1k, cxc, eccv) are ranked together, from one pass over the scores.
    """
    from counterfoil import terminal
    from counterfoil.benchmarks.data_paths import Places
    from counterfoil.catalog import benchmark_name
    from counterfoil.catalog import benchmarks as known_benchmarks
    from counterfoil.cli import paths
    from counterfoil.evaluation.evaluate import IntervalMethod
    from counterfoil.jobs.evaluate import EvaluateOptions, prepare
    from counterfoil.jobs.feedback import terminal_feedback
    from counterfoil.metrics.ties import Ties
    from counterfoil.models.base import Options

    benchmarks = [benchmark_name(name) for name in benchmarks]
    paths.not_read(*(name for name in benchmarks if name in known_benchmarks()))
    paths.check(json=json)
    named = [f"{key}={value}" for key, value in (("protocol", protocol), ("question", question)) if value]
    evaluation = prepare(
        scorer,
        benchmarks,
        EvaluateOptions(
            data=Places.read(data or (), benchmarks),
            images=Places.read(images or (), benchmarks, option="--images"),
            limit=options.count_or_share(limit),
            available=available,
            counts=not no_counts,
            out=out,
            name=name,
            measures=measure or (),
            ties=Ties(ties),
            interval=IntervalMethod(interval),
            draws=draws,
            seed=seed,
            scorer=Options(
                device=device,
                precision=precision,
                prompt=prompt,
                column=column,
                unanswered=unanswered,
                seed=seed,
                ids=ids,
                backbone=backbone or "",
                settings=key_values([*(settings or ()), *named]),
                api_key=paths.api_key(scorer, api_key_env),
            ),
            first_stage=first_stage,
            depth=depth,
            top=top,
            truncated_as_miss=truncated_as_miss,
            **work.asked(),
        ),
        feedback=terminal_feedback(),
    )
    results: list[dict[str, Any]] = []
    for run in evaluation.runs():
        _show(run.result, run.benchmark, to_stderr=json == "-", signatures=signatures)
        results.append(run.result.to_json())
    if json is not None:
        terminal.write_result(json, results[0] if len(benchmarks) == 1 else results)
    evaluation.check_complete()


def _show(result: Any, benchmark: "Benchmark", *, to_stderr: bool, signatures: bool) -> None:
    from counterfoil import terminal
    from counterfoil.cli.tables import groups_table, measures_table, resting_lines, signature_lines
    from counterfoil.report.notes import ties_line

    if to_stderr and terminal.quiet:
        return
    console = terminal.err() if to_stderr else terminal.out()
    console.print(measures_table(result, benchmark, width=console.width))
    groups = groups_table(result, benchmark, width=console.width)
    if groups is not None:
        console.print(groups)
    console.print(resting_lines(benchmark, [result]))
    console.print(ties_line(result, benchmark), style="dim")
    if signatures:
        console.print(signature_lines(*map(result.signature, result.measures)), soft_wrap=True)
