"""CrissCrossed Captions as ratings (SITS): how well a caption of COCO fits an image, from 0 to 5.

sits_val.csv or sits_test.csv: caption, image, agg_score (the mean of the ratings), sampling_method. The texts
are COCO's: captions_val2014.json in the folder, or the captions files of 2017, or dataset_coco.json.
"""

from pathlib import Path

import numpy as np

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.columns import labels
from counterfoil.data.forms import Ids, Rated
from counterfoil.data.readers.coco_files import called_by_id, photographs, read_captions
from counterfoil.data.readers.coco_ids import place
from counterfoil.data.readers.coco_test import captions_of
from counterfoil.data.readers.cxc import TABLE, ratings
from counterfoil.data.readers.hub import not_on_hub
from counterfoil.data.readers.human_ratings import finished, unique_ids
from counterfoil.data.readers.karpathy import SPLITS, read_split
from counterfoil.data.readers.matches import IdPositions
from counterfoil.data.tables import read_table
from counterfoil.data.texts import collapsed
from counterfoil.errors import DataError

VALIDATION = "sits_val.csv"

_KARPATHY = "dataset_coco.json"


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """Every rated pair of a table: sits_test.csv in the folder, else sits_val.csv, or the table named.

    Questions are called "CAPTION-IMAGE" by their ids; grouping `sampling` tells a caption's own image
    (c2i_original) from one that looks alike (c2i_intrasim). Without COCO's captions in the folder there are
    no texts, and the pairs can be measured from given scores. Raises `DataError` naming the row that does not
    fit, and for captions that COCO's file does not have.
    """
    if data is None:
        raise not_on_hub(card)
    path = _table(data)
    table = read_table(path)
    captions, pictures, scores, _ = ratings(table)
    caption_ids, image_ids = (np.unique(each) for each in (captions, pictures))
    candidates = np.searchsorted(caption_ids, captions).astype(np.int64)
    shown = np.searchsorted(image_ids, pictures).astype(np.int64)
    texts, source = _texts(data, caption_ids)
    files = [(f"COCO_val2014_{i:012d}.jpg", f"{i:012d}.jpg") for i in image_ids.tolist()]
    sources = photographs(files, ("val2014", "train2017", "val2017"), data, images)
    items, said = called_by_id(image_ids, sources, caption_ids, texts)
    questions = Rated(
        unique_ids([f"{c}-{i}" for c, i in zip(captions.tolist(), pictures.tolist(), strict=True)]),
        groupings={"sampling": labels(table, "sampling_method")},
        captions=candidates,
        images=shown,
        ratings=scores[:, None],
    )
    if path.name != TABLE:
        # The card counts the test half.
        card = card.model_copy(update={"title": f"{card.title} ({path.name})", "size": None, "counts": {}})
    note = source or "without texts: COCO's captions are not in the folder"
    joined = f"{path}, {note}" if source else f"{path} ({note})"
    return finished(card, said, items, questions, source=joined, path=data)


def _table(data: Path) -> Path:
    if data.is_file():
        return data
    found = next((path for name in (TABLE, VALIDATION) if (path := place(data, name))), None)
    if found is None:
        raise DataError("no ratings here", where=data, allowed=f"{TABLE} or {VALIDATION}")
    return found


def _texts(data: Path, captions: Ids) -> tuple[list[str | None], str]:
    """The text of every caption and where it is from; all None where no file has them."""
    folder = data if data.is_dir() else data.parent
    files = captions_of(folder)
    karpathy = place(folder, _KARPATHY)
    if files:
        written = read_captions(files)
        at = IdPositions(written.captions, "caption", written.source).of(captions)
        known = {
            name: written.texts[where]
            for name, where in zip(captions.tolist(), at.tolist(), strict=True)
            if where >= 0
        }
        source = written.source
    elif karpathy is not None:
        entries = read_split(
            karpathy,
            lambda image: [(int(each["sentid"]), str(each["raw"])) for each in image["sentences"]],
            SPLITS,
        )
        known, source = dict(pair for own in entries for pair in own), str(karpathy)
    else:
        return [None] * len(captions), ""
    lacking = [name for name in captions.tolist() if not collapsed(known.get(name, ""))]
    if lacking:
        raise DataError(
            f"{len(lacking):,} of the {len(captions):,} rated captions are not in this file",
            where=source,
            given=f"no caption {lacking[0]}",
            hint="they are in captions_val2014.json",
        )
    return [collapsed(known[name]) for name in captions.tolist()], source
