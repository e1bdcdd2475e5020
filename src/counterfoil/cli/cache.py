"""`counterfoil cache list | limit | clear`: finished work on disk, and what of it may go."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from rich.console import Console

from counterfoil import terminal
from counterfoil.cli.listings import Listing, print_words
from counterfoil.engine.cache import Contents, beyond, contents, remove
from counterfoil.errors import InputError
from counterfoil.inputs.limits import size
from counterfoil.inputs.options import Option
from counterfoil.jobs.evaluation_inputs import cache_of
from counterfoil.jobs.job import job, option
from counterfoil.report.tables import amount
from counterfoil.storage import StoreEntry

Folder = Annotated[Path | None, Option("Folder of finished work.", None, variable="COUNTERFOIL_CACHE")]

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_AGES = {"d": 86400, "h": 3600, "min": 60}


@job(outputs="json", examples="Example: counterfoil cache list --json -")
def list_(*, cache: Folder = None) -> Listing:
    """List the cache: a row per model and kind, with files, size and last use."""
    entries = _contents(cache)
    rows, shelves = [], []
    for shelf in entries.shelves:
        seconds = max(0.0, shelf.age)
        ago = next((f"{seconds // s:,.0f} {unit} ago" for unit, s in _AGES.items() if seconds >= s), "now")
        numbers = f"{len(shelf.shards):,}", size(shelf.size)
        rows.append((shelf.model, shelf.key[:8], shelf.kind, *numbers, ago))
        names = {name: getattr(shelf, name) for name in ("model", "key", "kind")}
        sizes = {"files": len(shelf.shards), "bytes": shelf.size, "seconds_since_used": round(seconds)}
        shelves.append({**names, **sizes})

    def show(console: Console) -> None:
        if rows:
            print_words(console, ("model", "key", "kind", "files", "size", "last needed"), rows)
        console.print(f"{size(entries.size)} in {entries.place}", style="dim", soft_wrap=True)
        if entries.others:
            terminal.note(f"beside them, never touched: {amount(entries.others, 'other file')}")

    about = {"folder": str(entries.place), "bytes": entries.size, "files_of_others": entries.others}
    return Listing({**about, "shelves": shelves}, show=show)


@job(examples="Example: counterfoil cache limit 5GB")
def limit(most: Annotated[str, option(metavar="SIZE")], *, cache: Folder = None) -> None:
    """Remove the least recently used work until the cache is no larger than SIZE.

    Arguments:
        most: What may stay: 500MB, 5GB, 2GiB.
    """
    parts = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]*)", most.strip().lower())
    if parts is None or parts[2] not in _UNITS:
        raise InputError("no size", given=most, allowed="a number and KB, MB, GB, TB, KiB, MiB, GiB or TiB")
    entries = _contents(cache)
    _remove(entries, beyond(entries, int(float(parts[1]) * _UNITS[parts[2]])), cache)


@job(
    examples="""Examples:
  counterfoil cache clear --model open-clip:ViT-B-32-quickgelu/openai
  counterfoil cache clear --yes"""
)
def clear(*, model: str | None = None, yes: bool = False, cache: Folder = None) -> None:
    """Remove cached work of all models or of one; it is recomputed when needed.

    Only files that a cache has written are removed.

    Arguments:
        model: Only this model's: its name, or the beginning of its key.
        yes: Do not ask for confirmation.
    """
    entries = _contents(cache)
    shelves = entries.shelves if model is None else entries.of(model)
    shards = [shard for shelf in shelves for shard in shelf.shards]
    shards += [] if model is not None else list(entries.notes)
    room = size(sum(shard.size for shard in shards))
    if not shards or yes or terminal.confirmed(f"{amount(len(shards), 'file')}, {room}, in {entries.place}"):
        _remove(entries, shards, cache)


def _contents(cache: Path | None) -> Contents:
    folder = cache_of(cache or "default")
    assert folder is not None
    return contents(folder)


def _remove(entries: Contents, shards: Sequence[StoreEntry], cache: Path | None) -> None:
    """Remove files, and say how much that was and what is left."""
    freed = remove(entries, shards)
    terminal.note(f"removed: {amount(len(shards), 'file')}, {size(freed)}")
    entries = _contents(cache)
    terminal.out().print(f"{size(entries.size)} in {entries.place}", soft_wrap=True)
