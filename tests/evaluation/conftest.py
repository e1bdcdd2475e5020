"""Small benchmarks and answers for the evaluation's tests."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from counterfoil.data import Benchmark, Caption, Card, Choice, Image, Quad
from counterfoil.data.galleries import Gallery, Search
from counterfoil.data.scores import DirectionRanks, Rankings
from counterfoil.evaluation.run import Run
from counterfoil.metrics.class_rules import Plausible, precision_at_r
from counterfoil.metrics.ranks import Positives

from .made_runs import gallery, gallery_items, run

Make = Callable[..., Benchmark]


@pytest.fixture
def quads() -> Make:
    """n quads; `share` consecutive questions show the same first image."""

    def make(n: int, *, share: int = 1, name: str = "toy") -> Benchmark:
        images = [Image(f"{i // share}_i0") for i in range(0, n, share)] + [
            Image(f"{i}_i1") for i in range(n)
        ]
        first = np.arange(n) // share
        return Benchmark(
            Card(name=name, title="Toy quads", form="quad", groupings=("type",)),
            tuple(images),
            tuple(Caption(f"{i}_c{k}", f"caption {i} {k}") for i in range(n) for k in range(2)),
            Quad(
                tuple(str(i) for i in range(n)),
                groupings={"type": tuple("swap" if i % 3 == 0 else "add" for i in range(n))},
                captions=np.arange(2 * n).reshape(n, 2),
                images=np.stack([first, first.max() + 1 + np.arange(n)], axis=1),
            ),
        )

    return make


@pytest.fixture
def choices() -> Make:
    """Choices in named subsets: {"add": 6, "swap": 2} makes six and two questions, image -> k captions."""

    def make(subsets: dict[str, int], *, k: int = 2, correct: int = 1) -> Benchmark:
        labels = [label for label, count in subsets.items() for _ in range(count)]
        n = len(labels)
        return Benchmark(
            Card(
                name="toy-choice", title="Toy choices", form="choice", macro="subset", groupings=("subset",)
            ),
            tuple(Image(str(i)) for i in range(n)),
            tuple(Caption(f"{i}_c{c}", f"caption {i} {c}") for i in range(n) for c in range(k)),
            Choice(
                tuple(str(i) for i in range(n)),
                groupings={"subset": tuple(labels)},
                query=np.arange(n),
                candidates=np.arange(n * k).reshape(n, k),
                correct=correct,
            ),
        )

    return make


@dataclass(frozen=True)
class Asked:
    """A small gallery and what some scorer says of it: scores of all images with all captions."""

    benchmark: Benchmark
    scores: NDArray[np.float64]

    @property
    def rankings(self) -> Rankings:
        """The places of the right answers, counted one by one."""
        gallery = self.benchmark.gallery
        return Rankings(
            _placed(gallery.i2t, self.scores, gallery.image_parts, gallery.caption_parts),
            _placed(gallery.t2i, self.scores.T, gallery.caption_parts, gallery.image_parts),
        )

    def scored(self, scores: NDArray[np.float64]) -> "Asked":
        """The same questions to another scorer."""
        return replace(self, scores=scores)


def _placed(search: Search, scores, of_query, of_item) -> DirectionRanks:
    above, level, tops, top_scores, depth, shares = [], [], [], [], [], []
    for q, query in enumerate(search.queries):
        seen = np.arange(scores.shape[1]) if of_item is None else np.flatnonzero(of_item == of_query[query])
        line = scores[query]
        order = seen[np.argsort(-line[seen], kind="stable")][:4]
        tops.append(order)
        top_scores.append(line[order])
        depth.append(len(seen))
        if isinstance(search.positives, Plausible):
            right = search.positives.distances(np.array([q]), seen)[0]
            shares.append(
                [
                    precision_at_r(line[seen][None], (right <= t)[None], cap=search.positives.cap)[:, 0]
                    for t in search.positives.thresholds
                ]
            )
            continue
        for item in search.positives.items[search.positives.starts[q] : search.positives.starts[q + 1]]:
            above.append(int((line[seen] > line[item]).sum()) if item >= 0 else -1)
            level.append(int((line[seen] == line[item]).sum()) if item >= 0 else 0)
    return DirectionRanks(
        np.array(above, dtype=np.int64),
        np.array(level, dtype=np.int64),
        np.array(depth, dtype=np.int64),
        np.array(tops, dtype=np.int32),
        np.array(top_scores, dtype=np.float32),
        np.transpose(np.array(shares), (1, 2, 0)) if shares else None,
    )


@pytest.fixture
def galleries() -> Callable[..., Asked]:
    """Twelve images with three captions each, and scores of few values, so that many tie.

    `parts` cuts them into seven and five images; `gains` makes some matches partial; `rule` says by classes
    of object what is right. The first image's third right caption is outside the gallery, and the last
    caption has no right image, unless by rule.
    """

    def make(
        *, parts: bool = False, gains: bool = False, rule: bool = False, seed: int = 0, values: int = 4
    ) -> Asked:
        rng = np.random.default_rng(seed)
        owners = np.repeat(np.arange(12), 3)
        image_parts = np.repeat([0, 1], [7, 5])
        own = [np.flatnonzero(owners == image).tolist() for image in range(12)]
        own[0][2] = -1
        # The right answers of others are right too, where they are in the same part.
        own[1] += [8, 9]
        back = [[int(owner)] for owner in owners]
        back[8] += [0, 4]
        back[35] = []
        worth = [[float(rng.choice([0.5, 1.0])) if gains else 1.0 for _ in row] for row in (*own, *back)]
        found: list[Positives | Plausible]
        if rule:
            codes = rng.random((12, 4)) < 0.5
            found = [
                Plausible(codes, codes[owners], (0, 1), 3),
                Plausible(codes[owners], codes, (0, 1), 3),
            ]
        else:
            found = [Positives.of(own, worth[:12]), Positives.of(back, worth[12:])]
        measures = ("pmrp",) if rule else ("map_at_r", "recall_at_1")
        benchmark = Benchmark(
            Card(name="toy-gallery", title="Toy gallery", form="gallery", measures=measures),
            tuple(Image(f"i{i}") for i in range(12)),
            tuple(Caption(f"c{i}", f"caption {i}" if i else None) for i in range(36)),
            Gallery(
                tuple(f"i2t/i{i}" for i in range(12)) + tuple(f"t2i/c{i}" for i in range(36)),
                groupings={"kind": ("odd", "even") * 6 + ("even",) * 36},
                i2t=Search(np.arange(12), found[0]),
                t2i=Search(np.arange(36), found[1]),
                owners=owners,
                n_images=12,
                image_parts=image_parts if parts else None,
                caption_parts=image_parts[owners] if parts else None,
            ),
        )
        return Asked(benchmark, rng.integers(0, values, size=(12, 36)).astype(np.float64))

    return make


@pytest.fixture
def mixed(quads: Make) -> list[Run]:
    """Five models on two galleries with images in common, one of them in parts, and on quads."""
    whole = gallery("whole", range(100, 112), parts=3, measures=("map_at_r", "recall_at_1"))
    some = gallery("some", range(100, 112), asked=slice(2, 9), measures=("map_at_r",))
    pairs = quads(9, share=2)
    runs = []
    for number in range(5):
        rng = np.random.default_rng(number)
        skill = 0.3 + 0.1 * number
        runs += [
            run(whole, f"m{number}", gallery_items(whole, rng, skill)),
            run(some, f"m{number}", gallery_items(some, rng, skill)),
            run(pairs, f"m{number}", {m: (rng.random(9) < skill) * 1.0 for m in ("i2t", "t2i", "group")}),
        ]
    return runs
