"""The benchmarks of devices and of routes: their arithmetic, and that they run where there is no GPU."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("open_clip")
pytestmark = pytest.mark.models

FOLDER = Path(__file__).parents[2] / "benchmarks"


def gpu(*arguments: str) -> str:
    """What the command prints."""
    done = subprocess.run(
        [sys.executable, str(FOLDER / "gpu.py"), *arguments], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_line_says_so() -> None:
    (line,) = gpu().splitlines()
    assert line.startswith("no GPU here: nothing is measured")


@pytest.mark.slow
def test_the_processor_runs_all_parts() -> None:
    printed = gpu("--device", "cpu", "--small", "--workers", "0")
    for words in (
        "images/s decode",
        "bound by",
        "tower, compile=yes",
        "% of the rate of products",
        "2 pairs and 2 negative pairs:",
        "vqa qwen2-vl                   10",
    ):
        assert words in printed, words


@pytest.fixture
def routes(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """`benchmarks/routes.py`, whose neighbours are there while it is imported."""
    for name in ("routes", "engine", "processor"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.syspath_prepend(str(FOLDER))
    import routes

    for name in ("routes", "engine", "processor"):
        monkeypatch.delitem(sys.modules, name)
    return routes


def test_decisions_that_differ_are_counted_by_side(routes: ModuleType) -> None:
    rows = np.eye(3)[:2]
    turned = np.array([[0.6, 0.8, 0.0], [0.0, 1.0, 0.0]])

    def ways(scores: list[list[float]], images: np.ndarray = rows) -> object:
        return routes.Embedded(images, rows, np.array(scores))

    before = ways([[0.3, 0.1], [0.2, 0.4], [0.5, 0.1], [0.1, 0.6]])
    # Lost, gained, still right, and a tie, which is wrong as before.
    found = routes.shift(before, ways([[0.3, 0.35], [0.2, 0.1], [0.5, 0.1], [0.6, 0.6]], turned))
    assert (found.differ, found.lost, found.gained, found.of) == (2, 1, 1, 4)
    assert (found.scores, found.margin) == (0.5, 0.3)
    assert found.images == pytest.approx((0.8, 0.6))
    assert found.captions == (1.0, 1.0)


def test_every_route_is_one_that_a_scorer_takes(routes: ModuleType) -> None:
    from counterfoil.models.base import IMAGE_ROUTES, ScorerSettings
    from counterfoil.models.images import ImageRoute
    from counterfoil.models.runtime import PRECISIONS

    measured = [ImageRoute.of(ScorerSettings(each.name, each.settings)).facts() for each in routes.ROUTES]
    assert measured == [dict(each.settings) for each in routes.ROUTES]
    assert {each.precision for each in routes.ROUTES} == set(PRECISIONS)
    choices = {(name, value) for name, values in IMAGE_ROUTES.items() for value in values[1:]}
    assert choices == {(name, value) for facts in measured for name, value in facts.items()}
