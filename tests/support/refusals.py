"""Refusals: what a call raises is an error of ours, says what is wrong, and says it in one line."""

import pytest

from counterfoil.errors import DataError


def refuses(message, call, /, *arguments, error=DataError, **options):
    """The words with which `call` raises `error`: one line that matches `message`, if that is not empty."""
    with pytest.raises(error, match=message or None) as caught:
        call(*arguments, **options)
    words = str(caught.value)
    # With it the frames of the call would be kept, and what they hold open.
    del caught
    assert "\n" not in words, words
    return words
