"""Data sets of the hub through the `datasets` library: pinned to a known revision, offline once cached."""

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counterfoil.data.benchmark import Card
from counterfoil.data.fetching import serving
from counterfoil.data.readers.rows import arrow_rows
from counterfoil.data.tables import DataTable
from counterfoil.errors import DataError, MissingExtraError


def hub_rows(card: Card, images: Sequence[str], *, config: str = "") -> DataTable:
    """The rows of the card's hub data set; cells of the columns `images` stay on disk until asked for.

    Raises `MissingExtraError` without `datasets`, and `DataError` saying what to do where the data set is not
    on the hub, is gated, or cannot be reached and is not cached.
    """
    if not card.hub:
        raise not_on_hub(card)
    try:
        import datasets
    except ImportError:
        raise MissingExtraError("datasets", "models") from None
    with _plain_progress(datasets), _offline_where_unreachable(datasets, card.hub):
        try:
            found = datasets.load_dataset(
                card.hub,
                config or None,
                split=card.split,
                revision=card.revision or None,
                keep_in_memory=False,
            )
        # The library passes on whatever storage, network and parsers raise; each means the same to a user.
        except Exception as error:
            raise _unavailable(card, config, error) from None
    files = [Path(each["filename"]) for each in found.cache_files]
    return arrow_rows(files, images, source=_name(card, config, found))


def not_on_hub(card: Card) -> DataError:
    """The error that says where to get a benchmark that has no official data set on the hub."""
    if serving(card.name) is not None:
        hint = f"get it with 'counterfoil fetch {card.name}', or name its folder with --data"
    elif card.homepage:
        hint = f"get it from {card.homepage} and name its folder with --data"
    else:
        hint = "give it with --data"
    return DataError(f"{card.title}: no official data set on the hub", where=card.name, hint=hint)


def _name(card: Card, config: str, found: Any) -> str:
    """`owner/name@revision, split`, with the revision that was really read where the library says it."""
    revision = card.revision
    for address in found.info.download_checksums or {}:
        if address.startswith(f"hf://datasets/{card.hub}@"):
            revision = address.split("@", 1)[1].split("/", 1)[0]
    place = f"{card.hub}@{revision[:12]}" if revision else card.hub
    return ", ".join(part for part in (place, config, card.split) if part)


def _unavailable(card: Card, config: str, error: Exception) -> DataError:
    reason = str(error).strip().split("\n")[0] or type(error).__name__
    if "gated" in reason.lower():
        hint = f"accept its terms at {card.homepage} and log in, or name a folder with its files with --data"
    else:
        hint = "connect to the network once so that it is cached, or name a folder with its files with --data"
    return DataError(
        "the data set cannot be had from the hub",
        where=" ".join(part for part in (card.hub, config) if part),
        given=f"{type(error).__name__}: {reason}",
        hint=hint,
    )


@contextmanager
def _offline_where_unreachable(datasets: Any, name: str) -> Iterator[None]:
    """Look in the cache only, where the hub does not answer: the libraries would try for half a minute."""
    import huggingface_hub

    try:
        huggingface_hub.HfApi().dataset_info(name, timeout=5)
        unreachable = False
    except Exception as error:
        # Each version of the library has network errors of its own; their names agree.
        unreachable = any(word in type(error).__name__.lower() for word in ("connect", "timeout"))
    # What the libraries read from HF_HUB_OFFLINE when they are imported; they offer no other way to say so.
    switches = [datasets.config, huggingface_hub.constants] if unreachable else []
    before = [switch.HF_HUB_OFFLINE for switch in switches]
    level = logging.root.manager.disable
    try:
        for switch in switches:
            switch.HF_HUB_OFFLINE = True
        logging.disable(logging.ERROR)
        yield
    finally:
        logging.disable(level)
        for switch, value in zip(switches, before, strict=True):
            switch.HF_HUB_OFFLINE = value


@contextmanager
def _plain_progress(datasets: Any) -> Iterator[None]:
    """No progress bars outside a terminal: the library draws them into log files too."""
    quiet = not sys.stderr.isatty() and datasets.are_progress_bars_disabled() is False
    if quiet:
        datasets.disable_progress_bars()
    try:
        yield
    finally:
        if quiet:
            datasets.enable_progress_bars()
