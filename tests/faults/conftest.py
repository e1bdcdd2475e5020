"""The sound inputs that cases spoil, in a home of their own."""

import os
import shutil

import pytest

from faults import sound, strangers
from made_once import made_once

pytest.importorskip("torch")


@pytest.fixture(scope="session")
def sound_folder(tmp_path_factory):
    """The sound inputs, made once for all processes."""
    with pytest.MonkeyPatch.context() as patch:
        _environment(patch, tmp_path_factory.mktemp("faults"))
        return made_once(tmp_path_factory, "sound", sound.make)


@pytest.fixture
def folder(sound_folder, tmp_path, monkeypatch):
    """The sound inputs for one case: links to the same bytes, which no command may write into."""
    _environment(monkeypatch, tmp_path)
    copy = tmp_path / "case"
    shutil.copytree(sound_folder, copy, copy_function=os.link)
    (copy / "loop").symlink_to("loop")
    strangers.secret(copy)
    return copy


def _environment(patch, folder):
    for name in ("COUNTERFOIL_CACHE", "XDG_CACHE_HOME"):
        patch.setenv(name, str(folder / "cache"))
    patch.setenv("XDG_STATE_HOME", str(folder / "state"))
    patch.setenv("COLUMNS", "100")
    patch.delenv("COUNTERFOIL_DATA", raising=False)
