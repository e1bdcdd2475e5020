"""`counterfoil evaluate`: one scorer on one or more benchmarks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from counterfoil.data.benchmark import Benchmark

EPILOG = """Examples:

  counterfoil evaluate open-clip:ViT-B-32-quickgelu/openai bivlc winoground sugarcrepe --out runs/clip

  counterfoil evaluate given:scores/clip.jsonl winoground --data winoground/

  counterfoil evaluate hf:./my-siglip pairs --data my.csv --images photos/ --json result.json"""


def command(
    scorer: Annotated[
        str, typer.Argument(help="What gives the scores, as KIND:WHAT; see 'counterfoil list scorers'.")
    ],
    benchmarks: Annotated[
        list[str], typer.Argument(help="Names (see 'counterfoil list benchmarks') or folders of benchmarks.")
    ],
    data: Annotated[
        Path | None,
        typer.Option(
            help="File or folder of the benchmark; with several, a folder with one of each name.",
            rich_help_panel="Data",
        ),
    ] = None,
    images: Annotated[
        Path | None,
        typer.Option(help="Folder of the images, where the data name files.", rich_help_panel="Data"),
    ] = None,
    available: Annotated[
        bool,
        typer.Option(
            "--available",
            help="Only the questions whose images and captions are at hand.",
            rich_help_panel="Data",
        ),
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Write a run folder per benchmark here, for 'compare'.", rich_help_panel="Results"),
    ] = None,
    json: Annotated[
        str | None,
        typer.Option(
            metavar="PATH|-", help="Write the machine-readable result here.", rich_help_panel="Results"
        ),
    ] = None,
    measure: Annotated[
        list[str] | None,
        typer.Option(help="Only this measure; may be repeated.", rich_help_panel="Statistics"),
    ] = None,
    ties: Annotated[
        Literal["strict", "half", "optimistic"],
        typer.Option(
            help="A tie is wrong, worth its chance in a random order, or right.", rich_help_panel="Statistics"
        ),
    ] = "strict",
    interval: Annotated[
        Literal["auto", "wilson", "bootstrap", "folds"],
        typer.Option(
            help="How intervals are made; auto clusters questions that share images or captions.",
            rich_help_panel="Statistics",
        ),
    ] = "auto",
    draws: Annotated[
        int, typer.Option(min=100, help="Bootstrap draws.", rich_help_panel="Statistics")
    ] = 10_000,
    seed: Annotated[
        int, typer.Option(min=0, help="Seed of everything random.", rich_help_panel="Statistics")
    ] = 0,
    name: Annotated[
        str | None, typer.Option(help="What results call the scorer.", rich_help_panel="Results")
    ] = None,
    device: Annotated[
        str, typer.Option(help="auto, cpu, cuda, cuda:1, mps.", rich_help_panel="Model")
    ] = "auto",
    precision: Annotated[
        Literal["fp32", "bf16", "fp16"],
        typer.Option(help="Of weights and activations.", rich_help_panel="Model"),
    ] = "fp32",
    prompt: Annotated[
        str,
        typer.Option(help="Template put around captions, with {} for the caption.", rich_help_panel="Model"),
    ] = "{}",
    allow_gelu: Annotated[
        bool,
        typer.Option(
            "--allow-gelu", help="Load OpenAI-family weights with GELU all the same.", rich_help_panel="Model"
        ),
    ] = False,
    column: Annotated[
        str | None,
        typer.Option(help="Column of a given table; default: guessed and said.", rich_help_panel="Model"),
    ] = None,
    batch_size: Annotated[
        int, typer.Option(min=1, help="Items per batch; does not change decisions.", rich_help_panel="Work")
    ] = 32,
    workers: Annotated[
        int | None,
        typer.Option(
            min=0,
            help="Processes that decode images; default: one per core, at most 8.",
            rich_help_panel="Work",
        ),
    ] = None,
    cache: Annotated[
        Path | None,
        typer.Option(envvar="COUNTERFOIL_CACHE", help="Folder of finished work.", rich_help_panel="Work"),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Neither read nor keep finished work.", rich_help_panel="Work")
    ] = False,
    quiet: Annotated[
        bool, typer.Option("--quiet", "-q", help="No notes and no progress.", rich_help_panel="Results")
    ] = False,
) -> None:
    """Measure a scorer on benchmarks: every number with its interval, chance and ties.

    Work that is done is kept in the cache, so a run that was stopped goes on where it was.
    """
    import os

    from counterfoil import catalog
    from counterfoil.cli import terminal
    from counterfoil.cli.session import cache_folder, manifest
    from counterfoil.engine.run import run as run_engine
    from counterfoil.evaluation.evaluate import Interval, evaluate
    from counterfoil.evaluation.run import save_run
    from counterfoil.metrics.ties import Ties
    from counterfoil.scorers.base import Options

    # Names first: a typing error should not cost the loading of a model.
    for benchmark_name in benchmarks:
        if not Path(benchmark_name).is_dir():
            catalog.benchmark_card(benchmark_name)
    options = Options(
        device=device, precision=precision, prompt=prompt, allow_gelu=allow_gelu, column=column, seed=seed
    )
    say = (lambda text: None) if quiet else terminal.note
    warn = (lambda text: None) if quiet else terminal.warn
    kept = None if no_cache else cache_folder(cache)
    with terminal.busy(f"loading {scorer}", quiet=quiet):
        loaded = catalog.scorer(_beside_data(scorer, data), options, memory=kept)
    if (described := getattr(loaded, "described", None)) is not None:
        say(f"{scorer}: {described}")
    processes = min(8, os.cpu_count() or 1) if workers is None else workers

    results: list[dict[str, Any]] = []
    for benchmark_name in benchmarks:
        place = _place(data, benchmark_name, many=len(benchmarks) > 1)
        with terminal.busy(f"reading {benchmark_name}", quiet=quiet):
            benchmark = _benchmark(benchmark_name, place, images, loaded)
        if available:
            whole = len(benchmark)
            benchmark = benchmark.available()
            say(f"{benchmark.name}: {len(benchmark):,} of {whole:,} questions are at hand")
        with terminal.progress(quiet=quiet) as report:
            answers = run_engine(
                benchmark,
                loaded,
                cache=kept,
                batch_size=batch_size,
                workers=processes,
                progress=report,
                note=warn,
            )
        facts = manifest(
            benchmark, loaded, images=images, device=device, batch_size=batch_size, workers=processes
        )
        result = evaluate(
            benchmark,
            answers,
            scorer=name or scorer,
            ties=Ties(ties),
            interval=Interval(interval),
            draws=draws,
            seed=seed,
            measures=measure or None,
            provenance={
                "benchmark": facts["benchmark"],
                "scorer": facts["scorer"],
                "versions": facts["versions"],
            },
        )
        if out is not None:
            folder = out / Path(benchmark_name).name
            save_run(folder, benchmark, answers, result, facts)
            say(f"run written to {folder}")
        _show(result, benchmark, to_stderr=json == "-", quiet=quiet)
        results.append(result.to_json())
    if json is not None:
        terminal.write_result(json, results[0] if len(results) == 1 else results)


def _beside_data(scorer: str, data: Path | None) -> str:
    """A relative path to given numbers may also be meant from the data folder."""
    kind, _, path = scorer.partition(":")
    if (
        kind in ("given", "embeddings")
        and data is not None
        and not Path(path).exists()
        and (data / path).exists()
    ):
        return f"{kind}:{data / path}"
    return scorer


def _place(data: Path | None, benchmark_name: str, *, many: bool) -> Path | None:
    """Where one of several benchmarks lies: `data/NAME` where there is such a folder, else `data` itself."""
    if data is None or not many:
        return data
    inside = data / benchmark_name
    return inside if inside.exists() else data


def _benchmark(name: str, data: Path | None, images: Path | None, scorer: Any) -> "Benchmark":
    """The benchmark from its data; from the questions that given answers carry where no data is named."""
    from counterfoil import catalog
    from counterfoil.scorers.given import GivenTable

    if data is None and isinstance(scorer, GivenTable) and not Path(name).is_dir():
        carried = catalog.benchmark_from_answers(name, scorer.table)
        if carried is not None:
            return carried
    return catalog.benchmark(name, data=data, images=images)


def _show(result: Any, benchmark: "Benchmark", *, to_stderr: bool, quiet: bool) -> None:
    from counterfoil.cli import terminal
    from counterfoil.cli.tables import groups_table, measures_table, ties_line

    if to_stderr and quiet:
        return
    console = terminal.err() if to_stderr else terminal.out()
    console.print(measures_table(result, benchmark))
    groups = groups_table(result, benchmark)
    if groups is not None:
        console.print(groups)
    console.print(ties_line(result), style="dim")
