"""Answers of a model: scores per pair, right or wrong per question, or ranks; their provenance."""

import platform
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.forms.base import NO_CANDIDATE
from counterfoil.benchmarks.tables import LARGEST
from counterfoil.errors import ScoreError
from counterfoil.inputs.files import display_path, is_distant


class Answered:
    """All kinds of answer: each has content of one kind, and raises `ScoreError` for the other."""

    #: Whether there are scores, of any shape.
    has_scores: ClassVar[bool] = False
    #: Whether there are ranks in a gallery.
    has_rankings: ClassVar[bool] = False

    @property
    def scores(self) -> NDArray[np.float64]:
        """The scores."""
        raise ScoreError("these answers are no scores", given=type(self).__name__.lower())

    @property
    def outcomes(self) -> "Outcomes":
        """Right or wrong per question."""
        raise ScoreError("these answers are no outcomes", given=type(self).__name__.lower())

    @property
    def rankings(self) -> "Rankings":
        """The ranks in a gallery."""
        raise ScoreError("these answers are no rankings", given=type(self).__name__.lower())


@dataclass(frozen=True, eq=False)
class Scores(Answered):
    """One float64 score per pair a question asks about; higher means a better match.

    `values` is (n, 2 captions, 2 images) for quads, (n, k) for choices, (n,) for rated captions, and (n, 2)
    for preferences; (n, 2, draws) where a metric was asked once per draw of references. Of choices with
    different numbers of candidates k is the most, and `NO_CANDIDATE` stands behind the last of each.
    """

    values: NDArray[np.float64]
    #: Their origin, where the engine made them (`counterfoil.engine.plan`): model, machine, versions.
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    #: The questions of which some score is NaN, since a model refused; None where none can be.
    unanswered: NDArray[np.bool_] | None = None

    has_scores: ClassVar[bool] = True

    @property
    def scores(self) -> NDArray[np.float64]:
        """The values, whatever their shape."""
        return self.values

    def take(self, rows: NDArray[np.int64]) -> "Scores":
        """The answers to the chosen questions."""
        missing = None if self.unanswered is None else self.unanswered[rows]
        return replace(self, values=self.values[rows], unanswered=missing)

    def check(self, benchmark: Benchmark, *, where: str) -> "Scores":
        """Itself, if it answers all of `benchmark`; `ScoreError` for wrong shapes, NaN and infinities."""
        questions = benchmark.listed
        if not questions.has_shape(self.values.shape):
            what = "scores have the wrong shape"
            raise ScoreError(what, where=where, given=self.values.shape, allowed=str(questions.shape))
        # Written so that NaN is broken, too.
        broken = ~(np.abs(self.values) <= LARGEST)
        if questions.filled is not None:
            extra = ~questions.filled & (self.values != NO_CANDIDATE)
            if extra.any():
                index = tuple(int(i) for i in np.argwhere(extra)[0])
                raise ScoreError(
                    "a score where the question has no candidate",
                    where=f"{where}, question '{benchmark.questions.ids[index[0]]}', position {index[1:]}",
                    given=self.values[index],
                    allowed=f"{NO_CANDIDATE} behind the last of its {int(questions.filled[index[0]].sum())}",
                )
            broken &= questions.filled
        if broken.any():
            index = tuple(int(i) for i in np.argwhere(broken)[0])
            raise ScoreError(
                "score is out of range"
                if np.isfinite(self.values[index])
                else "score is not a finite number",
                where=f"{where}, question '{benchmark.questions.ids[index[0]]}', position {index[1:]}",
                given=self.values[index],
                allowed=f"finite numbers from {-LARGEST:g} to {LARGEST:g}",
                hint=f"{int(broken.sum())} of {broken.size} scores are NaN, infinite or out of range",
            )
        return self


