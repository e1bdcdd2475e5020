"""Every script of `benchmarks/` runs to its end at a tiny size, and those of `make bench` are among them."""

import json
import re
from pathlib import Path

import pytest

from processes import python

ROOT = Path(__file__).parents[2]
SCRIPTS = ROOT / "benchmarks"

#: The arguments of each script; one that needs a folder gets FOLDER.
TINY = {
    "agreement": "--items 60 --draws 5 --slow-draws 1",
    "annotation": "--items 1200",
    "annotation_server": "--items 20 --people 3 --seconds 0.3 --think 0.05",
    "building": "--rows 3000",
    "captions": "--images 4",
    "chance": "--repetitions 2",
    "compare": "--draws 100 --loop-draws 1",
    "coverage": "--repetitions 2 --tables forms",
    "engine": "--items 6 --rows 1 --rounds 1 --precision fp32",
    "executors": "--small --workers 2",
    "fidelity": "FOLDER --rows 60 --tiny",
    "gpu": "--device cpu --small --only products",
    "noise_filter": "FOLDER --tiny",
    "pairs": "--size tiny --images 1 --captions 1 --rounds 1 --plain 1 --only itm",
    "pooling": "--queries 64 --items 500 --width 16 --k 5 --runs 1",
    "ranking": "--every 2500 --width 8 --runs 1",
    "ratings": "--draws 100 --loop-draws 1",
    "routes": "--items 6 --only resize=device",
    "stopping_rule": "shares.jsonl",
    "statements": "--repetitions 2",
    "training_memory": "--batch 2 --chunk 1",
    "training_rows": "--rows 500",
    "training_step": "--steps 2 --batch 2 --rounds 1 --accumulate 1 --precision fp32",
    "world": "--n 20 --size 16",
}
#: Scripts whose exit code is 1 where too little was measured to agree.
MAY_DISAGREE = {"fidelity", "noise_filter"}
#: Studies, and scripts that make models of the real size or processes of their own: `make slow` runs them.
LONG = {
    *("agreement", "chance", "coverage", "engine", "executors", "fidelity", "gpu", "noise_filter", "pairs"),
    *("pooling", "ranking", "routes", "stopping_rule", "training_memory", "training_rows", "training_step"),
}
#: Modules beside the scripts.
HELPERS = {"processor", "small_trainings"}


def test_every_script_has_a_tiny_size():
    assert {path.stem for path in SCRIPTS.glob("*.py")} - HELPERS == set(TINY)
    named = re.findall(r"benchmarks/(\w+)\.py", (ROOT / "Makefile").read_text())
    assert named
    assert set(named) <= set(TINY)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=pytest.mark.slow) if name in LONG else name for name in TINY]
)
def test_a_script_runs_to_its_end(name, tmp_path):
    pytest.importorskip("torch")
    arguments = TINY[name].replace("FOLDER", str(tmp_path / "build")).split()
    if "shares.jsonl" in arguments:
        votes = (1, 4 / 14, 0, 1, 10 / 11, 1 / 11, 2 / 12, 1)
        pairs = [f"{question}_c{caption}_i{image}" for question in "01" for caption in "01" for image in "01"]
        rows = [json.dumps({"label": pair, "score": share}) for pair, share in zip(pairs, votes, strict=True)]
        (tmp_path / "shares.jsonl").write_text("\n".join(rows))
    own = {"OMP_NUM_THREADS": "1", "COUNTERFOIL_DATA": str(tmp_path / "no-data")}
    done = python(SCRIPTS / f"{name}.py", *arguments, cwd=tmp_path, variables=own)
    assert "Traceback" not in done.stderr, done.stderr
    assert done.returncode in ({0, 1} if name in MAY_DISAGREE else {0}), done.stdout + done.stderr
    assert done.stdout.strip()
