"""The sound inputs that cases spoil, in a home of their own."""

import os
import shutil

import pytest

from faults import sound, strangers
from faults.command import states
from made_once import made_once
from world_fixtures import drawn_once  # noqa: F401

pytest.importorskip("torch")


@pytest.fixture(scope="session")
def sound_folder(tmp_path_factory):
    """The sound inputs, made once for all processes."""
    with pytest.MonkeyPatch.context() as patch:
        _environment(patch, tmp_path_factory.mktemp("faults"))
        return made_once(tmp_path_factory, "sound", sound.make)


@pytest.fixture(scope="session")
def moved_to(sound_folder):
    """Moves a copy of the sound inputs from case to case, and makes it anew where a case changed it.

    It holds links to the same bytes, which no command may write into.
    """
    at, whole = sound_folder, {}

    def move(place):
        nonlocal at, whole
        if whole and states(at, folders=True) == whole:
            at.rename(place)
        else:
            shutil.copytree(sound_folder, place / "case", copy_function=os.link)
            (place / "case" / "loop").symlink_to("loop")
            strangers.secret(place / "case")
            whole = states(place, folders=True)
        at = place
        return place / "case"

    return move


@pytest.fixture
def folder(moved_to, tmp_path, monkeypatch):
    """The sound inputs for one case."""
    _environment(monkeypatch, tmp_path)
    return moved_to(tmp_path / "home")


def _environment(patch, folder):
    for name in ("COUNTERFOIL_CACHE", "XDG_CACHE_HOME"):
        patch.setenv(name, str(folder / "cache"))
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    patch.setenv("COLUMNS", "100")
    patch.delenv("COUNTERFOIL_DATA", raising=False)
