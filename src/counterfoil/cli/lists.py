"""What models put first: from runs, embeddings or similarities, brought to one numbering of items.

`bias` and `pool` take any mixture of them. A run keeps the first items of its queries; from embeddings and
similarities the first items of any query are computed in blocks when they are asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.judgements import ROLES, Direction
from counterfoil.engine.progress import Progress, silent
from counterfoil.errors import DataError, InputError

if TYPE_CHECKING:
    from counterfoil.evaluation.run import Run

#: The first k items (positions) of queries (positions), best first, -1 behind the end of a list.
First = Callable[[Direction, NDArray[np.int64], int, Progress], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class Lists:
    """One model's lists over a gallery. `asked` are the queries it answers, as ids, by direction.

    `depth` is how many items of each it can give. `owners` (the image of each caption, -1 where unknown) and
    `texts` are there where a run knows them; `run` is the run it comes from.
    """

    name: str
    image_ids: tuple[str, ...]
    caption_ids: tuple[str, ...]
    asked: Mapping[Direction, tuple[str, ...]]
    depth: Mapping[Direction, int]
    first: First
    texts: tuple[str | None, ...] | None = None
    owners: NDArray[np.int64] | None = None
    run: "Run | None" = None

    def ids(self, direction: Direction) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Ids of what asks and of what is found in a direction."""
        both = {"image": self.image_ids, "caption": self.caption_ids}
        asker, found = ROLES[direction]
        return both[asker], both[found]


def load(sources: Sequence[Path], *, ids: Path | None, widest: bool = False) -> tuple[Lists, ...]:
    """The lists of run folders, then of embeddings (npz) and similarities (npy), numbered as in the first.

    Where a model has runs of several galleries one must be named, or the `widest` is taken, which answers
    most queries.

    Raises `DataError` where galleries differ, ids are missing, or a folder holds no run of a gallery, and
    `InputError` where two have one name.
    """
    found = _runs([source for source in sources if source.is_dir()], widest)
    found += [_file(source, ids) for source in sources if not source.is_dir()]
    names = [lists.name for lists in found]
    double = next((name for name in names if names.count(name) > 1), None)
    if double is not None:
        raise InputError(
            "two models have one name", given=double, hint="give each once, or rename files and folders"
        )
    return tuple(_as_first(lists, found[0]) for lists in found)


def first_items(
    lists: Lists, direction: Direction, queries: Sequence[str], k: int, *, progress: Progress = silent
) -> NDArray[np.int64]:
    """(queries, k) the first items of a model for queries it answers, as positions.

    Raises `InputError` where a list does not reach down to k.
    """
    if lists.depth[direction] < k:
        raise InputError(
            f"the lists of {direction} are too short",
            where=lists.name,
            given=f"{lists.depth[direction]} items",
            allowed=f"{k} or more",
            hint="evaluate again with a deeper --top, or give embeddings",
        )
    place = {name: at for at, name in enumerate(lists.ids(direction)[0])}
    at = np.array([place[name] for name in queries], dtype=np.int64)
    top = lists.first(direction, at, k, progress)
    short = np.flatnonzero((top < 0).any(axis=1))
    if len(short):
        raise InputError(
            "a list ends early",
            where=f"{lists.name}, {direction}/{queries[short[0]]}",
            given=f"{int((top[short[0]] >= 0).sum())} items",
            allowed=f"{k} or more",
            hint=f"so for {len(short):,} of {len(top):,} queries; choose a smaller --k",
        )
    return top


def _runs(folders: Sequence[Path], widest: bool) -> list[Lists]:
    """The gallery runs in some folders."""
    from counterfoil.data.questions import Gallery
    from counterfoil.evaluation.run import find_runs

    if not folders:
        return []
    runs = [run for run in find_runs(folders) if isinstance(run.benchmark.questions, Gallery)]
    if not runs:
        where = ", ".join(map(str, folders))
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
    return [_of_run(run) for run in chosen]


