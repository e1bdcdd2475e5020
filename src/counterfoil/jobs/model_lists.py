"""Lists of models to be pooled and judged: runs, embeddings, similarities in any mixture; their queries."""

from collections.abc import Sequence
from pathlib import Path

from counterfoil.benchmarks.judgements import ROLES, Direction
from counterfoil.benchmarks.tables import EXTENSIONS, first_double, labels, read_table
from counterfoil.engine.topk import (
    ModelLists,
    common,
    of_embeddings,
    of_rankings,
    of_similarity,
    renumbered,
)
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.run import Run, find_runs
from counterfoil.inputs.arrays import read_npz
from counterfoil.inputs.files import read_text
from counterfoil.models.base import Options
from counterfoil.models.given_galleries import (
    CAPTION_IDS,
    IMAGE_IDS,
    ids_of,
    load_embeddings,
    load_similarity,
)


def load(
    sources: Sequence[Run | str | Path], *, ids: Path | None, widest: bool = False
) -> tuple[ModelLists, ...]:
    """The lists of runs, then of embeddings (npz) and similarities (npy), numbered as in the first.

    Where a model has runs of several galleries one must be named, or the `widest` is taken, which answers
    most queries.

    Raises `DataError` where galleries differ, ids are missing, or a folder holds no run of a gallery, and
    `InputError` where two have one name.
    """
    if ids is not None and not ids.is_file():
        raise DataError("no such file", where=ids, hint="check --ids")
    runs = gallery_runs(sources, widest=widest)
    lists_of = [of_rankings(run.name, run.benchmark, run.answers.rankings) for run in runs]
    paths = [Path(source) for source in sources if not isinstance(source, Run)]
    lists_of += [_file(path, ids) for path in paths if not path.is_dir()]
    names = [lists.name for lists in lists_of]
    double = first_double(names)
    if double is not None:
        raise InputError(
            "two models have one name", given=double, hint="give each once, or rename files and folders"
        )
    return tuple(renumbered(lists, lists_of[0]) for lists in lists_of)


def gallery_runs(sources: Sequence[Run | str | Path], *, widest: bool = False) -> list[Run]:
    """The gallery runs among the sources and in folders among them, one of each model (`load`)."""
    given = [source for source in sources if isinstance(source, Run)]
    folders = [Path(source) for source in sources if not isinstance(source, Run) and Path(source).is_dir()]
    if not given and not folders:
        return []
    every = [*given, *(find_runs(folders) if folders else ())]
    runs = [run for run in every if run.answers.has_rankings]
    # A folder that contributes nothing was given by mistake, whatever there is in the others.
    without = [folder for folder in folders if not any(folder.rglob("members.parquet"))]
    if without or not runs:
        named = without or folders
        where = ", ".join(map(str, named) if named else (run.name for run in given))
        raise DataError("no run of a gallery", where=where, allowed="coco-5k, eccv, ...")
    chosen: list[Run] = []
    for name in dict.fromkeys(run.name for run in runs):
        its = [run for run in runs if run.name == name]
        whole = [run for run in its if run.benchmark.gallery.image_parts is None]
        if not whole:
            raise DataError(
                "its queries see only a part of the gallery",
                where=f"{name} on {its[0].benchmark.name}",
                hint="give a run over the whole of it, such as coco-5k",
            )
        if len(whole) > 1 and not widest:
            raise InputError(
                "a model has runs of several galleries",
                where=name,
                given=", ".join(run.benchmark.name for run in whole),
                hint=f"name one, as in RUN/{whole[0].benchmark.name}",
            )
        chosen.append(max(whole, key=lambda run: len(run.benchmark)))
    return chosen


def _file(path: Path, ids: Path | None) -> ModelLists:
    if not path.is_file():
        raise DataError(
            "no such file or folder",
            where=path,
            allowed="a run folder, embeddings (.npz) or a similarity (.npy)",
        )
    if path.suffix.lower() == ".npz":
        embeddings = load_embeddings(str(path))
        image_ids, caption_ids = embeddings.image_ids, embeddings.caption_ids
        if image_ids is None or caption_ids is None:
            image_ids, caption_ids = _ids_beside(ids, path, len(embeddings.images), len(embeddings.captions))
        return of_embeddings(path.stem, embeddings, image_ids, caption_ids)
    if path.suffix.lower() == ".npy":
        similarity = load_similarity(str(path), Options(ids=ids))
        if similarity.image_ids is None or similarity.caption_ids is None:
            raise _no_ids(path)
        return of_similarity(path.stem, similarity.values, similarity.image_ids, similarity.caption_ids)
    raise DataError(
        "nothing that ranks",
        where=path,
        allowed="a run folder, embeddings (.npz) or a similarity (.npy)",
    )


