"""Every example runs as it is written, in a process of its own, with the core alone."""

import math
import re
from pathlib import Path

import PIL.Image
import pytest

from counterfoil.benchmarks.folder import load
from processes import python

FOLDER = Path(__file__).resolve().parents[2] / "examples"
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


def alone(tmp_path, *arguments):
    (tmp_path / "sitecustomize.py").write_text(NO_MODELS)
    return python("-W", "error", *arguments, cwd=tmp_path, variables={"PYTHONPATH": str(tmp_path)})


def run(name, tmp_path, *arguments):
    done = alone(tmp_path, FOLDER / name, *arguments)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_core_is_alone_here(tmp_path):
    """The other tests mean something only if the examples could not have imported torch."""
    assert "No module named 'torch'" in alone(tmp_path, "-c", "import torch").stderr


def test_drawing_a_world(tmp_path):
    assert run("draw_a_world.py", tmp_path, "sheet").count("[[True, False], [False, True]]") == 7
    with PIL.Image.open(tmp_path / "sheet" / "contact-sheet.png") as sheet:
        # Seven rows of two contrasts, two pictures of 192 pixels each.
        assert sheet.width > 4 * 192
        assert sheet.height > 7 * 192
    assert len(load(tmp_path / "sheet" / "benchmark")) == 70


def test_a_gallery_of_ones_own(tmp_path):
    """Three captions speak of dogs and so do two of three images; the fourth caption and image are of a cat.

    The cat is right in both directions. Each dog's image ties its own two captions with a wrong one: R is 2,
    so mAP@R is 1 at best, (0 + 1/2) / 2 = 1/4 at worst, and over the three places of the wrong one
    (1/4 + 1/2 + 1) / 3 = 7/12. Two of the dogs' captions have one of two tied images: 1, 0, 1/2 in the mean;
    "a dog outside" has both. Images: (2 * 1/4 + 1) / 3 = 1/2, or (2 * 7/12 + 1) / 3 = 13/18. Captions:
    (0 + 1 + 0 + 1) / 4 = 1/2, or 3/4. Means: 50.0 %, (13/18 + 3/4) / 2 = 73.6 %, 100 %.
    """
    out = run("gallery_of_your_own.py", tmp_path, str(tmp_path))
    assert "3 images, 4 captions" in out
    for ties, value in (("strict", "50.0%"), ("half", "73.6%"), ("optimistic", "100.0%")):
        assert f"ties {ties:10} {value:>6}" in out
    # By chance alone: images with R = 2 of 4 get P(first) / 2 + P(second) * (1 + 1/3) / 2 / 2 = 1/4 + 1/6,
    # the cat's 1/4; captions 1/3, with R = 2 of 3 (2/3 + 2/3 * (1/2 + 1/2 * 1)) / 2 = 7/12.
    assert out.count(f"chance {((2 * 5 / 12 + 1 / 4) / 3 + (3 / 3 + 7 / 12) / 4) / 2:.1%}") == 3
    assert {path.name for path in tmp_path.iterdir()} >= {"judged.csv", "similarities.npy"}


def test_metrics_of_captions(tmp_path):
    """Worked by hand: of "a dog runs along the beach", 6 of 6 words, 4 of 5 pairs, 2 of 4 triples and 1 of 3
    fours are in a reference of 7 words; "a cat sleeps" has no four, whose precision is then 1e-15 / 1e-9.
    """
    out = run("caption_metrics.py", tmp_path, str(tmp_path))
    lines = {line.split()[0]: line.split() for line in out.splitlines() if line}
    dog = math.exp(1 - 7 / 6) * (6 / 6 * 4 / 5 * 2 / 4 * 1 / 3) ** (1 / 4)
    assert [float(value) for value in lines["BLEU-4"][1:]] == pytest.approx([dog, 1e-6**0.25], abs=6e-4)
    # The best precision and the best recall of any reference: 3 of 3 words, and 2 of 3.
    precision, recall = 1, 2 / 3
    cat = (1 + 1.2**2) * precision * recall / (recall + 1.2**2 * precision)
    assert float(lines["ROUGE-L"][2]) == pytest.approx(cat, abs=6e-4)
    # Who knows the truth agrees with it wholly, and a length that says nothing not at all.
    tau = {name: float(lines[name][2]) for name in ("world:oracle", "metric:cider", "metric:length")}
    assert tau["world:oracle"] == 1
    low, high = (float(part.strip("[,]")) for part in lines["metric:length"][3:])
    assert low < 0 < high
    result = re.search(r"of metric:cider to metric:length: (\S+)  \[(\S+), (\S+)\]  p (\S+)", out)
    value, low, high, p = map(float, result.groups())
    assert value == pytest.approx(tau["metric:cider"] - tau["metric:length"], abs=2e-3)
    assert 0 < low < value < high
    # None of the 1,000 permutations does as well.
    assert p == pytest.approx(1 / 1001, abs=1e-3)


@pytest.mark.parametrize("name", EXAMPLES)
def test_every_example_says_how_to_run_it(name):
    assert f"python examples/{name}" in (FOLDER / name).read_text(encoding="utf-8")
