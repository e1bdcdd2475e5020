"""Small benchmarks of captions that people rated or preferred, and models of them that are easy to see."""

from typing import Any

import numpy as np

from contracts.forms import pairs_of, ratings_of
from counterfoil.benchmarks.answers import Scores
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms import Preference, Rated
from counterfoil.benchmarks.records import BytesSource, Caption, Image
from counterfoil.benchmarks.references import References
from report_fixtures import NASTY, picture

N_RATED, N_PREFERRED = 36, 20
CATEGORIES = ("HC", "HI", "HM", "MM")


def rated_benchmark(n: int = N_RATED, **card: Any) -> Benchmark:
    """`n` captions, two of each image, rated 1 to 4 by three people; some of them said nothing."""
    rng = np.random.default_rng(41)
    images = tuple(
        Image(f"photo-{i}", BytesSource(picture((7 * i % 256, 80, 160)), f"drawn {i}")) for i in range(n // 2)
    )
    captions = [Caption(f"text-{i}", f"sentence number {i}") for i in range(2 * n)]
    captions[2] = Caption("text-2", NASTY)
    ratings = np.clip(rng.integers(1, 5, n)[:, None] + rng.integers(-1, 2, (n, 3)), 1, 4).astype(np.float64)
    ratings[::5, 2] = np.nan
    facts = {"name": "rated", "title": "Rated & drawn", "licence": "CC0", "groupings": ("system",)}
    return ratings_of(
        ratings,
        np.arange(n) // 2,
        ids=[f"r{i}" for i in range(n)],
        shown=images,
        captions=captions,
        references=References.of([list(range(n, n + i % 12)) for i in range(n)]),
        groupings={"system": tuple(("person", "machine <2>")[i % 2] for i in range(n))},
        card={**facts, "measures": ("kendall_tau_c", "kendall_tau_b"), **card},
    )


def rated_scores(benchmark: Benchmark) -> dict[str, Scores]:
    """An oracle, one that goes with people somewhat, one against them, and one that says nothing."""
    questions = benchmark.judged
    assert isinstance(questions, Rated)
    mean = np.nanmean(questions.ratings, axis=1)
    noise = np.random.default_rng(5).normal(size=(2, len(mean)))
    scores = mean, mean + noise[0], noise[1] - mean, np.ones(len(mean))
    return dict(zip(("oracle", "good", "against <b>", "constant"), map(Scores, scores), strict=True))


def preference_benchmark(n: int = N_PREFERRED, **card: Any) -> Benchmark:
    """`n` pairs of captions, each put before 48 people; two of question 1 got as many votes."""
    rng = np.random.default_rng(43)
    images = tuple(Image(f"view-{i}", BytesSource(picture((90, 9 * i % 256, 30)))) for i in range(n))
    captions = tuple(Caption(f"said-{i}", f"caption {i} of a pair") for i in range(2 * n))
    most = rng.integers(25, 49, n)
    first = np.where(rng.random(n) < 0.5, most, 48 - most)
    first[1] = 24
    votes = np.stack([first, 48 - first], axis=1).astype(np.float64)
    facts = {"name": "preferred", "title": "Preferred", "groupings": ("category",), "macro": "category"}
    return pairs_of(
        votes,
        np.arange(n),
        ids=[f"p{i}" for i in range(n)],
        shown=images,
        captions=captions,
        groupings={"category": tuple(CATEGORIES[i % 4] for i in range(n))},
        card={**facts, "measures": ("accuracy", "accuracy_macro"), **card},
    )


def preference_scores(benchmark: Benchmark) -> dict[str, Scores]:
    """An oracle, one that guesses with ties, and one asked once per draw of references."""
    questions = benchmark.judged
    assert isinstance(questions, Preference)
    right = np.eye(2)[questions.label]
    rng = np.random.default_rng(6)
    return {
        "oracle": Scores(right),
        "guess": Scores(np.round(rng.normal(size=right.shape))),
        "drawn": Scores(right[:, :, None] + rng.normal(0, 0.6, (*right.shape, 3))),
    }