@dataclass(frozen=True, eq=False)
class Outcomes(Answered):
    """Right or wrong per question, for each thing asked: what released result tables often keep.

    `right` maps `ipos2t`, `ineg2t`, `tpos2i`, `tneg2i` (quads) or `accuracy` (choices) to (n,) booleans, or
    to shares of several answers that are right. `ties` says in words how ties were counted.
    """

    right: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    ties: str = "answers were given, not scores, so no ties are counted"
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)
    #: The questions without an answer, which are not right; None where every question has one.
    unanswered: NDArray[np.bool_] | None = None
    #: Chance by measure, where it is not that of random scores: picking one of two options four times.
    chance: Mapping[str, float] = field(default_factory=dict)

    def take(self, rows: NDArray[np.int64]) -> "Outcomes":
        """The answers to the chosen questions."""
        missing = None if self.unanswered is None else self.unanswered[rows]
        right = {name: values[rows] for name, values in self.right.items()}
        return replace(self, right=right, unanswered=missing)

    @property
    def outcomes(self) -> "Outcomes":
        """Itself."""
        return self


@dataclass(frozen=True, eq=False)
class DirectionRanks:
    """Where a model puts the right answers of one direction of a gallery, and what it puts first.

    For every positive of the search, in its order: `above` items score strictly above it (-1 where it was
    not found: the gallery does not hold it, or a given ranking ends before it), `level` items score as high,
    itself included (0 where not found). `depth` says how far down each query's ranking is known: its whole
    gallery, unless a ranking was given that is shorter. `top` holds the first items of each query, best
    first, as positions (-1 behind the end), and `top_scores` their scores (NaN where only an order is known).
    Where right is what a rule says there is nothing to count: `shares` holds the R-Precision per threshold,
    tie policy (strict, half, optimistic) and query.
    """

    above: NDArray[np.int64]
    level: NDArray[np.int64]
    depth: NDArray[np.int64]
    top: NDArray[np.int32]
    top_scores: NDArray[np.float32]
    shares: NDArray[np.float64] | None = None


@dataclass(frozen=True, eq=False)
class Rankings(Answered):
    """What a model answered to a gallery, in both directions; never the scores of all pairs."""

    i2t: DirectionRanks
    t2i: DirectionRanks
    provenance: Mapping[str, Any] = field(default_factory=dict, repr=False)

    has_rankings: ClassVar[bool] = True

    @property
    def rankings(self) -> "Rankings":
        """Itself."""
        return self


Answers = Scores | Outcomes | Rankings

#: What a number can depend on.
_LIBRARIES = (
    *("counterfoil", "numpy", "scipy", "pyarrow", "pillow"),
    *("torch", "torchvision", "open_clip_torch", "transformers"),
)


@cache
def versions() -> Mapping[str, str]:
    """The versions of what a number can depend on, as installed; what is not installed is left out."""
    # Cached, since a study asks hundreds of times and each lookup parses a file.
    installed = {"python": platform.python_version()}
    for library in _LIBRARIES:
        with suppress(metadata.PackageNotFoundError):
            installed[library] = metadata.version(library)
    return installed


def command() -> list[str]:
    """What was typed to start this program: its name without the folders it lies in, and its arguments."""
    return [Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python", *sys.argv[1:]]


def about(benchmark: Benchmark, *, images: Path | None = None) -> dict[str, Any]:
    """A benchmark's identity: its questions' digest, and where it and its `images` were read from."""
    place = None
    if images is not None:
        place = display_path(images) if is_distant(images) else str(images.resolve())
    return {
        "name": benchmark.name,
        "questions": len(benchmark),
        "digest": benchmark.digest,
        "source": benchmark.source,
        "path": str(benchmark.path.resolve()) if benchmark.path is not None else None,
        "images": place,
        "revision": benchmark.card.revision,
    }


def provenance_of(benchmark: Benchmark, answers: Answers) -> dict[str, Any]:
    """How `answers` to `benchmark` came about: the benchmark, and what the engine wrote on the answers."""
    return {"benchmark": about(benchmark), "versions": versions(), **answers.provenance}
