"""The provenance of a number: versions of libraries, benchmark, scorer and machine, as plain values.

The engine writes what made answers on the answers themselves, the evaluation adds the benchmark, and a run's
manifest has both, whether it comes from the command line or from Python.
"""

import platform
import sys
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from counterfoil.data.benchmark import Benchmark
from counterfoil.data.scores import Answers

#: What a number can depend on.
_LIBRARIES = (
    "counterfoil",
    "numpy",
    "scipy",
    "pyarrow",
    "pillow",
    "torch",
    "torchvision",
    "open_clip_torch",
    "transformers",
)


def versions() -> dict[str, str]:
    """The versions of what a number can depend on, as installed; what is not installed is left out.

    >>> sorted(versions())[:3]
    ['counterfoil', 'numpy', 'open_clip_torch']
    """
    installed = {name: _version(name) for name in _LIBRARIES}
    return {
        "python": platform.python_version(),
        **{name: version for name, version in installed.items() if version is not None},
    }


@cache
def _version(library: str) -> str | None:
    """As installed when first asked for: a study asks hundreds of times, and each time a file is parsed."""
    try:
        return metadata.version(library)
    except metadata.PackageNotFoundError:
        return None


def command() -> list[str]:
    """What was typed to start this program: its name without the folders it lies in, and its arguments."""
    return [Path(sys.argv[0]).name if sys.argv and sys.argv[0] else "python", *sys.argv[1:]]


def about(benchmark: Benchmark, *, images: Path | None = None) -> dict[str, Any]:
    """What names a benchmark: its questions' digest, and where it and its `images` were read from."""
    return {
        "name": benchmark.name,
        "questions": len(benchmark),
        "digest": benchmark.digest,
        "source": benchmark.source,
        "path": str(benchmark.path.resolve()) if benchmark.path is not None else None,
        "images": str(images.resolve()) if images is not None else None,
        "revision": benchmark.card.revision,
    }


def of(benchmark: Benchmark, answers: Answers) -> dict[str, Any]:
    """How `answers` to `benchmark` came about: the benchmark, and what the engine wrote on the answers.

    Answers that no engine gave (an array of one's own, the tables of a run) say nothing of a scorer.
    """
    return {"benchmark": about(benchmark), "versions": versions(), **answers.made}
