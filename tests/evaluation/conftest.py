"""Small benchmarks and answers for the evaluation's tests."""

from collections.abc import Callable

import numpy as np
import pytest

from counterfoil.data import Benchmark, Caption, Card, Choice, Image, Quad

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
