"""Where this machine keeps things, and the facts of a run that only the command line knows."""

import os
import platform
import sys
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from counterfoil import __version__
from counterfoil.data.benchmark import Benchmark

#: What a number can depend on.
_LIBRARIES = (
    "numpy",
    "scipy",
    "pyarrow",
    "pillow",
    "torch",
    "torchvision",
    "open_clip_torch",
    "transformers",
)


def cache_folder(named: Path | None) -> Path:
    """The folder of finished work: the one named, else the user's cache folder."""
    if named is not None:
        return named
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "counterfoil"


def data_folder(named: Path | None) -> Path | None:
    """The folder of real benchmark files: the one named, else COUNTERFOIL_DATA, else none."""
    if named is not None:
        return named
    found = os.environ.get("COUNTERFOIL_DATA")
    return Path(found) if found else None


def manifest(
    benchmark: Benchmark,
    scorer: Any,
    *,
    first: Any = None,
    images: Path | None,
    device: str,
    batch_size: int,
    workers: int,
) -> dict[str, Any]:
    """How a run came about: identities, digests, versions, device, command.

    `first` is the scorer whose first items `scorer` ranked again, if there was one.
    """
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": ["counterfoil", *sys.argv[1:]],
        "benchmark": {
            "name": benchmark.name,
            "questions": len(benchmark),
            "digest": benchmark.digest,
            "source": benchmark.source,
            "path": str(benchmark.path.resolve()) if benchmark.path is not None else None,
            "images": str(images.resolve()) if images is not None else None,
            "revision": benchmark.card.revision,
        },
        "scorer": {
            **scorer.identity.to_json(),
            "key": scorer.identity.key,
            # What does not change answers beyond rounding: versions of its libraries, device, towers used.
            **({"made_with": dict(found)} if (found := getattr(scorer, "provenance", None)) else {}),
            **({"first_stage": first.identity.to_json()} if first is not None else {}),
        },
        "machine": {
            "device": str(getattr(scorer, "device", device)),
            "batch_size": batch_size,
            "workers": workers,
            "system": platform.platform(),
        },
        "versions": versions(),
    }


def versions() -> dict[str, str]:
    """The versions of what a number can depend on, as installed."""
    found = {"counterfoil": __version__, "python": platform.python_version()}
    for name in _LIBRARIES:
        try:
            found[name] = metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    return found
