"""Pools of candidate pairs for people to verify, from what several models put first."""

from collections.abc import Collection, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, Unpack

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from counterfoil.benchmarks.judgements import ROLES, Direction, pool_table
from counterfoil.benchmarks.tables import first_double
from counterfoil.engine import topk as topk
from counterfoil.errors import DataError, InputError
from counterfoil.evaluation.judged_pairs import right_pairs
from counterfoil.evaluation.pooling import Summary, summary, without
from counterfoil.evaluation.result import Run
from counterfoil.evaluation.run import find_runs
from counterfoil.inputs.arrays import read_npz
from counterfoil.inputs.files import read_text
from counterfoil.inputs.limits import most
from counterfoil.jobs.job import feedback_of, job, option, path_of
from counterfoil.jobs.results import SavedTable, declared
from counterfoil.jobs.shared_options import DIRECTION, IDS, QUERIES, SCORES, Reporting
from counterfoil.metrics.annotators import Pool, pool as pooled_items
from counterfoil.models import precomputed_galleries as galleries
from counterfoil.models.base import Options
from counterfoil.report.tables import Column, Table

#: The most values of k that a table shows.
_MOST_KS = 10


def load(
    sources: Sequence[Run | str | Path], *, ids: Path | None, widest: bool = False
) -> tuple[topk.ModelLists, ...]:
    """The lists of runs, then of embeddings (npz) and similarities (npy), numbered as in the first.

    Where a model has runs of several galleries one must be named, or the `widest` is taken.
    """
    if ids is not None and not ids.is_file():
        raise DataError("no such file", where=ids, hint="check --ids")
    runs = gallery_runs(sources, widest=widest)
    lists_of = [topk.of_rankings(run.name, run.benchmark, run.answers.rankings) for run in runs]
    paths = [Path(source) for source in sources if not isinstance(source, Run)]
    lists_of += [_file(path, ids) for path in paths if not path.is_dir()]
    names = [lists.name for lists in lists_of]
    double = first_double(names)
    if double is not None:
        raise InputError(
            "two models have one name", given=double, hint="give each once, or rename files and folders"
        )
    return tuple(topk.renumbered(lists, lists_of[0]) for lists in lists_of)


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


def _file(path: Path, ids: Path | None) -> topk.ModelLists:
    allowed = "a run folder, embeddings (.npz) or a similarity (.npy)"
    if not path.is_file():
        raise DataError("no such file or folder", where=path, allowed=allowed)
    if path.suffix.lower() == ".npz":
        embeddings = galleries.load_embeddings(str(path))
        image_ids, caption_ids = embeddings.image_ids, embeddings.caption_ids
        if image_ids is None or caption_ids is None:
            if ids is None:
                raise _no_ids(path)
            arrays = read_npz(ids, names="image_ids caption_ids", hint="check the path after '--ids'")
            images, captions = len(embeddings.images), len(embeddings.captions)
            per = f"embedding of {path.name}"
            image_ids = galleries.ids_of(arrays, galleries.IMAGE_IDS, images, ids, per=per)
            caption_ids = galleries.ids_of(arrays, galleries.CAPTION_IDS, captions, ids, per=per)
            if image_ids is None or caption_ids is None:
                raise DataError("holds no image_ids and caption_ids", where=ids, given=", ".join(arrays))
        return topk.of_embeddings(path.stem, embeddings, image_ids, caption_ids)
    if path.suffix.lower() == ".npy":
        similarity = galleries.load_similarity(str(path), Options(ids=ids))
        if similarity.image_ids is None or similarity.caption_ids is None:
            raise _no_ids(path)
        return topk.of_similarity(path.stem, similarity.values, similarity.image_ids, similarity.caption_ids)
    raise DataError("nothing that ranks", where=path, allowed=allowed)


def _no_ids(path: Path) -> DataError:
    hint = "name an npz file with image_ids and caption_ids with --ids"
    return DataError("rows have no image or caption ids", where=path, hint=hint)


