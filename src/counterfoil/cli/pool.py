"""`counterfoil pool`: candidate pairs for people to verify, from what several models put first."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from counterfoil.cli.options import Overwrite
from counterfoil.inputs.amounts import most

if TYPE_CHECKING:
    from counterfoil.data.pools import Direction
    from counterfoil.engine.top_lists import ModelLists
    from counterfoil.evaluation.pooling import Summary
    from counterfoil.metrics.annotators import Pool

EPILOG = """Examples:

  counterfoil pool runs/*/eccv --k 5 --out pool.csv

  counterfoil pool pvse.npz vsrn.npz clip.npz --queries queries.txt --direction t2i --out pool.parquet

  counterfoil pool runs/*/eccv similarity.npy --ids ids.npz --k 25 --plot yield.svg --json -

queries.txt has an id per line, of an image or a caption; where an id is both, write i2t/ID or t2i/ID. Give
people the table with a column `answer` to fill in, and hand it to `counterfoil bias --judgements`."""


def command(
    scores: Annotated[
        list[Path],
        typer.Argument(metavar="SCORES", help="Run folders, embeddings (.npz) or similarities (.npy)."),
    ],
    k: Annotated[
        int,
        typer.Option(
            min=1,
            max=most("k"),
            help="How many items each model proposes per query.",
        ),
    ] = 5,
    queries: Annotated[
        Path | None, typer.Option(help="Ids of the queries: one per line, or a table's column query or id.")
    ] = None,
    direction: Annotated[
        Literal["t2i", "i2t", "both"],
        typer.Option(help="Captions ask for images (t2i), images for captions (i2t), or both."),
    ] = "both",
    out: Annotated[Path | None, typer.Option(help="Write the pairs here (.csv or .parquet).")] = None,
    ids: Annotated[
        Path | None, typer.Option(help="An npz file with image_ids and caption_ids, for files without.")
    ] = None,
    exclude_known: Annotated[
        bool,
        typer.Option(
            "--exclude-known", help="Leave out pairs that are right in the runs' benchmark already."
        ),
    ] = False,
    per_task: Annotated[int, typer.Option(min=1, max=most("people"), help="Pairs to judge per task.")] = 18,
    golden: Annotated[
        int,
        typer.Option(
            min=0,
            max=most("people"),
            help="Pairs of known answer in each task beside them.",
        ),
    ] = 2,
    answers: Annotated[
        int,
        typer.Option(
            min=1,
            max=most("people"),
            help="How many people judge each pair.",
        ),
    ] = 1,
    price: Annotated[float, typer.Option(min=0, max=most("price"), help="Price of a task.")] = 1.4,
    plot: Annotated[Path | None, typer.Option(help="Draw the yield curve here (svg, pdf, png).")] = None,
    json: Annotated[
        str | None, typer.Option(metavar="PATH|-", help="Write the machine-readable results here.")
    ] = None,
    overwrite: Overwrite = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")] = False,
) -> None:
    """Pool what several models put first, each pair once, with who proposed it at which place.

    Tasks and prices default to those of ECCV Caption: 18 pairs to judge and 2 of known answer for 1.40.
    """
    from counterfoil.cli import output_paths, terminal
    from counterfoil.cli.model_lists import load
    from counterfoil.data.pools import pool_kind, pool_table, write_pool
    from counterfoil.engine.top_lists import top_lists
    from counterfoil.evaluation.pooling import Tasks, without
    from counterfoil.evaluation.pooling import summary as summarise
    from counterfoil.metrics.annotators import pool

    output_paths.check(table=out, json=json, plot=plot)
    if out is not None:
        pool_kind(out)
    with terminal.busy("reading lists", quiet=quiet):
        models = load(scores, ids=ids, widest=queries is not None and not exclude_known)
    chosen = _chosen(models, queries, direction)
    pools: dict[Direction, Pool] = {}
    excluded = 0
    for way, names in chosen.items():
        with terminal.progress(quiet=quiet) as report:
            pooled = pool([top_lists(m, way, names, k, progress=report) for m in models])
        if exclude_known:
            known = _known(models, way, names)
            before = len(pooled.query)
            pooled = without(pooled, known)
            excluded += before - len(pooled.query)
        pools[way] = pooled
    reference = models[0]
    found = summarise(
        pools,
        k=k,
        models=[m.name for m in models],
        queries={way: len(names) for way, names in chosen.items()},
        pair_of=_pair_numbers(pools, chosen, reference),
        tasks=Tasks(per_task, golden, answers, price),
        excluded=excluded,
    )
    console = terminal.err() if json == "-" else terminal.out()
    for part in () if quiet and json == "-" else _shown(found, console.width):
        console.print(part)
    if out is not None:
        texts = next((m.texts for m in models if m.texts is not None and None not in m.texts), None)
        table = pool_table(
            pools,
            models=[m.name for m in models],
            queries=chosen,
            images=reference.image_ids,
            captions=reference.caption_ids,
            texts=texts,
        )
        write_pool(out, table)
        if not quiet:
            terminal.note(f"{len(table):,} rows written to {out}")
    if json is not None:
        terminal.write_result(json, found.to_json())
    if plot is not None:
        from counterfoil.report.annotator_figures import yield_curves
        from counterfoil.report.drawing import save

        save(yield_curves(found.curve), plot, title="Pairs to verify by models and k")
        if not quiet:
            terminal.note(f"yield curve drawn in {plot}")


def _chosen(
    models: "Sequence[ModelLists]", file: Path | None, direction: Literal["t2i", "i2t", "both"]
) -> "dict[Direction, tuple[str, ...]]":
    """The ids of the queries by direction: those of a file, else all that every model answers."""
    from counterfoil.cli.queries import wanted
    from counterfoil.engine.top_lists import common
    from counterfoil.errors import InputError

    ways: Sequence[Direction] = ("i2t", "t2i") if direction == "both" else (direction,)
    chosen = {way: common(models, way) for way in ways} if file is None else wanted(models, file, ways=ways)
    chosen = {way: names for way, names in chosen.items() if names}
    if not chosen:
        raise InputError("the models answer no query in common", hint="give runs of one benchmark")
    return chosen


def _known(models: "Sequence[ModelLists]", way: "Direction", names: Sequence[str]) -> Any:
    """(pairs, 2) rows of query (as in `names`) and item that are right in the benchmark of some run."""
    import numpy as np

    from counterfoil.errors import InputError
    from counterfoil.evaluation.ground_truth import right_pairs

    known = [m.benchmark for m in models if m.benchmark is not None]
    if not known:
        raise InputError("--exclude-known needs a run", hint="embeddings and similarities know no benchmark")
    _, items = models[0].ids(way)
    return np.concatenate([right_pairs(benchmark, way, names, items) for benchmark in known])


def _pair_numbers(
    pools: "Mapping[Direction, Pool]", chosen: "Mapping[Direction, Sequence[str]]", reference: "ModelLists"
) -> "dict[Direction, Any]":
    """A number per pooled pair, the same in both directions where image and caption are."""
    import numpy as np

    found = {}
    for way, pooled in pools.items():
        place = {name: at for at, name in enumerate(reference.ids(way)[0])}
        asked = np.array([place[name] for name in chosen[way]], dtype=np.int64)[pooled.query]
        image, caption = (asked, pooled.item) if way == "i2t" else (pooled.item, asked)
        found[way] = image * len(reference.caption_ids) + caption
    return found


def _shown(found: "Summary", width: int) -> list[Any]:
    from rich.table import Table
    from rich.text import Text

    from counterfoil.report.drawing import short

    queries = " and ".join(
        f"{n:,} {'images' if way == 'i2t' else 'captions'}" for way, n in found.queries.items()
    )
    heading = Text(
        f"{found.pairs:,} pairs to verify: the first {found.k} of {len(found.models)} "
        f"model{'s' if len(found.models) > 1 else ''} for {queries}",
        style="bold",
    )
    by_model = Table(box=None, pad_edge=False, header_style="dim")
    by_model.add_column("model", no_wrap=True)
    for head in ("proposes", "alone", "new in this order"):
        by_model.add_column(head, justify="right")
    for name, proposed, alone, new in zip(found.models, found.proposed, found.alone, found.new, strict=True):
        by_model.add_row(Text(short(name, max(12, width - 47))), f"{proposed:,}", f"{alone:,}", f"{new:,}")
    curve = Table(box=None, pad_edge=False, header_style="dim")
    curve.add_column("pairs by k", no_wrap=True)
    ks = _columns(found.k, max(1, (width - 12) // 11))
    for j in ks:
        curve.add_column(str(j), justify="right", no_wrap=True)
    for m, row in enumerate(found.curve):
        curve.add_row(f"{m + 1} model{'s' if m else ''}", *(f"{row[j - 1]:,.0f}" for j in ks))
    lines = [Text(line) for line in found.lines()]
    return [heading, by_model, Text(), curve, Text(), *lines]


def _columns(k: int, most: int) -> list[int]:
    """The numbers from 1 to k that fit, both ends among them."""
    if k <= most:
        return list(range(1, k + 1))
    most = max(most, 2)
    return sorted({1 + round(i * (k - 1) / (most - 1)) for i in range(most)})
