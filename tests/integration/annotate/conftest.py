"""The fixtures of these tests, which those of tests/unit have too, and a folder with photographs."""

import PIL.Image
import pytest

from annotate_fixtures import *  # noqa: F403


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with ten images, in which the test is."""
    (tmp_path / "photos").mkdir()
    for i in range(10):
        PIL.Image.new("RGB", (8, 8), (i * 20, 0, 0)).save(tmp_path / "photos" / f"{i}.png")
    monkeypatch.chdir(tmp_path)
    return tmp_path
