"""`counterfoil bias`: what the choice of machine annotators does to a benchmark."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

if TYPE_CHECKING:
    from counterfoil.cli.lists import Lists
    from counterfoil.data.benchmark import Benchmark
    from counterfoil.data.judgements import Judgements
    from counterfoil.evaluation.annotators import Coverage, Multiplicity, Study, Verified
    from counterfoil.report.markup import Table

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
        typer.Option(min=1, help="How many items each model proposes: all in the table's places, else 5."),
    ] = None,
    measure: Annotated[
        str, typer.Option(help="recall_at_1, r_precision, and both with graded_ before them; commas between.")
    ] = "graded_recall_at_1,graded_r_precision",
    direction: Annotated[
        Literal["t2i", "i2t"] | None,
        typer.Option(help="Only this one; that of all judgements where the table does not say."),
    ] = None,
    several: Annotated[
        Literal["majority", "mean"], typer.Option(help="What several answers to one pair come to.")
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
    draws: Annotated[int, typer.Option(min=100, help="Bootstrap draws.")] = 2000,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the bootstrap.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no notes.")] = False,
) -> None:
    """Measure each model on the benchmarks that each set of models would have made, and how far that is off.

    Bias is the mean distance of all models to their values on the benchmark that all made together; self-bias
    that of the annotators themselves, non-self-bias that of the rest.
    """
    from counterfoil.cli import terminal
    from counterfoil.cli.lists import load
    from counterfoil.cli.session import data_folder
    from counterfoil.data.judgements import read_judgements
    from counterfoil.evaluation.annotators import MOST, study
    from counterfoil.report import annotator_tables as tables

    measures = tuple(dict.fromkeys(name.strip() for name in measure.split(",")))
    with terminal.busy("reading judgements and lists", quiet=quiet):
        judged = read_judgements(judgements, direction=direction, several=several)
        models = load(scores, ids=ids, widest=True)
        sets = _benchmarks(positives or [], data_folder(data))
    clustering = next((m.run.benchmark for m in models if m.run is not None), next(iter(sets), None))
    studies: list[Study] = []
    coverages: list[Coverage] = []
    counts: list[Multiplicity] = []
    notes = _about(judged, several)
    for one in _of(judged.directions, direction):
        with terminal.progress(quiet=quiet) as report:
            verified, unjudged = _verified(models, one, k, clustering, report)
        notes += _about_direction(one, verified, unjudged)
        with terminal.busy("measuring on the benchmarks of all sets", quiet=quiet):
            found = study(verified, measures, undefined=undefined, draws=draws, seed=seed)
        studies += found
        notes += _about_queries(found[0], undefined)
        some, many = _against(one, verified, sets, draws=draws, seed=seed)
        coverages += some
        counts += many
    if clustering is None and any(one.direction == "t2i" for one in judged.directions):
        notes.append("nobody knows which captions are of one image: intervals take each query by itself")
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
    for table in shown:
        for part in _rich(table, console.width):
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
                policies={"several_answers": several, "queries_without_right_answers": undefined},
                interval={
                    "method": "percentiles of a bootstrap over queries"
                    + ("" if clustering is None else ", those of one image together"),
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


def _of(directions: "Sequence[Judgements]", direction: Literal["t2i", "i2t"] | None) -> "list[Judgements]":
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


def _verified(
    models: "Sequence[Lists]", one: "Judgements", k: int | None, clustering: "Benchmark | None", report: Any
) -> "tuple[Verified, int]":
    """The judged pairs of a direction with each model's places, and how many proposals nobody judged."""
    import numpy as np

    from counterfoil.cli.lists import first_items
    from counterfoil.errors import DataError
    from counterfoil.evaluation.annotators import Verified, places
    from counterfoil.evaluation.known import photographs

    way = one.direction
    reference = models[0].ids(way)[1]
    number = {name: at for at, name in enumerate(reference)}
    item = np.array([number.get(name, -1) for name in one.items], dtype=np.int64)[one.item]
    if (item < 0).any():
        lost = np.unique(one.item[item < 0])
        raise DataError(
            "judged pairs of items that no model ranks",
            where=way,
            given=f"{int((item < 0).sum()):,} pairs, such as with {one.items[lost[0]]}",
            hint="are the judgements of this gallery?",
        )
    for m in models:
        answered = set(m.asked[way])
        lacking = [name for name in one.queries if name not in answered]
        if lacking:
            raise DataError(
                "judged queries that a model was not asked",
                where=f"{m.name}, {way}",
                given=f"{len(lacking):,} of {len(one.queries):,}, such as {lacking[0]}",
                hint="give a run over a benchmark that asks them, such as coco-5k, or embeddings",
            )
    most = int(np.bincount(one.query[one.gain > 0], minlength=1).max())
    named = _proposals(models, one)
    handed = k if k is not None else (int(named.max()) if named is not None else 5)
    tops = []
    for m in models:
        # As deep as R-Precision can ask for, where the lists are; never less than what is proposed.
        deep = min(max(handed if named is None else 1, most), m.depth[way])
        tops.append(
            first_items(m, way, one.queries, max(deep, 1 if named is not None else handed), progress=report)
        )
    place = places(one.query, item, tops)
    unjudged = 0
    if named is not None:
        proposed = (named > 0) & (named <= handed)
    else:
        proposed = (place > 0) & (place <= handed)
        unjudged = len(models) * len(one.queries) * handed - int(proposed.sum())
    return Verified(
        way,
        tuple(m.name for m in models),
        one.query,
        one.gain,
        place,
        proposed,
        tuple(top.shape[1] for top in tops),
        photographs(clustering, way, one.queries),
    ), unjudged


