"""ImageCoDe: a caption of one of ten similar images, frames of a video or photographs of one search."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.forms import Choice
from counterfoil.data.readers.questions import check_counts
from counterfoil.data.readers.rows import Photos, not_on_hub
from counterfoil.data.records import Caption, Image
from counterfoil.data.tables import shown
from counterfoil.errors import DataError
from counterfoil.inputs.files import read_json

#: Images of a set.
TEN = 10
#: What begins the directory of a set of photographs; all others are frames of a video.
_STATIC = "open-images"


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """`valid_data.json`: {directory: {number of the right image: caption}}, or a folder that holds it.

    Question "DIRECTORY/5" is the caption of image 5 of ten, `DIRECTORY/img5.jpg` in `images` (else in the
    folder `image-sets` beside the file). The right image comes first, the others by number. Grouping `kind`:
    "static" (photographs) or "video". Raises `DataError` for what is not of this layout, and for counts that
    are not the card's.
    """
    if data is None:
        raise not_on_hub(card)
    file = next(
        (at for at in (data / "valid_data.json", data / "data" / "valid_data.json") if at.is_file()), data
    )
    sets = read_json(file)
    if not isinstance(sets, dict) or not sets:
        raise DataError("not an object of sets of images", where=file, given=type(sets).__name__)
    ids, texts, candidates, kinds = [], [], [], []
    for number, (directory, captions) in enumerate(sets.items()):
        if not isinstance(captions, Mapping):
            raise DataError("not captions by number", where=f"{file}, '{directory}'", given=shown(captions))
        for key, text in captions.items():
            if key not in map(str, range(TEN)) or not isinstance(text, str) or not text.strip():
                raise DataError(
                    "not a caption of one of ten images",
                    where=f"{file}, '{directory}'",
                    given=f"{key}: {shown(text)}",
                    allowed="a text under 0 to 9",
                )
            right = int(key)
            ids.append(f"{directory}/{key}")
            texts.append(text)
            order = [right, *(other for other in range(TEN) if other != right)]
            candidates.append([TEN * number + other for other in order])
            kinds.append("static" if directory.startswith(_STATIC) else "video")
    if not ids:
        raise DataError("no captions", where=file)
    beside = file.parent / "image-sets"
    photos = Photos(images or (beside if beside.is_dir() else None))
    names = [f"{directory}/img{k}.jpg" for directory in sets for k in range(TEN)]
    sources = photos.sources(names)
    benchmark = Benchmark(
        card,
        tuple(Image(name, sources[name]) for name in names),
        tuple(Caption(name, text) for name, text in zip(ids, texts, strict=True)),
        Choice(
            tuple(ids),
            query=np.arange(len(ids), dtype=np.int64),
            candidates=np.array(candidates, dtype=np.int64),
            asks="caption",
            groupings={"kind": tuple(kinds)},
        ),
        str(file),
        data,
    )
    return check_counts(replace(benchmark.select(np.arange(len(ids))), path=data))
