"""Every example runs as it is written, in a process of its own, with the core alone."""

import os
import subprocess
import sys
from pathlib import Path

import PIL.Image
import pytest

from counterfoil.data.folder import load

FOLDER = Path(__file__).resolve().parents[1] / "examples"
EXAMPLES = sorted(path.name for path in FOLDER.glob("*.py"))

#: A module that stands in the way of torch and its friends.
NO_MODELS = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in {"torch", "torchvision", "open_clip", "transformers", "datasets"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Gone())
"""


def run(name: str, tmp_path: Path, *arguments: str) -> str:
    (tmp_path / "sitecustomize.py").write_text(NO_MODELS)
    done = subprocess.run(
        [sys.executable, "-W", "error", str(FOLDER / name), *arguments],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_is_alone_here(tmp_path):
    """The other tests mean something only if the examples could not have imported torch."""
    (tmp_path / "sitecustomize.py").write_text(NO_MODELS)
    done = subprocess.run(
        [sys.executable, "-c", "import torch"],
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert "No module named 'torch'" in done.stderr


def test_there_are_examples():
    assert EXAMPLES == [
        "benchmark_from_a_table.py",
        "draw_a_world.py",
        "gallery_of_your_own.py",
        "measure_your_own_scorer.py",
    ]


def test_drawing_a_world(tmp_path):
    out = run("draw_a_world.py", tmp_path, "sheet")
    assert out.count("[[True, False], [False, True]]") == 7
    with PIL.Image.open(tmp_path / "sheet" / "contact-sheet.png") as sheet:
        # Seven rows of two contrasts, two pictures of 192 pixels each.
        assert sheet.width > 4 * 192
        assert sheet.height > 7 * 192
    assert len(load(tmp_path / "sheet" / "benchmark")) == 70


def test_measuring_a_scorer(tmp_path):
    out = run("measure_your_own_scorer.py", tmp_path)
    parts = dict(part.split("\n", 1) for part in out.strip().split("\n\n")[1:])
    assert list(parts) == ["blind:length", "pixels:colours", "counting"]
    # Who counts is right about added things, in both directions.
    assert "best at add_obj" in parts["counting"]


def test_a_benchmark_from_a_table(tmp_path):
    out = run("benchmark_from_a_table.py", tmp_path, str(tmp_path / "mine"))
    assert "140 questions of the form 'choice'" in out
    # Each added thing makes the wrong caption longer: the length is right in none of 40 questions of ADD.
    assert "add        0.0%" in out
    assert (tmp_path / "mine" / "table.csv").is_file()


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_says_how_to_run_it(name):
    assert f"python examples/{name}" in (FOLDER / name).read_text(encoding="utf-8")
