"""Whether the hub of models answers: asked once, where its libraries would try for a minute."""

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

_PATIENCE = 5


@cache
def unreachable() -> str:
    """What the network says where the hub does not answer; empty where it does, and in offline mode."""
    try:
        from huggingface_hub import constants
        from huggingface_hub.utils import get_session  # type: ignore[attr-defined]
    except ImportError:
        return ""
    if constants.HF_HUB_OFFLINE:
        return ""
    try:
        get_session().head(constants.ENDPOINT, timeout=_PATIENCE)
    except Exception as error:
        # Each version of the library has network errors of its own; their names agree.
        kind = type(error).__name__
        if any(word in kind.lower() for word in ("connect", "timeout", "network", "proxy")):
            return " ".join(f"{kind}: {error}".split())[:200]
    return ""


def in_cache(name: str) -> bool:
    try:
        from huggingface_hub import try_to_load_from_cache
    except ImportError:
        return False
    return isinstance(try_to_load_from_cache(name, "config.json"), str)


@contextmanager
def cache_alone_where_unreachable() -> Iterator[str]:
    """What `unreachable` says; where it says something, the libraries look in their cache alone meanwhile."""
    if not (reason := unreachable()):
        yield ""
        return
    from huggingface_hub import constants

    # What the libraries read from HF_HUB_OFFLINE when they are imported; they offer no other way to say so.
    before = constants.HF_HUB_OFFLINE
    try:
        constants.HF_HUB_OFFLINE = True
        yield reason
    finally:
        constants.HF_HUB_OFFLINE = before
