"""Rows to questions, and questions against the card."""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.forms import Choice, Quad
from counterfoil.data.records import Caption, Image
from counterfoil.errors import DataError


def quads(
    card: Card,
    ids: Sequence[str],
    captions: tuple[Sequence[str | None], Sequence[str | None]],
    images: tuple[Sequence[Image], Sequence[Image]],
    groupings: Mapping[str, tuple[str, ...]],
    *,
    source: str,
    path: Path | None = None,
) -> Benchmark:
    """Two captions and two images per question; caption j of question "17" is called "17_c{j}".

    Images of one id are one item.
    """
    texts = [text for pair in zip(*captions, strict=True) for text in pair]
    names = [f"{name}_c{j}" for name in ids for j in (0, 1)]
    items, positions = _listed([image for pair in zip(*images, strict=True) for image in pair])
    return Benchmark(
        card=card,
        images=items,
        captions=tuple(Caption(name, text) for name, text in zip(names, texts, strict=True)),
        questions=Quad(
            tuple(ids),
            groupings=groupings,
            captions=np.arange(len(texts), dtype=np.int64).reshape(-1, 2),
            images=positions.reshape(-1, 2),
        ),
        source=source,
        path=path,
    )


def choices(
    card: Card,
    ids: Sequence[str],
    candidates: Sequence[Sequence[str]],
    images: Sequence[Image],
    groupings: Mapping[str, tuple[str, ...]],
    *,
    correct: int = 1,
    source: str,
    path: Path | None = None,
) -> Benchmark:
    """One image and k captions per question, the first `correct` of them right.

    `candidates` holds a column of n texts per candidate; caption j of question "17" is called "17_c{j}".
    Images of one id are one item.
    """
    rows = list(zip(*candidates, strict=True))
    items, positions = _listed(images)
    return Benchmark(
        card=card,
        images=items,
        captions=tuple(
            Caption(f"{name}_c{j}", text)
            for name, row in zip(ids, rows, strict=True)
            for j, text in enumerate(row)
        ),
        questions=Choice(
            tuple(ids),
            groupings=groupings,
            query=positions,
            candidates=np.arange(len(rows) * len(candidates), dtype=np.int64).reshape(len(rows), -1),
            correct=correct,
        ),
        source=source,
        path=path,
    )


def check_counts(benchmark: Benchmark, *, part: bool = False) -> Benchmark:
    """The benchmark itself, if it has as many questions as its card says, in all and in each group.

    A group may have as many as another edition of the release has (`Card.also`). With `part`, some subsets
    may be left out: those that are there are checked, not groups across them, nor the sum. Raises
    `DataError` naming the group.
    """
    card, groups = benchmark.card, benchmark.questions.groups()
    whole = set(benchmark.questions.groupings.get("subset", ())) if part else set(card.counts)
    for name, expected in card.counts.items():
        if name not in whole:
            continue
        found = int(groups[name].sum()) if name in groups else 0
        allowed = [expected, *([card.also[name]] if name in card.also else [])]
        if found not in allowed:
            raise _miscounted(benchmark, f"in group '{name}'", found, allowed)
    if card.size is not None and not part:
        sizes = [card.size, *(card.size + n - card.counts[name] for name, n in card.also.items())]
        if len(benchmark) not in sizes:
            raise _miscounted(benchmark, "in all", len(benchmark), sorted(set(sizes)))
    return benchmark


def _miscounted(benchmark: Benchmark, place: str, found: int, allowed: Sequence[int]) -> DataError:
    return DataError(
        f"not the number of questions {benchmark.card.title} has {place}",
        where=benchmark.source,
        given=f"{found:,}",
        allowed=" or ".join(f"{n:,}" for n in allowed),
        hint="is the file cut off, or another release? your own selection is read with --no-counts",
    )


def _listed(images: Sequence[Image]) -> tuple[tuple[Image, ...], NDArray[np.int64]]:
    """Distinct images in order of first appearance, and the position of each one given."""
    number: dict[str, int] = {}
    positions = np.asarray([number.setdefault(image.id, len(number)) for image in images], dtype=np.int64)
    _, first = np.unique(positions, return_index=True)
    return tuple(images[i] for i in first), positions
