"""Small benchmarks of captions that people rated or preferred, whose truth is known."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.ratings import Preference, Rated
from counterfoil.data.records import Caption, Image
from counterfoil.data.references import References


def ratings_of(
    ratings: NDArray[np.float64],
    images: NDArray[np.int64],
    *,
    ids: Sequence[str] = (),
    shown: Sequence[Image] = (),
    captions: Sequence[Caption] = (),
    card: Mapping[str, Any] | None = None,
    **more: Any,
) -> Benchmark:
    """Caption i is of image `images[i]` and rated `ratings[i]`; further captions are references."""
    n = len(ratings)
    questions = Rated(
        tuple(ids) or tuple(f"q{i}" for i in range(n)),
        captions=np.arange(n),
        images=images,
        ratings=ratings,
        **more,
    )
    return _benchmark(
        {"name": "toy-rated", "title": "Toy ratings", **(card or {})}, shown, captions, questions
    )


def pairs_of(
    votes: NDArray[np.float64],
    images: NDArray[np.int64],
    *,
    ids: Sequence[str] = (),
    shown: Sequence[Image] = (),
    captions: Sequence[Caption] = (),
    card: Mapping[str, Any] | None = None,
    **more: Any,
) -> Benchmark:
    """Captions 2i and 2i + 1 are of image `images[i]` and got `votes[i]`; of equal votes the first."""
    n = len(votes)
    questions = Preference.between(
        tuple(ids) or tuple(f"q{i}" for i in range(n)),
        np.arange(2 * n).reshape(n, 2),
        images,
        votes,
        (votes[:, 1] > votes[:, 0]).astype(np.int64),
        **more,
    )
    return _benchmark(
        {"name": "toy-preference", "title": "Toy pairs", **(card or {})}, shown, captions, questions
    )


def paragraphs_of(
    n: int,
    sentences: int,
    images: NDArray[np.int64],
    *,
    ids: Sequence[str] = (),
    shown: Sequence[Image] = (),
    captions: Sequence[Caption] = (),
    references: References | None = None,
    card: Mapping[str, Any] | None = None,
    **more: Any,
) -> Benchmark:
    """Two paragraphs per question, the first preferred; `images` and `references` are of all sentences."""
    owners = np.repeat(np.arange(n), 2 * sentences)
    questions = Preference(
        tuple(ids) or tuple(f"q{i}" for i in range(n)),
        captions=np.arange(len(owners)),
        images=images,
        owners=owners,
        sides=np.tile(np.repeat([0, 1], sentences), n),
        votes=np.tile([[2.0, 1.0]], (n, 1)),
        label=np.zeros(n, dtype=np.int64),
        references=references,
        **more,
    )
    return _benchmark(card, shown, captions, questions)


def _benchmark(
    card: Mapping[str, Any] | None,
    shown: Sequence[Image],
    captions: Sequence[Caption],
    questions: Rated | Preference,
) -> Benchmark:
    form, n = questions.form, int(questions.captions.max()) + 1
    return Benchmark(
        Card(**{"name": f"toy-{form}", "title": f"Toy {form}", "form": form, **(card or {})}),
        tuple(shown) or tuple(Image(f"i{i}", photo=f"p{i}") for i in range(questions.images.max() + 1)),
        tuple(captions) or tuple(Caption(f"c{i}", f"caption {i}") for i in range(n)),
        questions,
    )


def rated(ratings: NDArray[np.float64], *, per_image: int = 5, groups: int = 0, **more: Any) -> Benchmark:
    """Captions rated (n, raters), so many of each image; two references each."""
    n = len(ratings)
    return ratings_of(
        ratings,
        np.arange(n) // per_image,
        captions=_written(n, n + 1),
        groupings={"source": tuple("abcdefgh"[i % groups] for i in range(n))} if groups else {},
        references=References.of([[n + i, n + i + 1] for i in range(n)]),
        **more,
    )


def preferred(
    votes: NDArray[np.float64], *, per_image: int = 2, groups: int = 0, macro: bool = False, **more: Any
) -> Benchmark:
    """Two captions of an image each, with (n, 2) votes; three references that both share."""
    n = len(votes)
    kinds = tuple(("HC", "HI", "HM", "MM")[i % groups] for i in range(n)) if groups else ()
    return pairs_of(
        votes,
        np.arange(n) // per_image,
        captions=_written(2 * n, n + 2),
        card={"macro": "kind"} if macro else {},
        groupings={"kind": kinds} if groups else {},
        references=References.of([[2 * n + i, 2 * n + i + 1, 2 * n + i + 2] for i in range(n)]),
        **more,
    )


def _written(candidates: int, references: int) -> list[Caption]:
    return [Caption(f"c{i}", f"caption {i}") for i in range(candidates)] + [
        Caption(f"r{i}", f"reference {i}") for i in range(references)
    ]


def grades(n: int, *, raters: int = 1, seed: int = 0) -> NDArray[np.float64]:
    """Ratings from 1 to 4, as many of each (n a multiple of 4)."""
    rng = np.random.default_rng(seed)
    return np.stack([rng.permutation(np.arange(n) % 4 + 1.0) for _ in range(raters)], axis=1)