def chosen_queries(
    models: Sequence[topk.ModelLists],
    named: str | Path | Collection[str] | None,
    direction: Literal["t2i", "i2t", "both"],
) -> dict[Direction, tuple[str, ...]]:
    """The ids of the queries by direction: those in a file or a list, else all that every model answers."""
    ways: Sequence[Direction] = ("i2t", "t2i") if direction == "both" else (direction,)
    queries = {w: topk.common(models, w) for w in ways} if named is None else _named(models, named, ways)
    queries = {way: names for way, names in queries.items() if names}
    if not queries:
        raise InputError("the models answer no query in common", hint="give runs of one benchmark")
    return queries


def _named(
    models: Sequence[topk.ModelLists], named: str | Path | Collection[str], ways: Sequence[Direction]
) -> dict[Direction, tuple[str, ...]]:
    """The queries in a file or a list by direction: ids of images or captions, or "i2t/ID", "t2i/ID"."""
    answerable = {way: set(models[0].ids(way)[0]) for way in ways}
    queries: dict[Direction, dict[str, None]] = {way: {} for way in ways}
    unknown: list[str] = []
    either: list[str] = []
    file: str | Path = "queries"
    if isinstance(named, str | Path):
        file = Path(named)
        lines = read_text(file, hint="check --queries").splitlines()
        named = [line.strip() for line in lines if line.strip()]
        if not named:
            raise DataError("no query in this file", where=file, allowed="an id per line")
    for written in map(str, named):
        head, slash, rest = written.partition("/")
        prefix, name = (head, rest) if slash and head in ROLES else ("", written)
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
    for way, names in queries.items():
        check_asked(models, way, tuple(names), where=f"{file}, ")
    return {way: tuple(names) for way, names in queries.items()}


def check_asked(
    models: Sequence[topk.ModelLists], way: Direction, names: Sequence[str], *, where: str = ""
) -> None:
    """Raise `DataError` for queries that a model was not asked."""
    for m in models:
        answered = set(m.query_ids[way])
        lacking = [name for name in names if name not in answered]
        if lacking:
            raise DataError(
                "queries that a model was not asked",
                where=f"{where}{m.name}, {way}",
                given=f"{len(lacking):,} of {len(names):,}, such as {', '.join(lacking[:3])}",
                hint="give a run over a benchmark that asks them, such as coco-5k, or embeddings",
            )


class CandidatePool(SavedTable):
    """Pairs to verify, each once, with who proposed it at which place, and their number by models and k."""

    summary: Summary
    _pools: Mapping[Direction, Pool]
    _queries: Mapping[Direction, Sequence[str]]
    _models: Sequence[topk.ModelLists]

    rows_by = declared(
        pair="those of the table that people fill in: pair (a number per image and caption), direction, "
        "query, item, image, caption, text where captions are known, and the place of the item in each "
        "model's list, 0 where it is not among its first (place:MODEL)",
        model="one per `model`: the pairs that it `proposes: int`, that it `alone: int` proposes, and that "
        "are `new: int` after earlier models",
    )
    command, plot_title = "pool", "Pairs to verify by models and k"

    @cached_property
    def pairs(self) -> pa.Table:
        """The table that people fill in."""
        texts = next((m.texts for m in self._models if m.texts is not None and None not in m.texts), None)
        return pool_table(
            self._pools,
            models=[m.name for m in self._models],
            queries=self._queries,
            images=self._models[0].image_ids,
            captions=self._models[0].caption_ids,
            texts=texts,
        )

    def _rows(self, by: str) -> pa.Table | list[dict[str, Any]]:
        of, names = self.summary, ("model", "proposes", "alone", "new")
        by_model = zip(of.models, of.proposed, of.alone, of.new, strict=True)
        return self.pairs if by == "pair" else [dict(zip(names, row, strict=True)) for row in by_model]

    @property
    def tables(self) -> tuple[Table, ...]:
        """What each model proposes, and the pairs by the number of models and by k."""
        # The numbers from 1 to k, of many a few with both ends among them.
        ks = sorted({round(j) for j in np.linspace(1, self.summary.k, min(_MOST_KS, self.summary.k))})
        curve = [
            (f"{m + 1} model{'s' if m else ''}", *(f"{row[j - 1]:,.0f}" for j in ks))
            for m, row in enumerate(self.summary.curve)
        ]
        heads = ("model", "proposes", "alone", "new in order")
        values = ("{model}", "{proposes:,}", "{alone:,}", "{new:,}")
        cells: dict[str | Column, Any] = dict(zip(heads, values, strict=True))
        by_k = Table.of("", "pairs by k", [Column(str(j)) for j in ks], curve)
        return *self.table(self.summary.heading, cells, by="model"), by_k

    @property
    def notes(self) -> list[str]:
        """What was pooled."""
        return self.summary.lines()

    def to_json(self) -> dict[str, Any]:
        return self.summary.to_json()

    def plot(self) -> Any:
        """A matplotlib figure: pairs to verify by the number of models and by k."""
        from counterfoil.report.annotators import yield_curves

        return yield_curves(self.summary.curve)


