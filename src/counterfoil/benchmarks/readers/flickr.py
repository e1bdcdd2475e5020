"""Flickr30k's captions: Karpathy's JSON, the hub's CSV of the same, or the token file of a Flickr release."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np

from counterfoil.benchmarks.benchmark import Benchmark, Card
from counterfoil.benchmarks.readers.coco_files import named_photographs
from counterfoil.benchmarks.readers.questions import gallery, own
from counterfoil.benchmarks.readers.released_captions import read_split, read_tokens
from counterfoil.benchmarks.readers.rows import not_on_hub
from counterfoil.benchmarks.records import Caption
from counterfoil.benchmarks.tables import labels, read_table, shown, texts
from counterfoil.errors import DataError
from counterfoil.inputs.files import parse_json

_KARPATHY = "dataset_flickr30k.json"
_HUB = "flickr_annotations_30k.csv"
_FOLDERS = ("flickr30k-images", "flickr30k_images", "Images")

#: (file name of an image, [(caption id, text), ...])
_Entry = tuple[str, list[tuple[str, str]]]


def read_30k(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Images with the captions written for them; right is the own image.

    Of dataset_flickr30k.json and of flickr_annotations_30k.csv (columns raw, sentids, split, filename,
    img_id) the test split is read, captions called by their sentence ids; of a token file
    (`NAME.jpg#0<TAB>caption`) all there is, captions called by their keys. Images are called by their file
    names. `data` is one of these files or a folder with one. Raises `DataError` naming file and row of what
    does not fit.
    """
    if data is None:
        raise not_on_hub(card)
    path = _captions_file(data)
    if path.suffix == ".json":
        entries = read_split(
            path,
            lambda image: (
                str(image["filename"]),
                [(str(sentence["sentid"]), str(sentence["raw"])) for sentence in image["sentences"]],
            ),
        )
    elif path.suffix == ".csv":
        entries = _of_csv(path)
    else:
        entries = list(read_tokens(path, collapse=False).items())
        title = f"Captions of {path.name}"
        card = card.model_copy(update={"title": title, "size": None, "counts": {}})
    names = [name for name, _ in entries]
    _once("image", names, path)
    ids = [caption for _, captions in entries for caption, _ in captions]
    _once("caption", ids, path)
    owners = np.repeat(np.arange(len(entries)), [len(captions) for _, captions in entries]).astype(np.int64)
    return gallery(
        card,
        named_photographs(names, _FOLDERS, data, images),
        [Caption(caption, text) for _, captions in entries for caption, text in captions],
        owners,
        own(owners, len(entries)),
        source=str(path),
        path=data,
    )


def _captions_file(data: Path) -> Path:
    if data.is_file():
        return data
    known = [data / _KARPATHY, data / _HUB]
    files = [path for path in known if path.is_file()] or sorted(
        [*data.glob("*.token*"), *data.glob("*token.txt")]
    )
    if not files:
        raise DataError("nothing of Flickr30k here", where=data, allowed=f"{_KARPATHY}, {_HUB}, *.token")
    return files[0]


def _of_csv(path: Path) -> list[_Entry]:
    table = read_table(path)
    splits, names = labels(table, "split"), texts(table, "filename")
    raw, ids = texts(table, "raw"), texts(table, "sentids")
    entries: list[_Entry] = []
    for row, split in enumerate(splits):
        if split == "test":
            captions, keys = (
                parse_json(cell, where=table.where(row, column))
                for cell, column in ((raw[row], "raw"), (ids[row], "sentids"))
            )
            for cells, column in ((captions, "raw"), (keys, "sentids")):
                if not isinstance(cells, list):
                    raise DataError("not a list", where=table.where(row, column), given=shown(cells))
            if len(captions) != len(keys):
                raise DataError(
                    "not an id per caption",
                    where=table.where(row),
                    given=f"{len(keys)} ids, {len(captions)} captions",
                )
            entries.append(
                (names[row], [(str(key), str(text)) for key, text in zip(keys, captions, strict=True)])
            )
    if not entries:
        raise DataError("no image of the split 'test'", where=path)
    return entries


def _once(kind: str, ids: Iterable[str], path: Path) -> None:
    seen: set[str] = set()
    for name in ids:
        if name in seen:
            raise DataError(f"{kind} id occurs twice", where=path, given=name, hint="ids are unique")
        seen.add(name)
