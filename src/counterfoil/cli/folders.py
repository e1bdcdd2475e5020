"""The user's folders: the cache, and the files of benchmarks."""

import os
from pathlib import Path


def cache_folder(named: Path | None) -> Path:
    """The folder of finished work: the one named, else COUNTERFOIL_CACHE, else the user's cache folder."""
    if named is not None:
        return named
    if own := os.environ.get("COUNTERFOIL_CACHE"):
        return Path(own)
    base = os.environ.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "counterfoil"


def data_folder(named: Path | None) -> Path | None:
    """The folder of real benchmark files: the one named, else COUNTERFOIL_DATA, else none."""
    if named is not None:
        return named
    found = os.environ.get("COUNTERFOIL_DATA")
    return Path(found) if found else None
