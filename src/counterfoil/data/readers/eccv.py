"""ECCV Caption: COCO's test half with positives that people verified, for some of the queries."""

from pathlib import Path

from counterfoil.data.benchmark import Benchmark, Card
from counterfoil.data.readers.coco_ids import find, said
from counterfoil.data.readers.coco_test import read_test


def read(card: Card, data: Path | None, images: Path | None) -> Benchmark:
    """1,261 images and 1,332 captions as queries, through all items of COCO 5K.

    The two directions are two files and no transposes of each other: they were verified apart, and stay so.
    Positives that the gallery does not hold count in R and are never found. `data` is as for COCO 5K, with
    eccv_image_to_caption.json and eccv_caption_to_image.json from there or from the package `eccv_caption`.
    """
    test = read_test(data)
    i2t, t2i = (find(data, f"eccv_{way}.json") for way in ("image_to_caption", "caption_to_image"))
    searches = test.searches(i2t, t2i, every=False)
    return test.benchmark(card, searches, data=data, images=images, positives=f"{said(i2t)}, {t2i.name}")
