"""`counterfoil evaluate`: one scorer on one or more benchmarks."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterfoil.cli import completion
from counterfoil.cli.options import BatchSize, CacheFolder, Device, NoCache, Overwrite, Precision, Workers
from counterfoil.inputs.amounts import most

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
        str,
        typer.Argument(
            help="What gives the scores, as KIND:WHAT; see 'counterfoil list scorers'.",
            autocompletion=completion.scorers,
        ),
    ],
    benchmarks: Annotated[
        list[str],
        typer.Argument(
            help="Names (see 'counterfoil list benchmarks') or folders of benchmarks.",
            autocompletion=completion.benchmarks,
        ),
    ],
    data: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]PATH",
            help="File or folder of the benchmark; of several, a folder with one of each name. NAME=PATH is "
            "that of one; may be repeated. Without it: what 'counterfoil fetch' brought, or the hub.",
            rich_help_panel="Data",
        ),
    ] = None,
    images: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FOLDER",
            help="Folder of the images, where the data name files; NAME=FOLDER for one benchmark.",
            rich_help_panel="Data",
        ),
    ] = None,
    limit: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="A quick look: only so many questions, evenly spread over the benchmark; results say so.",
            rich_help_panel="Data",
        ),
    ] = None,
    no_counts: Annotated[
        bool,
        typer.Option(
            "--no-counts",
            help="Data may hold another number of questions than the release.",
            rich_help_panel="Data",
        ),
    ] = False,
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
        Literal["auto", "wilson", "bootstrap", "crossed", "folds"],
        typer.Option(
            help="How intervals are made; auto knows which questions share images or captions.",
            rich_help_panel="Statistics",
        ),
    ] = "auto",
    draws: Annotated[
        int, typer.Option(min=100, max=most("draws"), help="Bootstrap draws.", rich_help_panel="Statistics")
    ] = 10_000,
    seed: Annotated[
        int,
        typer.Option(
            min=0,
            max=most("seed"),
            help="Seed of everything random.",
            rich_help_panel="Statistics",
        ),
    ] = 0,
    name: Annotated[
        str | None, typer.Option(help="What results call the scorer.", rich_help_panel="Results")
    ] = None,
    device: Device = "auto",
    precision: Precision = "fp32",
    prompt: Annotated[
        str,
        typer.Option(help="Template put around captions, with {} for the caption.", rich_help_panel="Model"),
    ] = "{}",
    column: Annotated[
        str | None,
        typer.Option(help="Column of a given table; default: guessed and said.", rich_help_panel="Model"),
    ] = None,
    unanswered: Annotated[
        Literal["refuse", "wrong", "leave-out"],
        typer.Option(
            help="Questions that given outcomes hold no answer to: an error, wrong, or not asked.",
            rich_help_panel="Model",
        ),
    ] = "refuse",
    backbone: Annotated[
        str | None,
        typer.Option(
            "--scorer",
            metavar="SCORER",
            help="The model that a caption metric looks at images with.",
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
            min=1,
            max=most("k"),
            help="How many of the first stage's items are ranked again.",
            rich_help_panel="Galleries",
        ),
    ] = 32,
    top: Annotated[
        int,
        typer.Option(
            min=0,
            max=most("k"),
            help="How many first items of each query a run keeps.",
            rich_help_panel="Galleries",
        ),
    ] = 50,
    truncated_as_miss: Annotated[
        bool,
        typer.Option(
            "--truncated-as-miss",
            help="Count a right answer beyond the end of a truncated ranking as a miss, as published numbers "
            "from truncated lists do.",
            rich_help_panel="Galleries",
        ),
    ] = False,
    batch_size: BatchSize = 32,
    workers: Workers = None,
    cache: CacheFolder = None,
    no_cache: NoCache = False,
    overwrite: Overwrite = False,
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
    from counterfoil.cli import evaluation_inputs, output_paths, run_folders, terminal
    from counterfoil.cli.folders import cache_folder
    from counterfoil.data.data_paths import Places
    from counterfoil.data.galleries import Gallery
    from counterfoil.data.provenance import about
    from counterfoil.engine.rerank import name as reranked
    from counterfoil.errors import CounterfoilError
    from counterfoil.evaluation.evaluate import IntervalMethod, evaluate
    from counterfoil.evaluation.run import save_run
    from counterfoil.metrics.ties import Ties
    from counterfoil.scorers.base import Options

    called = name or (" ".join([scorer, backbone or ""]).strip())
    if name is None and first_stage is not None:
        called = reranked(scorer, first_stage, depth)
    asked_as = called
    # Names and places first: a typing error should not cost the loading of a model.
    output_paths.not_read(*(each for each in benchmarks if each in catalog.benchmarks()))
    folders = run_folders.run_folders(out, benchmarks, called)
    output_paths.check(json=json, folders=folders)
    for benchmark_name in benchmarks:
        if not Path(benchmark_name).is_dir():
            catalog.benchmark_card(benchmark_name)
    for spec in (scorer, backbone, first_stage):
        if spec is not None:
            catalog.scorer_name(spec)
    catalog.check_metric(scorer, backbone or "")
    places = Places.read(data or (), benchmarks)
    pictures = Places.read(images or (), benchmarks, option="--images")
    options = Options(
        device=device,
        precision=precision,
        prompt=prompt,
        column=column,
        whole_rows=evaluation_inputs.whole_rows(scorer, benchmarks),
        unanswered=unanswered,
        seed=seed,
        ids=evaluation_inputs.beside(ids, places.plain),
        backbone=evaluation_inputs.beside_data(backbone or "", places.plain),
        settings=evaluation_inputs.settings(settings or ()),
    )
    say = (lambda text: None) if quiet else terminal.note
    kept = None if no_cache else cache_folder(cache)

    def load(spec: str, options: Options) -> Any:
        with terminal.busy(f"loading {spec}", quiet=quiet):
            found = catalog.scorer(evaluation_inputs.beside_data(spec, places.plain), options, memory=kept)
        if (described := getattr(found, "described", None)) is not None:
            say(f"{spec}: {described}")
        return found

    # A model is loaded once the data are known to be there. Given answers may carry the questions along.
    loaded = None if catalog.has_model(scorer) else load(scorer, options)
    read: list[tuple[str, Benchmark]] = []
    missing: list[tuple[str, CounterfoilError]] = []
    answerers: list[Any] = []
    holes: list[int] = []
    for benchmark_name in benchmarks:
        try:
            where = places.of(benchmark_name, many=len(benchmarks) > 1)
            with terminal.busy(f"reading {benchmark_name}", quiet=quiet):
                each = evaluation_inputs.benchmark(
                    benchmark_name, where, pictures.images_of(benchmark_name), loaded, counts=not no_counts
                )
            if available:
                whole = len(each)
                each = each.available()
                say(f"{each.name}: {len(each):,} of {whole:,} questions are at hand")
            if any(words in (each.source or "") for words in ("left out", "taken out")):
                # Which rows the protocol left out, and which were not sound, changes what the numbers are of.
                say(f"{each.name}: {each.source}")
            answering, each, empty = evaluation_inputs.narrowed(loaded, each, limit, unanswered, note=say)
            evaluation_inputs.check_at_hand(scorer, backbone or "", each)
        except CounterfoilError as error:
            if len(benchmarks) == 1:
                raise
            missing.append((benchmark_name, error))
        else:
            read.append((benchmark_name, each))
            answerers.append(answering)
            holes.append(empty)
    if not read:
        raise evaluation_inputs.not_measured(missing, len(benchmarks))
    for benchmark_name, _ in missing:
        terminal.warn(f"{benchmark_name} is not at hand; the others are measured")
    output_paths.also_read(*(each.path for _, each in read))
    if loaded is None:
        loaded = load(scorer, options)
    if name is None and (title := getattr(loaded, "title", "")):
        called = title
    first = None
    if first_stage is not None:
        plain = replace(options, ids=None, column=None, whole_rows=False, backbone="", settings={})
        first = load(first_stage, plain)
    for benchmark_name, each in read:
        evaluation_inputs.check(loaded, each)
        if out is not None and name is not None:
            identity = evaluation_inputs.as_asked(loaded, each).identity
            run_folders.check_identity(run_folders.run_folder(out, benchmark_name), asked_as, identity)

    reported = evaluation_inputs.measures([each for _, each in read], measure or ())
    processes = min(8, os.cpu_count() or 1) if workers is None else workers
    asked = evaluation_inputs.Asking(
        loaded,
        [each for _, each in read if isinstance(each.questions, Gallery)],
        first=first,
        depth=depth,
        top=top,
        truncated_as_miss=truncated_as_miss,
        quiet=quiet,
        how={
            "cache": kept,
            "batch_size": batch_size,
            "workers": processes,
            "note": (lambda text: None) if quiet else terminal.warn,
        },
    )
    results: list[dict[str, Any]] = []
    for (benchmark_name, benchmark), wanted, answering, empty in zip(
        read, reported, answerers, holes, strict=True
    ):
        try:
            answer = asked.answers(benchmark, answering)
        except CounterfoilError as error:
            if len(benchmarks) == 1:
                raise
            missing.append((benchmark_name, error))
            continue
        facts: dict[str, Any] = about(benchmark, images=pictures.images_of(benchmark_name))
        if limit is not None:
            facts["limit"] = limit
        if empty:
            facts["unanswered"] = {"questions": empty, "policy": unanswered}
        result = evaluate(
            benchmark,
            answer,
            scorer=called,
            ties=Ties(ties),
            interval=IntervalMethod(interval),
            draws=draws,
            seed=seed,
            measures=wanted,
            provenance={"benchmark": facts},
        )
        if out is not None:
            folder = run_folders.run_folder(out, benchmark_name)
            save_run(folder, benchmark, answer, result, {"named": name is not None, "asked": asked_as})
            say(f"run written to {folder}")
        _show(result, benchmark, to_stderr=json == "-", quiet=quiet)
        results.append(result.to_json())
    if json is not None:
        terminal.write_result(json, results[0] if len(benchmarks) == 1 else results)
    if missing:
        raise evaluation_inputs.not_measured(missing, len(benchmarks))


def _show(result: Any, benchmark: "Benchmark", *, to_stderr: bool, quiet: bool) -> None:
    from counterfoil.cli import terminal
    from counterfoil.cli.tables import groups_table, measures_table, resting_lines, ties_line

    if to_stderr and quiet:
        return
    console = terminal.err() if to_stderr else terminal.out()
    console.print(measures_table(result, benchmark, width=console.width))
    groups = groups_table(result, benchmark, width=console.width)
    if groups is not None:
        console.print(groups)
    console.print(resting_lines(benchmark, [result]))
    console.print(ties_line(result), style="dim")
