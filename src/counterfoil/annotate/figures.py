"""Images in the instructions and the consent of a campaign, such as `![an example](cat.jpg)`.

They lie in the folder `FIGURES` of the campaign and are shown as those of items are: as pixels alone.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from counterfoil.annotate.pictures import as_png, upright
from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.errors import DataError, MissingExtraError

#: The folder of the images in a campaign's folder.
FIGURES = "figures"


def tokens_of(markdown: str) -> Any:
    """A parser of Markdown in which HTML is text, and the tokens of a text.

    Raises `MissingExtraError` where the parser is not installed.
    """
    try:
        from markdown_it import MarkdownIt
    except ModuleNotFoundError:
        raise MissingExtraError("markdown-it-py", "annotate") from None
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    return parser, parser.parse(markdown)


def inner(tokens: Iterable[Any]) -> Iterable[Any]:
    """The tokens within lines: links and images among them."""
    return (child for token in tokens for child in token.children or ())


def figures_in(markdown: str) -> tuple[str, ...]:
    """The files that a text shows, as it names them; pages of other sites are not among them.

    >>> figures_in("![a](cat.jpg) and ![b](figs/dog%201.png), ![c](https://example.org/x.png)")
    ('cat.jpg', 'figs/dog 1.png')
    """
    named = (
        unquote(str(token.attrGet("src"))) for token in inner(tokens_of(markdown)[1]) if token.type == "image"
    )
    return tuple(dict.fromkeys(name for name in named if ":" not in name and not name.startswith("//")))


def read_figure(folder: Path, name: str, *, where: object) -> bytes:
    """An image in a folder as PNG; raises `DataError` for a file that is not in it, or no image."""
    path = (folder / name).resolve()
    if not path.is_file() or folder.resolve() not in path.parents:
        raise DataError("no such image", where=where, given=name, hint=f"put it into {folder}")
    return as_png(upright(Image(name, FileSource(path))))
