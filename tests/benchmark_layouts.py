"""Small files in the exact layouts that benchmarks are released in, with the pairs that are right."""

import csv
import io
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image


@dataclass
class Released:
    """A folder with a release: the ids its questions should have, and its right (caption, image) pairs."""

    folder: Path
    ids: list[str] = field(default_factory=list)
    right: set[tuple[str, str]] = field(default_factory=set)
    #: The benchmark's counts in miniature, by group.
    counts: dict[str, int] = field(default_factory=dict)

    def json(self, name: str, value: Any) -> None:
        self.text(name, json.dumps(value))

    def text(self, name: str, value: str) -> None:
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(value)

    def csv(self, name: str, rows: list[dict[str, Any]], *, delimiter: str = ",") -> None:
        buffer = io.StringIO()
        writer = csv.DictWriter(buffer, list(rows[0]), delimiter=delimiter, lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)
        self.text(name, buffer.getvalue())

    def picture(self, name: str, seed: int, size: tuple[int, int] = (24, 16)) -> str:
        """A picture of that name, which it returns."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(seed).integers(0, 256, (size[1], size[0], 3), dtype=np.uint8)
        if path.suffix == ".npy":
            np.save(path, pixels)
        else:
            PIL.Image.fromarray(pixels).save(path)
        return name

    def quad(self, q: int, names: tuple[str, str], *, at: str = "") -> list[str]:
        """Captions of question q; pictures of these names are written below `at`, and the pairs are right."""
        captions = [f"caption {k} of {q}" for k in (0, 1)]
        for k, name in enumerate(names):
            self.picture(at + name, 2 * q + k)
            self.right.add((captions[k], name))
        return captions

    def group(self, *labels: str) -> None:
        for label in labels:
            self.counts[label] = self.counts.get(label, 0) + 1


def colorswap(into: Released) -> None:
    rows = []
    for q in range(3):
        images = (f"images/img_{q}_1.png", f"images/img_{q}_2.png")
        first, second = into.quad(q, images)
        sources = {"image_source": "midjourney", "caption_source": "human" if q else "template"}
        rows.append({"id": q, "caption_1": first, "caption_2": second})
        rows[-1] |= {"image_1": images[0], "image_2": images[1], **sources}
        into.ids.append(str(q))
        into.group(*sources.values())
    into.json("test.json", rows)
    into.json("train.json", rows[:1])


def vismin(into: Released) -> None:
    for q, category in enumerate(("object", "attribute", "counting", "relation")):
        images = (f"{category}/{q}.png", f"{category}/{q}_edited.png")
        first, second = into.quad(q, images)
        row = {"image_path": images[0], "caption": first, "edited_image_path": images[1]}
        into.csv(f"{category}.csv", [{**row, "edited_caption": second, "edit_id": f"e{q}"}])
        into.ids.append(f"{category}/e{q}")
        into.group(category)


def naturalbench(into: Released) -> None:
    rows = []
    for q in range(3):
        images = (f"images/{q}_0.jpg", f"images/{q}_1.jpg")
        first, second = into.quad(q, images)
        rows.append({"index": q + 5, "image_0": images[0], "image_1": images[1]})
        rows[-1] |= {"caption_0": first, "caption_1": second}
        into.ids.append(str(q + 5))
    into.json("metadata.json", rows)


def cola(into: Released) -> None:
    rows = []
    for q in range(3):
        images = (f"{q}1.jpg", f"{q}2.jpg")
        first, second = into.quad(q, images, at="images/")
        address = "https://cs-people.bu.edu/array/data/vg_gqa_images/"
        rows.append([address + images[0], first, address + images[1], second])
        into.ids.append(str(q))
    into.json("COLA_multiobjects_matching_benchmark.json", rows)


def mmvp(into: Released) -> None:
    rows = []
    for q, kind in enumerate(("Texts", "Texts", "Quantity and Count")):
        numbers = (2 * q + 1, 2 * q + 2)
        images = tuple(f"MLLM_VLM Images/{kind}/{n}.jpg" for n in numbers)
        captions = into.quad(q, (images[0], images[1]))
        rows += [
            {"Question ID": n, "Type": kind, "Statement": text}
            for n, text in zip(numbers, captions, strict=True)
        ]
        into.ids.append(f"{numbers[0]}-{numbers[1]}")
        into.group(kind)
    into.csv("Questions.csv", rows)


def counterfactuals(into: Released) -> None:
    rows = []
    for q in range(3):
        images = (f"{q}.jpg", f"neg_{q}.jpg")
        first, second = into.quad(q, images)
        rows.append({"captions": first, "images": images[0], "neg_captions": second, "neg_images": images[1]})
        into.ids.append(str(q))
    into.csv("attribute.csv", rows, delimiter="\t")


EQBEN = ("eqbenag/a/f1.png", "eqbenyoucook2/b/1.npy", "eqbenkubric_loc/1.png", "eqbensd/1.png")


def _eqben_rows(into: Released) -> list[dict[str, str]]:
    rows = []
    for q, name in enumerate(EQBEN):
        images = (name, name.replace("1.", "2."))
        first, second = into.quad(q, images)
        rows.append({"image0": images[0], "caption0": first, "image1": images[1], "caption1": second})
        into.ids.append(str(q))
        into.group(name.split("/")[0])
    return rows


def eqben_blind(into: Released) -> None:
    """Every pair of every quad in random order, and the key to it."""
    pairs: list[dict[str, str]] = []
    key: list[dict[str, Any]] = []
    for q, row in enumerate(_eqben_rows(into)):
        for c, i in ((0, 0), (0, 1), (1, 0), (1, 1)):
            pairs.append({"image": row[f"image{i}"], "caption": row[f"caption{c}"]})
            key.append({"dataset": row["image0"].split("/")[0], "name": f"c{c}i{i}", "sample_cnt": q})
    order = np.random.default_rng(0).permutation(len(pairs)).tolist()
    into.json("ann_json_finegrained_random.json", [pairs[k] for k in order])
    into.json("src_file/private_info.json", key)
    into.json("src_file/private_random_idx.json", order)


def eqben_list(name: str) -> Callable[[Released], None]:
    def write(into: Released) -> None:
        into.json(name, _eqben_rows(into))
        into.counts.clear()

    return write


#: By the name of the benchmark.
LAYOUTS: dict[str, Callable[[Released], None]] = {
    "colorswap": colorswap,
    "vismin": vismin,
    "naturalbench-retrieval": naturalbench,
    "cola": cola,
    "mmvp-vlm": mmvp,
    "eqben": eqben_blind,
    "eqben-subset": eqben_list("eqben_subset_10percent_final.json"),
    "eqben-mini": eqben_list("all_select.json"),
    "flickr30k-counterfactuals": counterfactuals,
}
