"""`counterfoil evaluate`: one scorer on one or more benchmarks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from counterfoil.data.benchmark import Benchmark

EPILOG = """Examples:

  counterfoil evaluate open-clip:ViT-B-32-quickgelu/openai bivlc winoground sugarcrepe --out runs/clip

  counterfoil evaluate given:scores/clip.jsonl winoground --data winoground/

  counterfoil evaluate hf:./my-siglip pairs --data my.csv --images photos/ --json result.json

  counterfoil evaluate embeddings:clip.npz coco-5k coco-1k cxc eccv --out runs/clip

  counterfoil evaluate given:similarities.npy eccv --ids ids.npz --measure map_at_r

  counterfoil evaluate metric:cider flickr8k-expert --data flickr8k/

  counterfoil evaluate metric:pac-s flickr8k-cf pascal-50s --data sets/ --scorer open-clip:ViT-B-32/pac.pth"""


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
        typer.Option(
            help="Only this measure; may be repeated. In a gallery recall_at_20 stands for all of its kind; "
            "of several benchmarks each takes those it has.",
            rich_help_panel="Statistics",
        ),
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
    behind: Annotated[
        str | None,
        typer.Option(
            "--scorer",
            metavar="SCORER",
            help="The model behind a caption metric that looks at images.",
            rich_help_panel="Caption metrics",
        ),
    ] = None,
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="What a caption metric does otherwise than officially; may be repeated.",
            rich_help_panel="Caption metrics",
        ),
    ] = None,
    ids: Annotated[
        Path | None,
        typer.Option(
            help="npz file with image_ids and caption_ids of the rows and columns of a given similarity.",
            rich_help_panel="Galleries",
        ),
    ] = None,
    first_stage: Annotated[
        str | None,
        typer.Option(
            metavar="SCORER",
            help="A dual encoder whose first items a scorer of pairs ranks again.",
            rich_help_panel="Galleries",
        ),
    ] = None,
    depth: Annotated[
        int,
        typer.Option(
            min=1, help="How many of the first stage's items are ranked again.", rich_help_panel="Galleries"
        ),
    ] = 32,
    top: Annotated[
        int,
        typer.Option(
            min=0, help="How many first items of each query a run keeps.", rich_help_panel="Galleries"
        ),
    ] = 50,
    beyond_is_wrong: Annotated[
        bool,
        typer.Option(
            "--beyond-is-wrong",
            help="What stands behind the end of a cut ranking is wrong, as in numbers made from cut lists.",
            rich_help_panel="Galleries",
        ),
    ] = False,
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

    Work that is done is kept in the cache, so a run that was stopped goes on where it was. Galleries of the
    same items (coco-5k, coco-1k, cxc, eccv) are ranked together, from one pass over the scores.
    """
    import os
    from dataclasses import replace

    from counterfoil import catalog
    from counterfoil.cli import asking, terminal
    from counterfoil.cli.session import cache_folder, manifest
    from counterfoil.engine.rerank import name as reranked
    from counterfoil.evaluation.evaluate import Interval, evaluate
    from counterfoil.evaluation.run import save_run
    from counterfoil.metrics.ties import Ties
    from counterfoil.scorers.base import Options

    # Names and places first: a typing error should not cost the loading of a model.
    terminal.check_targets(json, folder=out)
    for benchmark_name in benchmarks:
        if not Path(benchmark_name).is_dir():
            catalog.benchmark_card(benchmark_name)
    options = Options(
        device=device,
        precision=precision,
        prompt=prompt,
        allow_gelu=allow_gelu,
        column=column,
        whole_rows=asking.whole_rows(scorer, benchmarks),
        seed=seed,
        ids=asking.beside(ids, data),
        backbone=asking.beside_data(behind or "", data),
        settings=asking.settings(settings or ()),
    )
    say = (lambda text: None) if quiet else terminal.note
    kept = None if no_cache else cache_folder(cache)
    with terminal.busy(f"loading {scorer}", quiet=quiet):
        loaded = catalog.scorer(asking.beside_data(scorer, data), options, memory=kept)
        first = None
        if first_stage is not None:
            plain = replace(options, ids=None, column=None, whole_rows=False, backbone="", settings={})
            first = catalog.scorer(asking.beside_data(first_stage, data), plain, memory=kept)
    if (described := getattr(loaded, "described", None)) is not None:
        say(f"{scorer}: {described}")
    called = name or (" ".join([scorer, behind or ""]).strip())
    if name is None and first_stage is not None:
        called = reranked(scorer, first_stage, depth)

    read = []
    for benchmark_name in benchmarks:
        where = asking.place(data, benchmark_name, many=len(benchmarks) > 1)
        with terminal.busy(f"reading {benchmark_name}", quiet=quiet):
            each = asking.benchmark(benchmark_name, where, images, loaded)
        if available:
            whole = len(each)
            each = each.available()
            say(f"{each.name}: {len(each):,} of {whole:,} questions are at hand")
        if any(words in (each.source or "") for words in ("left out", "taken out")):
            # Which rows the protocol left out, and which were not sound, changes what the numbers are of.
            say(f"{each.name}: {each.source}")
        asking.check(loaded, each)
        read.append(each)

    reported = asking.measures(read, measure or ())
    processes = min(8, os.cpu_count() or 1) if workers is None else workers
    answers = asking.answers(
        read,
        loaded,
        first=first,
        quiet=quiet,
        depth=depth,
        top=top,
        beyond_is_wrong=beyond_is_wrong,
        cache=kept,
        batch_size=batch_size,
        workers=processes,
        note=(lambda text: None) if quiet else terminal.warn,
    )
    results: list[dict[str, Any]] = []
    for benchmark_name, benchmark, answer, wanted in zip(benchmarks, read, answers, reported, strict=True):
        facts = manifest(
            benchmark,
            asking.as_asked(loaded, benchmark),
            first=first,
            images=images,
            device=device,
            batch_size=batch_size,
            workers=processes,
        )
        result = evaluate(
            benchmark,
            answer,
            scorer=called,
            ties=Ties(ties),
            interval=Interval(interval),
            draws=draws,
            seed=seed,
            measures=wanted,
            provenance={key: facts[key] for key in ("benchmark", "scorer", "versions")},
        )
        if out is not None:
            folder = out / Path(benchmark_name).name
            save_run(folder, benchmark, answer, result, facts)
            say(f"run written to {folder}")
        _show(result, benchmark, to_stderr=json == "-", quiet=quiet)
        results.append(result.to_json())
    if json is not None:
        terminal.write_result(json, results[0] if len(results) == 1 else results)


def _show(result: Any, benchmark: "Benchmark", *, to_stderr: bool, quiet: bool) -> None:
    from counterfoil.cli import terminal
    from counterfoil.cli.tables import groups_table, measures_table, ties_line

    if to_stderr and quiet:
        return
    console = terminal.err() if to_stderr else terminal.out()
    console.print(measures_table(result, benchmark, width=console.width))
    groups = groups_table(result, benchmark)
    if groups is not None:
        console.print(groups)
    console.print(ties_line(result), style="dim")
