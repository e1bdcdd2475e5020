"""How a scorer can be loaded once more, so that another process gets it without its weights being sent."""

import weakref
from collections.abc import Callable
from contextlib import suppress
from typing import Any

#: Loads a scorer; it travels to other processes by pickle.
Source = Callable[[], Any]

#: The sources of the scorers that live now, by `id`.
_SOURCES: dict[int, Source] = {}


def remember_source(scorer: Any, source: Source) -> None:
    """Note that `source` gives a scorer like this one, of the same identity."""
    with suppress(TypeError):  # no weak reference to it: it travels as it is
        weakref.finalize(scorer, _SOURCES.pop, id(scorer), None)
        _SOURCES[id(scorer)] = source


def source_of(scorer: Any) -> Source | None:
    """What loads a scorer like this one; None of a scorer that was not loaded by its name.

    >>> from counterfoil.scorers.base import Identity
    >>> class Longest:
    ...     identity = Identity("longest", revision="1")
    >>> scorer = Longest()
    >>> source_of(scorer) is None
    True
    >>> remember_source(scorer, Longest)
    >>> source_of(scorer) is Longest
    True
    """
    return _SOURCES.get(id(scorer))
