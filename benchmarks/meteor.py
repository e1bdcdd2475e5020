"""Seconds of METEOR: `counterfoil` against `pycocoevalcap`, which both run the same program, in one run.

    python benchmarks/meteor.py [--images N] [--data DIR]

Every caption of Flickr8k against the other four of its image, 40,000 candidates for the first 8,000 images.
Captions are cut into the COCO tool kit's words beforehand, for both. Each
side starts its own program, so that loading METEOR's data counts, and is a process of its own:

* `pycocoevalcap`: its class Meteor, which asks for one candidate after the other.
* `counterfoil`: all questions at once.

Scores of every candidate and of all together must be equal to 1e-9: exits with 1 where they are not. Without
the data, Java or pycocoevalcap there is nothing to measure, which is said.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

import numpy as np

from counterfoil.benchmarks.readers.released_captions import read_tokens
from counterfoil.metrics.captions import ptb
from counterfoil.models.captions.java import meteor

Load = tuple[list[str], list[list[str]]]


def load(folder: Path, images: int) -> Load:
    """Candidates and references, in words."""
    entries = list(read_tokens(folder / "flickr8k" / "Flickr8k.token.txt").values())[:images]
    words = iter(ptb.tokenize_all([text for own in entries for _, text in own]))
    groups = [[next(words) for _ in own] for own in entries]
    return (
        [text for own in groups for text in own],
        [own[:at] + own[at + 1 :] for own in groups for at in range(len(own))],
    )


def theirs(candidates: list[str], references: list[list[str]]) -> tuple[float, list[float]]:
    """By pycocoevalcap."""
    from pycocoevalcap.meteor.meteor import Meteor

    return Meteor().compute_score(
        dict(enumerate(references)), {at: [text] for at, text in enumerate(candidates)}
    )


def work(name: str, file: Path) -> None:
    """One side, timed: seconds and numbers as JSON."""
    candidates, references = json.loads(file.read_text(encoding="utf-8"))
    start = perf_counter()
    if name == "pycocoevalcap":
        whole, items = theirs(candidates, references)
    else:
        found = meteor(candidates, references)
        whole, items = found.corpus, found.items.tolist()
    print(json.dumps({"seconds": perf_counter() - start, "whole": whole, "items": items}))


def side(name: str, file: Path) -> Any:
    """What one side measures, in a process of its own."""
    command = [sys.executable, __file__, "--data", str(file), "--side", name]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def lacking(data: Path) -> str | None:
    """What there is no measuring without; None where all is here."""
    if not (data / "flickr8k" / "Flickr8k.token.txt").is_file():
        return f"no flickr8k/Flickr8k.token.txt in {data}, name another folder with --data"
    if find_spec("pycocoevalcap") is None:
        return "pycocoevalcap is not installed"
    return None if shutil.which("java") else "no Java program"


def main() -> int:
    """Prints seconds, candidates per second and ratios."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    beside = Path(__file__).resolve().parents[2] / "shared" / "data"
    data = Path(os.environ.get("COUNTERFOIL_DATA", beside))
    parser.add_argument("--data", type=Path, default=data, help="folder with flickr8k/Flickr8k.token.txt")
    parser.add_argument("--images", type=int, default=8_000, help="how many images, five captions each")
    parser.add_argument("--side", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.side:
        work(given.side, given.data)
        return 0
    if (missing := lacking(given.data)) is not None:
        print(f"METEOR is not measured: {missing}")
        return 0
    with TemporaryDirectory() as folder:
        file = Path(folder, "load.json")
        loaded = load(given.data, given.images)
        file.write_text(json.dumps(loaded), encoding="utf-8")
        found = {name: side(name, file) for name in ("pycocoevalcap", "counterfoil")}
    n = len(loaded[0])
    first = found["pycocoevalcap"]
    print(f"METEOR of {n:,} candidates against 4 references each, start of the program included")
    apart = 0.0
    for name, one in found.items():
        ratio = first["seconds"] / one["seconds"]
        print(f"{name:<16}{one['seconds']:>8.1f} s{n / one['seconds']:>10,.0f} candidates/s{ratio:>8.2f} x")
        items = np.abs(np.array(one["items"]) - np.array(first["items"])).max()
        apart = max(apart, float(items), abs(one["whole"] - first["whole"]))
    print(f"largest difference: {apart:g}")
    return 0 if apart <= 1e-9 else 1


if __name__ == "__main__":
    sys.exit(main())