def _of_run(run: "Run") -> Lists:
    gallery, answers = run.benchmark.gallery, run.answers
    image_ids = tuple(image.id for image in run.benchmark.images)
    caption_ids = tuple(caption.id for caption in run.benchmark.captions)
    kept: Mapping[Direction, Any] = {"i2t": answers.i2t, "t2i": answers.t2i}  # type: ignore[union-attr]
    rows: Mapping[Direction, NDArray[np.int64]] = {
        "i2t": np.full(len(image_ids), -1),
        "t2i": np.full(len(caption_ids), -1),
    }
    searches = {"i2t": gallery.i2t, "t2i": gallery.t2i}
    for way, row in rows.items():
        row[searches[way].queries] = np.arange(len(searches[way]))

    def first(direction: Direction, at: NDArray[np.int64], k: int, _: Progress) -> NDArray[np.int64]:
        top: NDArray[np.int64] = kept[direction].top[rows[direction][at], :k].astype(np.int64)
        return top

    return Lists(
        run.name,
        image_ids,
        caption_ids,
        asked={
            "i2t": tuple(image_ids[i] for i in gallery.i2t.queries),
            "t2i": tuple(caption_ids[i] for i in gallery.t2i.queries),
        },
        depth={way: placed.top.shape[1] for way, placed in kept.items()},
        first=first,
        texts=tuple(caption.text for caption in run.benchmark.captions),
        owners=gallery.owners,
        run=run,
    )


def _file(path: Path, ids: Path | None) -> Lists:
    if not path.is_file():
        raise DataError(
            "no such file or folder",
            where=path,
            allowed="a run folder, embeddings (.npz) or a similarity (.npy)",
        )
    if path.suffix.lower() == ".npz":
        return _embeddings(path, ids)
    if path.suffix.lower() == ".npy":
        return _similarity(path, ids)
    raise DataError(
        "nothing that ranks",
        where=path,
        allowed="a run folder, embeddings (.npz) or a similarity (.npy)",
    )


