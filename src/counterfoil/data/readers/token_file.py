"""Token files of the Flickr releases: NAME.jpg#K, a tab, the caption."""

import re
from pathlib import Path

from counterfoil.data.columns import shown
from counterfoil.data.texts import collapsed
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_text

_TOKEN = re.compile(r"([^\t]+)#(\d+)\t(.*)")


def read_tokens(path: Path, *, collapse: bool = True) -> dict[str, list[tuple[str, str]]]:
    """For every image the ids and texts of its captions, in the order of the file.

    With `collapse`, white space in the texts is collapsed. Raises `DataError` naming the line that is no
    caption, is empty, or has an id for the second time.
    """
    lines = read_text(path).split("\n")
    found: dict[str, list[tuple[str, str]]] = {}
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if line.strip():
            match = _TOKEN.fullmatch(line.rstrip("\r"))
            if match is None or not collapsed(match[3]):
                raise DataError(
                    "not a caption",
                    where=f"{path}, line {number}",
                    given=shown(line),
                    allowed="NAME.jpg#0, a tab, the caption",
                )
            name = f"{match[1]}#{match[2]}"
            if name in seen:
                raise DataError("caption id occurs twice", where=f"{path}, line {number}", given=name)
            seen.add(name)
            text = collapsed(match[3]) if collapse else match[3]
            found.setdefault(match[1], []).append((name, text))
    if not found:
        raise DataError("no captions", where=path)
    return found
