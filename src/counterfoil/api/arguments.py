"""The arguments of the Python API as tasks take them: paths, caches, feedback, names, settings of steps."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import Any, Literal, TypeVar

from counterfoil import catalog
from counterfoil.benchmarks.benchmark import Benchmark
from counterfoil.benchmarks.data_paths import Places
from counterfoil.engine.deduplicate import Progress
from counterfoil.engine.rank import Given
from counterfoil.errors import InputError, UnknownNameError
from counterfoil.jobs.feedback import Feedback, ignore, terminal_feedback
from counterfoil.models.base import Classifier, Embedder, Scorer, identity_of
from counterfoil.models.callables import FunctionScorer
from counterfoil.models.captions.base import CaptionMetric
from counterfoil.models.learned import LearnedScorer

#: All that can be measured: scorers of pairs, dual encoders, detectors, caption metrics, given numbers, and
#: blind scorers that learn.
AnyScorer = Scorer | Embedder | Classifier | CaptionMetric | Given | LearnedScorer

_Name = TypeVar("_Name", bound=StrEnum)

#: A folder of finished work, "default" for the user's own, None to keep nothing.
Cache = str | Path | None
#: A path, or a path per benchmark.
Data = str | Path | Mapping[str, str | Path] | None
#: Data of one benchmark: a path, or a table in memory (`counterfoil.benchmarks.tables.memory_table`).
TableData = Any


def path_of(given: str | Path | None) -> Path | None:
    return None if given is None else Path(given)


def feedback_of(
    *, quiet: bool = False, progress: Progress | None = None, note: Callable[[str], None] | None = None
) -> Feedback:
    """The feedback of the command line, parts of it replaced."""
    feedback = terminal_feedback(quiet=quiet)
    if progress is not None:
        feedback = replace(feedback, progress=lambda: nullcontext(progress))
    if note is not None:
        feedback = replace(feedback, note=note, warn=note, remark=note)
    elif quiet:
        feedback = replace(feedback, warn=ignore)
    return feedback


def cache_of(cache: Cache) -> Path | None:
    from counterfoil.cli.paths import cache_folder

    if cache is None:
        return None
    return cache_folder(None) if cache == "default" else Path(cache)


def cache_for(scorer: object, cache: Cache) -> Path | None:
    """The cache; None where "default" was asked for and nothing tells one scorer from another of its name."""
    if cache == "default" and not isinstance(scorer, str):
        identity = identity_of(scorer)
        known = identity.revision or (identity.weights and not isinstance(scorer, FunctionScorer))
        return cache_of("default") if known else None
    return cache_of(cache)


def in_memory(data: object) -> bool:
    """Whether `data` is a table itself, not a path or paths by benchmark."""
    if isinstance(data, Mapping):
        return not all(isinstance(path, str | Path) for path in data.values())
    return data is not None and not isinstance(data, str | Path)


def with_table(benchmark: str | Path | Benchmark, data: Any, images: Data) -> Benchmark:
    """The benchmark of a table in memory; raises `InputError` where `benchmark` is read already."""
    if isinstance(benchmark, Benchmark) or isinstance(images, Mapping):
        raise InputError(
            "data in memory are of one benchmark that is named",
            given=str(benchmark),
            allowed='"pairs", data=frame, images=FOLDER',
        )
    return catalog.benchmark(str(benchmark), data=data, images=images)


def places_of(paths: Data, option: Literal["--data", "--images"]) -> Places:
    if isinstance(paths, Mapping):
        return Places(None, {name: Path(path) for name, path in paths.items()}, option).check()
    return Places(path_of(paths), {}, option).check()


def member_of(names: type[_Name], kind: str, name: str) -> _Name:
    if name not in list(names):
        raise UnknownNameError(kind, name, [str(member) for member in names])
    return names(name)


def typed(settings: Mapping[str, Any] | None) -> dict[str, str]:
    """Settings of steps as they would be typed."""
    words = {True: "yes", False: "no", None: "none"}
    return {
        key: ",".join(map(str, value))
        if isinstance(value, list | tuple)
        else words[value]
        if value is None or isinstance(value, bool)
        else str(value)
        for key, value in (settings or {}).items()
    }
