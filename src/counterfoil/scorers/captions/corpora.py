"""A file of captions in which a metric counts documents: the captions of an image or video are one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from counterfoil.errors import DataError
from counterfoil.inputs.parsed import read_json

#: Longer sentences of a corpus in ActivityNet's layout are left out, as EMScore's code does it.
LONGEST_SENTENCE = 66

LAYOUTS = (
    "{ID: [CAPTION]}",
    '{ID: {"sentences": [CAPTION]}}',
    "[CAPTION]",
    "COCO's annotations with image_id and caption",
)


def documents(path: Path, *, where: str, allowed: Sequence[str]) -> list[list[str]]:
    """The captions of each image or video in a JSON file, for the setting of a metric that names it.

    The layouts are those of VATEX, of ActivityNet (sentences of more than `LONGEST_SENTENCE` words left out),
    a list of captions (each by itself), and COCO's. Raises `DataError`: where there is no file, saying that
    `where` may have what is `allowed`; for what is in none of the layouts; and for no captions.
    """
    if not path.is_file():
        raise DataError(
            "no such file", where=where, given=path, allowed=[*allowed, "a JSON file of captions"]
        )
    value = read_json(path)
    if isinstance(value, list):
        found = [[_text(text, f"{path}, caption {at + 1}")] for at, text in enumerate(value)]
    elif isinstance(value, dict) and isinstance(value.get("annotations"), list):
        found = _annotated(value["annotations"], path)
    elif isinstance(value, dict):
        found = [_listed(own, f"{path}, '{key}'") for key, own in value.items()]
    else:
        found = []
    found = [own for own in found if own]
    if not found:
        raise DataError("a corpus without captions", where=path, allowed=LAYOUTS)
    return found


def _annotated(rows: list[Any], path: Path) -> list[list[str]]:
    found: dict[str, list[str]] = {}
    for at, row in enumerate(rows):
        place = f"{path}, annotation {at + 1}"
        if not isinstance(row, dict) or "image_id" not in row:
            raise DataError("not an annotation", where=place, allowed="image_id and caption")
        found.setdefault(str(row["image_id"]), []).append(_text(row.get("caption"), place))
    return list(found.values())


def _listed(own: Any, where: str) -> list[str]:
    talk = isinstance(own, dict)
    sentences = own.get("sentences") if talk else own
    if not isinstance(sentences, list):
        raise DataError("not a list of captions", where=where, given=str(own)[:80], allowed=LAYOUTS)
    texts = [_text(each, where) for each in sentences]
    return [each for each in texts if not talk or len(each.split(" ")) <= LONGEST_SENTENCE]


def _text(value: Any, where: str) -> str:
    if not isinstance(value, str):
        raise DataError("a caption is not a text", where=where, given=str(value)[:80])
    return value
