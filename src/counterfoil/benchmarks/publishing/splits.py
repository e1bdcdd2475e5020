"""Splits of a benchmark by image, for training and for testing."""

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.release import SPLIT
from counterfoil.errors import DataError, InputError
from counterfoil.stats.dependence import Sharing


def with_split(benchmark: Benchmark, share: float, seed: int) -> Benchmark:
    """The benchmark with a grouping "split"; raises `DataError` where it cannot be split.

    Questions that show one photograph stay together (`split_by_image`). A gallery is measured whole.
    """
    if SPLIT in benchmark.questions.groupings:
        raise DataError(
            "the questions are in splits already",
            where=benchmark.name,
            given=", ".join(dict.fromkeys(benchmark.questions.groupings[SPLIT])),
            hint="leave --split out",
        )
    if not benchmark.questions.release().tables[0].questions:
        raise DataError(
            "a gallery is published whole",
            where=benchmark.name,
            hint="leave --split out, or publish a gallery of each half of its table",
        )
    tested = split_by_image(benchmark, share, seed)
    labels = tuple("test" if is_test else "train" for is_test in tested)
    questions = replace(benchmark.questions, groupings={**benchmark.questions.groupings, SPLIT: labels})
    return replace(benchmark, questions=questions)


def split_by_image(benchmark: Benchmark, share: float, seed: int) -> NDArray[np.bool_]:
    """(n,) which questions are tested: about `share` of them, none of which has an image that others have.

    Questions that show one photograph, directly or through others, stay together; such sets are drawn in an
    order from `seed` for as long as the share is not passed. Raises `InputError` for a share that is not
    between 0 and 1, and `DataError` where all questions hang together, or a split would be empty.

    >>> from counterfoil.world.benchmarks import read
    >>> from counterfoil.benchmarks.benchmark import cards_of
    >>> quads = next(card for card in cards_of("counterfoil.world") if card.name == "world-quads")
    >>> float(split_by_image(read(quads, None, None), 0.2, seed=0).mean())
    0.2
    """
    if not 0 < share < 1:
        raise InputError("not a share", where="--split", given=share, allowed="above 0 and below 1")
    images = benchmark.sharing.images
    parts = Sharing(images, np.zeros((len(images), 0), dtype=np.int64)).components
    sizes = np.bincount(parts)
    wanted, taken = share * len(parts), np.zeros(len(sizes), dtype=bool)
    held = 0
    for part in np.random.default_rng(seed).permutation(len(sizes)):
        if held + sizes[part] <= wanted + 0.5:
            taken[part] = True
            held += int(sizes[part])
    if not taken.any() or taken.all():
        raise DataError(
            "the questions cannot be split by image",
            where=benchmark.name,
            given=f"{len(sizes):,} sets of questions that share images, the largest of {sizes.max():,}",
            hint="leave --split out, or give another share",
        )
    return np.asarray(taken[parts])
