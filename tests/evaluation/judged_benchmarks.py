"""Small benchmarks of captions that people rated or preferred, whose truth is known."""

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.ratings import Preference, Rated
from counterfoil.data.records import Caption, Image
from counterfoil.data.references import References


def rated(ratings: NDArray[np.float64], *, per_image: int = 5, groups: int = 0, **more: object) -> Benchmark:
    """Captions rated (n, raters), so many of each image; two references each."""
    n = len(ratings)
    images = np.arange(n) // per_image
    labels = {"source": tuple("abcdefgh"[i % groups] for i in images)} if groups else {}
    return Benchmark(
        Card(name="toy-rated", title="Toy ratings", form="rated"),
        tuple(Image(f"i{i}", photo=f"p{i}") for i in range(images.max() + 1)),
        tuple(Caption(f"c{i}", f"caption {i}") for i in range(n))
        + tuple(Caption(f"r{i}", f"reference {i}") for i in range(n + 1)),
        Rated(
            tuple(f"q{i}" for i in range(n)),
            groupings=labels,
            captions=np.arange(n),
            images=images,
            ratings=ratings,
            references=References.of([[n + i, n + i + 1] for i in range(n)]),
            **more,
        ),
    )


def preferred(
    votes: NDArray[np.float64], *, per_image: int = 2, groups: int = 0, macro: bool = False, **more: object
) -> Benchmark:
    """Two captions of an image each, with (n, 2) votes; three references that both share."""
    n = len(votes)
    images = np.arange(n) // per_image
    labels = {"kind": tuple(("HC", "HI", "HM", "MM")[i % groups] for i in range(n))} if groups else {}
    return Benchmark(
        Card(name="toy-preference", title="Toy pairs", form="preference", macro="kind" if macro else ""),
        tuple(Image(f"i{i}", photo=f"p{i}") for i in range(images.max() + 1)),
        tuple(Caption(f"c{i}{side}", f"caption {i} {side}") for i in range(n) for side in "ab")
        + tuple(Caption(f"r{i}", f"reference {i}") for i in range(n + 2)),
        Preference.between(
            tuple(f"q{i}" for i in range(n)),
            np.arange(2 * n).reshape(n, 2),
            images,
            votes,
            (votes[:, 1] > votes[:, 0]).astype(np.int64),
            groupings=labels,
            references=References.of([[2 * n + i, 2 * n + i + 1, 2 * n + i + 2] for i in range(n)]),
            **more,
        ),
    )


def grades(n: int, *, raters: int = 1, seed: int = 0) -> NDArray[np.float64]:
    """Ratings from 1 to 4, as many of each (n a multiple of 4)."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(np.arange(n) % 4 + 1.0) for _ in range(raters)], axis=1)
