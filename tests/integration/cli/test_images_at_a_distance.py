"""`counterfoil evaluate` with images behind a URL: the numbers of a disk, and the URL as it was given."""

import json

import fsspec
import numpy as np
import PIL.Image
import pytest


@pytest.fixture
def pairs(tmp_path):
    """A table of captions, right and wrong, of pictures in the folder `photos` beside it."""
    rng = np.random.default_rng(0)
    (tmp_path / "photos").mkdir()
    rows = ["image,caption,negative_caption"]
    for number in range(6):
        pixels = rng.integers(0, 255, (12, 12, 3), dtype=np.uint8)
        PIL.Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
        rows.append(f"{number}.png,a red {number},a blue {number}")
    (tmp_path / "pairs.csv").write_text("\n".join(rows))
    return tmp_path / "pairs.csv"


@pytest.mark.parametrize("scheme", ["file", "memory"])
def test_numbers_are_those_of_a_disk(scheme, counterfoil, pairs, tmp_path):
    far = f"file://{tmp_path}/far" if scheme == "file" else f"memory://{tmp_path.name}-cli/far"
    for photo in (tmp_path / "photos").iterdir():
        with fsspec.open(f"{far}/{photo.name}", "wb", auto_mkdir=True) as file:
            file.write(photo.read_bytes())

    def values(images, out):
        asked = ("--data", pairs, "--images", images, "--out", tmp_path / out, "--draws", 100)
        said = counterfoil.succeeds("evaluate", "pixels:colours", "pairs", *asked)
        assert "memory:/" not in (said.out + said.err).replace("memory://", "")
        result = json.loads((tmp_path / out / "pairs" / "result.json").read_text())
        return {name: facts["value"] for name, facts in result["measures"].items()}

    assert values(far, "far-run") == values(tmp_path / "photos", "near-run")
    for file in (tmp_path / "far-run").rglob("*.json"):
        assert "memory:/" not in file.read_text().replace("memory://", "")