def _ids_beside(
    ids: Path | None, path: Path, images: int, captions: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if ids is None:
        raise _no_ids(path)
    arrays = read_npz(ids, names="image_ids caption_ids", hint="check the path after '--ids'")
    both = [
        ids_of(arrays, names, rows, ids, per=f"embedding of {path.name}")
        for names, rows in ((IMAGE_IDS, images), (CAPTION_IDS, captions))
    ]
    if both[0] is None or both[1] is None:
        raise DataError("holds no image_ids and caption_ids", where=ids, given=", ".join(arrays))
    return both[0], both[1]


def _no_ids(path: Path) -> DataError:
    return DataError(
        "rows have no image or caption ids",
        where=path,
        hint="name an npz file with image_ids and caption_ids with --ids",
    )


def chosen_queries(
    models: Sequence[ModelLists], named: str | Path | Sequence[str] | None, ways: Sequence[Direction]
) -> dict[Direction, tuple[str, ...]]:
    """The ids of the queries by direction: those in a file or a list, else all that every model answers."""
    queries = {way: common(models, way) for way in ways} if named is None else _named(models, named, ways)
    queries = {way: names for way, names in queries.items() if names}
    if not queries:
        raise InputError("the models answer no query in common", hint="give runs of one benchmark")
    return queries


def _named(
    models: Sequence[ModelLists], named: str | Path | Sequence[str], ways: Sequence[Direction]
) -> dict[Direction, tuple[str, ...]]:
    """The queries in a file or a list, by direction, in its order and each once.

    A line (or a cell of column `query` or `id`) is the id of an image or a caption, or "i2t/ID", "t2i/ID";
    a column `direction` says it too. Raises `DataError` for unknown ids or some model does not
    answer, with how many there are, and for ids that could be either.
    """
    answerable = {way: set(models[0].ids(way)[0]) for way in ways}
    queries: dict[Direction, dict[str, None]] = {way: {} for way in ways}
    unknown: list[str] = []
    either: list[str] = []
    file: str | Path = "queries"
    if isinstance(named, str | Path):
        file = Path(named)
        written_ones = _written(file)
    else:
        written_ones = [("", name) for name in named]
    for way_said, written in written_ones:
        head, slash, rest = written.partition("/")
        prefix, name = (head, rest) if slash and head in ROLES else (way_said, written)
        fits = [way for way in ways if name in answerable[way] and prefix in ("", way)]
        if len(fits) == 1:
            queries[fits[0]][name] = None
        else:
            (either if fits else unknown).append(written)
    if unknown:
        raise DataError(
            "unknown queries",
            where=file,
            given=f"{len(unknown):,} of them, such as {', '.join(unknown[:3])}",
            allowed=" or ".join(f"ids of {ROLES[way][0]}s ({way})" for way in ways),
        )
    if either:
        raise DataError(
            "ids of both an image and a caption",
            where=file,
            given=f"{len(either):,} of them, such as {either[0]}",
            hint=f"choose a --direction, or write i2t/{either[0]} or t2i/{either[0]}",
        )
    for m in models:
        for way, names in queries.items():
            answered = set(m.query_ids[way])
            lacking = [name for name in names if name not in answered]
            if lacking:
                raise DataError(
                    "queries that a model was not asked",
                    where=f"{file}, {m.name}, {way}",
                    given=f"{len(lacking):,} of {len(names):,}, such as {', '.join(lacking[:3])}",
                    hint="give a run over a benchmark that asks them, such as coco-5k, or embeddings",
                )
    return {way: tuple(names) for way, names in queries.items()}


def _written(file: Path) -> list[tuple[str, str]]:
    """(direction or "", id) of each query in a file."""
    if file.suffix.lower() in EXTENSIONS:
        table = read_table(file)
        column = next((name for name in ("query", "id") if name in table), None)
        if column is None and len(table.columns) == 1:
            column = next(iter(table.columns))
        names = labels(table, column or "query")
        ways = labels(table, "direction") if "direction" in table else ("",) * len(table)
        return [(way, name) for way, name in zip(ways, names, strict=True) if name]
    lines = read_text(file, hint="check --queries").splitlines()
    queries = [("", line.strip()) for line in lines if line.strip()]
    if not queries:
        raise DataError("no query in this file", where=file, allowed="an id per line")
    return queries
