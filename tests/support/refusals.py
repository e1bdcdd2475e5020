"""Refusals: what a call raises is an error of ours, says what is wrong, and says it in one line."""

from collections.abc import Callable
from typing import Any

import pytest

from counterfoil.errors import CounterfoilError, DataError


def refuses(
    message: str,
    call: Callable[..., Any],
    *arguments: Any,
    error: type[CounterfoilError] = DataError,
    **options: Any,
) -> str:
    """What `call` says where it raises `error` with words that match `message`, in one line."""
    with pytest.raises(error, match=message) as caught:
        call(*arguments, **options)
    words = str(caught.value)
    assert "\n" not in words, words
    return words
