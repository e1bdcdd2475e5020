"""First items of each model's rankings, embeddings or similarities, in one numbering of items.

Rankings keep the first items of their queries; from embeddings and similarities the first items of any query
are computed in blocks when they are asked for.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy import ndarray
from numpy.typing import NDArray

from counterfoil.data.answers import DirectionRanks, Rankings
from counterfoil.data.benchmark import Benchmark
from counterfoil.data.judgements import ROLES, Direction
from counterfoil.engine.blocks import Matrix, unit
from counterfoil.engine.plan import Progress, silent
from counterfoil.engine.top_k import top_k, top_k_in_blocks
from counterfoil.errors import DataError, InputError
from counterfoil.scorers.given_galleries import GivenEmbeddings

#: The first k items (positions) of queries (positions), best first, -1 behind the end of a list.
First = Callable[[Direction, NDArray[np.int64], int, Progress], NDArray[np.int64]]


@dataclass(frozen=True, eq=False)
class ModelLists:
    """One model's lists over a gallery. `asked` are the queries it answers, as ids, by direction.

    `depth` is how many items of each it can give. `owners` (the image of each caption, -1 where unknown),
    `texts` and the `benchmark` that was asked are there where the lists come from answers to one.
    """

    name: str
    image_ids: tuple[str, ...]
    caption_ids: tuple[str, ...]
    asked: Mapping[Direction, tuple[str, ...]]
    depth: Mapping[Direction, int]
    first: First
    texts: tuple[str | None, ...] | None = None
    owners: NDArray[np.int64] | None = None
    benchmark: Benchmark | None = None

    def ids(self, direction: Direction) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Ids of what asks and of what is found in a direction."""
        both = {"image": self.image_ids, "caption": self.caption_ids}
        asker, found = ROLES[direction]
        return both[asker], both[found]


def top_lists(
    lists: ModelLists, direction: Direction, queries: Sequence[str], k: int, *, progress: Progress = silent
) -> NDArray[np.int64]:
    """(queries, k) the first items of a model for queries it answers, as positions.

    Raises `InputError` where a list does not reach down to k.
    """
    found = len(lists.ids(direction)[1])
    if found < k:
        raise InputError(
            f"the gallery of {direction} is smaller than k",
            where=lists.name,
            given=f"k {k:,}",
            allowed=f"1 to {found:,}",
            hint="choose a smaller --k",
        )
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


def common(models: Sequence[ModelLists], direction: Direction) -> tuple[str, ...]:
    """The queries that every model answers, in the order of the first."""
    others = [set(m.asked[direction]) for m in models[1:]]
    return tuple(name for name in models[0].asked[direction] if all(name in other for other in others))


def of_rankings(name: str, benchmark: Benchmark, rankings: Rankings) -> ModelLists:
    """The lists that rankings of a gallery keep: of its queries, down to what was kept."""
    gallery = benchmark.gallery
    image_ids = tuple(image.id for image in benchmark.images)
    caption_ids = tuple(caption.id for caption in benchmark.captions)
    kept: Mapping[Direction, DirectionRanks] = {"i2t": rankings.i2t, "t2i": rankings.t2i}
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

    return ModelLists(
        name,
        image_ids,
        caption_ids,
        asked={
            "i2t": tuple(image_ids[i] for i in gallery.i2t.queries),
            "t2i": tuple(caption_ids[i] for i in gallery.t2i.queries),
        },
        depth={way: placed.top.shape[1] for way, placed in kept.items()},
        first=first,
        texts=tuple(caption.text for caption in benchmark.captions),
        owners=gallery.owners,
        benchmark=benchmark,
    )


def of_embeddings(
    name: str, found: GivenEmbeddings, image_ids: tuple[str, ...], caption_ids: tuple[str, ...]
) -> ModelLists:
    """The lists that embeddings give by their cosines, of every query, down to the last item."""
    of = {"image": unit(found.images), "caption": unit(found.captions)}

    def first(direction: Direction, at: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
        asker, items = ROLES[direction]
        return top_k(of[asker][at], of[items], k, progress=progress)[0]

    return _whole(name, image_ids, caption_ids, first)


def of_similarity(
    name: str, values: ndarray, image_ids: tuple[str, ...], caption_ids: tuple[str, ...]
) -> ModelLists:
    """The lists of a similarity, (images, captions), of every query, down to the last item."""
    matrix = Matrix(values, where=name, names=(image_ids, caption_ids))

    def first(direction: Direction, at: NDArray[np.int64], k: int, progress: Progress) -> NDArray[np.int64]:
        def block(queries: slice, items: slice) -> NDArray[Any]:
            if direction == "i2t":
                return matrix.part(at[queries], items)
            return matrix.part(items, at[queries]).T

        n_items = values.shape[1 if direction == "i2t" else 0]
        return top_k_in_blocks(block, len(at), n_items, k, progress=progress)[0]

    return _whole(name, image_ids, caption_ids, first)


def _whole(name: str, image_ids: tuple[str, ...], caption_ids: tuple[str, ...], first: First) -> ModelLists:
    """Lists of which every query can be asked, down to the last item."""
    return ModelLists(
        name,
        image_ids,
        caption_ids,
        asked={"i2t": image_ids, "t2i": caption_ids},
        depth={"i2t": len(caption_ids), "t2i": len(image_ids)},
        first=first,
    )


def renumbered(lists: ModelLists, reference: ModelLists) -> ModelLists:
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
