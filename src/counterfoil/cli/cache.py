"""`counterfoil cache list | size | limit | clear`: finished work on disk, and what of it may go."""

import re
from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer(
    help="Finished work on disk: what there is of which scorer, and room made again.",
    no_args_is_help=True,
    epilog="Example: counterfoil cache limit 5GB",
)

Folder = Annotated[
    Path | None, typer.Option("--cache", envvar="COUNTERFOIL_CACHE", help="Folder of finished work.")
]

_UNITS = {"": 1, "b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12}
_UNITS |= {"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40}
_MINUTE, _HOUR, _DAY = 60, 3600, 86400


@app.command("list", epilog="Example: counterfoil cache list --json")
def list_(
    cache: Folder = None, json: Annotated[bool, typer.Option("--json", help="Machine-readable.")] = False
) -> None:
    """What is kept: a row per scorer and kind, with its files, its size, and when it was last needed."""
    import time

    from rich.table import Table
    from rich.text import Text

    from counterfoil import terminal
    from counterfoil.cli.paths import cache_folder
    from counterfoil.engine.cache_folder import contents
    from counterfoil.report.labels import amount

    entries = contents(cache_folder(cache))
    now = time.time()
    if json:
        shelves = [
            {
                "scorer": shelf.scorer,
                "key": shelf.key,
                "kind": shelf.kind,
                "files": len(shelf.shards),
                "bytes": shelf.size,
                "seconds_since_used": round(max(0.0, now - shelf.used)),
            }
            for shelf in entries.shelves
        ]
        about = {"folder": str(entries.place), "bytes": entries.size, "files_of_others": entries.others}
        terminal.write_result("-", {**about, "shelves": shelves})
        return
    console = terminal.out()
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("scorer", overflow="fold")
    for head in ("key", "kind"):
        table.add_column(head, no_wrap=True)
    for head in ("files", "size", "last needed"):
        table.add_column(head, justify="right", no_wrap=True)
    for shelf in entries.shelves:
        size, ago = written_size(shelf.size), _ago(now - shelf.used)
        files = f"{len(shelf.shards):,}"
        table.add_row(Text(shelf.scorer), shelf.key[:8], shelf.kind, files, size, ago)
    if entries.shelves:
        console.print(table)
    console.print(Text(_summary(entries.size, entries.place), style="dim"), soft_wrap=True)
    if entries.others:
        terminal.note(f"beside them, never touched: {amount(entries.others, 'other file')}")


@app.command(epilog="Example: counterfoil cache size")
def size(cache: Folder = None) -> None:
    """How much room finished work takes."""
    from counterfoil import terminal
    from counterfoil.cli.paths import cache_folder
    from counterfoil.engine.cache_folder import contents

    entries = contents(cache_folder(cache))
    terminal.out().print(_summary(entries.size, entries.place), soft_wrap=True)


@app.command(epilog="Example: counterfoil cache limit 5GB")
def limit(
    most: Annotated[str, typer.Argument(metavar="SIZE", help="What may stay: 500MB, 5GB, 2GiB.")],
    cache: Folder = None,
) -> None:
    """Remove what was longest not needed, until what stays is no larger than SIZE."""
    from counterfoil import terminal
    from counterfoil.cli.paths import cache_folder
    from counterfoil.engine.cache_folder import beyond, contents, remove
    from counterfoil.report.labels import amount

    wanted = read_size(most)
    entries = contents(cache_folder(cache))
    gone = beyond(entries, wanted)
    freed = remove(entries, gone)
    left = contents(cache_folder(cache))
    terminal.note(f"removed: {amount(len(gone), 'file')}, {written_size(freed)}")
    terminal.out().print(_summary(left.size, left.place), soft_wrap=True)


@app.command(
    epilog="""Examples:
  counterfoil cache clear --scorer open-clip:ViT-B-32-quickgelu/openai
  counterfoil cache clear --yes"""
)
def clear(
    scorer: Annotated[
        str | None, typer.Option(help="Only that of this scorer: its name, or how its key begins.")
    ] = None,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    cache: Folder = None,
) -> None:
    """Remove finished work: all of it, or that of one scorer. It is computed again when it is needed.

    Only files that a cache has written are removed.
    """
    from counterfoil import terminal
    from counterfoil.cli.paths import cache_folder
    from counterfoil.engine.cache_folder import contents, remove
    from counterfoil.report.labels import amount

    entries = contents(cache_folder(cache))
    shelves = entries.shelves if scorer is None else entries.of(scorer)
    shards = [shard for shelf in shelves for shard in shelf.shards]
    shards += [] if scorer is not None else list(entries.notes)
    room = written_size(sum(shard.size for shard in shards))
    what = f"{amount(len(shards), 'file')}, {room}, in {entries.place}"
    if shards and not yes and not terminal.confirmed(what):
        return
    freed = remove(entries, shards)
    terminal.note(f"removed: {amount(len(shards), 'file')}, {written_size(freed)}")
    left = contents(cache_folder(cache))
    terminal.out().print(_summary(left.size, left.place), soft_wrap=True)


def read_size(text: str) -> int:
    """Bytes, from a number and a unit; raises `InputError`.

    >>> read_size("5GB"), read_size("1.5 KiB"), read_size("0")
    (5000000000, 1536, 0)
    """
    from counterfoil.errors import InputError

    parts = re.fullmatch(r"(\d{1,15}(?:\.\d{1,9})?)\s*([a-z]*)", text.strip().lower())
    if parts is None or parts[2] not in _UNITS:
        raise InputError("no size", given=text, allowed="a number and KB, MB, GB, TB, KiB, MiB, GiB or TiB")
    return int(float(parts[1]) * _UNITS[parts[2]])


def written_size(size: int) -> str:
    """Bytes as people read them.

    >>> written_size(999), written_size(1_250_000), written_size(5_000_000_000)
    ('999 B', '1.2 MB', '5.0 GB')
    """
    for unit, factor in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("KB", 10**3)):
        if size >= factor:
            return f"{size / factor:.1f} {unit}"
    return f"{size} B"


def _summary(size: int, folder: object) -> str:
    return f"{written_size(size)} in {folder}"


def _ago(seconds: float) -> str:
    for unit, length in (("d", _DAY), ("h", _HOUR), ("min", _MINUTE)):
        if seconds >= length:
            return f"{seconds // length:,.0f} {unit} ago"
    return "now"
