"""Text as a terminal may show it: without what would move its cursor, colour it or turn its direction.

Captions, ids, titles and names of files come from anywhere, and a terminal obeys what is in them. All output
of the command line passes `clean` on its way: Rich's consoles in `terminal`, and the line about an error.
"""

import json
import os
import sys

#: Control characters (C0 without tab and line feed, DEL, C1), marks that turn the direction of writing and
#: the invisible "tag" characters go; separators of lines and paragraphs become a blank; halves of surrogate
#: pairs, which have no bytes in UTF-8, become the replacement character.
_TABLE: dict[int, str | None] = {
    **dict.fromkeys([*range(0x09), *range(0x0B, 0x20), *range(0x7F, 0xA0)]),
    **dict.fromkeys([0x061C, 0x200E, 0x200F, *range(0x202A, 0x202F), *range(0x2066, 0x206A), 0xFEFF]),
    **dict.fromkeys(range(0xE0000, 0xE0080)),
    0x2028: " ",
    0x2029: " ",
    **dict.fromkeys(range(0xD800, 0xE000), "�"),
}
#: The same characters as JSON writes them; those of ASCII are escaped there already, but for DEL.
_ESCAPES = {code: json.dumps(chr(code))[1:-1] for code in _TABLE if code > 0x7F} | {0x7F: "\\u007f"}


def clean(text: str) -> str:
    """The text without control characters; line feeds and tabs stay.

    >>> clean("a \\x1b[31mred\\x1b[0m \\u202egnp.exe \\udcff caption\\r")
    'a [31mred[0m gnp.exe � caption'
    """
    return text if text.isascii() and text.isprintable() else text.translate(_TABLE)


def escaped(written: str) -> str:
    r"""JSON in which such characters, which can stand in its strings only, are written as escapes.

    >>> escaped('"a\x9b1m \u202eb"')
    '"a\\u009b1m \\u202eb"'
    """
    return written.translate(_ESCAPES)


def complain(text: str) -> None:
    """One line about what went wrong, on stderr."""
    print(f"counterfoil: {' '.join(clean(text).split())}", file=sys.stderr)


def main_process() -> bool:
    """Whether this process is the one that prints: of several that torchrun or Fabric started, the first."""
    return all(os.environ.get(name, "0") == "0" for name in ("RANK", "LOCAL_RANK"))
