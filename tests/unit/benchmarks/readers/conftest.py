"""A test half of COCO in miniature: files of the same names and layouts, ids in no order."""

import json
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import numpy as np
import pytest

from counterfoil.benchmarks.benchmark import card
from counterfoil.registry import resolve


@dataclass(frozen=True)
class Half:
    """Where it lies, and what is in it: image ids and, for each, its five caption ids."""

    folder: Path
    images: list[int]
    captions: list[list[int]]

    def write(self, name, value):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value if isinstance(value, str) else json.dumps(value))
        return path


@pytest.fixture
def half(tmp_path):
    """half(n): ids and original positives of n images in a folder of their own."""

    def make(n=4, name="coco"):
        rng = np.random.default_rng(n)
        images = rng.permutation(np.arange(100, 100 + 7 * n, 7)).tolist()
        captions = rng.permutation(np.arange(5000, 5000 + 15 * n, 3)).reshape(n, 5).tolist()
        made = Half(tmp_path / name, images, captions)
        made.folder.mkdir()
        np.save(made.folder / "coco_test_ids.npy", np.array(captions).reshape(-1))
        # In another order than the ids, as in the released files.
        back = [(str(image), own) for image, own in zip(images, captions, strict=True)][::-1]
        made.write("original_image_to_caption.json", dict(back))
        made.write("original_caption_to_image.json", {str(c): [int(i)] for i, own in back for c in own})
        return made

    return make


@pytest.fixture
def free():
    """free(name): a card without counts, so that small files are welcome."""
    return lambda name: card(name).model_copy(update={"size": None, "counts": {}})


@pytest.fixture
def read_free(free):
    """read_free(name, data, images=None): the benchmark of that name by its reader, whatever its counts."""
    return lambda name, data, images=None: resolve(card(name).reader)(free(name), data, images)


@pytest.fixture
def coco_captions():
    """coco_captions(folder, {image: captions}): captions_val2014.json in that folder."""

    def write(folder, captions):
        notes = [(image, text) for image, own in captions.items() for text in own]
        value = {
            "images": [{"id": i, "file_name": f"COCO_val2014_{i:012d}.jpg"} for i in captions],
            "annotations": [
                {"id": i, "image_id": image, "caption": text} for i, (image, text) in enumerate(notes)
            ],
        }
        path = folder / "captions_val2014.json"
        path.write_text(json.dumps(value))
        return path

    return write


@pytest.fixture
def karpathy():
    """karpathy(folder, {(image, split): captions}): dataset_coco.json in that folder; ids count captions."""

    def write(folder, captions):
        numbers = count()
        images = [
            {
                "cocoid": image,
                "split": split,
                "filename": "",
                "sentences": [{"sentid": next(numbers), "raw": text} for text in own],
            }
            for (image, split), own in captions.items()
        ]
        (folder / "dataset_coco.json").write_text(json.dumps({"images": images}))

    return write


def captions_file(half, **changes):
    """captions_val2014.json of a half, annotations in the order of their ids."""
    annotations = [
        {"image_id": image, "id": caption, "caption": f"caption {caption}"}
        for image, own in zip(half.images, half.captions, strict=True)
        for caption in own
    ]
    return {
        "images": [{"id": i, "file_name": f"COCO_val2014_{i:012d}.jpg"} for i in sorted(half.images)],
        "annotations": sorted(annotations, key=lambda each: each["id"]),
        **changes,
    }


@pytest.fixture
def captions_of():
    """captions_of(half): the captions file that goes with it."""
    return captions_file
