"""Keys and tokens: without the line break that a file adds, and in no message or representation."""

from counterfoil.errors import InputError


class Secret(str):
    """A text that is sent and never shown: its representation hides it.

    >>> Secret("sk-1")
    (hidden)
    """

    __slots__ = ()

    def __repr__(self) -> str:
        return "(hidden)"


def secret(text: str, *, where: str) -> Secret:
    """The key without blanks and line breaks around it; raises `InputError` for one that no header can hold.

    >>> secret("sk-1\\n", where="the key") == "sk-1"
    True
    >>> secret("sk-1\\nsk-2", where="COUNTERFOIL_API_KEY")
    Traceback (most recent call last):
    counterfoil.errors.InputError: COUNTERFOIL_API_KEY: not a key: it holds blanks, line breaks or ...
    """
    key = text.strip()
    if not all("!" <= character <= "~" for character in key):
        raise InputError(
            "not a key: it holds blanks, line breaks or characters beyond ASCII",
            where=where,
            given=f"{len(key):,} characters",
            hint="is it one key, and nothing else?",
        )
    return Secret(key)
