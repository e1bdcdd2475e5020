"""Generative models as scorers: protocols of questions, readings of answers, chat endpoints.

`protocols` and `parsing` know no transport, so that a model on this machine can be asked in the same way.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

#: Whether endpoints are sent nothing; what they answered before can be read.
SILENT: ContextVar[bool] = ContextVar("SILENT", default=False)


@contextmanager
def sending_nothing() -> Iterator[None]:
    """A block in which a request to an endpoint is a `ModelError`: an estimate costs nothing."""
    token = SILENT.set(True)
    try:
        yield
    finally:
        SILENT.reset(token)
