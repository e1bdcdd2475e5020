"""A few questions in pictures: pairs with their captions, and right answers in a gallery."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from counterfoil.data.benchmark import Benchmark
from counterfoil.evaluation.compare import Comparison
from counterfoil.evaluation.result import Run
from counterfoil.metrics.ranks import Positives
from counterfoil.report import tables
from counterfoil.report.browser_data import Album
from counterfoil.report.labels import group


@dataclass(frozen=True)
class PicturePair:
    """Two pictures with their captions, as the page shows a question."""

    kind: str
    images: tuple[str, str]
    captions: tuple[str, str]


@dataclass(frozen=True)
class RankedPictures:
    """A caption, the pictures it is true of, and what a model puts first: (picture, whether it is right)."""

    caption: str
    right: tuple[str, ...]
    more: int
    model: str
    first: tuple[tuple[str, bool], ...]


def pairs(comparison: Comparison, album: Album) -> tuple[PicturePair, ...]:
    """Up to eight questions that share no picture, as evenly over the kinds of question as can be."""
    benchmark = _pictured(comparison)
    if benchmark is None:
        return ()
    questions = benchmark.paired
    caption_at, image_at = questions.slots()
    groupings = questions.groupings
    # The finest of those that the benchmark is reported by.
    reported = [name for name in benchmark.card.groupings if name in groupings] or list(groupings)
    finest = max(reported, key=lambda name: len(set(groupings[name])), default=None)
    labels = groupings[finest] if finest is not None else ("",) * len(benchmark)
    chosen = _spread(labels, benchmark.clusters.tolist(), 8)
    numbers = album.add(benchmark.images, image_at[chosen].tolist())
    return tuple(
        PicturePair(
            group(labels[at]),
            (album.uris[numbers[a]], album.uris[numbers[b]]),
            (benchmark.captions[c].text or "", benchmark.captions[d].text or ""),
        )
        for at, (a, b), (c, d) in ((at, image_at[at].tolist(), caption_at[at].tolist()) for at in chosen)
        if a in numbers and b in numbers
    )


def _spread(labels: Sequence[str], clusters: Sequence[int], most: int) -> list[int]:
    """Positions of up to `most` questions: every label in turn, no cluster twice, labels together.

    >>> _spread(["a", "a", "b", "a"], [0, 1, 0, 2], 3)
    [0, 1, 3]
    >>> _spread(["a", "a", "b", "a"], [0, 1, 3, 2], 3)
    [0, 1, 2]
    """
    waiting = {
        label: [at for at, own in enumerate(labels) if own == label] for label in dict.fromkeys(labels)
    }
    chosen: list[int] = []
    shown: set[int] = set()
    while len(chosen) < most and any(waiting.values()):
        for queue in waiting.values():
            while queue and clusters[queue[0]] in shown:
                queue.pop(0)
            if queue and len(chosen) < most:
                chosen.append(queue.pop(0))
                shown.add(clusters[chosen[-1]])
    order = list(waiting)
    return sorted(chosen, key=lambda at: (order.index(labels[at]), at))


def shelves(
    comparison: Comparison, album: Album, *, shown: int = 3, most: int = 6
) -> tuple[RankedPictures, ...]:
    """Captions with several right pictures, and what the best model puts first for each."""
    benchmark = _pictured(comparison)
    if benchmark is None:
        return ()
    search = benchmark.gallery.t2i
    if not isinstance(search.positives, Positives):
        return ()
    best = _best(comparison)
    counts = search.positives.counts
    several = np.flatnonzero((counts >= 3) & (counts <= 12))
    if not len(several):
        several = np.flatnonzero(counts >= 1)
    # From short captions to long ones, which say more and are true of less.
    lengths = [len(benchmark.captions[int(query)].text or "") for query in search.queries[several]]
    several = several[np.argsort(lengths, kind="stable")]
    chosen = several[np.linspace(0, len(several) - 1, min(shown, len(several))).astype(int)]
    found = []
    for row in chosen.tolist():
        right = search.positives.items[search.positives.starts[row] : search.positives.starts[row + 1]]
        right = right[right >= 0]
        first = _tops(best, row)[:most]
        numbers = album.add(benchmark.images, [[*right[:most].tolist(), *first]])
        if not numbers:
            continue
        found.append(
            RankedPictures(
                benchmark.captions[int(search.queries[row])].text or "",
                tuple(album.uris[numbers[i]] for i in right[:most].tolist()),
                max(0, len(right) - most),
                best.name,
                tuple((album.uris[numbers[i]], i in right) for i in first),
            )
        )
    return tuple(found)


def _tops(run: Run, row: int) -> list[int]:
    if not run.answers.has_rankings or not run.answers.rankings.t2i.top.size:
        return []
    return [int(i) for i in run.answers.rankings.t2i.top[row] if i >= 0]


def _best(comparison: Comparison) -> Run:
    name = tables.ranking(comparison)[0]
    return next(run for run in comparison.runs if run.name == name)


def _pictured(comparison: Comparison) -> Benchmark | None:
    """The benchmark of a run that has its pictures and captions, if one has."""
    return next(
        (
            run.benchmark
            for run in comparison.runs
            if run.benchmark.images_at_hand and run.benchmark.captions_at_hand
        ),
        None,
    )
