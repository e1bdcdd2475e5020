"""Small benchmarks and answers for the evaluation's tests."""

from dataclasses import dataclass, replace

import numpy as np
import pytest
from numpy.typing import NDArray

from contracts import forms
from counterfoil.benchmarks import Benchmark, Caption, Image
from counterfoil.metrics.class_rules import Plausible
from counterfoil.metrics.ranks import Qrels
from evaluation.made_runs import gallery_items, run


@pytest.fixture
def quads():
    """n quads; `share` consecutive questions show the same first image."""
    return forms.quads


@pytest.fixture
def choices():
    """Choices in named subsets: {"add": 6, "swap": 2} makes six and two questions, image -> k captions."""
    return forms.choices


@dataclass(frozen=True)
class Asked:
    """A small gallery and what some model says of it: scores of all images with all captions."""

    benchmark: Benchmark
    scores: NDArray[np.float64]

    @property
    def rankings(self):
        """The places of the right answers, counted one by one."""
        return forms.rankings(self.benchmark, self.scores)

    def scored(self, scores):
        """The same questions to another model."""
        return replace(self, scores=scores)


@pytest.fixture
def galleries():
    """Twelve images with three captions each, and scores of few values, so that many tie.

    `parts` cuts them into seven and five images; `gains` makes some matches partial; `rule` says by classes
    of object what is right. The first image's third right caption is outside the gallery, and the last
    caption has no right image, unless by rule.
    """

    def make(*, parts=False, gains=False, rule=False, seed=0, values=4):
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
        result: list[Qrels | Plausible]
        if rule:
            codes = rng.random((12, 4)) < 0.5
            result = [Plausible(codes, codes[owners], (0, 1), 3), Plausible(codes[owners], codes, (0, 1), 3)]
        else:
            result = [Qrels.of(own, worth[:12]), Qrels.of(back, worth[12:])]
        benchmark = forms.gallery_of(
            [Image(f"i{i}") for i in range(12)],
            [Caption(f"c{i}", f"caption {i}" if i else None) for i in range(36)],
            result,
            parts=(image_parts, image_parts[owners]) if parts else (None, None),
            labels={"kind": ("odd", "even") * 6 + ("even",) * 36},
            title="Toy gallery",
            measures=("pmrp",) if rule else ("map_at_r", "recall_at_1"),
        )
        return Asked(benchmark, rng.integers(0, values, size=(12, 36)).astype(np.float64))

    return make


@pytest.fixture
def mixed(quads):
    """Five models on two galleries with images in common, one of them in parts, and on quads."""
    whole = forms.gallery("whole", range(100, 112), parts=3, measures=("map_at_r", "recall_at_1"))
    some = forms.gallery("some", range(100, 112), asked=slice(2, 9), measures=("map_at_r",))
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