def _embeddings(path: Path, ids: Path | None) -> Lists:
    from counterfoil.engine.tops import tops
    from counterfoil.scorers.given import load_embeddings

    found = load_embeddings(str(path))
    image_ids, caption_ids = found.image_ids, found.caption_ids
    if image_ids is None or caption_ids is None:
        image_ids, caption_ids = _ids_beside(ids, path, len(found.images), len(found.captions))
    unit = {
        "image": found.images / np.linalg.norm(found.images, axis=1, keepdims=True),
        "caption": found.captions / np.linalg.norm(found.captions, axis=1, keepdims=True),
    }

    def first(direction: Direction, at: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
        asker, items = ROLES[direction]
        return tops(unit[asker][at], unit[items], k, progress=progress)[0]

    return _whole(path, image_ids, caption_ids, first)


def _similarity(path: Path, ids: Path | None) -> Lists:
    from counterfoil.engine.tops import tops_in_blocks
    from counterfoil.scorers.base import Options
    from counterfoil.scorers.similarity import load_similarity

    found = load_similarity(str(path), Options(ids=ids))
    if found.image_ids is None or found.caption_ids is None:
        raise _no_ids(path)
    values = found.values

    def first(direction: Direction, at: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
        def block(queries: slice, items: slice) -> NDArray[Any]:
            chosen = at[queries]
            return values[chosen, items] if direction == "i2t" else values[items][:, chosen].T

        n_items = values.shape[1 if direction == "i2t" else 0]
        return tops_in_blocks(block, len(at), n_items, k, progress=progress)[0]

    return _whole(path, found.image_ids, found.caption_ids, first)


def _whole(path: Path, image_ids: tuple[str, ...], caption_ids: tuple[str, ...], first: First) -> Lists:
    """Lists of which every query can be asked, down to the last item."""
    return Lists(
        path.stem,
        image_ids,
        caption_ids,
        asked={"i2t": image_ids, "t2i": caption_ids},
        depth={"i2t": len(caption_ids), "t2i": len(image_ids)},
        first=first,
    )


def _ids_beside(
    ids: Path | None, path: Path, images: int, captions: int
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    from counterfoil.scorers.embeddings import CAPTION_IDS, IMAGE_IDS, ids_of, read_arrays

    if ids is None:
        raise _no_ids(path)
    arrays = read_arrays(ids, ("image_ids", "caption_ids"), after="--ids")
    both = [
        ids_of(arrays, names, rows, ids, per=f"embedding of {path.name}")
        for names, rows in ((IMAGE_IDS, images), (CAPTION_IDS, captions))
    ]
    if both[0] is None or both[1] is None:
        raise DataError("holds no image_ids and caption_ids", where=ids, given=", ".join(arrays))
    return both[0], both[1]


def _no_ids(path: Path) -> DataError:
    return DataError(
        "nobody knows which image and caption its rows are",
        where=path,
        hint="name an npz file with image_ids and caption_ids with --ids",
    )


def _as_first(lists: Lists, reference: Lists) -> Lists:
    """The same lists with items numbered as in the reference; the galleries must hold the same."""
    moves: dict[str, NDArray[np.int64]] = {}
    for kind, own, other in (
        ("image", lists.image_ids, reference.image_ids),
        ("caption", lists.caption_ids, reference.caption_ids),
    ):
        place = {name: at for at, name in enumerate(other)}
        to = np.array([place.get(name, -1) for name in own], dtype=np.int64)
        lacking = set(other) - set(own)
        if (to < 0).any() or lacking:
            extra = int((to < 0).sum())
            example = own[int(np.argmax(to < 0))] if extra else min(lacking)
            raise DataError(
                f"{lists.name} and {reference.name} rank different {kind}s",
                given=f"{extra:,} only in the first, {len(lacking):,} only in the second, such as {example}",
                allowed="the same gallery for all models",
            )
        moves[kind] = to
    if all((to == np.arange(len(to))).all() for to in moves.values()):
        return lists
    back = {kind: np.argsort(to) for kind, to in moves.items()}

    def first(direction: Direction, at: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
        asker, items = ROLES[direction]
        top = lists.first(direction, back[asker][at], k, progress)
        return np.where(top >= 0, moves[items][top], -1)

    owners = lists.owners
    if owners is not None:
        moved = np.where(owners >= 0, moves["image"][owners], -1)
        owners = moved[back["caption"]]
    texts = lists.texts
    return replace(
        lists,
        image_ids=reference.image_ids,
        caption_ids=reference.caption_ids,
        first=first,
        owners=owners,
        texts=None if texts is None else tuple(texts[i] for i in back["caption"].tolist()),
    )


def common(models: Sequence[Lists], direction: Direction) -> tuple[str, ...]:
    """The queries that every model answers, in the order of the first."""
    others = [set(m.asked[direction]) for m in models[1:]]
    return tuple(name for name in models[0].asked[direction] if all(name in other for other in others))


def wanted(
    models: Sequence[Lists], file: Path, *, ways: Sequence[Direction]
) -> dict[Direction, tuple[str, ...]]:
    """The queries in a file, by direction, in its order and each once.

    A line (or a cell of column `query` or `id`) is the id of an image or a caption, or "i2t/ID", "t2i/ID";
    a column `direction` says it too. Raises `DataError` for ids that nobody knows or some model does not
    answer, with how many there are, and for ids that could be either.
    """
    asked = {way: set(models[0].ids(way)[0]) for way in ways}
    found: dict[Direction, dict[str, None]] = {way: {} for way in ways}
    unknown: list[str] = []
    either: list[str] = []
    for way_said, written in _written(file):
        head, slash, rest = written.partition("/")
        said, name = (head, rest) if slash and head in ROLES else (way_said, written)
        fits = [way for way in ways if name in asked[way] and said in ("", way)]
        if len(fits) == 1:
            found[fits[0]][name] = None
        else:
            (either if fits else unknown).append(written)
    if unknown:
        raise DataError(
            "queries that nobody knows",
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
        for way, names in found.items():
            answered = set(m.asked[way])
            lacking = [name for name in names if name not in answered]
            if lacking:
                raise DataError(
                    "queries that a model was not asked",
                    where=f"{file}, {m.name}, {way}",
                    given=f"{len(lacking):,} of {len(names):,}, such as {', '.join(lacking[:3])}",
                    hint="give a run over a benchmark that asks them, such as coco-5k, or embeddings",
                )
    return {way: tuple(names) for way, names in found.items()}


def _written(file: Path) -> list[tuple[str, str]]:
    """(direction or "", id) of each query in a file."""
    from counterfoil.data.tables import EXTENSIONS, labels, read_table

    if file.suffix.lower() in EXTENSIONS:
        table = read_table(file)
        column = next((name for name in ("query", "id") if name in table), None)
        if column is None and len(table.columns) == 1:
            column = next(iter(table.columns))
        names = labels(table, column or "query")
        ways = labels(table, "direction") if "direction" in table else ("",) * len(table)
        return [(way, name) for way, name in zip(ways, names, strict=True) if name]
    if not file.is_file():
        raise DataError("no such file", where=file, hint="check --queries")
    try:
        lines = file.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot be read: {error}", where=file) from None
    found = [("", line.strip()) for line in lines if line.strip()]
    if not found:
        raise DataError("no query in this file", where=file, allowed="an id per line")
    return found