@job(
    outputs="save plot json",
    examples="""Examples:
  counterfoil pool runs/*/eccv --k 5 --out pool.csv
  counterfoil pool pvse.npz vsrn.npz clip.npz --queries queries.txt --direction t2i --out pool.parquet
  counterfoil pool runs/*/eccv similarity.npy --ids ids.npz --k 25 --plot yield.svg --json -

queries.txt has an id of an image or a caption per line; where an id is both, write i2t/ID or t2i/ID. Let
people fill in a column `answer` of the table and pass it to `counterfoil pool bias --judgements`.""",
)
def pool(
    scores: Annotated[Sequence[Run | str | Path], SCORES],
    *,
    k: Annotated[int, option(low=1, high=most("k"))] = 5,
    queries: Annotated[str | Path | Collection[str] | None, QUERIES] = None,
    direction: Annotated[Literal["t2i", "i2t", "both"], DIRECTION] = "both",
    ids: Annotated[str | Path | None, IDS] = None,
    exclude_known: bool = False,
    **reporting: Unpack[Reporting],
) -> CandidatePool:
    """Pool the first items of several models, each pair once, with who proposed it at which rank.

    `scores` may hold runs that are loaded; `queries` may be the ids themselves, and are by default all that
    every model answers. Raises `DataError` where the items differ and `InputError` for two models of one
    name.

    Arguments:
        k: Items that each model proposes per query.
        exclude_known: Leave out pairs that are right in the runs' benchmark.

    >>> from counterfoil import evaluate
    >>> runs = [evaluate(f"blind:{name}", "world-gallery", draws=100, cache=None, quiet=True)
    ...         for name in ("length", "random")]
    >>> pooled = pool(runs, k=1, direction="t2i", quiet=True)
    >>> pooled.summary.models, pooled.to_arrow().column_names[:3]
    (('blind:length', 'blind:random'), ['pair', 'direction', 'query'])
    """
    feedback = feedback_of(reporting)
    with feedback.busy("reading lists"):
        models = load(scores, ids=path_of(ids), widest=queries is not None and not exclude_known)
    chosen = chosen_queries(models, queries, direction)
    pools: dict[Direction, Pool] = {}
    pair_numbers: dict[Direction, NDArray[np.int64]] = {}
    excluded = 0
    for way, names in chosen.items():
        with feedback.progress() as report:
            pooled = pooled_items([topk.topk_lists(m, way, names, k, progress=report) for m in models])
        if exclude_known:
            before = len(pooled.query)
            benchmarks = [m.benchmark for m in models if m.benchmark is not None]
            if not benchmarks:
                hint = "embeddings and similarities know no benchmark"
                raise InputError("--exclude-known needs a run", hint=hint)
            items = models[0].ids(way)[1]
            pairs = np.concatenate([right_pairs(benchmark, way, names, items) for benchmark in benchmarks])
            pooled = without(pooled, pairs)
            excluded += before - len(pooled.query)
        pools[way] = pooled
        # A number per pooled pair, the same in both directions where image and caption are.
        place = {name: i for i, name in enumerate(models[0].ids(way)[0])}
        query_of = np.array([place[name] for name in names], dtype=np.int64)[pooled.query]
        image, caption = (query_of, pooled.item) if way == "i2t" else (pooled.item, query_of)
        pair_numbers[way] = image * len(models[0].caption_ids) + caption
    counts = {way: len(names) for way, names in chosen.items()}
    numbers = summary(pools, k, [m.name for m in models], counts, pair_numbers, excluded)
    return CandidatePool(numbers, pools, chosen, models)