def _proposals(models: "Sequence[Lists]", one: "Judgements") -> Any:
    """(pairs, models) the places at which the table says they were proposed; None where it says nothing."""
    import numpy as np

    from counterfoil.errors import DataError

    there = [m.name for m in models if m.name in one.place]
    if not there:
        return None
    lacking = [m.name for m in models if m.name not in one.place]
    if lacking:
        raise DataError(
            "the table says of some models only what they proposed",
            given=", ".join(lacking),
            allowed=", ".join(f"place:{name}" for name in one.place),
            hint="give the models that made the pool, or leave those columns out",
        )
    return np.stack([one.place[m.name] for m in models], axis=1)


def _against(
    one: "Judgements", verified: "Verified", sets: "Sequence[Benchmark]", *, draws: int, seed: int
) -> "tuple[list[Coverage], list[Multiplicity]]":
    """Sets of right answers against the judgements, and how many right answers there are."""
    import numpy as np

    from counterfoil.evaluation.annotators import count, coverage
    from counterfoil.evaluation.known import are_right, how_many
    from counterfoil.metrics.plausible import Plausible
    from counterfoil.report.annotator_tables import JUDGED

    way, accepted = one.direction, one.gain > 0
    counts = []
    found = []
    for benchmark in sets:
        named = are_right(benchmark, way, one.queries, one.items, one.query, one.item)
        for name, right in named.items():
            found.append(
                coverage(
                    name,
                    way,
                    query=one.query,
                    right=right,
                    accepted=accepted,
                    clusters=verified.clusters,
                    seed=seed,
                    draws=draws,
                )
            )
        search = benchmark.gallery.i2t if way == "i2t" else benchmark.gallery.t2i
        if not isinstance(search.positives, Plausible):
            counts.append(count(benchmark.name, way, how_many(benchmark, way, one.queries)))
    mine = np.bincount(one.query[accepted], minlength=len(one.queries))
    return found, [*counts, count(JUDGED, way, mine)]


def _about(judged: Any, several: str) -> list[str]:
    notes = [f"{judged.pairs:,} judged pairs in {judged.rows:,} rows"]
    if judged.several:
        how = "the most frequent answer, of equals the lowest" if several == "majority" else "the mean gain"
        notes.append(f"{judged.several:,} pairs have several answers: {how}")
    if judged.unanswered:
        notes.append(f"{judged.unanswered:,} rows have no answer and were left out")
    return notes


def _about_direction(one: "Judgements", verified: "Verified", unjudged: int) -> list[str]:
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


def _about_queries(study: "Study", undefined: str) -> list[str]:
    from counterfoil.report.annotator_tables import WAYS

    least, most = int(study.queries[:-1].min()), int(study.queries[-1])
    how = "left out of its means" if undefined == "out" else "counted as 0"
    if least == most:
        return []
    return [
        f"{WAYS[study.direction]}: all models found something for {most:,} queries, some sets for as few "
        f"as {least:,}; a query without right answers was {how}"
    ]


def _rich(table: "Table", width: int) -> list[Any]:
    """A table for the terminal; intervals where they fit, and several tables where columns do not."""
    from rich.table import Table as Rich
    from rich.text import Text

    from counterfoil.report.drawing import short
    from counterfoil.report.markup import written

    called = [short(row.name, max(24, 2 * width // 5)) for row in table.rows]
    names = max(map(len, [table.corner, *called]))
    blocks = list(dict.fromkeys(column.block for column in table.columns))
    over = {"image to text": "I2T ", "text to image": "T2I "} if len(blocks) > 1 else {}
    columns: list[tuple[str, list[str], int]] = []
    for ranged in (True, False):
        columns = []
        for i, column in enumerate(table.columns):
            head = over.get(column.block, "") + short(column.label, 14)
            cells = [
                written(row.cells[i], column, interval=ranged and row.cells[i].low is not None)
                for row in table.rows
            ]
            columns.append((head, cells, 2 + max(map(len, [head, *cells]))))
        if names + sum(room for *_, room in columns) <= width:
            break
    parts: list[Any] = [Text(table.caption.rstrip("."), style="bold")]
    for group in _groups([room for *_, room in columns], [c.block for c in table.columns], width - names):
        rich = Rich(box=None, pad_edge=False, header_style="dim")
        rich.add_column(Text(table.corner), no_wrap=True)
        for i in group:
            rich.add_column(Text(columns[i][0]), justify="right", no_wrap=True)
        for number, row in enumerate(table.rows):
            bold = ["bold" if row.cells[i].rank == 1 else "" for i in group]
            shown = (Text(columns[i][1][number], style=s) for i, s in zip(group, bold, strict=True))
            rich.add_row(Text(called[number]), *shown)
        sizes = [table.columns[i].size for i in group]
        if len({column.size for column in table.columns}) > 1:
            counted = (f"{size:,}" if size is not None else "" for size in sizes)
            rich.add_row(Text("queries"), *counted, style="dim")
        parts.append(rich)
    return [*parts, Text()]


def _groups(rooms: Sequence[int], blocks: Sequence[str], width: int) -> list[list[int]]:
    """Columns that stand beside each other: all where there is room, else by block and as many as fit."""
    if sum(rooms) <= width:
        return [list(range(len(rooms)))]
    groups: list[list[int]] = []
    for i, (room, block) in enumerate(zip(rooms, blocks, strict=True)):
        if groups and block == blocks[groups[-1][0]] and sum(rooms[j] for j in groups[-1]) + room <= width:
            groups[-1].append(i)
        else:
            groups.append([i])
    return groups


def _json(
    models: "Sequence[Lists]",
    studies: "Sequence[Study]",
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
