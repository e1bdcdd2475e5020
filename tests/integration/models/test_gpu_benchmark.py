"""The benchmarks of devices and of routes: their arithmetic, and that they run where there is no GPU."""

import importlib
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from processes import python

pytest.importorskip("open_clip")

FOLDER = Path(__file__).parents[3] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Imports a script of `benchmarks`, whose neighbours are there while it is imported."""

    def imported(name):
        names = ("engine", "gpu", "pairs", "processor", "routes")
        with monkeypatch.context() as patch:
            for item in names:
                patch.delitem(sys.modules, item, raising=False)
            patch.syspath_prepend(str(FOLDER))
            module = importlib.import_module(name)
            for item in names:
                sys.modules.pop(item, None)
        return module

    return imported


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_so(script, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["gpu.py"])
    script("gpu").main()
    (line,) = capsys.readouterr().out.splitlines()
    assert line.startswith("no GPU here: nothing is measured")


@pytest.mark.slow
def test_the_processor_runs_all_parts():
    done = python(FOLDER / "gpu.py", "--device", "cpu", "--small", "--workers", 0)
    assert done.returncode == 0, done.stderr
    for words in (
        "images/s decode",
        "bound by",
        "tower, compile=yes",
        "% of the rate of products",
        "2 pairs and 2 negative pairs:",
        "vqa qwen2-vl                   10",
    ):
        assert words in done.stdout, words


@pytest.fixture
def routes(script):
    return script("routes")


def test_decisions_that_differ_are_counted_by_side(routes):
    rows = np.eye(3)[:2]
    turned = np.array([[0.6, 0.8, 0.0], [0.0, 1.0, 0.0]])

    def ways(scores, images=rows):
        return routes.Embedded(images, rows, np.array(scores))

    before = ways([[0.3, 0.1], [0.2, 0.4], [0.5, 0.1], [0.1, 0.6]])
    # Lost, gained, still right, and a tie, which is wrong as before.
    result = routes.shift(before, ways([[0.3, 0.35], [0.2, 0.1], [0.5, 0.1], [0.6, 0.6]], turned))
    assert (result.differ, result.lost, result.gained, result.of) == (2, 1, 1, 4)
    assert (result.scores, result.margin) == (0.5, 0.3)
    assert result.images == pytest.approx((0.8, 0.6))
    assert result.captions == (1.0, 1.0)
