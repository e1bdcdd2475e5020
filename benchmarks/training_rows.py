"""Memory and time of reading training rows: captions mapped into memory, and as Python's lists.

    python benchmarks/training_rows.py                      # 3,650,000 rows, as TROHN-Text has
    python benchmarks/training_rows.py --rows 600000 --lists

Makes a Parquet file like TROHN-Text's (118,000 photographs, captions that repeat, a negative each), and reads
it in processes of their own: anew, again (the captions are there already), and with two at once. `--lists`
adds the way of all other tables, a Python object per cell, which takes gigabytes for millions of rows. Memory
is what a process holds of its own at the end and at most (Linux), without files that it shares with others.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

WORDS = [
    "a",
    "the",
    "red",
    "small",
    "dog",
    "cat",
    "man",
    "woman",
    "table",
    "grass",
    "ball",
    "on",
    "under",
    "beside",
    "holding",
    "two",
    "old",
    "bright",
]
PHOTOGRAPHS = 118_000


def made(folder: Path, rows: int) -> Path:
    """A table of `rows` rows; its photographs are empty files, since none is looked at."""
    rng = np.random.default_rng(0)
    words = np.array(WORDS)
    (folder / "images").mkdir()
    names = [f"{i:012d}.jpg" for i in range(min(PHOTOGRAPHS, rows))]
    for name in names:
        (folder / "images" / name).touch()
    path = folder / "train.parquet"
    schema = pa.schema(
        [("image_id", pa.string()), ("caption", pa.string()), ("negative_caption", pa.string())]
    )
    with pq.ParquetWriter(path, schema) as out:
        for start in range(0, rows, 100_000):
            n = min(100_000, rows - start)
            # Six rows in a row are of one caption, as negatives of one caption are.
            of = (start + np.arange(n)) // 6
            said = [f"{' '.join(words[(number * np.arange(3, 12)) % len(words)])} {number}" for number in of]
            drawn = rng.integers(0, len(words), (n, 9))
            wrong = [f"{' '.join(words[row])} {number}" for number, row in enumerate(drawn, start)]
            out.write_batch(
                pa.record_batch([[names[i % len(names)] for i in of], said, wrong], schema=schema)
            )
    return path


def read(path: Path, shelf: Path, lists: bool) -> None:
    """Read the rows, ask for one in a thousand, and print what that took."""
    from counterfoil.benchmarks import training_columns, training_files

    if lists:
        training_columns.ParquetColumns.suits = lambda self, columns: False  # type: ignore[method-assign]
    before, began = held(), time.process_time()
    data = training_files.read(path, images=path.parent / "images", shelf=shelf)
    seconds = time.process_time() - began
    for role in ("caption", "negative_caption"):
        assert all(data.captions[i].text for i in data.rows[role][::1000])
    print(
        json.dumps(
            {
                "rows": len(data),
                "captions": len(data.captions),
                "seconds": seconds,
                "own": held() - before,
                "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
            }
        )
    )


def held() -> float:
    """Megabytes that this process alone holds: what is mapped from files is shared, and can be let go."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("RssAnon")) / 1024


def start(path: Path, shelf: Path, *more: str) -> subprocess.Popen[str]:
    """A process that reads the rows."""
    command = [sys.executable, __file__, "--read", str(path), "--shelf", str(shelf), *more]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True)


def shown(way: str, process: subprocess.Popen[str]) -> None:
    """A line of what a process took."""
    said = json.loads(process.communicate()[0])
    took = f"{said['seconds']:8.1f} s   {said['own']:8,.0f} MB of its own   peak {said['peak']:6,.0f} MB"
    print(f"{way:26} {took}")


def main() -> None:
    """Print a line per way of reading."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=3_650_000)
    parser.add_argument("--lists", action="store_true")
    parser.add_argument("--read", type=Path)
    parser.add_argument("--shelf", type=Path)
    asked = parser.parse_args()
    if asked.read is not None:
        read(asked.read, asked.shelf, asked.lists)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = made(folder, asked.rows)
        print(f"{asked.rows:,} rows in {path.stat().st_size / 2**20:,.0f} MB of Parquet, processor seconds")
        shown("mapped, read anew", start(path, folder / "shelf"))
        shown("mapped, read before", start(path, folder / "shelf"))
        both = [start(path, folder / "shelf") for _ in range(2)]
        for number, process in enumerate(both, 1):
            shown(f"mapped, process {number} of 2", process)
        if asked.lists:
            shown("lists of Python objects", start(path, folder / "shelf", "--lists"))


if __name__ == "__main__":
    main()
