"""Images of a campaign, named by their pixels, and those in its texts (folder `FIGURES`).

What a file holds beside its pixels can give an answer away: a prompt, a camera's name, or the format alone,
where photographs are JPEG and drawn pictures PNG. All become PNG, which keeps every pixel.
"""

import io
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import PIL.Image
import PIL.ImageOps

from counterfoil.benchmarks.records import FileSource, Image
from counterfoil.errors import DataError, MissingExtraError
from counterfoil.inputs.files import digest

#: How hard PNG is compressed: a third of the time of the usual 6, for files that are 4 % larger.
_LEVEL = 3
#: The folder of the images of instructions and consent in a campaign's folder.
FIGURES = "figures"


@dataclass(eq=False)
class Pictures(Mapping[str, bytes]):
    """The images that were added, by a digest of their pixels; one is in memory at a time."""

    _images: dict[str, Image] = field(default_factory=dict)
    _named: dict[tuple[Path, object], str] = field(default_factory=dict)

    def add(self, image: Image, *, where: str = "") -> str:
        """The name of an image in the campaign."""
        key = (image.source.path, image.crop) if isinstance(image.source, FileSource) else None
        if key is not None and key in self._named:
            return self._named[key]
        try:
            name = _name(upright(image))
        except DataError as error:
            raise (DataError(str(error), where=where) if where else error) from None
        self._images.setdefault(name, image)
        if key is not None:
            self._named[key] = name
        return name

    def __getitem__(self, name: str) -> bytes:
        """The image as PNG; raises `DataError` where the file changed since it was added."""
        picture = upright(self._images[name])
        if _name(picture) != name:
            raise DataError("the image changed while it was copied", where=self._images[name].source)
        return as_png(picture)

    def __iter__(self) -> Iterator[str]:
        return iter(self._images)

    def __len__(self) -> int:
        return len(self._images)


def as_png(picture: PIL.Image.Image) -> bytes:
    """A picture in RGB as PNG: its pixels and nothing else."""
    buffer = io.BytesIO()
    bare = PIL.Image.frombytes("RGB", picture.size, picture.tobytes())
    bare.save(buffer, format="PNG", compress_level=_LEVEL)
    return buffer.getvalue()


def upright(image: Image) -> PIL.Image.Image:
    """The picture as browsers show it: turned as its file says."""
    picture = image.decode()
    # A crop is of the pixels as they are stored.
    return picture if image.crop is not None else PIL.ImageOps.exif_transpose(picture)


def _name(picture: PIL.Image.Image) -> str:
    return digest(str(picture.size).encode() + picture.tobytes()) + ".png"


def tokens_of(markdown: str) -> Any:
    """A parser of Markdown in which HTML is text, and the tokens of a text."""
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
    images = (token for token in inner(tokens_of(markdown)[1]) if token.type == "image")
    named = dict.fromkeys(unquote(str(image.attrGet("src"))) for image in images)
    return tuple(name for name in named if ":" not in name and not name.startswith("//"))


def read_figure(folder: Path, name: str, *, where: object) -> bytes:
    """An image in a folder as PNG; raises `DataError` for a file that is not in it, or no image."""
    path = (folder / name).resolve()
    if not path.is_file() or folder.resolve() not in path.parents:
        raise DataError("no such image", where=where, given=name, hint=f"put it into {folder}")
    return as_png(upright(Image(name, FileSource(path))))
